"""Which records one more failure would cost: who holds them, what would lose them, what ends it.

A run of records of the current leader's log is at risk when one failure that is possible in this
evidence gives the partition a leader that is known to lack the run, by the election rules of the
declared version and the settings in force, or leaves the run on no replica. Possible failures: the
leader stops for good; the leader comes back from a power failure without what was not flushed;
where nobody else can be elected, the leader comes back with an emptied directory, and whoever
follows cuts to that.
Where the partition has no leader, or one that was elected and never began, no further failure is
needed: whoever is elected lacks what it lacks. Where the leader is down and still registered, the
failure of the member that leads next counts as well. A setting alone puts nothing at risk: some
replica must be behind. What is not known to be missing somewhere is not called at risk.
"""

from dataclasses import dataclass, replace
from itertools import pairwise
from operator import attrgetter

from replication.protocol.ground.model import joined_ranges, ranges_without
from replication.protocol.ground.topic_partition import LENGTHENED, Replica, State
from replication.protocol.judgement.lacking_records import (
    held_long,
    holders_of,
    lacking_ranges,
    shared_ranges,
)
from replication.protocol.judgement.lost_by_a_leader import lost_by
from replication.protocol.judgement.promised_tiers import COMMITTED, by_tier, is_promised_from
from replication.protocol.judgement.reference import tail_is_known
from replication.protocol.judgement.who_may_lead import (
    CLEAN,
    Outlook,
    are_few,
    election_of,
    has_crashed,
    is_away,
    is_elected_short,
    kind_of_election,
    last_members,
    leads_on_empty,
    led_last,
    lets_it_return,
    may_return,
    must_return,
    must_wait_for,
    outlook,
    runs,
    trusted_replicas,
    waited_for,
)

TOLD_WITHIN_MS = 2_000
# Of a replica, what dangers rest on, but for the spans of its log.
_LOG = attrgetter(
    "log", "log.cuts", "log.log_start_offset", "log.log_end_offset", "captured", "tail_known",
    "stale", "stopped", "crashed", "seen_at", "came_back_with",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Danger:
    """Records [first_offset, end_offset) that one failure would lose.

    failure: leader_stops, leader_loses_its_tail, leader_loses_its_log (what is not in the tail),
    or, where nobody leads and it needs none, unclean_election or clean_election (of one of the
    ISR). broker: whom it strikes, or who would be elected. next_leader: who would lead without the
    records, None where the struck leader itself comes back. cause: the ledger's word for such a
    loss. holders: the other replicas known to hold the records. ends_when: what ends the danger.
    """

    first_offset: int
    end_offset: int
    tier: str
    failure: str
    broker: int
    next_leader: int | None
    cause: str
    holders: tuple[int, ...]
    ends_when: str


Known = dict[tuple[int, int, str, bool, str], list[Danger]]
"""By leader, heir, kind of election, whether the heir is trusted, and what losing a log is called
while the ISR is as it is."""


def dangers(state: State) -> list[Danger]:
    """Every danger in offset order; none where the version, the ISR or the leader's log is unknown.

    Sources: KIP-966 (last replica standing), KIP-106 (unclean election), the election rules.
    """
    return of_outlook(state, outlook(state), {})


def data_of(state: State, last: int | None) -> tuple[object, ...]:
    """What tells whether any log or promise has changed, or which log counts: equal only where
    none has. last: who led last.

    A log grows at its end or is cut, which it counts; of promises only the newest are lengthened.
    """
    history, replicas = state.history, state.replicas.values()
    leaders = state.registration.leader, last
    known = [state.replicas.get(-1 if leader is None else leader) for leader in leaders]
    return (
        leaders, *[None if r is None else r.high_watermark for r in known],
        *map(_LOG, replicas), *[len(r.log.spans) for r in replicas],
        len(history.truncations), len(history.unclean_starts),
        *[p.span for p in history.commitments[-LENGTHENED:]], len(history.commitments),
        *[p.span for p in history.acknowledgements[-LENGTHENED:]], len(history.acknowledgements),
        *[p.span for p in history.consumptions[-LENGTHENED:]], len(history.consumptions),
        *state.coverage.values(),
    )  # fmt: skip


def of_outlook(state: State, seen: Outlook | None, known: Known) -> list[Danger]:
    """Every danger of who may lead next, which `outlook` told; known: what was worked out since a
    log or a promise last changed."""
    if seen is None:
        return []
    assigned, heirs = seen
    if state.registration.leader is None:
        return _without_leader(state, assigned)
    leader = state.replicas.get(state.registration.leader)
    if leader is None or not state.log_is_known(leader):
        return []
    found = _of_elected(state, assigned, leader) + _of_its_return(state, assigned, leader)
    for failed, number, kind in heirs:
        holder, heir = state.replicas.get(failed), state.replicas.get(number)
        if holder is not None and heir is not None and state.log_is_known(holder):
            found += _of_heir(state, known, holder, heir, kind)
    if must_return(state, heirs):
        tail = _tail_of_the_last(state, assigned, leader)
        found += tail
        if leads_on_empty(state, assigned, leader.replica):
            found += _log_of_the_last(state, assigned, leader, tail)
    return sorted(found, key=_place)


def _place(danger: Danger) -> tuple[int, int, int]:
    return (danger.first_offset, danger.end_offset, danger.broker)


def _of_heir(state: State, known: Known, leader: Replica, heir: Replica, kind: str) -> list[Danger]:
    """What the leader has and who would be elected after it has not; once for the same logs."""
    number = heir.replica
    trusted = number in trusted_replicas(state)
    asked = (leader.replica, number, kind, trusted, _storage_cause(state))
    if asked not in known:
        known[asked] = _worked_out(state, leader, heir, kind)
    return known[asked]


def _worked_out(state: State, leader: Replica, heir: Replica, kind: str) -> list[Danger]:
    trusted = kind in CLEAN
    lacking = lacking_ranges(state, leader, heir)
    # By then it would be known that the heir has left the ISR and others commit alone.
    late = held_long(state, leader, heir, TOLD_WITHIN_MS)
    # What was promised to nobody is in flight on every healthy partition.
    in_flight = trusted and tail_is_known(state, heir) and not has_crashed(state, heir.replica)
    if not lacking or (in_flight and not is_promised_from(state, leader, lacking[0][0])):
        return []
    found = []
    for first, end in lacking:
        for a, b, tier in by_tier(state, leader, first, end):
            if in_flight and tier == "undetermined":
                continue
            if trusted and tier in COMMITTED:
                b = min(b, late)
                if a >= b:
                    continue
            cause = _clean_cause(state, heir, a, tier) if trusted else "unclean_election"
            found.append(
                Danger(
                    a, b, tier, "leader_stops", leader.replica, heir.replica,
                    cause, holders_of(state, leader, a, b),
                    f"broker {heir.replica} has fetched up to {b}",
                )
            )  # fmt: skip
    return found


def _tail_of_the_last(state: State, assigned: tuple[int, ...], leader: Replica) -> list[Danger]:
    """Nobody can cleanly follow the leader: what it alone holds is gone if it loses that."""
    others = [state.replicas.get(r) for r in assigned if r != leader.replica]
    known = [r for r in others if r is not None and state.log_is_known(r)]
    if others and not known:
        return []
    sole = [(s.first_offset, s.end_offset) for s in leader.log.spans]
    for other in known:
        lacking = lacking_ranges(state, leader, other)
        sole = [
            (max(a, x), min(b, y)) for a, b in sole for x, y in lacking if max(a, x) < min(b, y)
        ]
    return [
        Danger(
            a, b, tier, "leader_loses_its_tail", leader.replica, None,
            _storage_cause(state), (),
            f"another replica has fetched up to {b}, or broker {leader.replica} has flushed it",
        )
        for first, end in joined_ranges(sole)
        for a, b, tier in by_tier(state, leader, first, end)
    ]  # fmt: skip


def _log_of_the_last(
    state: State, assigned: tuple[int, ...], leader: Replica, tail: list[Danger]
) -> list[Danger]:
    """Nobody else can be elected: what was promised of the rest of its log is gone with its
    directory, though others hold it. While it runs, what was promised to nobody is in flight; once
    it is down that is gone as well: an unflushed tail, whoever holds it."""
    told = runs(state, leader.replica)
    others = [state.replicas.get(r) for r in assigned if r != leader.replica]
    held = [
        (r.replica, shared_ranges(state, leader, r))
        for r in others
        if r is not None and state.log_is_known(r)
    ]
    bounds = sorted({offset for _, ranges in held for each in ranges for offset in each})
    found: list[tuple[int, int, str, tuple[int, ...]]] = []
    for span in leader.log.spans:
        rest = [(span.first_offset, span.end_offset)]
        for danger in tail:
            rest = ranges_without(rest, danger.first_offset, danger.end_offset)
        for first, end, tier in (t for a, b in rest for t in by_tier(state, leader, a, b)):
            if told and tier == "undetermined":
                continue
            inside = [o for o in bounds if first < o < end]
            for a, b in pairwise([first, *inside, end]):
                holders = tuple(
                    n for n, ranges in held if any(x <= a and b <= y for x, y in ranges)
                )
                if found and (found[-1][1], *found[-1][2:]) == (a, tier, holders):
                    a = found.pop()[0]
                found.append((a, b, tier, holders))
    return [
        Danger(
            a, b, tier, "leader_loses_its_log", leader.replica, None,
            _storage_cause(state), holders, "another replica is in the ISR",
        )
        for a, b, tier, holders in found
    ]  # fmt: skip


def _without_leader(state: State, assigned: tuple[int, ...]) -> list[Danger]:
    """What each replica that could be elected lacks of the last leader's log."""
    led = led_last(state)
    last = None if led is None else state.replicas.get(led)
    if last is None or not state.log_is_known(last):
        return []
    trusted, found = trusted_replicas(state), list[Danger]()
    for replica in assigned:
        other = state.replicas.get(replica)
        if other is not None and other is not last:
            found += _of_candidate(state, last, other, replica in trusted)
    if is_elected_short(state, assigned, last.replica):
        found += [
            Danger(
                a, b, tier, election_of(trusted, last.replica), last.replica, last.replica,
                _storage_cause(state), holders_of(state, last, a, b), "another replica leads",
            )
            for a, b, tier in lost_by(state, assigned, last)
        ]  # fmt: skip
    for replica in waited_for(state, assigned, last.replica):
        alone = state.replicas.get(replica)
        if alone is None or not state.log_is_known(alone):
            continue
        of_it = _tail_of_the_last(state, assigned, alone)
        if leads_on_empty(state, assigned, replica):
            of_it += _log_of_the_last(state, assigned, alone, of_it)
        if replica != last.replica and not must_wait_for(state, assigned, replica):
            # What the last leader has not, it may never have been given.
            of_it = [each for each in of_it if last.replica in each.holders]
        # What the last leader had removed is nobody's loss.
        start = last.log.log_start_offset
        found += [
            replace(each, first_offset=max(each.first_offset, start))
            for each in of_it
            if each.end_offset > start
        ]
    return sorted(found, key=_place)


def _of_elected(state: State, assigned: tuple[int, ...], elected: Replica) -> list[Danger]:
    """What the last leader has and the one elected after it, which has not begun, has not; and
    what it alone has, where it may lead again."""
    led = led_last(state)
    last = None if led is None or led == elected.replica else state.replicas.get(led)
    if last is None or not state.log_is_known(last):
        return []
    found = _of_candidate(state, last, elected, kind_of_election(state) == "clean_election")
    if may_return(state, elected.replica, last.replica):
        found += _tail_of_the_last(state, assigned, last)
    return found


def _of_its_return(state: State, assigned: tuple[int, ...], leader: Replica) -> list[Danger]:
    """What a leader that is away came out without of what it had: another replica holds it."""
    if not is_away(state):
        return []
    lost = lost_by(state, assigned, leader)
    return [
        Danger(
            a, b, tier, failure, struck, leader.replica, _storage_cause(state),
            holders_of(state, leader, a, b), "another replica leads",
        )
        for failure, struck in lets_it_return(state, assigned, leader.replica)
        for a, b, tier in lost
    ]  # fmt: skip


def _of_candidate(state: State, last: Replica, other: Replica, trusted: bool) -> list[Danger]:
    """What the last leader has and one that may be elected after it has not."""
    kind = "clean_election" if trusted else "unclean_election"
    back = {last.replica} if trusted else trusted_replicas(state)
    return [
        Danger(
            a, b, tier, kind, other.replica, other.replica,
            _clean_cause(state, other, a, tier) if trusted else kind,
            holders_of(state, other, a, b),
            f"one of {', '.join(map(str, sorted(back)))} leads again",
        )
        for first, end in lacking_ranges(state, last, other)
        for a, b, tier in by_tier(state, last, first, end)
    ]  # fmt: skip


def _clean_cause(state: State, heir: Replica, first: int, tier: str) -> str:
    """The ledger's word for what a leader from the ISR begins without, from that offset on.

    A member had what was committed: one that was seen beside a broker without it has lost it, if
    no other record stands there: then it had joined with that one.
    """
    if tier in COMMITTED and any(s.first_offset <= first < s.end_offset for s in heir.log.spans):
        return "early_isr_join"
    if _has_cut_to_its_mark(state, heir.replica, first):
        return "truncate_to_high_watermark"
    came_back = heir.came_back_with is not None and heir.came_back_with <= first
    had_more = (heir.known_log_end_offset or 0) > first
    committed = tier in COMMITTED
    if came_back or had_more or (committed and not tail_is_known(state, heir)):
        return _storage_cause(state)
    return "premature_high_watermark" if committed else "acks_one_failover"


def _has_cut_to_its_mark(state: State, replica: int, offset: int) -> bool:
    """Whether the last cut of a replica took the record, for its high watermark was below it."""
    cuts = (t for t in reversed(state.history.truncations) if t.replica == replica)
    last = next(cuts, None)
    if last is None or last.reason != "high_watermark":
        return False
    return any(s.first_offset <= offset < s.end_offset for s in last.dropped)


def _storage_cause(state: State) -> str:
    """The ledger's word for what a log is lost with."""
    return "last_replica_standing" if are_few(state, last_members(state)) else "storage_loss"


def other_causes(state: State, danger: Danger) -> list[str]:
    """What else the ledger may call such a loss: until the failure is decided, the controller may
    take those out of the ISR who are down already; what nobody is known to have answered for, the
    heir may have never had, or have lost with what it had; and where nobody knows whether unclean
    elections are allowed (it was changed in use), another may lead without what one alone holds."""
    found = []
    if danger.cause == "acks_one_failover" and _has_lost_some(state, danger.next_leader):
        found.append(_storage_cause(state))
    elif danger.cause not in ("storage_loss", "last_replica_standing"):
        return []
    stay = danger.broker if danger.next_leader is None else danger.next_leader
    left = {r for r in last_members(state) - {danger.broker} if runs(state, r)} | {stay}
    if "storage_loss" in (danger.cause, *found) and are_few(state, left):
        found.append("last_replica_standing")
    if danger.next_leader is not None and danger.tier not in COMMITTED:
        found += [] if danger.cause == "acks_one_failover" else ["acks_one_failover"]
    unknown = state.settings.unclean_leader_election is None
    if danger.failure == "leader_loses_its_tail" and unknown:
        found.append("unclean_election")
    return found


def _has_lost_some(state: State, heir: int | None) -> bool:
    """Whether a member of the ISR lacks what was committed: more may be gone with that."""
    led, replica = led_last(state), state.replicas.get(-1 if heir is None else heir)
    last = None if led is None else state.replicas.get(led)
    if replica is None or last is None or not state.log_is_known(replica):
        return False
    end = replica.log.log_end_offset
    return (last.high_watermark or 0) > end or state.history.promised_up_to() > end
