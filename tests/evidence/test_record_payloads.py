"""Records out of batches: against Kafka's own dump of them, and made ones for what must not matter.

`segments/` holds two segments that real brokers wrote and one with every codec and format;
`dump.txt` beside each is what Kafka's DumpLogSegments of 0.10.2.2, 4.1.1 and 3.9.1 printed of it.
"""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replication.evidence.log_directories.record_payloads import (
    RecordIdentity,
    read_record_identities,
)
from replication.evidence.log_directories.segments import RecordBatch, read_batches
from replication.evidence.unreadable import Unreadable
from tests.evidence.segment_bytes import (
    CONTROL,
    CREATED,
    GZIP,
    LOG_APPEND_TIME,
    LZ4,
    SNAPPY,
    ZSTD,
    Record,
    batch,
    message,
    wrapper,
)

DUMPED = sorted((Path(__file__).parent / "segments").iterdir())
SEGMENT = "0" * 20 + ".log"
NUMBER = re.compile(r"(\w+): (-?\d+)(?= |$)")
KEY = re.compile(r" key: (\S+)")


def identities(path: Path, content: bytes) -> list[RecordIdentity]:
    path.write_bytes(content)
    found = []
    for item in read_batches(path):
        assert isinstance(item, RecordBatch), item
        records = read_record_identities(path, item)
        assert not isinstance(records, Unreadable), records
        found += records
    return found


@pytest.fixture
def segment(tmp_path: Path) -> Path:
    return tmp_path / SEGMENT


@pytest.mark.parametrize("captured", DUMPED, ids=lambda path: path.name)
def test_headers_are_those_of_kafkas_own_dump(captured: Path) -> None:
    dumped = []
    for line in (captured / "dump.txt").read_text().splitlines():
        if line.startswith(("baseOffset:", "offset:")):
            numbers = {name: int(value) for name, value in NUMBER.findall(line)}
            last_offset = numbers.get("lastOffset", numbers.get("offset"))
            leader_epoch = numbers.get("partitionLeaderEpoch")
            dumped.append((last_offset, leader_epoch, numbers["position"], numbers["crc"]))
    read = [
        (item.end_offset - 1, item.leader_epoch, item.position, item.crc)
        for item in read_batches(captured / SEGMENT, verify_crc=True)
        if isinstance(item, RecordBatch)
    ]
    assert len(dumped) >= 14
    assert read == dumped


@pytest.mark.parametrize("captured", DUMPED, ids=lambda path: path.name)
def test_records_are_those_of_kafkas_own_dump(captured: Path) -> None:
    dumped = []
    for line in (captured / "dump.txt").read_text().splitlines():
        if " payload: " in line or "endTxnMarker" in line:
            found = KEY.search(line)
            offset = dict(NUMBER.findall(line))["offset"]
            dumped.append((int(offset), found[1] if found else None))
    read: list[tuple[int, str | None]] = []
    for item in read_batches(captured / SEGMENT):
        assert isinstance(item, RecordBatch)
        records = read_record_identities(captured / SEGMENT, item)
        assert not isinstance(records, Unreadable)
        assert item.base_offset == records[0].offset
        read += [(record.offset, record.key) for record in records]
    assert len(dumped) >= 14
    assert read == dumped


THREE = [
    Record(key=b"a", value=b"1"),
    Record(key=b"b", value=None, headers=[(b"h", b"x"), (b"h", None)]),
    Record(key=None, value=b"", timestamp=CREATED + 7),
]


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
def test_batching_and_compression_do_not_matter(segment: Path, codec: int) -> None:
    plain = identities(segment, batch(5, *THREE))
    assert [(record.offset, record.key) for record in plain] == [(5, "a"), (6, "b"), (7, None)]
    assert identities(segment, batch(5, *THREE, codec=codec, leader_epoch=9)) == plain
    split = batch(5, THREE[0]) + batch(6, *THREE[1:], codec=codec)
    assert identities(segment, split) == plain


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4])
def test_the_old_formats_hold_the_same_records(segment: Path, codec: int) -> None:
    """A broker that converts messages of format 1 for a new log keeps what they say."""
    records = [Record(key=b"a", value=b"1"), Record(key=None, value=None)]
    new = identities(segment, batch(3, *records))
    plain = message(3, records[0]) + message(4, records[1])
    assert identities(segment, plain) == new
    packed = wrapper(4, message(0, records[0]), message(1, records[1]), codec=codec)
    assert identities(segment, packed) == new


def test_format_0_knows_no_time(segment: Path) -> None:
    inner = [message(offset, Record(key=b"%d" % offset), magic=0) for offset in (8, 9)]
    packed = identities(segment, wrapper(9, *inner, magic=0))
    assert packed == identities(segment, b"".join(inner))
    assert [(record.offset, record.key) for record in packed] == [(8, "8"), (9, "9")]
    assert packed[0].digest != identities(segment, message(8, Record(key=b"8")))[0].digest


@pytest.mark.parametrize(
    "other",
    [
        Record(key=b"k", value=b"w"),
        Record(key=b"k", value=None),
        Record(key=b"l", value=b"v"),
        Record(key=None, value=b"v"),
        Record(key=b"kv", value=b""),
        Record(key=b"k", value=b"v", timestamp=CREATED + 1),
        Record(key=b"k", value=b"v", headers=[(b"", b"")]),
        Record(key=b"k", value=b"v", headers=[(b"", None)]),
    ],
)
def test_another_content_is_another_record(segment: Path, other: Record) -> None:
    (one,) = identities(segment, batch(0, Record(key=b"k", value=b"v")))
    (two,) = identities(segment, batch(0, other))
    assert one.digest != two.digest
    assert -(2**63) <= one.digest < 2**63


def test_the_time_that_the_broker_gave_counts(segment: Path) -> None:
    late = CREATED + 50
    (by_broker,) = identities(segment, batch(0, flags=LOG_APPEND_TIME, max_timestamp=late))
    assert by_broker == identities(segment, batch(0, Record(timestamp=late)))[0]
    old = wrapper(0, message(0), attributes=LOG_APPEND_TIME, timestamp=late)
    assert identities(segment, old) == [by_broker]


def test_control_records_have_no_key(segment: Path) -> None:
    commit = Record(key=bytes([0, 0, 0, 1]), value=bytes(6))
    (record,) = identities(segment, batch(4, commit, flags=CONTROL))
    assert (record.offset, record.key) == (4, None)


def test_keys_that_are_no_text(segment: Path) -> None:
    (record,) = identities(segment, batch(0, Record(key=b"\xff\xfeid")))
    assert record.key == "��id"


def test_offsets_that_the_cleaner_left(segment: Path) -> None:
    records = identities(segment, batch(10, Record(offset=2), Record(offset=7)))
    assert [record.offset for record in records] == [12, 17]


def test_an_emptied_batch_holds_its_offsets_only(segment: Path) -> None:
    """The cleaner keeps the header of a producer's last batch without its records."""
    header = bytearray(batch(3, Record())[:61])
    header[8:12] = (49).to_bytes(4, "big")
    header[57:61] = bytes(4)
    assert identities(segment, bytes(header)) == []


def test_a_file_that_changed_meanwhile(segment: Path) -> None:
    segment.write_bytes(batch(0) + batch(1))
    second = list(read_batches(segment))[1]
    assert isinstance(second, RecordBatch)
    segment.write_bytes(batch(0))
    lost = read_record_identities(segment, second)
    reason = "records that do not unpack: the file became shorter since its headers were read"
    assert lost == Unreadable(str(segment), f"byte {second.position}", reason)
    segment.unlink()
    gone = read_record_identities(segment, second)
    assert isinstance(gone, Unreadable)
    assert gone.reason == "No such file or directory"


def all_kinds() -> bytes:
    whole = b"".join(
        batch(3 * codec, *THREE, codec=codec) for codec in (0, GZIP, SNAPPY, LZ4, ZSTD)
    )
    for codec in (GZIP, SNAPPY, LZ4):
        whole += wrapper(100 + codec, message(0), codec=codec)
    return whole + message(200)


WRITTEN = all_kinds()


@given(st.lists(st.tuples(st.integers(0, len(WRITTEN) - 1), st.integers(1, 255)), max_size=8))
def test_flipped_bytes_never_raise(
    tmp_path_factory: pytest.TempPathFactory, flips: list[tuple[int, int]]
) -> None:
    changed = bytearray(WRITTEN)
    for at, bits in flips:
        changed[at] ^= bits
    segment = tmp_path_factory.getbasetemp() / SEGMENT
    segment.write_bytes(changed)
    for item in read_batches(segment):
        if isinstance(item, RecordBatch):
            records = read_record_identities(segment, item)
            assert isinstance(records, list | Unreadable)
