"""Another linear extension of the same causal order gives the same verdicts.

Each broker's own events and the controller's keep their order; between them, and for what clients
saw, any interleaving is drawn at random.
"""

import random
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from replication.evidence.importer import import_evidence
from replication.protocol.ground.events import Event
from replication.protocol.judgement.bounded import FoldedPartition, fold_partition, identity_of

INCIDENTS = Path(__file__).parent / "incidents"
QUICK = ("kip101_scenario_1__0.10.2.2__loss_only", "last_replica_standing__4.1.1__elr_off")
NAMES = sorted(p.name for p in INCIDENTS.iterdir() if p.is_dir())
FIXED = ("partition_described", "coverage_declared", "input_ended")


@cache
def partitions(incident: str) -> dict[tuple[str, str, str, int], list[Event]]:
    result: dict[tuple[str, str, str, int], list[Event]] = {}
    for event in import_evidence([INCIDENTS / incident]).events():
        result.setdefault(identity_of(event), []).append(event)
    return result


def stream_of(event: Event) -> Any:
    if event.fact.kind == "leadership_recorded":
        return "controller"
    if event.fact.kind == "fetch_requested":
        return getattr(event.fact, "leader", None)
    return getattr(event.fact, "replica", ("free", event.sequence))


def interleaved(events: list[Event], seed: int) -> Iterator[Event]:
    choose = random.Random(seed)
    first = [e for e in events if e.fact.kind in FIXED and e.fact.kind != "input_ended"]
    last = [e for e in events if e.fact.kind == "input_ended"]
    streams: dict[Any, list[Event]] = {}
    for event in events:
        if event.fact.kind not in FIXED:
            streams.setdefault(stream_of(event), []).append(event)
    waiting = [list(reversed(s)) for s in streams.values()]
    middle = []
    while waiting:
        stream = choose.choice(waiting)
        middle.append(stream.pop())
        waiting = [s for s in waiting if s]
    for sequence, event in enumerate([*first, *middle, *last]):
        yield replace(event, sequence=sequence)


def conclusions(folded: FoldedPartition) -> Any:
    answer = folded.answer
    return (
        [(v["invariant"], v["verdict"]) for v in answer.verdicts],
        [
            (x["first_offset"], x["end_offset"], x["tier"], x["status"], x["cause"], x["contract"])
            for x in answer.losses
        ],
        [
            (d["replicas"], d["first_offset"], d["end_offset"], d["status"])
            for d in answer.divergences
        ],
    )


@pytest.mark.parametrize(
    "incident",
    [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in NAMES],
)
def test_verdicts_do_not_depend_on_the_interleaving(incident: str) -> None:
    for identity, events in partitions(incident).items():
        expected = conclusions(fold_partition(identity, events))
        for seed in range(8):
            shuffled = list(interleaved(events, seed))
            assert len(shuffled) == len(events)
            assert conclusions(fold_partition(identity, shuffled)) == expected, seed
