"""Whether committed records may be lost of which nothing tells that they were committed."""

from itertools import pairwise

from replication.protocol.ground.topic_partition import Replica, State, StorageLoss, Term
from replication.protocol.judgement.absence import Absence
from replication.protocol.judgement.reference import Reference
from replication.protocol.judgement.same_record import all_known
from replication.protocol.judgement.term_starts import term_start
from replication.protocol.judgement.unseen_terms import (
    UNSURE_KINDS,
    never_began,
    truncates_to_high_watermark,
)


def unwitnessed_election(state: State) -> tuple[Term, Term] | None:
    """An election that could lose committed records, where nothing tells what was committed.

    A leader from the ISR holds what was committed, unless it had cut to its high watermark (before
    KIP-101). Any other may not, and then the high watermark of the leaders before it decides, as it
    was at the end of their terms: what a line at the start of a term tells is not enough.
    """
    any_may_lack = truncates_to_high_watermark(state)
    terms = state.history.terms
    for before, term in pairwise(terms):
        if term.leader == before.leader:
            continue
        if term.election_kind not in UNSURE_KINDS and not any_may_lack:
            continue
        start = term_start(state, term)
        earlier = [t for t in terms if t.order <= before.order]
        if start is not None and all(_held_no_more(state, t, start) for t in earlier):
            continue
        if not _is_known_what_was_committed(state, earlier):
            return before, term
    return None


def _held_no_more(state: State, term: Term, offset: int) -> bool:
    """Whether a leader is known to have held nothing at or above an offset in its term."""
    if never_began(state, term) or term_start(state, term) == offset:
        return True
    return term.end_log_end_offset is not None and term.end_log_end_offset <= offset


def _is_known_what_was_committed(state: State, terms: list[Term]) -> bool:
    """Whether the high watermark that was reached by the end of the last of these terms is known.

    A leader from the ISR that reached its own start has committed all that those before it had.
    """
    for term in reversed(terms):
        if state.coverage.get(("replica_trace", term.leader), (False, None))[0]:
            continue
        if never_began(state, term):
            continue
        if term.end_high_watermark is None:
            return False
        start = term_start(state, term)
        short = any(s.replica == term.leader for s in state.history.storage_losses)
        sure = term.election_kind not in UNSURE_KINDS and not short
        if sure and start is not None and term.end_high_watermark >= start:
            return True
    return True


def lost_by_who_answered(state: State, ref: Reference, absences: list[Absence]) -> Absence | None:
    """Records that a leader was answering for at acks=1 and came back without from a stop that was
    not clean: lost with its storage, it may be, and nothing tells whether they were committed."""
    if ref.replica is None or _is_known_what_was_committed(state, state.history.terms):
        return None
    lost_from = ref.replica.may_have_lost_from
    if lost_from is None:
        return None
    for absence in absences:
        at_the_end = absence.term is None and lost_from <= absence.first_offset
        if absence.promise.how == "acks_1" and at_the_end:
            return absence
    return None


def lost_by_its_leader(state: State, ref: Reference) -> tuple[int, int, int] | None:
    """(broker, first offset, end offset) of records that a leader lost with its storage and then
    led without: whether they had been committed, nothing tells.

    Its own lines show the loss, or others hold what it wrote and no line says that it cut it.
    """
    if _is_known_what_was_committed(state, state.history.terms):
        return None
    for loss in state.history.storage_losses:
        for term in state.history.terms:
            if term.leader != loss.replica or not _may_follow(term, loss):
                continue
            start = term_start(state, term)
            if start is not None and loss.left_end_offset <= start < loss.had_end_offset:
                return loss.replica, loss.left_end_offset, loss.had_end_offset
    if ref.replica is None or ref.replica.partial:
        return None
    return _shortened(state, ref.replica)


def _may_follow(term: Term, loss: StorageLoss) -> bool:
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
