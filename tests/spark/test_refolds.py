"""Every order of traces, generations, gaps and conflicts through a stream that may hold little.

What the stream cannot settle by itself is folded again from all stored events, as the fold query
does it; that comes to an end, and the answer is that of all events at once.
"""

import random
from itertools import islice, permutations
from typing import Any

import pytest

from replication.protocol.ground.events import Event
from replication.spark.partition_fold import PartitionFold
from replication.spark.shard_fold import REFOLD, ShardFold, fold_sorted
from tests.spark.event_rows import frame_of, made_trace, other_content, shuffled
from tests.spark.test_shard_fold import bounded_answer, judged

NAME = "cluster/t/id/0"
CLASSES = ("applied", "duplicates", "quarantined", "held", "superseded")


def refolded(events: list[Event], limit: int, size: int) -> bytes:
    """The state that folding all stored events again gives, in frames of that size."""
    ordered = sorted(events, key=lambda e: e.sequence)
    ordered.sort(key=lambda e: (e.trace_generation, e.trace_id), reverse=True)
    frames = [frame_of(ordered[n : n + size]) for n in range(0, len(ordered), size)]
    found = [
        bytes(row.state)
        for frame in fold_sorted(frames, limit, with_states=True)
        for row in frame.itertuples()
        if row.out_table == "_state"
    ]
    assert len(found) == 1, "a partition is handed over once"
    return found[0]


def streamed(batches: list[list[Event]], limit: int, size: int) -> tuple[PartitionFold, int]:
    """The partition after all micro-batches, and how many refolds that took."""
    data, stored, refolds, again = b"", [], 0, b""
    left = list(enumerate(batches))
    while left or again:
        ingest, batch = left.pop(0) if left else (len(batches), [])
        shard = ShardFold.decode(data, limit) if data else ShardFold(limit)
        if again:
            shard.adopt(NAME, again, ingest - 1)
        stored += batch
        if batch:
            shard.take(frame_of(batch, ingest))
        asked = any(out.table in (REFOLD, "_late") for out in shard.outcome())
        again = refolded(stored, limit, size) if asked else b""
        refolds += asked
        assert refolds <= len(batches) + 1, "it is folded again without end"
        data = shard.encode()
    return ShardFold.decode(data, limit).partition(NAME), refolds


def traces(chance: random.Random) -> list[Event]:
    """One to three traces of one partition, with gaps, conflicts and repeated events."""
    found: list[Event] = []
    for generation, name in chance.sample(
        [(0, "a"), (0, "b"), (1, "a"), (2, "c")], chance.randint(1, 3)
    ):
        trace = made_trace(rounds=chance.choice((0, 1, 2)), generation=generation, trace_id=name)
        trace = trace[: chance.randint(3, len(trace))]
        if chance.random() < 0.4:
            trace.pop(chance.randrange(len(trace)))
        if chance.random() < 0.4:
            trace.append(other_content(chance.choice(trace)))
        trace += chance.sample(trace, chance.choice((0, 0, 2)))
        found += trace
    return found


def orders(events: list[Event], chance: random.Random) -> list[Event]:
    """In order, backwards, by turns of the traces, or in any."""
    by_trace: list[Any] = sorted(events, key=lambda e: (e.trace_generation, e.trace_id, e.sequence))
    return chance.choice((by_trace, by_trace[::-1], sorted(events, key=lambda e: e.sequence),
                          shuffled(events, chance.randrange(1 << 30))))  # fmt: skip


def is_settled(events: list[Event], cut: int, limit: int, size: int) -> None:
    """Fails unless the events, so many in a micro-batch, give the answer of all at once."""
    batches = [events[n : n + cut] for n in range(0, len(events), cut)]
    part, _ = streamed(batches, limit, size)
    assert not part.asks_for_refold
    assert part.defect is None
    counts = part.counts()
    assert sum(counts[c] for c in CLASSES) == len(events)
    part.digests = {}
    part.answer()
    found = judged({(out.table, NAME): out.rows for out in part.out})
    expected = judged(bounded_answer(events))
    if part.sequencer.stalled:
        # Which slots are missing behind the first gap it cannot know of what it let go.
        found, expected = (
            {k: v if k[0] != "verdicts" else [row["verdict"] for row in v] for k, v in rows.items()}
            for rows in (found, expected)
        )
    assert found == expected


def marks_of(seed: int) -> list[pytest.MarkDecorator]:
    """When it is looked at: always, in `make test`, in `make sweeps`."""
    return [pytest.mark.slow] * (seed >= 10) + [pytest.mark.sweep] * (seed >= 20)


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=marks_of(seed)) for seed in range(100)])
def test_whatever_comes_in_whatever_order_is_settled(seed: int) -> None:
    chance = random.Random(seed)
    events = orders(traces(chance), chance)
    cut = chance.choice((1, 3, 7, 100))
    limit, size = chance.choice((0, 1, 2, 5, 10_000)), chance.choice((1, 2, 5, 9, 10_000))
    is_settled(events, cut, limit, size)


FEW = {
    "a superseded trace": [*made_trace(rounds=0, generation=1)[:3], *made_trace(rounds=0)[:2]],
    "two of one generation": [
        *made_trace(rounds=0, trace_id="a")[:3], *made_trace(rounds=0, trace_id="b")[:2]
    ],
    "three traces, two generations": [
        *made_trace(rounds=0, generation=1)[:2], made_trace(rounds=0)[1],
        *made_trace(rounds=0, trace_id="b", generation=1)[1:3],
    ],
    "a conflict and a repetition": [
        *made_trace(rounds=0)[:3], other_content(made_trace(rounds=0)[1]), made_trace(rounds=0)[2]
    ],
}  # fmt: skip


@pytest.mark.parametrize("step", [59, pytest.param(1, marks=pytest.mark.sweep)])
@pytest.mark.parametrize("what", FEW)
@pytest.mark.parametrize(
    "limit", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2, 10_000))]
)
def test_every_order_of_a_few_is_settled(what: str, limit: int, step: int) -> None:
    """Here of the 120 orders one in `step`."""
    for order in islice(permutations(FEW[what]), 0, None, step):
        for cut, size in ((1, 1), (1, 10_000), (2, 2), (5, 1)):
            is_settled(list(order), cut, limit, size)


@pytest.mark.parametrize("size", range(1, 12))
def test_a_superseded_trace_delays_no_slot_of_the_winning_one(size: int) -> None:
    """Of a slot with two contents both have to be seen at once; another trace has other slots."""
    winner = made_trace(rounds=0, generation=1)[:8]
    part = PartitionFold.decode(NAME, refolded([*winner, *made_trace(rounds=0)[:8]], 1, size))
    assert (part.counts()["applied"], part.sequencer.stalled) == (8, False)
