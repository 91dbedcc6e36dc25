"""Opens a record batch: which records it holds, by key and by a digest of their content."""

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

import crc32c

from replication.evidence.digest import BATCH_HEADER, inner_messages, message_value
from replication.evidence.log_directories.compression import decompress
from replication.evidence.log_directories.segments import CRC_BEGINS, RecordBatch
from replication.evidence.unreadable import Unreadable

LARGEST_BATCH = 128 << 20
LOG_APPEND_TIME = 0x08
BASE_TIMESTAMP_AT = 27
MAX_TIMESTAMP_AT = 35

# (name, value) of each header, in the order written: the order is part of the content.
Headers = list[tuple[bytes, bytes | None]]


@dataclass(frozen=True, slots=True)
class RecordIdentity:
    """One record: where it is and what it is.

    `key` is text, bytes that are no UTF-8 replaced; None without a key, and for the records of
    control batches. `digest` is a signed 64-bit number over key, value,
    timestamp and headers: records of equal content have equal digests however they were batched and
    compressed. Different content has equal digests once in 2^64 pairs. key_bytes, value, headers:
    what the record carries; those of a control batch's are Kafka's own. timestamp: milliseconds
    since 1970, None where the format has none or the producer gave none; by_broker: the broker set
    it as it appended.
    """

    offset: int
    key: str | None
    digest: int
    key_bytes: bytes | None = field(default=None, compare=False, repr=False)
    value: bytes | None = field(default=None, compare=False, repr=False)
    headers: Headers = field(default_factory=list, compare=False, repr=False)
    timestamp: int | None = field(default=None, compare=False, repr=False)
    by_broker: bool = field(default=False, compare=False, repr=False)


def read_record_identities(
    path: Path, batch: RecordBatch, *, verify_crc: bool = False
) -> list[RecordIdentity] | Unreadable:
    """Every record of one batch of the segment file `path`, in offset order.

    Answers an Unreadable with the batch's position when the file no longer holds the batch, or when
    its records cannot be unpacked; then nothing of the batch is answered. With `verify_crc` also
    when the bytes are not those that the batch's check sum was made of. Source: DefaultRecord,
    LegacyRecord; KIP-31 for inner offsets, KIP-32 for timestamps."""
    where = f"byte {batch.position}"
    if batch.size > LARGEST_BATCH:
        told = f"a batch of {batch.size} bytes was not unpacked: the most are {LARGEST_BATCH}"
        return Unreadable(str(path), where, told)
    try:
        with path.open("rb") as stream:
            stream.seek(batch.position)
            content = stream.read(batch.size)
    except NotADirectoryError:
        # The paths of a digest's segments lead into the digest, which is a file.
        return Unreadable(str(path), where, "a digest holds headers only, no records")
    except OSError as error:
        return Unreadable(str(path), where, error.strerror or str(error))
    try:
        if len(content) < batch.size:
            raise ValueError("the file became shorter since its headers were read")
        if verify_crc and not _is_sound(content, batch):
            told = "its bytes do not fit its check sum: damaged, or changed while it was read"
            return Unreadable(str(path), where, told)
        records = _records_of_batch if batch.magic == 2 else _records_of_message
        return list(records(content, batch))
    except (ValueError, IndexError, struct.error) as error:
        return Unreadable(str(path), where, f"records that do not unpack: {error}")


def _is_sound(content: bytes, batch: RecordBatch) -> bool:
    """Whether the bytes are those of the batch whose header was read, by its check sum."""
    begin = CRC_BEGINS[batch.magic]
    checksum = crc32c.crc32c if batch.magic == 2 else zlib.crc32
    told = int.from_bytes(content[begin - 4 : begin], "big")
    return told == batch.crc == checksum(content[begin:])


def _records_of_batch(content: bytes, batch: RecordBatch) -> Iterator[RecordIdentity]:
    """The records of format 2: varints throughout, offsets and timestamps relative to the
    batch's."""
    attributes = int.from_bytes(content[21:23], "big")
    base_timestamp, max_timestamp = struct.unpack_from(">qq", content, BASE_TIMESTAMP_AT)
    data = decompress(batch.codec, content[BATCH_HEADER.size :])
    at = 0
    for _ in range(batch.record_count or 0):
        size, at = _varint(data, at)
        end = at + size
        if size < 0 or end > len(data):
            raise ValueError(f"a record of {size} bytes")
        timestamp_delta, at = _varint(data, at + 1)
        offset_delta, at = _varint(data, at)
        key, at = _bytes(data, at)
        value, at = _bytes(data, at)
        headers, at = _headers(data, at)
        if at != end:
            raise ValueError(f"a record of {size} bytes whose fields take {size + at - end}")
        timestamp = base_timestamp + timestamp_delta
        by_broker = attributes & LOG_APPEND_TIME != 0
        if by_broker:
            timestamp = max_timestamp
        digest = content_digest(key, value, timestamp, headers)
        offset = batch.base_offset + offset_delta
        text = None if key is None or batch.is_control else key.decode("utf-8", "replace")
        at_time = timestamp if timestamp >= 0 else None
        yield RecordIdentity(offset, text, digest, key, value, headers, at_time, by_broker)
    if at != len(data):
        raise ValueError(f"{len(data) - at} bytes after the last record")


def _records_of_message(content: bytes, batch: RecordBatch) -> Iterator[RecordIdentity]:
    """The message, or the messages inside the wrapper, of formats 0 and 1."""
    if batch.codec == 0:
        yield _identity_of_message(content, batch.base_offset, None)
        return
    data = decompress(batch.codec, message_value(content))
    inner = list(inner_messages(data))
    last_written = inner[-1][0] if inner else 0
    last_offset = batch.end_offset - 1
    append_time = None
    if batch.magic == 1 and content[17] & LOG_APPEND_TIME:
        append_time = int.from_bytes(content[18:26], "big", signed=True)
    for written, at, size in inner:
        offset = written if batch.magic == 0 else last_offset - last_written + written
        yield _identity_of_message(data[at : at + size], offset, append_time)


def _identity_of_message(message: bytes, offset: int, append_time: int | None) -> RecordIdentity:
    magic = message[16]
    timestamp = -1
    at = 18
    if magic == 1:
        timestamp = int.from_bytes(message[18:26], "big", signed=True)
        at = 26
    elif magic != 0:
        raise ValueError(f"a message of unknown format {magic}")
    by_broker = append_time is not None or (magic == 1 and message[17] & LOG_APPEND_TIME != 0)
    if append_time is not None:
        timestamp = append_time
    key, at = _sized(message, at)
    value, at = _sized(message, at)
    text = None if key is None else key.decode("utf-8", "replace")
    digest = content_digest(key, value, timestamp, [])
    at_time = timestamp if timestamp >= 0 else None
    return RecordIdentity(offset, text, digest, key, value, [], at_time, by_broker)


def _sized(message: bytes, at: int) -> tuple[bytes | None, int]:
    """A field behind its four-byte length, -1 for absent."""
    (size,) = struct.unpack_from(">i", message, at)
    at += 4
    if size < 0:
        return None, at
    if at + size > len(message):
        raise ValueError(f"a field of {size} bytes")
    return message[at : at + size], at + size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A signed number in zigzag coding, at most ten bytes long, and the position behind it."""
    byte = data[at]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), at + 1
    value = byte & 0x7F
    for length in range(1, 10):
        byte = data[at + length]
        value |= (byte & 0x7F) << (7 * length)
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at + length + 1
    raise ValueError("a number of more than ten bytes")


def _bytes(data: bytes, at: int) -> tuple[bytes | None, int]:
    """A field behind its varint length, negative for absent."""
    size, at = _varint(data, at)
    if size < 0:
        return None, at
    if at + size > len(data):
        raise ValueError(f"a field of {size} bytes")
    return data[at : at + size], at + size


def _headers(data: bytes, at: int) -> tuple[Headers, int]:
    count, at = _varint(data, at)
    # A header takes two bytes or more: a larger count is damage, and must not be looped over.
    if not 0 <= count <= (len(data) - at) // 2:
        raise ValueError(f"{count} headers")
    headers: Headers = []
    for _ in range(count):
        name, at = _bytes(data, at)
        value, at = _bytes(data, at)
        headers.append((name or b"", value))
    return headers, at


def content_digest(key: bytes | None, value: bytes | None, timestamp: int, headers: Headers) -> int:
    """A number that tells records of different content apart. timestamp: -1 without one.

    Each part goes in behind its length, so that no two contents run into the same bytes."""
    content = blake2b(struct.pack(">qi", timestamp, len(headers)), digest_size=8)
    _add(content, key)
    _add(content, value)
    for name, header_value in headers:
        _add(content, name)
        _add(content, header_value)
    return int.from_bytes(content.digest(), "big", signed=True)


def _add(content: blake2b, part: bytes | None) -> None:
    if part is None:
        content.update(b"\xff\xff\xff\xff")
    else:
        content.update(struct.pack(">I", len(part)))
        content.update(part)
