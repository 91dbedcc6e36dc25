"""Exactly the lost records come back, in every format and packing that Kafka ever wrote."""

import base64
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

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
from tests.recovery.lost_evidence import FIRST_LOST, lines_of, lost_evidence, recover_rows, row

RAW_SNAPPY = 12
CODECS = (0, GZIP, SNAPPY, RAW_SNAPPY, LZ4, ZSTD)
BINARY = bytes(range(256))
DAYS_25 = 25 * 86_400_000
# Null and empty keys and values, tombstones, text that is none, control characters, a megabyte.
PLAIN = (
    Record(b"v", key=None),
    Record(None, key=b"tombstone"),
    Record(None, key=None),
    Record(b"", key=b""),
    Record(BINARY, key=BINARY[::-1]),
    Record("grüße \x1b[31m\r\n".encode(), key=b"\xff\xfe"),
    Record(b"x" * (1 << 20), key=b"large", timestamp=CREATED + 5),
)
HEADED = (
    Record(b"h", key=b"1", headers=[(b"a", b"1")]),
    Record(b"h", key=b"20", headers=[(b"n%d" % n, bytes([n, 255])) for n in range(20)]),
    Record(
        b"h", headers=[("ß\x1b[2J".encode(), None), (b"", b""), (b"twice", b"1"), (b"twice", b"2")]
    ),
    Record(b"late", key=b"25 days", timestamp=CREATED + DAYS_25),
    Record(b"early", key=b"25 days", timestamp=CREATED - DAYS_25),
)
Content = tuple[bytes | None, bytes | None, tuple[tuple[bytes, bytes | None], ...], int | None, int]


def content(record: Record, offset: int, timestamp: int | None) -> Content:
    return record.key, record.value, tuple(record.headers), timestamp, offset


def of_json(row: dict[str, Any]) -> Content:
    def unpacked(fields: dict[str, Any], name: str) -> bytes | None:
        if f"{name}_base64" in fields:
            assert fields[name] is None
            return base64.b64decode(fields[f"{name}_base64"])
        return None if fields[name] is None else fields[name].encode()

    headers = tuple((unpacked(h, "name") or b"", unpacked(h, "value")) for h in row["headers"])
    return unpacked(row, "key"), unpacked(row, "value"), headers, row["timestamp"], row["offset"]


def of_parquet(row: dict[str, Any]) -> Content:
    headers = tuple((h["name"], h["value"]) for h in row["headers"])
    return row["key"], row["value"], headers, row["timestamp"], row["offset"]


def recovered(folder: Path, evidence: Path, ledger: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of a ledger's row; both files hold the same."""
    recover_rows(evidence, folder, ledger)
    rows = lines_of(folder / "records.jsonl")
    table = pq.read_table(folder / "records.parquet").to_pylist()
    assert [of_json(r) for r in rows] == [of_parquet(r) for r in table]
    packed = ("key", "value", "headers")
    for line, other in zip(rows, table, strict=True):
        assert {n: line[n] for n in other if n not in packed} == {
            n: v for n, v in other.items() if n not in packed
        }
    return rows


@pytest.mark.parametrize("codec", CODECS)
def test_records_of_format_2(codec: int, tmp_path: Path) -> None:
    records = [*PLAIN, *HEADED]
    raw = codec == RAW_SNAPPY
    lost = batch(FIRST_LOST, *records, codec=SNAPPY if raw else codec, raw_snappy=raw)
    evidence = lost_evidence(tmp_path / "evidence", lost, FIRST_LOST + len(records))
    rows = recovered(tmp_path / "out", evidence, row(FIRST_LOST + len(records)))
    expected = [content(r, FIRST_LOST + n, r.timestamp) for n, r in enumerate(records)]
    assert [of_json(row) for row in rows] == expected
    assert {(r["message_format"], r["transaction"], r["held_back"]) for r in rows} == {
        (2, "none", None)
    }


@pytest.mark.parametrize(
    "codec",
    [0, *(pytest.param(c, marks=pytest.mark.slow) for c in (GZIP, SNAPPY, RAW_SNAPPY, LZ4))],
)
@pytest.mark.parametrize(("magic", "by_broker"), [(0, False), (1, False), (1, True)])
def test_records_of_the_formats_before(
    magic: int, codec: int, by_broker: bool, tmp_path: Path
) -> None:
    """Format 0 has no time; where the broker stamps its own, the wrapper's holds for all."""
    before = b"".join(message(n, Record(b"b", key=b"%d" % n), magic=magic) for n in range(3))
    end = FIRST_LOST + len(PLAIN)
    flags = LOG_APPEND_TIME if by_broker else 0
    if codec == 0:
        lost = b"".join(
            message(FIRST_LOST + n, r, magic=magic, attributes=flags) for n, r in enumerate(PLAIN)
        )
    else:
        inner = [
            message(n if magic else FIRST_LOST + n, r, magic=magic) for n, r in enumerate(PLAIN)
        ]
        lost = wrapper(
            end - 1, *inner, magic=magic, codec=codec if codec < 8 else SNAPPY,
            raw_snappy=codec == RAW_SNAPPY, attributes=flags, timestamp=CREATED + 99,
        )  # fmt: skip
    evidence = lost_evidence(tmp_path / "evidence", lost, end, before=before)
    rows = recovered(tmp_path / "out", evidence, row(end, leader_epoch=None))
    stamped = by_broker and codec != 0
    expected = [
        content(r, FIRST_LOST + n, (CREATED + 99 if stamped else r.timestamp) if magic else None)
        for n, r in enumerate(PLAIN)
    ]
    assert [of_json(row) for row in rows] == expected
    kind = None if not magic else "append" if by_broker else "create"
    assert {(row["timestamp_type"], row["message_format"]) for row in rows} == {(kind, magic)}


def marker(offset: int, producer: int, outcome: int, leader_epoch: int = 0) -> bytes:
    record = Record(b"\0\0\0\0\0\0", key=b"\0\0" + outcome.to_bytes(2, "big"))
    flags = CONTROL | TRANSACTIONAL
    told = (producer, 0, -1)
    return batch(offset, record, flags=flags, producer=told, leader_epoch=leader_epoch)


def transactions(codec: int) -> Iterator[tuple[bytes, str]]:
    """(batch, what `recover` is to make of its records)."""
    three = [Record(b"%d" % n, key=b"k%d" % n) for n in range(3)]

    def sent(offset: int, producer: int, flags: int = TRANSACTIONAL) -> bytes:
        return batch(offset, *three, flags=flags, producer=(producer, 0, 7), codec=codec)

    yield sent(3, 1), "committed"
    yield sent(6, 2), "aborted"
    yield sent(9, 4), "open"
    yield marker(12, 2, 0), ""
    yield marker(13, 1, 1), ""
    yield sent(14, 1), "aborted"
    yield marker(17, 1, 0), ""
    yield sent(18, 3, flags=0), "none"


@pytest.mark.parametrize("codec", [0, GZIP, SNAPPY, LZ4, ZSTD])
def test_transactions(codec: int, tmp_path: Path) -> None:
    batches = list(transactions(codec))
    evidence = lost_evidence(tmp_path / "evidence", b"".join(b for b, _ in batches), 21)
    rows = recovered(tmp_path / "out", evidence, row(21))
    assert [(r["offset"], r["transaction"], r["held_back"], r["sequence"]) for r in rows] == [
        *((3 + n, "committed", None, 7 + n) for n in range(3)),
        *((9 + n, "open", "open_transaction", 7 + n) for n in range(3)),
        *((18 + n, "none", None, 7 + n) for n in range(3)),
    ]
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["offsets"] == {
        "recovered": 6, "held_back": 3, "not_had": 0, "control_record": 3,
        "aborted_transaction": 6,
    }  # fmt: skip
    told = Counter(row["became"] for row in lines_of(tmp_path / "out" / "lost_records_keys.jsonl"))
    assert told == {"recovered": 6, "open_transaction": 3}
