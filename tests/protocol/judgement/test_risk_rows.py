"""A danger as a row: words that say what fails, what is left, and nothing that is not known."""

import pytest

from replication.protocol.ground.risks import Risk
from replication.protocol.judgement.at_risk import Danger
from replication.protocol.judgement.risk_rows import past_row, present_row
from tests.protocol.judgement.danger_stories import given, story


def row(**changes: object) -> dict[str, object]:
    values: dict[str, object] = {
        "first_offset": 4, "end_offset": 9, "tier": "committed", "failure": "leader_stops",
        "broker": 1, "next_leader": 2, "cause": "unclean_election", "holders": (3,),
    } | changes  # fmt: skip
    return present_row(story(given(isr="A", unclean="yes")), Danger(**values))  # type: ignore[arg-type]


def test_a_danger_says_what_must_fail_and_what_one_more_failure_costs() -> None:
    found = row()
    assert found["failures"] == ["broker 1 stops"]
    assert found["records"] == 5
    assert found["one_more_failure"] == "broker 3 follows or loses its log: no copy is left"
    assert found["causes"] == [
        "unclean_election", "ISR 1", "min.insync.replicas=2",
        "unclean.leader.election.enable=true", "broker 2 is behind, outside the ISR",
    ]  # fmt: skip
    assert row(holders=())["one_more_failure"] == (
        "no copy is left once broker 1 follows, or has lost its disk"
    )
    assert "brokers 2 and 3" in str(row(holders=(2, 3))["one_more_failure"])


@pytest.mark.parametrize(
    ("failure", "next_leader", "holders", "sentence"),
    [
        ("leader_stops", 2, (), "Safe again once broker 2 has fetched offset 8. "
         "Until then do not stop or restart broker 1. "
         "Should it happen, decide has broker 1 lead, as long as it still has them."),
        ("leader_loses_its_tail", None, (), "Safe again once another replica has fetched offset 8. "
         "Until then do not kill or restart broker 1, and do not elect another replica. "
         "Should it happen, decide has no replica to name that has them."),
        ("leader_loses_its_log", None, (2,), "Safe again once another replica is in the ISR. "
         "Until then do not empty or replace the log directory of broker 1. "
         "Should it happen, decide has broker 2 lead, as long as it still has them."),
        ("unclean_election", 1, (2, 3), "Safe again once broker 2 or 3 leads. "
         "Until then do not elect broker 1, and do not start it first. "
         "Decide has broker 2 or 3 lead, as long as it still has them."),
    ],
)  # fmt: skip
def test_it_says_what_makes_the_records_safe_again_and_what_not_to_do_until_then(
    failure: str, next_leader: int | None, holders: tuple[int, ...], sentence: str
) -> None:
    found = row(failure=failure, next_leader=next_leader, holders=holders)
    assert found["ends_when"] == sentence
    run = (4, 9, "committed", "storage_loss", holders)
    past = past_row(Risk(0, failure, 1, next_leader, False, 0, until=1), run)
    assert past["ends_when"] == sentence.split(" Until")[0]


def test_an_emptied_directory_is_said_with_who_still_follows() -> None:
    found = row(failure="leader_loses_its_log", next_leader=None, cause="storage_loss")
    assert found["failures"] == ["broker 1 comes back with an emptied directory"]
    assert found["one_more_failure"] == "broker 3 follows or loses its log: no copy is left"


def test_where_the_partition_has_no_leader_nothing_more_must_fail() -> None:
    assert row(failure="unclean_election", broker=2)["failures"] == []


def test_without_a_time_or_an_epoch_none_is_told() -> None:
    risk = Risk(-1, "leader_stops", 1, 2, True, None)
    found = past_row(risk, (0, 2, "committed", "unclean_election", ()))
    assert (found["since"], found["until"], found["leader_epoch"]) == (None, None, None)
    assert found["over"] is True


def test_a_loss_of_power_takes_nothing_of_a_broker_that_stopped_cleanly() -> None:
    tail = Danger(4, 9, "committed", "leader_loses_its_tail", 1, None, "storage_loss", ())
    for clean, what in ((False, "loses power"), (True, "its log directory")):
        state = story(given(isr="A", unclean="yes"))
        state.replicas[1].stopped = clean
        found = present_row(state, tail)
        assert what in found["failures"][0]
        assert ("kill or restart" in found["ends_when"]) != clean
