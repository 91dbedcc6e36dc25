"""What one replica's log is known to lack of another's.

A follower that runs on may have fetched since its log was last read; one that is known to have
crashed has not. Outside the ISR it counts as lacking what it lacked when that was not before the
leader's log was first read to hold it (`seen_at`, `sightings`; two machines' clocks): it is as of
then. A member of the ISR has to lack for half a second what the leader has, while there is a
leader.
"""

from math import inf

from replication.protocol.ground.model import joined_ranges, same_record, touching, uncovered
from replication.protocol.ground.topic_partition import LeaderTerm, Replica, State
from replication.protocol.judgement.reference import (
    UNSURE_KINDS,
    log_is_covered,
    never_began,
    tail_is_known,
)
from replication.protocol.judgement.who_may_lead import (
    has_crashed,
    runs,
    trusted_replicas,
    wrote_in,
)

# A member of the ISR that lacks what its leader has had for longer does not keep up.
FETCHED_WITHIN_MS = 500


def lacking_ranges(state: State, holder: Replica, other: Replica) -> list[tuple[int, int]]:
    """The offset ranges of one log whose records the other is known not to hold."""
    until = _held_until(state, holder, other)
    alike = _begin_alike(state, holder, other)
    if not until:
        return []
    start, missing = other.log.log_start_offset, list[tuple[int, int]]()
    theirs = other.log.spans[alike:]
    for span in holder.log.spans[alike:]:
        position, end = max(span.first_offset, start), min(span.end_offset, until)
        for held in touching(theirs, span.first_offset, end):
            first = max(span.first_offset, held.first_offset)
            if held.first_offset >= end:
                break
            if held.end_offset <= first:
                continue
            if position < held.first_offset:
                missing.append((position, held.first_offset))
            if same_record(span, held) is False:
                missing.append((first, min(end, held.end_offset)))
            position = max(position, held.end_offset)
        if position < end:
            missing.append((position, end))
    known_by_then = _of_what_it_heard(state, other)
    if known_by_then is not None:
        latest, below = known_by_then
        anew = _written_without(state, holder, latest)
        if anew is not None and max(start, anew) < min(until, below):
            missing.append((max(start, anew), int(min(until, below))))
    return joined_ranges(missing)


def shared_ranges(state: State, holder: Replica, other: Replica) -> list[tuple[int, int]]:
    """The offset ranges of one log that the other is known to hold as well."""
    alike = _begin_alike(state, holder, other)
    begun = holder.log.spans[:alike]
    # Where both have a hole nothing is asked.
    found = [(begun[0].first_offset, begun[-1].end_offset)] if begun else []
    theirs = other.log.spans[alike:]
    for span in holder.log.spans[alike:]:
        for held in touching(theirs, span.first_offset, span.end_offset):
            first = max(span.first_offset, held.first_offset)
            end = min(span.end_offset, held.end_offset)
            if first < end and same_record(span, held) is not False:
                found.append((first, end))
    return joined_ranges(found)


def _of_what_it_heard(state: State, other: Replica) -> tuple[int, float] | None:
    """(leader epoch, offset): of later terms than that its log has nothing below that offset.

    One that is away has heard of no later ones. One whose epoch file was read had none of later
    ones than that names, by then: an epoch is filed before its first record is appended. One that
    is back has what it came back with, as far as it has not cut that; that a follower cuts where
    it begins to follow, its line tells.
    """
    held = [other.filed_epoch, *(s.leader_epoch for s in other.log.spans)]
    if other.role is None or not runs(state, other.replica):
        latest = max((e for e in (other.leader_epoch, *held) if e is not None), default=None)
        return None if latest is None else (latest, inf)
    if other.filed_epoch is not None:
        return (max(e for e in held if e is not None), inf)
    starts = (s for s in reversed(state.history.unclean_starts) if s.replica == other.replica)
    back = next(starts, None)
    if back is None or back.leader_epoch is None or not log_is_covered(state, other.replica):
        return None
    cuts = [
        cut.to_offset
        for cut in state.history.truncations
        if cut.replica == other.replica and cut.at > back.at
    ]
    return (back.leader_epoch, min(back.log_end_offset, *cuts)) if cuts else None


def _written_without(state: State, holder: Replica, latest: int) -> int | None:
    """From where on the log of who led last, or of one that came into its ISR, holds what was
    written in terms after `latest`: where a row of terms began whose leaders had the records of the
    one before. Records bear no epoch before KIP-98, so two logs may look alike there."""
    start, terms = None, state.history.terms
    led = [t for t in terms if not never_began(state, t) or wrote_in(state, t)]
    if not led or not (led[-1].leader == holder.replica or _joined_in(state, holder, led[-1])):
        return None
    for term in reversed(led):
        if term.leader_epoch <= latest:
            break
        if term.start_offset is not None:
            start = term.start_offset if start is None else min(start, term.start_offset)
        if term.election_kind in UNSURE_KINDS:
            break
    return start


def _joined_in(state: State, replica: Replica, term: LeaderTerm) -> bool:
    """Whether it was not in the ISR that a leader began with, and is now, in its epoch: its log is
    that leader's as far as it goes."""
    if term.leader_epoch != state.registration.leader_epoch or term.isr is None:
        return False
    return replica.replica not in term.isr and replica.replica in (state.registration.isr or ())


def _begin_alike(state: State, holder: Replica, other: Replica) -> int:
    """How many spans both logs begin with alike: most of what two replicas hold.

    Counted on from where it was counted to before, as long as neither log has been cut since.
    """
    notes, between = state.risks.notes.alike, (holder.replica, other.replica)
    mine, theirs = holder.log, other.log
    known, alike = notes.get(between), 0
    if known is not None and known[0] is mine and known[2] is theirs:
        alike = known[4] if (known[1], known[3]) == (mine.cuts, theirs.cuts) else 0
    fewer = min(len(mine.spans), len(theirs.spans))
    while alike < fewer and mine.spans[alike] == theirs.spans[alike]:
        alike += 1
    # The last span of a log may still grow.
    notes[between] = (mine, mine.cuts, theirs, theirs.cuts, min(alike, max(fewer - 1, 0)))
    return alike


def _held_until(state: State, holder: Replica, other: Replica) -> int:
    """Up to where what the other's log does not show counts as missing there; 0: nowhere."""
    if not state.log_is_known(other):
        return 0
    # Of a partition without a leader, or of one that is down, nobody fetches.
    fetches = state.registration.leader is not None and other.replica in trusted_replicas(state)
    fetches = fetches and runs(state, holder.replica)
    return held_long(state, holder, other, FETCHED_WITHIN_MS if fetches else 0)


def held_long(state: State, holder: Replica, other: Replica, milliseconds: int) -> int:
    """Where the holder's log was seen to end so long before the other's was read the last time;
    where it ends, if the other's end is known without that: it has ended, or is back and follows
    nobody yet by its lines."""
    waits = other.role is None and other.leader_epoch is not None
    waits = waits and log_is_covered(state, other.replica)
    if tail_is_known(state, other) or has_crashed(state, other.replica) or waits:
        return holder.log.log_end_offset
    started = other.stale and other.tail_known
    if other.seen_at is None or (other.stale and not started) or holder.stale:
        return 0
    # What it had when it came back from a crash is no matter of how quickly it fetches.
    by = other.seen_at - (0 if started and other.clean_start is False else milliseconds)
    return max((end for since, end in holder.sightings if since <= by), default=0)


def holders_of(state: State, without: Replica, first: int, end: int) -> tuple[int, ...]:
    """The other replicas whose known logs reach over the whole range."""
    return tuple(
        number
        for number, replica in sorted(state.replicas.items())
        if replica is not without
        and state.log_is_known(replica)
        and not uncovered(first, end, touching(replica.log.spans, first, end))
    )
