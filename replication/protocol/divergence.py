"""Where two replicas hold different records at one offset, and whether the protocol mends it.

A difference is settled when the version's truncation rule, applied to the logs as they stand,
would keep it; what the next truncation removes is pending and no violation. Equal contents under
different leader epochs (which the CRC does not cover) are a header mismatch: undecidable.
"""

from dataclasses import dataclass

from replication.protocol.leader_epoch_cache import EpochCache, end_offset_for_epoch
from replication.protocol.model import overlaps, same_record
from replication.protocol.survival import Reference, log_is_known
from replication.protocol.topic_partition import Replica, State
from replication.protocol.versions import Behaviour, behaviour


@dataclass(slots=True)
class Divergence:
    """Offsets [first_offset, end_offset) at which replicas a and b differ.

    status: settled, pending or header_mismatch.
    """

    a: int
    b: int
    first_offset: int
    end_offset: int
    status: str


def declared_behaviour(state: State) -> Behaviour | None:
    """The declared version's behaviour; None when no version is known or it is a vendor's."""
    settings = state.settings
    if settings.kafka_version is None:
        return None
    try:
        return behaviour(settings.kafka_version, settings.inter_broker_version)
    except ValueError:
        return None


def comparable(state: State) -> list[Replica]:
    """The assigned replicas whose logs are known."""
    known = [r for _, r in sorted(state.replicas.items()) if log_is_known(state, r)]
    assigned = set(state.settings.assigned_replicas or [r.replica for r in known])
    return [r for r in known if r.replica in assigned]


def incomparable(state: State) -> tuple[int, int, int, int] | None:
    """The first (replica, replica, first offset, end offset) where nothing tells records apart.

    Traced appends before message format v2 have neither leader epoch nor bytes.
    """
    known = comparable(state)
    for i, a in enumerate(known):
        for b in known[i + 1 :]:
            for first, end, left, right in overlaps(a.log.spans, b.log.spans):
                if same_record(left, right) is None and None in (left.content, right.content):
                    return a.replica, b.replica, first, end
    return None


def divergences(state: State, ref: Reference) -> list[Divergence]:
    """Every difference between the known logs of the partition's replicas."""
    known = comparable(state)
    flags = declared_behaviour(state)
    result: list[Divergence] = []
    for i, a in enumerate(known):
        for b in known[i + 1 :]:
            result += _between(a, b, ref, flags)
    return result


def _between(a: Replica, b: Replica, ref: Reference, flags: Behaviour | None) -> list[Divergence]:
    start = max(a.log.log_start_offset, b.log.log_start_offset)
    kept = min(_kept_below(a, ref, flags), _kept_below(b, ref, flags))
    result: list[Divergence] = []
    for first, end, left, right in overlaps(a.log.spans, b.log.spans):
        first = max(first, start)
        if first >= end:
            continue
        same = same_record(left, right)
        mismatch = same is None and left.content is not None and left.content == right.content
        if same is True or (same is None and not mismatch):
            continue
        parts = (
            [(first, end, "header_mismatch")]
            if mismatch
            else [(first, min(end, kept), "settled"), (max(first, kept), end, "pending")]
        )
        for x, y, status in parts:
            if x < y:
                _add(result, Divergence(a.replica, b.replica, x, y, status))
    return result


def _add(result: list[Divergence], new: Divergence) -> None:
    last = result[-1] if result else None
    if last and last.end_offset == new.first_offset and last.status == new.status:
        last.end_offset = new.end_offset
    else:
        result.append(new)


def _kept_below(replica: Replica, ref: Reference, flags: Behaviour | None) -> int:
    """The offset below which the replica's next truncation as a follower keeps its records."""
    leader = ref.replica
    end = replica.log.log_end_offset
    if leader is None or flags is None or replica.replica == ref.leader:
        return end
    if flags.truncation == "truncate_to_high_watermark":
        return min(end, replica.high_watermark if replica.high_watermark is not None else end)
    cache: EpochCache = tuple(replica.epoch_entries)
    leaders: EpochCache = tuple(leader.epoch_entries)
    if not cache or not leaders:
        return min(end, replica.high_watermark if replica.high_watermark is not None else end)
    return _common_end(cache, end, leaders, leader.log.log_end_offset, flags)


def _common_end(
    cache: EpochCache, end: int, leaders: EpochCache, leader_end: int, flags: Behaviour
) -> int:
    """Where rounds of asking the leader for the end of the latest own epoch come to rest."""
    in_rounds = flags.has("truncates_by_common_epoch")
    while cache:
        answer = end_offset_for_epoch(leaders, cache[-1].leader_epoch, leader_end, flags)
        if answer.end_offset is None:
            return end
        if answer.leader_epoch is None or not in_rounds:
            return min(end, answer.end_offset)
        own = end_offset_for_epoch(cache, answer.leader_epoch, end, flags)
        if own.end_offset is None:
            return min(end, answer.end_offset)
        end = min(end, own.end_offset)
        if own.leader_epoch == answer.leader_epoch:
            return min(end, answer.end_offset)
        cache = tuple(e for e in cache if e.start_offset < end)
    return end
