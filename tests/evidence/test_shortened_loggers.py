"""Broker logs whose layout shortens the logger, leaves it out, or puts it in another place."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from replication.cli import main
from replication.evidence.broker_logs.broker_log import LogLineFact, is_broker_log, read_broker_log

LINES = (
    ("kafka.server.ReplicaFetcherThread", "[ReplicaFetcher replicaId=1, leaderId=2, fetcherId=0] "
     "Truncating partition t-0 to local high watermark 20"),
    ("kafka.log.Log", "[Log partition=t-0, dir=/data] Truncating to offset 20"),
    ("kafka.cluster.Partition", "[Partition t-0 broker=1] ISR updated to 1,2 and version updated "
     "to [5]"),
    ("kafka.server.KafkaServer", "[KafkaServer id=1] started"),
)  # fmt: skip
KINDS = ["truncation_reason", "truncated", "isr_updated", "server_started"]
Layout = Callable[[int, str, str], str]
LAYOUTS: dict[str, Layout] = {
    "Kafka's own": lambda s, c, m: f"[2024-03-01 10:00:0{s},123] INFO {m} ({c})",
    "%d %p [%t] %c: %m": lambda s, c, m: f"2024-03-01 10:00:0{s},123 INFO  [main] {c}: {m}",
    "%d [%t] %p %c - %m": lambda s, c, m: f"2024-03-01 10:00:0{s}.123 [main] INFO {c} - {m}",
    "%d %p [%c] (%t) %m": lambda s, c, m: f"2024-03-01 10:00:0{s},123 INFO  [{c}] (main) {m}",
    "JSON": lambda s, c, m: json.dumps(
        {"@timestamp": f"2024-03-01T10:00:0{s}.123Z", "logger_name": c, "message": m}
    ),
}
NAMES: dict[str, Callable[[str], str]] = {
    "whole": lambda name: name,
    "%c{1}": lambda name: name.rpartition(".")[2],
    "%c{2}": lambda name: ".".join(name.split(".")[-2:]),
    "%c{1.}": lambda name: ".".join(p[0] for p in name.split(".")[:-1]) + "." + name.split(".")[-1],
    "%c{1.1.1}": lambda name: ".".join(part[0] for part in name.split(".")),
    "another's": lambda _: "com.example.Appender",
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_lines_are_read_whatever_the_logger_is_called(
    layout: str, name: str, tmp_path: Path
) -> None:
    """In a file that is too large to be tried line by line, as pasted ones are."""
    rows = [LAYOUTS[layout](s, NAMES[name](c), m) for s, (c, m) in enumerate(LINES)]
    log = tmp_path / "server.log"
    log.write_text("".join(f"{row}\n" for row in rows))
    assert is_broker_log(log)
    facts = [f for f in read_broker_log(log) if isinstance(f, LogLineFact)]
    assert [f.kind for f in facts] == KINDS
    assert all(f.at is not None for f in facts)


@pytest.mark.parametrize("copies", [1, 20_000])
def test_a_layout_that_is_not_read_is_named(
    copies: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "server.log"
    rows = [json.dumps({"when": "10:00", "text": message}) for _, message in LINES]
    log.write_text("".join(f"{row}\n" for row in rows) * copies)
    assert main(["diagnose", str(tmp_path)]) in (2, 3)
    told = capsys.readouterr()
    assert "in a layout that is not read" in told.out + told.err
