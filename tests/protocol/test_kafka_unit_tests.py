"""What Kafka's own unit tests expect, row by row, held against our rules.

Each row is an expectation in our own words, with the class and the test of Kafka's that has it.
Releases: what the row's test holds for, mostly 3.8 (ZooKeeper's last) and the 4.0 development line.
"""

from collections.abc import Iterable

import pytest

from replication.machine.scenario import run_scenario
from replication.protocol.ground.leader_epoch_cache import (
    EpochCache,
    assign,
    end_offset_for_epoch,
    truncate_from_end,
    truncate_from_start,
)
from replication.protocol.ground.model import EpochEndOffset, EpochEntry
from replication.protocol.ground.versions import behaviour
from replication.protocol.rules.become_leader import become_leader
from replication.protocol.rules.consumer_visibility import latest_offset_available
from replication.protocol.rules.controller_fencing import controller_fencing
from replication.protocol.rules.election_kraft import election_kraft, raises_leader_epoch
from replication.protocol.rules.election_zookeeper import Election, election_zookeeper
from replication.protocol.rules.eligible_leader_replicas import Eligible, eligible_leader_replicas
from replication.protocol.rules.fetch_admission import (
    FetchTarget,
    FollowerFetch,
    fetch_admission,
    leader_epoch_error,
)
from replication.protocol.rules.isr_commit import IsrProposal, Registered, isr_commit
from replication.protocol.rules.isr_shrink import Progress, isr_shrink
from replication.protocol.rules.last_caught_up import FetchMemory, last_caught_up
from replication.protocol.rules.log_start import log_start
from replication.protocol.rules.out_of_range_reset import Reset, out_of_range_reset
from replication.protocol.rules.produce_admission import effective_min_insync_replicas
from replication.protocol.rules.reassignment import Assignment, reassignment
from replication.protocol.rules.start_up_recovery import OnDisk, start_up_recovery
from replication.protocol.rules.truncate_by_common_epoch import truncate_by_common_epoch
from replication.protocol.rules.truncation_effect import truncation_effect

ZOOKEEPER = behaviour("3.8.0")
KRAFT = behaviour("3.8.0", controller="kraft")
ELR = behaviour("4.0.0", eligible_leader_replicas=True)
Pairs = tuple[tuple[int, int], ...]


def cache_of(assigned: Pairs) -> EpochCache:
    """The cache after these assignments of (leader epoch, offset), in order."""
    entries: EpochCache = ()
    for leader_epoch, offset in assigned:
        entries = assign(entries, leader_epoch, offset, ZOOKEEPER)
    return entries


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


@pytest.mark.parametrize(("test", "assigned", "log_end", "requested", "answer"), END_OFFSETS)
def test_end_offset_of_an_epoch(
    test: str,
    assigned: Pairs,
    log_end: int,
    requested: int | None,
    answer: tuple[int | None, int | None],
) -> None:
    found = end_offset_for_epoch(cache_of(assigned), requested, log_end, ZOOKEEPER)

    assert found == EpochEndOffset(*answer)


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


@pytest.mark.parametrize(
    ("test", "assigned", "log_end", "requested", "answer", "entries"), OLD_CACHES
)
def test_the_cache_up_to_2_0_0(
    test: str,
    assigned: Pairs,
    log_end: int,
    requested: int,
    answer: tuple[int | None, int | None],
    entries: Pairs,
) -> None:
    b = behaviour("2.0.0")
    cache: EpochCache = ()
    for leader_epoch, offset in assigned:
        cache = assign(cache, leader_epoch, offset, b)

    assert cache == tuple(EpochEntry(*e) for e in entries)
    assert end_offset_for_epoch(cache, requested, log_end, b) == EpochEndOffset(*answer)


# LeaderEpochFileCacheTest: test, assignments, entries
ASSIGNMENTS: list[tuple[str, Pairs, Pairs]] = [
    ("shouldNotOverwriteLogEndOffsetForALeaderEpochOnceItHasBeenAssigned", ((2, 9), (2, 10)),
     ((2, 9),)),
    ("shouldEnforceMonotonicallyIncreasingStartOffsets", ((2, 9), (3, 9)), ((3, 9),)),
    ("shouldNotOverwriteOffsetForALeaderEpochOnceItHasBeenAssigned", ((2, 6), (2, 10)), ((2, 6),)),
    ("shouldEnforceOffsetsIncreaseMonotonically", ((2, 6), (3, 5)), ((3, 5),)),
    ("shouldEnforceMonotonicallyIncreasingEpochs", ((1, 5), (2, 6), (1, 7)), ((1, 7),)),
]  # fmt: skip


@pytest.mark.parametrize(("test", "assigned", "entries"), ASSIGNMENTS)
def test_assigning_epochs(test: str, assigned: Pairs, entries: Pairs) -> None:
    assert cache_of(assigned) == tuple(EpochEntry(*e) for e in entries)


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


@pytest.mark.parametrize(("test", "where", "offset", "entries"), CUTS)
def test_cutting_the_cache(test: str, where: str, offset: int, entries: Pairs) -> None:
    cut = truncate_from_end if where == "end" else truncate_from_start

    assert cut(cache_of(THREE), offset) == tuple(EpochEntry(*e) for e in entries)


FETCHED = ((0, 0), (3, 2), (4, 8), (7, 13), (9, 14), (10, 17))

# PartitionTest.testLastFetchedOffsetValidation: log start, last fetched epoch, fetch offset, answer
LAST_FETCHED: list[tuple[int, int, int, tuple[int, int] | str | None]] = [
    (0, 2, 5, (0, 2)), (0, 0, 4, (0, 2)), (0, 6, 6, (4, 13)), (0, 5, 9, (4, 13)),
    (0, 10, 18, (10, 17)), (0, 0, 2, None), (0, 7, 14, None), (0, 9, 17, None), (0, 10, 17, None),
    (0, 11, 5, "OFFSET_OUT_OF_RANGE"), (5, 2, 8, (2, 5)), (5, 0, 5, None), (5, 3, 5, None),
    (5, 0, 0, "OFFSET_OUT_OF_RANGE"), (10, 5, 6, "OFFSET_OUT_OF_RANGE"),
    (10, 3, 6, "OFFSET_OUT_OF_RANGE"),
]  # fmt: skip


@pytest.mark.parametrize(("start", "last_epoch", "offset", "answer"), LAST_FETCHED)
def test_a_fetch_is_held_against_the_leaders_epochs(
    start: int, last_epoch: int, offset: int, answer: tuple[int, int] | str | None
) -> None:
    entries = truncate_from_start(cache_of(FETCHED), start)
    target = FetchTarget(True, 10, start, 17, entries)

    found = fetch_admission(FollowerFetch(offset, 10, last_epoch), target, ZOOKEEPER)

    if isinstance(answer, tuple):
        assert found.diverging == EpochEndOffset(*answer)
        assert not found.updates_follower
    else:
        assert (found.diverging, found.error) == (None, answer)


# PartitionTest.testFetchOffsetForTimestampEpochValidationForLeader, ..ForFollower,
# testOffsetForLeaderEpochValidationForLeader, ..ForFollower: asked, leads, answer (the broker's 5)
EPOCHS_ASKED = [
    (None, True, None), (5, True, None), (4, True, "FENCED_LEADER_EPOCH"),
    (6, True, "UNKNOWN_LEADER_EPOCH"), (None, False, "NOT_LEADER_OR_FOLLOWER"),
    (5, False, "NOT_LEADER_OR_FOLLOWER"), (4, False, "FENCED_LEADER_EPOCH"),
    (6, False, "UNKNOWN_LEADER_EPOCH"),
]  # fmt: skip


@pytest.mark.parametrize(("asked", "leads", "answer"), EPOCHS_ASKED)
def test_a_question_in_an_epoch(asked: int | None, leads: bool, answer: str | None) -> None:
    assert leader_epoch_error(asked, 5, ZOOKEEPER, leads=leads) == answer


# PartitionLeaderElectionAlgorithmsTest: test, cause, isr, live, stopping, unclean, leader elected
ELECTIONS: list[tuple[str, str, set[int], set[int], set[int], bool, int | None]] = [
    ("OfflinePartition", "offline", {2, 4}, {4}, set(), False, 4),
    ("OfflinePartition..UncleanLeaderElectionDisabled", "offline", {2}, {4}, set(), False, None),
    ("OfflinePartition..UncleanLeaderElectionEnabled", "offline", {2}, {4}, set(), True, 4),
    ("ReassignPartition", "reassignment", {2, 4}, {4}, set(), False, 4),
    ("ReassignPartitionWithNoLiveIsr", "reassignment", {2}, set(), set(), False, None),
    ("ReassignPartitionWithEmptyIsr", "reassignment", set(), {2}, set(), False, None),
    ("PreferredReplica", "preferred", {2, 4}, {2, 4}, set(), False, 2),
    ("PreferredReplica..InIsrNotLive", "preferred", {2}, set(), set(), False, None),
    ("PreferredReplica..NotInIsrLive", "preferred", {4}, {2, 4}, set(), False, None),
    ("PreferredReplica..NotInIsrNotLive", "preferred", set(), set(), set(), False, None),
    ("ControlledShutdown", "controlled_shutdown", {2, 4}, {2, 4}, {2}, False, 4),
    ("ControlledShutdownLastIsr", "controlled_shutdown", {2}, {2, 4}, {2}, False, None),
    ("ControlledShutdownAllIsr", "controlled_shutdown", {2, 4}, {2, 4}, {2, 4}, False, None),
]


@pytest.mark.parametrize(
    ("test", "cause", "isr", "live", "stopping", "unclean", "elected"), ELECTIONS
)
def test_an_election_with_zookeeper(
    test: str,
    cause: str,
    isr: set[int],
    live: set[int],
    stopping: set[int],
    unclean: bool,
    elected: int | None,
) -> None:
    found = election_zookeeper(
        cause, (2, 4), frozenset(isr), frozenset(live), unclean,
        stopping=frozenset(stopping), target_replicas=(2, 4),
    )  # fmt: skip

    assert (found.leader if found else None) == elected


FOO, BAZ = (2, 1, 3), (2, 1, 3)

# PartitionChangeBuilderTest.testElectLeader: cause, replicas, isr, active, leader, elected, unclean
KRAFT_ELECTIONS: list[tuple[str, tuple[int, ...], set[int], set[int], int, int | None, bool]] = [
    ("preferred", FOO, {1, 2, 3}, {1, 2}, 1, 2, False),
    ("online", FOO, {1, 2, 3}, {1, 2}, 1, 1, False),
    ("unclean", FOO, {1, 2, 3}, {1, 2}, 1, 1, False),
    ("online", FOO, {1, 3}, {1, 2}, 1, 1, False),
    ("unclean", FOO, {1, 3}, {1, 2}, 1, 1, False),
    ("online", FOO, {3}, {1, 2}, 1, None, False),
    ("unclean", FOO, {3}, {1, 2}, 1, 2, True),
    ("unclean", (2, 1, 3, 4), {4}, {1, 2, 4}, 1, 4, False),
    ("preferred", BAZ, {1, 3}, {1, 2, 3}, 3, 3, False),
    ("online", BAZ, {1, 3}, {1, 2, 3}, 3, 3, False),
    ("unclean", BAZ, {1, 3}, {1, 2, 3}, 3, 3, False),
]


@pytest.mark.parametrize(
    ("cause", "replicas", "isr", "active", "leader", "elected", "unclean"), KRAFT_ELECTIONS
)
def test_an_election_in_kraft(
    cause: str,
    replicas: tuple[int, ...],
    isr: set[int],
    active: set[int],
    leader: int,
    elected: int | None,
    unclean: bool,
) -> None:
    found = election_kraft(cause, replicas, frozenset(isr), frozenset(active), KRAFT, leader=leader)

    assert (found.leader, found.kind == "unclean") == (elected, unclean)


# PartitionChangeBuilderTest: test, isr, elr, last known leader, active, cause, election
WITH_ELR = [
    ("ElrCanBeElected", set(), {1, 3}, None, {2, 3, 4}, "preferred",
     Election(3, (3,), "eligible_leader_replica")),
    ("ElectLastKnownLeader", set(), set(), 1, {1, 2, 3, 4}, "preferred",
     Election(1, (1,), "last_known_leader", True)),
    ("ElectLastKnownLeaderShouldFail", set(), {3}, 1, {1, 2, 4}, "preferred",
     Election(None, (), None)),
    ("testUncleanLeaderElection, offline", set(), {3}, 2, {1}, "unclean",
     Election(1, (1,), "unclean", True)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("test", "isr", "eligible", "last_known", "active", "cause", "answer"), WITH_ELR
)
def test_an_election_with_eligible_leader_replicas(
    test: str,
    isr: set[int],
    eligible: set[int],
    last_known: int | None,
    active: set[int],
    cause: str,
    answer: Election,
) -> None:
    found = election_kraft(
        cause, (1, 2, 3, 4), frozenset(isr), frozenset(active), ELR,
        eligible=frozenset(eligible), last_known_leader=last_known,
    )  # fmt: skip

    assert found == answer


def test_a_last_known_leader_that_is_away() -> None:
    """PartitionChangeBuilderTest.testEligibleLeaderReplicas_NotEligibleLastKnownLeader (4.1)."""
    nobody: frozenset[int] = frozenset()
    away = frozenset({2, 3, 4})

    old = election_kraft("preferred", (1, 2, 3, 4), nobody, away, ELR, last_known_leader=1)
    new = election_kraft(
        "preferred", (1, 2, 3, 4), nobody, away, behaviour("4.1.0"), last_known_leader=1
    )

    assert old == Election(1, (1,), "last_known_leader", True)
    assert new == Election(None, (), None)


# PartitionChangeBuilderTest: test, metadata version, isr shrank, a replica left, the epoch rises
EPOCH_BUMPS = [
    ("testNoLeaderEpochBumpIfNothingChanged", "3.7", False, False, False),
    ("testNoLeaderEpochBumpOnIsrShrink", "3.6-IV0", True, False, False),
    ("testLeaderEpochBumpOnIsrShrink", "3.4-IV0", True, False, True),
    ("testLeaderEpochBumpOnIsrShrink", "3.5-IV2", True, False, True),
    ("testNoLeaderEpochBumpOnIsrExpansion", "3.4-IV0", False, False, False),
    ("testLeaderEpochBumpOnNewReplicaSetDisjoint", "3.4-IV0", False, True, True),
    ("testLeaderEpochBumpOnNewReplicaSetDisjoint", "3.7-IV2", False, True, True),
]


@pytest.mark.parametrize(("test", "spoken", "shrank", "removed", "rises"), EPOCH_BUMPS)
def test_what_raises_the_leader_epoch(
    test: str, spoken: str, shrank: bool, removed: bool, rises: bool
) -> None:
    b = behaviour("3.8.0", spoken, controller="kraft")

    assert rises == raises_leader_epoch(
        leader_changed=False, isr_shrank=shrank, behaviour=b, replica_removed=removed
    )


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


@pytest.mark.parametrize(("test", "replicas", "target", "isr", "answer"), MOVES)
def test_a_reassignment(
    test: str,
    replicas: tuple[int, ...],
    target: tuple[int, ...],
    isr: set[int],
    answer: Assignment,
) -> None:
    leader = 0 if 0 in isr else 1 if 1 in isr else 4

    assert reassignment(replicas, target, frozenset(isr), leader, KRAFT) == answer


# PartitionChangeBuilderTest: test, isr before, after, elr before, unclean, leader before, after,
# last known leader before, answer; min.insync.replicas is 3
ELIGIBLE = [
    ("IsrShrinkBelowMinISR", {1, 2, 3, 4}, {1, 2}, set(), set(), 1, 1, None, {3, 4}, None),
    ("IsrExpandAboveMinISR", {1, 2}, {1, 2, 3}, {3}, set(), 1, 1, None, set(), None),
    ("IsrAddNewMemberNotInELR", {1}, {1, 4}, {3}, set(), 1, 1, None, {3}, None),
    ("RemoveUncleanShutdownReplicasFromElr", {1}, {1}, {2, 3}, {3}, 1, 1, None, {2}, None),
    ("ElrCanBeElected", {1}, {3}, {3}, set(), 1, 3, None, {1}, None),
    ("IsrCanShrinkToZero", {1, 2, 3, 4}, set(), set(), set(), 1, None, None, {1, 2, 3, 4}, 1),
    ("IsrCanShrinkToZero, again", set(), set(), {1, 2, 3, 4}, {2}, None, None, 1, {1, 3, 4}, 1),
]


@pytest.mark.parametrize(
    ("test", "old", "new", "elr", "unclean", "leader", "elected", "last_known", "after",
     "remembered"),
    ELIGIBLE,
)  # fmt: skip
def test_eligible_leader_replicas(
    test: str,
    old: set[int],
    new: set[int],
    elr: set[int],
    unclean: set[int],
    leader: int | None,
    elected: int | None,
    last_known: int | None,
    after: set[int],
    remembered: int | None,
) -> None:
    found = eligible_leader_replicas(
        frozenset(old), frozenset(new), frozenset(elr), 3, unclean_shutdown=frozenset(unclean),
        old_leader=leader, new_leader=elected, last_known_leader=last_known,
    )  # fmt: skip

    assert found == Eligible(frozenset(after), remembered)


# ReplicationControlManagerTest.testInvalidAlterPartitionRequests, testAlterPartitionShouldReject..:
# what, sender, leader epoch, partition epoch, isr, recovering, request version, answer
ASKED: list[tuple[str, int, int, int, set[int], bool, int, str | None]] = [
    ("shrink", 0, 0, 0, {0, 1}, False, 3, None),
    ("invalid leader", 1, 0, 0, {0, 1}, False, 3, "INVALID_REQUEST"),
    ("invalid leader epoch", 0, 500, 0, {0, 1}, False, 3, "NOT_CONTROLLER"),
    ("invalid partition epoch", 0, 0, 500, {0, 1}, False, 3, "NOT_CONTROLLER"),
    ("no valid replica", 0, 0, 0, {0, 1, 3}, False, 3, "INVALID_REQUEST"),
    ("without the leader", 0, 0, 0, {1, 2}, False, 3, "INVALID_REQUEST"),
    ("isr and recovery", 0, 0, 0, {0, 1}, True, 3, "INVALID_REQUEST"),
    ("recovered to recovering", 0, 0, 0, {0}, True, 3, "INVALID_REQUEST"),
    ("fenced, version 1", 0, 0, 0, {0, 1, 2}, False, 1, "OPERATION_NOT_ATTEMPTED"),
    ("fenced, version 2", 0, 0, 0, {0, 1, 2}, False, 2, "INELIGIBLE_REPLICA"),
]


@pytest.mark.parametrize(
    ("what", "sender", "leader_epoch", "partition_epoch", "isr", "recovering", "version", "answer"),
    ASKED,
)
def test_alter_partition(
    what: str,
    sender: int,
    leader_epoch: int,
    partition_epoch: int,
    isr: set[int],
    recovering: bool,
    version: int,
    answer: str | None,
) -> None:
    registered = Registered(0, 0, 0, frozenset({0, 1, 2}), False, frozenset({2}))
    proposal = IsrProposal(
        sender, leader_epoch, partition_epoch, frozenset(isr), recovering, version
    )

    assert isr_commit(proposal, registered, KRAFT) == answer


# ReplicaFetcherThreadTest: test, answer of the leader, own epochs, own end, high watermark,
# where it cuts, whether it is done
ROUNDS: list[tuple[str, tuple[int | None, int | None], Pairs, int, int, int, bool]] = [
    ("shouldTruncateToOffsetSpecifiedInEpochOffsetResponse", (5, 156), ((5, 0),), 200, 199, 156,
     True),
    ("shouldTruncateToOffsetSpecified.., longer leader", (5, 202), ((5, 0),), 200, 199, 200, True),
    ("..IfFollowerHasNoMoreEpochs", (4, 156), (), 200, 197, 156, True),
    ("shouldFetchLeaderEpochSecondTime.., first", (4, 155), ((2, 0), (3, 100), (5, 120)), 200,
     198, 120, False),
    ("shouldFetchLeaderEpochSecondTime.., second", (3, 101), ((2, 0), (3, 100)), 120, 120, 101,
     True),
    ("shouldUseLeaderEndOffsetIfInterBrokerVersionBelow20", (None, 155), ((5, 0),), 200, 198, 155,
     True),
    ("shouldTruncateToInitialFetchOffsetIfLeaderReturnsUndefinedOffset", (None, None), ((5, 0),),
     200, 100, 100, True),
]  # fmt: skip


@pytest.mark.parametrize(("test", "answer", "own", "end", "high_watermark", "cut", "done"), ROUNDS)
def test_a_round_of_truncation(
    test: str,
    answer: tuple[int | None, int | None],
    own: Pairs,
    end: int,
    high_watermark: int,
    cut: int,
    done: bool,
) -> None:
    found = truncate_by_common_epoch(
        EpochEndOffset(*answer), cache_of(own), end, high_watermark, behaviour("2.7.2")
    )

    assert (found.to_offset, found.finished) == (cut, done)


# AbstractFetcherThreadTest.testFollowerFetchOutOfRangeHigh, ..Low; ReplicaFetcherThread of 2.0.0:
# own end, leader's start and end, unclean, release, answer
RESETS = [
    (3, 0, 0, False, "3.8.0", Reset("truncate", 0)),
    (1, 2, 3, False, "3.8.0", Reset("restart_at", 2)),
    (2, 2, 3, False, "3.8.0", Reset("keep", 2)),
    (3, 0, 0, False, "2.0.0", Reset("halt", 3)),
    (3, 0, 0, True, "2.0.0", Reset("truncate", 0)),
]


@pytest.mark.parametrize(("own", "start", "end", "unclean", "release", "answer"), RESETS)
def test_an_offset_out_of_range(
    own: int, start: int, end: int, unclean: bool, release: str, answer: Reset
) -> None:
    assert out_of_range_reset(own, start, end, unclean, behaviour(release)) == answer


# ReplicaTest.testUpdateFetchState: fetch offset, leader's end, time, caught up at
FETCH_TIMES = [(5, 10, 1_000, 0), (10, 15, 2_000, 1_000), (15, 15, 3_000, 3_000)]


def test_when_a_follower_was_caught_up() -> None:
    memory = FetchMemory(0)
    for fetch_offset, end, now_ms, caught_up in FETCH_TIMES:
        memory = last_caught_up(memory, fetch_offset, end, now_ms, ZOOKEEPER)
        assert memory == FetchMemory(caught_up, now_ms, end)


# IsrExpirationTest (lag limit 100): test, log end known, caught up at, now, out of sync
EXPIRATIONS = [
    ("testIsrExpirationForStuckFollowers, before", 14, 1_000, 1_000, False),
    ("testIsrExpirationForStuckFollowers", 14, 1_000, 1_150, True),
    ("testIsrExpirationIfNoFetchRequestMade", None, 1_000, 1_150, True),
    ("testIsrExpirationForSlowFollowers, 75", 14, 1_000, 1_075, False),
    ("testIsrExpirationForSlowFollowers, 150", 14, 1_000, 1_150, True),
    ("testIsrExpirationForCaughtUpFollowers", 15, 1_000, 1_150, False),
]


@pytest.mark.parametrize(("test", "end", "caught_up", "now_ms", "out"), EXPIRATIONS)
def test_who_leaves_the_isr(
    test: str, end: int | None, caught_up: int, now_ms: int, out: bool
) -> None:
    found = isr_shrink({2: Progress(end, caught_up)}, 15, now_ms, 100, None, ZOOKEEPER)

    assert found == ({2} if out else set())


# ReplicaTest.testResetReplicaStateWhenLeaderIsReelected.., ..WhenNewLeaderIsElected..
@pytest.mark.parametrize(("led_before", "kept"), [(4, True), (None, False)])
def test_what_a_leader_keeps_of_its_followers(led_before: int | None, kept: bool) -> None:
    assert become_leader(5, 11, (), led_before, ZOOKEEPER).keeps_followers is kept


def test_bounds_of_a_log() -> None:
    """UnifiedLogTest, LogLoaderTest, PartitionTest, ReplicationControlManagerTest: one each."""
    cut = truncation_effect(0, 0, 10, 8, cache_of(THREE), ZOOKEEPER, first_segment_offset=0)
    noop = truncation_effect(11, 0, 11, 8, cache_of(THREE), ZOOKEEPER, first_segment_offset=0)
    lost = start_up_recovery(OnDisk(4, 0, 6, 9, cache_of(((1, 0),))), ZOOKEEPER)

    # testHighWatermarkMaintenance: cutting all resets it, and it never goes beyond the end.
    assert cut.high_watermark == 0
    # testTruncateToEndOffsetClearsEpochCache: an epoch that starts at the end goes.
    assert noop.epoch_entries == cache_of(((2, 6), (3, 8)))
    # testCannotIncrementLogStartOffsetPastHighWatermark.
    assert log_start(26, 0, 25) == "OFFSET_OUT_OF_RANGE"
    # LogLoaderTest: what survives below the checkpointed log start makes an empty log there.
    assert (lost.log_end_offset, lost.high_watermark, lost.emptied) == (6, 6, True)
    # testMonotonicOffsetsAfterLeaderChange: no latest offset before the epoch's start.
    assert not latest_offset_available(2, 5, ZOOKEEPER)
    assert latest_offset_available(5, 5, ZOOKEEPER)
    # testEligibleLeaderReplicas_EffectiveMinIsr.
    assert effective_min_insync_replicas(5, 3, KRAFT) == 3
    # testIgnoreLeaderPartitionStateChangeWithOlderPartitionEpoch, ..Follower...
    assert controller_fencing(3, 3, 8, 8, 0, 1) == "stale_partition_epoch"
    assert controller_fencing(3, 3, 8, 8, 1, 1) == "repeated"


def told(given: str, commands: str) -> list[str]:
    """What a story prints: its notes and the pictures of its last stanza."""
    text = f"{given}\n----\nok\n\n{commands}\n----\n"
    return run_scenario(text)[1].split("----\n")[-1].splitlines()


def given(settings: str, rows: Iterable[str]) -> str:
    return "\n".join([f"given {settings}", *rows])


# PartitionTest, ReplicationControlManagerTest: test, given, commands, the last lines
STORIES = [
    ("testIsrExpansion: below the high watermark and the epoch's start nobody joins",
     given("isr=A kafka=3.8.0", ["A* e5  4:a*10 |", "B  e5  4:a*3 |"]),
     "fetch B response=lost\ncontroller", ["leader A e5 isr A"]),
    ("testIsrExpansion: at both it does",
     given("isr=A kafka=3.8.0", ["A* e5  4:a*10 |", "B  e5  4:a*10 |"]),
     "fetch B\ncontroller", ["leader A e5 isr A,B"]),
    ("testFollowerDoesNotJoinISRUntilCaughtUpToOffsetWithinCurrentLeaderEpoch",
     given("isr=A,C kafka=3.8.0 assigned=A,B,C",
           ["A* e8  8:a*2 | 8:b*3", "B  e8  8:a*2 |", "C  e8  8:a*2 | 8:b*3"]),
     "elect C isr=A,C\nelect A isr=A,C\nproduce A d*2\nfetch B response=lost\ncontroller",
     ["leader A e10 isr A,C"]),
    ("testHighWatermarkIncreasesWithFencedOrShutdownFollower",
     given("isr=A,B kafka=3.8.0 controller=kraft", ["A* e5  4:a*10 |", "B  e5  4:a*10 |"]),
     "fetch B\nfence B\nproduce A c", ["A* e5  4:a*10 5:c |", "B  e5  4:a*10 |"]),
    ("testIsrNotExpandedIfReplicaIsFencedOrShutdown",
     given("isr=A kafka=3.8.0 controller=kraft", ["A* e5  4:a*10 |", "B  e5  4:a*10 |"]),
     "fence B\nfetch B\ncontroller", ["leader A e5 isr A"]),
    ("testIsrNotExpandedIfReplicaIsFencedOrShutdown, unfenced",
     given("isr=A kafka=3.8.0 controller=kraft", ["A* e5  4:a*10 |", "B  e5  4:a*10 |"]),
     "fence B\nfetch B\nunfence B\nfetch B\ncontroller", ["leader A e5 isr A,B"]),
    ("testHighWatermarkAdvanceShouldNotAdvanceWhenUnderMinISR",
     given("isr=A,B kafka=3.8.0 controller=kraft min_insync_replicas=3 isr_changes=wait",
           ["A* e5  | 4:a*10", "B  e5  | 4:a*10", "C  e5  | 4:a*10"]),
     "fetch B\nfetch C", ["A* e5  | 4:a*10", "B  e5  | 4:a*10", "C  e5  | 4:a*10"]),
    ("testHighWatermarkAdvanceShouldNotAdvanceWhenUnderMinISR, committed",
     given("isr=A,B kafka=3.8.0 controller=kraft min_insync_replicas=3 isr_changes=wait",
           ["A* e5  | 4:a*10", "B  e5  | 4:a*10", "C  e5  | 4:a*10"]),
     "fetch B\nfetch C\nisr commit",
     ["A* e5  4:a*10 |", "B  e5  | 4:a*10", "C  e5  | 4:a*10"]),
    ("testMaybeShrinkIsr: the high watermark waits for the commit",
     given("isr=A,B kafka=3.8.0 isr_changes=wait", ["A* e5  | 4:a*10", "B  e5  |"]),
     "tick ms=30001\nisr check", ["A* e5  | 4:a*10", "B  e5  |"]),
    ("testMaybeShrinkIsr: and goes with it",
     given("isr=A,B kafka=3.8.0 isr_changes=wait", ["A* e5  | 4:a*10", "B  e5  |"]),
     "tick ms=30001\nisr check\nisr commit", ["A* e5  4:a*10 |", "B  e5  |"]),
    ("testIsrNotShrunkIfUpdateFails",
     given("isr=A,B kafka=3.8.0 isr_changes=wait", ["A* e5  | 4:a*10", "B  e5  |"]),
     "tick ms=30001\nisr check\nisr refuse error=INVALID_UPDATE_VERSION",
     ["A* e5  | 4:a*10", "B  e5  |"]),
    ("testShouldNotShrinkIsrIfPreviousFetchIsCaughtUp",
     given("isr=A,B kafka=3.8.0", ["A* e5  | 4:a*10", "B  e5  | 4:a*5"]),
     "tick ms=5000\nfetch B\nproduce A c*5\ntick ms=25001\nfetch B response=lost\nisr check\n"
     "controller", ["leader A e5 isr A,B"]),
    ("testShouldNotShrinkIsrIfFollowerCaughtUpToLogEnd",
     given("isr=A,B kafka=3.8.0", ["A* e5  | 4:a*10", "B  e5  | 4:a*10"]),
     "fetch B\ntick ms=30001\nisr check\ncontroller", ["leader A e5 isr A,B"]),
    ("testEligibleLeaderReplicas_BrokerFence",
     given("isr=0,1,2,3 kafka=4.0.0 elr=on min_insync_replicas=3",
           ["0* e0  |", "1  e0  |", "2  e0  |", "3  e0  |"]),
     "fence 2\nfence 3\ncontroller", ["leader 0 e0 isr 0,1 elr 3"]),
    ("testEligibleLeaderReplicas_CleanElection",
     given("isr=0,1,2,3 kafka=4.0.0 elr=on min_insync_replicas=3",
           ["0* e0  |", "1  e0  |", "2  e0  |", "3  e0  |"]),
     "fence 1\nfence 2\nfence 3\nunfence 2\nfence 0\ncontroller",
     ["leader 2 e1 isr 2 elr 0,3"]),
    ("testEligibleLeaderReplicas_ShrinkAndExpandIsr",
     given("isr=0,1,2 kafka=4.0.0 elr=on min_insync_replicas=2",
           ["0* e0  |", "1  e0  |", "2  e0  |"]),
     "propose 0 isr=0\ncontroller", ["leader 0 e0 isr 0 elr 1,2"]),
    ("testEligibleLeaderReplicas_ShrinkAndExpandIsr, back",
     given("isr=0,1,2 kafka=4.0.0 elr=on min_insync_replicas=2",
           ["0* e0  |", "1  e0  |", "2  e0  |"]),
     "propose 0 isr=0\npropose 0 isr=0,1\ncontroller", ["leader 0 e0 isr 0,1 elr none"]),
    ("testPreferredElectionDoesNotTriggerUncleanElection",
     given("isr=1,2,3 kafka=3.8.0 controller=kraft unclean=no",
           ["1* e0  |", "2  e0  |", "3  e0  |"]),
     "fence 2\nfence 3\nfence 1\nunfence 2\nelect cause=preferred\ncontroller",
     ["leader none e1 isr 1"]),
    ("testElectUncleanLeaders_WithoutElr",
     given("isr=1,2,3 kafka=3.8.0 controller=kraft unclean=no",
           ["1* e0  |", "2  e0  |", "3  e0  |"]),
     "fence 2\nfence 3\nfence 1\nunfence 2\nelect cause=unclean\ncontroller",
     ["leader 2 e2 isr 2 recovering"]),
    ("testStoppedLeaderIsDemotedAfterReassignmentCompletesEvenIfNoNewEligibleLeaders",
     given("isr=0,1,2,3 kafka=3.8.0 controller=kraft assigned=0,1,2,3",
           ["0* e0  |", "1  e0  |", "2! e0  |", "3! e0  |"]),
     "reassign to=2,3\ncontroller", ["leader none e1 isr 2,3"]),
    ("testChangeInLeadershipDoesNotChangeRecoveryState",
     given("isr=1 kafka=3.8.0 controller=kraft assigned=2,1",
           ["1* e0  |", "2  e0  |"]),
     "fence 1\nelect cause=unclean\nfence 2\nunfence 2\ncontroller",
     ["leader 2 e4 isr 2 recovering"]),
    ("ControllerIntegrationTest.testPartitionReassignment: to the new, the leader, out of the ISR",
     given("isr=A kafka=2.8.2 assigned=A", ["A* e0  |", "B  e-  |"]),
     "reassign to=B\nfetch B\ncontroller", ["leader B e3 isr B"]),
    ("ControllerIntegrationTest.testPartitionReassignmentWithOfflineReplicaHaltingProgress",
     given("isr=A kafka=2.8.2 assigned=A", ["A* e0  |", "B! e-  |"]),
     "reassign to=B\ncontroller", ["leader A e1 isr A"]),
    ("ControllerIntegrationTest.testPartitionReassignmentResumesAfterReplicaComesOnline",
     given("isr=A kafka=2.8.2 assigned=A", ["A* e0  |", "B! e-  |"]),
     "reassign to=B\nstart B\nfetch B\ncontroller", ["leader B e4 isr B"]),
    ("ControllerIntegrationTest.testBackToBackPreferredReplicaLeaderElections",
     given("isr=B,A kafka=2.8.2 assigned=B,A", ["B* e0  |", "A  e0  |"]),
     "stop B\nfence B\nstart B\nfetch B\nelect cause=preferred\nstop B\nfence B\nstart B\n"
     "fetch B\nelect cause=preferred\ncontroller", ["leader B e4 isr B,A"]),
    ("ControllerIntegrationTest.testLeaderAndIsrWhenEntireIsrOfflineAndUncleanLeaderElection..",
     given("isr=A kafka=2.8.2 unclean=yes", ["A* e0  |"]),
     "stop A\nfence A\ncontroller", ["leader none e1 isr A"]),
    ("ControllerIntegrationTest.testControlledShutdown",
     given("isr=A,B,C kafka=2.8.2", ["A* e0  |", "B  e0  |", "C  e0  |"]),
     "drain C\ndrain B\ndrain A\ncontroller",
     ["A goes on leading: nobody else is in the ISR", "leader A e2 isr A"]),
    ("ControllerIntegrationTest.testControllerDetectsBouncedBrokers",
     given("isr=A,B kafka=2.8.2", ["A* e0  |", "B  e0  |"]),
     "crash A kind=process\nstart A\ncontroller", ["leader B e1 isr B"]),
    ("ReplicaManagerTest.testPreferredReplicaAsLeaderWhenSameRackFollowerIsOutOfIsr",
     given("isr=A kafka=3.8.0 isr_changes=wait", ["A* e0  0:a |", "B  e0  0:a |"]),
     "fetch B\nconsume A offset=0 isolation=read_committed near=B",
     ["the consumer gets a, next offset 1", "A* e0  0:a |", "B  e0  0:a |"]),
    ("AbstractFetcherThreadTest.testTruncateOnFetchDoesNotProcessPartitionData",
     given("isr=A,B kafka=3.8.0",
           ["A* e5  0:a*2 2:c 5:g | 5:h", "B  e5  0:a | 0:b 2:c 4:d*3"]),
     "fetch B response=lost", ["A* e5  0:a*2 2:c 5:g | 5:h", "B  e5  0:a | 0:b 2:c 4:d*3"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("test", "before", "commands", "last"), STORIES, ids=[s[0] for s in STORIES]
)
def test_a_story(test: str, before: str, commands: str, last: list[str]) -> None:
    assert told(before, commands)[-len(last) :] == last
