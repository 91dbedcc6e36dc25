"""Segments in all record formats, whole, torn and damaged; never an exception, never endless."""

import struct
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatchBuilder
from kafka.record.legacy_records import LegacyRecordBatchBuilder

from replication.evidence.digest import READ_AHEAD
from replication.evidence.log_directories.segments import RecordBatch, read_batches
from replication.evidence.unreadable import Unreadable
from tests.evidence.segment_bytes import (
    CONTROL,
    CREATED,
    GZIP,
    LOG_APPEND_TIME,
    LZ4,
    SNAPPY,
    TRANSACTIONAL,
    ZSTD,
    Record,
    batch,
    message,
    wrapper,
)

SEGMENT = "0" * 20 + ".log"


@pytest.fixture
def segment(tmp_path: Path) -> Path:
    return tmp_path / SEGMENT


def read(path: Path, content: bytes, *, verify_crc: bool = True) -> list[RecordBatch | Unreadable]:
    path.write_bytes(content)
    return list(read_batches(path, verify_crc=verify_crc))


def offsets(items: list[RecordBatch | Unreadable]) -> list[tuple[int, int]]:
    """Base and end offset of what was read; fails on what was not."""
    for item in items:
        assert isinstance(item, RecordBatch), item
    return [(item.base_offset, item.end_offset) for item in items if isinstance(item, RecordBatch)]


def test_every_field_of_a_batch(segment: Path) -> None:
    records = [Record(timestamp=CREATED + 5), Record(), Record()]
    first = batch(7, *records, leader_epoch=3, producer=(4711, 2, 40))
    second = batch(10, Record(), flags=TRANSACTIONAL | CONTROL, leader_epoch=-1, codec=ZSTD)
    items = read(segment, first + second)
    assert items[0] == RecordBatch(
        base_offset=7,
        end_offset=10,
        leader_epoch=3,
        magic=2,
        crc=struct.unpack_from(">I", first, 17)[0],
        size=len(first),
        position=0,
        producer_id=4711,
        producer_epoch=2,
        base_sequence=40,
        is_control=False,
        is_transactional=False,
        record_count=3,
        max_timestamp=CREATED + 5,
        codec=0,
    )
    assert isinstance(items[1], RecordBatch)
    assert items[1][:3] == (10, 11, None)
    assert items[1][6:] == (len(first), None, None, None, True, True, 1, CREATED, ZSTD, False)


@pytest.mark.parametrize("magic", [0, 1])
def test_every_field_of_an_old_message(segment: Path, magic: int) -> None:
    written = message(5, Record(key=b"k"), magic=magic)
    (item,) = read(segment, written)
    assert item == RecordBatch(
        base_offset=5,
        end_offset=6,
        leader_epoch=None,
        magic=magic,
        crc=struct.unpack_from(">I", written, 12)[0],
        size=len(written),
        position=0,
        producer_id=None,
        producer_epoch=None,
        base_sequence=None,
        is_control=False,
        is_transactional=False,
        record_count=1,
        max_timestamp=CREATED if magic else None,
        codec=0,
    )


@pytest.mark.parametrize("raw_snappy", [False, True])
@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4])
def test_a_wrapper_begins_at_its_first_inner_offset(
    segment: Path, codec: int, raw_snappy: bool
) -> None:
    absolute = [message(offset, magic=0) for offset in (10, 11, 12)]
    relative = [message(offset, magic=1) for offset in (0, 1, 2, 3)]
    old = wrapper(12, *absolute, magic=0, codec=codec, raw_snappy=raw_snappy)
    new = wrapper(16, *relative, magic=1, codec=codec, raw_snappy=raw_snappy)
    items = read(segment, old + new)
    assert offsets(items) == [(10, 13), (13, 17)]
    assert [item.record_count for item in items if isinstance(item, RecordBatch)] == [3, 4]


def test_a_compacted_wrapper_keeps_its_first_offset(segment: Path) -> None:
    """The cleaner leaves out inner messages and keeps the relative offsets of the others."""
    inner = [message(offset, magic=1) for offset in (2, 5)]
    assert offsets(read(segment, wrapper(25, *inner))) == [(22, 26)]


def test_the_wrong_frame_check_sum_of_old_lz4(segment: Path) -> None:
    written = bytearray(wrapper(4, message(3, magic=0), message(4, magic=0), magic=0, codec=LZ4))
    frame = bytes(written).index(b"\x04\x22\x4d\x18")
    written[frame + 6] ^= 0xFF
    assert offsets(read(segment, bytes(written), verify_crc=False)) == [(3, 5)]


@pytest.mark.parametrize(("magic", "codec"), [(0, 0), (0, GZIP), (1, 0), (1, GZIP), (1, LZ4)])
def test_what_kafka_python_writes_in_the_old_formats(segment: Path, magic: int, codec: int) -> None:
    builder = LegacyRecordBatchBuilder(magic, codec, 1 << 20)
    for offset in range(30):
        builder.append(offset, CREATED, b"key", b"value %d" % offset)
    content = bytes(builder.build())
    if codec:
        # A producer sends wrappers with offset 0; the broker writes the last inner one over it.
        content = struct.pack(">q", 29) + content[8:]
    expected = [(0, 30)] if codec else [(offset, offset + 1) for offset in range(30)]
    assert offsets(read(segment, content)) == expected


@pytest.mark.parametrize("codec", [0, GZIP, LZ4, ZSTD])
def test_what_kafka_python_writes_in_format_2(segment: Path, codec: int) -> None:
    builder = DefaultRecordBatchBuilder(2, codec, True, 9, 1, 100, 1 << 20)
    for offset in range(30):
        builder.append(offset, CREATED + offset, b"key", b"value %d" % offset, [])
    (item,) = read(segment, bytes(builder.build()))
    assert isinstance(item, RecordBatch)
    assert item[:2] == (0, 30)
    assert item[7:] == (9, 1, 100, False, True, 30, CREATED + 29, codec, False)


def test_mixed_formats_after_an_upgrade(segment: Path) -> None:
    content = message(0, magic=0) + wrapper(2, message(0), message(1)) + batch(3) + message(4)
    assert offsets(read(segment, content)) == [(0, 1), (1, 3), (3, 4), (4, 5)]


@pytest.mark.parametrize("zeros", [1, 11, 17, 60, 61, 300, READ_AHEAD + 5])
def test_a_tail_of_zeros_is_a_lawful_end(segment: Path, zeros: int) -> None:
    assert offsets(read(segment, batch(0) + bytes(zeros))) == [(0, 1)]


def test_zeros_alone_and_nothing_at_all(segment: Path) -> None:
    assert read(segment, bytes(5000)) == []
    assert read(segment, b"") == []


@pytest.mark.parametrize("zeros", [61, 300, READ_AHEAD])
def test_bytes_behind_zeros_are_told(segment: Path, zeros: int) -> None:
    start = len(batch(0))
    good, bad = read(segment, batch(0) + bytes(zeros) + b"\x01" + bytes(9))
    assert offsets([good]) == [(0, 1)]
    reason = f"zeros, and other bytes again from byte {start + zeros} on"
    assert bad == Unreadable(str(segment), f"byte {start}", reason)


@pytest.mark.parametrize(
    "whole",
    [[batch(5), batch(6, codec=LZ4)], [message(5), wrapper(6, message(0))]],
    ids=["format 2", "format 1"],
)
def test_torn_at_every_byte(segment: Path, whole: list[bytes]) -> None:
    first, second = whole
    # Its first seven bytes are zeros: those alone look like the end of a preallocated file.
    assert offsets(read(segment, first + second[:7])) == [(5, 6)]
    for cut in range(8, len(second)):
        good, torn = read(segment, first + second[:cut])
        assert offsets([good]) == [(5, 6)]
        assert isinstance(torn, Unreadable)
        assert (torn.path, torn.where) == (str(segment), f"byte {len(first)}")
        assert torn.reason.startswith("torn"), cut


def test_every_flipped_byte_under_the_check_sum(segment: Path) -> None:
    first, second = batch(0, Record(), Record()), batch(2)
    for at in range(21, len(first)):
        changed = bytearray(first)
        changed[at] ^= 0x10
        bad, good = read(segment, bytes(changed) + second)
        assert isinstance(bad, Unreadable), at
        assert bad.where == "byte 0"
        assert offsets([good]) == [(2, 3)]


@pytest.mark.parametrize("magic", [0, 1])
def test_a_wrong_check_sum_of_an_old_message(segment: Path, magic: int) -> None:
    changed = bytearray(message(3, magic=magic))
    changed[-1] ^= 1
    bad, good = read(segment, bytes(changed) + message(4, magic=magic))
    assert isinstance(bad, Unreadable)
    assert bad.reason.startswith("the batch of offsets 3 to 3 has CRC ")
    assert offsets([good]) == [(4, 5)]


def test_check_sums_are_not_looked_at_unless_asked(segment: Path) -> None:
    changed = bytearray(batch(0))
    changed[-1] ^= 1
    assert offsets(read(segment, bytes(changed), verify_crc=False)) == [(0, 1)]


def test_a_wrapper_that_does_not_unpack_is_stepped_over(segment: Path) -> None:
    broken = message(3, Record(value=b"not gzip at all"), attributes=GZIP)
    bad, good = read(segment, broken + message(4))
    assert isinstance(bad, Unreadable)
    assert bad.reason.startswith("a compressed message that does not unpack: ")
    assert offsets([good]) == [(4, 5)]


@pytest.mark.parametrize(
    ("content", "where", "reason"),
    [
        (
            b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n",
            "file",
            "a Git LFS pointer, not the segment it stands for",
        ),
        (b"[2026-11-20 15:17:30,518] INFO a broker's log\n" * 9, "file", "text, not a segment"),
        (b"x\n", "file", "text, not a segment"),
        (b"PK\x03\x04" + bytes(range(200, 250)), "file", "not a segment: unknown record format"),
        (batch(0) + b"\xff" * 100, f"byte {len(batch(0))}", "no batch here: unknown record form"),
        (struct.pack(">qiib", 9, 20, 0, 2) + b"\x01" * 99, "byte 0", "no batch here: offset 9,"),
        (struct.pack(">qiib", -9, 80, 0, 2) + b"\x01" * 99, "byte 0", "no batch here: offset -9"),
    ],
)
def test_what_is_no_segment(segment: Path, content: bytes, where: str, reason: str) -> None:
    last = read(segment, content)[-1]
    assert isinstance(last, Unreadable)
    assert (last.path, last.where) == (str(segment), where)
    assert last.reason.startswith(reason)


def test_what_cannot_be_opened(tmp_path: Path) -> None:
    missing = tmp_path / SEGMENT
    (gone,) = read_batches(missing)
    (folder,) = read_batches(tmp_path)
    assert gone == Unreadable(str(missing), "file", "No such file or directory")
    assert folder == Unreadable(str(tmp_path), "file", "Is a directory")


def test_large_batches_among_small_ones(segment: Path) -> None:
    """Reading ahead gives way to reading sparsely, and comes back."""
    sizes = [10, 10, 300_000, 40_000, 33_000, 10, 70_000, 20, 30, READ_AHEAD, 5, 5, 5]
    written = [batch(at, Record(value=b"v" * size)) for at, size in enumerate(sizes)]
    items = read(segment, b"".join(written), verify_crc=False)
    assert offsets(items) == [(at, at + 1) for at in range(len(sizes))]
    positions = [item.position for item in items if isinstance(item, RecordBatch)]
    assert positions == [sum(map(len, written[:at])) for at in range(len(sizes))]


def test_memory_stays_small_whatever_the_size(segment: Path) -> None:
    with segment.open("wb") as stream:
        for at in range(60):
            stream.write(batch(at, Record(value=bytes(1 << 20))))
    tracemalloc.start()
    try:
        count = sum(1 for _ in read_batches(segment, verify_crc=True))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert count == 60
    assert peak < 8 << 20


WRITTEN = batch(0) + batch(1, Record(), codec=LZ4) + message(2) + wrapper(4, message(0), message(1))


@given(st.lists(st.tuples(st.integers(0, len(WRITTEN) - 1), st.integers(1, 255)), max_size=6))
def test_flipped_bytes_never_raise_and_always_end(
    tmp_path_factory: pytest.TempPathFactory, flips: list[tuple[int, int]]
) -> None:
    changed = bytearray(WRITTEN)
    for at, bits in flips:
        changed[at] ^= bits
    segment = tmp_path_factory.getbasetemp() / SEGMENT
    for verify_crc in (False, True):
        assert len(read(segment, bytes(changed), verify_crc=verify_crc)) <= 20


@given(st.binary(max_size=400))
def test_any_bytes_never_raise_and_always_end(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    segment = tmp_path_factory.getbasetemp() / SEGMENT
    assert len(read(segment, content)) <= 20


def test_log_append_time_is_no_other_header(segment: Path) -> None:
    content = batch(0, Record(), flags=LOG_APPEND_TIME, max_timestamp=CREATED + 9)
    (item,) = read(segment, content)
    assert isinstance(item, RecordBatch)
    assert (item.max_timestamp, item.codec, item.is_control) == (CREATED + 9, 0, False)
