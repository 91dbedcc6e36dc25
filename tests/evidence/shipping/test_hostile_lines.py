"""Lines that some reader takes for something else, or refuses, among the lines of a real capture.

The live source passes over them or quarantines them and says so; what the good lines say stays the
same, in the first micro-batch, in later ones, and once many files have been made one.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from replication.evidence.collecting.envelopes import NotALine, ShippedLine, shipped_lines
from replication.evidence.shipping import compaction
from replication.evidence.shipping.live_join import LiveJoin
from tests.evidence.shipping.test_live_join import answers, newest
from tests.evidence.shipping.test_spool import sent_of

INCIDENT = "unclean_election__2.8.2"
TOOL_OUTPUT = Path(__file__).parents[1] / "tool_output"
ACKNOWLEDGED = {"ts": 1, "client": "c", "topic": "other", "partition": 0, "offset": 5,
                "acks": "all", "status": "acked"}  # fmt: skip
CONSUMED = {"ts": 1, "client": "c", "topic": "other", "partition": 0, "offset": 5}
EVENT = {"format_version": 1, "kind": "input_ended", "topic": "t", "partition": 0, "sequence": 0}
REFUSED = {
    "nearly an acknowledgement": json.dumps(
        {"timestamp": 1, "topic": "t", "partition": 0, "offset": 5}
    ),
    "an acknowledgement of no status": json.dumps({**ACKNOWLEDGED, "status": "?"}),
    "an acknowledgement below zero": json.dumps({**ACKNOWLEDGED, "partition": -1}),
    "a consumption of no partition": json.dumps({**CONSUMED, "partition": "x"}),
}
# They are read, and say what a client was told.
OF_CLIENTS = {"an acknowledgement": json.dumps(ACKNOWLEDGED), "a consumption": json.dumps(CONSUMED)}
PASSED_OVER = {
    "an event": json.dumps(EVENT),
    "an object": "{}",
    "half an object": '{"a": ',
    "an array": json.dumps([{"timestamp": 1, "topic": "t", "partition": 0, "offset": 5}]),
    "names of columns": "ts,client,topic,partition,offset,acks,status",
    "a dump of a log": "Dumping /x/00000000000000000000.log",
    "a dump's start": "Starting offset: 0",
    "log directories": 'Received log directory information from brokers 1\n{"version":1,"logDirs":',
    "a metadata quorum": "LeaderId:              3000",
    "a description": "Topic: t\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1,2",
    "bzip2": "BZh91AY&SY",
    "zip": "PK\x03\x04",
    "ZooKeeper's log": "ZKLG\x00\x00\x00\x02",
    "a byte order mark": "\ufeff",
    "NUL": "\0\0\0\0",
    "half a character": "\ud800",
    "Kafka's distribution": "KRaft (aka KIP-500) mode Preview Release",
    "docker's JSON": json.dumps({"log": "x\n", "stream": "stdout", "time": "2026-01-01T00:00:00Z"}),
    "a JSON log line": json.dumps(
        {"timeMillis": 1, "loggerName": "kafka.server.KafkaServer", "message": "x"}
    ),
    "colours": "\x1b[31mred\x1b[0m",
    "a stack trace": "\tat kafka.log.Log.append(Log.scala:1)",
    "an indented setting": "\tmin.insync.replicas = 9",
    "another layout": "2026-03-04 05:06:07,089 WARN other.Program: x",
    "syslog": "Mar  4 05:06:07 kafka-1 kafka[7]: x",
    "journald": "-- Logs begin at Wed 2026-03-04",
    "nothing but spaces": " \t ",
    "a long line": "x" * 1_000_000,
}
PATHS = ("x.0000000000.log/y", "x.0000000001.log/y", "digest.lines/y", "server.log/y", "../..", "",
         "a~json", "s~acknowledged", "__cluster_metadata-0/00000000000000000000.log", "t-0/x",
         "meta.properties", "/".join("d" * 200 for _ in range(40)))  # fmt: skip
NAMES = (
    "x.0000000000.log",
    "x.0000000001mm.log.trial",
    "digest.lines",
    "..",
    "a/b",
    "~",
    "h" * 999,
)


def shipped(sent: list[bytes]) -> list[ShippedLine | NotALine]:
    return [line for each in sent for line in shipped_lines(each)]


def joined(folder: Path, batches: list[list[ShippedLine | NotALine]]) -> tuple[Any, list[str], int]:
    """The answers at the end, what was said, and how many lines were refused."""
    live = LiveJoin(folder / "live", folder / "events")
    said, refused = [], 0
    for number, lines in enumerate(batches):
        for _ in range(2 if number == 1 else 1):
            step = live.step(number, lines)
            assert step.taken.rows == len(lines)
            assert len(lines) == (step.taken.kept + step.taken.repeated + len(step.taken.refused))
        said += step.notes
        refused += len(step.taken.refused)
    return answers(newest(folder / "events")), said, refused


def verdicts_of(found: Any) -> list[Any]:
    return [
        (name, [row[:2] for row in rows], losses)
        for name, rows, losses, *_ in found
        if name[0] == "cluster" and name[1] != "other"
    ]


def without_clients(found: Any) -> list[Any]:
    """What does not rest on what clients were told."""
    told = ("acknowledged_records_survive", "consumed_records_survive")
    return [(n, [r for r in rows if r[0] not in told]) for n, rows, _ in verdicts_of(found)]


def disturbed(good: list[bytes], *texts: str) -> list[list[ShippedLine | NotALine]]:
    """Four micro-batches of the good lines, before, among and after which the others come, as of
    each log that there is."""
    size = -(-len(good) // 4)
    found = []
    envelopes = {}
    for each in good:
        told = json.loads(each)
        name = told.get("file") or told["log"]["file"]["path"]
        envelopes[str(told["host"]), name] = told
    bad = [
        json.dumps({**told, "message": text}).encode()
        for text in texts
        for told in envelopes.values()
    ]
    for first in range(0, len(good), size):
        part = good[first : first + size]
        middle = len(part) // 2
        found.append(shipped([*bad, *part[:middle], *bad, *part[middle:], *bad]))
    return found


@pytest.fixture(scope="module")
def good() -> list[bytes]:
    return sent_of(INCIDENT)


@pytest.fixture(scope="module")
def expected(good: list[bytes], tmp_path_factory: pytest.TempPathFactory) -> Any:
    found, _, _ = joined(tmp_path_factory.mktemp("good"), [shipped(good)])
    assert any(verdict == "VIOLATED" for _, rows, *_ in found for _, verdict, _ in rows)
    return found


@pytest.mark.parametrize("what", REFUSED)
def test_a_line_that_is_refused_freezes_nothing(
    what: str, good: list[bytes], expected: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "TOGETHER", 2)
    found, said, refused = joined(tmp_path, disturbed(good, REFUSED[what]))
    assert verdicts_of(found) == verdicts_of(expected)
    assert refused > 0
    assert not [note for note in said if "--ack-fields" in note], "that is for each line to say"


@pytest.mark.parametrize("turn", range(5))
def test_lines_that_are_something_else_freeze_nothing(
    turn: int, good: list[bytes], expected: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fifth of them at once."""
    monkeypatch.setattr(compaction, "TOGETHER", 2)
    found, said, refused = joined(tmp_path, disturbed(good, *list(PASSED_OVER.values())[turn::5]))
    assert verdicts_of(found) == verdicts_of(expected)
    assert refused == 0
    assert not [note for note in said if "--ack-fields" in note]


def test_lines_of_kafkas_tools_freeze_nothing(
    good: list[bytes], expected: Any, tmp_path: Path
) -> None:
    """The first lines of what each release's tools print of logs, and of metadata logs."""
    outputs = sorted(TOOL_OUTPUT.glob("*.txt"))
    lines = [line for path in outputs for line in path.read_text().splitlines()[:8]]
    assert len(lines) > 50
    found, _, refused = joined(tmp_path, disturbed(good, *lines))
    assert verdicts_of(found) == verdicts_of(expected)
    assert refused == 0


@pytest.mark.parametrize("what", OF_CLIENTS)
def test_what_clients_were_told_hides_no_line_of_a_broker(
    what: str, good: list[bytes], expected: Any, tmp_path: Path
) -> None:
    found, _, refused = joined(tmp_path, disturbed(good, OF_CLIENTS[what]))
    assert without_clients(found) == without_clients(expected)
    assert refused == 0


def test_no_name_of_a_log_a_host_or_a_cluster_stands_in_anothers_way(
    good: list[bytes], expected: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "TOGETHER", 2)
    line = ShippedLine("[2026-01-01 00:00:00,000] INFO x (kafka.Kafka)")
    named = [
        replace(line, host=host, path=path) for path in ("x", *PATHS) for host in ("h", *NAMES)
    ]
    named += [replace(line, host="h", path="x", cluster=name) for name in NAMES]
    named += [replace(line, text=json.dumps({"replication_digest": 1, "n": 1, "started": 1, "at": 1,
                                             "directory": "d", "what": "directory"}),
                      host=host, digest=True) for host in ("h", *NAMES)]  # fmt: skip
    size = -(-len(good) // 4)
    parts = [good[first : first + size] for first in range(0, len(good), size)]
    found, _, refused = joined(tmp_path, [[*named, *shipped(part), *named] for part in parts])
    assert refused == 0
    assert verdicts_of(found) == verdicts_of(expected)
    outside = [p for p in tmp_path.rglob("*") if p.is_symlink()]
    assert not outside
