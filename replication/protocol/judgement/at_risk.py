"""Which records one more failure would cost: who holds them, what would lose them, what ends it.

A run of records of the current leader's log is at risk when one failure that is possible in this
evidence gives the partition a leader that is known to lack the run, by the election rules of the
declared version and the settings in force, or leaves the run on no replica. Possible failures: the
leader stops for good; the leader comes back from a power failure without what was not flushed;
where nobody else can be elected, the leader comes back with an emptied directory, and whoever
follows cuts to that.
Where the partition has no leader, or one that was elected and never began, no further failure is
needed: whoever is elected lacks what it lacks. A setting alone puts nothing at risk: some replica
must be behind. What is not known to be missing somewhere is not called at risk.

A follower that runs on may have fetched since its log was last read; one that is known to have
crashed has not. Outside the ISR it counts as lacking what it lacked when that was not before the
leader's log was first read to hold it (`seen_at`, `sightings`; two machines' clocks): it is as of
then. A member of the ISR has to lack for half a second what the leader has, while there is a
leader.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from math import inf
from operator import attrgetter

from replication.protocol.ground.model import Span, same_record, touching, uncovered
from replication.protocol.ground.risks import Failure
from replication.protocol.ground.topic_partition import LENGTHENED, LeaderTerm, Replica, State
from replication.protocol.ground.versions import Behaviour
from replication.protocol.judgement.reference import log_is_covered, tail_is_known
from replication.protocol.judgement.term_starts import UNSURE_KINDS
from replication.protocol.judgement.unseen_terms import never_began
from replication.protocol.rules.election_kraft import election_kraft
from replication.protocol.rules.election_zookeeper import Election, election_zookeeper
from replication.protocol.rules.eligible_leader_replicas import eligible_leader_replicas

# Tiers as in the loss ledger, the strongest promise first.
_TIERS = (
    ("consumed", "consumed"),
    ("acks_all", "acknowledged_by_isr"),
    ("acks_1", "acknowledged_by_leader"),
)
# A member of the ISR that lacks what its leader has had for longer does not keep up.
FETCHED_WITHIN_MS = 500
TOLD_WITHIN_MS = 2_000
_CLEAN = ("clean", "eligible_leader_replica")
# Of a replica, what dangers rest on, but for the spans of its log.
_LOG = attrgetter(
    "log", "log.cuts", "log.log_start_offset", "log.log_end_offset", "captured", "tail_known",
    "stale", "stopped", "crashed", "seen_at", "came_back_with",
)  # fmt: skip
_COMMITTED = ("acknowledged_by_isr", "committed", "consumed")


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


Outlook = tuple[tuple[int, ...], list[tuple[int, str]]]
"""The assignment, and who may lead once the leader is gone with the kind of election."""
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
    for number, kind in heirs:
        heir = state.replicas.get(number)
        if heir is not None:
            found += _of_heir(state, known, leader, heir, kind)
    if _must_return(state, heirs):
        tail = _tail_of_the_last(state, assigned, leader)
        found += tail
        if _leads_on_empty(state, assigned, leader.replica):
            found += _log_of_the_last(state, assigned, leader, tail)
    return sorted(found, key=_place)


def _place(danger: Danger) -> tuple[int, int, int]:
    return (danger.first_offset, danger.end_offset, danger.broker)


def failures(state: State, seen: Outlook | None) -> list[Failure]:
    """Every failure that a danger could name now, whether records hang on it or not: (failure,
    broker, next leader, whether that would be an unclean election)."""
    if seen is None:
        return []
    assigned, heirs = seen
    leader, last = state.registration.leader, led_last(state)
    if leader is None:
        trusted = _trusted(state)
        found: list[Failure] = []
        back = [] if last is None else _waited_for(state, assigned, last)
        for r in assigned:
            if r in back:
                found.append(("leader_loses_its_tail", r, None, False))
                if _leads_on_empty(state, assigned, r):
                    found.append(("leader_loses_its_log", r, None, False))
            if r == last and r in back:
                if _is_elected_short(state, assigned, r):
                    found.append((_election_of(trusted, r), r, r, False))
                continue
            if r not in trusted:
                found.append(("unclean_election", r, r, True))
            else:
                found.append(("clean_election", r, r, False))
        return found
    found = [("leader_stops", leader, heir, kind not in _CLEAN) for heir, kind in heirs]
    if is_away(state):
        found += [(*each, leader, False) for each in _lets_it_return(state, assigned, leader)]
    if _must_return(state, heirs):
        found.append(("leader_loses_its_tail", leader, None, False))
        if _leads_on_empty(state, assigned, leader):
            found.append(("leader_loses_its_log", leader, None, False))
    if last not in (None, leader):
        kind = _kind_of_election(state)
        found.append((kind, leader, leader, kind == "unclean_election"))
        if _may_return(state, leader, last):
            found.append(("leader_loses_its_tail", last, None, False))
    return found


def led_last(state: State) -> int | None:
    """Who led last: of those that were elected, not one that is known never to have begun."""
    terms = state.history.terms
    led = (t for t in reversed(terms) if not never_began(state, t) or _wrote_in(state, t))
    return next((t.leader for t in led), terms[-1].leader if terms else None)


def _wrote_in(state: State, term: LeaderTerm) -> bool:
    """Whether its leader has an epoch file that names that term, whatever its lines say."""
    replica = state.replicas.get(term.leader)
    return replica is not None and replica.filed_epoch == term.leader_epoch


def _must_return(state: State, heirs: list[tuple[int, str]]) -> bool:
    """Whether no member of the ISR that runs can take over: who else is to be elected may be down
    as well, and an eligible one that stopped uncleanly is eligible no more."""
    return not any(kind == "clean" and _runs(state, heir) for heir, kind in heirs)


def _leads_on_empty(state: State, assigned: tuple[int, ...], last: int) -> bool:
    """Whether nobody but that broker, back with an emptied directory, may be elected, while others
    would cut to what it has.

    An eligible replica that crashed is waited for still: until it is back nobody leads (KIP-966).
    """
    waited_for = not _is_unclean_allowed(state) and _able(state) <= {last}
    return len(assigned) > 1 and (waited_for or _all_are_away(state, assigned))


def _all_are_away(state: State, assigned: tuple[int, ...]) -> bool:
    """Whether all that may be elected, several, are known to be down: whoever is back first leads,
    with what it has by then. With eligible replicas one may be waited for (KIP-966); a KRaft
    controller takes one member after another out of the ISR, and waits for the last."""
    behaviour, able = state.behaviour(), _able(state)
    if behaviour is None or behaviour.eligible_leader_replicas:
        return False
    if state.settings.unclean_leader_election is True:
        able = {*assigned}
    elif len(able) == 1 or (state.settings.controller or behaviour.controller) == "kraft":
        return False
    return not any(_runs(state, r) for r in able)


def _able(state: State) -> set[int]:
    """Who may be elected once it is back: members and eligible replicas."""
    registration = state.registration
    return {*(registration.isr or ()), *registration.eligible_leader_replicas}


def outlook(state: State) -> Outlook | None:
    """The assignment, and who may lead once the leader is gone; None where that is not known."""
    registration, behaviour = state.registration, state.behaviour()
    assigned = state.settings.assigned_replicas
    if behaviour is None or assigned is None or registration.isr is None or state.settings.deleted:
        return None
    if registration.leader is None:
        return assigned, []
    return assigned, _heirs(state, behaviour, assigned, registration.leader)


def _trusted(state: State) -> set[int]:
    """Who may be elected without doubt."""
    return {*(state.registration.isr or ()), *_eligible(state)}


def _eligible(state: State) -> set[int]:
    """Of the eligible leader replicas those that stay so when they are back: who registers after a
    stop that was not clean is taken out first (KIP-966)."""
    eligible = set(state.registration.eligible_leader_replicas)
    return {r for r in eligible if not _has_crashed(state, r)}


def _leads_again(state: State, last: int) -> bool:
    """Whether the last leader may be elected: as a member, as the last known leader, once nobody
    else is eligible, or as anybody may be."""
    return last in _able(state) or state.settings.unclean_leader_election is True


def _may_return(state: State, elected: int, last: int) -> bool:
    """Whether who led last may lead next: who was elected after it never began, and is down."""
    return not _runs(state, elected) and _leads_again(state, last)


def _of_heir(state: State, known: Known, leader: Replica, heir: Replica, kind: str) -> list[Danger]:
    """What the leader has and who would be elected after it has not; once for the same logs."""
    number = heir.replica
    trusted = number in _trusted(state)
    asked = (leader.replica, number, kind, trusted, _storage_cause(state))
    if asked not in known:
        known[asked] = _worked_out(state, leader, heir, kind)
    return known[asked]


def _worked_out(state: State, leader: Replica, heir: Replica, kind: str) -> list[Danger]:
    trusted = kind in _CLEAN
    lacking = _lacking(state, leader, heir)
    # By then it would be known that the heir has left the ISR and others commit alone.
    late = _held_long(state, leader, heir, TOLD_WITHIN_MS)
    # What was promised to nobody is in flight on every healthy partition.
    in_flight = trusted and tail_is_known(state, heir) and not _has_crashed(state, heir.replica)
    if not lacking or (in_flight and not _is_promised_from(state, leader, lacking[0][0])):
        return []
    found = []
    for first, end in lacking:
        for a, b, tier in _by_tier(state, leader, first, end):
            if in_flight and tier == "undetermined":
                continue
            if trusted and tier in _COMMITTED:
                b = min(b, late)
                if a >= b:
                    continue
            cause = _clean_cause(state, heir, a, tier) if trusted else "unclean_election"
            found.append(
                Danger(
                    a, b, tier, "leader_stops", leader.replica, heir.replica,
                    cause, _holders(state, leader, a, b),
                    f"broker {heir.replica} has fetched up to {b}",
                )
            )  # fmt: skip
    return found


def _heirs(
    state: State, behaviour: Behaviour, assigned: tuple[int, ...], failed: int
) -> list[tuple[int, str]]:
    """Who may lead once the leader is gone, and by which kind of election; nobody: it must return.

    Brokers that are known to be down may be taken for alive still, or come back first: one outside
    the ISR leads only where nobody else can, and unclean elections are allowed.
    """
    up = frozenset(r for r in assigned if r != failed and not _is_down(state, r))
    trusted = _trusted(state)
    back = up | frozenset(r for r in assigned if r in trusted and r != failed)
    found: list[tuple[int, str]] = []
    # One outside the ISR may have died unseen: then the next one is elected.
    unseen = [up - {r} for r in assigned if r in up - trusted and not state.is_traced(r)]
    # Where nobody who runs can take over, it is one of those that are down, if it is back first.
    running = frozenset(r for r in up if not _has_crashed(state, r))
    alone = _election(state, behaviour, assigned, failed, running)
    nobody = alone is None or alone.leader is None
    returning = (
        [running | {r} for r in assigned if r != failed and r not in running] if nobody else []
    )
    for alive in dict.fromkeys((up, back, *unseen, *returning)):
        election = _election(state, behaviour, assigned, failed, alive)
        if election is not None and election.leader is not None:
            heir = (election.leader, election.kind or "unknown")
            found += [heir] if heir not in found else []
    return found


def _election(
    state: State,
    behaviour: Behaviour,
    assigned: tuple[int, ...],
    failed: int,
    alive: frozenset[int],
) -> Election | None:
    """What the controller decides when the leader is gone."""
    registration, settings = state.registration, state.settings
    isr = frozenset(registration.isr or ())
    unclean = settings.unclean_leader_election is True
    if (settings.controller or behaviour.controller) == "zookeeper":
        return election_zookeeper("offline", assigned, isr, alive, unclean, leader=failed)
    keeps = not behaviour.eligible_leader_replicas and isr == {failed}
    left = isr if keeps else isr - {failed}
    eligible = frozenset(_eligible(state))
    if behaviour.eligible_leader_replicas:
        minimum = min(settings.min_insync_replicas or 1, len(assigned))
        eligible = eligible_leader_replicas(isr, left, eligible, minimum).replicas
    return election_kraft(
        "unclean" if unclean else "online", assigned, left, alive, behaviour,
        leader=failed, eligible=eligible,
    )  # fmt: skip


def _has_crashed(state: State, replica: int) -> bool:
    known = state.replicas.get(replica)
    return known is not None and known.crashed


def _is_down(state: State, replica: int) -> bool:
    known = state.replicas.get(replica)
    return known is not None and known.stopped is True


def _tail_of_the_last(state: State, assigned: tuple[int, ...], leader: Replica) -> list[Danger]:
    """Nobody can cleanly follow the leader: what it alone holds is gone if it loses that."""
    others = [state.replicas.get(r) for r in assigned if r != leader.replica]
    known = [r for r in others if r is not None and state.log_is_known(r)]
    if others and not known:
        return []
    sole = [(s.first_offset, s.end_offset) for s in leader.log.spans]
    for other in known:
        lacking = _lacking(state, leader, other)
        sole = [
            (max(a, x), min(b, y)) for a, b in sole for x, y in lacking if max(a, x) < min(b, y)
        ]
    return [
        Danger(
            a, b, tier, "leader_loses_its_tail", leader.replica, None,
            _storage_cause(state), (),
            f"another replica has fetched up to {b}, or broker {leader.replica} has flushed it",
        )
        for first, end in _joined(sole)
        for a, b, tier in _by_tier(state, leader, first, end)
    ]  # fmt: skip


def _log_of_the_last(
    state: State, assigned: tuple[int, ...], leader: Replica, tail: list[Danger]
) -> list[Danger]:
    """Nobody else can be elected: what was promised of the rest of its log is gone with its
    directory, though others hold it. Where all are down so is what was promised to nobody as far as
    is known: an unflushed tail, whoever holds it."""
    told = not _all_are_away(state, assigned)
    others = [state.replicas.get(r) for r in assigned if r != leader.replica]
    held = [
        (r.replica, _shared(state, leader, r))
        for r in others
        if r is not None and state.log_is_known(r)
    ]
    bounds = sorted({offset for _, ranges in held for each in ranges for offset in each})
    found: list[tuple[int, int, str, tuple[int, ...]]] = []
    for span in leader.log.spans:
        rest = [(span.first_offset, span.end_offset)]
        for danger in tail:
            rest = _without(rest, danger.first_offset, danger.end_offset)
        for first, end, tier in (t for a, b in rest for t in _by_tier(state, leader, a, b)):
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


def _shared(state: State, holder: Replica, other: Replica) -> list[tuple[int, int]]:
    """The offset ranges of one log that the other is known to hold as well."""
    alike = _begin_alike(state, holder, other)
    begun = holder.log.spans[:alike]
    # Where both have a hole nothing is asked.
    found = [(begun[0].first_offset, begun[-1].end_offset)] if begun else []
    theirs = other.log.spans[alike:]
    for span in holder.log.spans[alike:]:
        for held in touching(theirs, span.first_offset, span.end_offset):
            first = max(span.first_offset, held.first_offset)
            end = min(span.end_offset, held.end_offset)
            if first < end and same_record(span, held) is not False:
                found.append((first, end))
    return _joined(found)


def _without_leader(state: State, assigned: tuple[int, ...]) -> list[Danger]:
    """What each replica that could be elected lacks of the last leader's log."""
    led = led_last(state)
    last = None if led is None else state.replicas.get(led)
    if last is None or not state.log_is_known(last):
        return []
    trusted, found = _trusted(state), list[Danger]()
    for replica in assigned:
        other = state.replicas.get(replica)
        if other is not None and other is not last:
            found += _of_candidate(state, last, other, replica in trusted)
    if _is_elected_short(state, assigned, last.replica):
        found += [
            Danger(
                a, b, tier, _election_of(trusted, last.replica), last.replica, last.replica,
                _storage_cause(state), _holders(state, last, a, b), "another replica leads",
            )
            for a, b, tier in _lost_by(state, assigned, last)
        ]  # fmt: skip
    for replica in _waited_for(state, assigned, last.replica):
        alone = state.replicas.get(replica)
        if alone is None or not state.log_is_known(alone):
            continue
        of_it = _tail_of_the_last(state, assigned, alone)
        if _leads_on_empty(state, assigned, replica):
            of_it += _log_of_the_last(state, assigned, alone, of_it)
        if replica != last.replica and not _must_wait_for(state, assigned, replica):
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


def _waited_for(state: State, assigned: tuple[int, ...], last: int) -> list[int]:
    """Who may have to return to lead: the last leader; a member without which nobody may be
    elected, whoever led last; whoever is back first, where all are down. An eligible replica that
    lost its log is that no more (KIP-966)."""
    first = _all_are_away(state, assigned)
    return [
        r
        for r in assigned
        if ((first or r == last) and _leads_again(state, r)) or _must_wait_for(state, assigned, r)
    ]


def _must_wait_for(state: State, assigned: tuple[int, ...], replica: int) -> bool:
    """Whether it is a member without which nobody may be elected."""
    able, members = _able(state), state.registration.isr or ()
    return able == {replica} and replica in members and _leads_on_empty(state, assigned, replica)


def _of_elected(state: State, assigned: tuple[int, ...], elected: Replica) -> list[Danger]:
    """What the last leader has and the one elected after it, which has not begun, has not; and
    what it alone has, where it may lead again."""
    led = led_last(state)
    last = None if led is None or led == elected.replica else state.replicas.get(led)
    if last is None or not state.log_is_known(last):
        return []
    found = _of_candidate(state, last, elected, _kind_of_election(state) == "clean_election")
    if _may_return(state, elected.replica, last.replica):
        found += _tail_of_the_last(state, assigned, last)
    return found


def is_away(state: State) -> bool:
    """Whether who is registered as the leader ended, and has not led again: another is elected once
    that is noticed; it leads on where nobody else is, or if it is back before."""
    terms, leader = state.history.terms, state.registration.leader
    replica = None if leader is None else state.replicas.get(leader)
    if replica is None or not terms or replica.role is not None:
        return False
    return terms[-1].leader == leader == led_last(state) and terms[-1].ended == "stopped"


def _lets_it_return(state: State, assigned: tuple[int, ...], leader: int) -> list[tuple[str, int]]:
    """By which failure a leader that is away leads on, and whom it strikes: the only other member
    that runs; none is needed where no other runs."""
    if leader not in (state.registration.isr or ()):
        return []
    others = [r for r in assigned if r != leader and r in _trusted(state) and _runs(state, r)]
    if len(others) > 1:
        return []
    return [("leader_stops", others[0])] if others else [("clean_election", leader)]


def _of_its_return(state: State, assigned: tuple[int, ...], leader: Replica) -> list[Danger]:
    """What a leader that is away came out without of what it had: another replica holds it."""
    if not is_away(state):
        return []
    lost = _lost_by(state, assigned, leader)
    return [
        Danger(
            a, b, tier, failure, struck, leader.replica, _storage_cause(state),
            _holders(state, leader, a, b), "another replica leads",
        )
        for failure, struck in _lets_it_return(state, assigned, leader.replica)
        for a, b, tier in lost
    ]  # fmt: skip


def _is_elected_short(state: State, assigned: tuple[int, ...], last: int) -> bool:
    """Whether who led last may be elected with what it has left, while nobody leads: as a member,
    as all that may be elected, or first of all that are down. Not while another is elected at once.
    """
    trusted, anybody = _trusted(state), _is_unclean_allowed(state)
    if any(r != last and (anybody or r in trusted) and _runs(state, r) for r in assigned):
        return False
    return last in (state.registration.isr or ()) or _leads_on_empty(state, assigned, last)


def _is_unclean_allowed(state: State) -> bool:
    """By what is set, else by the release's default."""
    behaviour, unclean = state.behaviour(), state.settings.unclean_leader_election
    return (
        bool(behaviour is None or behaviour.unclean_leader_election) if unclean is None else unclean
    )


def _election_of(trusted: set[int], replica: int) -> str:
    return "clean_election" if replica in trusted else "unclean_election"


def _lost_by(
    state: State, assigned: tuple[int, ...], leader: Replica
) -> list[tuple[int, int, str]]:
    """(first, end, tier) of what another holds of what who led last had, and has no more."""
    others = [state.replicas.get(r) for r in assigned if r != leader.replica]
    known = [r for r in others if r is not None and state.log_is_known(r)]
    if not known:
        return []
    trusted = _trusted(state)
    holder = max(known, key=lambda r: (r.replica in trusted, r.log.log_end_offset))
    # What a leader had removed is nobody's loss.
    removed = max((r.below for r in state.history.removals), default=0)
    led = next((t for t in reversed(state.history.terms) if t.leader == leader.replica), None)
    present = state.registration.leader_epoch if led is None else led.leader_epoch
    # Who led in one epoch after the other wrote all that is of these; in all, whatever there is.
    own = {t.leader_epoch for t in state.history.terms if t.leader == leader.replica}
    own -= {t.leader_epoch for t in state.history.terms if t.leader != leader.replica}
    first_own = next((e for e in range(present, -1, -1) if e - 1 not in own), present)
    # What it began its last term without it had lost by then.
    started = inf if led is None or led.start_offset is None else led.start_offset
    spans_of = list[Span] if first_own == present == 0 else partial(_with_epochs, holder)
    return [
        (a, b, tier)
        for first, end in _without(_lacking(state, holder, leader), 0, removed)
        for span in spans_of(touching(holder.log.spans, first, end))
        for a, b, tier in _by_tier(
            state, holder, max(first, span.first_offset), min(end, span.end_offset)
        )
        if _it_had(present, span.leader_epoch, tier)
        or (_is_of(span, first_own, present) and (first_own == present or b <= started))
    ]


def _is_of(span: Span, first_epoch: int, last_epoch: int) -> bool:
    """Whether all of a span was written in these epochs."""
    if span.leader_epoch is None:
        return first_epoch == 0
    return first_epoch <= span.leader_epoch <= last_epoch


def _with_epochs(replica: Replica, spans: list[Span]) -> list[Span]:
    """Spans of a log; what compaction hides the epoch of is of the last one that its epoch file has
    from where that begins."""
    last = replica.epoch_entries[-1] if replica.epoch_entries else None
    found: list[Span] = []
    for span in spans:
        if span.leader_epoch is not None or last is None or span.end_offset <= last.start_offset:
            found.append(span)
            continue
        start = max(span.first_offset, last.start_offset)
        if span.first_offset < start:
            found.append(Span(span.first_offset, start, None, None))
        found.append(Span(start, span.end_offset, last.leader_epoch, None))
    return found


def _it_had(present: int, leader_epoch: int | None, tier: str) -> bool:
    """Whether who led last, in that epoch, had a record that another has: it wrote it, or led with
    it. leader_epoch: the record's; None: of no later one than that, as far as is known."""
    if leader_epoch == present:
        return True
    return (leader_epoch is None or leader_epoch < present) and tier in _COMMITTED


def _kind_of_election(state: State) -> str:
    """The failure's word for how the present leader was elected."""
    unclean = state.history.terms[-1].election_kind == "unclean"
    return "unclean_election" if unclean else "clean_election"


def _of_candidate(state: State, last: Replica, other: Replica, trusted: bool) -> list[Danger]:
    """What the last leader has and one that may be elected after it has not."""
    kind = "clean_election" if trusted else "unclean_election"
    back = {last.replica} if trusted else _trusted(state)
    return [
        Danger(
            a, b, tier, kind, other.replica, other.replica,
            _clean_cause(state, other, a, tier) if trusted else kind,
            _holders(state, other, a, b),
            f"one of {', '.join(map(str, sorted(back)))} leads again",
        )
        for first, end in _lacking(state, last, other)
        for a, b, tier in _by_tier(state, last, first, end)
    ]  # fmt: skip


def _clean_cause(state: State, heir: Replica, first: int, tier: str) -> str:
    """The ledger's word for what a leader from the ISR begins without, from that offset on.

    A member had what was committed: one that was seen beside a broker without it has lost it, if
    no other record stands there: then it had joined with that one.
    """
    if tier in _COMMITTED and any(s.first_offset <= first < s.end_offset for s in heir.log.spans):
        return "early_isr_join"
    if _has_cut_to_its_mark(state, heir.replica, first):
        return "truncate_to_high_watermark"
    came_back = heir.came_back_with is not None and heir.came_back_with <= first
    had_more = (heir.known_log_end_offset or 0) > first
    committed = tier in _COMMITTED
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
    return "last_replica_standing" if _are_few(state, _members(state)) else "storage_loss"


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
    left = {r for r in _members(state) - {danger.broker} if _runs(state, r)} | {stay}
    if "storage_loss" in (danger.cause, *found) and _are_few(state, left):
        found.append("last_replica_standing")
    if danger.next_leader is not None and danger.tier not in _COMMITTED:
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


def _members(state: State) -> set[int]:
    return set(state.registration.last_members or ())


def _runs(state: State, replica: int) -> bool:
    return not (_is_down(state, replica) or _has_crashed(state, replica))


def _are_few(state: State, members: set[int]) -> bool:
    """Whether an ISR of these is below min.insync.replicas."""
    minimum = min(
        state.settings.min_insync_replicas or 1, len(state.settings.assigned_replicas or ())
    )
    return 0 < len(members) < minimum


def _lacking(state: State, holder: Replica, other: Replica) -> list[tuple[int, int]]:
    """The offset ranges of one log whose records the other is known not to hold."""
    until = _held_until(state, holder, other)
    alike = _begin_alike(state, holder, other)
    if not until:
        return []
    start, missing = other.log.log_start_offset, list[tuple[int, int]]()
    theirs = other.log.spans[alike:]
    for span in holder.log.spans[alike:]:
        position, end = max(span.first_offset, start), min(span.end_offset, until)
        for held in touching(theirs, span.first_offset, end):
            first = max(span.first_offset, held.first_offset)
            if held.first_offset >= end:
                break
            if held.end_offset <= first:
                continue
            if position < held.first_offset:
                missing.append((position, held.first_offset))
            if same_record(span, held) is False:
                missing.append((first, min(end, held.end_offset)))
            position = max(position, held.end_offset)
        if position < end:
            missing.append((position, end))
    known_by_then = _of_what_it_heard(state, other)
    if known_by_then is not None:
        latest, below = known_by_then
        anew = _written_without(state, holder, latest)
        if anew is not None and max(start, anew) < min(until, below):
            missing.append((max(start, anew), int(min(until, below))))
    return _joined(missing)


def _of_what_it_heard(state: State, other: Replica) -> tuple[int, float] | None:
    """(leader epoch, offset): of later terms than that its log has nothing below that offset.

    One that is away has heard of no later ones. One whose epoch file was read had none of later
    ones than that names, by then: an epoch is filed before its first record is appended. One that
    is back has what it came back with, as far as it has not cut that; that a follower cuts where
    it begins to follow, its line tells.
    """
    held = [other.filed_epoch, *(s.leader_epoch for s in other.log.spans)]
    if other.role is None or not _runs(state, other.replica):
        latest = max((e for e in (other.leader_epoch, *held) if e is not None), default=None)
        return None if latest is None else (latest, inf)
    if other.filed_epoch is not None:
        return (max(e for e in held if e is not None), inf)
    starts = (s for s in reversed(state.history.unclean_starts) if s.replica == other.replica)
    back = next(starts, None)
    if back is None or back.leader_epoch is None or not log_is_covered(state, other.replica):
        return None
    cuts = [
        cut.to_offset
        for cut in state.history.truncations
        if cut.replica == other.replica and cut.at > back.at
    ]
    return (back.leader_epoch, min(back.log_end_offset, *cuts)) if cuts else None


def _written_without(state: State, holder: Replica, latest: int) -> int | None:
    """From where on the log of who led last holds what was written in terms after `latest`: where a
    row of terms began whose leaders had the records of the one before. Records bear no epoch before
    KIP-98, so two logs may look alike there."""
    start, terms = None, state.history.terms
    led = [t for t in terms if not never_began(state, t) or _wrote_in(state, t)]
    if not led or led[-1].leader != holder.replica:
        return None
    for term in reversed(led):
        if term.leader_epoch <= latest:
            break
        if term.start_offset is not None:
            start = term.start_offset if start is None else min(start, term.start_offset)
        if term.election_kind in UNSURE_KINDS:
            break
    return start


def _begin_alike(state: State, holder: Replica, other: Replica) -> int:
    """How many spans both logs begin with alike: most of what two replicas hold.

    Counted on from where it was counted to before, as long as neither log has been cut since.
    """
    notes, between = state.risks.notes.alike, (holder.replica, other.replica)
    mine, theirs = holder.log, other.log
    known, alike = notes.get(between), 0
    if known is not None and known[0] is mine and known[2] is theirs:
        alike = known[4] if (known[1], known[3]) == (mine.cuts, theirs.cuts) else 0
    fewer = min(len(mine.spans), len(theirs.spans))
    while alike < fewer and mine.spans[alike] == theirs.spans[alike]:
        alike += 1
    # The last span of a log may still grow.
    notes[between] = (mine, mine.cuts, theirs, theirs.cuts, min(alike, max(fewer - 1, 0)))
    return alike


def _held_until(state: State, holder: Replica, other: Replica) -> int:
    """Up to where what the other's log does not show counts as missing there; 0: nowhere."""
    if not state.log_is_known(other):
        return 0
    # Of a partition without a leader, or of one that is down, nobody fetches.
    fetches = state.registration.leader is not None and other.replica in _trusted(state)
    fetches = fetches and _runs(state, holder.replica)
    return _held_long(state, holder, other, FETCHED_WITHIN_MS if fetches else 0)


def _held_long(state: State, holder: Replica, other: Replica, milliseconds: int) -> int:
    """Where the holder's log was seen to end so long before the other's was read the last time;
    where it ends, if the other's end is known without that: it has ended, or is back and follows
    nobody yet by its lines."""
    waits = other.role is None and other.leader_epoch is not None
    waits = waits and log_is_covered(state, other.replica)
    if tail_is_known(state, other) or _has_crashed(state, other.replica) or waits:
        return holder.log.log_end_offset
    started = other.stale and other.tail_known
    if other.seen_at is None or (other.stale and not started) or holder.stale:
        return 0
    # What it had when it came back from a crash is no matter of how quickly it fetches.
    by = other.seen_at - (0 if started and other.clean_start is False else milliseconds)
    return max((end for since, end in holder.sightings if since <= by), default=0)


def _joined(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    result: list[tuple[int, int]] = []
    for first, end in sorted(ranges):
        if result and first <= result[-1][1]:
            result[-1] = (result[-1][0], max(end, result[-1][1]))
        else:
            result.append((first, end))
    return result


def _holders(state: State, without: Replica, first: int, end: int) -> tuple[int, ...]:
    """The other replicas whose known logs reach over the whole range."""
    return tuple(
        number
        for number, replica in sorted(state.replicas.items())
        if replica is not without
        and state.log_is_known(replica)
        and not uncovered(first, end, touching(replica.log.spans, first, end))
    )


def _by_tier(state: State, holder: Replica, first: int, end: int) -> list[tuple[int, int, str]]:
    """The range cut where the strongest promise about its records changes."""
    held, left = touching(holder.log.spans, first, end), [(first, end)]
    found: list[tuple[int, int, str]] = []
    for tier, span in _promised(state, holder, first, end):
        if span.end_offset <= left[0][0] or span.first_offset >= left[-1][1]:
            continue
        for own in held:
            a = own.first_offset if own.first_offset > span.first_offset else span.first_offset
            b = own.end_offset if own.end_offset < span.end_offset else span.end_offset
            if a < b and same_record(span, own) is not False:
                newly = [(max(a, x), min(b, y), tier) for x, y in left if a < y and x < b]
                if newly:
                    found += newly
                    left = _without(left, a, b)
        if not left:
            break
    found += [(x, y, "undetermined") for x, y in left]
    found.sort()
    result: list[tuple[int, int, str]] = []
    for a, b, tier in found:
        if result and result[-1][2] == tier:
            result[-1] = (result[-1][0], b, tier)
        else:
            result.append((a, b, tier))
    return result


def _is_promised_from(state: State, holder: Replica, first: int) -> bool:
    """Whether anything at or past an offset may have been promised to anybody."""
    return (holder.high_watermark or 0) > first or state.history.promised_up_to() > first


def _without(ranges: list[tuple[int, int]], first: int, end: int) -> list[tuple[int, int]]:
    """What is left of ranges beside [first, end)."""
    left = []
    for a, b in ranges:
        if a < first:
            left.append((a, min(b, first)))
        if b > end:
            left.append((max(a, end), b))
    return left


def _promised(state: State, holder: Replica, first: int, end: int) -> Iterator[tuple[str, Span]]:
    """(tier, span) of every promise about offsets in [first, end), the strongest first."""
    history = state.history
    every = history.promised_in("consumptions", first, end)
    every += history.promised_in("acknowledgements", first, end)
    for how, tier in _TIERS[:2]:
        for promise in every:
            if promise.how == how:
                yield tier, promise.span
    for promise in history.promised_in("commitments", first, end):
        yield "committed", promise.span
    if holder.high_watermark:
        yield "committed", Span(0, holder.high_watermark, None, None)
    for promise in every:
        if promise.how == "acks_1":
            yield _TIERS[2][1], promise.span
