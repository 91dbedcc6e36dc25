"""The leader's rules: high watermark, ISR, admission and acknowledgement, taking over."""

from dataclasses import replace

import pytest

from replication.protocol.ground.model import EpochEntry
from replication.protocol.ground.versions import behaviour, with_remedy
from replication.protocol.rules.acknowledge import acknowledge
from replication.protocol.rules.become_leader import become_leader
from replication.protocol.rules.fetch_admission import (
    FetchTarget,
    FollowerFetch,
    fetch_admission,
)
from replication.protocol.rules.fetch_response_high_watermark import (
    answers_at_once,
    fetch_response_high_watermark,
)
from replication.protocol.rules.high_watermark_of_leader import (
    RemoteReplica,
    high_watermark_of_leader,
)
from replication.protocol.rules.isr_commit import (
    IsrProposal,
    Registered,
    commit_raises_high_watermark,
    isr_commit,
    keeps_pending,
    maximal_isr,
    request_version,
)
from replication.protocol.rules.isr_expand import isr_expand
from replication.protocol.rules.isr_shrink import Progress, isr_shrink
from replication.protocol.rules.last_caught_up import FetchMemory, is_caught_up, last_caught_up
from replication.protocol.rules.log_start import log_start, log_start_of_follower
from replication.protocol.rules.produce_admission import (
    effective_min_insync_replicas,
    produce_admission,
)
from replication.protocol.rules.producer_sequence import producer_sequence


def remote(end: int | None, member: bool, near: bool, eligible: bool = True) -> RemoteReplica:
    return RemoteReplica(end, member, near, eligible)


# what, followers, then the new high watermark by release; the leader's log ends at 10, it was at 4
HIGH_WATERMARKS = [
    ("isr", [remote(7, True, True)], {"0.8.2.2": 7, "2.8.1": 7, "4.1.0": 7}),
    ("alone", [], {"0.8.2.2": 10, "3.9.1": 10}),
    ("never falls", [remote(2, True, True)], {"0.10.0.1": 4, "4.1.0": 4}),
    ("unknown member", [remote(None, True, True)], {"0.10.0.1": 4, "3.9.1": 4}),
    ("unknown outsider", [remote(None, False, False)], {"0.10.0.1": 10, "3.9.1": 10}),
    (
        "caught-up outsider",
        [remote(6, False, True)],
        {"0.10.1.1": 10, "0.10.2.0": 6, "2.8.1": 6, "3.9.1": 6},
    ),
    (
        "outsider that may not join",
        [remote(6, False, True, False)],
        {"0.10.1.1": 10, "0.10.2.0": 6, "3.5.2": 6, "3.6.0": 10},
    ),
    ("lagging outsider", [remote(6, False, False)], {"0.10.2.0": 10, "3.9.1": 10}),
    ("lagging member", [remote(6, True, False)], {"2.6.0": 6, "2.7.0": 6, "3.9.1": 6}),
]


@pytest.mark.parametrize(("what", "followers", "by_release"), HIGH_WATERMARKS)
def test_high_watermark_of_leader(
    what: str, followers: list[RemoteReplica], by_release: dict[str, int]
) -> None:
    for release, expected in by_release.items():
        actual = high_watermark_of_leader(4, 10, followers, 2, 1, behaviour(release))

        assert actual == expected, f"{what} under {release}"


def test_high_watermark_below_min_insync_replicas_stands_from_3_7() -> None:
    assert high_watermark_of_leader(4, 10, [], 1, 2, behaviour("3.6.2")) == 10
    assert high_watermark_of_leader(4, 10, [], 1, 2, behaviour("3.7.0")) == 4
    assert high_watermark_of_leader(4, 10, [], 2, 2, behaviour("3.7.0")) == 10


def test_a_member_with_an_unknown_log_end_blocks_though_others_are_ahead() -> None:
    followers = [remote(9, True, True), remote(None, True, True)]

    assert high_watermark_of_leader(4, 10, followers, 3, 1, behaviour("3.9.1")) == 4


def test_last_caught_up() -> None:
    old, new = behaviour("0.10.1.1"), behaviour("0.10.2.0")
    fresh = FetchMemory(100)

    at_end = last_caught_up(fresh, 10, 10, 500, new)
    behind = last_caught_up(fresh, 8, 10, 500, new)

    assert at_end == FetchMemory(500, 500, 10)
    assert behind == FetchMemory(100, 500, 10)
    assert last_caught_up(behind, 10, 12, 700, new) == FetchMemory(500, 700, 12)
    assert last_caught_up(behind, 10, 12, 700, old) == FetchMemory(100, 700, 12)
    assert last_caught_up(behind, 9, 12, 700, new) == FetchMemory(100, 700, 12)
    assert last_caught_up(FetchMemory(900, 500, 10), 10, 10, 700, new).last_caught_up_ms == 900
    assert last_caught_up(FetchMemory(0, 5, 10), 8, 4, 7, new).leader_log_end_offset == 10


def test_is_caught_up() -> None:
    assert is_caught_up(1_000, 31_000, 30_000)
    assert not is_caught_up(1_000, 31_001, 30_000)


def test_isr_shrink() -> None:
    followers = {
        1: Progress(10, 0),
        2: Progress(9, 0),
        3: Progress(9, 89_999),
        4: Progress(9, 90_000),
        5: Progress(None, 0),
    }

    assert isr_shrink(followers, 10, 100_000, 10_000, None, behaviour("2.4.1")) == {2, 3, 5}
    assert isr_shrink(followers, 10, 100_000, 10_000, None, behaviour("2.0.1")) == {1, 2, 3, 5}


def test_isr_shrink_by_messages() -> None:
    followers = {1: Progress(6_000, 100), 2: Progress(5_999, 100), 3: Progress(9_000, 0)}
    b = behaviour("0.8.2.2")

    assert isr_shrink(followers, 10_000, 100, 10_000, 4_000, b) == {2}
    assert isr_shrink(followers, 10_000, 10_001, 10_000, 4_000, b) == {2, 3}
    assert isr_shrink(followers, 10_000, 10_001, 10_000, None, b) == {3}


def test_isr_expand() -> None:
    old, new = behaviour("2.0.0"), behaviour("2.0.1")
    fenced = behaviour("3.3.0", controller="kraft")

    assert not isr_expand(4, 5, 0, old)
    assert isr_expand(5, 5, 9, old)
    assert not isr_expand(8, 5, 9, new)
    assert isr_expand(9, 5, 9, new)
    assert isr_expand(9, 5, 9, behaviour("3.2.0", controller="kraft"), active=False)
    assert not isr_expand(9, 5, 9, fenced, active=False)
    assert not isr_expand(9, 5, 9, behaviour("3.3.0", "3.2"), active=False)
    assert isr_expand(9, 5, 9, behaviour("3.2.0"), active=False)


REGISTERED = Registered(1, 5, 20, frozenset({1, 2, 3}), False, frozenset({3}))

# what, sender, leader epoch, partition epoch, isr, recovering, answer
PROPOSALS = [
    ("good", 1, 5, 20, {1, 2}, False, None),
    ("newer leader epoch", 1, 6, 20, {1, 2}, False, "NOT_CONTROLLER"),
    ("newer partition epoch", 1, 5, 21, {1, 2}, False, "NOT_CONTROLLER"),
    ("older leader epoch", 2, 4, 20, {1, 2}, False, "FENCED_LEADER_EPOCH"),
    ("not the leader", 2, 5, 20, {1, 2}, False, "INVALID_REQUEST"),
    ("older partition epoch", 1, 5, 19, {1, 2}, False, "INVALID_UPDATE_VERSION"),
    ("outsider", 1, 5, 20, {1, 4}, False, "INVALID_REQUEST"),
    ("without the leader", 1, 5, 20, {2}, False, "INVALID_REQUEST"),
    ("recovering again", 1, 5, 20, {1}, True, "INVALID_REQUEST"),
    ("ineligible", 1, 5, 20, {1, 3}, False, "INELIGIBLE_REPLICA"),
]


@pytest.mark.parametrize(
    ("what", "sender", "leader_epoch", "partition_epoch", "isr", "recovering", "says"), PROPOSALS
)
def test_isr_commit(
    what: str,
    sender: int,
    leader_epoch: int,
    partition_epoch: int,
    isr: set[int],
    recovering: bool,
    says: str | None,
) -> None:
    proposal = IsrProposal(sender, leader_epoch, partition_epoch, frozenset(isr), recovering)

    assert isr_commit(proposal, REGISTERED, behaviour("3.9.1", controller="kraft")) == says


def test_a_zookeeper_controller_asks_neither_for_the_sender_nor_for_the_assignment() -> None:
    b = behaviour("3.9.1")

    assert isr_commit(IsrProposal(2, 5, 20, frozenset({1, 2})), REGISTERED, b) is None
    assert isr_commit(IsrProposal(1, 5, 20, frozenset({2, 4})), REGISTERED, b) is None
    assert isr_commit(IsrProposal(1, 5, 20, frozenset({1, 3})), REGISTERED, b) == (
        "INELIGIBLE_REPLICA"
    )


def test_epochs_ahead_of_the_controllers() -> None:
    leaders = IsrProposal(1, 6, 20, frozenset({1, 2}))
    partition = IsrProposal(1, 5, 21, frozenset({1, 2}))
    old = behaviour("3.2.3", controller="kraft")

    assert isr_commit(leaders, REGISTERED, old) == "FENCED_LEADER_EPOCH"
    assert isr_commit(partition, REGISTERED, old) == "INVALID_UPDATE_VERSION"
    assert isr_commit(leaders, REGISTERED, behaviour("3.2.3")) is None
    assert isr_commit(leaders, REGISTERED, behaviour("3.3.0")) == "NOT_CONTROLLER"


# leader's release, inter-broker version, request version, answer for an ineligible member, answer
# for one that has registered anew
REQUESTS = [
    ("2.8.2", None, 0, "OPERATION_NOT_ATTEMPTED", None),
    ("3.2.3", None, 1, "OPERATION_NOT_ATTEMPTED", None),
    ("3.4.1", "2.7", 0, "OPERATION_NOT_ATTEMPTED", None),
    ("3.4.1", "3.2", 2, "INELIGIBLE_REPLICA", None),
    ("3.5.2", "3.2", 2, "INELIGIBLE_REPLICA", None),
    ("3.5.2", None, 3, "INELIGIBLE_REPLICA", "INELIGIBLE_REPLICA"),
]


@pytest.mark.parametrize(("release", "spoken", "version", "ineligible", "restarted"), REQUESTS)
def test_what_a_leader_of_a_release_can_be_told(
    release: str, spoken: str | None, version: int, ineligible: str, restarted: str | None
) -> None:
    asks = request_version(behaviour(release, spoken))
    decides = behaviour("3.5.2", controller="kraft")
    anew = replace(REGISTERED, ineligible=frozenset(), restarted=frozenset({3}))
    proposal = IsrProposal(1, 5, 20, frozenset({1, 3}), version=asks)

    assert asks == version
    assert isr_commit(proposal, REGISTERED, decides) == ineligible
    assert isr_commit(proposal, anew, decides) == restarted


def test_which_releases_ask_for_the_high_watermark_when_an_isr_change_is_committed() -> None:
    assert commit_raises_high_watermark(behaviour("2.6.3"))
    assert commit_raises_high_watermark(behaviour("3.0.2", "2.6"))
    assert not commit_raises_high_watermark(behaviour("2.7.0"))
    assert not commit_raises_high_watermark(behaviour("3.0.2"))
    assert commit_raises_high_watermark(behaviour("3.1.0"))


def test_isr_commit_while_recovering() -> None:
    registered = Registered(1, 5, 20, frozenset({1, 2}), True)
    b = behaviour("3.9.1")

    assert isr_commit(IsrProposal(1, 5, 20, frozenset({1}), True), registered, b) is None
    two = IsrProposal(1, 5, 20, frozenset({1, 2}), True)
    assert isr_commit(two, registered, b) == "INVALID_REQUEST"


def test_isr_commit_in_zookeeper_is_a_conditional_write() -> None:
    b = behaviour("2.6.0")

    assert isr_commit(IsrProposal(2, 4, 20, frozenset({2})), REGISTERED, b) is None
    stale = IsrProposal(1, 5, 19, frozenset({1, 2}))
    assert isr_commit(stale, REGISTERED, b) == "INVALID_UPDATE_VERSION"


def test_an_ineligible_member_passes_before_kip_841() -> None:
    proposal = IsrProposal(1, 5, 20, frozenset({1, 3}))

    assert isr_commit(proposal, REGISTERED, behaviour("3.2.0")) is None


def test_maximal_isr_and_what_keeps_it() -> None:
    assert maximal_isr(frozenset({1, 2}), None) == {1, 2}
    assert maximal_isr(frozenset({1, 2}), frozenset({1, 3})) == {1, 2, 3}
    assert keeps_pending("INVALID_UPDATE_VERSION")
    assert not keeps_pending("INELIGIBLE_REPLICA")
    assert not keeps_pending("OPERATION_NOT_ATTEMPTED")


def test_become_leader() -> None:
    cache = (EpochEntry(0, 0),)

    old = become_leader(2, 10, cache, None, behaviour("2.0.0"))
    new = become_leader(2, 10, cache, 1, behaviour("2.0.1"))

    assert (old.leader_epoch_start_offset, old.epoch_entries) == (10, cache)
    assert new.epoch_entries == (*cache, EpochEntry(2, 10))
    assert not old.keeps_followers
    assert new.keeps_followers


# remedy, what a leader that led epoch 3 keeps in epoch 4, and in epoch 5
KEEPS_FOLLOWERS = [
    (None, True, True),
    ("leader_forgets_followers_after_missed_epoch", True, False),
    ("leader_forgets_followers_at_every_epoch", False, False),
]


@pytest.mark.parametrize(("remedy", "next_epoch", "after_missed"), KEEPS_FOLLOWERS)
def test_a_leader_that_leads_on_keeps_its_followers(
    remedy: str | None, next_epoch: bool, after_missed: bool
) -> None:
    b = behaviour("4.1.0") if remedy is None else with_remedy(behaviour("4.1.0"), remedy)

    assert become_leader(4, 10, (), 3, b).keeps_followers is next_epoch
    assert become_leader(5, 10, (), 3, b).keeps_followers is after_missed
    assert not become_leader(4, 10, (), 3, behaviour("0.8.2.2")).keeps_followers


CACHE = (EpochEntry(0, 0), EpochEntry(2, 6), EpochEntry(5, 8))
TARGET = FetchTarget(True, 5, 3, 10, CACHE)


def decided(fetch: FollowerFetch, target: FetchTarget, release: str) -> tuple[object, ...]:
    d = fetch_admission(fetch, target, behaviour(release))
    return d.error, tuple(d.diverging) if d.diverging else None, d.updates_follower


# what, fetch, by release: error, diverging, counts
FETCHES = [
    ("plain", FollowerFetch(8), {"0.8.2.2": (None, None, True), "4.1.0": (None, None, True)}),
    (
        "older epoch",
        FollowerFetch(8, 4),
        {"2.0.1": (None, None, True), "2.1.0": ("FENCED_LEADER_EPOCH", None, False)},
    ),
    ("newer epoch", FollowerFetch(8, 6), {"2.1.0": ("UNKNOWN_LEADER_EPOCH", None, False)}),
    ("ahead", FollowerFetch(11, 5), {"2.1.0": ("OFFSET_OUT_OF_RANGE", None, False)}),
    ("at the end", FollowerFetch(10, 5), {"2.1.0": (None, None, True)}),
    ("at the start", FollowerFetch(3, 5), {"2.1.0": (None, None, True)}),
    ("below the start", FollowerFetch(2, 5), {"2.1.0": ("OFFSET_OUT_OF_RANGE", None, False)}),
    ("same last epoch", FollowerFetch(9, 5, 5), {"2.8.1": (None, None, True)}),
    (
        "last epoch ends earlier",
        FollowerFetch(7, 5, 0),
        {
            "2.6.0": (None, None, True),
            "2.8.0": (None, (0, 6), True),
            "2.8.1": (None, (0, 6), False),
        },
    ),
    ("last epoch ends there", FollowerFetch(6, 5, 0), {"2.8.1": (None, None, True)}),
    ("last epoch unknown here", FollowerFetch(7, 5, 3), {"2.8.1": (None, (2, 8), False)}),
    ("last epoch newer", FollowerFetch(7, 5, 6), {"2.8.1": ("OFFSET_OUT_OF_RANGE", None, False)}),
    (
        "below the start and diverging",
        FollowerFetch(2, 5, 1),
        {"2.8.0": (None, (0, 6), True), "2.8.1": ("OFFSET_OUT_OF_RANGE", None, False)},
    ),
]


@pytest.mark.parametrize(("what", "fetch", "by_release"), FETCHES)
def test_fetch_admission(
    what: str, fetch: FollowerFetch, by_release: dict[str, tuple[object, ...]]
) -> None:
    for release, expected in by_release.items():
        assert decided(fetch, TARGET, release) == expected, f"{what} under {release}"


def test_fetch_from_a_broker_that_does_not_lead_or_of_a_stranger() -> None:
    follower = FetchTarget(False, 5, 3, 10, CACHE)
    stranger = FetchTarget(True, 5, 3, 10, CACHE, follower_assigned=False)

    assert decided(FollowerFetch(8, 5), follower, "2.1.0")[0] == "NOT_LEADER_OR_FOLLOWER"
    assert decided(FollowerFetch(8, 4), follower, "2.1.0")[0] == "FENCED_LEADER_EPOCH"
    assert decided(FollowerFetch(8, 5), stranger, "2.1.0")[0] == "UNKNOWN_LEADER_EPOCH"
    assert decided(FollowerFetch(8), stranger, "2.0.1")[0] == "NOT_LEADER_OR_FOLLOWER"


def test_fetch_of_an_earlier_life_of_a_broker() -> None:
    target = FetchTarget(True, 5, 3, 10, CACHE, follower_broker_epoch=7)

    stale = FollowerFetch(8, 5, 5, broker_epoch=6)
    assert decided(stale, target, "3.5.0")[0] == "NOT_LEADER_OR_FOLLOWER"
    assert decided(stale, target, "3.4.1")[0] is None
    assert decided(FollowerFetch(8, 5, 5, broker_epoch=7), target, "3.5.0")[0] is None
    assert decided(FollowerFetch(8, 5, 5), target, "3.5.0")[0] is None
    assert decided(stale, TARGET, "3.5.0")[0] is None


def test_fetch_response_high_watermark() -> None:
    assert fetch_response_high_watermark(3, 5, False, behaviour("2.8.1")) == 3
    assert fetch_response_high_watermark(3, 5, True, behaviour("2.8.1")) == 5
    assert fetch_response_high_watermark(3, 5, False, behaviour("1.1.0")) == 5
    assert answers_at_once(None, 5, True, behaviour("2.8.1"))
    assert not answers_at_once(3, 5, False, behaviour("2.8.1"))
    assert answers_at_once(3, 5, False, behaviour("2.5.0"))
    assert not answers_at_once(5, 5, False, behaviour("2.5.0"))
    assert not answers_at_once(None, 5, False, behaviour("2.5.0"))


def test_produce_admission() -> None:
    assert produce_admission("all", 1, 2) == "NOT_ENOUGH_REPLICAS"
    assert produce_admission("all", 2, 2) is None
    assert produce_admission("1", 1, 2) is None
    assert effective_min_insync_replicas(3, 2, behaviour("3.6.2")) == 3
    assert effective_min_insync_replicas(3, 2, behaviour("3.7.0")) == 2


# acks, end, high watermark, maximal isr, min insync, replicas at the end, leads, answer
ACKNOWLEDGEMENTS = [
    ("0", 5, 0, 1, 1, 1, True, "none"),
    ("1", 5, 0, 1, 1, 1, True, "NONE"),
    ("all", 5, 4, 2, 2, 1, True, "pending"),
    ("all", 5, 5, 2, 2, 1, True, "NONE"),
    ("all", 5, 5, 1, 2, 1, True, "NOT_ENOUGH_REPLICAS_AFTER_APPEND"),
    ("all", 5, 5, 2, 2, 1, False, "NOT_LEADER_OR_FOLLOWER"),
    ("2", 5, 0, 3, 1, 1, True, "pending"),
    ("2", 5, 0, 3, 1, 2, True, "NONE"),
    ("2", 5, 0, 3, 1, 2, False, "NOT_LEADER_OR_FOLLOWER"),
]


@pytest.mark.parametrize(
    ("acks", "end", "mark", "isr", "least", "there", "leads", "answer"), ACKNOWLEDGEMENTS
)
def test_acknowledge(
    acks: str, end: int, mark: int, isr: int, least: int, there: int, leads: bool, answer: str
) -> None:
    assert acknowledge(acks, end, mark, isr, least, there, leads=leads) == answer


def test_log_start() -> None:
    assert log_start(4, 2, 6) == 4
    assert log_start(6, 2, 6) == 6
    assert log_start(None, 2, 6) == 6
    assert log_start(7, 2, 6) == "OFFSET_OUT_OF_RANGE"
    assert log_start(1, 2, 6) == 2
    assert log_start_of_follower(5, 2, 4) == 4
    assert log_start_of_follower(3, 2, 4) == 3
    assert log_start_of_follower(1, 2, 4) == 2


# producer epoch, first, last, known epoch, known last, answer
SEQUENCES = [
    (0, 0, 4, None, None, "append"),
    (0, 5, 9, 0, 4, "append"),
    (0, 6, 9, 0, 4, "OUT_OF_ORDER_SEQUENCE_NUMBER"),
    (0, 0, 4, 0, 4, "duplicate"),
    (0, 1, 4, 0, 4, "OUT_OF_ORDER_SEQUENCE_NUMBER"),
    (1, 0, 4, 0, 4, "append"),
    (1, 5, 9, 0, 4, "OUT_OF_ORDER_SEQUENCE_NUMBER"),
    (0, 5, 9, 1, 4, "INVALID_PRODUCER_EPOCH"),
    (0, 0, 0, 0, 2**31 - 1, "append"),
]


@pytest.mark.parametrize(
    ("producer_epoch", "first", "last", "known", "known_last", "says"), SEQUENCES
)
def test_producer_sequence(
    producer_epoch: int, first: int, last: int, known: int | None, known_last: int | None, says: str
) -> None:
    recent = frozenset({(0, 4)})

    assert (
        producer_sequence(
            producer_epoch,
            first,
            last,
            None if known is None or known_last is None else (known, known_last),
            recent=recent,
        )
        == says
    )
