"""From a copy's files to the parts of one log: what is read, in which order, what is lost."""

from collections.abc import Iterator, Mapping
from io import BytesIO

import pytest

from replication.evidence.metadata_log.log_parts import (
    Begins,
    Lost,
    Part,
    PlacedRecord,
    Records,
    Snapshot,
    parts_of_files,
    parts_of_records,
)
from replication.evidence.unreadable import Unreadable
from tests.evidence.metadata_log.log_bytes import (
    LOG,
    TOPIC_ID,
    batch,
    change,
    framed,
    log,
    partition,
    snapshot,
    topic,
)
from tests.evidence.metadata_log.placed import placed

TEN = f"{10:020}-{1:010}.checkpoint"


def parts(files: Mapping[str, bytes]) -> list[Part]:
    return list(parts_of_files("copy", {n: lambda b=b: BytesIO(b) for n, b in files.items()}))  # type: ignore[misc]


def shapes(told: list[Part]) -> Iterator[object]:
    """Each part in short: records by their offsets, notes by their first words."""
    for part in told:
        match part:
            case Records():
                yield part.base_offset, part.end_offset, [r.offset for r in part.records]
            case Snapshot():
                yield "snapshot", part.end_offset
            case Unreadable():
                yield " ".join(part.reason.split()[:2])
            case _:
                yield part


def test_batches_in_order() -> None:
    told = parts({LOG: batch(0, topic(), partition()) + log(change(leader=2), base=2)})
    assert list(shapes(told)) == [(0, 2, [0, 1]), (2, 3, [2])]


def test_a_late_beginning_is_a_snapshot_or_says_so() -> None:
    rest = log(change(leader=3), base=10)
    files = {f"{10:020}.log": rest, TEN: snapshot(topic(), partition())}
    assert list(shapes(parts(files))) == [("snapshot", 10), (10, 11, [10])]
    files = {f"{10:020}.log": rest}
    assert list(shapes(parts(files))) == ["starts at", Begins(10), (10, 11, [10])]


def test_a_gap_is_bridged_or_all_is_lost() -> None:
    first, last = log(topic(), partition()), log(change(leader=3), base=10)
    files = {LOG: first, f"{10:020}.log": last}
    before = [(0, 1, [0]), (1, 2, [1])]
    assert list(shapes(parts(files))) == [
        *before, Lost(), "metadata offsets", Lost(resume_at=10), (10, 11, [10])
    ]  # fmt: skip
    files[TEN] = snapshot(topic(), partition())
    assert list(shapes(parts(files))) == [
        *before, Lost(), ("snapshot", 10), "metadata offsets", (10, 11, [10])
    ]  # fmt: skip


def test_after_a_broken_batch_a_snapshot_is_taken_where_the_log_reaches_it() -> None:
    broken = bytearray(log(*[change(leader=1)] * 12))
    broken[len(log(*[change(leader=1)] * 8)) - 2] ^= 1  # in the batch at offset 7
    told = list(shapes(parts({LOG: bytes(broken), TEN: snapshot(topic())})))
    assert told[7:] == [
        "the batch", Lost(), (8, 9, [8]), (9, 10, [9]), ("snapshot", 10), (10, 11, [10]),
        (11, 12, [11]),
    ]  # fmt: skip


def test_a_snapshot_that_is_broken_or_incomplete_is_not_used_and_loses_nothing() -> None:
    whole = snapshot(topic(), partition())
    cut = bytearray(whole)
    cut[150] ^= 1
    rest = {f"{10:020}.log": log(topic(), base=10)}
    for bad, why in ((bytes(cut), "the batch"), (snapshot(topic(), footer=False), "this snapshot")):
        told = list(shapes(parts({**rest, TEN: bad})))
        assert told[0] == why
        assert ("snapshot", 10) not in told


@pytest.mark.parametrize(
    ("record", "lost"),
    [
        (framed(5, 3, b"\0\0\0\0" + TOPIC_ID + b"\0\0\0\7"), "its partition"),
        (framed(99, 0, b"abc"), None),
    ],
)
def test_a_record_that_cannot_be_decoded_loses_what_it_speaks_of(
    record: bytes, lost: str | None
) -> None:
    told = parts({LOG: log(topic(), record)})
    losses = [part for part in told if isinstance(part, Lost)]
    assert [one.partition is not None and one.partition[1] for one in losses] == [0] * bool(lost)
    assert told[-1] == Records(1, 2, 1, [])


def test_records_that_another_reader_decoded() -> None:
    def given(*offsets: int) -> Iterator[tuple[PlacedRecord, int]]:
        yield from ((placed("TopicRecord", offset), 1) for offset in offsets)

    told = list(shapes(list(parts_of_records("dump", given(5, 6, 6, 9, 12)))))
    assert told == [
        Begins(5), (5, 6, [5]), (6, 7, [6]), "metadata offsets", Lost(), (9, 10, [9]),
        (12, 13, [12]),
    ]  # fmt: skip
    broken = Unreadable("dump", "line 1", "cut off")
    assert list(parts_of_records("dump", [broken])) == [broken, Lost()]
