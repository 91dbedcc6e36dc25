"""Clocks that differ by minutes, or by time zones, change no verdict and no lost offset.

Every node's log is shifted by an amount of its own, and so is the clock of the producers' log; what
brokers and producers wrote into segments and the metadata log stays, so those differ as well.
"""

import json
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from replication.protocol.judgement.bounded import FoldedPartition
from tests.changed_evidence import as_captured, broker_logs, each_incident, folded_with

STAMP = re.compile(r"^\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),(\d{3})\]", re.MULTILINE)
MINUTE = 60
HOUR = 60 * MINUTE

# Seconds added to the clock of the first, second .. node, and to that of the producers.
SKEWS: dict[str, tuple[tuple[int, ...], int]] = {
    "seven minutes apart": ((7 * MINUTE, -7 * MINUTE, 7 * MINUTE, -7 * MINUTE), 0),
    "the other way round": ((-7 * MINUTE, 7 * MINUTE, 0, 7 * MINUTE), -7 * MINUTE),
    "producers ahead": ((0, 0, 0, 0), 7 * MINUTE),
    "time zones": ((5 * HOUR + HOUR // 2, -8 * HOUR, HOUR, 0), 0),
    "producers in another zone": ((0, 2 * MINUTE, -3 * MINUTE, 0), -9 * HOUR),
}
QUICK = ("last_replica_standing__4.1.1__elr_off", "same_epoch_power_loss__1.1.1")


def shift_log(path: Path, seconds: int) -> None:
    """Every time stamp of a broker's log, as its clock would have printed it."""

    def moved(match: re.Match[str]) -> str:
        shown = datetime.strptime(match[1], "%Y-%m-%d %H:%M:%S") + timedelta(seconds=seconds)
        return f"[{shown:%Y-%m-%d %H:%M:%S},{match[2]}]"

    text = path.read_bytes().decode("utf-8", "surrogateescape")
    path.write_bytes(STAMP.sub(moved, text).encode("utf-8", "surrogateescape"))


def shift_acknowledgements(path: Path, seconds: int) -> None:
    """The producers' clock."""
    lines = []
    for line in path.read_text().splitlines():
        row = json.loads(line)
        if isinstance(row.get("ts"), str):
            at = datetime.fromisoformat(row["ts"]) + timedelta(seconds=seconds)
            row["ts"] = at.isoformat()
        elif row.get("ts") is not None:
            row["ts"] += seconds * 1000
        lines.append(json.dumps(row))
    path.write_text("\n".join(lines) + "\n")


def skewed(skew: str) -> Callable[[Path], None]:
    seconds, producers = SKEWS[skew]

    def change(evidence: Path) -> None:
        nodes = sorted(p for p in evidence.iterdir() if p.is_dir())
        for number, node in enumerate(nodes):
            for path in broker_logs(evidence):
                if path.parent == node:
                    shift_log(path, seconds[number % len(seconds)])
        shift_acknowledgements(evidence / "acks.jsonl", producers)

    return change


def conclusions(folded: list[FoldedPartition]) -> list[Any]:
    """All that must not rest on clocks. Only a loss's cause does, where several elections fit."""
    return [
        (
            f.identity,
            [(v["invariant"], v["verdict"]) for v in f.answer.verdicts],
            sorted(
                (offset, x["tier"], x["status"])
                for x in f.answer.losses
                for offset in range(x["first_offset"], x["end_offset"])
            ),
            [
                (d["replicas"], d["first_offset"], d["end_offset"], d["status"])
                for d in f.answer.divergences
            ],
            [(e["leader_epoch"], e["leader"], e["kind"]) for e in f.answer.partition["elections"]],
        )
        for f in folded
    ]


RECREATED = "not_loss_traps__4.3.0__topic_recreated"


def without_topic_ids(evidence: Path) -> None:
    """As producers' logs mostly are: they name the topic only."""
    path = evidence / "acks.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for row in rows:
        row.pop("topic_id", None)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.mark.parametrize("skew", SKEWS)
@pytest.mark.parametrize("incident", each_incident(QUICK))
def test_clocks_decide_nothing(incident: str, skew: str) -> None:
    assert conclusions(folded_with(incident, skewed(skew))) == conclusions(as_captured(incident))


def test_a_topic_created_anew_is_told_apart_without_topic_ids() -> None:
    assert conclusions(folded_with(RECREATED, without_topic_ids)) == conclusions(
        as_captured(RECREATED)
    )


@pytest.mark.parametrize("skew", SKEWS)
def test_promises_of_a_topic_created_anew_are_not_told_apart_by_clocks(skew: str) -> None:
    """Which incarnation they are of is then unknown at worst, and no record is missed."""

    def change(evidence: Path) -> None:
        without_topic_ids(evidence)
        skewed(skew)(evidence)

    for folded in folded_with(RECREATED, change):
        assert folded.answer.losses == []
        assert "VIOLATED" not in {v["verdict"] for v in folded.answer.verdicts}
