"""Where a term of leadership began: the leader's log end when it took over."""

import math
from bisect import bisect_left, bisect_right
from dataclasses import dataclass

from replication.protocol.ground.events import BESIDE_THE_ISR
from replication.protocol.ground.model import is_seen
from replication.protocol.ground.topic_partition import LeaderTerm, Replica, State

UNSURE_KINDS = (*BESIDE_THE_ISR, "unknown", None)


def term_start(state: State, term: LeaderTerm) -> int | None:
    """The log end of the leader when the term began, from its own line or any epoch cache.

    An epoch cache names the first record of the epoch, which is at or above that log end, and so do
    a log and what was committed: using it can only miss an absence, never invent one.
    """
    if term.start_offset is not None or term.occurrence:
        return term.start_offset
    # What its leader wrote once it led again in this epoch (ZooKeeper) tells nothing of its start.
    again = [
        -math.inf if t.start_offset is None else t.start_offset
        for t in state.history.terms
        if t.occurrence and t.leader_epoch == term.leader_epoch
    ]
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
    return min((start for start in starts if start < min(again, default=math.inf)), default=None)


@dataclass(slots=True)
class TermStarts:
    """Where each term of a partition began, worked out once for all questions.

    terms, orders and starts go together. lowest_from: the lowest start of any term from a place on,
    infinite where none is known. unplaced: the places of terms whose start nobody saw. unsure,
    beside_the_isr: the places of terms whose leader is not known to have come from the ISR, and is
    known not to. leaders: of any term. gap_from:
    the first place from a place on whose leader epoch does not follow the one before, and that no
    controller's record tells of; the number of terms where there is none. earliest: where each term
    may have begun at the earliest, of those whose start is known: compaction may have taken the
    first records of an epoch, and what fetched it after that notes a later start. vague: the places
    where that is lower.
    """

    terms: list[LeaderTerm]
    orders: list[tuple[int, int]]
    starts: list[int | None]
    lowest_from: list[float]
    unplaced: list[int]
    unsure: list[int]
    beside_the_isr: list[int]
    leaders: set[int]
    gap_from: list[int]
    earliest: list[int | None]
    vague: list[int]

    def after(self, order: tuple[int, int]) -> int:
        """The place of the first term after that order of terms."""
        return bisect_right(self.orders, order)

    def of(self, term: LeaderTerm) -> int | None:
        """Where this term of the partition began."""
        place = bisect_left(self.orders, term.order)
        while self.terms[place] is not term:
            place += 1
        return self.starts[place]

    def leaders_in(self, leader_epoch: int | None) -> set[int]:
        """Who led in a leader epoch."""
        if leader_epoch is None:
            return set()
        first = bisect_left(self.orders, (leader_epoch, 0))
        led: set[int] = set()
        while first < len(self.terms) and self.terms[first].leader_epoch == leader_epoch:
            led.add(self.terms[first].leader)
            first += 1
        return led

    def all_placed_after(self, order: tuple[int, int]) -> bool:
        """Whether it is known of every later term where it began."""
        first = self.after(order)
        return all(not places or places[-1] < first for places in (self.unplaced, self.vague))


def term_starts(state: State) -> TermStarts:
    """The starts of all terms, which are in their order already."""
    terms = state.history.terms
    starts = [term_start(state, term) for term in terms]
    lowest = [math.inf] * (len(terms) + 1)
    gaps = [len(terms)] * (len(terms) + 1)
    for place in range(len(terms) - 1, -1, -1):
        start = starts[place]
        lowest[place] = lowest[place + 1] if start is None else min(start, lowest[place + 1])
        before = terms[place - 1].leader_epoch if place else terms[place].leader_epoch
        is_gap = terms[place].leader_epoch > before + 1
        is_gap = is_gap and not tells_of_before(terms[place], before)
        gaps[place] = place if is_gap else gaps[place + 1]
    unplaced = [place for place, start in enumerate(starts) if start is None]
    kinds = [(place, term.election_kind) for place, term in enumerate(terms)]
    earliest = [_earliest(state, term, start) for term, start in zip(terms, starts, strict=True)]
    return TermStarts(
        terms,
        [t.order for t in terms],
        starts,
        lowest,
        unplaced,
        [place for place, kind in kinds if kind in UNSURE_KINDS],
        [place for place, kind in kinds if kind in BESIDE_THE_ISR],
        {t.leader for t in terms},
        gaps,
        earliest,
        [place for place, start in enumerate(earliest) if start != starts[place]],
    )


def _earliest(state: State, term: LeaderTerm, start: int | None) -> int | None:
    """The lowest end of its leader's log at a term's start that what is left of logs allows: above
    what a log with records of its epoch has of earlier ones."""
    if start is None or term.start_offset is not None or not state.may_be_compacted():
        return start
    leader_epoch, above = term.leader_epoch, 0
    if any(
        p.how == "high_watermark" and p.replica == term.leader and p.span.first_offset == start
        for p in state.history.commitments
        if p.span.leader_epoch == leader_epoch
    ):
        return start  # By its trace, from which nothing is compacted.
    for replica in state.replicas.values():
        spans = replica.log.spans
        place = next((i for i, s in enumerate(spans) if s.leader_epoch == leader_epoch), 0)
        above = max([above, *(s.end_offset for s in spans[:place] if is_seen(s))])
        named = {e.leader_epoch: e.start_offset for e in replica.epoch_entries}
        if leader_epoch in named:
            own = replica.replica == term.leader and _kept(state, replica, named[leader_epoch])
            earlier = [o + 1 for e, o in named.items() if e < leader_epoch]
            above = max([above, *earlier, named[leader_epoch] if own else 0])
    return min(start, above)


def _kept(state: State, replica: Replica, offset: int) -> bool:
    """Whether the epoch file of a leader tells where an epoch of its began: it names it since, for
    its log was not seen to lose or to cut what stood there."""
    history = state.history
    cuts = [(t.replica, t.to_offset) for t in history.truncations]
    cuts += [(s.replica, s.left_end_offset) for s in history.storage_losses]
    cut = any(r == replica.replica and to <= offset for r, to in cuts)
    return replica.filed_epoch is not None and not cut


def tells_of_before(term: LeaderTerm, leader_epoch: int) -> bool:
    """Whether a controller recorded the election and how it came about, and all that was since that
    leader epoch. Behind a gap (another controller's lines are missing) it does not know how."""
    told = term.recorded and term.election_kind != "unknown"
    return told and term.told_since <= leader_epoch + 1


def _may_begin_before(replica: Replica, offset: int) -> bool:
    """Whether an epoch may begin among records that nobody saw, right before the offset."""
    return replica.partial and any(
        s.end_offset == offset and not is_seen(s) for s in replica.log.spans
    )
