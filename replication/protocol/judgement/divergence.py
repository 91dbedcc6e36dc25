"""Where two replicas hold different records at one offset, and whether the protocol mends it.

A difference is settled when the version's truncation rule, applied to the present logs,
would keep it; what the next truncation removes is pending and no violation. Equal contents under
different leader epochs (which the CRC does not cover) are a header mismatch: undecidable.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import product

from replication.protocol.folding.conformance.truncations import comes_to_rest
from replication.protocol.ground.leader_epoch_cache import EpochCache, assign
from replication.protocol.ground.model import EpochEntry, overlaps, same_record
from replication.protocol.ground.topic_partition import Replica, State
from replication.protocol.ground.versions import Behaviour, behaviour
from replication.protocol.judgement.reference import (
    Reference,
    lived_on_unseen,
    tail_is_known,
)
from replication.protocol.rules.out_of_range_reset import out_of_range_reset

# One release of each truncation rule, for evidence that does not tell its version.
_EVERY_RULE = ("0.10.2", "0.11.0", "2.0.0", "2.8.2", "4.1.1")


@dataclass(slots=True)
class Divergence:
    """Offsets [first_offset, end_offset) at which replicas a and b differ.

    status: settled, pending or header_mismatch. unsure: whether the next truncation removes it
    depends on a leader's log, or a version, that is not known, or on the rest of a log of which
    only a part was seen, or whether compaction has since; then it is called pending.
    """

    a: int
    b: int
    first_offset: int
    end_offset: int
    status: str
    unsure: bool = False


def comparable(state: State) -> list[Replica]:
    """The assigned replicas whose logs are known, and not from before something unseen."""
    known = [
        r
        for _, r in sorted(state.replicas.items())
        if state.log_is_known(r) and not lived_on_unseen(state, r)
    ]
    assigned = set(state.settings.assigned_replicas or [r.replica for r in known])
    return [r for r in known if r.replica in assigned]


def incomparable(state: State) -> tuple[int, int, int, int] | None:
    """The first (replica, replica, first offset, end offset) where nothing tells records apart.

    Traced appends before message format v2 have neither leader epoch nor bytes.
    """
    known = comparable(state)
    without_epochs = {r.replica for r in known if any(s.leader_epoch is None for s in r.log.spans)}
    for i, a in enumerate(known):
        for b in known[i + 1 :]:
            if not without_epochs & {a.replica, b.replica}:
                continue
            for first, end, left, right in overlaps(a.log.spans, b.log.spans):
                if same_record(left, right) is None and None in (left.content, right.content):
                    return a.replica, b.replica, first, end
    return None


def unseen_ends(state: State, ref: Reference) -> tuple[int, int, int] | None:
    """The first (replica, other replica, offset): from there on nobody saw what the first holds.

    Only a part of its log was dumped, and the other's goes on, or may. What a leader whose log's
    end is known does not reach, truncation removes.
    """
    limit = None
    if ref.replica is not None and tail_is_known(state, ref.replica):
        limit = ref.replica.log.log_end_offset
    known = comparable(state)
    for part in (r for r in known if r.partial):
        end = max((s.end_offset for s in part.log.spans), default=part.log.log_start_offset)
        for other in known:
            goes_on = other.partial or any(s.end_offset > end for s in other.log.spans)
            if other is not part and goes_on and (limit is None or end < limit):
                return part.replica, other.replica, end
    return None


def divergences(state: State, ref: Reference) -> list[Divergence]:
    """Every difference between the known logs of the partition's replicas."""
    known = comparable(state)
    if lived_on_unseen(state, ref.replica):
        # What its copy shows is not what its followers are cut to.
        ref = Reference(ref.leader, None, ref.term)
    result: list[Divergence] = []
    for i, a in enumerate(known):
        for b in known[i + 1 :]:
            in_part = any(r is not None and r.partial for r in (a, b, ref.replica))
            found = _between(a, b, _kept_both(state, a, b, ref, known), in_part)
            found = _above(found, ref)
            if not (state.still_has_records(a) and state.still_has_records(b)):
                found = [_may_be_gone(d) for d in found]
            result += found
    return result


def _may_be_gone(found: Divergence) -> Divergence:
    """A difference of which compaction may have taken one side since, and with it all of it."""
    if found.status != "settled":
        return found
    return replace(found, status="pending", unsure=True)


def _above(found: list[Divergence], ref: Reference) -> list[Divergence]:
    """Differences with what lies below the leader's log start as pending: a follower that reaches
    down there deletes it, or starts its log anew."""
    floor = ref.replica.log.log_start_offset if ref.replica is not None else 0
    result: list[Divergence] = []
    for d in found:
        if d.status == "settled" and d.first_offset < floor:
            below = min(d.end_offset, floor)
            result.append(Divergence(d.a, d.b, d.first_offset, below, "pending", False))
            if below == d.end_offset:
                continue
            d.first_offset = below
        result.append(d)
    return result


def _possible(state: State, replica: Replica) -> list[Behaviour]:
    """The rules by which a replica may cut its log: its broker's, or any where nothing tells."""
    flags = state.behaviour(replica.replica)
    return [flags] if flags is not None else [behaviour(v) for v in _EVERY_RULE]


def _pairs(a: list[Behaviour], b: list[Behaviour]) -> Iterable[tuple[Behaviour, Behaviour]]:
    """Each with each; where nothing tells either release, one and the same."""
    return zip(a, b, strict=True) if len(a) == len(b) else product(a, b)


def _kept_both(
    state: State, a: Replica, b: Replica, ref: Reference, known: list[Replica]
) -> tuple[int, int]:
    """Below which offset a difference of a and b surely stays, and from where it surely goes.

    The two differ where the leader's log or the version is not known: then every replica may lead,
    by every rule; and a leader whose log nobody has seen may make a follower cut anything.
    """
    least = most = None
    leaders = [ref.replica] if ref.replica is not None else known
    rules = [(r, _possible(state, r)) for r in (a, b)]
    for leader in leaders:
        for of_a, of_b in _pairs(*(by for _, by in rules)):
            kept = min(_kept_below(a, leader, of_a), _kept_below(b, leader, of_b))
            may = min(_may_keep_below(state, r, leader, f) for r, f in ((a, of_a), (b, of_b)))
            least = kept if least is None else min(least, kept)
            most = may if most is None else max(most, may)
    if any(_rests_on_unknown_high_watermark(r, x, by) for r, by in rules for x in leaders):
        least = 0
    if ref.leader is not None and ref.replica is None:
        by_rule = {flags.truncation for _, by in rules for flags in by}
        if by_rule != {"truncate_to_high_watermark"}:
            least = 0
    return least or 0, most or 0


def is_cut_by_following(state: State, ref: Reference, replica: Replica, offset: int) -> bool:
    """Whether the replica, once it follows, would or may cut the record at the offset.

    False only where every rule that may be in force keeps it.
    """
    if ref.replica is None or replica is ref.replica:
        return True
    possible = _possible(state, replica)
    if any(_rests_on_unknown_high_watermark(replica, x, possible) for x in [ref.replica]):
        return True
    return any(_is_cut(state, replica, ref.replica, offset, flags) for flags in possible)


def _is_cut(state: State, replica: Replica, leader: Replica, offset: int, flags: Behaviour) -> bool:
    """Whether one version's rule cuts the record: where it truncates, or resets the fetch."""
    kept = _kept_below(replica, leader, flags)
    end = leader.log.log_end_offset
    if kept <= offset or kept <= end or not leader.tail_known:
        return kept <= offset or (kept > end and offset >= end)
    unclean = state.settings.unclean_leader_election
    reset = out_of_range_reset(kept, leader.log.log_start_offset, end, unclean is not False, flags)
    return reset.action != "halt" and offset >= end


def _between(a: Replica, b: Replica, kept: tuple[int, int], in_part: bool) -> list[Divergence]:
    """The differences of a and b. in_part: only a part of a log that decides was seen."""
    start = max(a.log.log_start_offset, b.log.log_start_offset)
    least, most = kept
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
            [(first, end, "header_mismatch", False)]
            if mismatch
            else [
                (first, min(end, least), "settled", False),
                (max(first, least), min(end, most), "pending", True),
                (max(first, most), end, "pending", in_part),
            ]
        )
        for x, y, status, unsure in parts:
            if x < y:
                _add(result, Divergence(a.replica, b.replica, x, y, status, unsure))
    return result


def _add(result: list[Divergence], new: Divergence) -> None:
    last = result[-1] if result else None
    if (
        last
        and last.end_offset == new.first_offset
        and (last.status, last.unsure) == (new.status, new.unsure)
    ):
        last.end_offset = new.end_offset
    else:
        result.append(new)


def _kept_below(replica: Replica, leader: Replica, flags: Behaviour) -> int:
    """The offset below which the replica's next truncation as a follower keeps its records."""
    end = replica.log.log_end_offset
    if replica is leader:
        return end
    if flags.truncation == "truncate_to_high_watermark":
        return min(end, replica.high_watermark if replica.high_watermark is not None else end)
    cache: EpochCache = replica.epoch_entries
    leaders = _when_it_leads(leader, replica, flags)
    if not cache or not leaders:
        return min(end, replica.high_watermark if replica.high_watermark is not None else end)
    return comes_to_rest(cache, end, leaders, leader.log.log_end_offset, flags)


def _may_keep_below(state: State, replica: Replica, leader: Replica, flags: Behaviour) -> int:
    """The same at most: a broker that runs on cuts to its high watermark as it is by now, which the
    checkpoint in its copy may not have reached."""
    by_mark = flags.truncation == "truncate_to_high_watermark"
    runs_on = replica.captured and replica.stopped is not True
    if by_mark and runs_on and not state.is_traced(replica.replica):
        return replica.log.log_end_offset
    return _kept_below(replica, leader, flags)


def _when_it_leads(leader: Replica, replica: Replica, flags: Behaviour) -> EpochCache:
    """The epoch cache that a follower will ask: a leader whose own epoch is older than what the
    follower has leads in a newer one before it answers."""
    entries: EpochCache = leader.epoch_entries
    if not flags.has("epoch_cached_at_election"):
        return entries
    newest = max(e.leader_epoch for e in (*entries, *replica.epoch_entries, EpochEntry(-1, 0)))
    return assign(entries, newest + 1, leader.log.log_end_offset, flags)


def _rests_on_unknown_high_watermark(
    replica: Replica, leader: Replica, possible: list[Behaviour]
) -> bool:
    """Whether a log would be cut to a high watermark that nobody knows: dumps come without one."""
    if replica is leader or replica.high_watermark is not None:
        return False
    if not replica.epoch_entries or not leader.epoch_entries:
        return True
    return any(flags.truncation == "truncate_to_high_watermark" for flags in possible)
