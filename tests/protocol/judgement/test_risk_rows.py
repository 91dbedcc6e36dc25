"""A danger as a row: words that say what fails, what is left, and nothing that is not known."""

from replication.protocol.ground.risks import Risk
from replication.protocol.ground.topic_partition import State
from replication.protocol.judgement.at_risk import Danger
from replication.protocol.judgement.risk_rows import past_row, present_row
from tests.protocol.judgement.danger_stories import given, story


def row(**changes: object) -> dict[str, object]:
    values: dict[str, object] = {
        "first_offset": 4, "end_offset": 9, "tier": "committed", "failure": "leader_stops",
        "broker": 1, "next_leader": 2, "cause": "unclean_election", "holders": (3,),
        "ends_when": "broker 2 has fetched up to 9",
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
    assert row(holders=())["one_more_failure"] == "no copy is left after the first failure"
    assert "brokers 2, 3" in str(row(holders=(2, 3))["one_more_failure"])


def test_an_emptied_directory_is_said_with_who_still_follows() -> None:
    found = row(failure="leader_loses_its_log", next_leader=None, cause="storage_loss")
    assert found["failures"] == ["broker 1 comes back with an emptied directory"]
    assert found["one_more_failure"] == "broker 3 follows or loses its log: no copy is left"


def test_where_the_partition_has_no_leader_nothing_more_must_fail() -> None:
    assert row(failure="unclean_election", broker=2)["failures"] == []


def test_without_a_time_or_an_epoch_none_is_told() -> None:
    risk = Risk(-1, "leader_stops", 1, 2, True, None, over=True)
    found = past_row(State("", "t", "", 0), risk, (0, 2, "committed", "unclean_election", (), "x"))
    assert (found["since"], found["until"], found["leader_epoch"]) == (None, None, None)
    assert found["over"] is True
