"""Why a record is gone: the step of a losing history without which the record survives.

A record leaves the leaders' logs when a leader begins without it. That leader had lost it with its
disk, or cut it from its log, or never had it: without the loss or the cut it leads with the record;
without an unclean election a member of the ISR leads, which helps only if one of them has it still.
Where several admitted histories lose the record by different steps, the cause is one of these.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from operator import or_

from replication.protocol.ground.events import UNCLEAN_KINDS
from replication.protocol.histories.assumptions import LEADERS_IN_SYNC
from replication.protocol.histories.engine import Followed, TooMany
from replication.protocol.histories.filters.windows import Window
from replication.protocol.histories.moves.states import At
from replication.protocol.histories.search import Search

BY_STORAGE = "storage_loss"
BY_DISK = (BY_STORAGE, "last_replica_standing")
BY_CUT = {
    "high_watermark": "truncate_to_high_watermark",
    "leader_epoch": "truncate_to_high_watermark",
    "diverging_epoch": "truncate_to_high_watermark",
    "out_of_range": "out_of_range_reset",
}
HAD = ("fetched", "has_fetched", "wrote")
Losing = Callable[[At], int]


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause in the ledger's words. window: the leader epoch whose leader began without the
    record; written_in: that in which it was written; isr: the members in force before; lossy: the
    brokers that lost it with their disk; perhaps: those that lost it by a step that no line of
    theirs tells; one_of: where several histories tell several causes, all of them; each: those of
    the single histories, where they have one name; followed: whether the histories that lose it
    are few enough to be followed."""

    name: str
    contributing: tuple[str, ...] = ()
    window: Window | None = None
    isr: frozenset[int] = frozenset()
    lossy: frozenset[int] = frozenset()
    perhaps: frozenset[int] = frozenset()
    one_of: tuple[str, ...] = ()
    written_in: int | None = None
    each: "tuple[Cause, ...]" = ()
    followed: bool = True


UNKNOWN = Cause("unknown")
NOT_FOLLOWED = Cause("unknown", followed=False)


def cause_of(search: Search, losing: Losing, *, by_clients: bool, acks_one: bool) -> Cause:
    """The cause of a loss. losing: of an end the records that are lost, as a mask, 0 for none.
    search: an exact one. by_clients: a client was told of it, so whoever committed it counts."""
    try:
        found = [
            cause
            for windows, path, end in _paths(search, losing)
            for record in _each(losing(end))
            for cause in _OfPath(search, windows, path, end, record, by_clients, acks_one).causes()
        ]
    except TooMany:
        return NOT_FOLLOWED
    each = tuple({(c.name, id(c.window), c.isr, c.lossy, c.perhaps): c for c in found}.values())
    same = replace(found[0], each=each) if found else UNKNOWN
    if len({id(cause.window) for cause in found}) > 1:
        same = replace(same, window=None, written_in=None)
    names = sorted({cause.name for cause in found} - {"unknown"})
    if len(names) == 1 and len({cause.name for cause in found}) == 1:
        return same
    unknown = Cause("unknown", window=same.window, written_in=same.written_in)
    return replace(unknown, each=each, one_of=tuple(names) if len(names) > 1 else ())


def _paths(search: Search, losing: Losing) -> Iterator[tuple[Sequence[Window], list[At], At]]:
    """Ways to ends that lose the record: the leader epochs, the states before and after each, and
    the end as the last copies tell. They begin where evidence first names the offset, unless
    the record may have been written before."""
    followed = search.retraced(whole=False)
    lost = _losing_ends(search, followed, losing)
    records = reduce(or_, map(losing, lost.values()), 0)
    if any(at.appended & records for at in followed.layers[0]):
        followed = search.retraced()
        lost = _losing_ends(search, followed, losing)
    for way in followed.ways_to(lost):
        search.effort.spend(len(way))
        yield followed.stages, way, lost[way[-1]]


def _losing_ends(search: Search, followed: Followed[At, Window], losing: Losing) -> dict[At, At]:
    """Of the states that lose the record before the last copies are asked, each with an end."""
    found = {
        reached: next((e for e in sorted(search.admitted({reached})) if losing(e)), None)
        for reached in sorted(followed.ends)
    }
    return {reached: end for reached, end in found.items() if end is not None}


def _each(records: int) -> Iterator[int]:
    """The records of a mask, by number."""
    return (record for record in range(records.bit_length()) if records >> record & 1)


class _OfPath:
    """One history in which the record is lost."""

    def __init__(
        self,
        search: Search,
        windows: Sequence[Window],
        path: list[At],
        end: At,
        record: int,
        by_clients: bool,
        acks_one: bool,
    ) -> None:
        self.search, self.path, self.acks_one = search, [*path[:-1], end], acks_one
        self.windows = windows
        field = "missed_by_any" if by_clients else "missed_committed"
        field = "missed" if acks_one else field
        missed = (i for i, at in enumerate(self.path) if getattr(at, field) >> record & 1)
        self.number, self.record = next(missed, len(self.path) - 1), record
        self.window = self.windows[min(self.number, len(self.windows)) - 1]
        self.written_in = self._written_in()
        self.election = self._election()

    def _election(self) -> Window:
        """The election by which the leader without the record leads: its own, or the unclean one
        of an older record since which nobody else was elected, if it never led by that one."""
        place = self._leaders_place()
        for number in range(self.number - 2, -1, -1):
            window = self.windows[number]
            other = window.leader not in (None, self.window.leader)
            later = self.written_in is not None and self.written_in >= window.leader_epoch
            had = place is not None and self.path[number].records[place] == self.record
            if other or later or had or place is None:
                break
            steps = self.search.run.items[place].get(window.leader_epoch, ())
            if any(item.kind == "led" for item in steps):
                break
            if window.leader is not None and window.kind in UNCLEAN_KINDS:
                return window
        return self.window

    def _written_in(self) -> int | None:
        """The record's leader epoch; where a log keeps none, the one in which it is appended."""
        epochs = self.search.records.epochs
        told = epochs[self.record] if 0 < self.record < len(epochs) else None
        if told is not None:
            return told
        written = (
            w
            for w, at in zip(self.windows, self.path[1:], strict=False)
            if at.appended >> self.record & 1
        )
        return next((w.leader_epoch for w in written), None)

    def causes(self) -> Iterator[Cause]:
        """One, or where the ISR then in force is one of several those that each makes of it."""
        isr = self._isr_before()
        removed, had = self._removed(), self._had_it()
        names = {self._name(isr, removed, had)}
        if self._may_be_unclean(isr):
            names.add(self._by_election(isr, removed))
        lossy, perhaps = self._lossy(), self._perhaps()
        of_disks = self._by_storage() if BY_STORAGE in names else []
        for each in (*sorted(names - {BY_STORAGE}), *of_disks):
            contributing = ("storage_loss",) if each == "last_replica_standing" else ()
            yield Cause(
                each, contributing, self.window, isr, lossy, perhaps, written_in=self.written_in
            )

    def _name(self, isr: frozenset[int], removed: str | None, had: bool) -> str:
        if self.election.kind in UNCLEAN_KINDS:
            return self._by_election(isr, removed)
        if removed == "storage" and had:
            return BY_STORAGE
        if removed != "storage" and self._was_counted():
            return "premature_high_watermark"
        if removed in BY_CUT and had:
            return BY_CUT[removed]
        if self.acks_one:
            return "acks_one_failover"
        return "storage_loss" if removed == "storage" else BY_CUT.get(removed or "", "unknown")

    def _may_be_unclean(self, isr: frozenset[int]) -> bool:
        """Whether nothing tells if the leader had been in sync: it is none of the last known ISR,
        which may have changed unseen."""
        untold = self.window.kind in (None, "unknown")
        taken_for_so = LEADERS_IN_SYNC in self.search.run.assumed.names
        return untold and not taken_for_so and bool(isr) and self.window.leader not in isr

    def _by_election(self, isr: frozenset[int], removed: str | None) -> str:
        before = self.path[max(self.number - 1, 0)].records
        place = self.search.run.place
        members = [r for r in isr if r in place and r != self.window.leader]
        if any(before[place[r]] == self.record for r in members):
            return "unclean_election"
        if removed != "storage" and self.record in before:
            return "unclean_election"
        if removed in BY_CUT and self._had_it():
            return BY_CUT[removed]
        if members and removed != "storage" and not self._lossy():
            return "unknown"  # That all members lost it, no start shows.
        lost_by_disk = members or removed == "storage"
        return BY_STORAGE if lost_by_disk else "unclean_election"

    def _by_storage(self) -> list[str]:
        needed = self.search.line.min_insync_replicas[-1]
        alone: set[bool] = set()
        for isr in self._isrs_in_force() if needed > 1 else ():
            alone |= {False, True} if isr is None else {len(isr) < needed}
        return [
            "last_replica_standing" if each else BY_STORAGE for each in sorted(alone or {False})
        ]

    def _was_counted(self) -> bool:
        """Whether the leader that lacks the record lacked it as it was committed, in the ISR."""
        place, leader = self._leaders_place(), self.window.leader
        steps = zip(self.windows, self.path[: self.number], self.path[1:], strict=False)
        for window, before, at in steps:
            if not (at.committed & ~before.committed) >> self.record & 1:
                continue
            if place is None or not self.search.brokers[place].covered:
                return False  # It may have fetched it, and lost it again, within the epoch.
            if not window.isrs or any(leader not in isr for isr in window.isrs):
                return False
            if self.record in (before.records[place], at.records[place]):
                return False
            return window.leader != leader and not self._came_or_went(place, window)
        return False

    def _came_or_went(self, place: int, window: Window) -> bool:
        """Whether a broker's own steps within one leader epoch show that it had the record, or may
        have removed it: a cut, or a start after a crash without it."""
        return any(
            (item.kind in HAD and item.records == frozenset((self.record,)))
            or (item.kind == "cut" and item.cut and item.has is not False)
            or (item.kind == "started" and item.has is False and item.clean is not True)
            for item in self.search.run.items[place].get(window.leader_epoch, ())
        )

    def _leaders_place(self) -> int | None:
        leader = self.window.leader
        return None if leader is None else self.search.run.place.get(leader)

    def _had_it(self) -> bool:
        """Whether the leader that lacks the record had it before, or wrote it."""
        place = self._leaders_place()
        if place is None:
            return False
        return self._held(place) or self.window.leader in self._holders() or self._wrote_it()

    def _wrote_it(self) -> bool:
        written = self.search.line.by_epoch
        leader_epoch = self.written_in
        return leader_epoch in written and written[leader_epoch].leader == self.window.leader

    def _held(self, place: int) -> bool:
        """Whether a broker held it at an epoch's end, or by its own steps within one."""
        if any(at.records[place] == self.record for at in self.path[: self.number + 1]):
            return True
        return any(
            item.kind in HAD and item.records == frozenset((self.record,))
            for window in self.windows[: self.number]
            for item in self.search.run.items[place].get(window.leader_epoch, ())
        )

    def _removed(self) -> str | None:
        """How the leader came to be without the record, by its own steps: storage, or the reason of
        a cut; None where no step tells."""
        place, removed = self._leaders_place(), None
        if place is None:
            return None
        had, wrote = self._had_it(), self.written_in == self.window.leader_epoch
        # It led this leader epoch with the record, and lost it before it led the epoch again.
        led_with_it = self.path[max(self.number - 1, 0)].records[place] == self.record
        for window in self.windows[: self.number]:
            for item in self.search.run.items[place].get(window.leader_epoch, ()):
                if item.kind == "started" and item.has is False and (item.shown or had):
                    removed = "storage"
                elif item.kind == "cut" and item.cut and item.has is not False:
                    removed = item.reason
                elif item.kind == "led" and window is self.window and not wrote:
                    with_it = led_with_it and item.has and removed is None
                    if not with_it:
                        return removed
        return removed

    def _isrs_in_force(self) -> list[frozenset[int] | None]:
        """The ISRs of which one was in force as the leader began without the record; None: unknown.
        A leader that led the epoch with it began again in one of the epoch's own."""
        place = self._leaders_place()
        before = self.path[max(self.number - 1, 0)].records
        again = self.written_in == self.window.leader_epoch or (
            place is not None and before[place] == self.record
        )
        if again:
            return list(self.window.isrs) if self.window.isrs else [None]
        windows = self.search.line.windows
        place = bisect_left(windows, self.election.leader_epoch, key=lambda w: w.leader_epoch)
        earlier = (windows[number].isrs for number in range(place - 1, -1, -1))
        return [next((isrs[-1] for isrs in earlier if isrs), None)]

    def _isr_before(self) -> frozenset[int]:
        return self._isrs_in_force()[-1] or frozenset()

    def _lossy(self) -> frozenset[int]:
        """The brokers that held the record and came back without it, by their own starts."""
        run, found, holders = self.search.run, set(), self._holders()
        for number, place in run.place.items():
            held = self._held(place)
            starts = (
                item
                for window in self.windows[: self.number]
                for item in run.items[place].get(window.leader_epoch, ())
                if item.kind == "started" and item.has is False
            )
            if any(item.shown or held or number in holders for item in starts):
                found.add(number)
        return frozenset(found)

    def _holders(self) -> set[int]:
        """Who held it though it lost it within the same leader epoch: the leader that wrote it, and
        the members of every ISR of the epoch in which it was committed."""
        found: set[int] = set()
        for window, before, at in zip(self.windows, self.path, self.path[1:], strict=False):
            if (at.appended & ~before.appended) >> self.record & 1 and window.leader is not None:
                found.add(window.leader)
            if (at.committed & ~before.committed) >> self.record & 1 and window.isrs:
                found |= frozenset.intersection(*window.isrs)
        return found

    def _perhaps(self) -> frozenset[int]:
        """The brokers whose lines are missing that held the record and came to be without it."""
        run = self.search.run
        rows = [at.records for at in self.path[: self.number + 1]]
        return frozenset(
            number
            for number, place in run.place.items()
            if not self.search.brokers[place].covered
            and any(a[place] == self.record != b[place] for a, b in pairwise(rows))
        )
