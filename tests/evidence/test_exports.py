"""What a shipper sent of several brokers, in one file, tells what their own logs tell."""

import json
from pathlib import Path
from typing import Any

import pytest

from replication.evidence.collecting.attribution import collect

INCIDENT = Path(__file__).parent.parent / "incidents" / "unclean_election__2.8.2"
LOGS = ("server.log", "state-change.log", "controller.log")


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
    sent = "".join(json.dumps(shipper(*row)) + "\n" for row in lines())
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
