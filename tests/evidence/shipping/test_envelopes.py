"""What real shippers send, in their own shapes, and what is no line."""

import json
import re
from pathlib import Path

import pytest

from replication.evidence.collecting.envelopes import (
    FieldNames,
    NotALine,
    ShippedLine,
    shipped_lines,
)

ROOT = Path(__file__).parents[3]
LINE = "[2026-03-04 05:06:07,089] INFO [Broker id=1] Stopped fetchers (state.change.logger)"
ENVELOPES = {
    "vector file": (
        {"file": "/var/log/kafka/server.log", "host": "kafka-1", "message": LINE, "offset": 912,
         "source_type": "file", "timestamp": "2026-03-04T05:06:08Z"},
        ShippedLine(LINE, "kafka-1", "/var/log/kafka/server.log", "", 912),
    ),
    "filebeat": (
        {"@timestamp": "2026-03-04T05:06:08Z", "message": LINE, "host": {"name": "kafka-1"},
         "log": {"offset": 77, "file": {"path": "/var/log/kafka/state-change.log"}},
         "fields": {"kafka_cluster": "orders"}, "agent": {"type": "filebeat"}},
        ShippedLine(LINE, "kafka-1", "/var/log/kafka/state-change.log", "orders", 77),
    ),
    "fluent bit in kubernetes": (
        {"date": 1772600767.5, "stream": "stdout", "log": LINE + "\n",
         "kubernetes": {"pod_name": "orders-kafka-0", "container_name": "kafka",
                        "labels": {"strimzi.io/cluster": "orders"}}},
        ShippedLine(LINE, "orders-kafka-0", "kafka", "orders"),
    ),
    "rsyslog json": (
        {"@timestamp": "2026-03-04T05:06:08Z", "hostname": "kafka-1", "programname": "kafka",
         "msg": LINE, "$!metadata": {"filename": "/opt/kafka/logs/server.log", "fileoffset": "5"}},
        ShippedLine(LINE, "kafka-1", "/opt/kafka/logs/server.log", "", 5),
    ),
    "journald as JSON": (
        {"_HOSTNAME": "kafka-1", "MESSAGE": LINE, "_SYSTEMD_UNIT": "kafka.service"},
        ShippedLine(LINE, "kafka-1", "", ""),
    ),
    "docker": ({"log": LINE + "\n", "stream": "stdout", "time": "x"}, ShippedLine(LINE)),
}  # fmt: skip


@pytest.mark.parametrize("shipper", ENVELOPES)
def test_each_shipper_is_known_by_its_fields(shipper: str) -> None:
    envelope, expected = ENVELOPES[shipper]
    assert list(shipped_lines(json.dumps(envelope).encode())) == [expected]


def test_raw_lines_and_the_container_format() -> None:
    assert list(shipped_lines(LINE.encode())) == [ShippedLine(LINE)]
    cut = (
        f"2026-03-04T05:06:08.1Z stdout P {LINE[:20]}\n2026-03-04T05:06:08.1Z stdout F {LINE[20:]}"
    )
    first, second = shipped_lines(cut.encode())
    assert first == ShippedLine(LINE[:20], partial=True)
    assert second == ShippedLine(LINE[20:])


def test_a_joined_exception_is_its_lines_each_at_its_own_byte() -> None:
    text = f"{LINE}\njava.io.IOException: no space\n\tat kafka.log.Log.append(Log.scala:1)"
    sent = json.dumps({"message": text, "log": {"offset": 100}}).encode()
    found = list(shipped_lines(sent))
    assert [line.text for line in found if isinstance(line, ShippedLine)] == text.split("\n")
    assert [line.offset for line in found if isinstance(line, ShippedLine)][:2] == [
        100,
        101 + len(LINE),
    ]


def test_a_fleets_own_names_come_first() -> None:
    names = FieldNames(line=("body.text",), host=("node",), one_cluster="orders")
    sent = json.dumps({"body": {"text": LINE}, "message": "no", "node": "k7"}).encode()
    assert list(shipped_lines(sent, names)) == [ShippedLine(LINE, "k7", "", "orders")]


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (b'{"level": "info", "ts": 1}', "no field holds a line"),
        (b'{"message": "cut', "no whole JSON object"),
        (b'{"message": {"a": 1}}', "no field holds a line"),
        (b"[1, 2]", "no envelope"),
        (b'{"message":' + b"[" * 100_000, "no whole JSON object"),
        (b"x" * (1 << 21), "longer than"),
    ],
)
def test_what_is_no_line_says_why(sent: bytes, reason: str) -> None:
    found = list(shipped_lines(sent))
    assert found
    assert all(isinstance(each, NotALine) and reason in each.reason for each in found)


def test_no_half_of_a_character_and_no_zero_leaves_an_envelope() -> None:
    """Nobody can write down the one, and with the other a whole log is taken for no text."""
    for bad in ("\ud800", "\udfff\ud800", "\0"):
        text = f"{LINE[:60]}{bad}{LINE[60:]}"
        envelopes = [json.dumps({"message": text, "log": {"offset": 9}}).encode(),
                     text.encode("utf-8", "surrogatepass")]  # fmt: skip
        for sent in envelopes:
            [found] = shipped_lines(sent)
            assert isinstance(found, ShippedLine)
            assert "\0" not in found.text
            assert found.text.encode().decode() == found.text
            assert found.text.startswith(LINE[:60])
            assert found.text.endswith(LINE[60:])


def test_a_line_of_an_acknowledgement_log_comes_as_it_is_or_in_an_envelope() -> None:
    log = ROOT / "tests" / "incidents" / "unclean_election__4.1.1" / "acks.jsonl"
    plain = log.read_bytes().splitlines()[:20]
    for sent in plain:
        wrapped = json.dumps({"message": sent.decode(), "host": "client-1"}).encode()
        for each in (sent, wrapped):
            [line] = shipped_lines(each)
            assert isinstance(line, ShippedLine)
            assert line.client == "acknowledgements"
            assert json.loads(line.text) == json.loads(sent)


def test_the_line_on_the_page_is_one() -> None:
    page = (ROOT / "docs" / "live.md").read_text(encoding="utf-8")
    [told] = re.findall(r"^```json\n(.*?)\n```$", page, re.MULTILINE | re.DOTALL)
    [line] = shipped_lines(told.encode())
    assert isinstance(line, ShippedLine)
    assert (line.host, line.path, line.cluster) == (
        "kafka-2", "/var/log/kafka/server.log", "orders"
    )  # fmt: skip
    assert line.text.startswith("[2026-11-20 ")
