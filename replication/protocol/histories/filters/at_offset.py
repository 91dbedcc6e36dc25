"""One run of offsets: what the timeline says there, broker by broker and leader epoch by epoch.

Between two borders of the timeline all offsets share one story, so one of them is asked for all. A
record at an offset is a number: 0 is none, then those that any evidence shows there, then one
unseen record for each stretch of leadership.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from replication.protocol.ground.story import OwnStep
from replication.protocol.ground.topic_partition import Promise
from replication.protocol.histories.assumptions import COPIES_ARE_CURRENT, Assumed
from replication.protocol.histories.filters.timeline import Timeline

NEVER = -1
Records = frozenset[int]
# Leader epoch and content, as far as they are known.
Label = tuple[int | None, int | None]


class Item(NamedTuple):
    """One own step of a broker, as far as it concerns the offset.

    has: whether its log reached past the offset, above: whether its high watermark did; None: not
    told. records: the records that it may be about; None: any. cut: whether a cut removed the
    offset. clean: of started and stopped. again: a leader that was told once more without a
    restart, a follower of the same leader as before. shown: an earlier step showed the record on
    this broker. last: the copy that tells how the replica is at the end.
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


class Claim(NamedTuple):
    """What a client was told of a record at the offset. how: acks_all, acks_1 or consumed."""

    how: str
    leader_epoch: int | None
    content: int | None
    broker: int | None


class Final(NamedTuple):
    """How the last copy of a broker's log shows the offset. torn: its end may be lost unseen."""

    place: int
    item: Item
    torn: bool


Signature = tuple[object, ...]


class Run:
    """A run of offsets that begins at `offset`.

    epochs: the leader epoch of each record by its number, None where it is not known. items: by
    place of the replica, by leader epoch, its items. followed_on: by place, the leader epochs of
    which it may not have heard before it fetched in them. last_doubt: by place, the last leader
    epoch in which an item tells that the record may not be there. unseen: whether records that
    nothing shows are admitted there. shown_at_first: a broker whose lines are all here has the
    record by its first step already: the evidence begins in the midst of a partition's life.
    """

    def __init__(self, line: Timeline, offset: int, assumed: Assumed, *, unseen: bool) -> None:
        self.line, self.offset, self.assumed = line, offset, assumed
        self.place = {r: i for i, r in enumerate(line.replicas)}
        self.labels = self._records_shown()
        self.epochs: list[int | None] = [None, *(e for e, _ in self.labels)]
        self.claims = sorted(set(self._claims()), key=repr)
        self.by_offset_alone = any(
            c.leader_epoch is None and c.content is None for c in self.claims
        )
        self.unseen = unseen or self.by_offset_alone
        self.writers = [frozenset[int](), *(self._writers(*label) for label in self.labels)]
        self.final: list[Final] = []
        self.items: list[dict[int, tuple[Item, ...]]] = []
        self.followed_on: list[frozenset[int]] = []
        self.last_doubt: list[int] = []
        self.first_shown = 1 << 60
        self.shown_at_first = False
        for number in line.replicas:
            self._take(number)

    # -- records ------------------------------------------------------------------------------
    def _records_shown(self) -> list[Label]:
        x = self.offset
        seen = {s[2:] for s in self.line.labels if s[0] <= x < s[1] and s[2:] != (None, None)}
        full = {p for p in seen if None not in p}
        kept = []
        for leader_epoch, content in sorted(seen, key=repr):
            known = [p for p in full if (leader_epoch, content) != p]
            if content is None and any(p[0] == leader_epoch for p in known):
                continue
            if leader_epoch is None and any(p[1] == content for p in known):
                continue
            kept.append((leader_epoch, content))
        written = {s[2:] for s in self.line.written if s[0] <= x < s[1]}
        # What a step wrote is a record of its own only where no log or answer can show it.
        kept += [w for w in sorted(written, key=repr) if not any(_may_be(w, k) for k in kept)]
        return kept

    def _claims(self) -> Iterator[Claim]:
        for promise in self.line.promises:
            if promise.span[0] <= self.offset < promise.span[1]:
                yield Claim(promise.how, *promise.span[2:], _broker_of(promise))

    def _writers(self, leader_epoch: int | None, content: int | None) -> frozenset[int]:
        """Who answered a producer for the record: empty where nothing tells."""
        return frozenset(
            c.broker
            for c in self.claims
            if c.broker is not None and c.how != "acks_all"
            if content is not None and c.content == content
            if c.leader_epoch in (None, leader_epoch)
        )

    def records(self, leader_epoch: int | None, content: int | None) -> Records:
        """The numbers of the records that may be meant by what is known of one."""
        return frozenset(
            number
            for number, (shown_epoch, bytes_) in enumerate(self.labels, 1)
            if leader_epoch is None or shown_epoch in (None, leader_epoch)
            if content is None or bytes_ in (None, content)
        )

    # -- items ----------------------------------------------------------------------------------
    def _take(self, number: int) -> None:
        """The items of one broker, and what is kept of them for the whole run."""
        by_epoch = _Reader(self, number).read()
        fenced = self.line.flags is not None and self.line.has("fetch_carries_leader_epoch")
        self.followed_on.append(frozenset() if fenced else _follow_on(by_epoch, self.line))
        self.items.append({e: tuple(items) for e, items in by_epoch.items()})
        if number in self.line.covered:
            self.shown_at_first |= _shown_at_first(by_epoch)
        doubts = [e for e, items in by_epoch.items() if any(map(_speaks_against, items))]
        self.last_doubt.append(max(doubts, default=NEVER))
        shows = [e for e, items in by_epoch.items() if any(_shows(i) for i in items)]
        self.first_shown = min([self.first_shown, *shows])

    def signature(self) -> Signature:
        """What two runs must share to share their histories."""
        return (
            tuple(self.labels),
            tuple(self.claims),
            tuple(tuple(sorted(g.items())) for g in self.items),
            tuple(self.final),
            self.unseen,
            tuple(w.start is not None and self.offset < w.start for w in self.line.windows),
        )


class _Reader:
    """Reads one broker's steps in their order."""

    def __init__(self, run: Run, number: int) -> None:
        self.run, self.line, self.number = run, run.line, number
        self.steps = run.line.own[number]
        self.covered = number in run.line.covered
        self.by_epoch: dict[int, list[Item]] = {}
        self.leader_epoch = NEVER
        self.role: str | None = None
        self.restarted, self.stopped_clean, self.shown = True, False, False
        self.followed: int | None = None

    def read(self) -> dict[int, list[Item]]:
        for i, step in enumerate(self.steps):
            item = _READ[step.kind](self, i, step)
            if item is None:
                continue
            told = self._told(item)
            self.shown = self.shown if told is None else told
            self.by_epoch.setdefault(self.leader_epoch, []).append(item)
        return self.by_epoch

    @staticmethod
    def _told(item: Item) -> bool | None:
        """Whether an item shows the record on the broker, or shows that it is not there."""
        if item.kind == "copy" and item.records is not None:
            return 0 not in item.records
        if item.kind in ("wrote", "fetched"):
            return True
        return False if item.kind == "cut" and item.cut else item.has

    def _has(self, end: int | None) -> bool | None:
        return None if end is None else end > self.run.offset

    def started(self, i: int, step: OwnStep) -> Item:
        clean = step.clean if step.clean is not None else self.stopped_clean or None
        if step.log_end_offset == 0:
            clean = None  # A new directory: a clean stop says nothing of it.
        self.restarted, self.stopped_clean = True, False
        above = self._has(step.high_watermark)
        has = self._has(step.log_end_offset)
        return Item("started", has, above, clean=clean, shown=self.shown)

    def stopped(self, i: int, step: OwnStep) -> Item:
        self.restarted, self.stopped_clean = True, bool(step.clean)
        again = any(s.kind == "started" for s in self.steps[i:])
        has = self._has(step.log_end_offset)
        return Item("stopped", has, clean=bool(step.clean) or again, shown=self.shown)

    def led(self, i: int, step: OwnStep) -> Item:
        self.leader_epoch = (
            step.leader_epoch if step.leader_epoch is not None else self.leader_epoch
        )
        end, anew = step.log_end_offset, self.restarted or self.role != "led"
        if end is None and anew and not self.line.compacted and self.line.kraft:
            end = self.line.start_of(self.leader_epoch)
        self.role, self.restarted = "led", False
        return Item("led", self._has(end), self._has(step.high_watermark), again=not anew)

    def followed_(self, i: int, step: OwnStep) -> Item:
        self.leader_epoch = (
            step.leader_epoch if step.leader_epoch is not None else self.leader_epoch
        )
        again = not self.restarted and self.role == "followed" and self.followed == step.leader
        self.role, self.restarted, self.followed = "followed", False, step.leader
        has, above = self._has(step.log_end_offset), self._has(step.high_watermark)
        return Item("followed", has, above, leader=step.leader, again=again)

    def cut(self, i: int, step: OwnStep) -> Item:
        to = step.log_end_offset
        cut = None if to is None else to <= self.run.offset
        return Item("cut", self._has(step.first_offset), cut=cut, reason=step.reason)

    def wrote(self, i: int, step: OwnStep) -> Item | None:
        first, end = step.first_offset or 0, step.log_end_offset or 0
        if not first <= self.run.offset < end:
            return None
        return Item(step.kind, records=self.run.records(step.leader_epoch, step.content))

    def high_watermark(self, i: int, step: OwnStep) -> Item:
        return Item(step.kind, above=self._has(step.high_watermark))

    def replaced(self, i: int, step: OwnStep) -> Item:
        return Item("replaced")

    def log_start(self, i: int, step: OwnStep) -> None:
        return None

    def copy(self, i: int, step: OwnStep) -> Item | None:
        item = self._copied(step)
        if item is None:
            return None
        run, number = self.run, self.number
        covered = self.covered
        end = len(self.steps) - 1
        seen_since = any(s.kind != "checkpoint" for s in self.steps[i + 1 :])
        if i == self.line.last_copy.get(number) and (i == end if covered else not seen_since):
            moved_on = not covered and COPIES_ARE_CURRENT not in run.assumed.names
            if moved_on and step.clean is not True:
                return None  # The broker may have lived on since: the copy shows what there is.
            stopped = step.clean is True or step.kind_of_copy == "part"
            torn = not stopped and run.offset >= (step.log_end_offset or 0)
            run.final.append(Final(run.place[number], item, torn))
            return item._replace(last=True) if covered else None
        if not run.assumed.moments_known or (not covered and self.leader_epoch == NEVER):
            return None  # A copy of a moment that nothing tells: only its records count.
        return item

    def _copied(self, step: OwnStep) -> Item | None:
        x = self.run.offset
        if x < (step.log_start_offset or 0):
            return None
        above = (step.high_watermark or 0) > x
        for first, end, leader_epoch, content in step.spans:
            if first <= x < end:
                if leader_epoch is None and content is None:
                    return Item("copy", above=above)
                return Item("copy", above=above, records=self.run.records(leader_epoch, content))
        part = step.kind_of_copy == "part"
        open_end = part or step.clean is not True or self.line.compacted
        if x < (step.log_end_offset or 0) or open_end:
            return Item("copy", above=above)
        return Item("copy", above=above, records=frozenset([0]))


_READ = {
    "started": _Reader.started,
    "stopped": _Reader.stopped,
    "led": _Reader.led,
    "followed": _Reader.followed_,
    "cut": _Reader.cut,
    "wrote": _Reader.wrote,
    "fetched": _Reader.wrote,
    "high_watermark": _Reader.high_watermark,
    "checkpoint": _Reader.high_watermark,
    "log_start": _Reader.log_start,
    "replaced": _Reader.replaced,
    "copy": _Reader.copy,
}


def _shown_at_first(by_epoch: dict[int, list[Item]]) -> bool:
    """Whether the first step that tells something of the offset tells that a record is there."""
    for _, items in sorted(by_epoch.items()):
        for item in items:
            if item.kind in ("wrote", "fetched") or item.has is False:
                return False
            if item.kind == "copy" and item.records is not None:
                return 0 not in item.records
            if item.has or item.above:
                return True
    return False


def _may_be(a: Label, b: Label) -> bool:
    """Whether what is known of two records may be of one."""
    return all(x is None or y is None or x == y for x, y in zip(a, b, strict=True))


def _broker_of(promise: Promise) -> int | None:
    return promise.replica


def _speaks_against(item: Item) -> bool:
    """Whether an item may tell that the record is not there; a crash may."""
    if item.kind in ("started", "stopped"):
        return item.has is not True
    if item.kind in ("led", "followed"):
        return item.has is False
    if item.kind == "copy":
        return item.records is not None and 0 in item.records
    return item.kind == "cut" and item.cut is not False


def _shows(item: Item) -> bool:
    return item.kind in ("wrote", "fetched", "has_fetched") or item.has is True


def _follow_on(by_epoch: dict[int, list[Item]], line: Timeline) -> frozenset[int]:
    """Before fetches carry the leader epoch (KIP-320) a follower goes on fetching from a leader
    that was elected again in an epoch of which the follower has not heard.

    What it did after it had come to follow goes to the last of the epochs in which it may have, up
    to that of which it heard next. In
    those before it may have done any of it: these are returned, with the one in which it followed.
    """
    found: set[int] = set()
    epochs = sorted(by_epoch)
    for followed_in, later in pairwise([*epochs, 1 << 60]):
        items = by_epoch[followed_in]
        last = max((i for i, it in enumerate(items) if it.kind == "followed"), default=None)
        if last is None or any(it.kind == "led" for it in items[last:]):
            continue
        on = line.led_again(items[last].leader, followed_in, later + 1)
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
        found |= {followed_in, *on}
    return frozenset(found)


def _by_then(item: Item) -> Item:
    """An item of which only the last moment is known by which it happened."""
    return item._replace(kind="has_fetched") if item.kind == "fetched" else item
