"""What the last leader had and has no more, while another replica still holds it."""

from collections.abc import Callable
from math import inf

from replication.protocol.ground.model import Span, clipped, ranges_without, touching
from replication.protocol.ground.topic_partition import Replica, State
from replication.protocol.judgement.lacking_records import Compared
from replication.protocol.judgement.promised_tiers import COMMITTED, joined_alike

Had = Callable[[int | None, int, str], bool]


def lost_by(logs: Compared, leader: Replica) -> tuple[Replica, list[tuple[int, int, str]]]:
    """The best other replica, and (first offset, end offset, tier) of each run that it holds of
    what the leader lost."""
    state = logs.state
    others = [state.replicas.get(r) for r in state.settings.assigned_replicas or ()]
    known = [r for r in others if r is not None and r is not leader and state.log_is_known(r)]
    if not known:
        return leader, []
    holder = max(known, key=lambda r: (r.replica in logs.trusted, r.log.log_end_offset))
    # What a leader had removed is nobody's loss.
    removed = max((r.below for r in state.history.removals), default=0)
    had = _had_by(state, leader.replica)
    lost = joined_alike(
        (a, b, tier)
        for first, end in ranges_without(logs.lacking(holder, leader), 0, removed)
        for span in clipped(_with_epochs(holder, first, end), first, end)
        for a, b, tier in logs.by_tier(holder, span.first_offset, span.end_offset)
        if had(span.leader_epoch, b, tier)
    )
    return holder, lost


def _had_by(state: State, leader: int) -> Had:
    """Tells of a record (leader epoch, end offset, tier) that another holds whether the leader is
    known to have had it: it wrote all of the row of epochs up to its last in which nobody else led;
    of what is older, it had what was committed.

    What it wrote in the epochs before its last and lies past the log end with which that began, it
    had lost by then. A record without an epoch is of no later one than its last, for all we know.
    """
    terms = state.history.terms
    last_term = next((t for t in reversed(terms) if t.leader == leader), None)
    last = state.registration.leader_epoch if last_term is None else last_term.leader_epoch
    own = {t.leader_epoch for t in terms if t.leader == leader}
    own -= {t.leader_epoch for t in terms if t.leader != leader}
    first_own = next((e for e in range(last, -1, -1) if e - 1 not in own), last)
    began_at = None if last_term is None else last_term.start_offset
    started = inf if began_at is None else began_at

    def had(leader_epoch: int | None, end_offset: int, tier: str) -> bool:
        if leader_epoch is not None and leader_epoch >= last:
            return leader_epoch == last
        if tier in COMMITTED:
            return True
        wrote = (0 if leader_epoch is None else leader_epoch) >= first_own
        return wrote and (first_own == last or end_offset <= started)

    return had


def _with_epochs(replica: Replica, first: int, end: int) -> list[Span]:
    """The spans of a log in a range; what compaction hides the epoch of is of the last epoch of its
    epoch file from where that begins."""
    last = replica.epoch_entries[-1] if replica.epoch_entries else None
    found: list[Span] = []
    for span in touching(replica.log.spans, first, end):
        if span.leader_epoch is not None or last is None:
            found.append(span)
            continue
        found += clipped([span], 0, last.start_offset)
        newer = clipped([span], last.start_offset, span.end_offset)
        found += [s._replace(leader_epoch=last.leader_epoch) for s in newer]
    return found
