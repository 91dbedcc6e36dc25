"""Writes record batches byte by byte, in every format that Kafka ever put on disk.

Written from the protocol guide, apart from the readers it feeds; `test_segments.py` holds what it
writes against kafka-python, which is neither's author.
"""

import gzip
import struct
import zlib
from dataclasses import dataclass, field

import cramjam
import crc32c
import lz4.frame
import zstandard

GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
CREATED = 1_700_000_000_000
TRANSACTIONAL, CONTROL, LOG_APPEND_TIME = 0x10, 0x20, 0x08


@dataclass(frozen=True)
class Record:
    """One record to write; `offset` is relative to its batch, None for one after the last."""

    value: bytes | None = b"value"
    key: bytes | None = None
    timestamp: int = CREATED
    headers: list[tuple[bytes, bytes | None]] = field(default_factory=list)
    offset: int | None = None


def compress(codec: int, data: bytes, *, raw_snappy: bool = False) -> bytes:
    """What a producer sends for `data`; snappy in the frame of snappy-java, in blocks."""
    if codec == GZIP:
        return gzip.compress(data, mtime=0)
    if codec == SNAPPY and raw_snappy:
        return bytes(cramjam.snappy.compress_raw(data))
    if codec == SNAPPY:
        blocks = [data[at : at + 100] for at in range(0, len(data), 100)]
        packed = [bytes(cramjam.snappy.compress_raw(block)) for block in blocks]
        sized = (struct.pack(">i", len(block)) + block for block in packed)
        return b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1) + b"".join(sized)
    if codec == LZ4:
        return lz4.frame.compress(data, store_size=False)
    if codec == ZSTD:
        return zstandard.compress(data)
    return data


def varint(value: int) -> bytes:
    number = value * 2 if value >= 0 else -value * 2 - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _field(content: bytes | None) -> bytes:
    return varint(-1) if content is None else varint(len(content)) + content


def _record(record: Record, offset: int, base_timestamp: int) -> bytes:
    body = b"\0" + varint(record.timestamp - base_timestamp) + varint(offset)
    body += _field(record.key) + _field(record.value) + varint(len(record.headers))
    for name, value in record.headers:
        body += _field(name) + _field(value)
    return varint(len(body)) + body


def batch(
    base_offset: int,
    *records: Record,
    leader_epoch: int = 0,
    codec: int = 0,
    flags: int = 0,
    producer: tuple[int, int, int] = (-1, -1, -1),
    max_timestamp: int | None = None,
    base_timestamp: int = CREATED,
    raw_snappy: bool = False,
) -> bytes:
    """One batch of format 2; the records' offsets count up from 0 unless they say otherwise."""
    records = records or (Record(),)
    offsets = []
    for record in records:
        following = offsets[-1] + 1 if offsets else 0
        offsets.append(following if record.offset is None else record.offset)
    data = b"".join(
        _record(record, at, base_timestamp) for record, at in zip(records, offsets, strict=True)
    )
    latest = max(record.timestamp for record in records)
    latest = latest if max_timestamp is None else max_timestamp
    checked = struct.pack(">hiqqqhi", codec | flags, offsets[-1], base_timestamp, latest, *producer)
    checked += struct.pack(">i", len(records)) + compress(codec, data, raw_snappy=raw_snappy)
    rest = struct.pack(">ibI", leader_epoch, 2, crc32c.crc32c(checked)) + checked
    return struct.pack(">qi", base_offset, len(rest)) + rest


def message(
    offset: int,
    record: Record | None = None,
    *,
    magic: int = 1,
    attributes: int = 0,
) -> bytes:
    """One message of format 0 or 1."""
    record = record or Record()
    checked = struct.pack(">bb", magic, attributes)
    if magic == 1:
        checked += struct.pack(">q", record.timestamp)
    for content in (record.key, record.value):
        size = -1 if content is None else len(content)
        checked += struct.pack(">i", size) + (content or b"")
    rest = struct.pack(">I", zlib.crc32(checked)) + checked
    return struct.pack(">qi", offset, len(rest)) + rest


def wrapper(
    last_offset: int,
    *inner: bytes,
    magic: int = 1,
    codec: int = GZIP,
    attributes: int = 0,
    raw_snappy: bool = False,
    timestamp: int = CREATED,
) -> bytes:
    """One compressed message around others, which carry the offsets that they were given."""
    packed = compress(codec, b"".join(inner), raw_snappy=raw_snappy)
    record = Record(value=packed, timestamp=timestamp)
    return message(last_offset, record, magic=magic, attributes=codec | attributes)
