"""Finds Kafka log directories in a folder of evidence and reads what each one holds.

A log directory is known by what is in it, never by its name, and a log of any size is read within
bounded memory: a `PartitionDirectory` keeps a summary, and `iter_batches()` reads the headers from
the file again each time.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

from replication.evidence.digest import (
    CLUSTER_METADATA,
    DIRECTORY_NAME,
    SEGMENT_NAME,
    SWAP_NAME,
    RawBatch,
    RawUnreadable,
    is_partition_directory,
)
from replication.evidence.log_directories.segments import RecordBatch, from_raw, scan_file
from replication.evidence.log_directories.small_files import (
    CleanShutdown,
    MetaProperties,
    read_clean_shutdown,
    read_leader_epoch_checkpoint,
    read_meta_properties,
    read_offset_checkpoint,
    read_partition_metadata,
)
from replication.evidence.unreadable import Unreadable

META_PROPERTIES = "meta.properties"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
HIGH_WATERMARKS = "replication-offset-checkpoint"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
LEADER_EPOCHS = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"

SNAPSHOT_NAME = re.compile(r"(\d{20})\.snapshot")
CLEANED_NAME = re.compile(r"(\d{20})\.\w+\.cleaned")

# A damaged file can be unreadable in millions of places; the user needs the first ones.
MOST_UNREADABLE = 1000
BACKWARDS = "offsets run backwards"

Value = TypeVar("Value")
Kind = Literal["replica", "deleted", "stray", "future"]
KINDS: dict[str | None, Kind] = {
    None: "replica",
    "delete": "deleted",
    "stray": "stray",
    "future": "future",
}

OffsetCheckpoint = dict[tuple[str, int], int]
# A run of batches of one leader epoch: (leader epoch or None, first offset, end offset).
Span = tuple[int | None, int, int]


class Segment(Protocol):
    """One segment, in a directory or in a digest, that can be read as often as wanted."""

    @property
    def base_offset(self) -> int:
        """The offset in the file's name."""

    @property
    def path(self) -> Path:
        """Where it is, or was."""

    def scan(self) -> Iterator[RawBatch | RawUnreadable]:
        """Its batches in file order, in the tuples of `scan_segment`."""


@dataclass(frozen=True, slots=True)
class SegmentFile:
    """A segment file of a copied directory."""

    base_offset: int
    path: Path
    verify_crc: bool

    def scan(self) -> Iterator[RawBatch | RawUnreadable]:
        return scan_file(self.path, verify_crc=self.verify_crc)


@dataclass(frozen=True)
class PartitionDirectory:
    """What one replica's directory held when it was copied.

    `kind` "deleted", "stray" and "future" are directories that the broker had set aside; what the
    log directory's checkpoints say under the topic's name is not theirs, so their
    `high_watermark` and `recovery_point` are None.

    `log_start_offset` is the larger of the checkpointed one and the first segment's base offset;
    None without segments. `log_end_offset` (exclusive) is the end of the last readable batch, or
    the last segment's base offset; None without segments. It is only a lower bound when
    `end_is_certain` is false: the last segment has an unreadable place, or offsets run backwards
    somewhere. A torn tail is such a place: a running broker may be writing there, a crashed one
    will cut it off. `epoch_entries` are (leader epoch, start offset), None without a readable
    checkpoint. `last_snapshot_offset` comes from the newest producer snapshot's name: the log
    reached it once. `unread`: from which offset to which (exclusive; None: nobody knows how far)
    the log was there but not to be read: a damaged batch, a segment file that cannot be opened or
    that holds something else. A torn tail is none. `max_timestamp` is milliseconds since 1970, by
    producers' or brokers' clocks.
    `captured_between` is when a digest read it, first and last millisecond; None for a copied
    directory, whose file times a copy does not keep."""

    path: Path
    topic: str
    partition: int
    kind: Kind
    topic_id: str | None
    log_start_offset: int | None
    first_batch_offset: int | None
    log_end_offset: int | None
    end_is_certain: bool
    batch_count: int
    spans: tuple[Span, ...]
    epoch_entries: tuple[tuple[int, int], ...] | None
    high_watermark: int | None
    recovery_point: int | None
    last_snapshot_offset: int | None
    max_timestamp: int | None
    unreadable: tuple[Unreadable, ...]
    segments: tuple[Segment, ...] = field(compare=False, repr=False)
    captured_between: tuple[int, int] | None = field(default=None, compare=False)
    unread: tuple[tuple[int, int | None], ...] = ()

    @property
    def segment_files(self) -> tuple[tuple[int, Path], ...]:
        """(base offset, path) of each segment, in order."""
        return tuple((segment.base_offset, segment.path) for segment in self.segments)

    def iter_batches(self) -> Iterator[RecordBatch]:
        """Every readable batch in offset order, from the files, with bounded memory. Batches whose
        offsets run backwards are left out: they are in `unreadable`."""
        for _, batch in self.iter_batches_with_path():
            yield batch

    def iter_batches_with_path(self) -> Iterator[tuple[Path, RecordBatch]]:
        """The same, each with its segment file, as `read_record_identities` wants them."""
        for segment, raw in _walk(self.segments):
            batch = from_raw(raw, segment.path)
            if isinstance(batch, RecordBatch):
                yield segment.path, batch

    @property
    def batches(self) -> tuple[RecordBatch, ...]:
        """All batches at once: some 500 bytes each, so only for logs known to be small."""
        return tuple(self.iter_batches())


@dataclass(frozen=True)
class NothingLeft(PartitionDirectory):
    """A replica of which its log directory, emptied or formatted anew, has nothing any more."""


@dataclass(frozen=True)
class LogDirectory:
    """One directory of a broker's `log.dirs` as it was copied. `clean_shutdown` is None while the
    broker ran, or when it did not stop in order. `has_cluster_metadata` is where the controllers'
    log is; another reader reads it. `unreadable` speaks of the log directory's own files. `named`:
    the partitions in its offset checkpoints. `crashed`: its broker's process was seen beside it and
    is gone, and left no mark of a clean stop."""

    path: Path
    meta: MetaProperties | None
    clean_shutdown: CleanShutdown | None
    partitions: tuple[PartitionDirectory, ...]
    unreadable: tuple[Unreadable, ...]
    has_cluster_metadata: Path | None
    named: frozenset[tuple[str, int]] = frozenset()
    crashed: bool = False


@dataclass(frozen=True, slots=True)
class DirectoryCheckpoints:
    """The three offset checkpoints of a log directory; empty where absent or unreadable."""

    high_watermarks: OffsetCheckpoint
    recovery_points: OffsetCheckpoint
    log_starts: OffsetCheckpoint

    @property
    def named(self) -> frozenset[tuple[str, int]]:
        """The partitions that any of them names."""
        return frozenset((*self.high_watermarks, *self.recovery_points, *self.log_starts))


@dataclass(frozen=True, slots=True)
class PartitionFiles:
    """What is known of a partition's directory before its segments are read. swaps: what was to
    take the place of others (`.swap`)."""

    path: Path
    names: tuple[str, ...]
    epoch_entries: list[tuple[int, int]] | Unreadable | None
    topic_id: str | Unreadable | None
    segments: tuple[Segment, ...]
    swaps: tuple[Segment, ...] = ()


def find_log_directories(roots: Iterable[Path]) -> list[Path]:
    """Every log directory at or below `roots`, sorted, each once. Links are not followed. A folder
    counts when it holds `meta.properties`, an offset checkpoint or a partition's directory; so
    several `log.dirs` of one broker, and several copies of one, are each found."""
    own_files = {META_PROPERTIES, HIGH_WATERMARKS, RECOVERY_POINTS, LOG_STARTS}
    found: dict[Path, Path] = {}
    for root in roots:
        for folder, subfolders, files in os.walk(root):
            partitions = [
                name
                for name in subfolders
                if name == CLUSTER_METADATA or is_partition_directory(os.path.join(folder, name))
            ]
            if partitions or own_files.intersection(files):
                found.setdefault(Path(folder).resolve(), Path(folder))
            subfolders[:] = [name for name in subfolders if name not in partitions]
    return sorted(found.values())


def read_log_directory(
    path: Path, *, verify_crc: bool = False, spread: Callable[..., Iterable[Any]] = map
) -> LogDirectory:
    """Reads one log directory: its own files, and every partition's headers once through.

    Nothing is raised; what cannot be read is in `unreadable`, of the directory or of the partition.
    With `verify_crc` every byte is read, now and in each `iter_batches()`. spread: as `map`, but
    perhaps on many machines.
    """
    names, unreadable = _list(path)
    folders = [path / name for name in names if name != CLUSTER_METADATA]
    checkpoints = DirectoryCheckpoints(
        _offset_checkpoint(path, HIGH_WATERMARKS, names, unreadable),
        _offset_checkpoint(path, RECOVERY_POINTS, names, unreadable),
        _offset_checkpoint(path, LOG_STARTS, names, unreadable),
    )
    meta = read_meta_properties(path / META_PROPERTIES) if META_PROPERTIES in names else None
    clean = read_clean_shutdown(path / CLEAN_SHUTDOWN) if CLEAN_SHUTDOWN in names else None
    return LogDirectory(
        path=path,
        meta=readable_or_none(meta, unreadable),
        clean_shutdown=readable_or_none(clean, unreadable),
        partitions=tuple(
            spread(
                partial(_read_partition, checkpoints=checkpoints, verify_crc=verify_crc),
                [folder for folder in folders if is_partition_directory(str(folder))],
            )
        ),
        unreadable=tuple(unreadable),
        has_cluster_metadata=path / CLUSTER_METADATA if CLUSTER_METADATA in names else None,
        named=checkpoints.named - {(CLUSTER_METADATA.rpartition("-")[0], 0)},
    )


def _read_partition(
    path: Path, checkpoints: DirectoryCheckpoints, verify_crc: bool
) -> PartitionDirectory:
    names, unreadable = _list_own(path)
    epochs = read_leader_epoch_checkpoint(path / LEADER_EPOCHS) if LEADER_EPOCHS in names else None
    topic_id = (
        read_partition_metadata(path / PARTITION_METADATA) if PARTITION_METADATA in names else None
    )
    segments, swaps = (
        tuple(SegmentFile(base_offset, path / name, verify_crc) for base_offset, name in found)
        for found in (segment_names(names), segment_names(names, SWAP_NAME))
    )
    files = PartitionFiles(path, tuple(names), epochs, topic_id, segments, swaps)
    return summarize_partition(files, checkpoints, unreadable)


def summarize_partition(
    files: PartitionFiles, checkpoints: DirectoryCheckpoints, unreadable: list[Unreadable]
) -> PartitionDirectory:
    """Reads every segment once through and says what the directory holds. `unreadable` are the
    places found so far; shared by directories and digests, so that both answer the same."""
    topic, partition, kind = parse_directory_name(files.path.name)
    epoch_entries = readable_or_none(files.epoch_entries, unreadable)
    topic_id = readable_or_none(files.topic_id, unreadable)
    segments = _swapped(files, unreadable)
    log = read_log(segments)
    unreadable.extend(log.unreadable)
    if not epoch_entries and any(leader_epoch is not None for leader_epoch, *_ in log.spans):
        epoch_entries = None  # Emptied beside records that have leader epochs: not the broker's.
    start = _log_start(segments)
    key = (topic, partition)
    owns_name = kind == "replica"
    if owns_name and start is not None:
        start = max(start, checkpoints.log_starts.get(key, 0))
    snapshots = [int(found[1]) for name in files.names if (found := SNAPSHOT_NAME.fullmatch(name))]
    return PartitionDirectory(
        path=files.path,
        topic=topic,
        partition=partition,
        kind=kind,
        topic_id=topic_id,
        log_start_offset=start,
        first_batch_offset=log.first_offset,
        log_end_offset=log.end_offset,
        end_is_certain=log.end_is_certain,
        batch_count=log.batch_count,
        spans=tuple(log.spans),
        epoch_entries=None if epoch_entries is None else tuple(epoch_entries),
        high_watermark=checkpoints.high_watermarks.get(key) if owns_name else None,
        recovery_point=checkpoints.recovery_points.get(key) if owns_name else None,
        last_snapshot_offset=max(snapshots, default=None),
        max_timestamp=log.max_timestamp,
        unreadable=tuple(unreadable),
        segments=segments,
        unread=tuple(log.unread),
    )


@dataclass
class _LogSummary:
    """What one walk over a replica's log has found so far."""

    spans: list[Span]
    unreadable: list[Unreadable]
    end_offset: int | None = None
    first_offset: int | None = None
    max_timestamp: int | None = None
    batch_count: int = 0
    end_is_certain: bool = True
    unread: list[tuple[int, int | None]] = field(default_factory=list)


def read_log(segments: tuple[Segment, ...]) -> _LogSummary:
    """What one walk over a log's segments finds: spans, where it ends, what cannot be read."""
    log = _LogSummary(spans=[], unreadable=[])
    left_out = 0
    # Plain variables, because this loop runs once for every batch of the log.
    leader_epoch, span_start, end_offset = -2, 0, 0
    max_timestamp = -1
    unread_from, goes_on = -1, False
    for segment, item in _walk(segments):
        if len(item) == 2:
            where, reason = item
            if unread_from < 0:
                unread_from = max(end_offset, segment.base_offset)
            # What a crash or a copy of a running log leaves: the last batch, not all of it.
            torn = reason.startswith("torn") and segment is segments[-1] and log.batch_count > 0
            goes_on = goes_on or not torn
            if segment is segments[-1] or reason.startswith(BACKWARDS):
                log.end_is_certain = False
            if len(log.unreadable) < MOST_UNREADABLE:
                log.unreadable.append(Unreadable(str(segment.path), where, reason))
            else:
                left_out += 1
            continue
        if unread_from >= 0:
            if unread_from < item[0]:
                log.unread.append((unread_from, item[0]))
            unread_from, goes_on = -1, False
        if item[2] != leader_epoch:
            if log.batch_count:
                log.spans.append((_or_none(leader_epoch), span_start, end_offset))
            else:
                log.first_offset = item[0]
            leader_epoch, span_start = item[2], item[0]
        log.batch_count += 1
        end_offset = item[1]
        if item[12] > max_timestamp:
            max_timestamp = item[12]
    log.max_timestamp = _or_none(max_timestamp)
    if log.batch_count:
        log.spans.append((_or_none(leader_epoch), span_start, end_offset))
    if goes_on:
        log.unread.append((unread_from, None))
    if segments:
        log.end_offset = max(end_offset, segments[-1].base_offset)
    if left_out:
        folder = str(segments[0].path.parent)
        log.unreadable.append(Unreadable(folder, "file", f"{left_out} more unreadable places"))
    return log


def _walk(segments: tuple[Segment, ...]) -> Iterator[tuple[Segment, RawBatch | RawUnreadable]]:
    """The batches of a log in order. Where one begins below where the log already reached, within a
    segment or from one to the next, one of the two has a wrong base offset, which no checksum
    covers: the earlier one if it alone leaves a gap, else the later one is answered as unreadable.
    """
    reached = segments[0].base_offset if segments else 0
    held: RawBatch | None = None
    held_in: Segment | None = None
    for segment in segments:
        for item in segment.scan():
            if len(item) == 2:
                if held is not None and held_in is not None:
                    yield held_in, held
                    reached, held = held[1], None
                yield segment, item
                continue
            if held is None or held_in is None:
                if item[0] < reached:
                    yield segment, _backwards(item, item[0], reached)
                    continue
            elif item[0] < held[1]:
                if held[0] == reached or item[0] < reached:
                    yield segment, _backwards(item, item[0], held[1])
                    continue
                yield held_in, _backwards(held, item[0], held[1])
            else:
                yield held_in, held
                reached = held[1]
            held, held_in = item, segment
    if held is not None and held_in is not None:
        yield held_in, held


def _backwards(wrong: RawBatch, offset: int, reached: int) -> RawUnreadable:
    return f"byte {wrong[6]}", f"{BACKWARDS}: {offset} after {reached - 1}"


def _or_none(value: int) -> int | None:
    return value if value >= 0 else None


def parse_directory_name(name: str) -> tuple[str, int, Kind]:
    """Topic, partition and kind from the name of a partition's directory."""
    found = DIRECTORY_NAME.fullmatch(name)
    if found is None:
        raise ValueError(f"{name!r} does not name a partition's directory")
    return found["topic"], int(found["partition"]), KINDS[found["kind"]]


def segment_names(
    names: Iterable[str], pattern: re.Pattern[str] = SEGMENT_NAME
) -> list[tuple[int, str]]:
    """(base offset, name) of the segments among the names of a partition's files, in order. What
    the broker set aside (`.deleted`, `.cleaned`) is none; pattern: of others than its segments."""
    found = [(int(match[1]), name) for name in names if (match := pattern.fullmatch(name))]
    return sorted(found)


def _swapped(files: PartitionFiles, unreadable: list[Unreadable]) -> tuple[Segment, ...]:
    """The segments as the broker has them once it is through with what a stop broke off: a cleaned
    segment takes the place of those that begin within it, and when it starts, Kafka finishes that.
    But for one at or above what was still being written (`.cleaned`, KAFKA-6264)."""
    unwritten = min(
        (int(found[1]) for name in files.names if (found := CLEANED_NAME.fullmatch(name))),
        default=1 << 63,
    )
    segments = list(files.segments)
    for swap in files.swaps:
        end = _end_of(swap) if swap.base_offset < unwritten else None
        if end is None:
            reason = "the broker was replacing segments by this one; its records were not read"
            unreadable.append(Unreadable(str(swap.path), "file", reason))
            continue
        segments = [s for s in segments if not swap.base_offset <= s.base_offset < end]
        segments.append(swap)
    return tuple(sorted(segments, key=lambda s: s.base_offset))


def _end_of(segment: Segment) -> int | None:
    """The end of its last batch; None where it has none, or not all of it can be read."""
    end: int | None = None
    for item in segment.scan():
        if len(item) == 2:
            return None
        end = item[1]
    return end


def _log_start(segments: tuple[Segment, ...]) -> int | None:
    return segments[0].base_offset if segments else None


def readable_or_none(
    value: Value | Unreadable | None, unreadable: list[Unreadable]
) -> Value | None:
    """The value, or None after noting why there is none."""
    if isinstance(value, Unreadable):
        unreadable.append(value)
        return None
    return value


def _offset_checkpoint(
    path: Path, name: str, names: list[str], unreadable: list[Unreadable]
) -> OffsetCheckpoint:
    if name not in names:
        return {}
    return readable_or_none(read_offset_checkpoint(path / name), unreadable) or {}


def _list_own(path: Path) -> tuple[list[str], list[Unreadable]]:
    """As _list, of a partition's folder: one that is a link may lead anywhere."""
    if not path.is_symlink():
        return _list(path)
    told = f"a link to {os.readlink(path)}; in a log directory links are not followed"
    return [], [Unreadable(str(path), "file", told)]


def _list(path: Path) -> tuple[list[str], list[Unreadable]]:
    try:
        return sorted(os.listdir(path)), []
    except OSError as error:
        return [], [Unreadable(str(path), "file", error.strerror or str(error))]
