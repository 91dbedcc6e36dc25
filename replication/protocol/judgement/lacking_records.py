"""What one replica's log is known to lack of another's, and what both are known to hold.

A follower that runs may have fetched since its log was last read, so two logs are compared by when
each was read: what the other's log does not show counts as missing below the offset at which the
holder's log was seen to end by then, or some time before. These are clocks of two machines; nothing
but a danger, which is a warning, rests on them.
"""

from itertools import takewhile

from replication.protocol.ground.model import (
    Span,
    joined_ranges,
    overlaps,
    ranges_without,
    same_record,
    touching,
)
from replication.protocol.ground.topic_partition import LeaderTerm, Replica, State
from replication.protocol.judgement.promised_tiers import by_tier
from replication.protocol.judgement.reference import UNSURE_KINDS, log_is_covered, tail_is_known
from replication.protocol.judgement.who_may_lead import (
    began,
    has_crashed,
    last_begun,
    runs,
    trusted_replicas,
)

# A member of the ISR that lacks what its leader has had for longer does not keep up.
FETCHED_WITHIN_MS = 500
_NO_END = 1 << 62
Ranges = list[tuple[int, int]]
Tiers = list[tuple[int, int, str]]


class Compared:
    """The logs of a partition as they are at one moment, compared two by two: each pair once.

    What is asked of two logs is asked again for each failure; all of it is worked out here when it
    is asked for the first time. Nothing in here may be changed by who asks. last_term: the last one
    that began; last: the last leader; trusted: who is elected without doubt.
    """

    def __init__(self, state: State) -> None:
        self.state = state
        self.last_term: LeaderTerm | None = last_begun(state)
        terms = state.history.terms
        known = self.last_term or (terms[-1] if terms else None)
        self.last = None if known is None else known.leader
        self.trusted = trusted_replicas(state)
        self._pairs: dict[tuple[int, int], tuple[list[Span], Ranges, Ranges]] = {}
        self._lacking: dict[tuple[int, int], Ranges] = {}
        self._shared: dict[tuple[int, int], Ranges] = {}
        self._latest: dict[int, tuple[int, int]] = {}
        self._tiers: dict[tuple[int, int, int], Tiers] = {}

    def lacking(self, holder: Replica, other: Replica) -> Ranges:
        """The offset ranges of one log whose records the other is known not to hold."""
        key = holder.replica, other.replica
        found = self._lacking.get(key)
        if found is None:
            found = self._lacking[key] = self._lacks(holder, other)
        return found

    def shared(self, holder: Replica, other: Replica) -> Ranges:
        """The offset ranges of one log that the other holds as well, as far as both tell."""
        key = holder.replica, other.replica
        found = self._shared.get(key)
        if found is None:
            found = self._shared[key] = self._shares(holder, other)
        return found

    def by_tier(self, holder: Replica, first: int, end: int) -> Tiers:
        """A range of one log cut where the strongest promise about its records changes."""
        key = holder.replica, first, end
        found = self._tiers.get(key)
        if found is None:
            found = self._tiers[key] = by_tier(self.state, holder, first, end)
        return found

    def _lacks(self, holder: Replica, other: Replica) -> Ranges:
        start, until = other.log.log_start_offset, self._compared_up_to(holder, other)
        if until <= start:
            return []
        mine, alike, unheard = self._pair(holder, other)
        missing = [(max(s[0], start), min(s[1], until)) for s in mine]
        missing = joined_ranges([each for each in missing if each[0] < each[1]])
        for first, end in alike if missing else ():
            missing = ranges_without(missing, first, end)
        if not unheard:
            return missing
        within = [(max(a, start), min(b, until)) for a, b in unheard]
        return joined_ranges([*missing, *(each for each in within if each[0] < each[1])])

    def _shares(self, holder: Replica, other: Replica) -> Ranges:
        mine, alike, unheard = self._pair(holder, other)
        spans = holder.log.spans
        begin = len(spans) - len(mine)
        # Where both have a hole nothing is asked.
        found = [(spans[0].first_offset, spans[begin - 1].end_offset)] if begin else []
        found = joined_ranges(found + alike)
        for first, below in unheard:
            found = ranges_without(found, first, below)
        return found

    def _pair(self, holder: Replica, other: Replica) -> tuple[list[Span], Ranges, Ranges]:
        """The holder's log from where the two differ, the ranges there that are alike all the same,
        and what the other has not heard of."""
        key = holder.replica, other.replica
        found = self._pairs.get(key)
        if found is None:
            mine, theirs = _where_they_differ(self.state, holder, other)
            alike = joined_ranges(_alike(mine, theirs)) if mine and theirs else []
            found = self._pairs[key] = (mine, alike, self._unheard_of(holder, other))
        return found

    def _compared_up_to(self, holder: Replica, other: Replica) -> int:
        """Up to where what the other's log does not show counts as missing there; 0: nowhere."""
        state = self.state
        if not state.log_is_known(other):
            return 0
        # Of a partition without a leader, or of a leader that is down, nobody fetches.
        fetches = state.registration.leader is not None and other.replica in self.trusted
        fetches = fetches and runs(state, holder.replica)
        return ended_at(state, holder, other, FETCHED_WITHIN_MS if fetches else 0)

    def _unheard_of(self, holder: Replica, other: Replica) -> Ranges:
        """The offsets at which one log holds records of leader epochs of which the other holds
        none.

        Records need not show their epoch (before KIP-98, or in a compacted log), so two logs may
        look alike there. The holder led last, or came into the ISR of that leader: it holds what
        was written since the earliest of a row of epochs whose leaders had the records of the one
        before.
        """
        last, told = self.last_term, self.state.registration
        if last is None:
            return []
        latest, below = self._latest_epoch_of(other)
        if not below or last.leader_epoch <= latest:
            return []
        if last.leader != holder.replica:
            joined = last.leader_epoch == told.leader_epoch and last.isr is not None
            if not joined or holder.replica not in {*(told.isr or ())} - {*(last.isr or ())}:
                return []
        starts: list[int] = []
        for term in reversed(self.state.history.terms):
            if not began(self.state, term):
                continue
            if term.leader_epoch <= latest:
                break
            starts += [] if term.start_offset is None else [term.start_offset]
            if term.election_kind in UNSURE_KINDS:
                break
        log = holder.log
        first = max(log.log_start_offset, min(starts, default=_NO_END))
        below = min(below, log.log_end_offset)
        if first >= below:
            return []
        found = [(first, below)]
        for span in touching(log.spans, first, below):
            if span.leader_epoch is not None and span.leader_epoch <= latest:
                found = ranges_without(found, span.first_offset, span.end_offset)
        return found

    def _latest_epoch_of(self, other: Replica) -> tuple[int, int]:
        found = self._latest.get(other.replica)
        if found is None:
            found = self._latest[other.replica] = _latest_epoch_of(self.state, other)
        return found


def _alike(mine: list[Span], theirs: list[Span]) -> Ranges:
    return [(a, b) for a, b, x, y in overlaps(mine, theirs) if same_record(x, y) is not False]


def ended_at(state: State, holder: Replica, other: Replica, milliseconds: int) -> int:
    """Where the holder's log was seen to end so long before the other's was read the last time;
    where it ends now, if the other's end is known without that: its broker stopped, or is back and
    follows nobody yet by its lines."""
    waits = other.role is None and other.leader_epoch is not None
    waits = waits and log_is_covered(state, other.replica)
    if waits or tail_is_known(state, other) or has_crashed(state, other.replica):
        return holder.log.log_end_offset
    has_just_started = other.stale and other.tail_known
    if other.seen_at is None or (other.stale and not has_just_started) or holder.stale:
        return 0
    # What it had when it came back from a crash is no matter of how quickly it fetches.
    crashed = has_just_started and other.clean_start is False
    by = other.seen_at - (0 if crashed else milliseconds)
    return max((end for since, end in holder.sightings if since <= by), default=0)


def _where_they_differ(
    state: State, holder: Replica, other: Replica
) -> tuple[list[Span], list[Span]]:
    """Both logs from the first span that is not the same: most of two logs is.

    How many are is counted on from where it was counted to before, unless a log was cut since.
    """
    notes, mine, theirs = state.risks.notes.alike, holder.log, other.log
    known = notes.get((holder.replica, other.replica))
    alike = 0
    if known is not None and known[0] is mine and known[2] is theirs:
        alike = known[4] if (known[1], known[3]) == (mine.cuts, theirs.cuts) else 0
    fewer = min(len(mine.spans), len(theirs.spans))
    while alike < fewer and mine.spans[alike] == theirs.spans[alike]:
        alike += 1
    # The last span of a log may still grow.
    kept = min(alike, max(fewer - 1, 0))
    notes[holder.replica, other.replica] = (mine, mine.cuts, theirs, theirs.cuts, kept)
    return mine.spans[alike:], theirs.spans[alike:]


def _latest_epoch_of(state: State, other: Replica) -> tuple[int, int]:
    """(leader epoch, offset): of later epochs a log has nothing below that offset.

    An epoch is filed before its first record is appended. A broker that is away hears of none, and
    one that is back has what it came back with, as far as it has not truncated that: that a
    follower truncates where it begins to follow, its line tells.
    """
    shown = (s.leader_epoch for s in reversed(other.log.spans) if s.leader_epoch is not None)
    held = [next(shown, None), other.filed_epoch]
    if other.role is None or not runs(state, other.replica):
        held.append(other.leader_epoch)
    elif other.filed_epoch is None:
        starts = (s for s in reversed(state.history.unclean_starts) if s.replica == other.replica)
        back = next(starts, None)
        if back is None or back.leader_epoch is None or not log_is_covered(state, other.replica):
            return 0, 0
        since = takewhile(lambda cut: cut.at > back.at, reversed(state.history.truncations))
        cuts = [cut.to_offset for cut in since if cut.replica == other.replica]
        return back.leader_epoch, min(back.log_end_offset, *cuts) if cuts else 0
    known = [e for e in held if e is not None]
    return (max(known), _NO_END) if known else (0, 0)
