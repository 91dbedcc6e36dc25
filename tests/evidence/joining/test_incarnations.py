"""Which incarnation a line or a promise is about: a broker's own order, and clients' offsets."""

from replication.evidence.clients.client_logs import Acknowledgement
from replication.evidence.joining.incarnations import (
    incarnations_of_lines,
    incarnations_of_promises,
)
from tests.evidence.joining.lines import acknowledged, line


def by_clock(topic: str, at: int | None) -> str:
    return "old" if at is not None and at < 20 else "new"


def test_a_line_without_an_id_follows_the_id_printed_before_it_or_the_first_one() -> None:
    lines = [
        line("high_watermark_set", at=89),
        line("became_leader", at=90, topic_id="old"),
        line("high_watermark_set", at=91),
        line("log_created", at=92),
        line("became_leader", at=93, topic_id="new"),
    ]
    told = [topic_id for _, topic_id in incarnations_of_lines(lines, ["old", "new"], by_clock)]
    assert told == ["old", "old", "old", "new", "new"]


def test_only_where_no_id_is_printed_the_clock_counts() -> None:
    lines = [line("became_leader", at=1), line("became_leader", at=30)]
    told = [topic_id for _, topic_id in incarnations_of_lines(lines, ["old", "new"], by_clock)]
    assert told == ["old", "new"]


def test_lines_before_a_life_that_prints_its_id_are_of_one_before_it() -> None:
    """The older lines were rotated away, and with them what printed the older id."""
    lines = [
        line("became_follower", at=90, leader_epoch=3, log_end_offset=42),
        line("replica_created", at=92, topic_id="new"),
        line("became_follower", at=93, leader_epoch=0, log_end_offset=0),
    ]
    order = ["old", "new"]
    told = [topic_id for _, topic_id in incarnations_of_lines(lines, order, by_clock)]
    assert told == ["old", "new", "new"]
    # Which of two earlier ones only a clock tells.
    order = ["older", "old", "new"]
    told = [topic_id for _, topic_id in incarnations_of_lines(lines, order, lambda _, at: "older")]
    assert told == ["older", "new", "new"]
    # As many lives as ids: no clock is asked.
    both = [
        line("became_leader", at=90, leader_epoch=1),
        line("became_leader", at=91, leader_epoch=0),
    ]
    told = [topic_id for _, topic_id in incarnations_of_lines(both, ["old", "new"], by_clock)]
    assert told == ["old", "new"]


def test_what_came_before_a_log_created_where_one_was_deleted_is_not_of_the_id_printed_after() -> (
    None
):
    """The file of the lines that name leader epochs is not there, and no line printed the old id;
    the replica may have been moved away and back, so that a clock tells."""
    lines = [
        line("log_created", at=1),
        line("isr_updated", at=2, partition_epoch=2),
        line("log_marked_deleted", at=19),
        line("log_created", at=21),
        line("fetcher_added", at=30, topic_id="new"),
    ]
    found = [topic_id for _, topic_id in incarnations_of_lines(lines, ["old", "new"], by_clock)]
    assert found == ["old", "old", "old", "new", "new"]
    moved = incarnations_of_lines(lines, ["old", "new"], lambda _, at: "new")
    assert {topic_id for _, topic_id in moved} == {"new"}


def told(mine: list[Acknowledgement], standing: dict[str, set[str]]) -> list[str | None]:
    found = incarnations_of_promises(mine, ["old", "new"], standing, by_clock)
    return [topic_id for _, topic_id in found]


def test_between_two_of_one_incarnation_a_promise_is_of_it() -> None:
    mine = [acknowledged(name, ts=30, line=n) for n, name in enumerate(("x", "y", "z"))]
    assert told(mine, {"x": {"old"}, "z": {"old"}}) == ["old", "old", "old"]
    # Where its payload stands in both, nothing is told by it.
    assert told(mine[:1], {"x": {"old", "new"}}) == [None]


def test_offsets_that_begin_anew_must_agree_with_the_clock() -> None:
    mine = [acknowledged("x", ts=5, line=1, offset=7), acknowledged("y", ts=30, line=2, offset=0)]
    assert told(mine, {}) == ["old", "new"]
    late = [acknowledged("x", ts=25, line=1, offset=7), mine[1]]
    assert told(late, {}) == [None, "new"]


def test_a_client_that_wrote_in_one_incarnation_only_is_placed_by_the_others_of_its_log() -> None:
    both = [acknowledged("x", ts=5, line=1, offset=7), acknowledged("y", ts=30, line=3, offset=0)]
    once = acknowledged("z", ts=6, line=2, offset=8, client="q")
    assert told([*both, once], {}) == ["old", "new", "old"]
    # Alone nothing shows that its clock can be trusted; nor where the offsets contradict one.
    assert told([once], {}) == [None]
    late = acknowledged("x", ts=25, line=1, offset=7)
    assert told([late, both[1], once], {}) == [None, "new", None]
