"""Which lines tell of losses, and what is added to them from the lines before."""

from typing import Any

from replication.evidence.broker_logs.broker_log import LogLineFact
from replication.evidence.broker_logs.telling_lines import Telling


def fact(kind: str, line: int = 1, broker: int | None = 1, **fields: Any) -> LogLineFact:
    return LogLineFact(kind, line * 1000, line, "server.log", broker, "t", 0, fields)


def told(*facts: LogLineFact) -> list[tuple[str, dict[str, Any]]]:
    telling = Telling()
    for one in facts:
        telling.take(one)
    return [(one.kind, one.fields) for one in telling.lines]


def test_a_fetch_that_failed_tells_where_the_followers_log_ended() -> None:
    """The cut comes after the leader's end, of which failing fetches are the sign."""
    found = told(fact("fetch_failed", 1, fetch_offset=30), fact("truncated", 2, to_offset=20))
    assert found == [("truncated", {"to_offset": 20, "log_end_offset_before": 30})]
    found = told(fact("fetch_failed", 1, fetch_offset=10), fact("truncated", 2, to_offset=20))
    assert found == [("truncated", {"to_offset": 20})]


def test_the_end_of_another_brokers_log_is_none_of_this_ones() -> None:
    def loaded(line: int, end: int, directory: str) -> LogLineFact:
        return fact("log_loaded", line, None, log_end_offset=end, directory=directory)

    def cut(**fields: Any) -> LogLineFact:
        return fact("truncated", 9, None, to_offset=20, **fields)

    both = (loaded(1, 25, "/a"), loaded(2, 30, "/b"))
    assert told(*both, cut(directory="/a"))[0][1]["log_end_offset_before"] == 25
    assert "log_end_offset_before" not in told(*both, cut(directory="/c"))[0][1]
    # In a file of several, which of them cut is not known.
    assert "log_end_offset_before" not in told(*both, cut(one_of=(1, 2)))[0][1]
    named = fact("became_follower", 1, 2, log_end_offset=40)
    other = fact("truncated", 9, 1, to_offset=20)
    assert told(fact("became_leader", 0, 1), named, other)[0][1] == {"to_offset": 20}


def test_only_what_is_out_of_the_ordinary_tells() -> None:
    ordinary = [
        fact("leader_elected", leader=2, how="clean"),
        fact("leader_elected", leader=None, how="unclean"),
        fact("epoch_entry_added", leader_epoch=1, start_offset=5),
        fact("epoch_entries_cleared", end="earliest", offset=5),
        fact("segments_deleted", reason="truncation"),
        fact("became_leader", leader_epoch=1),
    ]
    assert told(*ordinary) == []
    tells = [
        fact("leader_elected", leader=2, how="unclean"),
        fact("epoch_entry_added", leader_epoch=3, start_offset=5, conflicting=((2, 7),)),
        fact("epoch_entries_cleared", end="latest", offset=5),
        fact("segments_deleted", reason="retention_time"),
    ]
    assert [kind for kind, _ in told(*tells)] == [one.kind for one in tells]


def test_three_of_a_kind_are_kept_and_the_rest_counted() -> None:
    found = told(*[fact("corrupt_index_found", n) for n in range(5)])
    assert [fields.get("repeats") for _, fields in found] == [None, None, 2]
    many = [fact("leader_elected", n, None, leader=2, how="unclean", topic_id=f"id-{n}")
            for n in range(5)]  # fmt: skip
    assert len(told(*many)) == 5


def test_a_change_of_the_isr_that_was_refused_is_not_told_as_done() -> None:
    shrinks = [fact("isr_shrink_proposed", n, from_isr=(1, 2), to_isr=(1,)) for n in (1, 2, 4)]
    refused = fact("isr_update_refused", 3, reason="x")
    done = fact("isr_updated", 5, isr=(1,))
    found = told(*shrinks[:2], refused, shrinks[2], done, refused._replace(line=6))
    assert [fields.get("refused") for kind, fields in found if kind == "isr_shrink_proposed"] == [
        None, True, None,
    ]  # fmt: skip
