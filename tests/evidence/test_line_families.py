"""Every line family reads its own example lines, alone and inside a file of any layout."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from replication.evidence.broker_logs.broker_log import LogLineFact, read_broker_log
from replication.evidence.broker_logs.line_families import FAMILIES, INDEX, short_logger
from replication.evidence.broker_logs.line_families.family import Example, Found, LineFamily
from replication.evidence.unreadable import Unreadable

CASES = [
    pytest.param(family, example, id=f"{family.kind or 'ignored'}-{number}")
    for family in FAMILIES
    for number, example in enumerate(family.examples)
]
# Where the classes live; the reader must know a logger in any of Kafka's packages.
PACKAGES = ("kafka.server", "org.apache.kafka.storage.internals.log")


def full_names(family: LineFamily) -> Iterator[str]:
    for logger in family.loggers:
        if "." in logger:
            yield logger
        else:
            yield from (f"{package}.{logger}" for package in PACKAGES)


def as_found(facts: list[LogLineFact]) -> tuple[Found, ...]:
    return tuple(Found(fact.fields, fact.broker, fact.topic, fact.partition) for fact in facts)


@pytest.mark.parametrize(("family", "example"), CASES)
def test_example(family: LineFamily, example: Example) -> None:
    for logger in (*family.loggers, None):
        answer = INDEX.read(example.message, logger)
        assert answer is not None
        assert answer[0].kind == family.kind
        assert tuple(answer[1] or ()) == example.found


@pytest.mark.parametrize(("family", "example"), CASES)
def test_other_loggers_do_not_count(family: LineFamily, example: Example) -> None:
    assert INDEX.read(example.message, "GroupCoordinator") is None


def test_every_family_has_an_example_and_says_for_which_versions() -> None:
    assert [
        family.pattern for family in FAMILIES if not (family.examples and family.versions)
    ] == []


@pytest.mark.parametrize("layout", ["brackets", "brackets and thread", "logger first", "json"])
def test_every_example_is_found_in_a_file(layout: str, tmp_path: Path) -> None:
    """The search for beginnings of lines and the families must agree, with each logger."""
    path = tmp_path / "server.log"
    lines: list[str] = ["[2026-11-20 15:17:30,518] INFO Registered x (kafka.utils.Other)"]
    expected: dict[int, tuple[str, tuple[Found, ...]]] = {}
    if layout != "brackets":
        lines = []
    for family in FAMILIES:
        for item in family.examples:
            if "\n" in item.message and layout != "json":
                continue
            for logger in full_names(family):
                lines.append(line_of(layout, item.message, logger))
                expected[len(lines)] = (family.kind, item.found)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    found: dict[int, list[LogLineFact]] = {}
    for fact in read_broker_log(path):
        assert isinstance(fact, LogLineFact), fact
        assert fact.at == 1795187850518
        found.setdefault(fact.line, []).append(fact)
    for number, (kind, wanted) in expected.items():
        facts = found.get(number, [])
        assert as_found(facts) == wanted, lines[number - 1]
        assert {fact.kind for fact in facts} <= {kind}, lines[number - 1]


def line_of(layout: str, message: str, logger: str) -> str:
    if layout == "brackets":
        return f"[2026-11-20 15:17:30,518] INFO {message} ({logger})"
    if layout == "brackets and thread":
        return f"2026-11-20 15:17:30,518 INFO {message} ({logger}) [data-plane-handler-0]"
    if layout == "logger first":
        return f"2026-11-20 15:17:30,518 INFO [main] {logger}:12 - {message}"
    time = {"timestamp": "2026-11-20T15:17:30.518Z", "level": "INFO"}
    return json.dumps({**time, "loggerName": logger, "message": message})


@pytest.mark.parametrize(("family", "example"), CASES)
def test_cut_lines_never_raise(family: LineFamily, example: Example) -> None:
    """A line cut anywhere is no line of ours, another wording, or (its end missing) still this."""
    for end in range(0, len(example.message), 7):
        INDEX.read(example.message[:end], family.loggers[0])
        INDEX.read(example.message[:end] + "\ufffd", None)


def test_a_family_that_claims_a_line_it_cannot_read_says_so(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_text(
        "[2026-11-20 15:17:30,518] INFO [Partition t-0 broker=1] ISR updated to nobody "
        "(kafka.cluster.Partition)\n"
        "[2026-11-20 15:17:30,519] INFO [Partition t-0 broker=1] Something new about t-0 "
        "(kafka.cluster.Partition)\n",
        encoding="utf-8",
    )
    (only,) = read_broker_log(path)
    assert isinstance(only, Unreadable)
    assert only.where == "line 1"
    assert "isr_updated" in only.reason


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("kafka.log.UnifiedLog$", "UnifiedLog"),
        ("org.apache.kafka.storage.internals.log.UnifiedLog", "UnifiedLog"),
        ("kafka.controller.ReplicaStateMachine$BrokerChangeListener", "BrokerChangeListener"),
        ("state.change.logger", "state.change.logger"),
    ],
)
def test_short_logger(name: str, short: str) -> None:
    assert short_logger(name) == short
