"""Why records are gone: the earliest step without which they survive, and what else contributed.

Told by taking steps away, not by time. A record leaves the leaders' line of records when a leader
without it takes over for good. That leader had lost it from its disk, or cut it from its log, or
never had it: without the loss or the cut it leads with the record; without an unclean election
some member of the ISR leads, which helps only if one of them still has the record.
"""

import math
from dataclasses import dataclass, replace
from itertools import pairwise

from replication.protocol.ground.events import BESIDE_THE_ISR
from replication.protocol.ground.model import Span, is_seen
from replication.protocol.ground.topic_partition import (
    LeaderTerm,
    State,
    StorageLoss,
    Truncation,
    UncleanStart,
)
from replication.protocol.judgement.absence import Absence
from replication.protocol.judgement.isr_members import (
    came_back_without,
    deposed_cleanly,
    kept_it,
    may_have_come_back_without,
    may_have_led_without,
)
from replication.protocol.judgement.lacking_terms import led_on_after
from replication.protocol.judgement.lost_record import (
    SLACK,
    Lost,
    has_by_rule,
    has_since,
    is_after,
    is_of,
    known_to_have_had,
    lacks,
    may_be_anothers,
    may_be_written_since,
    may_have_taken_another,
    never_had,
    taken_from,
    written_at,
)
from replication.protocol.judgement.reference import log_is_covered
from replication.protocol.judgement.same_record import keeps_committed, may_have_written
from replication.protocol.judgement.term_starts import UNSURE_KINDS, term_start, term_starts
from replication.protocol.judgement.unseen_terms import (
    may_have_lost_storage_in_isr,
    never_began,
    truncates_to_high_watermark,
)
from replication.protocol.judgement.unsure_elections import (
    is_unnamed,
    may_be_unnamed,
    misses_elections,
    perhaps_by_election,
    perhaps_elected_beside,
    perhaps_unclean,
)

BY_DISK = ("storage_loss", "last_replica_standing")
BY_CUT = {
    "high_watermark": "truncate_to_high_watermark",
    "leader_epoch": "truncate_to_high_watermark",
    "diverging_epoch": "truncate_to_high_watermark",
    "out_of_range": "out_of_range_reset",
}


@dataclass(frozen=True, slots=True)
class Cause:
    """The cause and the contributing ones in the ledger's words.

    election: of a leader without the record, where that was unclean. lossy: who lost the record
    from its disk, isr: the members in force before that election. term: the first of a leader
    without it.
    """

    name: str
    contributing: tuple[str, ...] = ()
    election: LeaderTerm | None = None
    lossy: frozenset[int] = frozenset()
    term: LeaderTerm | None = None
    isr: tuple[int, ...] | None = None


def borders(state: State) -> set[int]:
    """Offsets at which the story of lost records may change."""
    history = state.history
    found: set[int | None] = {term_start(state, t) for t in history.terms}
    for cut in history.truncations:
        found |= {cut.to_offset, cut.from_offset}
    for loss in history.storage_losses:
        found |= {loss.left_end_offset, loss.had_end_offset}
    for replica in state.replicas.values():
        found |= {s.first_offset for s in replica.log.spans} | {replica.log.log_end_offset}
    return {b for b in found if b is not None}


def cause_of(state: State, record: Span, tier: str, absences: list[Absence]) -> Cause:
    """Why the record at record.first_offset is gone."""
    if absences and all(a.one_of_several for a in absences):
        return Cause("unknown")  # It would be another one's.
    orders = [a.promise.latest_term for a in absences if a.promise.latest_term is not None]
    told = [a.promise.observed_at for a in absences if a.promise.how in ("acks_all", "acks_1")]
    times = [at for at in told if at is not None]
    record = _by_its_writer(state, record, absences)
    answered = {a.promise.replica for a in absences if a.promise.how == "acks_1"}
    wrote = answered.pop() if len(answered) == 1 else None
    lost = Lost(record, tier, min(orders, default=None), min(times, default=None), wrote)
    found = _cause_by(state, lost, absences)
    then = _led_then(state, lost)
    if lost.not_after is None or then is None or then >= lost.not_after:
        return found
    # A high watermark that was learned later tells of it, too; of a run only the first one's time.
    earlier = _cause_by(state, replace(lost, not_after=then), absences)
    exact = any(
        a.promise.observed_at == lost.told_at and a.promise.span.first_offset == lost.offset
        for a in absences
    )
    return earlier if exact or earlier.name == found.name else Cause("unknown")


def _cause_by(state: State, lost: Lost, absences: list[Absence]) -> Cause:
    """By the first leader without the record; one that several leaders would give stands."""
    term = losing_term(state, lost, absences)
    if term is None and lost.written_in is None:
        records = [lost.record._replace(leader_epoch=e) for e in _writers(state, lost, absences)]
        if records:
            return _either_way(
                [_cause_by(state, replace(lost, record=record), absences) for record in records]
            )
    found = replace(_cause(state, lost, term), term=term)
    sure = term is not None and term is _deposed_by_then(state, lost)
    may_have = _may_have_lost_it(state, lost, None if sure else term)
    others = [_cause(state, lost, t) for t in may_have if t is not term]
    if may_be_unnamed(state, lost, term):
        others.append(Cause("unknown"))
    if found.name == "unknown" and all(other.name == found.name for other in others):
        return found
    merged = _either_way([found, *others])
    if merged.name != "unknown":
        return replace(merged, term=term)
    election = found.election if all(other.election is not None for other in others) else None
    return replace(found, name="unknown", contributing=merged.contributing, election=election)


def _by_its_writer(state: State, record: Span, absences: list[Absence]) -> Span:
    """The record with the leader epoch of the only term that can have written it, if it is one."""
    writers = _writers(state, Lost(record, "", None), absences)
    return record._replace(leader_epoch=writers[0]) if len(writers) == 1 else record


def _writers(state: State, lost: Lost, absences: list[Absence]) -> list[int]:
    """The leader epochs in which a record that names none may have been written; none where a
    leader of which nothing tells may have."""
    if lost.written_in is not None or not absences or is_unnamed(state):
        return []
    promise = replace(absences[0].promise, span=lost.record)
    found = may_have_written(state, term_starts(state), lost.offset, promise)
    latest = promise.latest_term
    return [e for e in found if latest is None or e <= latest[0]]


def _either_way(found: list[Cause]) -> Cause:
    """What is so in each of several cases, of which nobody knows which one it was; else unknown,
    and what it may be."""
    first = found[0]
    if all(one.name == first.name for one in found):
        return replace(
            first,
            election=first.election if all(one.election is not None for one in found) else None,
            lossy=frozenset.intersection(*(one.lossy for one in found)),
            term=first.term if all(one.term is first.term for one in found) else None,
            isr=first.isr if all(one.isr == first.isr for one in found) else None,
        )
    named = {name for c in found for name in (c.name, *c.contributing)} - {"unknown"}
    return Cause("unknown", tuple(sorted(named)))


def _cause(state: State, lost: Lost, term: LeaderTerm | None) -> Cause:
    """The cause where the leader of this term was the first for good without the record."""
    leader = term.leader if term is not None else _last_leader(state)
    if leader is None:
        return Cause("unknown")
    unclean = term is not None and term.election_kind in BESIDE_THE_ISR
    lossy = _lossy(state, lost, term)
    election = term if unclean else None
    took = taken_from(state, lost, leader, term)
    if term is not None and unclean and term.isr_before and leader not in term.isr_before:
        return _by_election(state, lost, term, took, lossy)
    extra = ("unclean_election",) if unclean else ()
    if isinstance(took, StorageLoss) and may_have_taken_another(state, lost, took):
        return Cause("unknown", ("storage_loss", *extra), election, lossy)
    cut = took if isinstance(took, Truncation) else None
    by_disk = isinstance(took, StorageLoss) or (
        took is None and _restarted_short(state, lost, term)
    )
    if (by_disk or cut is not None) and perhaps_elected_beside(state, lost, term):
        name = "storage_loss" if cut is None else _cut_name(state, cut)
        return Cause("unknown", (name, "unclean_election"), None, lossy)
    if by_disk:
        loss = took if isinstance(took, StorageLoss) else None
        return _by_storage(state, term, loss, extra, election, lossy | {leader})
    if cut is not None:
        name = _cut_name(state, cut)
        unsure = may_be_anothers(state, lost, cut) or not known_to_have_had(state, lost, cut)
        if unsure or may_be_written_since(state, lost, cut):
            return Cause("unknown", (name, *extra), election, lossy)
        if _may_have_lost_it_again(state, lost, cut, term):
            return Cause("unknown", ("storage_loss", name, *extra), election, lossy | {leader})
        return Cause(name, extra, election, lossy)
    last_one = term is not None and unclean and leader in (term.isr_before or ())
    if last_one and _may_have_lost(state, lost, leader, term):
        # The last known leader: it may have stood in the ISR with the record until its disk went.
        return Cause("unknown", ("storage_loss", *extra), election, lossy | {leader})
    if term is not None and unclean:
        by_leader = lost.tier == "acknowledged_by_leader"
        if by_leader and deposed_cleanly(state, lost, term, set(term.isr_before or ())):
            return Cause("acks_one_failover", (), None, lossy)
        return Cause("unclean_election", (), election, lossy)
    if lost.tier == "acknowledged_by_leader":
        failed_over = lost.answered_by not in (None, leader) or (
            lost.answered_by is None and _another_led(state, leader, term)
        )
        unsure = not failed_over or _may_have_lost(state, lost, leader, term)
        unsure = unsure or perhaps_unclean(state, term) or _may_be_its_writers(state, lost, term)
        unsure = unsure or _may_have_another_there(state, lost, term)
        return Cause("unknown" if unsure else "acks_one_failover", (), None, lossy)
    if term is not None and _came_back_without(state, lost, term):
        return _by_storage(state, term, None, (), None, lossy | {leader})
    return Cause(_by_known_defect(state, lost, term), (), None, lossy)


def _may_have_another_there(state: State, lost: Lost, term: LeaderTerm | None) -> bool:
    """Whether a leader may have begun with another record at the offset, which it kept as it
    followed the record's own leader: it fetched above it, and so let it commit. Up to 2.0.0 a
    longer log may be such a fork (KIP-279); before KIP-101 it takes none that anything tells of."""
    start = None if term is None else term_start(state, term)
    if start is not None and start > lost.offset:
        return not keeps_committed(state)
    return start is None and may_have_led_without(state, term, lost.offset)


def _may_have_lost_it_again(
    state: State, lost: Lost, cut: Truncation, term: LeaderTerm | None
) -> bool:
    """Whether a follower that had cut the record, and was to fetch it again, came back with less on
    its disk than it had left: nothing tells whether it had fetched it by then."""
    return any(
        loss.replica == cut.replica
        and loss.at > cut.at
        and loss.left_end_offset <= lost.offset
        and (term is None or not is_after(loss, term))
        for loss in state.history.storage_losses
    )


def _by_election(
    state: State,
    lost: Lost,
    term: LeaderTerm,
    took: Truncation | StorageLoss | None,
    lossy: frozenset[int],
) -> Cause:
    """The unclean election of a replica outside the ISR, unless all members had lost the record, or
    it alone had had it.

    What a replica loses or cuts outside the ISR is not yet missed: it fetches it again.
    """
    waited_for = set(term.isr_before or ())
    lossy |= {m for m in waited_for if came_back_without(state, m, term, lost)}
    if waited_for and waited_for <= lossy:
        by_disk = _by_storage(state, term, None, ("unclean_election",), term, lossy)
        if not isinstance(took, Truncation) or may_be_anothers(state, lost, took):
            return by_disk
        if not known_to_have_had(state, lost, took):
            return by_disk
        # Only what the elected one cut itself makes the difference.
        contributing = (by_disk.name, *by_disk.contributing)
        return replace(by_disk, name=_cut_name(state, took), contributing=contributing)
    if waited_for and all(
        m in lossy or _may_have_lost_committed(state, m, lost) for m in waited_for
    ):
        by_disk = _by_storage(state, term, None, ("unclean_election",), term, lossy)
        return replace(by_disk, name="unknown", contributing=(by_disk.name, *by_disk.contributing))
    if waited_for and all(
        m in lossy or may_have_come_back_without(state, m, term, lost) for m in waited_for
    ):
        needed = state.min_insync_replicas_in(term)
        either = needed is not None and len(waited_for) >= needed
        named = ("storage_loss", "unclean_election")
        return Cause("unknown", named, term if either else None, lossy)
    loss = took if isinstance(took, StorageLoss) else None
    lost_it = loss is not None
    if took is None and _restarted_short(state, lost, term):
        lost_it, lossy = True, lossy | {term.leader}
    if lost_it and all(never_had(state, m, lost) for m in waited_for):
        if loss is not None and may_have_taken_another(state, lost, loss):
            return Cause("unknown", ("storage_loss", "unclean_election"), term, lossy)
        return _by_storage(state, term, loss, ("unclean_election",), term, lossy)
    by_leader = took is None and lost.tier == "acknowledged_by_leader"
    if by_leader and deposed_cleanly(state, lost, term, waited_for):
        return Cause("acks_one_failover", (), None, lossy)
    extra: tuple[str, ...] = ()
    if lost_it and not any(kept_it(state, m, term, lost) for m in waited_for - lossy):
        # Whether any of them would have led with it nothing tells.
        election = None if _may_have_led(state, lost, term, waited_for) else term
        return Cause("unknown", ("storage_loss", "unclean_election"), election, lossy)
    if lost_it:
        extra = ("storage_loss",)
    elif isinstance(took, Truncation):
        extra = (_cut_name(state, took),)
    return Cause("unclean_election", extra, term, lossy)


def _may_have_lost_committed(state: State, member: int, lost: Lost) -> bool:
    """Whether a copy of a member ends at or below the record, and its checkpoint above it, where no
    line tells whether it had lost that, or the copy is torn."""
    return not log_is_covered(state, member) and any(
        promise.how == "checkpoint"
        and promise.replica == member
        and not is_seen(promise.span)
        and promise.span.first_offset <= lost.offset < promise.span.end_offset
        for promise in state.history.commitments
    )


def _may_have_led(state: State, lost: Lost, term: LeaderTerm, members: set[int]) -> bool:
    """Whether one of them was elected since the record was written, before that term, and nothing
    tells how it began: it may have led without the record already."""
    after = written_at(lost)
    return any(
        t.leader in members
        and t.order < term.order
        and (after is None or t.order > after)
        and not t.start_event_id
        and not never_began(state, t)
        for t in state.history.terms
    )


def losing_term(state: State, lost: Lost, absences: list[Absence]) -> LeaderTerm | None:
    """The first of those terms in a row, up to the last one, whose leaders lack the record.

    Where the record is back under the last leader: the first term that is known to lack it.
    """
    found: LeaderTerm | None = None
    after = written_at(lost)
    for term in state.history.terms:
        if after is None or term.order <= after or never_began(state, term):
            continue
        lacking = lacks(state, term, lost)
        if lacking is False:
            found = None
        elif lacking and found is None:
            found = term
    if found is not None:
        return _elected_in(state, found)
    beside = _elected_beside_it(state, lost)
    if beside is not None:
        return beside
    known = [a.term for a in absences if a.term is not None]
    if known or lost.written_in is not None:
        # Gone from the last leader's own log, where no later one began without it.
        return _elected_in(state, known[0]) if known else _only_change(state, lost)
    return _term_by_time(state, lost, absences)


def _only_change(state: State, lost: Lost) -> LeaderTerm | None:
    """The only change of leader since the record was written, where it is one and nothing tells
    whether the new leader had it."""
    after = written_at(lost)
    began = [t for t in state.history.terms if not never_began(state, t)]
    changes = [
        term
        for before, term in pairwise(began)
        if after is not None and term.order > after and term.leader != before.leader
    ]
    if len(changes) != 1 or lacks(state, changes[0], lost) is not None:
        return None
    return _elected_in(state, changes[0])


def _may_have_lost_it(state: State, lost: Lost, losing: LeaderTerm | None) -> list[LeaderTerm]:
    """Terms that may be the first in a row without the record, the last one or, where the record is
    back since, the losing term's: of some leaders it is not known whether they had it. losing: the
    one that counts as the first, from which on they are where nothing tells when the record was
    written."""
    after = written_at(lost)
    if after is None and losing is not None:
        after = (losing.leader_epoch, losing.occurrence - 1)
    rows: list[list[LeaderTerm]] = []
    found: list[LeaderTerm] = []
    unsure, before, was_back = True, _who_wrote(state, lost), False
    for term in state.history.terms:
        if after is None or term.order <= after or never_began(state, term):
            continue
        by_rule = has_by_rule(state, term, lost)
        lacking = False if by_rule else lacks(state, term, lost)
        led_on = term.leads_on or term.election_kind == "same_leader"
        again, before = before == term.leader and led_on, term.leader
        if again and lacking is not False and taken_from(state, lost, term.leader, term) is None:
            continue  # It has what it had when it led before.
        if lacking is False:
            rows = [] if by_rule else [*rows, found]
            found, unsure = [], True
            was_back = was_back or (losing is not None and losing.order < term.order)
            continue
        if unsure:
            found.append(_elected_in(state, term))
        unsure = lacking is None
    if not found:
        found = next((row for row in rows if any(t is losing for t in row)), [])
    return found if len(found) > 1 or was_back else []


def _who_wrote(state: State, lost: Lost) -> int | None:
    """The only leader of the record's epoch, which holds it as it leads on."""
    led = {t.leader for t in state.history.terms if t.leader_epoch == lost.written_in}
    return led.pop() if len(led) == 1 else None


def _elected_beside_it(state: State, lost: Lost) -> LeaderTerm | None:
    """The unclean election of the last leader, where the one before it still holds the record: a
    leader that was not away since then has lacked it from the start, whatever it had cut before."""
    began = [t for t in state.history.terms if not never_began(state, t)]
    if not began:
        return None
    term = _led_on_from(state, began[-1])
    before = [t for t in began if t.order < term.order]
    history = state.history
    away = [(s.replica, s.at) for s in history.unclean_starts]
    away += [(s.replica, s.at) for s in history.storage_losses]
    if any(who == term.leader and at >= term.started_at for who, at in away):
        return None
    if not before or before[-1].leader == term.leader or term.election_kind not in BESIDE_THE_ISR:
        return None
    lacking = lacks(state, term, lost)
    if lacking is False or has_since(state, term, lost):
        return None  # It is back.
    if lacking is None and not state.log_is_known(state.replicas.get(term.leader)):
        return None  # It may be.
    return term if has_since(state, before[-1], lost) else None


def _led_on_from(state: State, term: LeaderTerm) -> LeaderTerm:
    """The first of the terms in a row in which a leader has led on."""
    before = [t for t in state.history.terms if t.order < term.order and not never_began(state, t)]
    while term.leads_on and before and before[-1].leader == term.leader:
        if (term.start_offset or 0) < (before[-1].start_offset or 0):
            break  # It has started again without a line that says so.
        term = before.pop()
    return term


def _kept_by_controller(state: State, term: LeaderTerm) -> LeaderTerm:
    """The unclean election of a leader whose lines are missing and that the controller has kept
    since, epoch by epoch: nothing tells that it stopped in between."""
    first = term
    for earlier in reversed([t for t in state.history.terms if t.order < term.order]):
        if earlier.leader != first.leader or earlier.leader_epoch + 1 != first.leader_epoch:
            break
        if first.election_kind != "same_leader" or log_is_covered(state, first.leader):
            break
        first = earlier
    return first if first.election_kind in BESIDE_THE_ISR else term


def _elected_in(state: State, term: LeaderTerm) -> LeaderTerm:
    """The unclean election of a leader that came to lead only in a later epoch, or has led on.

    Who leads on lost nothing in between: what it lacks then, it lacked when it was elected.
    """
    term = _kept_by_controller(state, _led_on_from(state, term))
    chain = [term]
    for earlier in reversed([t for t in state.history.terms if t.order < term.order]):
        if earlier.leader != term.leader or not never_began(state, earlier):
            break
        chain.append(earlier)
    return next((t for t in reversed(chain) if t.election_kind in BESIDE_THE_ISR), term)


def _lossy(state: State, lost: Lost, term: LeaderTerm | None) -> frozenset[int]:
    """Who lost the record from its disk before the term."""
    found = set()
    for loss in state.history.storage_losses:
        if not loss.left_end_offset <= lost.offset < loss.had_end_offset:
            continue
        if not is_of(state, loss, lost):
            continue
        if term is not None and loss.leader_epoch is not None:
            if loss.leader_epoch > term.leader_epoch:
                continue
            if loss.replica == term.leader and is_after(loss, term):
                continue
        if not _led_with_it_again(state, lost, loss, term):
            found.add(loss.replica)
    return frozenset(found)


def _led_with_it_again(
    state: State, lost: Lost, loss: StorageLoss, term: LeaderTerm | None
) -> bool:
    """Whether a replica that had lost the record has led with it since, before the term."""
    return any(
        t.leader == loss.replica and loss.at < t.started_at and lacks(state, t, lost) is False
        for t in state.history.terms
        if term is None or t.order < term.order
    )


def _another_led(state: State, leader: int, term: LeaderTerm | None) -> bool:
    """Whether somebody else is known to have led before, who can have answered for the record."""
    return any(
        t.leader != leader and not never_began(state, t)
        for t in state.history.terms
        if term is None or t.order < term.order
    )


def _may_have_lost(state: State, lost: Lost, leader: int, term: LeaderTerm | None) -> bool:
    """Whether the leader's disk came back shorter, from an end that nobody saw, or may have, for no
    line tells: it may have fetched the record before."""
    if state.is_traced(leader):
        return False  # Every end of its log was seen.
    if not state.covered("broker_log", leader):
        return True
    # Of the first start of a log, which has lost nothing, it depends on the order of several
    # brokers' steps whether it stands among them.
    replica = state.replicas.get(leader)
    lowest = None if replica is None else replica.came_back_with
    back = [
        start
        for start in state.history.unclean_starts
        if start.replica == leader
        and lowest is not None
        and lowest <= start.log_end_offset <= lost.offset
    ]
    return any(_may_have_taken(state, start, lost, term) for start in back) or any(
        loss.replica == leader
        and loss.had_end_offset <= lost.offset
        and (term is None or not is_after(loss, term))
        and is_of(state, loss, lost)
        for loss in state.history.storage_losses
    )


def _may_be_its_writers(state: State, lost: Lost, term: LeaderTerm | None) -> bool:
    """Whether the disk of who wrote it may have lost it, and not the failover.

    It may have committed it while the new leader was not in the ISR, and then have led on in its
    epoch after a stop, without it (ZooKeeper): only its lines would tell. Where nothing tells which
    leader was the first without it, it takes that every leader is known.
    """
    if term is None:
        return is_unnamed(state)
    if term.outside_at is None or state.settings.controller == "kraft":
        return False
    wrote = {
        t.leader
        for t in state.history.terms
        if t.order < term.order
        and lost.written_in in (None, t.leader_epoch)
        and lost.answered_by in (None, t.leader)
    }
    return not all(log_is_covered(state, leader) for leader in wrote)


def _may_have_taken(state: State, start: UncleanStart, lost: Lost, term: LeaderTerm | None) -> bool:
    """Whether a leader may have lost the record before it came back so, by the order of its own
    lines: not after it began without it, nor before it led in an epoch below the record's."""
    own = [t for t in state.history.terms if t.leader == start.replica and t.start_event_id]
    if term in own and term is not None and start.at > term.started_at:
        return False
    written_in = lost.written_in
    return written_in is None or not any(
        start.at < t.started_at and t.leader_epoch < written_in for t in own
    )


def _came_back_without(state: State, lost: Lost, term: LeaderTerm) -> bool:
    """Whether a leader from the ISR must have had what was committed, by the release's rules, and
    began without it, back from a stop that was not clean: only its disk can have lost it."""
    by_then = lost.not_after is not None and lost.not_after < term.order
    if not by_then or not keeps_committed(state) or not _is_back_short(state, lost, term):
        return False
    led = [t for t in state.history.terms if t.order <= term.order]
    missed_epoch = any(t.leads_on and t.leader != before.leader for before, t in pairwise(led))
    since = [t for t in led if lost.written_in is None or t.leader_epoch > lost.written_in]
    sure = not missed_epoch and all(t.election_kind not in UNSURE_KINDS for t in since)
    return sure and not misses_elections(lost, led)


def _is_back_short(state: State, lost: Lost, term: LeaderTerm) -> bool:
    """Whether a leader began without the record, back with so little from a stop that was not
    clean."""
    short = may_have_lost_storage_in_isr(state, term, lost.offset + 1)
    return short and lacks(state, term, lost) is True


def _restarted_short(state: State, lost: Lost, term: LeaderTerm | None) -> bool:
    """Whether the record was written by the leader itself, which leads again without it and had
    nobody to follow in between."""
    if term is None or lost.answered_by not in (None, term.leader):
        return False
    terms = [t for t in state.history.terms if t.order <= term.order]
    # Who wrote a record without an epoch a single leader tells, or the clocks.
    since = (lost.written_in, 0) if lost.written_in is not None else _led_then(state, lost)
    between = [
        t for t in terms if (since is None or since <= t.order) and not never_began(state, t)
    ]
    alone = len(between) > 1 and {t.leader for t in between} == {term.leader}
    start = term_start(state, term)
    short = start is not None and start <= lost.offset
    return short and (alone or _had_led_with_it(state, lost, term))


def _had_led_with_it(state: State, lost: Lost, term: LeaderTerm) -> bool:
    """Whether the leader's last term before, right before, was the last by whose end a record that
    nobody saw had been committed: a leader from the ISR had it then."""
    began = [t for t in state.history.terms if t.order < term.order and not never_began(state, t)]
    return (
        bool(began)
        and lost.written_in is None
        and lost.tier != "acknowledged_by_leader"
        and lost.not_after is not None
        and lost.not_after[0] == began[-1].leader_epoch
        and began[-1].leader == term.leader
        and began[-1].election_kind not in UNSURE_KINDS
    )


def _led_then(state: State, lost: Lost) -> tuple[int, int] | None:
    """The order of the last term that had begun when the producer was told."""
    if lost.told_at is None:
        return None
    begun = [t for t in state.history.terms if t.observed_at is not None]
    orders = [t.order for t in begun if (t.observed_at or 0) <= lost.told_at]
    return max(orders, default=None)


def _by_storage(
    state: State,
    term: LeaderTerm | None,
    took: StorageLoss | None,
    extra: tuple[str, ...],
    election: LeaderTerm | None,
    lossy: frozenset[int],
) -> Cause:
    """Storage loss, or that of the last one that stood (KIP-966): of a member of an ISR that was
    below min.insync.replicas before the election that failed."""
    term = _led_short(state, term, took)
    needed = state.min_insync_replicas_in(term)
    isr = _isr_in_force(term, took)
    assigned = state.settings.assigned_replicas or ()
    if needed is None and len(isr or ()) < max(2, len(assigned)):
        return Cause("unknown", (*BY_DISK, *extra), election, lossy)
    if needed is not None and needed >= 2 and not isr:
        return Cause("unknown", (*BY_DISK, *extra), election, lossy)
    if needed is not None and needed >= 2 and isr and len(isr) < needed:
        return Cause("last_replica_standing", ("storage_loss", *extra), election, lossy, isr=isr)
    return Cause("storage_loss", extra, election, lossy, isr=isr)


def _led_short(
    state: State, term: LeaderTerm | None, took: StorageLoss | None
) -> LeaderTerm | None:
    """The first term that the replica led after it had come back short."""
    if term is None or took is None:
        return term
    led = [t for t in state.history.terms if t.leader == took.replica]
    return next((t for t in led if t.start_event_id and not is_after(took, t)), term)


def _isr_in_force(term: LeaderTerm | None, took: StorageLoss | None) -> tuple[int, ...] | None:
    """The ISR before the election of the leader that came back short.

    Leading again in one's own epoch, or in one raised for a smaller ISR, is no election.
    """
    if term is not None:
        isr = term.isr if term.election_kind == "same_leader" else term.isr_before
        if isr:
            return isr
    return None if took is None else took.isr


def _cut_name(state: State, cut: Truncation) -> str:
    if cut.reason == "unknown" and truncates_to_high_watermark(state):
        return "truncate_to_high_watermark"
    return BY_CUT.get(cut.reason, "unknown")


def _last_leader(state: State) -> int | None:
    if state.registration.leader is not None:
        return state.registration.leader
    terms = state.history.terms
    return terms[-1].leader if terms else None


def _term_by_time(state: State, lost: Lost, absences: list[Absence]) -> LeaderTerm | None:
    """For records whose epoch is unknown: the first change of leader after the promise was made,
    among those that could lose it. Clocks decide only between several.

    Only the cause rests on it, never the verdict.
    """
    terms = state.history.terms
    until = _told_until(lost, absences)
    deposed = _deposed_by_then(state, lost) if until == lost.told_at else None
    if deposed is not None:
        return deposed
    led = [t for t in terms if not never_began(state, t)]
    # Before a term that comes after the promise it had been promised, in whichever epoch.
    promised = replace(lost, not_after=(-1, 0))
    # Who leads on has what it had in the term before.
    could = [
        t
        for t in led
        if not (t.leads_on or lacks(state, t, lost) is False or has_since(state, t, lost))
        and not has_by_rule(state, t, promised)
    ]
    # Nobody led before the first epoch; before a later one that is the first known, somebody did.
    changes = [t for t in could if t is not terms[0] or t.leader_epoch > 0]
    if len(changes) == 1 and changes[0].start_offset is not None:
        return changes[0]
    made = [a.promise.observed_at for a in absences if a.promise.observed_at is not None]
    if not made or _clocks_contradict(state):
        return None
    later = (t for t in could if t.observed_at is None or t.observed_at > min(made))
    first = next(later, None)
    if first is None or (first.observed_at or 0) <= until or not _is_dated(state, first):
        return None
    return first


def _clocks_contradict(state: State) -> bool:
    """Whether a term is told of long before one of a lower leader epoch: no time of a client can be
    held against such clocks."""
    told = [t.observed_at for t in state.history.terms if t.observed_at and not t.occurrence]
    return any(later + SLACK < earlier for earlier, later in pairwise(told))


def _is_dated(state: State, term: LeaderTerm) -> bool:
    """Whether a term began when it is first told of: by its leader or by the controller, and not by
    whoever came back and heard of it."""
    return bool(term.start_event_id) or state.covered("controller_history")


def _told_until(lost: Lost, absences: list[Absence]) -> float:
    """When its producer was told at the latest: of a run of acknowledgements only the first one's
    time is known, and the last one's."""
    latest: float = lost.told_at or 0
    for promise in (a.promise for a in absences if a.promise.how in ("acks_all", "acks_1")):
        if promise.span.first_offset < lost.offset:
            latest = max(latest, math.inf if promise.until is None else promise.until)
    return latest


def _deposed_by_then(state: State, lost: Lost) -> LeaderTerm | None:
    """The first term after those of a broker that answered at acks=1 when another had long been
    elected: that one never had the record."""
    if lost.told_at is None or lost.answered_by is None or _clocks_contradict(state):
        return None
    told_at = lost.told_at
    timed = [(t, t.observed_at) for t in state.history.terms if t.observed_at is not None]
    if any(t.leader == lost.answered_by and abs(at - told_at) <= SLACK for t, at in timed):
        return None
    if any(
        t.leader == lost.answered_by and before < told_at + SLACK and told_at <= at
        for (_, before), (t, at) in pairwise(timed)
    ) and not log_is_covered(state, lost.answered_by):
        return None  # Others may have heard late that it led again.
    after: LeaderTerm | None = None
    led = False
    for term in (t for t, at in timed if at + SLACK < told_at):
        if term.leader == lost.answered_by:
            after, led = None, True
        elif led and after is None:
            after = term
    return after


def _by_known_defect(state: State, lost: Lost, term: LeaderTerm | None) -> str:
    """Causes of losses by clean elections: the protocol failed, and only a known defect says how.

    A leader that slept through a term still counts its followers at the log ends that they had
    before (Partition.makeLeader forgets them for a new leader only); KAFKA-13141 and KAFKA-7128.
    """
    if term is not None and term.election_kind not in ("clean", "preferred", "same_leader"):
        return "unknown"
    offset = lost.offset
    # Only who wrote a record answers for it at acks=all.
    led = {t.leader for t in state.history.terms if t.leader_epoch == lost.written_in}
    wrote = led.pop() if len(led) == 1 and lost.tier == "acknowledged_by_isr" else None
    for missed in state.history.terms:
        again = led_on_after(state, missed, offset, offset + 1, wrote, lost.written_in)
        if again is None or not log_is_covered(state, again.leader):
            continue  # Where its lines have gaps, it may have stopped in between.
        unsure = term is None and perhaps_by_election(state, missed)
        if not unsure and (term is None or term is missed or again.order < term.order):
            return "premature_high_watermark"
    if term is None:
        return "unknown"
    start = term_start(state, term)
    if start is not None and start > offset:
        known = lacks(state, term, lost) and not _may_have_slept(state, term)
        return "divergence_overwrite" if known else "unknown"
    flags = state.behaviour()
    if flags is None or _is_back_short(state, lost, term):
        return "unknown"
    if not log_is_covered(state, term.leader):
        return "unknown"  # Its disk may have lost it.
    if flags.has("leader_answers_diverging_epoch") and not flags.has(
        "diverging_fetch_is_no_progress"
    ):
        return "premature_high_watermark"
    if flags.has("truncates_to_leader_end_offset") and not flags.has(
        "isr_expansion_waits_for_epoch_start"
    ):
        return "early_isr_join"
    return "unknown"


def _may_have_slept(state: State, term: LeaderTerm) -> bool:
    """Whether a leader may have led on, by that term, in an epoch after another's of which it had
    not heard: its lines would tell."""
    led = [t for t in state.history.terms if t.order < term.order and not never_began(state, t)]
    return any(
        again.leader != missed.leader
        and again.leader in {t.leader for t in led if t.order < missed.order}
        and not log_is_covered(state, again.leader)
        for missed, again in pairwise(led)
    )
