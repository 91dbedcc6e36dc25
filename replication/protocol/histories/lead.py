"""One leader epoch under one leader: its own ways, its followers', and what becomes committed."""

from collections.abc import Iterable

from replication.protocol.histories.assumptions import (
    ELECTIONS_AS_RECORDED,
    LEADERS_IN_SYNC,
    REPLACED_LEADERS_HAD_STOPPED,
)
from replication.protocol.histories.engine import Effort, walk
from replication.protocol.histories.filters.at_offset import Run
from replication.protocol.histories.filters.items import Item
from replication.protocol.histories.filters.own_steps import of_leader
from replication.protocol.histories.filters.windows import UNSURE, Window
from replication.protocol.histories.follow import Followers, together
from replication.protocol.histories.moves import leading
from replication.protocol.histories.moves.by_rule import commits_alone
from replication.protocol.histories.moves.committing import Commits
from replication.protocol.histories.moves.states import (
    NOTHING,
    At,
    Broker,
    Ending,
    Leading,
)
from replication.protocol.histories.records import Records

# A leader at the beginning of an epoch: record, above, ever, appended, committed_by_any.
Start = tuple[int, int, int, int, int]
Steps = tuple[tuple[str, int], ...]


class LedEpoch:
    """A leader epoch that a broker leads, or may have led."""

    def __init__(
        self, run: Run, window: Window, leader: int, records: Records, followers: Followers
    ) -> None:
        self.run, self.window, self.leader = run, window, leader
        self.records, self.followers = records, followers
        self.place = run.place[leader]
        trusted = run.line.controller_is_known or ELECTIONS_AS_RECORDED in run.assumed.names
        # Of ISRs that are not all recorded no commitment can be excluded.
        self.isrs = window.isrs if trusted else None
        self.items = run.items[self.place].get(window.leader_epoch, ())
        self._ways: dict[Start, set[Leading]] = {}
        self.by = self._broker()
        led = [item for item in self.items if item.kind == "led"]
        line = run.line
        self.began = bool(led)
        # A leader that has not heard of another keeps what it knew of its followers.
        not_heard = not self.by.covered and window.number in line.not_heard
        self.several = run.several(leader, window.leader_epoch)
        self.commits = Commits(
            self.isrs,
            run.place,
            leader,
            line.min_insync_replicas[0],
            line.flags,
            again=any(item.again for item in led) or not_heard,
            zombie=self._zombie(),
            in_sync=self._was_in_sync(),
        )

    def _broker(self) -> Broker:
        base, line, isrs = self.followers.brokers[self.place], self.run.line, self.isrs
        minimum = line.min_insync_replicas[-1]
        alone = False
        if line.flags is not None and isrs:
            alone = isrs[0] == {self.leader} and commits_alone(minimum, line.flags)
        always = alone and all(isr == {self.leader} for isr in isrs or ()) and not self._awaits()
        return Broker(base.covered, base.traced, base.truncation, base.unseen_losses, alone, always)

    def _awaits(self) -> bool:
        """Whether the leader may have waited for a replica that is no member of its ISR: one that
        had caught up, and fetched on."""
        if not self.run.line.has("high_watermark_counts_caught_up_outsiders"):
            return False
        leader_epoch = self.window.leader_epoch
        others = [r for r in enumerate(self.run.items) if r[0] != self.place]
        return any(
            not self.followers.brokers[place].covered
            or any(i.kind in ("followed", "fetches_on") for i in items.get(leader_epoch, ()))
            for place, items in others
        )

    def _was_in_sync(self) -> bool:
        """Whether its election is taken for one of a replica that had all that was committed."""
        assumed = LEADERS_IN_SYNC in self.run.assumed.names
        if not assumed or self.window.kind not in (None, "unknown"):
            return False
        # One that came back with less than its log was seen to hold had been in sync before that.
        own = self.run.line.index[self.leader]
        return not own.came_back_without(self.run.offset, self.window.leader_epoch)

    def _zombie(self) -> bool:
        """Whether the leader may have committed after another was elected."""
        later = self.window.next_other
        if later is None:
            return False
        last = max((i for i, item in enumerate(self.items) if item.kind == "led"), default=0)
        stopped = any(item.kind in ("started", "stopped") for item in self.items[last:])
        if self.by.covered and stopped:
            return False
        isrs = self.isrs
        alone = self.by.covered and isrs is not None and isrs[-1] == {self.leader}
        cut_off = alone and later.kind in UNSURE
        return cut_off or REPLACED_LEADERS_HAD_STOPPED not in self.run.assumed.names

    def after(self, states: set[At], effort: Effort) -> set[At]:
        """The states after the epoch."""
        found: set[At] = set()
        if not self.began:
            if self.by.covered or not self.window.led:
                found |= self.followers.without_leader(states, self.window.leader_epoch)
            if self.by.covered:
                return found
        ways, place = self._ways, self.place
        for at in states:
            start = (
                at.records[place],
                at.above >> place & 1,
                at.ever >> place & 1,
                at.appended,
                0 if self.by.covered else at.committed_by_any,
            )
            if start not in ways:
                ways[start] = self._lead(start, effort)
            for way in ways[start]:
                found |= self._with_followers(at, way)
            effort.spend(1, len(found) // 8)
        return found

    def _with_followers(self, at: At, way: Leading) -> set[At]:
        options, leader_epoch = [], self.window.leader_epoch
        for place in range(len(self.followers.brokers)):
            if place == self.place:
                own = Ending(way.record, way.above, way.ever, frozenset(), way.lost)
                options.append([own])
            else:
                options.append(
                    self.followers.ways(place, leader_epoch, at, way.exposed, self.leader)
                )
        return {
            At(records, above, ever, *masks, lost)
            for records, above, ever, had, lost in together(options, at.lost, self.followers.effort)
            for masks in self.commits.after(at, way.steps, had)
        }

    def _lead(self, start: Start, effort: Effort) -> set[Leading]:
        """All ways of the leader through its own steps in this epoch."""
        by, items, kraft = self.by, self.items, self.run.line.kraft
        leader_epoch, records = self.window.leader_epoch, self.records

        def writable(at: Leading) -> list[int]:
            return records.writable(leader_epoch, self.leader, at, several=self.several)

        def moves(at: Leading) -> Iterable[Leading]:
            return leading.unseen_moves(by, at, writable, kraft=kraft)

        def accept(item: Item, at: Leading) -> Iterable[Leading]:
            yield from of_leader(by, item, at)
            if item.kind == "wrote" and item.unseen_from is not None and not at.record:
                yield leading.wrote(at, records.unseen_of(leader_epoch, at.occurrence))

        starts = self._starts(start) if self.began else self._unseen_starts(start)
        at_rest = bool(items and items[-1].last)
        return {
            at._replace(steps=leading.seen_of(at.steps), role=False, occurrence=0, appended=0)
            for at in walk(items, starts, moves, accept, effort, at_rest=at_rest)
        }

    def _starts(self, start: Start) -> list[Leading]:
        record, above, ever, appended, by_any = start
        ever = ever if self.by.covered else 1
        found = [Leading(False, 0, record, above, ever, appended, NOTHING, (), 0)]
        if not self.by.covered and record and by_any >> record & 1:
            found.append(found[0]._replace(above=1))
        return found

    def _unseen_starts(self, start: Start) -> list[Leading]:
        """No line tells that it began to lead: it may have lost its log's end before."""
        record, above, _, appended, _ = start
        window, by = self.window, self.by
        may_lose = by.unseen_losses != 0 or window.leader_was_away
        had: bool | None = None
        # A leader that led twice in the epoch, and lost the end of its log between, began with
        # more.
        again = self.several and by.unseen_losses != 0
        if window.start is not None and not self.run.line.compacted and not again:
            had = self.run.offset < window.start
        found = []
        for first in {record, 0} if may_lose else {record}:
            if had is not None and had != bool(first):
                continue
            for high in {above, 0} if first else {0}:
                steps: Steps = (("began", first),)
                if first and (high or by.alone):
                    steps = (*steps, ("had_committed", first))
                high = 1 if first and by.alone else high
                exposed = frozenset([(first, high)])
                found.append(Leading(True, 0, first, high, 1, appended, exposed, steps, 0))
        return found
