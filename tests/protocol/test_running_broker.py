"""What was last seen of a broker that runs on proves nothing of where its log ends now."""

from replication.protocol.ground import events as ev
from replication.protocol.ground.model import Span
from tests.protocol.judgement.told import ACKNOWLEDGED, told, verdict


def acknowledged_by(ending: list[ev.Fact]) -> list[ev.Fact]:
    """Broker 2 leads epoch 1 and acknowledges a record; ending is what is seen of it."""
    return [
        ev.PartitionDescribed((1, 2), 1, False, "delete", "3.9.1"),
        ev.CoverageDeclared("acknowledgements", None, True),
        ev.CoverageDeclared("controller_history", None, True),
        ev.LeadershipRecorded(1, 0, (1, 2), 0, "initial", (1, 2)),
        *ending,
        ev.LeadershipRecorded(2, 1, (2,), 1, "clean", (1, 2)),
        ev.RecordsAcknowledged(0, 1, "1", 1),
    ]


def test_a_broker_that_was_seen_to_start_may_have_written_since() -> None:
    copy = ev.ReplicaLogObserved(2, 0, 0, (), 0, None, (), True)

    facts = acknowledged_by([copy, ev.ReplicaStarted(2, 0, 0, 0, True)])
    assert verdict(facts, ACKNOWLEDGED, strict=True) == "UNKNOWN"


def test_a_difference_is_not_settled_by_the_old_copy_of_a_leader_that_lived_on() -> None:
    """Whatever broker 3 holds by now: who follows it keeps nothing of another leader epoch."""
    traced = [ev.CoverageDeclared("replica_trace", r, True) for r in (1, 2)]
    found = verdict(
        [
            ev.PartitionDescribed((1, 2, 3), 1, True, "delete", "4.0.0"),
            ev.CoverageDeclared("controller_history", None, True),
            *traced,
            ev.LeadershipRecorded(1, 0, (1, 2, 3), 0, "initial", (1, 2, 3)),
            ev.ReplicaLogObserved(3, 0, 0, (), 0, None, (), True),
            ev.ReplicaStarted(3, 0, 0, 0, True),
            ev.BecameLeader(1, 0, 0, 0),
            ev.LeaderAppended(1, 0, 2, 0),
            ev.LeadershipRecorded(3, 1, (1, 2, 3), 1, "clean", (1, 2, 3)),
            ev.BecameLeader(3, 1, 0, 0),
            ev.LeadershipRecorded(2, 2, (1, 2, 3), 2, "clean", (1, 2, 3)),
            ev.BecameLeader(2, 2, 0, 0),
            ev.LeaderAppended(2, 0, 2, 2),
            ev.LeadershipRecorded(1, 3, (1, 2, 3), 3, "clean", (1, 2, 3)),
            ev.BecameLeader(1, 3, 2, 0),
            ev.LeadershipRecorded(3, 4, (1, 2, 3), 4, "clean", (1, 2, 3)),
        ],
        "log_matching",
        strict=True,
    )

    assert found == "HOLDS"


def test_a_copy_that_ends_below_its_checkpoint_is_no_loss_until_a_start_says_so() -> None:
    """It may be torn, or of a running broker: only the broker's own line tells what it held."""
    torn = ev.ReplicaLogObserved(1, 0, 5, (Span(0, 5, 0, 0),), 8, None, None, False)

    assert told([torn]).history.storage_losses == []
    (lost,) = told([torn, ev.ReplicaStarted(1, 0, 5, None, False)]).history.storage_losses
    assert (lost.had_end_offset, lost.left_end_offset) == (8, 5)
    assert told([torn, ev.ReplicaStarted(1, 0, 8, None, False)]).history.storage_losses == []
