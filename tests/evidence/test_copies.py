"""Which bytes of several copies are the same record, in the smallest forms."""

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import crc32c

from replication.evidence.joining.copies import Copy, identify_contents
from replication.evidence.joining.places import sequence_at, sequence_key
from replication.evidence.joining.without_records import WithoutRecords, count_records
from replication.evidence.log_directories.log_directory import read_log_directory
from replication.evidence.log_directories.segments import RecordBatch
from replication.protocol.ground.model import Span
from tests.evidence.segment_bytes import CONTROL, CREATED, Record, batch

DELETE_HORIZON = 0x40
BASE_TIMESTAMP = slice(27, 35)


def copy_of(folder: Path, broker: int, content: bytes) -> Copy:
    path = folder / str(broker) / "t-0" / f"{0:020d}.log"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    parent = read_log_directory(path.parents[1], verify_crc=True)
    return Copy(broker, parent.partitions[0], parent, clean=True)


def cleaned_at(later: int) -> bytes:
    """A tombstone in a batch in whose header the cleaner wrote its own time."""
    record = Record(key=b"k", value=None, timestamp=CREATED - later)
    content = bytearray(batch(0, record, flags=DELETE_HORIZON, max_timestamp=CREATED))
    content[BASE_TIMESTAMP] = (CREATED + later).to_bytes(8, "big")
    content[17:21] = crc32c.crc32c(bytes(content[21:])).to_bytes(4, "big")
    return bytes(content)


def test_the_cleaners_own_time_makes_no_other_record(tmp_path: Path) -> None:
    copies = [copy_of(tmp_path, 1, cleaned_at(5_000)), copy_of(tmp_path, 2, cleaned_at(7_000))]
    first, second = (next(c.directory.iter_batches()) for c in copies)
    assert first.has_delete_horizon
    assert first.crc != second.crc
    identify_contents(copies)
    assert copies[0].spans == copies[1].spans == [Span(0, 1, 0, 0)]


def test_other_records_in_such_batches_are_others(tmp_path: Path) -> None:
    other = bytearray(batch(0, Record(key=b"x", value=None), flags=DELETE_HORIZON))
    copies = [copy_of(tmp_path, 1, cleaned_at(5_000)), copy_of(tmp_path, 2, bytes(other))]
    identify_contents(copies)
    assert [copy.spans for copy in copies] == [[Span(0, 1, 0, 0)], [Span(0, 1, 0, 1)]]


def test_an_empty_batch_that_the_cleaner_left_still_tells_its_sequence_numbers() -> None:
    """The last batch of a producer stays without records, so that its state is kept (KIP-98)."""
    batch = cast(
        RecordBatch,
        SimpleNamespace(
            producer_id=7, producer_epoch=0, base_sequence=3, is_control=False, record_count=0,
            base_offset=10, end_offset=12,
        ),
    )  # fmt: skip
    assert sequence_at(batch, 11) == sequence_key(7, 0, 4)


def test_markers_and_emptied_batches_are_no_records(tmp_path: Path) -> None:
    empty = bytearray(batch(3))[:61]  # The cleaner keeps the header: no record in it.
    empty[8:12], empty[57:61] = (49).to_bytes(4, "big"), bytes(4)
    empty[17:21] = crc32c.crc32c(bytes(empty[21:])).to_bytes(4, "big")
    one = batch(0, Record(), Record()) + batch(2, flags=CONTROL) + bytes(empty) + batch(4)
    other = batch(0, Record(), Record()) + batch(2, leader_epoch=1)
    found = identify_contents([copy_of(tmp_path, 1, one), copy_of(tmp_path, 2, other)]).empty
    assert found == [WithoutRecords(2, 3, 0, False), WithoutRecords(3, 4, 0, True)]
    at_risk = {"first_offset": 0, "end_offset": 5, "leader_epoch": 0}
    lost = [{**at_risk, "status": "lost", "leader_epoch": of} for of in (0, 1, None)]
    count_records([at_risk, *lost], found)
    assert [at_risk["records"], *(x["records"] for x in lost)] == [4, 3, 4, 4]
