"""Which records only an older copy, or a directory set aside, still holds."""

from replication.protocol.ground import events as ev
from replication.protocol.ground.model import Span
from replication.protocol.judgement.older_copies import older_copies
from tests.protocol.judgement.told import copy, given, told


def alone(*facts: ev.Fact) -> list[tuple[int, str, tuple[tuple[int, int], ...]]]:
    found = older_copies(told([*given(), *facts]))
    return [(c.replica, c.kind, c.alone) for c in found]


def stray(replica: int, *spans: tuple[int, int, int, int]) -> ev.Fact:
    return ev.ReplicaLogObserved(
        replica, 0, spans[-1][1], tuple(Span(*s) for s in spans), stopped=True, copy="stray"
    )


def test_what_a_later_copy_lacks_is_alone_in_the_older_one() -> None:
    older, later = copy(1, (0, 10, 0, 0)), copy(1, (0, 6, 0, 0), (6, 8, 1, 1))
    assert alone(older, later, copy(2, (0, 6, 0, 0))) == [(1, "older", ((6, 10),))]
    assert alone(older, later, copy(2, (0, 8, 0, 0))) == [(1, "older", ((8, 10),))]
    assert alone(older, later, copy(2, (0, 10, 0, 0))) == []


def test_directories_set_aside_count() -> None:
    assert alone(stray(3, (0, 9, 0, 0)), copy(1, (0, 5, 0, 0))) == [(3, "stray", ((5, 9),))]


def test_what_retention_took_is_not_missing() -> None:
    begun = ev.ReplicaLogObserved(1, 4, 9, (Span(4, 9, 0, 0),), 9, None, None, True)
    assert alone(stray(3, (0, 9, 0, 0)), begun) == []


def test_what_compaction_took_is_not_missing_but_what_another_leader_epoch_replaced_is() -> None:
    described = ev.PartitionDescribed(cleanup_policy="compact")
    spans = (Span(0, 1, 0, 0), Span(5, 6, 0, 0), Span(7, 9, 2, 1))
    epochs = (ev.EpochEntry(0, 0), ev.EpochEntry(2, 6))
    now = ev.ReplicaLogObserved(1, 0, 9, spans, 9, None, epochs, True)
    older = stray(3, (0, 6, 0, 0), (6, 8, 1, 0))
    assert alone(described, older, now) == [(3, "stray", ((6, 8),))]
    assert alone(older, now) == [(3, "stray", ((1, 5), (6, 8)))]
