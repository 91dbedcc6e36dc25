"""Whether a member of the ISR shows, by its own log, that a leader committed nothing of its own."""

from replication.protocol.ground.topic_partition import LeaderTerm, State
from replication.protocol.judgement.reference import log_is_covered
from replication.protocol.judgement.term_starts import UNSURE_KINDS


def has_nothing_of(state: State, member: int, term: LeaderTerm, begins: int | None) -> bool:
    """Whether a member of the ISR, from before a leader's term to its end, holds all that had been
    committed by then, since that leader wrote nothing which it can have committed. begins: the log
    end with which the member leads next.

    Where the leader's own records would begin, the member's log has one of before, and it has cut
    nothing since: it fetched none of the leader's, and until it cuts, its fetches are answered
    with the diverging epoch and are no progress (KAFKA-13141). So the leader's high watermark never
    passed the end with which it began (KAFKA-15583: an ISR without the member committed nothing
    then). A leader that had led before may count what it knew of the member's log end then.
    """
    flags = state.behaviour()
    if flags is None or (state.settings.controller or flags.controller) != "kraft":
        return False
    if not (
        flags.has("truncates_on_fetch")
        and flags.has("diverging_fetch_is_no_progress")
        and flags.has("high_watermark_waits_for_min_insync_replicas")
    ):
        return False
    start = term.start_offset
    if start is None or begins is None or begins <= start or not _was_member(state, member, term):
        return False
    if any(t.leader == term.leader for t in state.history.terms if t.order < term.order):
        return False
    return _has_an_older_record(state, member, term, start) and _kept_its_log(state, member, term)


def _was_member(state: State, member: int, term: LeaderTerm) -> bool:
    """Whether it was in the ISR at an election from the ISR, and in every one of that term in which
    anything was committed, by the controller's history."""
    if not state.covered("controller_history") or term.election_kind in UNSURE_KINDS:
        return False
    isrs = (term.isr_before or term.isr, term.isr, term.always_in_isr)
    return term.recorded and all(member in (isr or ()) for isr in isrs)


def _has_an_older_record(state: State, member: int, term: LeaderTerm, offset: int) -> bool:
    replica = state.replicas.get(member)
    if replica is None or replica.stale or not state.log_is_known(replica):
        return False
    return any(
        s.first_offset <= offset < s.end_offset
        and s.leader_epoch is not None
        and s.leader_epoch < term.leader_epoch
        for s in replica.log.spans
    )


def _kept_its_log(state: State, member: int, term: LeaderTerm) -> bool:
    """Whether it has cut nothing since the term began, and lost nothing ever, by all its lines."""
    history = state.history
    cut = any(
        t.replica == member
        and (t.at > term.started_at or t.term_epoch is None or t.term_epoch >= term.leader_epoch)
        for t in history.truncations
    )
    lost = any(s.replica == member for s in history.storage_losses)
    untold = any(s.replica == member and not s.told for s in history.unclean_starts)
    return log_is_covered(state, member) and not (cut or lost or untold)
