"""Whether what a leader answered for at acks=1 was committed by then: it led alone.

A leader moves its high watermark as it appends, before it answers, up to the lowest log end of the
ISR and of the replicas that were caught up with it lately (`Partition.maybeIncrementLeaderHW`). Who
was elected alone in the ISR, and of whom nobody has fetched, waits for no one.
"""

from replication.protocol.ground.topic_partition import LeaderTerm, State
from replication.protocol.judgement.absence import Absence
from replication.protocol.judgement.reference import Reference, log_is_covered
from replication.protocol.judgement.unseen_terms import cut_or_lost_since
from replication.protocol.judgement.written_later import others_there


def committed_at_once(state: State, ref: Reference, absence: Absence) -> LeaderTerm | None:
    """The term in which records that are gone, acknowledged at acks=1, had surely been committed.

    Of several at one offset, of which one is gone, the first was, whichever that is.
    """
    promise, leader = absence.promise, absence.promise.replica
    if promise.how != "acks_1" or leader is None:
        return None
    first, end = absence.first_offset, absence.end_offset
    if absence.one_of_several and any(
        p.replica != leader for p in others_there(state, promise, first)
    ):
        return None
    term = None
    borders = {*ref.starts.starts, *(t.end_log_end_offset for t in ref.starts.terms)}
    for offset in {first, *(o for o in borders if o is not None and first < o < end)}:
        lost_in = _may_be_lost_in(state, ref, leader, offset, absence.one_of_several)
        if len(lost_in) != 1 or not commits_at_once(state, lost_in[0]):
            return None
        term = lost_in[0]
    return term


def _may_be_lost_in(
    state: State, ref: Reference, leader: int, offset: int, one_of_several: bool
) -> list[LeaderTerm]:
    """The terms in which a leader may have written what is gone; empty where nothing tells."""
    possible: list[LeaderTerm] = []
    for term, start in zip(ref.starts.terms, ref.starts.starts, strict=True):
        if term.leader != leader:
            continue
        if start is None:
            return []
        ended_below = term.end_is_certain and (term.end_log_end_offset or 0) <= offset
        if start <= offset and not ended_below:
            possible.append(term)
    if one_of_several:
        return possible[:-1]
    return [t for t in possible if ref.leader != leader or not _kept_all_since(state, t)]


def _kept_all_since(state: State, term: LeaderTerm) -> bool:
    """Whether a leader has cut and lost nothing since a term began, by all its lines."""
    return log_is_covered(state, term.leader) and not cut_or_lost_since(state, term)


def commits_at_once(state: State, term: LeaderTerm) -> bool:
    """Whether a leader had committed all that it answered for in a term, as a valid leader.

    It was elected alone in the ISR, by the controller's record, had not led before (whoever had
    followed it then may fetch on, not having heard of anything since, before KIP-320), and by all
    brokers' lines none of the others came to follow it. It stopped, and led on in the same epoch
    (ZooKeeper): so until it stopped the controller had named nobody else, nor none.
    """
    flags = state.behaviour()
    if flags is None:
        return False
    if flags.has("high_watermark_waits_for_min_insync_replicas") and (
        (state.min_insync_replicas_in(term) or 2) > 1
    ):
        return False
    if not term.recorded or term.isr != (term.leader,) or not term.start_event_id:
        return False
    if term.leads_on or term.led_until_now_in is not None or term.ended != "stopped":
        return False
    terms = state.history.terms
    place = next(n for n, t in enumerate(terms) if t is term)
    if any(t.leader == term.leader for t in terms[:place]) or term.occurrence:
        return False
    again = terms[place + 1] if place + 1 < len(terms) else None
    if again is None or not again.start_event_id:
        return False
    if (again.leader_epoch, again.leader) != (term.leader_epoch, term.leader):
        return False
    everybody = state.ever_assigned | state.replicas.keys()
    return not term.followers and all(log_is_covered(state, r) for r in everybody)
