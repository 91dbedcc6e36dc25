"""Reads Kafka's log segments: the header of every record batch, in all three record formats."""

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

import crc32c

from replication.evidence.digest import RawBatch, RawUnreadable, reader_of, scan_segment
from replication.evidence.log_directories.compression import decompress
from replication.evidence.opening import regular
from replication.evidence.unreadable import Unreadable

CODEC_MASK = 0x07
TRANSACTIONAL = 0x10
CONTROL = 0x20
DELETE_HORIZON = 0x40
# The first byte that the CRC covers: what is right behind the CRC itself. The offsets and the
# leader epoch are before it, so that a broker may write them without computing it again (KIP-98).
CRC_BEGINS = {0: 16, 1: 16, 2: 21}
CRC_CHUNK = 1 << 20


class RecordBatch(NamedTuple):
    """The header of one record batch, or of one (wrapper) message of the formats before 0.11.

    A tuple rather than a dataclass: ten gigabytes of small batches are ten million of these, and a
    frozen dataclass takes ten times as long to make.

    `end_offset` is exclusive; `size` and `position` are bytes in the segment file. `leader_epoch`
    is None before 0.11, and where the batch says that it is unknown. `crc` covers neither the
    offsets nor the leader epoch. `producer_epoch` and `base_sequence` are None without an
    idempotent producer. `max_timestamp` is milliseconds since 1970. `codec`: 0 none, 1 gzip, 2
    snappy, 3 lz4, 4 zstd. `has_delete_horizon`: the cleaner wrote its own time into the header,
    which the CRC covers and each replica does for itself (KIP-534). Source: DefaultRecordBatch,
    LegacyRecord."""

    base_offset: int
    end_offset: int
    leader_epoch: int | None
    magic: int
    crc: int
    size: int
    position: int
    producer_id: int | None
    producer_epoch: int | None
    base_sequence: int | None
    is_control: bool
    is_transactional: bool
    record_count: int | None
    max_timestamp: int | None
    codec: int
    has_delete_horizon: bool = False


def read_batches(path: Path, *, verify_crc: bool = False) -> Iterator[RecordBatch | Unreadable]:
    """The batches of one segment file in file order, and the places that hold none.

    Memory is bounded whatever the file's size. A tail of zeros is the lawful end of a preallocated
    segment. A torn tail, damage, text, a Git LFS pointer or a file that cannot be opened each
    answer an Unreadable; nothing is raised. With `verify_crc` every byte is read, and a batch whose
    check sum is wrong is answered as Unreadable in its place. Offsets are not judged here: whether
    neighbours fit together is `log_directory`'s to say.
    """
    for raw in scan_file(path, verify_crc=verify_crc):
        yield from_raw(raw, path)


def scan_file(path: Path, *, verify_crc: bool) -> Iterator[RawBatch | RawUnreadable]:
    """What `read_batches` answers, in the plain tuples of `scan_segment`: for whoever needs few of
    the fields of many batches."""
    try:
        with regular(path).open("rb", buffering=0) as stream:
            items = scan_segment(reader_of(stream), stream.seek(0, 2), decompress)
            if not verify_crc:
                yield from items
                return
            with path.open("rb", buffering=CRC_CHUNK) as whole:
                for item in items:
                    yield _checked(whole, item)
    except OSError as error:
        yield "file", error.strerror or str(error)


def from_raw(raw: RawBatch | RawUnreadable, path: Path) -> RecordBatch | Unreadable:
    """What `scan_segment` yields, with None where Kafka writes -1."""
    if len(raw) == 2:
        where, reason = raw
        return Unreadable(str(path), where, reason)
    (
        base_offset,
        end_offset,
        leader_epoch,
        magic,
        crc,
        size,
        position,
        producer_id,
        producer_epoch,
        base_sequence,
        attributes,
        record_count,
        max_timestamp,
    ) = raw
    # Past the keyword handling of RecordBatch(...), which takes as long as all the rest.
    return tuple.__new__(
        RecordBatch,
        (
            base_offset,
            end_offset,
            leader_epoch if leader_epoch >= 0 else None,
            magic,
            crc,
            size,
            position,
            producer_id if producer_id >= 0 else None,
            producer_epoch if producer_epoch >= 0 else None,
            base_sequence if base_sequence >= 0 else None,
            attributes & CONTROL != 0 and magic == 2,
            attributes & TRANSACTIONAL != 0 and magic == 2,
            record_count,
            max_timestamp if max_timestamp >= 0 else None,
            attributes & CODEC_MASK,
            attributes & DELETE_HORIZON != 0 and magic == 2,
        ),
    )


def _checked(stream: BinaryIO, item: RawBatch | RawUnreadable) -> RawBatch | RawUnreadable:
    """The batch, or what is wrong with it: CRC-32C in format 2, CRC-32 before, piece by piece."""
    if len(item) == 2:
        return item
    base_offset, end_offset, _, magic, crc, size, position = item[:7]
    checksum = crc32c.crc32c if magic == 2 else zlib.crc32
    stream.seek(position + CRC_BEGINS[magic])
    left = size - CRC_BEGINS[magic]
    value = 0
    while left > 0:
        piece = stream.read(min(CRC_CHUNK, left))
        if not piece:
            break
        value = checksum(piece, value)
        left -= len(piece)
    if value == crc:
        return item
    offsets = f"{base_offset} to {end_offset - 1}"
    reason = f"the batch of offsets {offsets} has CRC {value:08x}, its header says {crc:08x}"
    return f"byte {position}", reason
