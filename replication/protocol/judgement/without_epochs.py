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
from replication.protocol.judgement.lacking_terms import appender, first_lacking_terms
from replication.protocol.judgement.reference import Reference
from replication.protocol.judgement.same_record import may_have_written
from replication.protocol.judgement.term_starts import UNSURE_KINDS, TermStarts
from replication.protocol.judgement.unseen_terms import first_in_doubt


def lacked_whoever_wrote(state: State, ref: Reference, promise: Promise) -> list[Doubt]:
    """That the log which counts holds a record, but a leader after one that may have written it may
    have lacked it, of which nothing tells how it was elected; or lacked it, and who wrote it led on
    as if that had not been."""
    starts, flags = ref.starts, state.behaviour()
    if promise.latest_term is not None or flags is None:
        return []
    if flags.has("leader_epoch_in_record_batches") or promise.how not in ("acks_1", "acks_all"):
        return []
    first, end, _, content = promise.span
    untold = bool(set(starts.unplaced) & set(starts.unsure))
    for leader_epoch in may_have_written(state, starts, first, promise):
        span = Span(first, end, leader_epoch, content)
        named = replace(promise, span=span, latest_term=(leader_epoch, ANY_OCCURRENCE))
        term = first_in_doubt(state, ref, named, from_isr_has=True) if untold else None
        if term is not None:
            return [_in_doubt(promise, term)]
        for _, _, term in first_lacking_terms(state, starts, named):
            if term is not None and _led_on_past(state, starts, named, term):
                return [_lacked(promise, term)]
    return []


def _led_on_past(state: State, starts: TermStarts, promise: Promise, missed: LeaderTerm) -> bool:
    """Whether who wrote the records led on past a leader that lacked them, and cut none of them:
    answered for at acks=1 they may have been before that, or since."""
    if promise.how == "acks_all" and missed.election_kind not in UNSURE_KINDS:
        return False  # What was so before, who came from the ISR has.
    wrote, made_in = appender(starts, promise), promise.span.leader_epoch or 0
    cut = any(
        c.replica == wrote
        and c.to_offset < promise.span.end_offset
        and (c.term_epoch is None or c.term_epoch >= made_in)
        for c in state.history.truncations
    )
    return (
        wrote != missed.leader
        and not cut
        and any(t.leads_on and t.leader == wrote and t.order > missed.order for t in starts.terms)
    )


def _lacked(promise: Promise, term: LeaderTerm) -> Doubt:
    return Doubt(
        promise.span.first_offset,
        promise.span.end_offset,
        promise,
        f"broker {term.leader} led epoch {term.leader_epoch} without it, and nothing tells whether "
        "it was answered for before that",
        "broker logs with kafka.cluster.Partition at TRACE",
    )


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
