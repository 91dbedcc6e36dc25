"""Which records one more failure would cost: by which failure, who would lead, who still has them.

`who_may_lead` tells which failures are possible by the release's election rules. After each of them
another log counts: that of the next leader as it is, or that of a leader which comes back with less
than it had. Records of the log that counts now are at risk if that other log is known to lack them.
What is not known to be missing somewhere is not called at risk, and no setting alone is a danger.
"""

from collections.abc import Iterator
from itertools import pairwise
from operator import itemgetter
from typing import NamedTuple

from replication.protocol.ground.model import joined_ranges, ranges_without
from replication.protocol.ground.risks import Failure
from replication.protocol.ground.topic_partition import Replica, State
from replication.protocol.judgement.lacking_records import (
    Compared,
    Ranges,
    ended_at,
)
from replication.protocol.judgement.lost_by_a_leader import lost_by
from replication.protocol.judgement.promised_tiers import (
    COMMITTED,
    UNDETERMINED,
    joined_alike,
)
from replication.protocol.judgement.reference import tail_is_known
from replication.protocol.judgement.who_may_lead import (
    failures,
    has_crashed,
    led_last,
    must_wait_for,
    runs,
    too_few,
)

# By then it would be known that a replica has left the ISR and the others commit without it.
TOLD_WITHIN_MS = 2_000

_in_order = itemgetter(0, 1, 4)
Held = list[tuple[int, int, tuple[int, ...]]]
"""First offset, end offset, who holds what lies between."""
Sharing = list[tuple[int, Ranges]]
"""By replica, the ranges of a log that it holds as well."""


class Danger(NamedTuple):
    """Records [first_offset, end_offset) that one failure would lose.

    failure: leader_stops, leader_loses_its_tail (what it alone holds), leader_loses_its_log (what
    others hold as well) or, where nobody leads and no failure is needed, clean_election (of a
    member of the ISR) or unclean_election. broker: whom it strikes, or who would be elected.
    next_leader: who would lead without the records, None where the struck broker itself comes back.
    cause: the ledger's word for such a loss. holders: the other replicas that have the records.
    """

    first_offset: int
    end_offset: int
    tier: str
    failure: str
    broker: int
    next_leader: int | None
    cause: str
    holders: tuple[int, ...]


def dangers(state: State) -> list[Danger]:
    """Every danger, in offset order."""
    return dangers_of(state, failures(state))


def dangers_of(state: State, possible: list[Failure]) -> list[Danger]:
    """What each of the possible failures would cost, in offset order."""
    if not possible:
        return []
    logs = Compared(state)
    leader, last = state.registration.leader, logs.last
    if _known(state, last if leader is None else leader) is None:
        return []
    found: list[Danger] = []
    for each in possible:
        if each.next_leader is not None:
            found += _of(logs, each)
    for broker in dict.fromkeys(each.broker for each in possible if each.next_leader is None):
        found += _of_its_storage(logs, broker, possible)
    return sorted(found, key=_in_order)


def _of(logs: Compared, failure: Failure) -> list[Danger]:
    """What one failure would cost."""
    (what, broker, heir, _), state, last = failure, logs.state, logs.last
    next_leader = state.replicas.get(-1 if heir is None else heir)
    if next_leader is None:
        return []
    if heir == last and state.registration.leader in (None, last):
        return _of_its_return(logs, failure, next_leader)
    holder = _known(state, broker if what == "leader_stops" else last)
    return [] if holder is None else _of_an_heir(logs, failure, holder, next_leader)


def _known(state: State, number: int | None) -> Replica | None:
    """A replica whose log is known."""
    replica = None if number is None else state.replicas.get(number)
    return replica if state.log_is_known(replica) else None


def _of_an_heir(logs: Compared, failure: Failure, holder: Replica, heir: Replica) -> list[Danger]:
    """What one log has and that of a next leader has not."""
    (what, broker, number, unclean), state = failure, logs.state
    stops, in_flight, late = what == "leader_stops", False, 0
    lacking = logs.lacking(holder, heir)
    if lacking and stops and not unclean:
        # What was promised to nobody is in flight on every healthy partition.
        in_flight = tail_is_known(state, heir) and not has_crashed(state, heir.replica)
        late = ended_at(state, holder, heir, TOLD_WITHIN_MS)
    found, sharing = [], _sharing(logs, holder, broker, heir.replica) if lacking else []
    for first, end in lacking:
        for a, b, tier in logs.by_tier(holder, first, end):
            if stops and not unclean and tier in COMMITTED:
                b = min(b, late)
            if a >= b or (in_flight and tier == UNDETERMINED):
                continue
            cause = "unclean_election" if unclean else _cause_of_a_clean(state, heir, a, tier)
            holders = _holders(sharing, a, b)
            found.append(Danger(a, b, tier, what, broker, number, cause, holders))
    return found


def _of_its_return(logs: Compared, failure: Failure, leader: Replica) -> list[Danger]:
    """What the last leader had, and would lead again without."""
    holder, lost = lost_by(logs, leader)
    sharing = _sharing(logs, holder, leader.replica) if lost else []
    cause = _cause_of_storage(logs.state)
    return [Danger(a, b, tier, *failure[:3], cause, _holders(sharing, a, b)) for a, b, tier in lost]


def _holders(sharing: Sharing, first: int, end: int) -> tuple[int, ...]:
    """Who shares these offsets."""
    return tuple([r for r, ranges in sharing if _covers(ranges, first, end)])


def _sharing(logs: Compared, holder: Replica, *but: int) -> Sharing:
    """By replica, the ranges of a log that it holds, the log's own replica included. but: who is
    not asked for: whom the failure strikes, and an heir, which lacks what it is about."""
    state = logs.state
    known = [r for r in sorted(state.replicas) if r not in but and _known(state, r)]
    return [(r, logs.shared(holder, state.replicas[r])) for r in known]


def _of_its_storage(logs: Compared, broker: int, possible: list[Failure]) -> Iterator[Danger]:
    """What a broker that must return to lead may come back without: what was not flushed of what
    it alone holds, or all of its directory."""
    state, last = logs.state, logs.last
    alone = _known(state, broker)
    if alone is None:
        return
    start, given_by = 0, None
    if state.registration.leader is None and last is not None:
        # What the last leader had removed is nobody's loss.
        start = state.replicas[last].log.log_start_offset
        # What the last leader has not, another replica may never have been given.
        given_by = None if broker == last or must_wait_for(state, broker) else last
    cause = _cause_of_storage(state)
    tail = _held_alone(logs, alone)
    whole = Failure("leader_loses_its_log", broker, None, False) in possible
    rest = _held_by_others(logs, alone, tail) if whole else []
    for what, rows in (("leader_loses_its_tail", tail), ("leader_loses_its_log", rest)):
        for first, end, holders in rows:
            if end <= start or (given_by is not None and given_by not in holders):
                continue
            for a, b, tier in logs.by_tier(alone, max(first, start), end):
                # While the broker runs, what was promised to nobody is in flight.
                if rows is tail or tier != UNDETERMINED or not runs(state, broker):
                    yield Danger(a, b, tier, what, broker, None, cause, holders)


def _others(state: State, replica: Replica) -> list[Replica]:
    """The other assigned replicas whose logs are known."""
    assigned = state.settings.assigned_replicas or ()
    return [r for n in assigned if n != replica.replica and (r := _known(state, n)) is not None]


def _held_alone(logs: Compared, alone: Replica) -> Held:
    """What all other replicas of known logs are known to lack; nothing where no log is known."""
    lacking = [logs.lacking(alone, other) for other in _others(logs.state, alone)]
    if logs.state.settings.assigned_replicas == (alone.replica,):
        lacking = [_log(alone)]
    found = lacking[0] if lacking else []
    for ranges in lacking[1:]:
        found = [(max(a, x), min(b, y)) for a, b in found for x, y in ranges if a < y and x < b]
    return [(first, end, ()) for first, end in found]


def _held_by_others(logs: Compared, alone: Replica, tail: Held) -> Held:
    """The rest of a log, cut where others hold it."""
    left = _log(alone)
    for first, end, _ in tail:
        left = ranges_without(left, first, end)
    shared = [(r.replica, logs.shared(alone, r)) for r in _others(logs.state, alone)]
    bounds = {offset for _, ranges in shared for each in ranges for offset in each}
    return joined_alike(
        (a, b, tuple(r for r, ranges in shared if _covers(ranges, a, b)))
        for first, end in left
        for a, b in pairwise(sorted({first, end, *(o for o in bounds if first < o < end)}))
    )


def _log(replica: Replica) -> Ranges:
    return joined_ranges([(s.first_offset, s.end_offset) for s in replica.log.spans])


def _covers(ranges: Ranges, first: int, end: int) -> bool:
    for a, b in ranges:  # noqa: SIM110 - a generator costs more than the few comparisons
        if a <= first and end <= b:
            return True
    return False


# -- what the loss would be called --------------------------------------------------------------
def _cause_of_a_clean(state: State, heir: Replica, first: int, tier: str) -> str:
    """The ledger's word for what a leader from the ISR begins without, from that offset on.

    A member had what was committed, or joined the ISR with another record there; one that lacks it
    has lost it.
    """
    committed = tier in COMMITTED
    if committed and any(s.first_offset <= first < s.end_offset for s in heir.log.spans):
        return "early_isr_join"
    cuts = [t for t in state.history.truncations if t.replica == heir.replica]
    dropped = cuts[-1].dropped if cuts and cuts[-1].reason == "high_watermark" else ()
    if any(s.first_offset <= first < s.end_offset for s in dropped):
        return "truncate_to_high_watermark"
    came_back = heir.came_back_with is not None and heir.came_back_with <= first
    had_more = (heir.known_log_end_offset or 0) > first
    if came_back or had_more or (committed and not tail_is_known(state, heir)):
        return _cause_of_storage(state)
    return "premature_high_watermark" if committed else "acks_one_failover"


def _cause_of_storage(state: State) -> str:
    """The ledger's word for what is lost with a disk."""
    few = too_few(state, {*(state.registration.last_members or ())})
    return "last_replica_standing" if few else "storage_loss"


def other_causes(state: State, danger: Danger) -> list[str]:
    """What else the ledger may call such a loss, once it is decided.

    The controller may first take those out of the ISR who are down already. What nobody is known to
    have been promised, the next leader may never have had, or have lost with what it had. And where
    nobody knows whether unclean elections are allowed, another may lead without it.
    """
    found, cause = [], danger.cause
    if cause == "acks_one_failover" and _lacks_promised(state, danger.next_leader):
        found.append(_cause_of_storage(state))
    elif cause not in ("storage_loss", "last_replica_standing"):
        return []
    leads = danger.broker if danger.next_leader is None else danger.next_leader
    members = {*(state.registration.last_members or ())} - {danger.broker}
    left = {r for r in members if runs(state, r)} | {leads}
    if "storage_loss" in (cause, *found) and too_few(state, left):
        found.append("last_replica_standing")
    unpromised = danger.next_leader is not None and danger.tier not in COMMITTED
    if unpromised and cause != "acks_one_failover":
        found.append("acks_one_failover")
    unknown = state.settings.unclean_leader_election is None
    if danger.failure == "leader_loses_its_tail" and unknown:
        found.append("unclean_election")
    return found


def _lacks_promised(state: State, number: int | None) -> bool:
    """Whether a replica's log ends below what was promised of the last leader's."""
    replica, last = _known(state, number), led_last(state)
    leader = None if last is None else state.replicas.get(last)
    if replica is None or leader is None:
        return False
    promised = max(leader.high_watermark or 0, state.history.promised_up_to())
    return promised > replica.log.log_end_offset
