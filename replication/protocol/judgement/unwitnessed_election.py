"""Whether committed records may be lost of which nothing tells that they were committed."""

import math
from collections.abc import Sequence
from itertools import pairwise

from replication.protocol.ground.topic_partition import LeaderTerm, Replica, State, StorageLoss
from replication.protocol.judgement.absence import Absence
from replication.protocol.judgement.lacking_terms import appender
from replication.protocol.judgement.nothing_of_a_term import has_nothing_of
from replication.protocol.judgement.reference import (
    Reference,
    log_is_covered,
    newest_leader_epoch,
)
from replication.protocol.judgement.same_record import all_known
from replication.protocol.judgement.term_starts import UNSURE_KINDS, TermStarts
from replication.protocol.judgement.unseen_terms import (
    kept_since_in_sync,
    lost_after_it_began,
    may_have_lost_storage_in_isr,
    never_began,
    stands_still,
    truncates_to_high_watermark,
)

CLIENTS = ("acknowledgements", None)


def unwitnessed_election(
    state: State, ref: Reference, in_doubt: bool = False
) -> tuple[LeaderTerm | None, LeaderTerm] | None:
    """An election that could lose committed records, where nothing tells what was committed.

    A leader from the ISR holds what was committed, unless it had cut to its high watermark (before
    KIP-101). Any other may not, and then it decides what the leaders before it held at the end of
    their terms, or how far they had committed by then: what a line at the start of a term tells is
    not enough. None for the leader before it: nothing tells who that was. in_doubt: it is not known
    what became of all that was acknowledged, so that a leader that came back from a crash may have
    held more than it had then; or, where it was enough for a commitment, of all that was sent.
    """
    starts = ref.starts
    shown = {s.leader_epoch: s.end_offset for s in ref.spans}
    stand = {(s.first_offset, s.leader_epoch) for s in ref.spans}
    committed_is_known = _known_by_the_end(state, starts)
    began = [place for place, t in enumerate(starts.terms) if not never_began(state, t)]
    first = starts.terms[began[0]] if began else None
    if first is not None and first.leader_epoch and first.election_kind in UNSURE_KINDS:
        return None, first
    # Below it lies all that was committed and that nothing tells of.
    untold: float = 0
    for place, after in pairwise(began):
        before, term = starts.terms[place], starts.terms[after]
        if _end_mark(state, before) is None:
            untold = max(untold, _held_by_the_end(state, before, starts.starts[place], shown))
            sent = state.told_of("sends") and not _waits_for_others(state, before)
            if (in_doubt or sent) and _came_back_from_a_crash(state, before):
                untold = math.inf
        if term.leader == before.leader:
            continue
        start = starts.starts[after]
        if _has_what_was_committed(state, ref, before, term):
            # All that the leader began with is in the log that counts: its first record is there.
            if start is not None and (start, term.leader_epoch) in stand:
                untold = min(untold, start)
        elif not (start is not None and untold <= start) and not committed_is_known[place]:
            return before, term
    return None


def _has_what_was_committed(
    state: State, ref: Reference, before: LeaderTerm, term: LeaderTerm
) -> bool:
    """Whether a leader began with all that was committed, since it came from the ISR; or was in
    that of the leader before it, and shows that this one committed nothing of its own."""
    if term.election_kind in UNSURE_KINDS:
        return has_nothing_of(state, term.leader, before, ref.starts.of(term))
    if not truncates_to_high_watermark(state):
        return True
    return kept_since_in_sync(state, term) or stands_still(state, ref, before)


def untold_election(state: State) -> str | None:
    """Of which elections nothing tells the kind, where no history does; None where there was none.

    Epoch 0 is the partition's first. One below the newest that no log names was one, too: its
    leader may have lost what it held.
    """
    newest = newest_leader_epoch(state)
    if newest < 0:
        return "these logs name no leader epochs, and nothing else tells of elections"
    told = {t.leader_epoch for t in state.history.terms if t.election_kind not in UNSURE_KINDS}
    untold = [e for e in range(1, newest + 1) if e not in told]
    if not untold:
        return None
    numbers = ", ".join(str(e) for e in untold[:5]) + (", .." if len(untold) > 5 else "")
    return f"nothing tells how the leader of epoch {numbers} was elected"


def _end_mark(state: State, term: LeaderTerm) -> int | None:
    """How far a leader had committed by the end of its term. The line by which it follows tells it
    only where all its lines are here: it may have stopped in between, and loaded what it tells."""
    if term.ended == "followed" and not log_is_covered(state, term.leader):
        return None
    return term.end_high_watermark


def _held_by_the_end(
    state: State, term: LeaderTerm, start: int | None, shown: dict[int | None, int]
) -> float:
    """The log end of a leader at the end of its term; infinite where nothing tells it, or where it
    wrote what the log that counts does not show up to there. shown: leader epoch -> end there."""
    if never_began(state, term):
        return 0
    end = term.end_log_end_offset
    if term.ended == "followed" and not log_is_covered(state, term.leader):
        return math.inf  # It may have stopped in between, and come back with less.
    if end is None or start is None or end < start or _may_be_torn(state, term):
        return math.inf
    return end if end == start or shown.get(term.leader_epoch, 0) >= end else math.inf


def _came_back_from_a_crash(state: State, term: LeaderTerm) -> bool:
    """Whether all that tells what a leader held is what it started with after an unclean stop."""
    if term.ended != "stopped" or term.end_is_certain:
        return False
    return any(
        start.replica == term.leader and start.at > term.started_at
        for start in state.history.unclean_starts
    )


def _may_be_torn(state: State, term: LeaderTerm) -> bool:
    """Whether all that tells the end is a copy of no clean stop, after which nothing was seen."""
    replica = state.replicas.get(term.leader)
    if replica is None or term.end_is_certain or replica.clean_start is not None:
        return False
    if any(t.leader == term.leader and t.started_at > term.started_at for t in state.history.terms):
        return False
    return replica.captured and not replica.stale and replica.stopped is not True


def _known_by_the_end(state: State, starts: TermStarts) -> list[bool]:
    """For each term, whether it is known how far leaders had committed by its end.

    A leader from the ISR that reached its own start has committed all that those before it had.
    """
    known: list[bool] = []
    next_begun = _next_begun(state, starts.terms)
    lossy = {s.replica for s in state.history.storage_losses}
    before = True
    last: LeaderTerm | None = None
    for term, start, later in zip(starts.terms, starts.starts, next_begun, strict=True):
        mark = _end_mark(state, term)
        if mark is None and term.ended == "led_on" and _leads(later, term.leader):
            known.append(before)  # It goes on in its next term.
            continue
        traced = state.covered("replica_trace", term.leader)
        if not traced and not never_began(state, term):
            sure = term.election_kind not in UNSURE_KINDS and term.leader not in lossy
            sure = sure and not (last is not None and _may_have_come_back_short(state, last, term))
            reached = mark is not None and start is not None and mark >= start
            reached = reached or (mark is not None and _wrote_below(state, term, mark))
            before = mark is not None and (before or (sure and reached))
        known.append(before)
        last = term
    return known


def _wrote_below(state: State, term: LeaderTerm, mark: int) -> bool:
    """Whether a leader of whose start no line tells wrote below its high watermark in the term, or
    since it has led on from another: in no reign before. Before KIP-98 who answers wrote it."""
    flags = state.behaviour()
    if flags is None or flags.has("leader_epoch_in_record_batches"):
        return False
    led = [t for t in state.history.terms if t.leader == term.leader and t.order <= term.order]
    between = [t for t in state.history.terms if led[0].order <= t.order <= term.order]
    if len(between) > len(led) or not all(t.leads_on for t in led[1:]):
        return False
    told = state.history.promised_in("acknowledgements", 0, mark)
    return any(p.replica == term.leader for p in told)


def _next_begun(state: State, terms: Sequence[LeaderTerm]) -> list[LeaderTerm | None]:
    """For each term the next one that may have begun."""
    found: list[LeaderTerm | None] = []
    later: LeaderTerm | None = None
    for term in reversed(terms):
        found.append(later)
        later = later if never_began(state, term) else term
    return found[::-1]


def _leads(term: LeaderTerm | None, leader: int) -> bool:
    return term is None or term.leader == leader


def _may_have_come_back_short(state: State, before: LeaderTerm, term: LeaderTerm) -> bool:
    """Whether a leader led again next after a stop that was not seen to be clean."""
    replica = state.replicas.get(term.leader)
    unclean = replica is not None and replica.may_have_lost_from is not None
    return before.leader == term.leader and before.ended == "stopped" and unclean


def lost_by_who_answered(state: State, ref: Reference, absences: list[Absence]) -> Absence | None:
    """Records that a leader was answering for at acks=1 and came back without from a stop that was
    not clean: lost with its storage, it may be, and nothing tells whether they were committed."""
    for absence in absences:
        if absence.promise.how == "acks_1" and _may_hide_a_fork(state, ref, absence):
            return absence
    if all(_known_by_the_end(state, ref.starts)[-1:]):
        return None
    for absence in absences:
        if absence.promise.how == "acks_1" and _lost_itself(state, ref, absence):
            return absence
    return None


def _may_hide_a_fork(state: State, ref: Reference, absence: Absence) -> bool:
    """Whether the leader of the log that counts may have come into the ISR with another record in
    the place of one that nothing names, so that this one had been committed.

    Before KIP-279 a follower that was out of its leader's range cuts to the leader's end, and keeps
    what stands below, whoever wrote that.
    """
    flags = state.behaviour()
    if absence.promise.latest_term is not None or absence.term is not None:
        return False
    if flags is None or flags.has("truncates_by_common_epoch"):
        return False
    return any(
        cut.replica == ref.leader
        and cut.reason == "out_of_range"
        and absence.first_offset < cut.to_offset
        for cut in state.history.truncations
    )


def _lost_itself(state: State, ref: Reference, absence: Absence) -> bool:
    """Whether a leader leads without what it answered for itself, or may have."""
    wrote = appender(ref.starts, absence.promise)
    if wrote is None and absence.promise.how == "acks_1":
        wrote = absence.promise.replica  # Who wrote it answers.
    if absence.term is not None:
        before = [t for t in ref.starts.terms if t.order < absence.term.order]
        again = [t for t in before if t.leader == absence.term.leader]
        return bool(again) and (
            wrote is None or (wrote == absence.term.leader and before[-1] is again[-1])
        )
    if ref.replica is None:
        return False
    lost_from = ref.replica.may_have_lost_from
    if lost_from is not None and lost_from <= absence.first_offset:
        return True
    cut = any(t.replica == ref.leader for t in state.history.truncations)
    return wrote in (None, ref.leader) and not cut


def came_back_alone(state: State, ref: Reference) -> int | None:
    """A leader that stopped, perhaps not cleanly, and led again next, or was elected after such a
    stop: what it lost of its log meanwhile nobody else has to show.

    None where there is none, or what was committed is known: by acknowledgements and what leaders
    commit later, or by every step of its own. What is committed later tells nothing by itself.
    """
    starts, known = ref.starts, _known_by_the_end(state, ref.starts)
    for before, term in pairwise(starts.terms):
        told = any(state.covered(*by) for by in (CLIENTS, ("replica_trace", term.leader)))
        short = _may_have_come_back_short(state, before, term) and not (known[-1] and told)
        if short and not _committed_nothing_alone(state, starts, before, term):
            return term.leader
    shown = {s.leader_epoch: s.end_offset for s in ref.spans}
    held: float = 0
    began = [place for place, t in enumerate(starts.terms) if not never_began(state, t)]
    for place, after in pairwise(began):
        before, term, start = starts.terms[place], starts.terms[after], starts.starts[after]
        held = max(held, _held_by_the_end(state, before, starts.starts[place], shown))
        if before.ended == "stopped" and not before.end_is_certain:
            held = math.inf
        holds_all = known[place] or (start is not None and held <= start)
        if not holds_all and _may_have_been_away(state, before, term):
            return term.leader
    return None


def lost_what_it_alone_committed(state: State, ref: Reference) -> int | None:
    """A leader that may have lost, in a stop not seen to be clean, what it committed while no other
    member of the ISR had to hold it. Who was alone, and led again. What is committed later tells
    nothing of that."""
    terms, known = ref.starts.terms, _known_by_the_end(state, ref.starts)
    began = [place for place, t in enumerate(terms) if not never_began(state, t)]
    for place, after in pairwise(began):
        before, term = terms[place], terms[after]
        if known[place] or state.covered("replica_trace", term.leader):
            continue
        if before.leader != term.leader or term.isr_before not in ((term.leader,), None):
            continue
        unclean = _may_have_come_back_short(state, before, term)
        unclean = unclean or _may_have_been_away(state, before, term)
        if unclean and not _waits_for_others(state, before, term):
            return term.leader
    return None


def _committed_nothing_alone(
    state: State, starts: TermStarts, before: LeaderTerm, term: LeaderTerm
) -> bool:
    """Whether a leader that was alone in the ISR, and came back with what it began with at least,
    can have committed nothing that it lost: alone it commits nothing, by the release, and it was
    alone in all of its term, or no other has, had cut, or can have lost more of what it wrote."""
    began, back = starts.of(before), starts.of(term)
    if began is None or back is None or back < began or term.isr_before != (term.leader,):
        return False
    if not _waits_for_others(state, before, term):
        return False
    if before.took_all is False and state.covered("controller_history"):
        return True
    others = (state.ever_assigned | state.replicas.keys()) - {term.leader}
    if any(s.leader_epoch == before.leader_epoch for s in all_known(state, back, 1 << 62)):
        return False
    if not all(
        log_is_covered(state, r) and state.log_is_known(state.replicas.get(r)) for r in others
    ):
        return False
    history = state.history
    lost = [(t.replica, t.term_epoch) for t in history.truncations]
    lost += [(s.replica, s.leader_epoch) for s in history.unclean_starts]
    lost += [(s.replica, s.leader_epoch) for s in history.storage_losses]
    return not any(
        replica in others and (known is None or known >= before.leader_epoch)
        for replica, known in lost
    )


def _waits_for_others(state: State, *terms: LeaderTerm) -> bool:
    """Whether a leader alone commits nothing: below min.insync.replicas, by the release."""
    flags = state.behaviour()
    if flags is None or not flags.has("high_watermark_waits_for_min_insync_replicas"):
        return False
    return all((state.min_insync_replicas_in(t) or 1) > 1 for t in terms)


def _may_have_been_away(state: State, before: LeaderTerm, term: LeaderTerm) -> bool:
    """Whether a leader was back in the ISR from a stop that nothing shows to be clean.

    Its lines tell; where they are missing, an epoch without a leader: the whole ISR was away. Of a
    whole cluster that went down there is none (ZooKeeper), but who was alone in the ISR is elected
    anew: nobody else has to show what it lost.
    """
    if not log_is_covered(state, term.leader):
        again = before.leader == term.leader and term.isr_before == (term.leader,)
        return term.recorded and (again or term.leader_epoch > before.leader_epoch + 1)
    short = may_have_lost_storage_in_isr(state, term, 1 << 62)
    return short and before.leader != term.leader


def lost_by_its_leader(state: State, ref: Reference) -> tuple[int, int, int] | None:
    """(broker, first offset, end offset) of records that a leader lost with its storage and then
    led without: whether they had been committed, nothing tells.

    Its own lines show the loss, or others hold what it wrote and no line says that it cut it.
    """
    if all(_known_by_the_end(state, ref.starts)[-1:]):
        return None
    for loss in state.history.storage_losses:
        for term in state.history.terms:
            if term.leader != loss.replica or not _may_follow(term, loss):
                continue
            start = ref.starts.of(term)
            if start is not None and loss.left_end_offset <= start < loss.had_end_offset:
                return loss.replica, loss.left_end_offset, loss.had_end_offset
    if ref.replica is None or ref.replica.partial:
        return None
    return _shortened(state, ref.replica)


def _may_follow(term: LeaderTerm, loss: StorageLoss) -> bool:
    if lost_after_it_began(loss, term):
        return False
    return loss.leader_epoch is None or term.leader_epoch >= loss.leader_epoch


def _shortened(state: State, replica: Replica) -> tuple[int, int, int] | None:
    """The end that the log which counts once had and has not now, though no line cut it."""
    end = replica.log.log_end_offset
    ends = [replica.known_log_end_offset or 0]
    led = {t.leader_epoch for t in state.history.terms if t.leader == replica.replica}
    for span in all_known(state, end, 1 << 62):
        if span.leader_epoch in led:
            ends.append(span.end_offset)
    cut = any(
        t.replica == replica.replica and t.to_offset <= end for t in state.history.truncations
    )
    if max(ends) <= end or cut:
        return None
    return replica.replica, end, max(ends)
