"""The events that micro-batches of shipped lines leave, folded: the answer of one import of all."""

import random
from pathlib import Path
from typing import Any

import pytest

from replication.evidence.event_dumps import read_events
from replication.evidence.importer import import_evidence
from replication.evidence.shipping.envelopes import NotALine, shipped_lines
from replication.evidence.shipping.live_join import LiveJoin, named
from replication.protocol.ground.events import Event
from replication.protocol.judgement.bounded import fold_all
from tests.evidence.shipping.test_spool import SHIPPED, folder_of, sent_of


def answers(events: list[Event]) -> list[Any]:
    return [
        (f.identity, [(v["invariant"], v["verdict"], v["reason"]) for v in f.answer.verdicts],
         f.answer.losses, f.counts["quarantined"], f.counts["held"])
        for f in fold_all(events)
    ]  # fmt: skip


def newest(folder: Path) -> list[Event]:
    """What the fold keeps of the event files: of each partition its highest generation."""
    found: dict[tuple[str, str, str, int], list[Event]] = {}
    for path in sorted(folder.glob("*.jsonl")):
        for event in read_events(path):
            assert isinstance(event, Event)
            key = (event.cluster_id, event.topic, event.topic_id, event.partition)
            kept = found.setdefault(key, [])
            if kept and kept[0].trace_generation < event.trace_generation:
                kept.clear()
            kept.append(event)
    return [event for events in found.values() for event in events]


@pytest.mark.parametrize("incident", SHIPPED)
def test_at_the_end_all_partitions_are_as_one_import_says(incident: str, tmp_path: Path) -> None:
    chance = random.Random(3)
    sent = sent_of(incident)
    order = sorted(range(len(sent)), key=lambda n: n + chance.uniform(0, 60))
    live = LiveJoin(tmp_path / "live", tmp_path / "events")
    for number in range(5):
        part = order[number * len(order) // 5 : (number + 1) * len(order) // 5]
        lines = [line for n in part for line in shipped_lines(sent[n])]
        live.step(number, lines)
    copied = folder_of(sent, tmp_path / "copied")
    expected = [named(event, "cluster") for event in import_evidence([copied]).events()]
    assert answers(newest(tmp_path / "events")) == answers(expected)


def test_a_micro_batch_that_is_done_again_writes_the_same(tmp_path: Path) -> None:
    sent = sent_of(SHIPPED[0])
    live = LiveJoin(tmp_path / "live", tmp_path / "events")
    halves = [sent[: len(sent) // 2], sent[len(sent) // 2 :]]
    lines = [[line for each in half for line in shipped_lines(each)] for half in halves]
    live.step(0, lines[0])
    first = live.step(1, lines[1])
    written = (tmp_path / "events" / "0000000001.jsonl").read_bytes()
    assert first.events == written.count(b"\n") > 0
    again = live.step(1, lines[1])
    assert again.events == first.events
    assert (tmp_path / "events" / "0000000001.jsonl").read_bytes() == written


def test_the_same_hour_shipped_twice_changes_nothing(tmp_path: Path) -> None:
    lines = [line for each in sent_of(SHIPPED[1]) for line in shipped_lines(each)]
    live = LiveJoin(tmp_path / "live", tmp_path / "events")
    assert live.step(0, lines).changed
    twice = live.step(1, lines)
    assert (twice.changed, twice.events) == ([], 0)


def test_refused_envelopes_and_no_evidence_are_told(tmp_path: Path) -> None:
    live = LiveJoin(tmp_path / "live", tmp_path / "events")
    joined = live.step(0, [NotALine("x"), *shipped_lines(b"hello world")])
    assert (joined.taken.rows, joined.taken.kept, len(joined.taken.refused)) == (2, 1, 1)
    assert joined.events == 0
    assert joined.notes
