"""One run of offsets: what the timeline says there, broker by broker and leader epoch by epoch.

Between two borders of the timeline all offsets share one story, so one of them is asked for all. A
record at an offset is a number: 0 is none, then those that any evidence shows there, then one
unseen record for each stretch of leadership.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from typing import NamedTuple

from replication.protocol.histories.assumptions import Assumed
from replication.protocol.histories.filters.by_offset import NEVER
from replication.protocol.histories.filters.items import (
    Final,
    Item,
    Items,
    Records,
    follow_on,
    hear_early,
    may_differ,
    shown_at_first,
    shows_it,
)
from replication.protocol.histories.filters.timeline import Timeline

# Leader epoch and content, as far as they are known.
Label = tuple[int | None, int | None]


class Claim(NamedTuple):
    """What a client knows of a record at the offset. how: acks_all, acks_1 or consumed. sure:
    it was a record of this topic, and not of an earlier one of the same name. by: the last leader
    epoch in which it can have been written; None: nothing tells."""

    how: str
    leader_epoch: int | None
    content: int | None
    broker: int | None
    sure: bool = True
    by: int | None = None


Signature = tuple[object, ...]


class Run:
    """A run of offsets that begins at `offset`.

    epochs: the leader epoch of each record by its number, None where it is not known; written_by:
    the last in which it can have been written. items: by
    place of the replica, by leader epoch, its items. followed_on: by place, the leader epochs of
    which it may not have heard before it fetched in them. last_doubt: by place, the last leader
    epoch in which an item tells that the record may not be there. unseen: whether records that
    nothing shows are admitted there. committed_by: the leader epoch by whose end a leader's high
    watermark was above the offset, as one above a higher offset shows. written_before: the evidence
    begins in the midst of the partition's life, and a record may have been there by then: a broker
    has it by its first step (a copy counts as one only where its lines are all here), or nothing
    tells of the first leader epoch and nobody need show the record.
    """

    def __init__(self, line: Timeline, offset: int, assumed: Assumed, *, unseen: bool) -> None:
        self.line, self.offset, self.assumed = line, offset, assumed
        self.place = {r: i for i, r in enumerate(line.replicas)}
        self.labels = self._records_shown()
        self.epochs: list[int | None] = [None, *(e for e, _ in self.labels)]
        self.claims = sorted((Claim(*told) for told in line.told_to_clients.at(offset)), key=repr)
        self.by_offset_alone = any(
            c.leader_epoch is None and c.content is None for c in self.claims
        )
        self.unseen = unseen or self.by_offset_alone
        self.committed_by: int | None = None
        self.written_by = [None, *(self._written_by(*label) for label in self.labels)]
        self.writers = [frozenset[int](), *(self._writers(*label) for label in self.labels)]
        self.final: list[Final] = []
        self.items: list[Mapping[int, tuple[Item, ...]]] = []
        self.followed_on: list[frozenset[int]] = []
        self.last_doubt: list[int] = []
        self.first_shown = 1 << 60
        self.written_before = line.begins_late and self.unseen
        self.readers: list[Items] = []
        for number in line.replicas:
            self._take(number)

    # -- records ------------------------------------------------------------------------------
    def _records_shown(self) -> list[Label]:
        seen = {label for label in self.line.shown_at.at(self.offset) if label != (None, None)}
        full = {p for p in seen if None not in p}
        kept = []
        for leader_epoch, content in sorted(seen, key=repr):
            known = [p for p in full if (leader_epoch, content) != p]
            if content is None and any(p[0] == leader_epoch for p in known):
                continue
            if leader_epoch is None and any(p[1] == content for p in known):
                continue
            kept.append((leader_epoch, content))
        written = sorted(self.line.written_at.at(self.offset), key=repr)
        # What a step wrote is a record of its own only where no log or answer can show it.
        with_epoch = [k for k in kept if k[0] is not None]
        nameless = [k for k in kept if k[0] is None]
        more = [w for w in written if not any(_may_be(w, k) for k in with_epoch)]
        if nameless and len({w[0] for w in more} - {None}) > len(nameless):
            # More were written than answers tell apart: each of these may be of any of them.
            all_seen = all(w.leader in self.line.covered for w in self.line.windows if w.may_write)
            return [*(with_epoch if all_seen else kept), *more]
        kept += [w for w in more if not any(_may_be(w, k) for k in nameless)]
        return kept

    def _written_by(self, leader_epoch: int | None, content: int | None) -> int | None:
        """The last leader epoch in which the record can have been written, as clients were told."""
        if leader_epoch is not None or content is None:
            return None
        bounds = [c.by for c in self.claims if c.content == content and c.by is not None]
        return min(bounds, default=None)

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

    def unseen_from(self, leader_epoch: int | None, content: int | None) -> int | None:
        """From which number on a record that nothing shows may be meant by what is known of one;
        None where one that is shown is surely it."""
        surely = any(
            (leader_epoch is not None and label[0] == leader_epoch)
            or (content is not None and label[1] == content)
            for label in self.labels
        )
        return None if surely or not self.unseen else len(self.labels) + 1

    # -- items ----------------------------------------------------------------------------------
    def _take(self, number: int) -> None:
        """The items of one broker, and what is kept of them for the whole run."""
        line, items = self.line, Items(self, number)
        final = items.final()
        if final is not None:
            self.final.append(Final(self.place[number], *final))
        self.written_before |= shown_at_first(items, by_copies=number in line.covered)
        self.readers.append(items)
        if line.fences_fetches:
            self.items.append(items)
            self.followed_on.append(frozenset())
            self.last_doubt.append(items.index.last_doubt(self.offset))
            self.first_shown = min(self.first_shown, items.index.first_epoch(self.offset))
            return
        by_epoch = {e: list(row) for e, row in items.items() if row}
        if self.assumed.heard_early:
            hear_early(by_epoch, line)
        self.followed_on.append(follow_on(by_epoch, line))
        self.items.append({e: tuple(row) for e, row in by_epoch.items()})
        doubts = [e for e, row in by_epoch.items() if any(map(may_differ, row))]
        self.last_doubt.append(max(doubts, default=NEVER))
        shows = [e for e, row in by_epoch.items() if any(map(shows_it, row))]
        self.first_shown = min([self.first_shown, *shows])

    def untold(self) -> int:
        """How many leader epochs there are before a step, a record or the start of an epoch tells
        something of the offset but that all logs end below."""
        known = [e for e in self.epochs[1:] if e is not None]
        if self.written_before or len(known) < len(self.labels):
            return 0
        told = [reader.index.first_epoch(self.offset) for reader in self.readers]
        windows = self.line.windows
        first = bisect_left(windows, min([*known, *told]), key=lambda w: w.leader_epoch)
        return min(first, bisect_right(self.line.starts_by, self.offset))

    def several(self, leader: int, leader_epoch: int) -> bool:
        """Whether a leader may have written in more than one stretch of a leader epoch."""
        line, items = self.line, self.items[self.place[leader]].get(leader_epoch, ())
        led = sum(1 for item in items if item.kind == "led")
        return led > 1 or (leader not in line.covered and not line.kraft)

    def is_certain(self, record: int, leader_epoch: int) -> bool:
        """Whether no step from a leader epoch on tells that a replica lacks a record that it holds,
        or holds another."""
        if any(leader_epoch <= doubt for doubt in self.last_doubt):
            return False
        copies = (c for items in self.readers for c in items.later_copies(leader_epoch))
        return all(copy.records is None or record in copy.records for copy in copies)

    def signature(self) -> Signature:
        """What two runs must share to share their histories."""
        line, parts = self.line, []
        for items, reader in zip(self.items, self.readers, strict=True):
            first, end = reader.index.part(self.offset)
            if items is reader:
                told: object = (tuple(reader.between(range(first, end))), reader.copies())
            else:
                told = tuple(sorted(items.items()))
            parts.append((first, end, told))
        return (
            tuple(self.labels),
            tuple(self.claims),
            tuple(parts),
            tuple(self.final),
            self.unseen,
            self.committed_by,
            line.starts_up_to(self.offset),
        )


def _may_be(a: Label, b: Label) -> bool:
    """Whether what is known of two records may be of one."""
    return all(x is None or y is None or x == y for x, y in zip(a, b, strict=True))
