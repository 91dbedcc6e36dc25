"""Logs of replicas as kafka-dump-log printed them, for directories that were not handed over.

A dump shows stretches of one replica's log and nothing else: not what lies before, between and
after them, no checkpoint, not its broker and no time. Batches count as far as their bytes join
from the segment's begin: where they do not, lines were lost, and with them perhaps the line that
names another partition. Bytes that join also say that offsets between two batches are not in the
log. Whether the segments are all there was, only kafka-log-dirs tells, by the log's size.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import groupby, pairwise
from pathlib import Path, PurePosixPath

from replication.evidence.log_directories.log_directory import PartitionDirectory
from replication.evidence.log_directories.record_payloads import RecordIdentity
from replication.evidence.log_directories.segments import RecordBatch
from replication.evidence.tools.dump_log import (
    DumpedBatch,
    DumpedRecord,
    DumpedSegment,
    read_dump_log,
)
from replication.evidence.unreadable import Unreadable

Hole = tuple[int, int]


class NotOneLog(ValueError):
    """The dumped segments are not parts of one log at one moment; the text says why."""


@dataclass(frozen=True, slots=True)
class SegmentDump:
    """One dumped segment: what its batches show, and the lines of the file that show them.

    first_offset, end_offset: of the batches, None without one. base_offset: by the file's name.
    size: bytes up to the last batch, None where they cannot be known. holes: offsets that are not
    in the log. headed: the broker that a line above says it is of.
    """

    name: str
    topic: str
    partition: int
    base_offset: int | None
    path: Path
    lines: range
    first_offset: int | None
    end_offset: int | None
    size: int | None
    holes: tuple[Hole, ...]
    batch_count: int
    latest_epoch: int
    max_timestamp: int | None
    fingerprint: bytes
    has_keys: bool
    headed: int | None = None

    @property
    def begin(self) -> int:
        """The first offset of which something is known."""
        return (self.first_offset or 0) if self.base_offset is None else self.base_offset

    @property
    def end(self) -> int:
        """The log reached this offset (exclusive)."""
        return self.begin if self.end_offset is None else self.end_offset

    @property
    def directory(self) -> str:
        """The partition's directory, as the tool was told."""
        return str(PurePosixPath(self.name.replace("\\", "/")).parent)


@dataclass(frozen=True)
class DumpedDirectory(PartitionDirectory):
    """One replica's log as far as it was dumped. holes: offsets inside that are not in the log.

    is_whole: the segments are all that the log had. log_start_offset and log_end_offset are the
    ends of what was seen; `segments` is empty, since there are no files.
    """

    dumped: tuple[SegmentDump, ...] = ()
    holes: tuple[Hole, ...] = ()
    is_whole: bool = False
    latest_epoch: int = -1

    def iter_batches_with_path(self) -> Iterator[tuple[Path, RecordBatch]]:
        """Every batch with the file that shows it."""
        for path, item in dumped_items(self.dumped):
            if isinstance(item, DumpedBatch):
                yield path, item.batch

    def record_keys(self) -> list[RecordIdentity]:
        """Every record of the segments whose keys were printed, in offset order; no digests."""
        printed = [s for s in self.dumped if s.has_keys]
        found = {i.offset: i.key for _, i in dumped_items(printed) if isinstance(i, DumpedRecord)}
        return [RecordIdentity(offset, key, 0) for offset, key in sorted(found.items())]


def dumped_items(
    segments: Iterable[SegmentDump],
) -> Iterator[tuple[Path, DumpedBatch | DumpedRecord]]:
    """What the segments' lines show, in their order; neighbours in one file are read in one go."""
    for path, neighbours in groupby(segments, key=lambda s: s.path):
        ahead = [s.lines for s in neighbours]
        while ahead:
            end = next(
                (i for i in range(1, len(ahead)) if ahead[i].start < ahead[i - 1].stop), len(ahead)
            )
            run, ahead = ahead[:end], ahead[end:]
            for item in read_dump_log(path, range(run[0].start, run[-1].stop)):
                if isinstance(item, (DumpedBatch, DumpedRecord)):
                    while item.line >= run[0].stop:
                        del run[0]
                    if item.line >= run[0].start:
                        yield path, item


@dataclass(slots=True)
class _Reading:
    """What one segment's lines have shown so far."""

    found: DumpedSegment
    first: RecordBatch | None = None
    last: RecordBatch | None = None
    size: int | None = 0
    holes: list[Hole] = field(default_factory=list)
    count: int = 0
    latest_epoch: int = -1
    max_timestamp: int = -1
    bare_records: bool = False
    has_keys: bool = False
    in_wrapper: bool = False
    digest: blake2b = field(default_factory=lambda: blake2b(digest_size=16))

    def take(self, batch: RecordBatch) -> str | None:
        """Adds a batch, or says why it and all that follow in this segment do not count."""
        last = self.last
        if last is not None and batch.base_offset < last.end_offset:
            return f"offsets run backwards: {batch.base_offset} after {last.end_offset - 1}"
        if batch.position != (last.position + last.size if last else 0):
            if last is None or not self._in_wrapper(last, batch):
                return f"lines are missing before the batch at byte {batch.position}"
            self.size = None
        elif last is not None and batch.base_offset > last.end_offset:
            self.holes.append((last.end_offset, batch.base_offset))
        self.first = self.first or batch
        self.last = batch
        if self.size is not None:
            self.size = batch.position + batch.size
        self.count += 1
        if batch.leader_epoch is not None:
            self.latest_epoch = max(self.latest_epoch, batch.leader_epoch)
        self.max_timestamp = max(self.max_timestamp, batch.max_timestamp or -1)
        self.digest.update(repr(batch).encode())
        return None

    def _in_wrapper(self, last: RecordBatch, batch: RecordBatch) -> bool:
        """Whether a message came out of a compressed one, with others at that one's position."""
        together = batch.magic < 2 and batch.position == last.position
        following = self.in_wrapper and batch.position > last.position
        self.in_wrapper = self.in_wrapper or together
        return together or (following and batch.base_offset == last.end_offset)


def read_dumped_segments(path: Path) -> tuple[list[SegmentDump], list[Unreadable], list[str]]:
    """The segments in the output of kafka-dump-log that can be used, with what cannot be, and why
    in notes. Nothing is raised."""
    segments: list[SegmentDump] = []
    unreadable: list[Unreadable] = []
    notes: list[str] = []
    open_one: _Reading | None = None
    headless = False
    line = 0
    stopped_at: int | None = None

    def close(until: int) -> None:
        if open_one is not None:
            found = _closed(open_one, path, stopped_at or until)
            if isinstance(found, str):
                notes.append(f"{path}: {found}")
            else:
                segments.append(found)

    for item in read_dump_log(path):
        if isinstance(item, Unreadable):
            unreadable.append(item)
            continue
        line = item.line
        if isinstance(item, DumpedSegment):
            close(line)
            open_one, stopped_at = _Reading(item), None
        elif open_one is None:
            headless = True
        elif stopped_at is not None:
            continue
        elif isinstance(item, DumpedBatch):
            why = open_one.take(item.batch)
            if why is not None:
                stopped_at = line
                reason = f"{why}; the rest of {open_one.found.segment} was not used"
                unreadable.append(Unreadable(str(path), f"line {line}", reason))
        else:
            open_one.bare_records = open_one.bare_records or open_one.count == 0
            open_one.has_keys = open_one.has_keys or item.key is not None
    close(line + (1 << 40))
    if headless:
        notes.append(
            f'{path}: batches before any line "Dumping ..": nobody can tell which '
            "partition they are of, so they were not used"
        )
    return segments, unreadable, notes


def _closed(reading: _Reading, path: Path, until: int) -> SegmentDump | str:
    """The segment, or why it cannot be used."""
    found = reading.found
    if found.topic is None or found.partition is None:
        return f"the directory of {found.segment} names no topic partition, so it was not used"
    if reading.bare_records and not reading.count:
        return (
            f"{found.segment} was dumped record by record, without leader epochs, and was not "
            "used: dump it without --deep-iteration and --print-data-log too"
        )
    first, last = reading.first, reading.last
    holes = tuple(reading.holes)
    if first is not None and found.base_offset is not None:
        if first.base_offset < found.base_offset:
            return f"{found.segment} begins at offset {first.base_offset}: not used"
        if first.base_offset > found.base_offset:
            holes = ((found.base_offset, first.base_offset), *holes)
    return SegmentDump(
        name=found.segment,
        topic=found.topic,
        partition=found.partition,
        base_offset=found.base_offset,
        path=path,
        lines=range(found.line, until),
        first_offset=None if first is None else first.base_offset,
        end_offset=None if last is None else last.end_offset,
        size=reading.size,
        holes=holes,
        batch_count=reading.count,
        latest_epoch=reading.latest_epoch,
        max_timestamp=reading.max_timestamp if reading.max_timestamp >= 0 else None,
        fingerprint=reading.digest.digest(),
        has_keys=reading.has_keys,
    )


def dumped_directory(segments: Iterable[SegmentDump], sizes: set[int]) -> DumpedDirectory:
    """One replica's log from its dumped segments.

    sizes: bytes of the whole log, as kafka-log-dirs said at one moment or another. Raises NotOneLog
    when the segments contradict each other or hold nothing.
    """
    ordered = _told_apart(segments)
    if not any(s.batch_count for s in ordered):
        raise NotOneLog("no batch in it")
    known = [s.size for s in ordered if s.size is not None]
    is_whole = len(known) == len(ordered) and sum(known) in sizes
    first = ordered[0]
    times = [s.max_timestamp for s in ordered if s.max_timestamp is not None]
    return DumpedDirectory(
        path=first.path,
        topic=first.topic,
        partition=first.partition,
        kind="replica",
        topic_id=None,
        log_start_offset=first.begin,
        first_batch_offset=next(s.first_offset for s in ordered if s.batch_count),
        log_end_offset=ordered[-1].end,
        end_is_certain=False,
        batch_count=sum(s.batch_count for s in ordered),
        spans=(),
        epoch_entries=None,
        high_watermark=None,
        recovery_point=None,
        last_snapshot_offset=None,
        max_timestamp=max(times, default=None),
        unreadable=(),
        segments=(),
        dumped=tuple(ordered),
        holes=tuple(hole for s in ordered for hole in s.holes),
        is_whole=is_whole,
        latest_epoch=max(s.latest_epoch for s in ordered),
    )


def _told_apart(segments: Iterable[SegmentDump]) -> list[SegmentDump]:
    """The segments in order, each once; of equal ones that which shows keys."""
    best: dict[tuple[int, int, bytes], SegmentDump] = {}
    for segment in sorted(segments, key=lambda s: (not s.has_keys, str(s.path), s.lines.start)):
        best.setdefault((segment.begin, segment.end, segment.fingerprint), segment)
    ordered = [best[key] for key in sorted(best)]
    directories = sorted({s.directory for s in ordered})
    if len(directories) > 1:
        raise NotOneLog(
            f"dumps of {directories[0]} and of {directories[1]}, and nothing tells which of them "
            "is the replica's"
        )
    for before, after in pairwise(ordered):
        if after.begin < before.end:
            raise NotOneLog(
                f"two dumps show offset {after.begin} and differ, and nothing tells which is later"
            )
    return ordered
