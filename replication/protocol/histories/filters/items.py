"""One broker's steps as they read at one offset, leader epoch by leader epoch."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple, Protocol

from replication.protocol.ground.story import WRITES, OwnStep
from replication.protocol.histories.assumptions import (
    COPIES_ARE_CURRENT,
    LINES_ARE_MISSING,
    Assumed,
)
from replication.protocol.histories.filters.by_offset import NEVER
from replication.protocol.histories.filters.timeline import Timeline

Records = frozenset[int]


class Item(NamedTuple):
    """One own step of a broker, as far as it concerns the offset.

    has: whether its log reached past the offset, above: whether its high watermark did; None: not
    told. records: the records that it may be about; None: any. cut: whether a cut removed the
    offset. clean: of started and stopped. again: a leader that was told once more without a
    restart, a follower of the same leader as before. shown: an earlier step showed the record on
    this broker. last: the copy that tells how the replica is at the end. late: of fetched, it may
    be from an answer of the same leader in an earlier epoch of its. unseen_from: of records written
    or fetched, the number from which on those that nothing shows may be meant as well.
    """

    kind: str
    has: bool | None = None
    above: bool | None = None
    records: Records | None = None
    cut: bool | None = False
    clean: bool | None = None
    leader: int | None = None
    reason: str | None = None
    again: bool = False
    shown: bool = False
    last: bool = False
    late: bool = False
    unseen_from: int | None = None


class Final(NamedTuple):
    """How the last copy of a broker's log shows the offset. torn: its end may be lost unseen.
    floating: it counts at the end though the broker's lines have steps after it."""

    place: int
    item: Item
    torn: bool
    floating: bool


class Asked(Protocol):
    """What a reader must know of the run of offsets that it reads for."""

    line: Timeline
    offset: int
    assumed: Assumed

    def records(self, leader_epoch: int | None, content: int | None) -> Records:
        """The numbers of the records that may be meant by what is known of one."""

    def unseen_from(self, leader_epoch: int | None, content: int | None) -> int | None:
        """From which number on a record that nothing shows may be meant; None: none of them."""


class Items(Mapping[int, tuple[Item, ...]]):
    """The items of one broker by leader epoch, each epoch read when it is asked for."""

    def __init__(self, run: Asked, number: int) -> None:
        self.run, self.line = run, run.line
        self.covered = number in run.line.covered
        # A start dropped damaged records: that it lost what is not seen of its log since is seen.
        self.damaged = run.line.state.told_of("whole_log", number)
        self.index = run.line.index[number]
        self.last_copy = run.line.last_copy.get(number)
        self._read: dict[int, tuple[Item, ...]] = {}
        self._items: dict[int, Item | None] = {}

    def __getitem__(self, leader_epoch: int) -> tuple[Item, ...]:
        if leader_epoch not in self._read:
            self._read[leader_epoch] = tuple(self.between(self.index.by_epoch[leader_epoch]))
        return self._read[leader_epoch]

    def __contains__(self, leader_epoch: object) -> bool:
        return leader_epoch in self.index.by_epoch

    def __iter__(self) -> Iterator[int]:
        return iter(self.index.by_epoch)

    def __len__(self) -> int:
        return len(self.index.by_epoch)

    def copies(self) -> tuple[Item | None, ...]:
        """What each copy tells of the offset."""
        return tuple(map(self.of, self.index.copies))

    def between(self, numbers: Iterable[int]) -> Iterator[Item]:
        """The items of some steps, in their order."""
        for number in numbers:
            item = self.of(number)
            if item is not None:
                yield item

    def of(self, number: int) -> Item | None:
        """The item of one step; None where it tells nothing of the offset, or where nothing tells
        of its moment."""
        if number not in self._items:
            self.line.items_read += 1
            step = self.index.steps[number]
            unplaced = not self.covered and step.kind != "copy" and self._is_unplaced(number, step)
            self._items[number] = None if unplaced else _READ[step.kind](self, number, step)
        return self._items[number]

    def later_copies(self, leader_epoch: int) -> Iterator[Item]:
        """The copies that were taken in a leader epoch or later, the last one first."""
        for number in reversed(self.index.copies):
            if self.index.before[number].leader_epoch < leader_epoch:
                return
            item = self.of(number)
            if item is not None:
                yield item

    def final(self) -> tuple[Item, bool, bool] | None:
        """The copy that tells how the replica is at the end, whether it may be torn, and whether
        steps follow it."""
        if self.last_copy is None:
            return None
        step = self.index.steps[self.last_copy]
        floating = not self._is_final(self.last_copy)
        current = COPIES_ARE_CURRENT in self.run.assumed.names
        if floating and not (step.kind_of_copy == "part" and current):
            return None
        item = self._copied(step)
        if item is None or self._has_moved_on(step):
            return None
        stopped = step.clean is True or step.kind_of_copy == "part"
        torn = not stopped and self.run.offset >= (step.log_end_offset or 0)
        return item, torn, floating

    def _is_unplaced(self, number: int, step: OwnStep) -> bool:
        """Whether nothing tells in which leader epoch a broker whose lines are missing did a step:
        no role of it is known by then, or, where nothing is assumed of it, it may have had others
        since.
        """
        leader_epoch = self.index.before[number].leader_epoch
        if leader_epoch == NEVER:
            return True
        if self.run.assumed.names - {LINES_ARE_MISSING} or step.kind in ("led", "followed"):
            return False
        return not (step.kind == "wrote" and step.leader_epoch == leader_epoch)

    # -- of each kind of step -------------------------------------------------------------------
    def _is_shown(self, number: int) -> bool:
        """Whether the last step before that tells of the offset shows the record there."""
        for earlier in range(number - 1, -1, -1):
            told = self._told(earlier)
            if told is not None:
                return told
        return False

    def _told(self, number: int) -> bool | None:
        """Whether a step shows the record on the broker, or shows that it is not there."""
        self.line.items_read += 1
        step = self.index.steps[number]
        if step.kind in WRITES:
            return True if self.wrote(number, step) is not None else None
        if step.kind == "copy":
            item = self.copy(number, step)
            return None if item is None or item.records is None else 0 not in item.records
        if step.kind == "cut":
            item = self.cut(number, step)
            return False if item.cut else item.has
        return self._has(self.index.ends[number])

    def _has(self, end: int | None) -> bool | None:
        return None if end is None else end > self.run.offset

    def started(self, number: int, step: OwnStep) -> Item:
        before = self.index.before[number]
        clean = step.clean if step.clean is not None else before.stopped_clean or None
        if step.log_end_offset == 0:
            clean = None  # A new directory: a clean stop says nothing of it.
        has, above = self._has(step.log_end_offset), self._has(step.high_watermark)
        return Item("started", has, above, clean=clean, shown=self._shown_before(number, has))

    def stopped(self, number: int, step: OwnStep) -> Item:
        clean = bool(step.clean) or self.index.before[number].starts_again
        has = self._has(step.log_end_offset)
        return Item("stopped", has, clean=clean, shown=self._shown_before(number, has))

    def _shown_before(self, number: int, has: bool | None) -> bool:
        return has is not True and (self._is_shown(number) or (self.damaged and has is False))

    def led(self, number: int, step: OwnStep) -> Item:
        before, end = self.index.before[number], self.index.ends[number]
        again = not before.restarted and before.role == "led"
        return Item("led", self._has(end), self._has(step.high_watermark), again=again)

    def followed(self, number: int, step: OwnStep) -> Item:
        before = self.index.before[number]
        again = not before.restarted and before.role == "followed"
        again = again and before.followed == step.leader
        has, above = self._has(step.log_end_offset), self._has(step.high_watermark)
        return Item("followed", has, above, leader=step.leader, again=again)

    def cut(self, number: int, step: OwnStep) -> Item:
        to = step.log_end_offset
        cut = None if to is None else to <= self.run.offset
        has = self._has(step.first_offset)
        if step.reason == "full" and cut is False and not has:
            return Item("restarted_above", records=self.run.records(None, None))
        # What is cut to an offset had reached it.
        return Item("cut", True if cut is False else has, cut=cut, reason=step.reason)

    def wrote(self, number: int, step: OwnStep) -> Item | None:
        first, end = step.first_offset or 0, step.log_end_offset or 0
        if not first <= self.run.offset < end:
            return None
        records = self.run.records(step.leader_epoch, step.content)
        late = step.kind == "fetched" and self.line.takes_late_answers(
            self.index.before[number].leader_epoch
        )
        unseen_from = self.run.unseen_from(step.leader_epoch, step.content)
        return Item(step.kind, records=records, late=late, unseen_from=unseen_from)

    def high_watermark(self, number: int, step: OwnStep) -> Item:
        return Item(step.kind, above=self._has(step.high_watermark))

    def replaced(self, number: int, step: OwnStep) -> Item:
        return Item("replaced")

    def log_start(self, number: int, step: OwnStep) -> None:
        return None

    def copy(self, number: int, step: OwnStep) -> Item | None:
        item = self._copied(step)
        if item is None:
            return None
        if number == self.last_copy and self._is_final(number):
            gone = not self.covered or self._has_moved_on(step)
            return None if gone else item._replace(last=True)
        unplaced = step.kind_of_copy == "part" or (
            not self.covered and self._is_unplaced(number, step)
        )
        if not self.run.assumed.moments_known or unplaced:
            return None  # A copy of a moment that nothing tells: only its records count.
        return item

    def _is_final(self, number: int) -> bool:
        later = self.index.steps[number + 1 :]
        return not later or (not self.covered and all(s.kind == "checkpoint" for s in later))

    def _has_moved_on(self, step: OwnStep) -> bool:
        """Whether the broker may have lived on since: the copy shows what there was."""
        assumed = COPIES_ARE_CURRENT in self.run.assumed.names
        return not self.covered and not assumed and step.clean is not True

    def _copied(self, step: OwnStep) -> Item | None:
        x = self.run.offset
        if x < (step.log_start_offset or 0):
            return None
        above = (step.high_watermark or 0) > x
        part = step.kind_of_copy == "part"
        within = x < (step.log_end_offset or 0) and not part and not self.line.compacted
        there = True if within else None  # Some record, though nobody saw which.
        for first, end, leader_epoch, content in step.spans:
            if first <= x < end:
                if leader_epoch is None and content is None:
                    return Item("copy", there, above)
                return Item("copy", above=above, records=self.run.records(leader_epoch, content))
        open_end = part or step.clean is not True or self.line.compacted
        if x < (step.log_end_offset or 0) or open_end:
            return Item("copy", there, above)
        return Item("copy", above=above, records=frozenset([0]))


_READ: dict[str, Callable[[Items, int, OwnStep], Item | None]] = {
    "started": Items.started,
    "stopped": Items.stopped,
    "led": Items.led,
    "followed": Items.followed,
    "cut": Items.cut,
    "wrote": Items.wrote,
    "fetched": Items.wrote,
    "high_watermark": Items.high_watermark,
    "checkpoint": Items.high_watermark,
    "log_start": Items.log_start,
    "replaced": Items.replaced,
    "copy": Items.copy,
}


def shown_at_first(items: Items, *, by_copies: bool) -> bool:
    """Whether the first step that tells something of the offset tells that a record is there.
    by_copies: a copy may be that step."""
    for item in items.between(range(len(items.index.steps))):
        if item.kind in ("wrote", "fetched") or item.has is False:
            return False
        if item.kind == "copy" and not by_copies:
            return False
        if item.kind == "copy" and item.records is not None:
            return 0 not in item.records
        if item.has or item.above:
            return True
    return False


def may_differ(item: Item) -> bool:
    """Whether an item may tell that the record is not there (a crash may), or that another is."""
    if item.kind in ("started", "stopped"):
        return item.has is not True
    if item.kind in ("led", "followed"):
        return item.has is False
    if item.kind in ("wrote", "fetched", "has_fetched"):
        return True
    return item.kind == "cut" and item.cut is not False


def shows_it(item: Item) -> bool:
    return item.kind in ("wrote", "fetched", "has_fetched") or item.has is True


def follow_on(by_epoch: dict[int, list[Item]], line: Timeline) -> frozenset[int]:
    """Before fetches carry the leader epoch (KIP-320) a follower goes on fetching from a leader
    that was elected again in an epoch of which the follower has not heard.

    What it did after it had come to follow goes to the last of the epochs in which it may have, up
    to that of which it heard next. In those before it may have done any of it: these are returned,
    with the one in which it followed.
    """
    found: set[int] = set()
    epochs = sorted(by_epoch)
    for followed_in, later in pairwise([*epochs, 1 << 60]):
        items = by_epoch[followed_in]
        last = max((i for i, it in enumerate(items) if it.kind == "followed"), default=None)
        if last is None or any(it.kind == "led" for it in items[last:]):
            continue
        leader = items[last].leader
        if leader is None and followed_in in line.by_epoch:
            leader = line.by_epoch[followed_in].leader  # Newer lines do not name it.
        on = line.led_again(leader, followed_in, later + 1)
        if not on:
            continue
        while last + 1 < len(items) and items[last + 1].kind in ("cut", "checkpoint"):
            last += 1
        rest = [_by_then(item) for item in items[last + 1 :]]
        by_epoch[followed_in] = items[: last + 1]
        told = by_epoch.get(later, []) if on[-1] == later else []
        for passed in on:
            by_epoch[passed] = [Item("fetches_on")]
        by_epoch[on[-1]] += [*rest, *told]
        if any(item.kind == "has_fetched" for item in rest):
            found |= {followed_in, *on}
    return frozenset(found)


def hear_early(by_epoch: dict[int, list[Item]], line: Timeline) -> None:
    """Before fetches carry the leader epoch (KIP-320) a follower may hear of a leader's next epoch
    before that leader does, and fetches from it meanwhile: what it did in the next epoch goes to
    the one before."""
    for before, window in pairwise(line.windows):
        told = by_epoch.get(window.leader_epoch, [])
        follows = any(it.kind == "followed" for it in told) and all(it.kind != "led" for it in told)
        if follows and window.leader is not None and before.leader == window.leader:
            earlier = by_epoch.setdefault(before.leader_epoch, [])
            earlier += told
            by_epoch[window.leader_epoch] = [Item("fetches_on")]


def _by_then(item: Item) -> Item:
    """An item of which only the last moment is known by which it happened."""
    return item._replace(kind="has_fetched") if item.kind == "fetched" else item
