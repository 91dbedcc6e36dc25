"""What conformance keeps of a partition's steps: terms, channels, and what waits to be decided."""

from dataclasses import dataclass, field
from typing import Any

from replication.protocol.ground.model import EpochEntry


@dataclass(slots=True)
class Term:
    """What conformance keeps of one leader epoch.

    start_offset, epoch_entries: the leader's log end and epoch cache when it took over (None: not
    seen). high_watermarks: those its leader was seen at, oldest first, the last few only; whole:
    from the first one on. members: brokers in every ISR registered in it, least: the smallest size
    of one. qualified: replicas seen to have come far enough to join the ISR. isr: the last one.
    asked: where each follower was last seen to fetch, asked_first: where first, asked_before: the
    furthest of them before it fetched from further back. excused: followers that came back with
    less than they had, by the high watermark that lies beyond their log end for that reason. lost:
    those whose fetches are not compared any more. ever: brokers that were in any of its ISRs.
    ends: where its leader's last few appends ended.
    """

    leader: int | None = None
    start_offset: int | None = None
    epoch_entries: tuple[EpochEntry, ...] | None = None
    high_watermarks: list[int] = field(default_factory=list)
    whole: bool = False
    members: tuple[int, ...] | None = None
    least: int | None = None
    isr: tuple[int, ...] | None = None
    qualified: list[int] = field(default_factory=list)
    asked: dict[int, int] = field(default_factory=dict)
    asked_first: dict[int, int] = field(default_factory=dict)
    asked_before: dict[int, int] = field(default_factory=dict)
    excused: dict[int, int] = field(default_factory=dict)
    lost: list[int] = field(default_factory=list)
    ever: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)

    def furthest(self, replica: int) -> int:
        """The furthest that its leader saw a follower fetch; -1 if it never did."""
        return max(self.asked.get(replica, -1), self.asked_before.get(replica, -1))


Place = tuple[str, int | None, int | None]
"""Where an event was read: path, line, byte offset."""


@dataclass(slots=True)
class Stage:
    """A follower at one log end. needed: it appended from there, so it must have fetched there."""

    offset: int
    needed: bool = False
    closed: bool = False
    seen: bool = False
    event_id: str = ""
    place: Place | None = None


@dataclass(slots=True)
class Channel:
    """A follower's log ends and the fetches its leader saw, where one runs ahead of the other.

    A fetch is (offset, event id, place, whether it repeats the offset of the one before).
    """

    leader_epoch: int
    replica: int
    stages: list[Stage] = field(default_factory=list)
    fetches: list[tuple[int, str, Place | None, bool]] = field(default_factory=list)


@dataclass(slots=True)
class Expectation:
    """A step that other brokers' lines, which may still come, explain or exclude.

    rule: the one that decides. about: high_watermark, passed, late, join, fetch or cut.
    others: brokers that were taken not to matter, since no ISR of the epoch named them.
    """

    about: str
    rule: str
    leader_epoch: int
    replica: int
    value: int
    log_end_offset: int
    event_id: str
    summary: str
    place: Place | None = None
    epoch_entries: tuple[EpochEntry, ...] = ()
    others: tuple[int, ...] = ()


@dataclass(slots=True)
class Conformance:
    """What prediction by the rules rests on, beside what the fold keeps anyway.

    traced: brokers whose every step is here. terms: by leader epoch, the newest few. open: steps
    that are not decided yet. predicted: changes that the rules foretold, missed: those that they
    did not, though nothing excludes them, by reason; unpredicted names the first of these: (event
    id, what, reason).
    """

    traced: set[int] = field(default_factory=set)
    terms: dict[int, Term] = field(default_factory=dict)
    channels: list[Channel] = field(default_factory=list)
    open: list[Expectation] = field(default_factory=list)
    predicted: int = 0
    missed: dict[str, int] = field(default_factory=dict)
    unpredicted: list[tuple[str, str, str]] = field(default_factory=list)


@dataclass(slots=True)
class Calm:
    """What steady.py looked up since the last eventful step, by replica; see there.

    traced: whether the state is of a trace. leading, following: the logs that appends continue.
    fetching, answered: where a follower's fetches and their answers are held against its leader.
    advancing: the promise that a leader's high watermark extends. taking_over: the high watermarks
    of its leader that a follower takes over.
    """

    traced: bool
    leading: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    following: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    fetching: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    answered: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    advancing: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    taking_over: dict[int, tuple[Any, ...]] = field(default_factory=dict)
