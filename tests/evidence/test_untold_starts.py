"""A broker's log that begins anywhere tells of each start that it shows, once and in its place."""

from datetime import UTC
from pathlib import Path

import pytest

from replication.evidence.collecting.broker_text_log import read_log, with_excerpts
from replication.evidence.collecting.installations import with_writers

INCIDENTS = Path(__file__).parent.parent / "incidents"
FIRST = (b"Log4jController", b"INFO starting (kafka.server.KafkaServer)")
# A broker of each kind of controller that starts more than once with records in its log.
LOGS = (
    "unclean_election__2.8.2/broker-1/server.log",
    "unclean_election__4.1.1/broker-1/server.log",
    "acks1_loss__3.9.1/broker-1/server.log",
)


def starts(folder: Path, *pieces: list[bytes]) -> list[int]:
    """How many starts are told of in each piece of a rotated log, the newest last."""
    logs = []
    for number, lines in enumerate(reversed(pieces)):
        path = folder / ("server.log" if number == 0 else f"server.log.{number}")
        path.write_bytes(b"".join(lines))
        logs.append(read_log(path, with_excerpts(path, UTC), None, []))
    found = with_writers(logs, lambda path: path, lambda _: [])
    told = [sum(f.kind == "process_started" for f in log.processes) for log in found]
    return list(reversed(told))


def lines_of(log: str) -> list[bytes]:
    return (INCIDENTS / log).read_bytes().splitlines(keepends=True)


@pytest.mark.parametrize("log", LOGS)
def test_without_first_lines_as_many_starts_are_told(log: str, tmp_path: Path) -> None:
    lines = lines_of(log)
    (told,) = starts(tmp_path, lines)
    loads = sum(b"Completed load of Log(" in line for line in lines)
    assert told > 1
    assert loads
    (left,) = starts(tmp_path, [line for line in lines if not any(f in line for f in FIRST)])
    # The first start of all loads nothing, and need not be told of.
    assert left in (told, told - 1)


@pytest.mark.parametrize("log", LOGS)
def test_a_rotation_within_a_start_makes_no_second_one(log: str, tmp_path: Path) -> None:
    lines = lines_of(log)
    (told,) = starts(tmp_path, lines)
    first = [n for n, line in enumerate(lines) if any(f in line for f in FIRST)][-1]
    for place in range(first + 1, min(first + 400, len(lines)), 31):
        assert sum(starts(tmp_path, lines[:place], lines[place:])) == told, place


def test_a_version_that_a_client_prints_is_no_start(tmp_path: Path) -> None:
    line = b"[2026-03-02 11:%02d:00,000] INFO %s\n"
    lines = [
        line % (1, b"[KafkaServer id=1] started (kafka.server.KafkaServer)"),
        line % (2, b"Kafka version: 2.8.2 (org.apache.kafka.common.utils.AppInfoParser)"),
        line % (9, b"[ReplicaFetcherManager on broker 1] Removed fetcher for partitions Set(t-0) "
                b"(kafka.server.ReplicaFetcherManager)"),
    ]  # fmt: skip
    assert starts(tmp_path, lines) == [0]
