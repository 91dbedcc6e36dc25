"""What Kafka's own unit tests expect of leader epochs, fetches and reassignments, row by row.

Each row is an expectation in our own words, with the class and the test of Kafka's that has it.
What else those tests expect, of elections, the ISR and truncation, scenarios and random schedules
notice as well: tests.protocol.mutants changes each condition of the rules, and they tell.
"""

from replication.protocol.ground.leader_epoch_cache import (
    EpochCache,
    assign,
    end_offset_for_epoch,
    truncate_from_end,
    truncate_from_start,
)
from replication.protocol.ground.model import EpochEndOffset, EpochEntry
from replication.protocol.ground.versions import Behaviour, behaviour
from replication.protocol.rules.fetch_admission import FetchTarget, FollowerFetch, fetch_admission
from replication.protocol.rules.reassignment import Assignment, reassignment

ZOOKEEPER = behaviour("3.8.0")
KRAFT = behaviour("3.8.0", controller="kraft")
Pairs = tuple[tuple[int, int], ...]


def cache_of(assigned: Pairs, of: Behaviour = ZOOKEEPER) -> EpochCache:
    """The cache after these assignments of (leader epoch, offset), in order."""
    entries: EpochCache = ()
    for leader_epoch, offset in assigned:
        entries = assign(entries, leader_epoch, offset, of)
    return entries


def entries_of(pairs: Pairs) -> EpochCache:
    return tuple(EpochEntry(*pair) for pair in pairs)


MANY_LEADERS = ((0, 0), (1, 0), (2, 5))
MANY_MESSAGES = ((0, 0), (0, 1), (0, 2), (1, 3), (1, 4), (1, 5), (2, 6), (2, 7), (2, 8))

# LeaderEpochFileCacheTest: test, assignments, log end, requested epoch, answer
END_OFFSETS: list[tuple[str, Pairs, int, int | None, tuple[int | None, int | None]]] = [
    ("shouldAddEpochAndMessageOffsetToCache", ((2, 10),), 11, 2, (2, 11)),
    ("shouldReturnLogEndOffsetIfLatestEpochRequested", ((2, 11), (2, 12)), 14, 2, (2, 14)),
    ("shouldReturnUndefinedOffsetIfUndefinedEpochRequested", ((2, 11), (3, 12)), 0, None,
     (None, None)),
    ("shouldReturnUnsupportedIfNoEpochRecorded", (), 0, 0, (None, None)),
    ("shouldReturnUnsupportedIfNoEpochRecordedAndUndefinedEpochRequested", (), 73, None,
     (None, None)),
    ("shouldReturnFirstEpochIfRequestedEpochLessThanFirstEpoch", ((5, 11), (6, 12), (7, 13)), 0,
     4, (4, 11)),
    ("shouldTruncateIfMatchingEpochButEarlierStartingOffset",
     ((5, 11), (6, 12), (7, 13), (7, 12)), 0, 5, (5, 12)),
    ("shouldTruncateIfMatchingEpochButEarlierStartingOffset, gone",
     ((5, 11), (6, 12), (7, 13), (7, 12)), 0, 6, (5, 12)),
    ("shouldGetFirstOffsetOfSubsequentEpochWhenOffsetRequestedForPreviousEpoch",
     ((1, 11), (1, 12), (2, 13), (2, 14), (3, 15), (3, 16)), 17, 2, (2, 15)),
    ("shouldReturnNextAvailableEpochIfThereIsNoExactEpochForTheOneRequested, 1",
     ((0, 10), (2, 13), (4, 17)), 0, 1, (0, 13)),
    ("shouldReturnNextAvailableEpochIfThereIsNoExactEpochForTheOneRequested, 2",
     ((0, 10), (2, 13), (4, 17)), 0, 2, (2, 17)),
    ("shouldReturnNextAvailableEpochIfThereIsNoExactEpochForTheOneRequested, 3",
     ((0, 10), (2, 13), (4, 17)), 0, 3, (2, 17)),
    ("shouldReturnInvalidOffsetIfEpochIsRequestedWhichIsNotCurrentlyTracked", ((2, 100),), 100,
     3, (None, None)),
    ("shouldSupportEpochsThatDoNotStartFromZero", ((2, 6),), 7, 2, (2, 7)),
    ("shouldEnforceMonotonicallyIncreasingEpochs", ((1, 5), (2, 6), (1, 7)), 8, 1, (1, 8)),
    ("shouldEnforceMonotonicallyIncreasingEpochs, gone", ((1, 5), (2, 6), (1, 7)), 8, 2,
     (None, None)),
    ("shouldIncreaseAndTrackEpochsAsLeadersChangeManyTimes, 2", MANY_LEADERS, 10, 2, (2, 10)),
    ("shouldIncreaseAndTrackEpochsAsLeadersChangeManyTimes, 1", MANY_LEADERS, 10, 1, (1, 5)),
    ("shouldIncreaseAndTrackEpochsAsLeadersChangeManyTimes, 0", MANY_LEADERS, 10, 0, (0, 0)),
    ("shouldIncreaseAndTrackEpochsAsFollowerReceivesManyMessages, 2", MANY_MESSAGES, 9, 2, (2, 9)),
    ("shouldIncreaseAndTrackEpochsAsFollowerReceivesManyMessages, 1", MANY_MESSAGES, 9, 1, (1, 6)),
    ("shouldIncreaseAndTrackEpochsAsFollowerReceivesManyMessages, 0", MANY_MESSAGES, 9, 0, (0, 3)),
    ("shouldFetchEndOffsetOfEmptyCache", (), 7, 7, (None, None)),
]  # fmt: skip


def test_end_offset_of_an_epoch() -> None:
    for test, assigned, log_end, requested, answer in END_OFFSETS:
        found = end_offset_for_epoch(cache_of(assigned), requested, log_end, ZOOKEEPER)
        assert found == EpochEndOffset(*answer), test


# LeaderEpochFileCacheTest of 0.11.0.2 to 2.0.0: test, assignments, log end, requested epoch,
# answer, entries
OLD_CACHES: list[tuple[str, Pairs, int, int, tuple[int | None, int | None], Pairs]] = [
    ("shouldAllowLeaderEpochToChangeEvenIfOffsetDoesNot", ((2, 9), (3, 9)), 9, 2, (2, 9),
     ((2, 9), (3, 9))),
    ("shouldReturnUnsupportedIfRequestedEpochLessThanFirstEpoch", ((5, 11), (6, 12), (7, 13)), 14,
     4, (None, None), ((5, 11), (6, 12), (7, 13))),
    ("shouldNotLetEpochGoBackwardsEvenIfMessageEpochsDo, 1", ((1, 5), (2, 6), (1, 7)), 8, 1,
     (1, 6), ((1, 5), (2, 6))),
    ("shouldNotLetEpochGoBackwardsEvenIfMessageEpochsDo, 2", ((1, 5), (2, 6), (1, 7)), 8, 2,
     (2, 8), ((1, 5), (2, 6))),
    ("shouldNotLetOffsetsGoBackwardsEvenIfEpochsProgress", ((2, 6), (3, 5)), 7, 3, (None, None),
     ((2, 6),)),
    ("shouldReturnNextAvailableEpochIfThereIsNoExactEpochForTheOneRequested",
     ((0, 10), (2, 13), (4, 17)), 18, 3, (2, 17), ((0, 10), (2, 13), (4, 17))),
]  # fmt: skip


def test_the_cache_up_to_2_0_0() -> None:
    for test, assigned, log_end, requested, answer, entries in OLD_CACHES:
        cache = cache_of(assigned, behaviour("2.0.0"))
        found = end_offset_for_epoch(cache, requested, log_end, behaviour("2.0.0"))
        assert (cache, found) == (entries_of(entries), EpochEndOffset(*answer)), test


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
        assert cache_of(assigned) == entries_of(entries), test


THREE = ((2, 6), (3, 8), (4, 11))

# LeaderEpochFileCacheTest: test, from the start or the end, offset, entries
CUTS: list[tuple[str, str, int, Pairs]] = [
    ("shouldDropEntriesOnEpochBoundaryWhenRemovingLatestEntries", "end", 8, ((2, 6),)),
    ("shouldDropEntriesBetweenEpochBoundaryWhenRemovingNewest", "end", 9, ((2, 6), (3, 8))),
    ("shouldPreserveResetOffsetOnClearEarliestIfOneExists", "start", 8, ((3, 8), (4, 11))),
    ("shouldUpdateSavedOffsetWhenOffsetToClearToIsBetweenEpochs", "start", 9, ((3, 9), (4, 11))),
    ("shouldNotClearAnythingIfOffsetToEarly", "start", 1, THREE),
    ("shouldNotClearAnythingIfOffsetToFirstOffset", "start", 6, THREE),
    ("shouldRetainLatestEpochOnClearAllEarliest", "start", 11, ((4, 11),)),
    ("shouldRetainLatestEpochOnClearAllEarliestAndUpdateItsOffset", "start", 15, ((4, 15),)),
]


def test_cutting_the_cache() -> None:
    for test, where, offset, entries in CUTS:
        cut = truncate_from_end if where == "end" else truncate_from_start
        assert cut(cache_of(THREE), offset) == entries_of(entries), test


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
