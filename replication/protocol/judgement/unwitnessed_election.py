"""Whether committed records may be lost of which nothing tells that they were committed."""

from itertools import pairwise

from replication.protocol.ground.topic_partition import State, Term
from replication.protocol.judgement.term_starts import term_start
from replication.protocol.judgement.unseen_terms import UNSURE_KINDS, truncates_to_high_watermark


def unwitnessed_election(state: State) -> tuple[Term, Term] | None:
    """An election that could lose committed records, where nothing tells what was committed.

    A leader from the ISR holds what was committed, unless it had cut to its high watermark (before
    KIP-101). Any other may not, and then the high watermark of the leader before it decides: from
    its copies, its lines or its trace.
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
        if start is not None and all(term_start(state, t) == start for t in earlier):
            continue
        if not any(_witnessed(state, t) for t in earlier if t.leader == before.leader):
            return before, term
    return None


def _witnessed(state: State, term: Term) -> bool:
    """Whether the high watermark that a leader reached by the end of its term is known."""
    if state.coverage.get(("replica_trace", term.leader), (False, None))[0]:
        return True
    return any(
        p.replica == term.leader
        and p.by_term is not None
        and p.by_term[0] >= term.leader_epoch
        and p.span.end_offset > 0
        for p in state.history.commitments
    )
