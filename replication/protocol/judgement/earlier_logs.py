"""What a replica's log held at an earlier step: what is left of it, and what was cut since."""

from bisect import bisect_right

from replication.protocol.ground.model import (
    Span,
    clipped,
    is_seen,
    overlaps,
    same_record,
    uncovered,
)
from replication.protocol.ground.topic_partition import State
from replication.protocol.judgement.reference import log_is_covered


def held_then(state: State, number: int, at: int, first: int, end: int) -> list[Span]:
    """The records of [first, end) that the replica's log held right after step `at` of the fold.

    Of what the evidence does not show there is none. It takes all lines of the replica, since a cut
    is seen in nothing else, and a copy of its log from after them.
    """
    replica = state.replicas.get(number)
    if replica is None or not log_is_covered(state, number):
        return []
    if not replica.captured or replica.stale or replica.partial:
        return []
    lost_from = replica.may_have_lost_from
    cuts = [
        (t.at, t.to_offset, t.dropped) for t in state.history.truncations if t.replica == number
    ]
    cuts += [
        (s.at, s.left_end_offset, s.spans)
        for s in state.history.storage_losses
        if s.replica == number
    ]
    lowest = min((to for step, to, _ in cuts if step > at), default=end)
    if lost_from is not None and lost_from < min(lowest, end):
        return []  # It came back with less than it may have had, and nothing tells with how much.
    found: list[Span] = []
    for step, to, dropped in sorted(cuts, key=lambda cut: cut[0]):
        if step > at and to < end:
            found += clipped(dropped, max(to, first), end)
            end = max(to, first)
    found += clipped(replica.log.spans, first, end)
    return [span for span in found if is_seen(span)]


def stayed_below(
    state: State, number: int, leader_epoch: int, offset: int, since: int = -1
) -> bool:
    """Whether a replica's log ended at or below the offset for as long as that leader epoch was its
    own: what stands there or below is of a later one, which it took only then.

    It takes all lines of the replica, since it may have cut or lost in between what it had there.
    since: the step of the fold from which that counts, where the epoch is known to have begun then.
    """
    replica = state.replicas.get(number)
    if replica is None or not replica.captured or not log_is_covered(state, number):
        return False
    history = state.history
    cuts = [(t.replica, t.at, t.to_offset) for t in history.truncations]
    cuts += [(s.replica, s.at, s.left_end_offset) for s in history.storage_losses]
    cuts += [(s.replica, s.at, s.log_end_offset) for s in history.unclean_starts]
    if any(who == number and at > since and end <= offset for who, at, end in cuts):
        return False
    spans, entries = replica.log.spans, replica.epoch_entries
    span = bisect_right(spans, offset, key=lambda s: s.first_offset)
    entry = bisect_right(entries, offset, key=lambda e: e.start_offset)
    taken = [spans[span - 1].leader_epoch] if span else []
    taken += [entries[entry - 1].leader_epoch] if entry else []
    return any(later is not None and later > leader_epoch for later in taken)


def stands_all(spans: list[Span], first: int, end: int, log: list[Span]) -> bool:
    """Whether these are all of [first, end), and a log holds the very same records."""
    if uncovered(first, end, spans):
        return False
    same = [Span(a, b, 0, 0) for a, b, x, y in overlaps(spans, log) if same_record(x, y) is True]
    return not uncovered(first, end, same)
