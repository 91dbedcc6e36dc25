"""Copies of one partition's replicas: which bytes are the same record, and where payloads are.

Every copy of every replica is laid beside the others by offset. Where batch boundaries agree the
CRC decides; where they do not (compaction, old formats) the records themselves are read. The
distinct contents at an offset are numbered from 0, in the order of copies: this number is the
`content` of a span, and a healthy partition has only zeros.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol, TypeVar

from replication.evidence.joining.places import Place, sequence_at
from replication.evidence.joining.untold_records import Untold
from replication.evidence.joining.without_records import WithoutRecords, without_records
from replication.evidence.log_directories.digest_lines import SeenDirectory
from replication.evidence.log_directories.log_directory import LogDirectory, PartitionDirectory
from replication.evidence.log_directories.record_payloads import (
    RecordIdentity,
    read_record_identities,
)
from replication.evidence.log_directories.segments import RecordBatch
from replication.evidence.tools.dumped_logs import DumpedDirectory
from replication.evidence.unreadable import Unreadable
from replication.protocol.ground.model import Span, clipped, normalized

UNSEEN_CONTENT = 1 << 31
"""The content of records that were looked for by payload and found in no copy."""

# Of a slot between two lives of a process (placement.py): nearer to the first one.
EARLY_IN_A_LIFE = 0.4

# So many batches without readable records are listed one by one, of all copies together.
_LISTED = 200


@dataclass(slots=True)
class Copy:
    """One replica's directory as it was copied once.

    clean: a clean-shutdown marker lay beside it. metadata_end: how far the controllers' log of the
    same directory reached, which orders copies of one broker in time; registrations: how often the
    broker had registered by then. order_known: False where nothing tells which of several copies
    is the last. spans: filled by `identify_contents`. unread_from: where the copy's files begin to
    contradict each other. named_elsewhere: checkpoints of another copied directory of its broker
    name the partition, whose folder was not copied there. flush_may_have_fallen: a line says that
    the log was cut to where its recovery point is, or below.
    """

    broker: int
    directory: PartitionDirectory
    parent: LogDirectory
    clean: bool
    broker_epoch: int | None = None
    metadata_end: int | None = None
    registrations: int | None = None
    latest_timestamp: int | None = None
    latest_epoch: int = -1
    spans: list[Span] = field(default_factory=list)
    slot: float = 0.0
    order_known: bool = True
    unread_from: int | None = None
    named_elsewhere: bool = False
    flush_may_have_fallen: bool = False

    @property
    def is_dump(self) -> bool:
        """Whether it is what kafka-dump-log printed: stretches of the log, of an unknown moment."""
        return isinstance(self.directory, DumpedDirectory)

    @property
    def read_at(self) -> int | None:
        """When lines of a digest saw it so the last time, by its broker's clock; else None."""
        return self.directory.read_at if isinstance(self.directory, SeenDirectory) else None

    def sightings(self) -> list["Copy"]:
        """What was seen beside a broker: as it grew, when it was so first, and so the last time.

        What its checkpoints said later, and that it was stopped then, says nothing of when it had
        grown so far."""
        seen = self.directory
        if not isinstance(seen, SeenDirectory):
            return [self]
        start, whole = seen.log_start_offset or 0, seen.log_end_offset or 0
        before = replace(self, clean=False)
        ends = [*seen.grown, (seen.told_at, whole)]
        earlier = [
            replace(before, directory=seen.as_seen(at, end), spans=clipped(self.spans, start, end))
            for at, end in (ends if seen.told_at < seen.line_at else seen.grown)
        ]
        first = max(seen.told_at, seen.line_at)
        if first >= seen.read_at:
            return [*earlier, self]
        return [*earlier, replace(before, directory=replace(seen, read_at=first)), self]

    def until(self, last_line: int) -> "Copy":
        """As of when its broker was first seen to be down, whose last line is of that moment."""
        seen = self.directory
        if not isinstance(seen, SeenDirectory) or seen.down_at is None:
            return self
        return replace(self, directory=seen.until(last_line))

    @property
    def shown_at(self) -> int | None:
        """When it was so: when it was seen, else the time of its newest record."""
        return self.latest_timestamp if self.read_at is None else self.read_at

    @property
    def is_part(self) -> bool:
        """Whether the log may go on outside what is here."""
        return isinstance(self.directory, DumpedDirectory) and not self.directory.is_whole

    def is_since(self, starts: int) -> bool:
        """Whether it was made after the last of all starts of its broker that lines tell of; what
        was seen beside a broker goes on after them."""
        return self.read_at is not None or self.slot > starts - 1 + EARLY_IN_A_LIFE

    @property
    def path(self) -> str:
        """Where it lies."""
        return str(self.directory.path)


@dataclass(slots=True)
class Contents:
    """What reading the copies gave beside their spans.

    unread: the copies (by path) with records that could not be looked at: a payload that was not
    found may be among them. damaged: those where not even all headers could be read. printed: of
    dumps (by path) the records whose keys were printed, by offset. untold: records that clients'
    lines should tell of. empty: batches without a record, in offset order.
    """

    places: dict[str, list[Place]] = field(default_factory=dict)
    unreadable: list[Unreadable] = field(default_factory=list)
    payloads_read: bool = False
    sequences_read: bool = False
    unread: set[str] = field(default_factory=set)
    damaged: set[str] = field(default_factory=set)
    printed: dict[str, dict[int, RecordIdentity]] = field(default_factory=dict)
    untold: Untold | None = None
    empty: list[WithoutRecords] = field(default_factory=list)


@dataclass(slots=True)
class _Held:
    """One batch in one copy."""

    copy: int
    path: Path
    batch: RecordBatch


Names = Callable[[RecordIdentity], Iterable[str]]


def identify_contents(
    copies: list[Copy],
    *,
    names: Names | None = None,
    with_sequences: bool = False,
    untold: Untold | None = None,
) -> Contents:
    """Fills each copy's spans with content numbers.

    copies: of one incarnation of one topic partition, in a canonical order. names: by what a
    record may be called; indexes the records by it. with_sequences indexes the sequence numbers of
    idempotent producers too. untold: to be shown every record that has names.
    """
    result = Contents(sequences_read=with_sequences and bool(copies), untold=untold)
    result.damaged.update(
        c.path for c in copies if c.directory.unreadable or c.is_part or c.read_at is not None
    )
    for copy in copies if names is not None else []:
        if isinstance(copy.directory, DumpedDirectory):
            result.printed[copy.path] = {r.offset: r for r in copy.directory.record_keys()}
    spans: list[list[Span]] = [[] for _ in copies]
    for cell in overlapping(_held(index, copy) for index, copy in enumerate(copies)):
        result.empty += without_records([held.batch for held in cell])
        moved = _moved(cell)
        for held in moved:
            batch = held.batch
            spans[held.copy].append(Span(batch.base_offset, batch.end_offset, None, None))
        cell = [held for held in cell if held not in moved] if moved else cell
        if len({(h.batch.base_offset, h.batch.end_offset) for h in cell}) == 1 and not (
            _is_compacted(cell) or _may_be_marked(cell)
        ):
            _number_by_crc(cell, copies, spans, result, names)
        else:
            _number_by_record(cell, copies, spans, result, names)
    for copy, found in zip(copies, spans, strict=True):
        if copy.read_at is not None:
            # Their batches nobody printed: leader epoch and offset stand for the record.
            found = [Span(first, end, e, None) for e, first, end in copy.directory.spans]
        copy.spans = normalized(found)
    return result


def _moved(cell: list[_Held]) -> list[_Held]:
    """Batches that are the same bytes at other offsets in other copies: no checksum covers the base
    offset, so nobody can know which of them is in its place."""
    if len({h.batch.base_offset for h in cell}) == 1:
        return []
    alike: dict[tuple[int, int], list[_Held]] = {}
    for held in cell:
        alike.setdefault((held.batch.crc, held.batch.size), []).append(held)
    return [
        held
        for equals in alike.values()
        if len({h.batch.base_offset for h in equals}) > 1 and len({h.copy for h in equals}) > 1
        for held in equals
    ]


def _is_compacted(cell: list[_Held]) -> bool:
    """Whether the cleaner wrote a batch anew in some copy: it keeps the boundaries, but takes
    records out, or marks when markers and tombstones may go."""
    if len({h.batch.crc for h in cell}) == 1:
        return False
    return any(
        h.batch.has_delete_horizon
        or h.batch.record_count not in (None, h.batch.end_offset - h.batch.base_offset)
        for h in cell
    )


def _may_be_marked(cell: list[_Held]) -> bool:
    """Whether the batches may differ by the time alone at which the cleaner may take tombstones and
    transaction markers: each cleaner writes its own, under the checksum (KIP-534, from 2.8)."""
    if len({h.batch.crc for h in cell}) == 1 or any(h.batch.magic != 2 for h in cell):
        return False
    told = {
        (h.batch.record_count, h.batch.producer_id, h.batch.base_sequence, h.batch.max_timestamp)
        for h in cell
    }
    return len(told) == 1 or all(h.batch.is_control for h in cell)


class InCopy(Protocol):
    """A batch in the copy of that number."""

    copy: int
    batch: RecordBatch


OneInCopy = TypeVar("OneInCopy", bound=InCopy)


def overlapping(streams: Iterable[Iterator[OneInCopy]]) -> Iterator[list[OneInCopy]]:
    """Batches of all copies, each copy's in offset order, in groups that overlap by offset."""
    cell: list[OneInCopy] = []
    end = -1
    for item in heapq.merge(
        *streams, key=lambda h: (h.batch.base_offset, h.batch.end_offset, h.copy)
    ):
        if cell and item.batch.base_offset >= end:
            yield cell
            cell = []
            end = -1
        cell.append(item)
        end = max(end, item.batch.end_offset)
    if cell:
        yield cell


def _held(index: int, copy: Copy) -> Iterator[_Held]:
    for path, batch in copy.directory.iter_batches_with_path():
        yield _Held(index, path, batch)


def _number_by_crc(
    cell: list[_Held],
    copies: list[Copy],
    spans: list[list[Span]],
    result: Contents,
    names: Names | None,
) -> None:
    """Equal boundaries everywhere: equal CRC and size is equal content, whatever the epoch says."""
    alike: dict[tuple[int, int], list[_Held]] = {}
    for held in sorted(cell, key=lambda h: h.copy):
        alike.setdefault((held.batch.crc, held.batch.size), []).append(held)
    for content, equals in enumerate(alike.values()):
        for held in equals:
            batch = held.batch
            spans[held.copy].append(
                Span(batch.base_offset, batch.end_offset, batch.leader_epoch, content)
            )
            if result.sequences_read:
                for offset in range(batch.base_offset, batch.end_offset):
                    place = Place(offset, batch.leader_epoch, content)
                    _index(result, sequence_at(batch, offset), place)
        if names is not None and not equals[0].batch.is_control:
            leader_epochs = dict.fromkeys(h.batch.leader_epoch for h in equals)
            records = _records_of_any([h for h in equals if not copies[h.copy].is_dump], result)
            if records is None:
                records = _printed_records(equals, copies, result)
            for record in records:
                called = list(names(record))
                if result.untold is not None:
                    result.untold.take(record.offset, called, equals[0].batch.producer_id)
                for leader_epoch in leader_epochs:
                    place = Place(record.offset, leader_epoch, content)
                    for name in called:
                        _index(result, name, place)


def _printed_records(
    equals: list[_Held], copies: list[Copy], result: Contents
) -> list[RecordIdentity]:
    """The records of a batch as a dump printed them, without digests; else it counts as unread."""
    for held in equals:
        known = result.printed.get(copies[held.copy].path, {})
        offsets = range(held.batch.base_offset, held.batch.end_offset)
        records = [known[offset] for offset in offsets if offset in known]
        if records and len(records) == held.batch.record_count:
            result.payloads_read = True
            return records
    result.unread.update(copies[held.copy].path for held in equals)
    return []


def _records_of_any(equals: list[_Held], result: Contents) -> list[RecordIdentity] | None:
    """The records of a batch that several copies hold, from the first that gives them."""
    for held in equals:
        records = read_record_identities(held.path, held.batch)
        if not isinstance(records, Unreadable):
            result.payloads_read = True
            return records
        if len(result.unreadable) < _LISTED and records not in result.unreadable:
            result.unreadable.append(records)
    return None


def _number_by_record(
    cell: list[_Held],
    copies: list[Copy],
    spans: list[list[Span]],
    result: Contents,
    names: Names | None,
) -> None:
    """Boundaries differ: the records decide, offset by offset."""
    numbers: dict[int, dict[int, int]] = {}
    for held in sorted(cell, key=lambda h: (h.copy, h.batch.base_offset)):
        batch = held.batch
        records = None if copies[held.copy].is_dump else _records_of_any([held], result)
        if records is None:
            result.unread.add(copies[held.copy].path)
        if not records:
            spans[held.copy].append(
                Span(batch.base_offset, batch.end_offset, batch.leader_epoch, None)
            )
            continue
        for record in records:
            known = numbers.setdefault(record.offset, {})
            content = known.setdefault(record.digest, len(known))
            spans[held.copy].append(
                Span(record.offset, record.offset + 1, batch.leader_epoch, content)
            )
            place = Place(record.offset, batch.leader_epoch, content)
            if result.sequences_read:
                _index(result, sequence_at(batch, record.offset), place)
            if names is None or batch.is_control:
                continue
            called = list(names(record))
            if result.untold is not None:
                result.untold.take(record.offset, called, batch.producer_id)
            for name in called:
                _index(result, name, place)


def _index(result: Contents, key: str | None, place: Place) -> None:
    if key is None:
        return
    places = result.places.setdefault(key, [])
    if place not in places:
        places.append(place)


def in_time(copy: Copy) -> tuple[bool, float]:
    """The order of one broker's copies: what was seen beside it comes after what was copied."""
    return (copy.read_at is not None, copy.slot)


def latest(copies: Iterable[Copy]) -> dict[int, Copy]:
    """The last copy of each replica that is the replica itself, by slot."""
    result: dict[int, Copy] = {}
    for copy in sorted(copies, key=in_time):
        if copy.directory.kind == "replica":
            result[copy.broker] = copy
    return result
