"""Where two replicas hold different records at one offset, and whether the protocol mends it.

A difference is settled when the version's truncation rule, applied to the present logs,
would keep it; one of which that is not certain is pending and no violation. Equal contents under
different leader epochs (which the CRC does not cover) are a header mismatch: undecidable.
"""

from dataclasses import dataclass

from replication.protocol.folding.conformance.truncations import comes_to_rest
from replication.protocol.ground.leader_epoch_cache import EpochCache, assign
from replication.protocol.ground.model import EpochEntry, overlaps, same_record
from replication.protocol.ground.topic_partition import Replica, State
from replication.protocol.ground.versions import Behaviour, behaviour
from replication.protocol.judgement.reference import (
    Reference,
    lived_on_unseen,
)
from replication.protocol.rules.out_of_range_reset import out_of_range_reset

# One release of each truncation rule, for evidence that does not tell its version.
_EVERY_RULE = ("0.10.2", "0.11.0", "2.0.0", "2.8.2", "4.1.1")


@dataclass(slots=True)
class Divergence:
    """Offsets [first_offset, end_offset) at which replicas a and b differ.

    status: settled, pending or header_mismatch. Pending is one that the next truncation removes, or
    may remove where a leader's log or a version is not known; one side of which compaction or
    retention may have removed since; or of which the histories leave open where it ends.
    """

    a: int
    b: int
    first_offset: int
    end_offset: int
    status: str


def comparable(state: State) -> list[Replica]:
    """The assigned replicas whose logs are known, and not from before something unseen."""
    known = [
        r
        for _, r in sorted(state.replicas.items())
        if state.log_is_known(r) and not lived_on_unseen(state, r)
    ]
    assigned = set(state.settings.assigned_replicas or [r.replica for r in known])
    return [r for r in known if r.replica in assigned]


def divergences(state: State, ref: Reference) -> list[Divergence]:
    """Every difference between the known logs of the partition's replicas."""
    known = comparable(state)
    if lived_on_unseen(state, ref.replica):
        # What its copy shows is not what its followers are cut to.
        ref = Reference(ref.leader, None, ref.term)
    result: list[Divergence] = []
    for i, a in enumerate(known):
        for b in known[i + 1 :]:
            found = _above(_between(a, b, _kept_below_by_both(state, a, b, ref, known)), ref)
            if not (state.still_has_records(a) and state.still_has_records(b)):
                for d in found:
                    d.status = "pending" if d.status == "settled" else d.status
            result += found
    return result


def _above(found: list[Divergence], ref: Reference) -> list[Divergence]:
    """Differences with what lies below the leader's log start as pending: a follower that reaches
    down there deletes it, or starts its log anew."""
    floor = ref.replica.log.log_start_offset if ref.replica is not None else 0
    result: list[Divergence] = []
    for d in found:
        if d.status == "settled" and d.first_offset < floor:
            below = min(d.end_offset, floor)
            result.append(Divergence(d.a, d.b, d.first_offset, below, "pending"))
            if below == d.end_offset:
                continue
            d.first_offset = below
        result.append(d)
    return result


def _possible(state: State, replica: Replica) -> list[Behaviour]:
    """The rules by which a replica may cut its log: its broker's, or any where nothing tells."""
    flags = state.behaviour(replica.replica)
    return [flags] if flags is not None else [behaviour(v) for v in _EVERY_RULE]


def keeps_below(state: State, replica: Replica, leader: Replica) -> tuple[int, int]:
    """Below which offset a replica that follows a leader surely keeps its records, and from which
    offset on it surely cuts them.

    The two differ where the release, the high watermark that it cuts to or a part of a log is not
    known. A broker that runs on cuts to its high watermark as it is by now: no copy may show it.
    """
    end, possible = replica.log.log_end_offset, _possible(state, replica)
    if _rests_on_unknown_high_watermark(replica, leader, possible):
        return 0, end
    kept = [_kept_below(replica, leader, flags) for flags in possible]
    by_high_watermark = any(f.truncation == "truncate_to_high_watermark" for f in possible)
    runs_on = replica.captured and replica.stopped is not True
    runs_on = runs_on and not state.is_traced(replica.replica)
    if replica.partial or leader.partial or (by_high_watermark and runs_on):
        return min(kept), end
    return min(kept), max(kept)


def _kept_below_by_both(
    state: State, a: Replica, b: Replica, ref: Reference, known: list[Replica]
) -> int:
    """Below which offset a difference of a and b surely stays.

    Where the leader's log is not known, every replica may lead, and a leader whose log nobody has
    seen may make a follower cut anything.
    """
    if ref.leader is not None and ref.replica is None:
        rules = {flags.truncation for r in (a, b) for flags in _possible(state, r)}
        if rules != {"truncate_to_high_watermark"}:
            return 0
    leaders = [ref.replica] if ref.replica is not None else known
    return min((keeps_below(state, r, x)[0] for r in (a, b) for x in leaders), default=0)


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


def _between(a: Replica, b: Replica, kept_below: int) -> list[Divergence]:
    """The differences of a and b, of which those below an offset stay."""
    start = max(a.log.log_start_offset, b.log.log_start_offset)
    result: list[Divergence] = []
    for first, end, left, right in overlaps(a.log.spans, b.log.spans):
        first = max(first, start)
        same = same_record(left, right)
        mismatch = same is None and left.content is not None and left.content == right.content
        if first >= end or same is True or (same is None and not mismatch):
            continue
        parts = (
            [(first, end, "header_mismatch")]
            if mismatch
            else [
                (first, min(end, kept_below), "settled"),
                (max(first, kept_below), end, "pending"),
            ]
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
