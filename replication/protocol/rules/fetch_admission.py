"""How a broker answers a follower's fetch: an error, a diverging epoch, or records."""

from dataclasses import dataclass

from replication.protocol.ground.leader_epoch_cache import EpochCache, end_offset_for_epoch
from replication.protocol.ground.model import EpochEndOffset
from replication.protocol.ground.versions import Behaviour


@dataclass(frozen=True, slots=True)
class FollowerFetch:
    """A follower's request. What its release does not send is None."""

    fetch_offset: int
    current_leader_epoch: int | None = None
    last_fetched_epoch: int | None = None
    broker_epoch: int | None = None


@dataclass(frozen=True, slots=True)
class FetchTarget:
    """The broker that was asked, and what it knows of the follower."""

    leads: bool
    leader_epoch: int
    log_start_offset: int
    log_end_offset: int
    epoch_entries: EpochCache
    follower_assigned: bool = True
    follower_broker_epoch: int | None = None


@dataclass(frozen=True, slots=True)
class FetchDecision:
    """error, or diverging, or neither: records from the fetch offset to the log end.

    updates_follower: whether the leader moves what it knows of the follower's log.
    """

    error: str | None = None
    diverging: EpochEndOffset | None = None
    updates_follower: bool = False


def fetch_admission(
    fetch: FollowerFetch, target: FetchTarget, behaviour: Behaviour
) -> FetchDecision:
    """Decides by the first row that applies (the order is the broker's own).

    Versions: epoch fencing from 2.1-IV1 (KIP-320); the diverging epoch from 2.7 (KAFKA-10554); no
    progress by a diverging fetch and the log start first from 2.7.2, 2.8.1, 3.0 (KAFKA-13141,
    KAFKA-12996); the broker epoch from 3.5 (KIP-903). behaviour is the asked broker's.
    Followed: leadership and offset range alone. Gave way to: fencing, because a zombie's fetch
    counted as progress (s04_kip_320_zombie.txt, s15_diverging_fetch_counts.txt).
    Leaves unchanged: the leader's log; followers are not bounded by its high watermark.
    Unknown: nothing.
    """
    error = _epoch_error(fetch, target, behaviour)
    if error:
        return FetchDecision(error)
    if fetch.last_fetched_epoch is not None and behaviour.has("leader_answers_diverging_epoch"):
        decision = _divergence(fetch, fetch.last_fetched_epoch, target, behaviour)
        if decision:
            return decision
    if not target.log_start_offset <= fetch.fetch_offset <= target.log_end_offset:
        return FetchDecision("OFFSET_OUT_OF_RANGE")
    known = target.follower_broker_epoch
    if (
        behaviour.has("isr_needs_broker_epoch")
        and fetch.broker_epoch is not None
        and known is not None
        and fetch.broker_epoch < known
    ):
        return FetchDecision("NOT_LEADER_OR_FOLLOWER")
    return FetchDecision(updates_follower=True)


def leader_epoch_error(
    asked: int | None, leader_epoch: int, behaviour: Behaviour, *, leads: bool
) -> str | None:
    """How a broker refuses a follower's Fetch, ListOffsets or OffsetsForLeaderEpoch.

    asked: the leader epoch in the request, None where its release sends none. leader_epoch: the
    asked broker's. A broker that does not lead may still answer by epoch: it looks there first.
    """
    if asked is not None and behaviour.has("fetch_carries_leader_epoch"):
        if asked < leader_epoch:
            return "FENCED_LEADER_EPOCH"
        if asked > leader_epoch:
            return "UNKNOWN_LEADER_EPOCH"
    return None if leads else "NOT_LEADER_OR_FOLLOWER"


def _epoch_error(fetch: FollowerFetch, target: FetchTarget, behaviour: Behaviour) -> str | None:
    asked = fetch.current_leader_epoch
    error = leader_epoch_error(asked, target.leader_epoch, behaviour, leads=target.leads)
    if error:
        return error
    if not target.follower_assigned:
        return "NOT_LEADER_OR_FOLLOWER" if asked is None else "UNKNOWN_LEADER_EPOCH"
    return None


def _divergence(
    fetch: FollowerFetch, last_fetched_epoch: int, target: FetchTarget, behaviour: Behaviour
) -> FetchDecision | None:
    fixed = behaviour.has("log_start_checked_before_divergence")
    end = end_offset_for_epoch(
        target.epoch_entries, last_fetched_epoch, target.log_end_offset, behaviour
    )
    if end.leader_epoch is None or end.end_offset is None:
        return FetchDecision("OFFSET_OUT_OF_RANGE")
    if fixed and fetch.fetch_offset < target.log_start_offset:
        return FetchDecision("OFFSET_OUT_OF_RANGE")
    if end.leader_epoch < last_fetched_epoch or end.end_offset < fetch.fetch_offset:
        counts = not behaviour.has("diverging_fetch_is_no_progress")
        return FetchDecision(diverging=end, updates_follower=counts)
    return None
