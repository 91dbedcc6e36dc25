"""The events that micro-batches of shipped lines leave, folded: the answer of one import of all."""

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

from replication.evidence.collecting.envelopes import NotALine, ShippedLine, shipped_lines
from replication.evidence.event_dumps import read_events
from replication.evidence.importer import import_evidence
from replication.evidence.shipping import compaction
from replication.evidence.shipping.live_join import LiveJoin, named
from replication.protocol.ground.events import Event
from replication.protocol.judgement.bounded import fold_all
from tests.evidence.shipping.test_spool import SHIPPED, folder_of, sent_of

TOPIC_ID = "Yrrx609NQFi16HNtKNw7XQ"


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


@pytest.mark.parametrize("together", [2, 32])
@pytest.mark.parametrize("incident", SHIPPED)
def test_at_the_end_all_partitions_are_as_one_import_says(
    incident: str, together: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "TOGETHER", together)
    chance = random.Random(3)
    sent = sent_of(incident)
    order = sorted(range(len(sent)), key=lambda n: n + chance.uniform(0, 60))
    live = LiveJoin(tmp_path / "live", tmp_path / "events")
    batches, shipped = 5 if together == 32 else 14, 0
    for number in range(batches):
        part = order[number * len(order) // batches : (number + 1) * len(order) // batches]
        again = chance.sample(order[: part and order.index(part[0])], 40) if number else []
        lines = [line for n in (*part, *again) for line in shipped_lines(sent[n])]
        shipped += len(lines)
        live.step(number, lines)
    if together == 2:
        kept = [p.read_text().count("\n") for p in (tmp_path / "live").rglob("*.log")]
        logs = {(n.host, n.path) for each in sent for n in shipped_lines(each)}
        assert len(kept) <= 4 * len(logs)
        assert sum(kept) < shipped
    copied = folder_of(sent, tmp_path / "copied")
    expected = [named(event, "cluster") for event in import_evidence([copied]).events()]
    assert answers(newest(tmp_path / "events")) == answers(expected)


def test_a_topic_whose_id_is_told_late_stays_one_partition(tmp_path: Path) -> None:
    sent = sent_of(SHIPPED[0])
    lines = [line for each in sent for line in shipped_lines(each)]
    without = [line for line in lines if TOPIC_ID not in getattr(line, "text", "")]
    live = LiveJoin(tmp_path / "live", tmp_path / "events")
    one = ("cluster", "t", "", 0)
    assert live.step(0, without).changed == [one]
    assert set(live.step(1, lines).changed) <= {one}
    started = LiveJoin(tmp_path / "live", tmp_path / "events")
    assert started.step(2, lines).changed == []
    copied = folder_of(sent, tmp_path / "copied")
    expected = [named(event, "cluster", "") for event in import_evidence([copied]).events()]
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


def test_what_is_remembered_changes_nothing(tmp_path: Path) -> None:
    """One that remembers writes what others write of which each has just been started."""
    for incident in SHIPPED:
        sent = sent_of(incident)
        kept = LiveJoin(tmp_path / incident / "kept", tmp_path / incident / "a")
        for number in range(6):
            part = sent[number * len(sent) // 6 : (number + 1) * len(sent) // 6]
            lines = [line for each in part for line in shipped_lines(each)]
            started = LiveJoin(tmp_path / incident / "started", tmp_path / incident / "b")
            one, other = kept.step(number, lines), started.step(number, lines)
            assert (one.taken, one.changed) == (other.taken, other.changed)
            name = f"{number:010}.jsonl"
            assert [(kept.out / name).exists() and plain(kept.out / name)] == [
                (started.out / name).exists() and plain(started.out / name)
            ]
        assert any(memory.told for memory in kept.memory.values())


def plain(path: Path) -> list[dict[str, Any]]:
    """Events without the folders that the two spools lie in."""
    text = path.read_text().replace("/kept/", "/").replace("/started/", "/")
    found = [json.loads(line) for line in text.splitlines()]
    return [
        {k: v for k, v in event.items() if k not in ("source", "event_id", "trace_id")}
        for event in found
    ]


def test_the_same_hour_shipped_again_and_again_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor where its files have been made one."""
    monkeypatch.setattr(compaction, "TOGETHER", 2)
    lines = [line for each in sent_of(SHIPPED[1]) for line in shipped_lines(each)]
    live = LiveJoin(tmp_path / "live", tmp_path / "events")
    assert live.step(0, lines).changed
    for number in range(1, 5):
        again = live.step(number, lines)
        assert (again.changed, again.events) == ([], 0)
    assert [path for path in live.folder.rglob("*.log") if path.name.endswith("m.log")]


def test_refused_envelopes_and_no_evidence_are_told(tmp_path: Path) -> None:
    live = LiveJoin(tmp_path / "live", tmp_path / "events")
    joined = live.step(0, [NotALine("x"), *shipped_lines(b"hello world")])
    assert (joined.taken.rows, joined.taken.kept, len(joined.taken.refused)) == (2, 1, 1)
    assert joined.events == 0
    assert joined.notes


PRINTED = re.compile(r"\[(\S+) (\S+),(\d+)\] (\w+) (.*) \((\S+)\)", re.DOTALL)


def in_json(sent: list[bytes]) -> list[bytes]:
    """The lines as brokers whose layout prints JSON would have written them, taken apart by the
    shipper, which adds its own fields."""
    messages: list[list[Any]] = []
    for each in sent:
        [line] = shipped_lines(each)
        assert isinstance(line, ShippedLine)
        place = (line.host, Path(line.path).name)
        if line.text.startswith("[2"):
            messages.append([place, line.text])
        else:
            last = next(m for m in reversed(messages) if m[0] == place)
            last[1] += "\n" + line.text
    found = []
    for (host, name), text in messages:
        head, *rest = text.split("\n")
        match = PRINTED.fullmatch(head)
        if match is not None:
            fields = {"@timestamp": f"{match[1]}T{match[2]}.{match[3]}Z", "level": match[4],
                      "loggerName": match[6], "message": "\n".join([match[5], *rest]),
                      "host": host, "file": f"/logs/{name}", "stream": "stdout"}  # fmt: skip
            found.append(json.dumps(fields).encode())
    return found


def test_brokers_that_print_json_are_read_as_those_that_print_text(tmp_path: Path) -> None:
    sent = sent_of("unclean_election__2.8.2")
    events = {}
    for kind, lines in (("text", sent), ("json", in_json(sent))):
        live = LiveJoin(tmp_path / kind, tmp_path / f"{kind}-events", {"cluster": "Id-1"})
        for number in range(3):
            part = lines[number * len(lines) // 3 : (number + 1) * len(lines) // 3]
            live.step(number, [line for each in part for line in shipped_lines(each)])
        events[kind] = newest(tmp_path / f"{kind}-events")
    verdicts = {kind: [(v[0], [w[:2] for w in v[1]], len(v[2])) for v in answers(found)]
                for kind, found in events.items()}  # fmt: skip
    assert verdicts["json"] == verdicts["text"]
    assert any(losses for _, _, losses in verdicts["json"])
