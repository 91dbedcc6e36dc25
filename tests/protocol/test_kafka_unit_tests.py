"""What Kafka's own unit tests expect of assignments, fetches and reassignments, row by row.

Each row is an expectation in our own words, with the class and the test of Kafka's that has it.
What else those tests expect (where epochs end, elections, the ISR, cuts), scenarios and random
schedules notice as well: tests.protocol.mutants changes each condition of the rules, and they tell.
"""

from replication.protocol.ground.leader_epoch_cache import (
    EpochCache,
    assign,
    truncate_from_start,
)
from replication.protocol.ground.model import EpochEndOffset, EpochEntry
from replication.protocol.ground.versions import behaviour
from replication.protocol.rules.fetch_admission import FetchTarget, FollowerFetch, fetch_admission
from replication.protocol.rules.reassignment import Assignment, reassignment

ZOOKEEPER = behaviour("3.8.0")
KRAFT = behaviour("3.8.0", controller="kraft")
Pairs = tuple[tuple[int, int], ...]


def cache_of(assigned: Pairs) -> EpochCache:
    """The cache after these assignments of (leader epoch, offset), in order."""
    entries: EpochCache = ()
    for leader_epoch, offset in assigned:
        entries = assign(entries, leader_epoch, offset, ZOOKEEPER)
    return entries


# LeaderEpochFileCacheTest: test, assignments, entries
ASSIGNMENTS: list[tuple[str, Pairs, Pairs]] = [
    ("shouldNotOverwriteLogEndOffsetForALeaderEpochOnceItHasBeenAssigned", ((2, 9), (2, 10)),
     ((2, 9),)),
    ("shouldEnforceMonotonicallyIncreasingStartOffsets", ((2, 9), (3, 9)), ((3, 9),)),
    ("shouldNotOverwriteOffsetForALeaderEpochOnceItHasBeenAssigned", ((2, 6), (2, 10)), ((2, 6),)),
    ("shouldEnforceOffsetsIncreaseMonotonically", ((2, 6), (3, 5)), ((3, 5),)),
    ("shouldEnforceMonotonicallyIncreasingEpochs", ((1, 5), (2, 6), (1, 7)), ((1, 7),)),
]  # fmt: skip


def test_assigning_epochs() -> None:
    for test, assigned, entries in ASSIGNMENTS:
        assert cache_of(assigned) == tuple(EpochEntry(*pair) for pair in entries), test


FETCHED = ((0, 0), (3, 2), (4, 8), (7, 13), (9, 14), (10, 17))

# PartitionTest.testLastFetchedOffsetValidation: log start, last fetched epoch, fetch offset, answer
LAST_FETCHED: list[tuple[int, int, int, tuple[int, int] | str | None]] = [
    (0, 2, 5, (0, 2)), (0, 0, 4, (0, 2)), (0, 6, 6, (4, 13)), (0, 5, 9, (4, 13)),
    (0, 10, 18, (10, 17)), (0, 0, 2, None), (0, 7, 14, None), (0, 9, 17, None), (0, 10, 17, None),
    (0, 11, 5, "OFFSET_OUT_OF_RANGE"), (5, 2, 8, (2, 5)), (5, 0, 5, None), (5, 3, 5, None),
    (5, 0, 0, "OFFSET_OUT_OF_RANGE"), (10, 5, 6, "OFFSET_OUT_OF_RANGE"),
    (10, 3, 6, "OFFSET_OUT_OF_RANGE"),
]  # fmt: skip


def test_a_fetch_is_held_against_the_leaders_epochs() -> None:
    for start, last_epoch, offset, answer in LAST_FETCHED:
        entries = truncate_from_start(cache_of(FETCHED), start)
        target = FetchTarget(True, 10, start, 17, entries)
        found = fetch_admission(FollowerFetch(offset, 10, last_epoch), target, ZOOKEEPER)
        diverges = isinstance(answer, tuple)
        told = found.diverging if diverges else (found.diverging, found.error)
        assert told == (EpochEndOffset(*answer) if diverges else (None, answer)), (start, offset)
        assert not (diverges and found.updates_follower)


# PartitionChangeBuilderTest, ReplicationControlManagerTest.testReassignPartitions, ..Cancel..:
# test, replicas, target, isr, answer
MOVES: list[tuple[str, tuple[int, ...], tuple[int, ...], set[int], Assignment]] = [
    ("testReassignmentRearrangesReplicas", (2, 1, 3), (3, 2, 1), {1, 2, 3},
     Assignment((3, 2, 1), True, False)),
    ("testIsrEnlargementCompletesReassignment", (1, 2, 3, 4), (2, 3, 4), {1, 2, 3, 4},
     Assignment((2, 3, 4), True, True)),
    ("testNoChange, bar", (1, 2, 3, 4), (2, 3, 4), {1, 2, 3},
     Assignment((2, 3, 4, 1), False, False)),
    ("testRemovingReplicaReassignment", (2, 1, 3), (1, 2), {1, 2, 3},
     Assignment((1, 2), True, False)),
    ("testAddingReplicaReassignment", (2, 1, 3), (1, 2, 3, 4), {1, 2, 3},
     Assignment((1, 2, 3, 4), False, False)),
    ("testReassignPartitions, foo-1", (3, 2, 1), (0, 2, 1), {1, 2, 3},
     Assignment((0, 2, 1, 3), False, False)),
    ("testCancelReassignPartitions, foo-1", (0, 1, 2, 3), (1, 2, 3, 0), {0, 1, 2},
     Assignment((1, 2, 3, 0), True, False)),
    ("testCancelReassignPartitions, bar-0", (4, 3, 2), (1, 2, 3, 4, 0), {2, 4},
     Assignment((1, 2, 3, 4, 0), False, False)),
    ("testStoppedLeaderIsDemoted..", (2, 3, 0, 1), (2, 3), {0, 1, 2, 3},
     Assignment((2, 3), True, True)),
]  # fmt: skip


def test_a_reassignment() -> None:
    for test, replicas, target, isr, answer in MOVES:
        leader = 0 if 0 in isr else 1 if 1 in isr else 4
        assert reassignment(replicas, target, frozenset(isr), leader, KRAFT) == answer, test
