"""The fold of a shard, without Spark: any cut into micro-batches gives the bounded answer."""

import gc
import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from benchmarks.core import events_of, steady
from replication.protocol.folding import fold
from replication.protocol.folding.codec import CorruptState
from replication.protocol.ground.events import Event, HighWatermarkAdvanced
from replication.protocol.ground.topic_partition import State
from replication.protocol.histories import ask
from replication.protocol.judgement import judge
from replication.protocol.judgement.bounded import fold_all
from replication.spark.partition_fold import (
    ANSWER_TABLES,
    TABLES,
    Out,
    PartitionFold,
    verdict_rows,
)
from replication.spark.shard_fold import (
    FIGURES,
    GARBAGE_AFTER,
    REFOLD,
    UNSETTLED,
    ShardFold,
    fold_sorted,
    out_frame,
)
from tests.protocol.test_growth import events_of as told_by
from tests.protocol.test_growth import truncations
from tests.spark.event_rows import frame_of, identified, made_trace, other_content, shuffled

NAME = "cluster/t/id/0"


def few_of(count: int) -> list[Any]:
    """Seeds, of which `make test` asks four, a quick run one: each answer on the way takes a tenth
    of a second."""
    return [
        pytest.param(n, marks=[pytest.mark.slow] * (n > 0) + [pytest.mark.sweep] * (n >= 4))
        for n in range(count)
    ]


def fold_in_batches(
    events: list[Event], sizes: list[int], limit: int = 10_000
) -> tuple[dict[tuple[str, str], Any], dict[str, int], list[Out]]:
    """(newest rows by table and partition, sums of figures, everything that came out)."""
    data: bytes | None = None
    rows: dict[tuple[str, str], Any] = {}
    sums: dict[str, int] = {}
    everything: list[Out] = []
    position = 0
    ingest = 0
    while position < len(events):
        size = sizes[ingest % len(sizes)]
        shard = ShardFold(limit) if data is None else ShardFold.decode(data, limit)
        shard.take(frame_of(events[position : position + size], ingest))
        for out in shard.outcome():
            everything.append(out)
            if out.table == FIGURES:
                for key, value in out.rows[0].items():
                    if key != "newest_event_time":
                        sums[key] = sums.get(key, 0) + value
            elif out.table in ANSWER_TABLES:
                assert out.replaces == bool(rows.get((out.table, out.topic_partition_id)))
                rows[(out.table, out.topic_partition_id)] = out.rows
        data = shard.encode()
        position += size
        ingest += 1
    return rows, sums, everything


def bounded_answer(events: list[Event]) -> dict[tuple[str, str], Any]:
    rows = {}
    for part in fold_all(events):
        name = "/".join(str(p) for p in part.identity)
        rows[("verdicts", name)] = verdict_rows(part.answer.verdicts)
        rows[("loss_ledger", name)] = part.answer.losses
        rows[("divergences", name)] = part.answer.divergences
        rows[("findings", name)] = part.answer.findings
        rows[("at_risk", name)] = [*part.answer.at_risk, *part.answer.past_risks]
    return rows


def judged(rows: dict[tuple[str, str], Any]) -> dict[tuple[str, str], Any]:
    return {k: v for k, v in rows.items() if k[0] != "replica_states" and v != []}


@pytest.mark.parametrize("sizes", [pytest.param([1], marks=pytest.mark.slow), [7, 3], [1000]])
def test_micro_batches_of_any_size_give_the_bounded_answer(sizes: list[int]) -> None:
    events = made_trace(0, rounds=2) + made_trace(1, rounds=1)
    rows, sums, _ = fold_in_batches(events, sizes)
    expected = judged(bounded_answer(events))
    assert judged(rows) == expected
    assert any(k[0] == "loss_ledger" for k in expected)
    assert sums["applied"] == sums["rows_in"] == len(events)


@pytest.mark.parametrize("seed", few_of(10))
def test_any_arrival_order_with_duplicates_gives_the_same(seed: int) -> None:
    events = made_trace(0, rounds=2)
    arrived = shuffled(events + events[::2], seed)
    rows, sums, _ = fold_in_batches(arrived, [5, 11])
    assert judged(rows) == judged(bounded_answer(events))
    assert sums["applied"] == len(events)
    assert sums["duplicates"] == len(events[::2])
    assert sums["held"] == 0


def test_garbage_is_looked_for_as_seldom_in_the_first_micro_batch_as_in_others() -> None:
    before = gc.get_threshold()
    gc.set_threshold(700)
    try:
        ShardFold().take(frame_of(events_of(steady(2, 10), 0)))
        assert gc.get_threshold()[0] == GARBAGE_AFTER
    finally:
        gc.set_threshold(*before)


def test_steady_traffic_changes_no_verdict() -> None:
    """What holds goes on to hold in the same words, however many records more there are."""
    _, _, out = fold_in_batches(events_of(steady(40, 10), 0), [60])
    micro_batches = len([o for o in out if o.table == FIGURES])
    assert sum(o.table == "replica_states" for o in out) == micro_batches > 5
    assert len([o for o in out if o.table == "verdicts"]) == 1


def test_a_gap_makes_what_holds_unknown_at_once_and_closes_again() -> None:
    events = made_trace(0)
    gap = events[:7] + events[8:]
    rows, sums, _ = fold_in_batches(gap, [10])
    verdicts = rows[("verdicts", NAME)]
    assert {v["verdict"] for v in verdicts} == {"UNKNOWN"}
    assert any(v["reason"].startswith("trace_gap: events 7 of trace") for v in verdicts)
    assert sums["held"] == len(events) - 8
    assert not any("event_id" in v["reason"] for v in verdicts)
    last = identified(replace(events[-1], sequence=1_001))
    moved = [*events, replace(events[7], sequence=1_000), last]
    told, _, _ = fold_in_batches(moved, [10])
    assert {v["verdict"] for v in told[("verdicts", NAME)]} == {"UNKNOWN", "VIOLATED"}
    assert any("event 1000 behind them has not" in v["reason"] for v in told[("verdicts", NAME)])
    assert judged(told) == judged(bounded_answer(moved))
    closed, after, _ = fold_in_batches([*gap, events[7]], [10])
    assert judged(closed) == judged(bounded_answer(events))
    assert after["held"] == 0


def test_a_conflict_in_one_micro_batch_counts_for_nothing() -> None:
    events = made_trace(0)
    arrived = [*events[:9], other_content(events[8]), *events[9:]]
    rows, sums, out = fold_in_batches(arrived, [1000])
    assert judged(rows) == judged(bounded_answer(arrived))
    assert sums["quarantined"] == 2
    refused = [r for o in out if o.table == "quarantine" for r in o.rows]
    assert {r["event_id"] for r in refused} == {events[8].event_id, arrived[9].event_id}
    assert {r["reason_code"] for r in refused} == {"sequence_conflict"}


def test_an_event_for_a_folded_slot_is_handed_out_to_be_looked_up() -> None:
    events = made_trace(0)
    late = other_content(events[3])
    _, sums, out = fold_in_batches([*events, late], [len(events), 1])
    assert [r for o in out if o.table == "_late" for r in o.rows] == [
        {"sequence": 3, "event_id": late.event_id, "trace_generation": 0, "trace_id": "trace"}
    ]
    assert sums["duplicates"] == 1


def test_a_stalled_partition_asks_for_a_refold_when_its_gap_closes() -> None:
    events = made_trace(0)
    _, sums, out = fold_in_batches([*events[1:], events[0]], [5], limit=8)
    asked = [o for o in out if o.table == REFOLD]
    assert [o.rows for o in asked] == [[{"next_sequence": 0}]]
    assert sums["held"] == len(events)


def test_where_all_hold_too_much_together_a_partition_with_news_lets_go_what_it_holds() -> None:
    """Nothing may be held any more: what waits counts as held, and is read again when it can be."""
    events, other = made_trace(0), made_trace(1)
    shard = ShardFold()
    shard.take(frame_of(events[5:15] + other[5:9], 0))
    list(shard.outcome())
    shard = ShardFold.decode(shard.encode(), 0)
    shard.take(frame_of(events[20:22], 1))
    figures = next(o for o in shard.outcome() if o.table == FIGURES).rows[0]
    assert (figures["held"], figures["held_in_state"]) == (2, -10)
    shard = ShardFold.decode(shard.encode())
    shard.take(frame_of(events[:5], 2))
    assert [o.topic_partition_id for o in shard.outcome() if o.table == REFOLD] == [NAME]
    counts = shard.partition("cluster/t/id/1").counts()
    assert counts["held_in_state"] == counts["held"] == 4


def test_a_refold_is_taken_over_and_its_events_are_ignored_when_they_come_by() -> None:
    events = made_trace(0)
    shard = ShardFold()
    shard.take(frame_of(events[:10], 0))
    list(shard.outcome())
    folded = ShardFold()
    folded.take(frame_of(events[:30], 0))
    state = folded.live[NAME].encode()
    shard = ShardFold.decode(shard.encode())
    shard.adopt(NAME, state, 2)
    shard.take(frame_of(events[10:30], 2))
    shard.take(frame_of(events[30:], 3))
    figures = next(o for o in shard.outcome() if o.table == FIGURES).rows[0]
    assert figures["ignored"] == 20
    assert figures["applied"] == len(events) - 10
    assert shard.live[NAME].counts()["applied"] == len(events)


def test_what_cannot_be_folded_again_is_said_once_and_asked_no_more() -> None:
    events = made_trace(0)
    shard = ShardFold(limit=8)
    shard.take(frame_of(events[1:12], 0))
    shard.take(frame_of(events[:1], 0))
    asked = [o.table for o in shard.outcome()]
    assert asked.count(REFOLD) == 1
    said = []
    for _ in range(2):
        shard = ShardFold.decode(shard.encode(), limit=8)
        shard.adopt(NAME, UNSETTLED + b"deleted", 0)
        said += list(shard.outcome())
    assert REFOLD not in [o.table for o in said]
    [note] = [row for o in said if o.table == "quarantine" for row in o.rows]
    assert (note["reason_code"], note["reason"], note["rows"]) == (
        "cannot_be_settled",
        "deleted",
        0,
    )
    newer = made_trace(0, generation=1, rounds=2)
    shard.take(frame_of(newer, 1))
    assert not shard.live[NAME].unsettled


def test_a_state_of_a_format_before_is_refused_in_words() -> None:
    """Kept bytes of an older analyzer are never misread."""
    older = ShardFold.decode(Path(__file__).with_name("states").joinpath("rpf3.bin").read_bytes())
    assert len(older.blobs) == 2
    for name, blob in older.blobs.items():
        with pytest.raises(CorruptState, match="is none of this fold"):
            PartitionFold.decode(name, blob)


def test_a_refold_older_than_what_was_seen_is_asked_for_again() -> None:
    events = made_trace(0)
    shard = ShardFold()
    shard.take(frame_of(events, 5))
    list(shard.outcome())
    folded = ShardFold()
    folded.take(frame_of(events[:30], 0))
    shard.adopt(NAME, folded.live[NAME].encode(), 4)
    assert [o.table for o in shard.outcome() if o.table == REFOLD] == [REFOLD]
    assert shard.live[NAME].counts()["applied"] == len(events)


@pytest.mark.slow
def test_a_higher_generation_replaces_the_answer_and_a_lower_one_changes_nothing() -> None:
    old, new = made_trace(0, rounds=1), made_trace(0, rounds=3, generation=1)
    for arrived in (old + new, new + old):
        rows, sums, _ = fold_in_batches(arrived, [9])
        assert judged(rows) == judged(bounded_answer(new))
        assert sums["applied"] == len(new)
        assert sums["superseded"] == len(old)


def test_an_unassigned_replica_is_quarantined_and_the_rest_goes_on() -> None:
    events = made_trace(0)
    stranger = identified(
        Event("", "trace", "cluster", "t", "id", 0, len(events), HighWatermarkAdvanced(9, 1))
    )
    rows, sums, out = fold_in_batches([*events, stranger], [1000])
    assert judged(rows) == judged(bounded_answer([*events, stranger]))
    assert sums["quarantined"] == 1
    refused = [r for o in out if o.table == "quarantine" for r in o.rows]
    assert refused[0]["event_id"] == stranger.event_id
    assert "replica 9 is not assigned" in refused[0]["reason"]


@pytest.mark.parametrize("size", [pytest.param(1, marks=pytest.mark.slow), 7])
def test_the_sorted_pass_gives_the_same_however_its_frames_are_cut(size: int) -> None:
    events = [
        *made_trace(0, rounds=2), *made_trace(1, rounds=2),
        *made_trace(1, generation=1, rounds=1),
    ]  # fmt: skip
    events += [other_content(events[20]), events[5]]
    ordered = sorted(
        events, key=lambda e: (e.partition, -e.trace_generation, e.sequence, random.random())
    )
    frames = [frame_of(ordered[i : i + size]) for i in range(0, len(ordered), size)]
    rows: dict[tuple[str, str], Any] = {}
    figures: dict[str, int] = {}
    for frame in fold_sorted(frames, 10_000, with_states=False):
        for table, name, text in zip(
            frame["out_table"], frame["topic_partition_id"], frame["rows"], strict=True
        ):
            if table == FIGURES:
                for key, value in json.loads(text)[0].items():
                    figures[key] = figures.get(key, 0) + (value or 0)
            elif table in ANSWER_TABLES:
                assert (table, name) not in rows
                rows[(table, name)] = json.loads(text)
    assert judged(rows) == judged(bounded_answer(events))
    expected: dict[str, int] = {}
    for part in fold_all(events):
        for key, value in part.counts.items():
            expected[key] = expected.get(key, 0) + value
    assert {key: figures[key] for key in expected} == expected
    assert figures["rows_in"] == len(events)


def test_broken_state_is_an_error_that_says_so() -> None:
    shard = ShardFold()
    shard.take(frame_of(made_trace(0)))
    data = shard.encode()
    with pytest.raises(CorruptState):
        ShardFold.decode(b"junk" + data)
    with pytest.raises(CorruptState):
        ShardFold.decode(data[: len(data) // 2]).partition(NAME)


def test_a_defect_of_the_fold_costs_one_partition_its_verdicts_and_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In every host alike: the event is quarantined, all verdicts are UNKNOWN, the rest goes on."""
    sick, well = made_trace(0, rounds=2), made_trace(1, rounds=1)
    untouched = judged(bounded_answer(well))
    sound = fold.apply

    def broken(state: State, event: Event) -> None:
        if event.event_id == sick[8].event_id:
            raise KeyError("surprise")
        sound(state, event)

    monkeypatch.setattr("replication.protocol.folding.fold.apply", broken)
    monkeypatch.setattr("replication.spark.shard_fold.STEPS", [None] * 99)
    rows, sums, out = fold_in_batches(sick + well, [7])
    assert {k: v for k, v in judged(rows).items() if k[1] != NAME} == untouched
    assert {v["verdict"] for v in rows["verdicts", NAME]} == {"UNKNOWN"}
    assert "KeyError: 'surprise'" in rows["verdicts", NAME][0]["reason"]
    assert judged(rows) == judged(bounded_answer(sick + well))
    assert (sums["applied"], sums["quarantined"]) == (len(sick + well) - 1, 1)
    (refused,) = [r for o in out if o.table == "quarantine" for r in o.rows]
    assert refused["reason_code"] == "cannot_be_folded"
    assert refused["event_id"] == sick[8].event_id


def test_a_defect_of_the_judge_costs_one_partition_its_verdicts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sick, well = made_trace(0, rounds=2), made_trace(1, rounds=1)
    untouched = judged(bounded_answer(well))
    sound = judge.answer

    def broken(state: State, *, strict: bool = False) -> Any:
        if state.partition == 0 and state.applied:
            raise ZeroDivisionError("surprise")
        return sound(state)

    monkeypatch.setattr("replication.protocol.judgement.judge.answer", broken)
    rows, sums, out = fold_in_batches(sick + well, [7])
    assert {k: v for k, v in judged(rows).items() if k[1] != NAME} == untouched
    assert judged(rows) == judged(bounded_answer(sick + well))
    assert {v["verdict"] for v in rows["verdicts", NAME]} == {"UNKNOWN"}
    (refused,) = [r for o in out if o.table == "quarantine" for r in o.rows]
    assert (refused["reason_code"], refused["rows"]) == ("cannot_be_judged", 0)
    assert sums["quarantined"] == 0


def test_a_partition_beyond_the_bounds_of_judging_costs_no_other_its_verdict(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In one micro-batch: the bound is one of steps, for each partition."""
    well = events_of(steady(4, 10), 1)
    hostile = [identified(replace(e, event_id="")) for e in told_by(truncations(60))]
    wanted = judged(bounded_answer(well))
    monkeypatch.setattr(ask, "MOST_STEPS_OF_ALL", 1_000)
    rows, _, _ = fold_in_batches([*hostile, *well], [1000])
    own = [row for key, row in judged(rows).items() if key[1] != next(iter(wanted))[1]]
    assert "more histories fit the evidence than are followed" in str(own)
    assert {k: row for k, row in judged(rows).items() if row not in own} == wanted


@pytest.mark.parametrize("seed", few_of(12))
def test_every_table_has_the_rows_that_were_counted_and_those_of_a_sorted_pass(seed: int) -> None:
    """Whatever comes, in whatever order: conflicts, duplicates, two traces, in any micro-batches.

    A late conflict is folded again as the stream would, from all that has come.
    """
    chance = random.Random(seed)
    generation = chance.randint(0, 1)
    events = made_trace(0, rounds=2)
    events += made_trace(0, rounds=2, generation=generation, trace_id="u")
    events += [other_content(chance.choice(events)) for _ in range(seed % 3)]
    arrived = shuffled(events + events[:: 3 + seed], seed)
    assert tables_of(arrived, [chance.randint(1, 30)]) == tables_of(arrived, None)


@pytest.mark.parametrize("sizes", [[1000], [5], None])
def test_several_imports_of_one_generation_are_said_once_whatever_comes_first(
    sizes: list[int] | None,
) -> None:
    """In the words of the laptop, by stream and replay; of a higher generation nothing is said."""
    first, second = made_trace(0, rounds=1), made_trace(0, rounds=1, trace_id="u")
    [told] = {part.several_imports for part in fold_all(first + second)}
    assert told is not None
    assert "The answer is of u alone" in told
    assert "--generation 1" in told
    for events in (first + second, second + first, [*first[:3], *second, *first[3:]]):
        rows = [json.loads(row) for row in tables_of(events, sizes)["quarantine"]]
        assert [(r["reason_code"], r["rows"], r["reason"]) for r in rows] == [
            ("several_imports", 0, told)
        ]
    again = made_trace(0, rounds=1, generation=1, trace_id="a")
    assert "quarantine" not in {t for t, r in tables_of(first + second + again, sizes).items() if r}
    assert fold_all(first + second + again)[0].several_imports is None


def tables_of(events: list[Event], sizes: list[int] | None) -> dict[str, list[str]]:
    """Each table's rows after all events; sizes: of the micro-batches, None for the sorted pass."""
    found: dict[str, list[str]] = {}
    counted: dict[str, int] = {}
    if sizes is None:
        _apply(sorted_pass(events), found, counted)
        return {table: sorted(rows) for table, rows in found.items()}
    data = ShardFold().encode()
    position = ingest = 0
    again: bytes | None = None
    while position < len(events) or again is not None:
        shard = ShardFold.decode(data)
        if again is not None:
            shard.adopt(NAME, again, ingest - 1)
        size = sizes[ingest % len(sizes)]
        piece = events[position : position + size]
        if piece:
            shard.take(frame_of(piece, ingest))
        frame = out_frame(shard.outcome())
        _apply([frame], found, counted)
        data = shard.encode()
        position, ingest, again = position + size, ingest + 1, None
        if frame["out_table"].isin(["_late", REFOLD]).any():
            known = pd.concat(list(sorted_pass(events[:position], with_states=True)))
            again = known[known["out_table"] == "_state"]["state"].iloc[0]
    return {table: sorted(rows) for table, rows in found.items()}


def sorted_pass(events: list[Event], with_states: bool = False) -> list[pd.DataFrame]:
    """What a replay makes of the events."""
    ordered = sorted(events, key=lambda e: (e.trace_generation, e.trace_id), reverse=True)
    ordered.sort(key=lambda e: (-e.trace_generation, [-ord(c) for c in e.trace_id], e.sequence))
    return list(fold_sorted([frame_of(ordered)], 10_000, with_states))


def _apply(
    frames: list[pd.DataFrame], found: dict[str, list[str]], counted: dict[str, int]
) -> None:
    """Writes what came out as the tables would, and holds the rows against the figures."""
    for frame in frames:
        for out in frame.itertuples():
            rows = json.loads(str(out.rows))
            if out.out_table == FIGURES:
                for key, change in rows[0].items():
                    if key.startswith("rows/"):
                        counted[key[5:]] = counted.get(key[5:], 0) + change
            elif out.out_table in TABLES:
                answer = out.out_table in ANSWER_TABLES
                before = [] if out.replaces or answer else found.get(str(out.out_table), [])
                found[str(out.out_table)] = [*before, *(json.dumps(row) for row in rows)]
    for table in TABLES:
        assert len(found.setdefault(table, [])) == counted[table], table
