"""What a leader that was elected alone answered for at acks=1 was committed by then."""

from dataclasses import replace

import pytest

from replication.protocol.ground import events as ev
from replication.protocol.judgement.committed_at_once import commits_at_once
from replication.protocol.judgement.judge import answer
from tests.protocol.judgement.told import ACKNOWLEDGED, copy, elected, given, told, verdict

ALONE = elected(1, 1, "clean", (1,))
FIRST = ev.BecameLeader(1, 1, 0, 0)
CRASHED = ev.ReplicaStopped(1, "process_crash")
AGAIN = ev.BecameLeader(1, 1, 0, 0)
ANSWERED = ev.RecordsAcknowledged(0, 1, "1", None, 7, 1)
Facts = list[ev.Fact]


def story(*between: ev.Fact, version: str = "1.1.1") -> Facts:
    """1 is elected alone, answers for a record at offset 0, loses it in a crash, leads on in the
    same epoch (ZooKeeper), and writes another in its place."""
    return [
        *given(1, 2, 3, version=version),
        ev.PartitionDescribed(min_insync_replicas=2),
        elected(2, 0, "initial"),
        ev.BecameLeader(2, 0, 0, 0),
        ALONE,
        FIRST,
        *between,
        ANSWERED,
        CRASHED,
        ev.ReplicaStarted(1, 0, 0, None, False),
        AGAIN,
        ev.BecameFollower(2, 2, 1, 0, 0),
        elected(1, 2, "same_leader", (1,)),
        ev.BecameLeader(1, 2, 3, 3),
        *(copy(r, (0, 3, 1, 0), (3, 5, 2, 0), mark=5) for r in (1, 2, 3)),
    ]


def test_what_a_leader_that_was_elected_alone_answered_for_and_lost_had_been_committed() -> None:
    assert verdict(story()) == "VIOLATED"
    state = told(story())
    assert [commits_at_once(state, t) for t in state.history.terms] == [False, True, False, False]
    (loss,) = answer(told(story())).losses
    assert (loss["tier"], loss["first_offset"], loss["end_offset"]) == ("committed", 0, 1)
    found = answer(told(story())).findings
    assert any("nobody followed it" in s["because"] for f in found for s in f["witness"])


@pytest.mark.parametrize(
    "facts",
    [
        # A follower that was caught up may have held the high watermark back (KAFKA-4485).
        story(ev.BecameFollower(3, 1, 1, 0, 0)),
        story(version="3.9.1"),
        [f for f in story() if f != ev.CoverageDeclared("broker_log", 3, True)],
        [f for f in story() if f != ev.CoverageDeclared("broker_log", 1, True)],
        [replace(f, isr=(1, 2)) if f == ALONE else f for f in story()],
        [f for f in story() if f != ALONE],
        [replace(f, leader=None) if f == ANSWERED else f for f in story()],
        [replace(f, leader=2) if f == ANSWERED else f for f in story()],
        # Who followed it before may fetch on, not having heard of any epoch since.
        [replace(f, leader=1) if f == elected(2, 0, "initial") else f for f in story()
         if f != ev.BecameLeader(2, 0, 0, 0)],
        # The controller may have named another, or none, before it stopped.
        [replace(f, leader_epoch=2) if f is AGAIN else f for f in story()],
    ],
)  # fmt: skip
def test_where_it_may_have_waited_or_been_deposed_nothing_tells_whether_it_had(
    facts: Facts,
) -> None:
    assert verdict(facts) != "VIOLATED"
    assert "committed" not in {x["tier"] for x in answer(told(facts)).losses}


def test_where_its_own_minimum_is_one_it_does_not_wait_in_later_releases_either() -> None:
    facts = [f for f in story(version="3.9.1") if f != ev.PartitionDescribed(min_insync_replicas=2)]
    assert verdict(facts) == "VIOLATED"


@pytest.mark.parametrize("who", [1, 2])
def test_of_two_at_one_compacted_offset_the_first_had_been(who: int) -> None:
    facts: Facts = [
        *story(ev.CoverageDeclared("acknowledged_offsets", None, True))[:-3],
        ev.PartitionDescribed(cleanup_policy="compact"),
        ev.RecordsAcknowledged(0, 1, "1", None, 8, who),
        *(copy(r, (2, 3, 1, 0), (3, 5, 2, 0), mark=5) for r in (1, 2, 3)),
    ]
    assert verdict(facts, ACKNOWLEDGED) == "VIOLATED"
    assert (verdict(facts) == "VIOLATED") == (who == 1)
