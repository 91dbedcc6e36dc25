"""Records that bear no leader epoch (before KIP-98): which leader wrote them, only lines tell."""

from dataclasses import replace

from replication.protocol.ground.events import BESIDE_THE_ISR
from replication.protocol.ground.model import Span
from replication.protocol.ground.topic_partition import (
    ANY_OCCURRENCE,
    LeaderTerm,
    Promise,
    State,
)
from replication.protocol.judgement.absence import Doubt
from replication.protocol.judgement.reference import Reference
from replication.protocol.judgement.same_record import may_have_written
from replication.protocol.judgement.term_starts import UNSURE_KINDS
from replication.protocol.judgement.unseen_terms import first_in_doubt


def lacked_whoever_wrote(state: State, ref: Reference, promise: Promise) -> list[Doubt]:
    """That the log which counts holds a record, but a leader after one that may have written it may
    have lacked it, of which nothing tells how it was elected."""
    starts, flags = ref.starts, state.behaviour()
    if promise.latest_term is not None or flags is None:
        return []
    if flags.has("leader_epoch_in_record_batches") or promise.how not in ("acks_1", "acks_all"):
        return []
    if not set(starts.unplaced) & set(starts.unsure):
        return []
    first, end, _, content = promise.span
    for leader_epoch in may_have_written(state, starts, first, promise):
        span = Span(first, end, leader_epoch, content)
        order = (leader_epoch, ANY_OCCURRENCE)
        term = first_in_doubt(state, ref, replace(promise, span=span, latest_term=order))
        if term is not None and term.election_kind in UNSURE_KINDS:
            return [_in_doubt(promise, term)]
    return []


def _in_doubt(promise: Promise, term: LeaderTerm) -> Doubt:
    who, led = f"broker {term.leader}", f"epoch {term.leader_epoch}"
    if term.election_kind in BESIDE_THE_ISR:
        reason = f"{who} took {led} beside the ISR, and nothing tells whether it held it"
        wanted = f"the log directory of {who} as it was then"
    else:
        reason = f"{who} led {led}, and nothing tells how it was elected, nor whether it "
        reason += "held it"
        wanted = "the controller's history (metadata log or state-change.log)"
    return Doubt(promise.span.first_offset, promise.span.end_offset, promise, reason, wanted)
