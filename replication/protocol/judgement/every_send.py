"""Whether it is known of every record that was ever sent that it stands: then none was lost of
which nothing tells that it had been committed."""

from replication.protocol.ground.model import clipped, is_seen
from replication.protocol.judgement.earlier_logs import stands_all
from replication.protocol.judgement.reference import lived_on_unseen
from replication.protocol.judgement.same_record import all_known
from replication.protocol.judgement.unseen_terms import never_began, unnamed_writers_epoch
from replication.protocol.judgement.view import View


def every_send_stands(view: View) -> bool:
    """Whether the acknowledgement logs are those of all producers, each of their records stands in
    the log that counts, and no leader since was without one."""
    state = view.state
    if not (view.covered("acknowledgements") and view.covered("all_producers")):
        return False
    if state.told_of("sends") or view.absences or view.doubts:
        return False
    return _is_all_that_was_written(view) and _none_was_missed(view)


def _is_all_that_was_written(view: View) -> bool:
    """Whether the log that counts is known, and nothing shows a record beside it."""
    replica, history = view.ref.replica, view.state.history
    if replica is None or replica.partial or lived_on_unseen(view.state, replica):
        return False
    first, end = replica.log.log_start_offset, 1 << 62
    known = all_known(view.state, first, end)
    known += [s for cut in history.truncations for s in clipped(cut.dropped, first, end)]
    known += [s for loss in history.storage_losses for s in clipped(loss.spans, first, end)]
    return all(is_seen(s) and stands_all([s], *s[:2], view.ref.spans) for s in known)


def _none_was_missed(view: View) -> bool:
    """Whether every leader began with all that stands there of earlier leader epochs."""
    spans = view.ref.spans
    if unnamed_writers_epoch(view.state, view.ref.starts) is not None:
        return False
    if any(span.leader_epoch is None for span in spans):
        return False
    for term, start in zip(view.ref.starts.terms, view.ref.starts.starts, strict=True):
        if never_began(view.state, term):
            continue
        if start is None or any(
            (s.leader_epoch or 0) < term.leader_epoch and s.end_offset > start for s in spans
        ):
            return False
    return True
