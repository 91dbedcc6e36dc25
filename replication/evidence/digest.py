#!/usr/bin/env python3
# ruff: noqa: UP006, UP007, UP035, UP045, B905, RUF007
# This one file also runs alone under Python 3.6, which knows no newer spelling.
"""Reads one Kafka log directory beside the running broker into one small file.

    python3 digest.py /var/kafka-logs --out broker-1.digest.jsonl.gz

Copy this single file to the broker: it needs Python 3.6 or newer and nothing else, asks for idle
processor and disk priority, changes nothing in the directory and copies no record: of every record
batch only the header is kept (offsets, leader epoch, CRC, producer, sequence, times). Checkpoint
files and the controller's metadata log are kept whole. `replication-analyzer diagnose` takes the
result in place of the directory.

The result is a gzip file of JSON lines. Each segment is a gzip member of its own, so that a reader
can go straight to it and so that gzip's check sum proves each one whole. The last line says "end";
without it the file was cut. Times are milliseconds since 1970, UTC, by this machine's clock.

    python3 digest.py /var/kafka-logs --every 60 --to-stdout

prints, beside a running broker, one line for each replica whose log end, log start, leader epochs
or checkpoints have changed, and one line for the directory each time: any log shipper carries them
to the stream, and saved in a file they are evidence like a digest. What a controller adds to its
metadata log is printed in pieces.

The lower half of the file is the one parser of segments that this project has (`scan_segment`): the
reader of copied directories uses it too. Formats: `DefaultRecordBatch` and
`LegacyRecord` in Kafka's clients/.../common/record; KIP-31, KIP-32, KIP-98.
"""

import argparse
import base64
import gzip
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import time
import zlib
from typing import IO, Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple, Union

try:
    import fcntl
except ImportError:  # Not on this system.
    fcntl = None  # type: ignore[assignment]

FORMAT_NAME = "replication-analyzer-digest"
FORMAT_VERSION = 1

LOG_DIRECTORY_FILES = (
    "meta.properties",
    "replication-offset-checkpoint",
    "recovery-point-offset-checkpoint",
    "log-start-offset-checkpoint",
    "cleaner-offset-checkpoint",
    ".kafka_cleanshutdown",
)
PARTITION_FILES = ("leader-epoch-checkpoint", "partition.metadata")
CLUSTER_METADATA = "__cluster_metadata-0"
SEGMENT_NAME = re.compile(r"(\d{20})\.log")
# A cleaned segment that is to take the place of others.
SWAP_NAME = re.compile(r"(\d{20})\.log\.swap")
# A partition's directory, or one set aside: `t-0.<32 hex>-delete`. A topic's name may hold hyphens.
# The one grammar of these names: it is here because this file is copied alone.
DIRECTORY_NAME = re.compile(
    r"(?P<topic>.+)-(?P<partition>\d{1,9})(\.[0-9a-f]{32}-(?P<kind>delete|future|stray))?"
)

CLUSTER_METADATA_LIMIT = 64 << 20
SMALL_FILE_LIMIT = 16 << 20
PIECE = 1 << 20
BATCHES_PER_LINE = 1024

# What scan_segment knows of one batch, as Kafka writes it (-1 for absent), in this order.
RAW_FIELDS = (
    "base_offset",
    "end_offset",
    "leader_epoch",
    "magic",
    "crc",
    "size",
    "position",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "attributes",
    "record_count",
    "max_timestamp",
)
RawBatch = Tuple[int, int, int, int, int, int, int, int, int, int, int, int, int]
# Where in the file, and why it could not be read.
RawUnreadable = Tuple[str, str]
ReadAt = Callable[[int, int], bytes]
Decompress = Callable[[int, bytes], bytes]


# --- The parser of segments -------------------------------------------------------------------

# Base offset, length, leader epoch, magic, CRC, attributes, last offset delta, (base timestamp),
# max timestamp, producer id, producer epoch, base sequence, record count.
BATCH_HEADER = struct.Struct(">qiibIhi8xqqhii")
ENTRY_HEADER = struct.Struct(">qiIbb")
OFFSET_AND_SIZE = struct.Struct(">qi")
INT32 = struct.Struct(">i")
INT64 = struct.Struct(">q")

LOG_OVERHEAD = 12
SMALLEST_BATCH = BATCH_HEADER.size - LOG_OVERHEAD
SMALLEST_MESSAGE = {0: 14, 1: 22}
CODEC_MASK = 7
READ_AHEAD = 256 << 10
READ_SPARSELY = 4 << 10
SPARSE_BATCH = 32 << 10
LARGEST_WRAPPER = 128 << 20
LARGEST_UNPACKED = 256 << 20
GIT_LFS = b"version https://git-lfs"


def reader_of(stream):
    # type: (IO[bytes]) -> ReadAt
    """A function that reads at a position. Not a memory map: a broker that truncates the file
    under a map would end this process with SIGBUS."""

    def read_at(position, count):
        # type: (int, int) -> bytes
        stream.seek(position)
        return stream.read(count)

    return read_at


def scan_segment(
    read_at: ReadAt, size: int, decompress: Optional[Decompress] = None
) -> Iterator[Union[RawBatch, RawUnreadable]]:
    """Walks the `size` first bytes of a segment from batch to batch, reading headers only.

    Yields a tuple of RAW_FIELDS for each batch (for each message or wrapper message of the formats
    before 0.11) and a pair (where, reason) for each place that is none. A tail of zeros is a
    preallocated segment's lawful end. What cannot be stepped over ends the walk, as it ends
    the broker's own recovery. Memory: one read-ahead buffer, and one wrapper message.
    """
    unpack = BATCH_HEADER.unpack_from
    header_size = BATCH_HEADER.size
    position = 0
    start = 0
    buffer = b""
    last_size = 0
    while position < size:
        inside = position - start
        if inside + header_size > len(buffer):
            ahead = READ_SPARSELY if last_size > SPARSE_BATCH else READ_AHEAD
            buffer = read_at(position, min(ahead, size - position))
            start = position
            inside = 0
        if inside + header_size <= len(buffer):
            header = unpack(buffer, inside)
            base_offset, length, leader_epoch, magic, crc, attributes, last_offset_delta = header[
                :7
            ]
            if (
                magic == 2
                and length >= SMALLEST_BATCH
                and base_offset >= 0
                and last_offset_delta >= 0
                and header[11] >= 0
                and position + LOG_OVERHEAD + length <= size
            ):
                last_size = LOG_OVERHEAD + length
                end_offset = base_offset + last_offset_delta + 1
                # RAW_FIELDS, in one literal: this line runs once for every batch there is.
                yield (
                    base_offset,
                    end_offset,
                    leader_epoch,
                    2,
                    crc,
                    last_size,
                    position,
                    header[8],
                    header[9],
                    header[10],
                    attributes,
                    header[11],
                    header[7],
                )
                position += last_size
                continue
        head = buffer[inside : inside + header_size]
        item, last_size = _look_closer(read_at, position, size, head, decompress)
        if item is not None:
            yield item
        if not last_size:
            return
        position += last_size


def _look_closer(
    read_at: ReadAt,
    position: int,
    size: int,
    head: bytes,
    decompress: Optional[Decompress],
) -> Tuple[Union[RawBatch, RawUnreadable, None], int]:
    """What is at a position where no whole batch of format 2 does, and how far to step on
    (0 = nothing after this can be found)."""
    here = f"byte {position}"
    if not head:
        return (here, "the file became shorter while it was read"), 0
    if head.count(0) == len(head):
        other = _first_nonzero(read_at, position, size)
        if other is None:
            return None, 0
        return (here, f"zeros, and other bytes again from byte {other} on"), 0
    if position == 0 and _is_text(head):
        if head.startswith(GIT_LFS):
            return ("file", "a Git LFS pointer, not the segment it stands for"), 0
        return ("file", "text, not a segment"), 0
    if len(head) < ENTRY_HEADER.size:
        return (here, f"torn: the file ends {len(head)} bytes into a batch header"), 0
    base_offset, length, crc, magic, attributes = ENTRY_HEADER.unpack_from(head)
    if magic not in (0, 1, 2):
        if position == 0:
            return ("file", f"not a segment: unknown record format {magic}"), 0
        return (here, f"no batch here: unknown record format {magic}"), 0
    if length < (SMALLEST_BATCH if magic == 2 else SMALLEST_MESSAGE[magic]) or base_offset < 0:
        return (here, f"no batch here: offset {base_offset}, length {length}"), 0
    whole = LOG_OVERHEAD + length
    if position + whole > size:
        present = f"{size - position} are in the file"
        return (here, f"torn: a batch of {whole} bytes at offset {base_offset}, {present}"), 0
    if magic == 2:
        return (here, f"a damaged batch header at offset {base_offset}"), whole
    if attributes & CODEC_MASK:
        return _scan_wrapper(read_at, position, whole, decompress or decompress_plainly), whole
    timestamp = INT64.unpack_from(head, 18)[0] if magic == 1 else -1
    end_offset = base_offset + 1
    fixed = (base_offset, end_offset, -1, magic, crc, whole, position)
    return (*fixed, -1, -1, -1, attributes, 1, timestamp), whole


def _scan_wrapper(
    read_at: ReadAt, position: int, whole: int, decompress: Decompress
) -> Union[RawBatch, RawUnreadable]:
    """One compressed message before 0.11. Its own offset is that of the last message inside; the
    messages inside carry their offsets in format 0, and relative ones in format 1 (KIP-31)."""
    here = f"byte {position}"
    if whole > LARGEST_WRAPPER:
        return here, f"a compressed message of {whole} bytes"
    message = read_at(position, whole)
    if len(message) < whole:
        return here, "the file became shorter while it was read"
    last_offset, _, crc, magic, attributes = ENTRY_HEADER.unpack_from(message)
    timestamp = INT64.unpack_from(message, 18)[0] if magic == 1 else -1
    try:
        inner = [
            offset
            for offset, _, _ in inner_messages(
                decompress(attributes & CODEC_MASK, message_value(message))
            )
        ]
    except (ValueError, struct.error) as error:
        return here, f"a compressed message that does not unpack: {error}"
    if not inner:
        return here, "a compressed message with nothing inside"
    first_offset = inner[0] if magic == 0 else last_offset - inner[-1] + inner[0]
    if not 0 <= first_offset <= last_offset:
        return here, f"a compressed message whose inner offsets begin at {first_offset}"
    fixed = (first_offset, last_offset + 1, -1, magic, crc, whole, position)
    return (*fixed, -1, -1, -1, attributes, len(inner), timestamp)


def message_value(message: bytes) -> bytes:
    """The value of one message in format 0 or 1, given from its offset field on."""
    at = 26 if message[16] == 1 else 18
    key_size = INT32.unpack_from(message, at)[0]
    at += 4 + max(key_size, 0)
    value_size = INT32.unpack_from(message, at)[0]
    at += 4
    if value_size < 0 or at + value_size > len(message):
        raise ValueError(f"its value has {value_size} bytes")
    return message[at : at + value_size]


def inner_messages(message_set: bytes) -> Iterator[Tuple[int, int, int]]:
    """(offset as written, position, size) of each message of a decompressed message set."""
    position = 0
    while position < len(message_set):
        offset, length = OFFSET_AND_SIZE.unpack_from(message_set, position)
        whole = LOG_OVERHEAD + length
        if length < SMALLEST_MESSAGE[0] or position + whole > len(message_set):
            raise ValueError(f"an inner message of {length} bytes at byte {position}")
        yield offset, position, whole
        position += whole


def _first_nonzero(read_at: ReadAt, position: int, size: int) -> Optional[int]:
    while position < size:
        chunk = read_at(position, min(READ_AHEAD, size - position))
        if not chunk:
            return None
        if chunk.count(0) != len(chunk):
            return position + len(chunk) - len(chunk.lstrip(b"\0"))
        position += len(chunk)
    return None


def _is_text(head: bytes) -> bool:
    return all(byte >= 32 or byte in (9, 10, 13) for byte in head)


# --- Codecs of the old formats, in plain Python because a broker has no other --------------------


def decompress_plainly(codec: int, packed: bytes) -> bytes:
    """gzip, snappy and lz4. Raises ValueError for what cannot be unpacked. zstd (KIP-110) exists
    only with format 2, whose headers tell everything without unpacking."""
    try:
        if codec == 1:
            return gunzip(packed)
        if codec == 2:
            return _unsnap_framed(packed)
        if codec == 3:
            return _unpack_lz4_frame(packed)
    except IndexError:
        raise ValueError("its data is cut short") from None
    raise ValueError(f"unknown compression {codec}")


def gunzip(packed: bytes) -> bytes:
    """Unpacks one gzip stream of bounded size; raises ValueError."""
    unpacker = zlib.decompressobj(31)
    try:
        unpacked = unpacker.decompress(packed, LARGEST_UNPACKED)
    except zlib.error as error:
        raise ValueError(str(error)) from None
    if not unpacker.eof:
        raise ValueError("its gzip data is cut short, or unpacks to more than 256 MB")
    return unpacked


def snappy_blocks(packed: bytes) -> List[bytes]:
    """The raw snappy blocks of a Kafka value: snappy-java's frame around them, or a single one."""
    if packed[:8] != b"\x82SNAPPY\0":
        return [packed]
    blocks = []
    at = 16
    while at < len(packed):
        size = int.from_bytes(packed[at : at + 4], "big", signed=True)
        at += 4
        if size < 0 or at + size > len(packed):
            raise ValueError(f"a snappy block of {size} bytes")
        blocks.append(packed[at : at + size])
        at += size
    return blocks


def _unsnap_framed(packed: bytes) -> bytes:
    return b"".join(_unsnap(block) for block in snappy_blocks(packed))


def _unsnap(block: bytes) -> bytes:
    """One raw snappy block: a length, then literals and copies of what came before."""
    size, at = _unsigned_varint(block)
    if size > LARGEST_UNPACKED:
        raise ValueError(f"a snappy block of {size} bytes")
    unpacked = bytearray()
    while at < len(block):
        tag = block[at]
        at += 1
        kind = tag & 3
        if kind == 0:
            length = (tag >> 2) + 1
            if length > 60:
                extra = length - 60
                length = int.from_bytes(block[at : at + extra], "little") + 1
                at += extra
            unpacked += block[at : at + length]
            at += length
            continue
        if kind == 1:
            length = ((tag >> 2) & 7) + 4
            distance = ((tag >> 5) << 8) | block[at]
            at += 1
        else:
            length = (tag >> 2) + 1
            extra = 2 if kind == 2 else 4
            distance = int.from_bytes(block[at : at + extra], "little")
            at += extra
        _copy_back(unpacked, distance, length)
        if len(unpacked) > size:
            break
    if len(unpacked) != size:
        raise ValueError(f"a snappy block of {size} bytes unpacks to {len(unpacked)}")
    return bytes(unpacked)


def _unsigned_varint(data: bytes) -> Tuple[int, int]:
    value = 0
    for at in range(5):
        value |= (data[at] & 0x7F) << (7 * at)
        if data[at] < 0x80:
            return value, at + 1
    raise ValueError("a length of more than five bytes")


def _copy_back(unpacked: bytearray, distance: int, length: int) -> None:
    begin = len(unpacked) - distance
    if distance == 0 or begin < 0:
        raise ValueError(f"a copy from {distance} bytes before {len(unpacked)}")
    if distance >= length:
        unpacked += unpacked[begin : begin + length]
    else:
        pattern = bytes(unpacked[begin:])
        unpacked += (pattern * (length // distance + 1))[:length]


def _unpack_lz4_frame(packed: bytes) -> bytes:
    """One LZ4 frame. Check sums are not looked at: Kafka wrote wrong ones in format 0
    (KAFKA-3160), and the message has its own CRC."""
    if packed[:4] != b"\x04\x22\x4d\x18":
        raise ValueError("no LZ4 frame")
    flags = packed[4]
    at = 7 + (8 if flags & 0x08 else 0) + (4 if flags & 0x01 else 0)
    block_tail = 4 if flags & 0x10 else 0
    unpacked = bytearray()
    while True:
        size = int.from_bytes(packed[at : at + 4], "little")
        if at + 4 > len(packed):
            raise ValueError("its LZ4 frame is cut short")
        at += 4
        if size == 0:
            return bytes(unpacked)
        plain = bool(size & 0x80000000)
        size &= 0x7FFFFFFF
        if at + size > len(packed):
            raise ValueError(f"an LZ4 block of {size} bytes")
        if plain:
            unpacked += packed[at : at + size]
        else:
            _unpack_lz4_block(packed[at : at + size], unpacked)
        at += size + block_tail
        if len(unpacked) > LARGEST_UNPACKED:
            raise ValueError("it unpacks to more than 256 MB")


def _unpack_lz4_block(block: bytes, unpacked: bytearray) -> None:
    at = 0
    while at < len(block):
        token = block[at]
        length, at = _lz4_length(block, token >> 4, at + 1)
        if at + length > len(block):
            raise ValueError(f"a literal of {length} bytes")
        unpacked += block[at : at + length]
        at += length
        if at >= len(block):
            return
        distance = block[at] | (block[at + 1] << 8)
        length, at = _lz4_length(block, token & 15, at + 2)
        if len(unpacked) + length > LARGEST_UNPACKED:
            raise ValueError("it unpacks to more than 256 MB")
        _copy_back(unpacked, distance, length + 4)


def _lz4_length(block: bytes, nibble: int, at: int) -> Tuple[int, int]:
    length = nibble
    if nibble == 15:
        while True:
            byte = block[at]
            at += 1
            length += byte
            if byte != 255:
                break
    return length, at


# --- Batches as columns: most of them hold one value, or small steps ------------------------------


def pack_batches(rows: Sequence[RawBatch]) -> Dict[str, Any]:
    """Neighbouring batches of one segment as columns that compress well; `unpack_batches` is the
    way back. Positions follow from the first one and the sizes."""
    columns = dict(zip(RAW_FIELDS, zip(*rows)))
    ends = columns["end_offset"]
    starts = columns["base_offset"]
    return {
        "count": len(rows),
        "position": rows[0][6],
        "first_offset": starts[0],
        "gap": _pack([0] + [start - end for start, end in zip(starts[1:], ends)]),
        "offsets": _pack([end - start for start, end in zip(starts, ends)]),
        "leader_epoch": _pack(columns["leader_epoch"]),
        "magic": _pack(columns["magic"]),
        "crc": base64.b64encode(struct.pack(f">{len(rows)}I", *columns["crc"])).decode("ascii"),
        "size": _pack(columns["size"]),
        "producer_id": _pack(columns["producer_id"]),
        "producer_epoch": _pack(columns["producer_epoch"]),
        "base_sequence": _pack(columns["base_sequence"]),
        "attributes": _pack(columns["attributes"]),
        "record_count": _pack(columns["record_count"]),
        "max_timestamp": _pack(columns["max_timestamp"]),
    }


def unpack_batches(columns: Dict[str, Any]) -> Iterator[RawBatch]:
    """The batches that `pack_batches` was given. Raises ValueError, KeyError or TypeError when
    the columns are not of its making."""
    count = columns["count"]
    packed_crcs = base64.b64decode(columns["crc"])
    if count * 4 != len(packed_crcs):
        raise ValueError(f"{len(packed_crcs)} bytes of CRC for {count} batches")
    crcs = struct.unpack(f">{count}I", packed_crcs)
    rest = [
        _unpack(columns[name], count)
        for name in (
            "gap",
            "offsets",
            "leader_epoch",
            "magic",
            "size",
            "producer_id",
            "producer_epoch",
            "base_sequence",
            "attributes",
            "record_count",
            "max_timestamp",
        )
    ]
    position = columns["position"]
    base_offset = columns["first_offset"]
    for crc, row in zip(crcs, zip(*rest)):
        gap, offsets, leader_epoch, magic, size = row[:5]
        base_offset += gap
        end_offset = base_offset + offsets
        fixed = (base_offset, end_offset, leader_epoch, magic, crc, size, position)
        yield (*fixed, *row[5:])
        base_offset = end_offset
        position += size


def _pack(values: Sequence[int]) -> Union[int, List[int]]:
    first = values[0]
    if values.count(first) == len(values):
        return first
    return [first] + [value - before for before, value in zip(values, values[1:])]


def _unpack(column: Union[int, List[int]], count: int) -> List[int]:
    if isinstance(column, int):
        return [column] * count
    if len(column) != count:
        raise ValueError(f"a column of {len(column)} values for {count} batches")
    value = 0
    values = []
    for step in column:
        value += step
        values.append(value)
    return values


# --- The digest -------------------------------------------------------------------------------


class DigestFile:
    """Writes lines of JSON into gzip members; `new_member` begins the next one."""

    def __init__(self, stream):
        # type: (IO[bytes]) -> None
        self._stream = stream
        self._member = None  # type: Optional[gzip.GzipFile]
        self.batches = 0
        self.failures = 0

    def line(self, **content: Any) -> None:
        if self._member is None:
            self._member = gzip.GzipFile(filename="", mode="wb", fileobj=self._stream, mtime=0)
        text = json.dumps(content, separators=(",", ":"), sort_keys=True)
        self._member.write(text.encode("ascii") + b"\n")

    def failed(self, name: str, error: OSError) -> None:
        """A file that could not be read: brokers delete and rename beside us."""
        self.failures += 1
        self.line(failed=name, reason=error.strerror or str(error))

    def new_member(self) -> None:
        if self._member is not None:
            self._member.close()
            self._member = None


def write_digest(directory: str, stream: IO[bytes]) -> DigestFile:
    """Writes the digest of one log directory. Raises OSError when the directory itself cannot be
    listed or the output cannot be written; single files that cannot be read are noted inside.

    The log directory's checkpoint files are read before the segments they speak of, so that on a
    running broker a log can only have grown since its high watermark was noted."""
    names = sorted(os.listdir(directory))
    out = DigestFile(stream)
    out.line(digest=FORMAT_NAME, format_version=FORMAT_VERSION, started_ms=_now())
    for name in LOG_DIRECTORY_FILES:
        if name in names:
            _write_small_file(out, directory, name)
    if CLUSTER_METADATA in names:
        _write_cluster_metadata(out, directory)
    out.new_member()
    for name in names:
        if name != CLUSTER_METADATA and is_partition_directory(os.path.join(directory, name)):
            _write_partition(out, directory, name)
    out.new_member()
    out.line(end=True, finished_ms=_now(), batch_count=out.batches, failures=out.failures)
    out.new_member()
    return out


def is_partition_directory(path: str) -> bool:
    """Named like a partition's directory, and holding what only such a directory holds."""
    if not DIRECTORY_NAME.fullmatch(os.path.basename(path)):
        return False
    try:
        names = os.listdir(path)
    except OSError:
        return False
    return any(name in PARTITION_FILES or SEGMENT_NAME.fullmatch(name) for name in names)


def _write_partition(out: DigestFile, directory: str, partition: str) -> None:
    out.new_member()
    try:
        names = sorted(os.listdir(os.path.join(directory, partition)))
    except OSError as error:
        out.failed(partition, error)
        return
    out.line(partition_directory=partition, names=names)
    for name in PARTITION_FILES:
        if name in names:
            _write_small_file(out, directory, partition + "/" + name)
    # What takes a segment's place comes before it: a digest that is cut has it then.
    for name in sorted(names, key=lambda name: (name[:20], not SWAP_NAME.fullmatch(name))):
        if SEGMENT_NAME.fullmatch(name) or SWAP_NAME.fullmatch(name):
            out.new_member()
            _write_segment(out, directory, partition + "/" + name)


def _write_segment(out: DigestFile, directory: str, name: str) -> None:
    """One segment up to the size it has now; what the broker appends meanwhile is not in it."""
    started = _now()
    out.line(segment=name)
    rows = []  # type: List[RawBatch]
    try:
        with open(os.path.join(directory, name), "rb", buffering=0) as stream:
            size = os.fstat(stream.fileno()).st_size
            for item in scan_segment(reader_of(stream), size):
                if len(item) == 2:
                    _write_batches(out, rows)
                    out.line(unreadable=item)
                    continue
                rows.append(item)
                if len(rows) == BATCHES_PER_LINE:
                    _write_batches(out, rows)
    except OSError as error:
        out.failed(name, error)
    _write_batches(out, rows)
    out.line(segment_end=name, captured_ms=[started, _now()])


def _write_batches(out: DigestFile, rows: List[RawBatch]) -> None:
    """Writes and forgets the batches collected so far. A batch that was stepped over lies between
    two lines, never within one: positions are counted from the first."""
    if rows:
        out.batches += len(rows)
        out.line(batches=pack_batches(rows))
        del rows[:]


def _write_small_file(out: DigestFile, directory: str, name: str) -> None:
    started = _now()
    try:
        with open(os.path.join(directory, name), "rb") as stream:
            content = stream.read(SMALL_FILE_LIMIT)
    except OSError as error:
        out.failed(name, error)
        return
    packed = base64.b64encode(content).decode("ascii")
    try:
        text = content.decode("ascii")
        out.line(file=name, text=text, captured_ms=[started, _now()])
    except UnicodeDecodeError:
        out.line(file=name, base64=packed, captured_ms=[started, _now()])


def _write_cluster_metadata(out: DigestFile, directory: str) -> None:
    """The controller's log and snapshots, whole: newest first, as many as the limit allows."""
    room = CLUSTER_METADATA_LIMIT
    sizes = []
    for name in sorted(os.listdir(os.path.join(directory, CLUSTER_METADATA))):
        if name.endswith((".log", ".checkpoint")) or name in (*PARTITION_FILES, "quorum-state"):
            path = CLUSTER_METADATA + "/" + name
            sizes.append((name[:1].isdigit(), name, path))
    left_out = []  # type: List[str]
    for _, _, path in sorted(sizes, reverse=True):
        try:
            size = os.path.getsize(os.path.join(directory, path))
            if left_out or size > room:
                left_out.append(path)
                continue
            room -= size
            _write_whole_file(out, directory, path, size)
        except OSError as error:
            out.failed(path, error)
    if left_out:
        limit = f"more than {CLUSTER_METADATA_LIMIT >> 20} MB of cluster metadata"
        out.line(note=f"{limit}; left out, oldest first to go: {', '.join(left_out)}")


def _write_whole_file(out: DigestFile, directory: str, name: str, size: int) -> None:
    started = _now()
    with open(os.path.join(directory, name), "rb") as stream:
        at = 0
        while at < size or at == 0:
            piece = stream.read(min(PIECE, size - at))
            if not piece and at:
                break
            packed = base64.b64encode(piece).decode("ascii")
            out.line(piece_of=name, at=at, base64=packed, captured_ms=[started, _now()])
            if not piece:
                break
            at += len(piece)


def _now() -> int:
    return int(time.time() * 1000)


# --- The digest as lines, beside a running broker -----------------------------------------------

LINES_NAME = "replication_digest"
LINES_VERSION = 1
# Shippers cut long lines, some of them at 8 KB.
PIECE_OF_LINE = 4096
MOST_EPOCHS = 150
# A line that a shipper lost is told again after so many rounds; of the metadata log, after more.
# A log's ends of so long, and so many at most, are told with its newest one.
GROWN_WITHIN_MS = 3000
MOST_GROWN = 6
ROUNDS_UNTIL_ALL = 60
ROUNDS_UNTIL_ALL_METADATA = 1440


class DigestLines:
    """What one log directory holds, as lines of JSON: at first all, then what has changed.

    `tell` makes one round. A line is {"replication_digest": 1, "n": .., "started": .., "at": ..,
    "every": .., "directory": .., "what": ..}: n counts this process's lines, started and at are
    milliseconds. what: directory (meta.properties, each round: this process lives), partition,
    gone (no longer there; emptied: no broker took it away), error, metadata (bytes of a file of
    the metadata log), metadata_files.
    broker_runs, of a directory: whether a broker holds its lock; null where that is not known.
    down_since: when the first of the rounds was that saw nobody hold it, one after the other.
    """

    def __init__(self, directory, every, write):
        # type: (str, float, Callable[[str], None]) -> None
        self._directory = directory
        self._every = every
        self._write = write
        self._started = _now()
        self._lines = 0
        self._rounds = 0
        self._told = {}  # type: Dict[Tuple[str, str], str]
        self._ends = {}  # type: Dict[str, Tuple[str, int, int, int]]
        self._marked = 0.0
        self._copied = {}  # type: Dict[str, int]
        self._was_locked = False
        self._down_since = None  # type: Optional[int]
        self._grown = {}  # type: Dict[str, Tuple[List[List[int]], List[List[int]]]]

    def tell(self) -> None:
        """One round. The checkpoint files are read first: of a running broker a log can only have
        grown since its high watermark was noted, if it was not cut."""
        topic_ids = {
            name: json.loads(text)["topic_id"]
            for (what, name), text in self._told.items()
            if what == "partition"
        }
        if self._rounds % ROUNDS_UNTIL_ALL == 0:
            self._told.clear()
        if self._rounds % ROUNDS_UNTIL_ALL_METADATA == 0:
            self._copied.clear()
        self._rounds += 1
        try:
            names = sorted(os.listdir(self._directory))
        except OSError as error:
            self._failed("", error)
            return
        self._told.pop(("error", ""), None)
        properties = self._text("meta.properties") if "meta.properties" in names else None
        # A broker marks a clean stop before it lets go of the lock, and deletes the marker while it
        # holds the lock.
        before = self._broker_runs()
        has_clean = os.path.exists(os.path.join(self._directory, ".kafka_cleanshutdown"))
        clean = self._text(".kafka_cleanshutdown") if has_clean else None
        after = self._broker_runs()
        runs = before if before == after else None
        self._down_since = (self._down_since or _now()) if runs is False else None
        self._marked = self._written("replication-offset-checkpoint")
        checkpoints = [
            self._offsets(name) if name in names else {} for name in LOG_DIRECTORY_FILES[1:4]
        ]
        partitions = [
            name
            for name in names
            if name != CLUSTER_METADATA
            and is_partition_directory(os.path.join(self._directory, name))
        ]
        for name in partitions:
            self._partition(name, checkpoints)
        # A broker leaves its lock's file where it is, whoever holds it: somebody took that away.
        emptied = runs is False or ".lock" not in names
        for name in sorted(set(topic_ids) - set(partitions)):
            self._told.pop(("partition", name), None)
            self._ends.pop(name, None)
            self._grown.pop(name, None)
            self._line("gone", name=name, topic_id=topic_ids[name], emptied=emptied)
        if CLUSTER_METADATA in names:
            self._metadata()
        # Last, so that whoever has read it has read what this round found.
        self._line(
            "directory",
            meta=properties,
            clean_shutdown=clean,
            broker_runs=runs,
            down_since=self._down_since,
            partitions=len(partitions),
        )

    def _broker_runs(self) -> Optional[bool]:
        """Whether a broker holds the directory's lock; no longer only where it was seen to."""
        held = is_locked(os.path.join(self._directory, ".lock"))
        self._was_locked = self._was_locked or held is True
        return held if self._was_locked else None

    def _line(self, what: str, **content: Any) -> None:
        self._lines += 1
        line = {
            LINES_NAME: LINES_VERSION,
            "n": self._lines,
            "started": self._started,
            "at": _now(),
            "every": self._every,
            "directory": self._directory,
            "what": what,
        }
        line.update(content)
        self._write(json.dumps(line, separators=(",", ":")))

    def _changed(
        self, what: str, name: str, beside: Optional[Dict[str, Any]] = None, **content: Any
    ) -> None:
        """A line, if it says something else than the last one of its kind and name. beside: what
        the line says as well, and is no reason for one."""
        text = json.dumps(content, sort_keys=True)
        if self._told.get((what, name)) != text:
            self._told[what, name] = text
            self._line(what, name=name, **content, **(beside or {}))

    def _failed(self, name: str, error: OSError) -> None:
        self._changed("error", name, reason=error.strerror or str(error))

    def _text(self, name: str) -> Optional[str]:
        try:
            with open(os.path.join(self._directory, name), "rb") as stream:
                return stream.read(SMALL_FILE_LIMIT).decode("utf-8", "replace")
        except OSError as error:
            self._failed(name, error)
            return None

    def _written(self, name: str) -> float:
        """When a file was written the last time, in seconds; 0 where it is not there."""
        try:
            return os.stat(os.path.join(self._directory, name)).st_mtime
        except OSError:
            return 0.0

    def _offsets(self, name: str) -> Dict[str, int]:
        """An offset checkpoint file by the names of partitions' directories."""
        rows = [line.split() for line in (self._text(name) or "").splitlines()[2:]]
        return {
            row[0] + "-" + row[1]: int(row[2]) for row in rows if len(row) == 3 and row[2].isdigit()
        }

    def _partition(self, name: str, checkpoints: List[Dict[str, int]]) -> None:
        folder = os.path.join(self._directory, name)
        try:
            files = sorted(os.listdir(folder))
            segments = [file for file in files if SEGMENT_NAME.fullmatch(file)]
            if not segments:
                return
            epochs = self._pairs(name + "/leader-epoch-checkpoint", files)
            end, last = self._log_end(name, segments[-1], repr(epochs))
            settled = self._is_settled(os.path.join(folder, "leader-epoch-checkpoint"))
        except OSError as error:
            self._failed(name, error)
            return
        self._told.pop(("error", name), None)
        if last >= 0 and _epoch_at(epochs or [], end - 1) not in (None, last):
            # The leader epochs were read before a change, the log's end after it: next time.
            self._ends.pop(name, None)
            return
        grown = self._grown_until(name, epochs or [], end)
        high_watermark, recovery_point, log_start = [c.get(name) for c in checkpoints]
        self._changed(
            "partition",
            name,
            topic_id=self._topic_id(name + "/partition.metadata", files),
            log_start_offset=max(int(segments[0][:20]), log_start or 0),
            log_end_offset=end,
            leader_epochs=None if epochs is None else epochs[-MOST_EPOCHS:],
            high_watermark=high_watermark if settled else None,
            recovery_point=recovery_point,
            beside={"grown": grown},
        )

    def _grown_until(self, name: str, epochs: List[List[int]], end: int) -> List[List[int]]:
        """Since when the log has ended here, and, of the last seconds, where it had ended before:
        [milliseconds, log end], as long as nothing of that was cut."""
        known, seen = self._grown.get(name, ([], []))
        before = seen[-1][1] if seen else 0
        if end < before or _starting_below(known, before) != _starting_below(epochs, before):
            seen = []
        now = _now()
        if not seen or seen[-1][1] != end:
            seen = [*seen, [now, end]]
        settled = [n for n, (at, _) in enumerate(seen) if at <= now - GROWN_WITHIN_MS]
        seen = seen[settled[-1] if settled else 0 :][-MOST_GROWN:]
        self._grown[name] = (epochs, seen)
        return seen

    def _is_settled(self, epochs: str) -> bool:
        """Whether the high watermarks were written after the log was cut the last time.

        A cut is followed by records of a new leader epoch, which its file tells first; a high
        watermark from before says nothing of them.
        """
        if os.path.exists(os.path.join(self._directory, ".kafka_cleanshutdown")):
            return True  # Written last of all, by a broker that has stopped since.
        return not os.path.exists(epochs) or os.stat(epochs).st_mtime + 1 < self._marked

    def _log_end(self, name: str, newest: str, epochs: str) -> Tuple[int, int]:
        """Where the newest segment ends and its last leader epoch (-1: unknown), read on from where
        it ended the last time.

        From its begin where the log may have been cut since: a cut comes with a new leader epoch.
        """
        known, position, end, last = self._ends.get(name, ("", 0, 0, -1))
        with open(os.path.join(self._directory, name, newest), "rb", buffering=0) as stream:
            size = os.fstat(stream.fileno()).st_size
            read_at = reader_of(stream)
            fresh = (0, int(newest[:20]), -1)
            if known != newest + epochs or size < position:
                position, end, last = fresh
            reached = _walked(read_at, size, (position, end, last))
            if reached is None:
                reached = _walked(read_at, size, fresh) or fresh
        self._ends[name] = (newest + epochs, *reached)
        return reached[1], reached[2]

    def _pairs(self, name: str, files: List[str]) -> Optional[List[List[int]]]:
        if os.path.basename(name) not in files:
            return None
        rows = [line.split() for line in (self._text(name) or "").splitlines()[2:]]
        return [[int(a) for a in row] for row in rows if len(row) == 2 and "".join(row).isdigit()]

    def _topic_id(self, name: str, files: List[str]) -> Optional[str]:
        if os.path.basename(name) not in files:
            return None
        for line in (self._text(name) or "").splitlines():
            if line.startswith("topic_id:"):
                return line.partition(":")[2].strip()
        return None

    def _metadata(self) -> None:
        """What was added to the files of the controllers' log since the last round."""
        folder = os.path.join(self._directory, CLUSTER_METADATA)
        try:
            names = [
                name
                for name in sorted(os.listdir(folder))
                if name.endswith((".log", ".checkpoint"))
                or name in (*PARTITION_FILES, "quorum-state")
            ]
            for name in names:
                self._file_of_metadata(folder, name)
        except OSError as error:
            self._failed(CLUSTER_METADATA, error)
            return
        self._changed("metadata_files", CLUSTER_METADATA, names=names)

    def _file_of_metadata(self, folder: str, name: str) -> None:
        grows = name.endswith(".log")
        with open(os.path.join(folder, name), "rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            at = self._copied.get(name, 0) if grows else 0
            at = at if at <= size else 0
            content = b""
            if not grows:
                content = stream.read(SMALL_FILE_LIMIT)
                size = len(content)
                if self._told.get(("file", name)) == repr(zlib.crc32(content)):
                    return
                self._told["file", name] = repr(zlib.crc32(content))
            stream.seek(at)
            while at < size or size == 0:
                piece = stream.read(min(PIECE_OF_LINE, size - at))
                packed = base64.b64encode(piece).decode("ascii")
                self._line("metadata", name=name, at_byte=at, size=size, base64=packed)
                if not piece:
                    break
                at += len(piece)
        self._copied[name] = at


def _starting_below(epochs: List[List[int]], end: int) -> List[List[int]]:
    return [entry for entry in epochs if entry[1] < end]


def is_locked(path: str) -> Optional[bool]:
    """Whether another process has locked the file, as a broker does with `.lock`: asked without
    locking it. None where the file or this system cannot tell."""
    if fcntl is None or not sys.platform.startswith("linux") or struct.calcsize("P") != 8:
        return None
    try:
        with open(path, "rb") as stream:
            asked = struct.pack("@hhqqi0q", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
            told = fcntl.fcntl(stream.fileno(), fcntl.F_GETLK, asked)
    except OSError:
        return None
    return bool(struct.unpack("@hhqqi0q", told)[0] != fcntl.F_UNLCK)


def _walked(
    read_at: ReadAt, size: int, known: Tuple[int, int, int]
) -> Optional[Tuple[int, int, int]]:
    """(position, log end, leader epoch) behind the last whole batch, from such a place on; None
    where the bytes there do not go on from it."""
    begin, end, last = known
    position = begin
    for item in scan_segment(lambda at, count: read_at(begin + at, count), size - begin):
        if len(item) == 2 or item[0] < end:
            torn = len(item) == 2 and item[1].startswith("torn")
            return (position, end, last) if torn or position > begin or begin == 0 else None
        end, last = item[1], item[2]
        position = begin + item[6] + item[5]
    return position, end, last


def _epoch_at(epochs: Sequence[Sequence[int]], offset: int) -> Optional[int]:
    """The leader epoch of an offset by an epoch cache."""
    found = None
    for leader_epoch, first in epochs:
        if first <= offset:
            found = leader_epoch
    return found


def print_lines(directory: str, every: float, write: Callable[[str], None]) -> int:
    """Rounds of lines until this process is told to stop; the exit status."""
    ended = []  # type: List[int]
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, _: ended.append(received))
    lines = DigestLines(directory, every, write)
    while not ended:
        due = time.time() + every
        try:
            lines.tell()
        except BrokenPipeError:
            return 0
        while not ended and time.time() < due:
            time.sleep(min(0.2, every))
    return 0


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def take_lowest_priority() -> None:
    """Idle processor and disk priority, as far as this system has them."""
    if hasattr(os, "nice"):
        try:
            os.nice(19)
        except OSError:
            print("digest: could not lower the processor priority", file=sys.stderr)
    ionice = shutil.which("ionice")
    if ionice is not None:
        subprocess.call([ionice, "-c", "3", "-p", str(os.getpid())], stderr=subprocess.DEVNULL)


def main(arguments: Optional[List[str]] = None) -> int:
    parser = argparse.ArgumentParser(
        prog="digest.py",
        allow_abbrev=False,
        description="Reads a Kafka log directory into one small file for replication-analyzer.",
    )
    parser.add_argument("directory", help="one directory of log.dirs; run once for each")
    parser.add_argument("--out", help="file to write, such as broker-1.jsonl.gz; -: print it")
    parser.add_argument("--every", type=float, metavar="SECONDS", help="go on, with --to-stdout")
    parser.add_argument(
        "--to-stdout", action="store_true", help="print lines of what has changed, for a shipper"
    )
    options = parser.parse_args(arguments)
    if options.to_stdout == bool(options.out) or bool(options.every) != options.to_stdout:
        parser.error("either --out FILE, or --every SECONDS --to-stdout")
    if options.every is not None and options.every <= 0:
        parser.error("--every must be above 0")
    directory = os.path.realpath(options.directory)
    if options.to_stdout:
        take_lowest_priority()
        return print_lines(directory, options.every, _print)
    target = os.path.realpath(options.out)
    if options.out != "-" and target.startswith(directory + os.sep):
        print("digest: --out must not lie inside the log directory", file=sys.stderr)
        return 2
    if not os.path.isdir(directory):
        print(f"digest: {options.directory} is no directory", file=sys.stderr)
        return 2
    take_lowest_priority()
    unfinished = target + ".unfinished"
    try:
        if options.out == "-":
            out = write_digest(directory, sys.stdout.buffer)
            sys.stdout.flush()
        else:
            with open(unfinished, "wb") as stream:
                out = write_digest(directory, stream)
            os.replace(unfinished, target)
    except OSError as error:
        print(f"digest: {error}", file=sys.stderr)
        return 2
    size = "" if options.out == "-" else f", {os.path.getsize(target)} bytes in {options.out}"
    print(f"digest: {out.batches} record batches{size}", file=sys.stderr)
    if out.failures:
        text = "files could not be read; they are named in the digest"
        print(f"digest: {out.failures} {text}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
