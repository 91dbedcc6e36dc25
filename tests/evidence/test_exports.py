"""What a shipper sent of several brokers, in one file, tells what their own logs tell."""

import json
from pathlib import Path
from typing import Any

import pytest

from replication.evidence.collecting.attribution import collect
from replication.evidence.collecting.envelopes import ShippedLine, shipped_lines
from replication.evidence.digest import DigestLines

INCIDENT = Path(__file__).parent.parent / "incidents" / "unclean_election__2.8.2"
LOGS = ("server.log", "state-change.log", "controller.log")
# A line that is refused, as anybody may make a broker print it: at the beginning it hides no other.
FOREIGN = (1, LOGS[0], json.dumps({"timestamp": 1, "topic": "t", "partition": 0, "offset": 5}))


def vector(broker: int, log: str, line: str) -> dict[str, Any]:
    return {"message": line, "host": f"k{broker}", "file": f"/var/log/kafka/{log}"}


def searched(broker: int, log: str, line: str) -> dict[str, Any]:
    path = {"file": {"path": f"/var/log/kafka/{log}"}}
    return {"_index": "logs", "_source": {"message": line, "host": {"name": f"k{broker}"},
                                          "log": path}}  # fmt: skip


def in_kubernetes(broker: int, log: str, line: str) -> dict[str, Any]:
    return {"log": f"{line}\n", "stream": "stdout", "kubernetes": {"pod_name": f"k{broker}",
            "container_name": log}}  # fmt: skip


def lines() -> list[tuple[int, str, str]]:
    """Broker, log and line, of all brokers by turns."""
    found = []
    for broker in (1, 2, 3):
        for log in LOGS:
            text = (INCIDENT / f"broker-{broker}" / log).read_text()
            found += [(n, broker, log, line) for n, line in enumerate(text.splitlines())]
    return [row[1:] for row in sorted(found)]


def told(path: Path) -> set[tuple[Any, ...]]:
    found = collect([path])
    rows = {
        (log.broker, fact.kind, fact.at, fact.topic, fact.partition, str(fact.fields))
        for log in found.logs
        for fact in (*log.telling, *log.processes)
    }
    return rows | {(log.broker, log.count) for log in found.logs}


@pytest.mark.parametrize("shipper", [vector, searched, in_kubernetes])
def test_an_export_tells_what_the_logs_tell(shipper: Any, tmp_path: Path) -> None:
    for broker, log, line in lines():
        into = tmp_path / "copied" / f"k{broker}"
        into.mkdir(parents=True, exist_ok=True)
        with (into / log).open("a") as stream:
            stream.write(line + "\n")
    sent = "".join(json.dumps(shipper(*row)) + "\n" for row in [FOREIGN, *lines()])
    (tmp_path / "export.jsonl").write_text(sent)
    assert told(tmp_path / "export.jsonl") == told(tmp_path / "copied")


def test_a_line_has_the_number_of_its_envelope(tmp_path: Path) -> None:
    rows = lines()
    cut = next(n for n, row in enumerate(rows, 1) if " Truncating to offset " in row[2])
    path = tmp_path / "export.jsonl"
    path.write_text("".join(json.dumps(vector(*row)) + "\n" for row in rows))
    (fact,) = [f for log in collect([path]).logs for f in log.telling if f.line == cut]
    assert fact.kind == "truncated"


def test_what_is_no_envelope_is_told(tmp_path: Path) -> None:
    path = tmp_path / "export.jsonl"
    rows = [json.dumps(vector(*row)) for row in lines()[:400]]
    path.write_text("\n".join([*rows[:200], '{"message": "cut', "no JSON", *rows[200:], ""]))
    found = {u.where: u.reason for u in collect([path]).unreadable}
    assert set(found) == {"line 201", "line 202"}
    assert "no whole JSON" in found["line 201"]


def test_one_senders_export_is_a_log(tmp_path: Path) -> None:
    path = tmp_path / "export.jsonl"
    rows = [row for row in lines() if row[:2] == (1, "server.log")]
    path.write_text("".join(json.dumps(vector(*row)) + "\n" for row in rows))
    found = collect([path])
    assert ([log.broker for log in found.logs], found.unpacked.folders) == ([1], {})


STAMP = "2026-11-20T15:18:14.123456789Z"
# How a line of a digest comes: the stream takes each of them.
ENVELOPES = {
    "message": lambda host, line: json.dumps({"message": line, "host": host, "file": "/d.log"}),
    "log": lambda host, line: json.dumps({"log": f"{line}\n", "kubernetes": {"pod_name": host}}),
    "no host": lambda host, line: json.dumps({"msg": line}),
    "taken apart": lambda host, line: json.dumps({"host": host, **json.loads(line)}),
    "taken apart, no host": lambda host, line: json.dumps({"level": "info", **json.loads(line)}),
    "container": lambda host, line: f"{STAMP} stdout F {line}",
    "docker": lambda host, line: json.dumps({"log": f"{line}\n", "stream": "stdout"}),
    "array": lambda host, line: json.dumps([{"message": line, "host": host}]),
}


@pytest.mark.parametrize("brokers", [(1,), (1, 2, 3)])
@pytest.mark.parametrize("kind", ENVELOPES)
def test_a_digest_in_envelopes_tells_what_it_tells_without(
    kind: str, brokers: tuple[int, ...], tmp_path: Path
) -> None:
    sent = []
    for broker in brokers:
        digest = digest_lines(INCIDENT / f"broker-{broker}" / "disk-final")
        (tmp_path / "plain").mkdir(exist_ok=True)
        (tmp_path / "plain" / f"{broker}.lines").write_text("\n".join(digest) + "\n")
        sent += [ENVELOPES[kind](f"k{broker}", line) for line in digest]
    (tmp_path / "sent.jsonl").write_text("\n".join(sent) + "\n")
    assert directories(tmp_path / "sent.jsonl") == directories(tmp_path / "plain")
    streamed = [line for each in sent for line in shipped_lines(each.encode())]
    assert all(isinstance(line, ShippedLine) and line.digest for line in streamed)


@pytest.mark.parametrize("kind", ["message", "no host"])
def test_a_digest_and_a_brokers_log_in_one_file_are_both_read(kind: str, tmp_path: Path) -> None:
    digest = digest_lines(INCIDENT / "broker-1" / "disk-final")
    log = (INCIDENT / "broker-1" / "server.log").read_text().splitlines()
    sent = [ENVELOPES[kind]("k1", line) for pair in zip(digest, log, strict=False) for line in pair]
    (tmp_path / "sent.jsonl").write_text("\n".join(sent) + "\n")
    found = collect([tmp_path / "sent.jsonl"])
    assert sum(log.count for log in found.logs) > 0
    assert len(found.directories) == 1


def digest_lines(directory: Path) -> list[str]:
    found: list[str] = []
    DigestLines(str(directory), 60, found.append).tell()
    return [line.strip() for line in found]


def directories(path: Path) -> list[tuple[Any, ...]]:
    """What is known of each log directory, wherever it was read."""
    return sorted(
        (each.broker, *((p.topic, p.partition, p.log_end_offset, p.spans)
                        for p in each.directory.partitions))
        for each in collect([path]).directories
    )  # fmt: skip
