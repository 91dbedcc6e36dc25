"""What who led last had, and has no more: another replica still holds it."""

from dataclasses import dataclass
from math import inf

from replication.protocol.ground.model import Span, ranges_without, touching
from replication.protocol.ground.topic_partition import Replica, State
from replication.protocol.judgement.lacking_records import lacking_ranges
from replication.protocol.judgement.promised_tiers import COMMITTED, by_tier
from replication.protocol.judgement.who_may_lead import trusted_replicas


@dataclass(frozen=True, slots=True)
class _Led:
    """What a leader is known to have had: all of the row of leader epochs up to its last in which
    nobody else led, for it wrote that; of what is older, what was committed.

    started: the log end at which its last term began. What it wrote in the epochs before that and
    lies past it, it had lost by then.
    """

    first_own: int
    last: int
    started: float

    @classmethod
    def of(cls, state: State, leader: int) -> "_Led":
        """By the partition's terms; without one of its own, the registered leader epoch."""
        terms = state.history.terms
        term = next((t for t in reversed(terms) if t.leader == leader), None)
        last = state.registration.leader_epoch if term is None else term.leader_epoch
        own = {t.leader_epoch for t in terms if t.leader == leader}
        own -= {t.leader_epoch for t in terms if t.leader != leader}
        first_own = next((e for e in range(last, -1, -1) if e - 1 not in own), last)
        started = inf if term is None or term.start_offset is None else term.start_offset
        return cls(first_own, last, started)

    def had(self, leader_epoch: int | None, end_offset: int, tier: str) -> bool:
        """Whether it had records of that epoch below that offset, which another has. None: of no
        later epoch than its last, as far as is known."""
        if leader_epoch == self.last:
            return True
        if leader_epoch is not None and leader_epoch > self.last:
            return False
        if tier in COMMITTED:
            return True
        wrote = self.first_own == 0 if leader_epoch is None else leader_epoch >= self.first_own
        return wrote and (self.first_own == self.last or end_offset <= self.started)


def lost_by(state: State, assigned: tuple[int, ...], leader: Replica) -> list[tuple[int, int, str]]:
    """(first offset, end offset, tier) of each run that the best other replica holds of it."""
    others = [state.replicas.get(r) for r in assigned if r != leader.replica]
    known = [r for r in others if r is not None and state.log_is_known(r)]
    if not known:
        return []
    trusted = trusted_replicas(state)
    holder = max(known, key=lambda r: (r.replica in trusted, r.log.log_end_offset))
    # What a leader had removed is nobody's loss.
    removed = max((r.below for r in state.history.removals), default=0)
    led = _Led.of(state, leader.replica)
    found: list[tuple[int, int, str]] = []
    for first, end in ranges_without(lacking_ranges(state, holder, leader), 0, removed):
        for span in _with_epochs(holder, touching(holder.log.spans, first, end)):
            inside = max(first, span.first_offset), min(end, span.end_offset)
            for a, b, tier in by_tier(state, holder, *inside):
                if not led.had(span.leader_epoch, b, tier):
                    continue
                if found and (found[-1][1], found[-1][2]) == (a, tier):
                    a = found.pop()[0]
                found.append((a, b, tier))
    return found


def _with_epochs(replica: Replica, spans: list[Span]) -> list[Span]:
    """Spans of a log; what compaction hides the epoch of is of the last one that its epoch file has
    from where that begins."""
    last = replica.epoch_entries[-1] if replica.epoch_entries else None
    found: list[Span] = []
    for span in spans:
        if span.leader_epoch is not None or last is None or span.end_offset <= last.start_offset:
            found.append(span)
            continue
        start = max(span.first_offset, last.start_offset)
        if span.first_offset < start:
            found.append(Span(span.first_offset, start, None, None))
        found.append(Span(start, span.end_offset, last.leader_epoch, None))
    return found
