"""Segments of a partition directory, read with kafka-python and never with the product's parser."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from kafka.record import MemoryRecords

# What follows the payload id in a value.
FILLER = b"."
# int64 offset, int32 length: the start of a batch, or of an old message, in every format.
PREFIX = struct.Struct(">qi")
EPOCH_AT, MAGIC_AT = 12, 16


@dataclass(frozen=True)
class Held:
    """One record of a replica's log; `leader_epoch` is None in the formats without it."""

    offset: int
    leader_epoch: int | None
    payload_id: str
    key: str


def batches(segment: bytes) -> Iterator[tuple[int, bytes]]:
    """Byte position and bytes of each whole batch; stops at a torn or zero-filled tail."""
    at = 0
    while at + PREFIX.size <= len(segment):
        _, size = PREFIX.unpack_from(segment, at)
        end = at + PREFIX.size + size
        if size < 14 or end > len(segment):
            return
        yield at, segment[at:end]
        at = end


@lru_cache(maxsize=100_000)
def records(batch: bytes) -> tuple[Held, ...]:
    """The records of one batch, control batches left out."""
    magic = batch[MAGIC_AT]
    leader_epoch: int | None = None
    if magic == 2:
        (leader_epoch,) = struct.unpack_from(">i", batch, EPOCH_AT)
    found = []
    parsed = MemoryRecords(batch).next_batch()
    if parsed is None or (magic == 2 and parsed.is_control_batch):
        return ()
    for record in parsed:
        key = b"" if record.key is None else bytes(record.key)
        value = b"" if record.value is None else bytes(record.value)
        named = value.rstrip(FILLER).decode("utf-8", "replace")
        found.append(Held(record.offset, leader_epoch, named, key.decode("utf-8", "replace")))
    return tuple(found)


@lru_cache(maxsize=100_000)
def markers_in(batch: bytes) -> frozenset[tuple[int, int]]:
    """Offset and leader epoch of a batch's transaction markers, which are nobody's records."""
    parsed = MemoryRecords(batch).next_batch() if batch[MAGIC_AT] == 2 else None
    if parsed is None or not parsed.is_control_batch:
        return frozenset()
    (leader_epoch,) = struct.unpack_from(">i", batch, EPOCH_AT)
    return frozenset((record.offset, leader_epoch) for record in parsed)


def first_offset(batch: bytes) -> int:
    """As its header tells; of compressed messages of the formats before v2 that is the last one."""
    return int(PREFIX.unpack_from(batch)[0])


def segment_files(directory: Path) -> list[Path]:
    """By base offset; files that Kafka is about to delete have another ending."""
    return sorted(directory.glob("*.log"))


def read_batches(directory: Path) -> tuple[bytes, ...]:
    """Every whole batch of a partition directory that may be written to meanwhile."""
    found: list[bytes] = []
    for path in segment_files(directory):
        try:
            segment = path.read_bytes()
        except FileNotFoundError:
            continue
        found += [batch for _, batch in batches(segment)]
    return tuple(found)


def checkpoint_entries(path: Path) -> dict[tuple[str, int], int]:
    """`topic partition offset` lines of a checkpoint file; an empty or absent file has none."""
    try:
        lines = path.read_text().splitlines()
    except FileNotFoundError:
        return {}
    found = {}
    for line in lines[2:]:
        topic, partition, offset = line.split()
        found[topic, int(partition)] = int(offset)
    return found


@dataclass(frozen=True)
class Cut:
    """A suffix taken from a log whose broker is down; the payload ids that went with it."""

    file: str
    kept_end_offset: int
    removed: tuple[str, ...]


def cut_suffix(
    directory: Path, drop_batches: int, recovery_point: int = 0, *, zeros: bool = False
) -> Cut | None:
    """Drops up to so many batches of the last segment, as a power loss of unflushed pages does.
    zeros: the file keeps its length, as where the file system had written that alone.

    Never below `recovery_point`, since what lies below it was flushed. None if nothing is left to
    drop. The clean shutdown marker must be absent, else recovery would not run.
    """
    last = segment_files(directory)[-1]
    segment = last.read_bytes()
    places = list(batches(segment))
    dropped: list[bytes] = []
    while places and len(dropped) < drop_batches:
        _at, batch = places[-1]
        first = min((held.offset for held in records(batch)), default=recovery_point)
        if first < recovery_point:
            break
        dropped.insert(0, batch)
        places.pop()
    if not dropped:
        return None
    keep = places[-1][0] + len(places[-1][1]) if places else 0
    with last.open("r+b") as file:
        file.truncate(keep)
        if zeros:
            file.truncate(len(segment))
    gone = [held for batch in dropped for held in records(batch)]
    kept_end = min((held.offset for held in records(dropped[0])), default=first_offset(dropped[0]))
    return Cut(last.name, kept_end, tuple(held.payload_id for held in gone))
