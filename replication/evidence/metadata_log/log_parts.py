"""Reads a copy's files into the parts of one log, in its order: records, snapshots, what is lost.

Segments follow one another; a snapshot stands for the records below its end offset where the copy
no longer has them. What cannot be read (a broken batch, a missing segment) makes the partitions
unknown from there on until the next snapshot: better no state than a wrong one.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import BinaryIO, NamedTuple

from replication.evidence.metadata_log import metadata_records as records
from replication.evidence.metadata_log.metadata_records import (
    MetadataBatch,
    MetadataRecord,
    MetadataRecordError,
)
from replication.evidence.unreadable import Unreadable

_SEGMENT = re.compile(r"^(\d{20})\.log$")
_SNAPSHOT = re.compile(r"^(\d{20})-(\d{10})\.checkpoint$")
Opener = Callable[[], BinaryIO]


@dataclass(frozen=True, slots=True)
class PlacedRecord:
    """One decoded record with its metadata offset and the controller's clock, ms."""

    record: MetadataRecord
    offset: int
    at: int


class Begins(NamedTuple):
    """The log as handed over begins at this metadata offset; what was before is not known."""

    at: int


class Snapshot(NamedTuple):
    """The whole state of the cluster as the records below `end_offset` made it."""

    end_offset: int
    records: list[PlacedRecord]


class Records(NamedTuple):
    """The records of a batch, or one by itself, of one leader epoch; `end_offset` is exclusive."""

    base_offset: int
    end_offset: int
    leader_epoch: int
    records: list[PlacedRecord]


class Lost(NamedTuple):
    """From here on (topic id, partition) is unknown; None: every partition, records are missing.

    `resume_at`: where the log goes on, if that is known.
    """

    partition: tuple[str, int] | None = None
    resume_at: int = 0


# An Unreadable among the parts only says what happened.
Part = Begins | Snapshot | Records | Lost | Unreadable


def file_error(path: str, error: OSError) -> Unreadable:
    return Unreadable(path, "file", f"cannot be opened: {error.strerror or error}")


def snapshot_ends(names: Iterable[str]) -> list[tuple[int, str]]:
    """(end offset, name) of the snapshots among the files, in order."""
    return sorted((int(m[1]), m[0]) for m in map(_SNAPSHOT.match, names) if m)


def parts_of_files(path: str, files: Mapping[str, Opener]) -> Iterator[Part]:
    """The parts that a copy's files hold; `path` names the copy."""
    segments = sorted((int(m[1]), m[0]) for m in map(_SEGMENT.match, files) if m)
    reader = _Reader(path, files, snapshot_ends(files))
    yield from reader.before_segments(segments[0][0] if segments else None)
    for number, (base, name) in enumerate(segments):
        if number + 1 < len(segments) and segments[number + 1][0] <= reader.expected:
            continue  # wholly below the snapshot that was loaded
        yield from reader.bridge(base, name)
        yield from reader.segment(name)
    if not segments and not reader.snapshots:
        yield Unreadable(path, "file", "holds no segment of a metadata log")


def parts_of_records(
    path: str, placed: Iterable[tuple[PlacedRecord, int] | Unreadable]
) -> Iterator[Part]:
    """The same of records that somebody else decoded, each with its leader epoch, in log order.

    An Unreadable among them stands for records that are missing.
    """
    expected: int | None = None
    lost = False
    for item in placed:
        if isinstance(item, Unreadable):
            yield item
            yield Lost()
            lost = True
            continue
        entry, leader_epoch = item
        if expected is None:
            expected = entry.offset
            yield Begins(entry.offset)
        if entry.offset < expected:
            continue
        if entry.offset > expected and not lost:
            reason = f"metadata offsets {expected} to {entry.offset - 1} are missing"
            yield Unreadable(path, "file", reason)
            yield Lost()
            lost = True
        expected = entry.offset + 1
        yield Records(entry.offset, expected, leader_epoch, [entry])


@dataclass(slots=True)
class _Reader:
    """How far the reading has come: the metadata offset that is due, and whether all is unknown."""

    path: str
    files: Mapping[str, Opener]
    snapshots: list[tuple[int, str]] = field(default_factory=list)
    expected: int = 0
    lost: bool = False

    def before_segments(self, base: int | None) -> Iterator[Part]:
        """What stands for the records below the first segment, which begins at `base`."""
        usable = [one for one in self.snapshots if one[0] >= (base or 0)] or self.snapshots[-1:]
        if usable and (base != 0 or usable[0][0] == 0):
            yield from self.snapshot(*usable[0])
        elif base:
            reason = f"starts at metadata offset {base}, and no snapshot holds what was before"
            yield Unreadable(self.path, "file", reason)
            self.expected = base
            yield Begins(base)

    def bridge(self, base: int, name: str) -> Iterator[Part]:
        """Over a gap before this segment, by the first snapshot that covers it; or all is lost."""
        if base <= self.expected:
            return
        missing = f"metadata offsets {self.expected} to {base - 1} are missing"
        yield Lost()
        for end_offset, snapshot in self.snapshots:
            if end_offset < base:
                continue
            yield from self.snapshot(end_offset, snapshot)
            if self.expected >= base:
                reason = f"{missing}; continued from the snapshot at {end_offset}"
                yield Unreadable(f"{self.path}/{name}", "file", reason)
                return
        reason = f"{missing}: the partitions are unknown from there on"
        yield Unreadable(f"{self.path}/{name}", "file", reason)
        self.lost, self.expected = True, base
        yield Lost(resume_at=base)

    def snapshot(self, end_offset: int, name: str) -> Iterator[Part]:
        """A snapshot's state, or why it is not used.

        An incomplete one (no footer) would be a smaller cluster, not an older one.
        """
        path = f"{self.path}/{name}"
        entries: list[PlacedRecord] = []
        broken: list[Unreadable] = []
        complete, at = False, 0
        for entry in self._snapshot_records(path, self.files[name], broken):
            if entry.record.name == "SnapshotHeader":
                at = max(0, int(entry.record.values["last_contained_log_timestamp"]))
            complete = complete or entry.record.name == "SnapshotFooter"
            entries.append(PlacedRecord(entry.record, max(end_offset - 1, 0), at))
        yield from broken
        if not complete:
            reason = "this snapshot has no footer: it is incomplete and was not used"
            yield Unreadable(path, "file", reason)
        elif not broken:
            self.expected, self.lost = end_offset, False
            yield Snapshot(end_offset, entries)

    def _snapshot_records(
        self, path: str, opener: Opener, broken: list[Unreadable]
    ) -> Iterator[PlacedRecord]:
        """Every record of a snapshot, control records included; what is broken goes to `broken`."""
        try:
            with opener() as file:
                for batch in records.metadata_batches(file, path):
                    found = [batch] if isinstance(batch, Unreadable) else decoded(batch, path)
                    for one in found:
                        if isinstance(one, PlacedRecord):
                            yield one
                        elif isinstance(one, Unreadable):
                            broken.append(one)
        except OSError as error:
            broken.append(file_error(path, error))

    def segment(self, name: str) -> Iterator[Part]:
        """The batches of one segment that are not yet contained in the state."""
        path = f"{self.path}/{name}"
        try:
            with self.files[name]() as file:
                for batch in records.metadata_batches(file, path):
                    if isinstance(batch, Unreadable):
                        yield from self._nothing_known(batch)
                        continue
                    if self.lost:
                        yield from self._recovered(batch.base_offset)
                    yield from self._batch(batch, path)
        except OSError as error:
            yield from self._nothing_known(file_error(path, error))

    def _nothing_known(self, why: Unreadable) -> Iterator[Part]:
        self.lost = True
        yield why
        yield Lost()

    def _recovered(self, base: int) -> Iterator[Part]:
        """After a broken place: the state of a snapshot as soon as the log reaches one."""
        for end_offset, snapshot in self.snapshots:
            if self.expected <= end_offset == base:
                yield from self.snapshot(end_offset, snapshot)
                return

    def _batch(self, batch: MetadataBatch, path: str) -> Iterator[Part]:
        if batch.end_offset <= self.expected and not self.lost:
            return  # contained in the snapshot
        if batch.base_offset > self.expected and not self.lost:
            reason = (
                f"metadata offset {batch.base_offset} where {self.expected} is due: the partitions"
                " are unknown from there on"
            )
            yield from self._nothing_known(Unreadable(path, f"byte {batch.position}", reason))
        entries: list[PlacedRecord] = []
        is_empty = batch.payload == records.NO_OP_PAYLOAD and not batch.is_control
        for one in () if is_empty else decoded(batch, path):
            if isinstance(one, PlacedRecord):
                entries.append(one)
            else:
                self.lost = self.lost or (isinstance(one, Lost) and one.partition is None)
                yield one
        self.expected = max(self.expected, batch.end_offset)
        yield Records(batch.base_offset, batch.end_offset, batch.leader_epoch, entries)


def decoded(batch: MetadataBatch, path: str) -> Iterator[PlacedRecord | Unreadable | Lost]:
    """The records of a batch; for one that cannot be decoded, why, and what is unknown by that."""
    where = f"byte {batch.position}"
    try:
        for delta, timestamp_delta, key, value in records.batch_records(
            batch.payload, batch.record_count
        ):
            offset = batch.base_offset + delta
            try:
                record = (
                    records.decode_control_record(key or b"", value)
                    if batch.is_control
                    else records.decode_record(value)
                )
            except MetadataRecordError as error:
                reason = f"the record at metadata offset {offset} was passed over: {error}"
                yield Unreadable(path, where, reason)
                if not batch.is_control:
                    yield from _lost_by(value)
                continue
            if record is not None:
                yield PlacedRecord(record, offset, batch.base_timestamp + timestamp_delta)
    except MetadataRecordError as error:
        yield Unreadable(path, where, f"the batch's records end early: {error}")
        yield Lost()


def _lost_by(value: bytes) -> Iterator[Lost]:
    """What a record that cannot be decoded leaves unknown: the partition that it speaks of."""
    if records.record_api_key(value) in (records.PARTITION, records.PARTITION_CHANGE):
        yield Lost(records.partition_of(value))
