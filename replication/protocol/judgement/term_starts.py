"""Where a term of leadership began: the leader's log end when it took over."""

from replication.protocol.ground.model import is_seen
from replication.protocol.ground.topic_partition import Replica, State, Term


def term_start(state: State, term: Term) -> int | None:
    """The log end of the leader when the term began, from its own line or any epoch cache.

    An epoch cache names the first record of the epoch, which is at or above that log end, and so do
    a log and what was committed: using it can only miss an absence, never invent one.
    """
    if term.start_offset is not None or term.occurrence:
        return term.start_offset
    starts = [
        entry.start_offset
        for replica in state.replicas.values()
        for entry in replica.epoch_entries
        if entry.leader_epoch == term.leader_epoch
        and not _may_begin_before(replica, entry.start_offset)
    ]
    starts += [
        span.first_offset
        for replica in state.replicas.values()
        for span in replica.log.spans
        if span.leader_epoch == term.leader_epoch
        and not _may_begin_before(replica, span.first_offset)
    ]
    starts += [
        promise.span.first_offset
        for promise in state.history.commitments
        if promise.span.leader_epoch == term.leader_epoch
    ]
    return min(starts, default=None)


def _may_begin_before(replica: Replica, offset: int) -> bool:
    """Whether an epoch may begin among records that nobody saw, right before the offset."""
    return replica.partial and any(
        s.end_offset == offset and not is_seen(s) for s in replica.log.spans
    )
