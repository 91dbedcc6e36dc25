"""What a follower does before it fetches, and whose record a client was told of."""

from dataclasses import replace

import pytest

from replication.protocol.ground import events as ev
from replication.protocol.ground.model import Span
from tests.protocol.judgement.told import ACKNOWLEDGED, copy, elected, given, verdict


@pytest.mark.parametrize("named", [1, None])
def test_it_goes_on_fetching_from_its_leader_whether_its_line_names_the_leader(
    named: int | None,
) -> None:
    """Replica 2 never hears of leader epoch 1, which replica 1 leads too, and has its records."""
    facts = [
        *given(1, 2, 3, version="1.1.1"),
        elected(1, 0, "initial", (1, 2)),
        *(ev.ReplicaStarted(r, 0, 0) for r in (1, 2, 3)),
        ev.BecameLeader(1, 0, 0, 0),
        ev.BecameFollower(2, 0, named, 0, 0),
        elected(1, 1, "same_leader", (1, 2)),
        ev.BecameLeader(1, 1, 5, 5),
        ev.RecordsAcknowledged(5, 9, "all", 1, 0),
        *(copy(r, (0, 5, 0, 0), (5, 9, 1, 0), mark=9) for r in (1, 2)),
        copy(3, mark=0),
    ]
    assert verdict(facts) == "HOLDS"


@pytest.mark.parametrize("followed", [True, False])
def test_a_leader_alone_in_its_isr_waits_for_one_that_has_caught_up(followed: bool) -> None:
    """From KAFKA-4485 on: its high watermark may be below its log end as it is told to lead on."""
    facts = [
        *given(1, 2, 3, version="2.8.2"),
        elected(1, 0, "initial", (1,)),
        *(ev.ReplicaStarted(r, 0, 0) for r in (1, 2, 3)),
        ev.BecameLeader(1, 0, 0, 0),
        *([ev.BecameFollower(2, 0, None, 0, 0)] if followed else []),
        elected(1, 1, "same_leader", (1,)),
        ev.BecameLeader(1, 1, 9, 8),
        ev.BecameFollower(2, 1, None, 8 if followed else 0, 8 if followed else 0),
        ev.RecordsAcknowledged(0, 9, "all", 0, 0),
        *(copy(r, (0, 9, 0, 0), mark=9) for r in (1, 2)),
        copy(3, mark=0),
    ]
    assert verdict(facts, strict=not followed) == ("HOLDS" if followed else "UNKNOWN")


def test_before_leader_epochs_a_broker_cuts_before_it_fetches() -> None:
    """Its high watermark is at 27 as it comes to follow: what it led with from 27 on had not been
    committed, and its new leader's lower high watermark cannot have reached it yet."""
    whole = Span(0, 41, None, 0)
    facts = [
        ev.PartitionDescribed((3, 2, 1), 3, False, "delete", "0.10.2.2", None, "zookeeper"),
        *(ev.CoverageDeclared("broker_log", r, True) for r in (2, 3)),
        ev.BecameLeader(3, 1),
        elected(2, 2, "clean", (2,)),
        ev.BecameLeader(2, 2),
        ev.BecameFollower(3, 2, 2),
        ev.Truncated(3, 27, None, "high_watermark"),
        ev.BecameLeader(3, 3),
        ev.RecordsAcknowledged(30, 31, "1", None, 0, 3),
        *(ev.ReplicaLogObserved(r, 0, 41, (whole,), 41, 41, None, True) for r in (2, 3)),
    ]
    assert verdict(facts) == "HOLDS"


@pytest.mark.parametrize(("answered_by", "found"), [(1, "VIOLATED"), (2, "HOLDS")])
def test_a_record_that_nobody_sees_any_more_was_written_by_who_answered_for_it_at_acks_one(
    answered_by: int, found: str
) -> None:
    """Compaction left a hole at offset 5, from where on broker 2 led; broker 1 had led before."""
    described, *rest = given(1, 2, 3)
    assert isinstance(described, ev.PartitionDescribed)
    facts = [
        replace(described, cleanup_policy="compact"),
        *rest,
        elected(1, 0, "initial", (1, 2)),
        *(ev.ReplicaStarted(r, 0, 0) for r in (1, 2, 3)),
        ev.BecameLeader(1, 0, 0, 0),
        ev.BecameFollower(2, 0, 1, 0, 0),
        ev.ReplicaStopped(1, "process_crash"),
        elected(2, 1, "clean", (2,)),
        ev.BecameLeader(2, 1, 5, 5),
        ev.RecordsAcknowledged(5, 6, "1", None, None, answered_by),
        ev.ReplicaStarted(1, 0, 5),
        ev.BecameFollower(1, 1, 2, 5, 5),
        *(copy(r, (0, 5, 0, 0), (6, 9, 1, 0), mark=9) for r in (1, 2)),
        copy(3, mark=0),
    ]
    assert verdict(facts, ACKNOWLEDGED) == found


def test_offsets_that_different_brokers_answered_for_do_not_share_what_is_forgotten() -> None:
    """Both led; offsets 3 and 4 are holes that compaction left, and only broker 1 can have written
    what it answered for at 4."""
    described, *rest = given(1, 2, version="2.8.1")
    assert isinstance(described, ev.PartitionDescribed)
    log = ((0, 3, 0, 0), (5, 8, 0, 0), (8, 12, 1, 0))
    facts = [
        replace(described, assigned_replicas=(1, 2), cleanup_policy="compact"),
        *rest,
        *(ev.ReplicaStarted(r, 0, 0) for r in (1, 2)),
        elected(1, 0, "initial", (1, 2)),
        ev.BecameLeader(1, 0, 0, 0),
        ev.BecameFollower(2, 0, 1, 0, 0),
        ev.ReplicaStopped(1, "process_crash"),
        ev.ReplicaStarted(1, 0, 0),
        ev.BecameLeader(1, 0, 0, 0),
        elected(2, 1, "clean", (1, 2)),
        ev.BecameLeader(2, 1, 8, 8),
        ev.BecameFollower(1, 1, 2, 3, 7),
        ev.RecordsAcknowledged(3, 4, "1", None, None, 2),
        ev.RecordsAcknowledged(4, 5, "1", None, None, 1),
        *(copy(r, *log, mark=12) for r in (1, 2)),
    ]
    assert verdict(facts, ACKNOWLEDGED) == "VIOLATED"
