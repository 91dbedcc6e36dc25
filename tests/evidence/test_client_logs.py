"""Acknowledgement and consumption logs: every line is an answer or is reported with its number."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replication.evidence.clients.client_logs import (
    Acknowledgement,
    Consumption,
    client_log_kind,
    read_acknowledgements,
    read_consumptions,
)
from replication.evidence.unreadable import Unreadable

# As a producer in a captured incident wrote it, with fields of its own.
LINE: dict[str, Any] = {
    "ts": "2026-11-20T15:28:05.139Z",
    "sent_ts": "2026-11-20T15:28:05.109Z",
    "client": "p2",
    "topic": "t",
    "partition": 0,
    "offset": 4,
    "payload_id": "p0-000004",
    "acks": "1",
    "status": "acked",
    "broker": 1,
    "topic_id": "4Uu25ilRQ3mamw4tl1E6PA",
}
GIVEN: dict[str, Any] = {
    "ts": 1795188485139,
    "client": "c1",
    "topic": "t",
    "partition": 0,
    "offset": 7,
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "log"


def wrote(path: Path, *lines: Any) -> Path:
    path.write_text(
        "".join(f"{one if isinstance(one, str) else json.dumps(one)}\n" for one in lines)
    )
    return path


def only(path: Path, **changed: Any) -> Any:
    found = list(read_acknowledgements(wrote(path, LINE | changed)))
    assert len(found) == 1
    return found[0]


def test_an_acknowledgement(file: Path) -> None:
    assert only(file) == Acknowledgement(
        ts=1795188485139,
        client="p2",
        topic="t",
        partition=0,
        offset=4,
        acks="1",
        status="acked",
        payload_id="p0-000004",
        producer_id=None,
        producer_epoch=None,
        sequence=None,
        topic_id="4Uu25ilRQ3mamw4tl1E6PA",
        error=None,
        path=str(file),
        line=1,
        broker=1,
        sent=1795188485109,
    )


def test_the_sequence_of_an_idempotent_producer(file: Path) -> None:
    found = only(file, producer_id=12, producer_epoch=0, sequence=5, payload_id=None)
    assert (found.producer_id, found.producer_epoch, found.sequence) == (12, 0, 5)
    assert found.payload_id is None
    assert only(file, producer_id=-1, producer_epoch=-1, sequence=-1).producer_id is None


@pytest.mark.parametrize(
    ("acks", "means"),
    [(0, "0"), (1, "1"), (-1, "all"), ("0", "0"), ("-1", "all"), ("all", "all"), ("ALL", "all")],
)
def test_acks_in_every_spelling(file: Path, acks: Any, means: str) -> None:
    assert only(file, acks=acks).acks == means


@pytest.mark.parametrize(
    ("acks", "status", "error", "means"),
    [
        ("all", "acked", None, "acked"),
        ("all", "failed", "NOT_ENOUGH_REPLICAS", "failed"),
        ("all", "failed", "NOT_ENOUGH_REPLICAS_AFTER_APPEND", "unknown"),
        ("all", "failed", "KafkaTimeoutError: Expiring 1 record(s)", "unknown"),
        ("all", "failed", "REQUEST_TIMED_OUT", "unknown"),
        ("1", "failed", "NotLeaderOrFollowerException", "unknown"),
        ("1", "failed", "org.apache.kafka.common.errors.DisconnectException", "unknown"),
        ("1", "failed", "ConnectionRefusedError", "failed"),
        ("1", "failed", "RecordTooLargeException", "failed"),
        ("1", "unknown", None, "unknown"),
        ("1", "sent", None, "unknown"),
        ("0", "sent", None, "sent"),
        ("0", "acked", None, "sent"),
    ],
)
def test_status(file: Path, acks: str, status: str, error: str | None, means: str) -> None:
    assert only(file, acks=acks, status=status, error=error).status == means


def test_an_acknowledged_record_may_have_no_offset(file: Path) -> None:
    assert only(file, offset=None).offset is None
    assert only(file, offset=-1).offset is None


@pytest.mark.parametrize(
    ("ts", "milliseconds"),
    [
        ("1970-01-01T00:00:01.5Z", 1500),
        ("1970-01-01T01:00:01+01:00", 1000),
        ("1970-01-01 00:00:01", 1000),
        (1795188485139, 1795188485139),
        (1795188485, 1795188485000),
        (1795188485.139, 1795188485139),
        (None, None),
    ],
)
def test_times(file: Path, ts: Any, milliseconds: int | None) -> None:
    assert only(file, ts=ts).ts == milliseconds


@pytest.mark.parametrize(
    ("changed", "names"),
    [
        ({"offset": -5}, "offset -5"),
        ({"offset": 2**63}, "offset 9223372036854775808"),
        ({"offset": 1.5}, "offset 1.5"),
        ({"offset": "4"}, 'offset "4"'),
        ({"offset": True}, "offset true"),
        ({"partition": -1}, "partition -1"),
        ({"partition": None}, "partition missing"),
        ({"acks": 2}, "acks 2"),
        ({"acks": True}, "acks true"),
        ({"acks": None}, "acks missing"),
        ({"status": "lost"}, 'status "lost"'),
        ({"status": None}, "status missing"),
        ({"topic": ""}, 'topic ""'),
        ({"client": 7}, "client 7"),
        ({"ts": "yesterday"}, 'ts "yesterday"'),
        ({"ts": True}, "ts true"),
        ({"ts": 1e300}, "ts 1e+300"),
        ({"producer_epoch": 40000}, "producer_epoch 40000"),
        ({"payload_id": ["x"]}, 'payload_id ["x"]'),
    ],
)
def test_a_line_that_cannot_be(file: Path, changed: dict[str, Any], names: str) -> None:
    found = only(file, **changed)
    assert isinstance(found, Unreadable)
    assert (found.path, found.where) == (str(file), "line 1")
    assert names in found.reason


def test_damaged_lines_do_not_hide_the_others(file: Path) -> None:
    file.write_bytes(
        json.dumps(LINE).encode()
        + b"\n\n"
        + json.dumps(LINE).encode()[:40]
        + b'\n[1]\n"\xff"\n'
        + b"x" * (3 << 20)
        + b"\n"
        + json.dumps(LINE | {"offset": 5}).encode()
    )
    found = list(read_acknowledgements(file))
    assert [getattr(one, "where", getattr(one, "line", None)) for one in found] == [
        1,
        "line 3",
        "line 4",
        "line 5",
        "line 6",
        7,
    ]


def test_a_row_of_csv_that_ends_with_the_file_may_have_been_longer(file: Path) -> None:
    file.write_text(
        "ts,client,topic,partition,acks,status,offset\n1,c,t,0,all,acked,7\n1,c,t,0,all,acked,1"
    )
    whole, cut = read_acknowledgements(file)
    assert isinstance(whole, Acknowledgement)
    assert (whole.offset, getattr(cut, "where", None)) == (7, "line 3")


def test_a_consumption_log(file: Path) -> None:
    found = list(
        read_consumptions(wrote(file, GIVEN, GIVEN | {"payload_id": 9}, GIVEN | {"offset": -1}))
    )
    assert found[0] == Consumption(1795188485139, "c1", "t", 0, 7, None, None, str(file), 1)
    assert isinstance(found[1], Consumption)
    assert found[1].payload_id == "9"
    assert isinstance(found[2], Unreadable)


def test_gzip_and_a_gzip_that_breaks_off(file: Path) -> None:
    wrote(file, *[LINE | {"offset": n, "payload_id": f"{n * n}"} for n in range(500)])
    packed = gzip.compress(file.read_bytes())
    file.write_bytes(packed)
    assert client_log_kind(file) == "acknowledgements"
    assert len(list(read_acknowledgements(file))) == 500
    file.write_bytes(packed[: len(packed) // 2])
    found = list(read_acknowledgements(file))
    assert isinstance(found[-1], Unreadable)
    assert "breaks off" in found[-1].reason
    assert 10 < len(found) < 500


def test_no_file(tmp_path: Path) -> None:
    found = list(read_acknowledgements(tmp_path / "none"))
    assert isinstance(found[0], Unreadable)
    assert found[0].where == "file"
    assert client_log_kind(tmp_path / "none") is None


@pytest.mark.parametrize(
    ("lines", "kind"),
    [
        ([LINE], "acknowledgements"),
        ([GIVEN], "consumption"),
        (["{cut", LINE, LINE], "acknowledgements"),
        ([{k: v for k, v in LINE.items() if k != "ts"}], "acknowledgements"),
        ([], None),
        ([{"kind": "append", "topic": "t", "partition": 0, "sequence": 1, "offset": 3}], None),
        ([GIVEN | {"event_id": "x", "kind": "append", "sequence": 1}], None),
        ([{"ts": "2026-11-20T15:28:04.957Z", "broker": 3, "hw_checkpoint": 0}], None),
        (["[2026-11-20 15:28:05,139] INFO started (kafka.server.KafkaServer)"] * 5 + [LINE], None),
        ([LINE, *[{"action": "start"}] * 9], None),
    ],
)
def test_a_file_is_known_by_its_content(file: Path, lines: list[Any], kind: str | None) -> None:
    assert client_log_kind(wrote(file, *lines)) == kind


@given(st.binary(max_size=400))
def test_any_bytes_are_answered(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any"
    path.write_bytes(data)
    client_log_kind(path)
    assert all(isinstance(one, Unreadable) for one in read_acknowledgements(path))


@pytest.mark.parametrize(
    ("told", "means"),
    [(1, 1), (0, 0), (None, None), (-1, None), ("kafka1:9092", None), ([1], None)],
)
def test_who_answered(file: Path, told: Any, means: int | None) -> None:
    """Clients call an address so, too: that names no broker, and is no damage."""
    assert only(file, broker=told).broker == means
