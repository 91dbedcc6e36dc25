"""Every time that an answer shows of an event is that of the line it cites."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import pytest

from replication.evidence.importer import import_evidence
from replication.protocol.ground import events as ev
from tests.changed_evidence import INCIDENTS

STAMP = re.compile(r"^\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),(\d{3})\]")


@cache
def _lines(path: str) -> list[str]:
    return Path(path).read_text(encoding="utf-8").splitlines()


def _printed_at(source: ev.Source) -> int | None:
    """The time that a broker's line prints; None of what is no such line."""
    if source.line is None or not source.path.endswith(".log"):
        return None
    found = STAMP.match(_lines(source.path)[source.line - 1])
    if found is None:
        return None
    at = datetime.fromisoformat(found[1]).replace(tzinfo=UTC)
    return int(at.timestamp()) * 1000 + int(found[2])


def _events(folder: Path) -> Iterator[ev.Event]:
    imported = import_evidence([folder])
    for index in range(len(imported.partitions)):
        yield from imported.events_of(index)


@pytest.mark.parametrize(
    "name",
    ["unclean_election__4.1.1", "chaos__1.1.1__seed39__trace", "same_epoch_power_loss__1.1.1",
     "chaos__2.8.2__seed36", "healthy_rolling_restart__4.3.0"],
)  # fmt: skip
def test_an_event_has_the_time_of_its_line(name: str) -> None:
    asked = stops = 0
    for event in _events(INCIDENTS / name):
        at = None if event.source is None else _printed_at(event.source)
        if at is None or event.source is None:
            continue
        assert event.observed_at == at, event
        asked += 1
        clean = isinstance(event.fact, ev.ReplicaStopped) and event.fact.reason == "clean"
        if clean and event.source.line is not None:
            line = _lines(event.source.path)[event.source.line - 1]
            assert "shut down completed" in line, line
            stops += 1
    assert asked > 10
    # There a broker stops cleanly and starts again, so that its stop is an event.
    assert stops or name != "chaos__2.8.2__seed36"
