"""Elections of which not everything is told: of whom, and whether beside the ISR."""

from itertools import pairwise

from replication.protocol.ground.events import BESIDE_THE_ISR
from replication.protocol.ground.topic_partition import LeaderTerm, State
from replication.protocol.judgement.lost_record import Lost, lacks, written_at
from replication.protocol.judgement.term_starts import UNSURE_KINDS, tells_of_before, term_starts
from replication.protocol.judgement.unseen_terms import unnamed_leader_epoch, unnamed_writers_epoch


def is_unnamed(state: State) -> bool:
    """Whether a leader of which nothing tells may have led in some epoch."""
    return unnamed_writers_epoch(state, term_starts(state)) is not None


def may_be_unnamed(state: State, lost: Lost, term: LeaderTerm | None) -> bool:
    """Whether a leader of which nothing tells may have been the first without the record, before
    that term and since one is known to have had it."""
    wrote = written_at(lost)
    if term is None or wrote is None:
        return False
    before = [t for t in state.history.terms if t.order < term.order]
    had = [t.order for t in before if lacks(state, t, lost) is False]
    unnamed = unnamed_leader_epoch(state, term_starts(state), max([wrote, *had])[0])
    return unnamed is not None and unnamed < term.leader_epoch


def perhaps_unclean(state: State, term: LeaderTerm | None) -> bool:
    """Whether nothing excludes an unclean election: how that term's leader was elected is not
    known, or, of any term, which one it was."""
    terms = state.history.terms if term is None else (term,)
    return any(one.election_kind in UNSURE_KINDS and _may_be_beside(state, one) for one in terms)


def _may_be_beside(state: State, term: LeaderTerm) -> bool:
    """Whether a leader may have been elected beside the ISR. Where the settings forbid that, an
    operator can still force it (KIP-460), and the last known leader may lead (KIP-966), but only of
    a partition without a leader: in the epoch before nobody led."""
    led_before = any(t.leader_epoch == term.leader_epoch - 1 for t in state.history.terms)
    return not led_before or state.unclean_permitted_in(term) is not False


def perhaps_elected_beside(state: State, lost: Lost, term: LeaderTerm | None) -> bool:
    """Whether nothing tells how a leader was elected that had lost the record before, or which one
    it was, and it may have been beside another that is not known to have lacked it."""
    if term is None or not perhaps_unclean(state, term):
        return term is None and perhaps_unclean(state, term)
    before = [t for t in state.history.terms if t.order < term.order]
    if term.election_kind in BESIDE_THE_ISR or not before:
        return False
    last = before[-1]
    unnamed = unnamed_leader_epoch(state, term_starts(state), last.leader_epoch)
    if unnamed == last.leader_epoch + 1:
        return True
    if not tells_of_before(term, last.leader_epoch):
        # Another may have been elected in between that never led; before a forced one nobody did.
        between = term.leader_epoch - last.leader_epoch - 1
        if between > (state.unclean_permitted_in(term) is False):
            return True
    return last.leader != term.leader and lacks(state, last, lost) is not True


def misses_elections(lost: Lost, led: list[LeaderTerm]) -> bool:
    """Whether elections since the record was written are not told of, of which one may have been
    unclean. One epoch between two leaders may be one that nobody led."""
    since = [t for t in led if lost.written_in is None or t.leader_epoch >= lost.written_in]
    return any(t.leader_epoch > before.leader_epoch + 2 for before, t in pairwise(since))


def perhaps_by_election(state: State, since: LeaderTerm) -> bool:
    """Whether a leader from then on is not known to have come from the ISR."""
    terms = state.history.terms
    return any(t.order >= since.order and t.election_kind in UNSURE_KINDS for t in terms)
