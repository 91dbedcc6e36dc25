"""The order of a trace: gaps, duplicates, conflicts and generations, one by one and all at once."""

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replication.protocol.folding.sequencing import Gap, Sequencer, gap_of, in_order, with_gap
from replication.protocol.ground import wire
from replication.protocol.ground.events import (
    CoverageDeclared,
    Event,
    HighWatermarkAdvanced,
    InputEnded,
)
from replication.protocol.ground.topic_partition import State
from replication.protocol.judgement.bounded import fold_partition

EMPTY = State("c", "t", "", 0)


def event(sequence: int, content: str = "a", generation: int = 0, trace: str = "t") -> Event:
    return Event(
        event_id=f"{trace}{generation}-{sequence}-{content}",
        trace_id=trace,
        cluster_id="c",
        topic="t",
        topic_id="",
        partition=0,
        sequence=sequence,
        fact=InputEnded() if content == "end" else HighWatermarkAdvanced(1, sequence),
        trace_generation=generation,
    )


def one_by_one(events: Sequence[Event], limit: int = 10_000) -> tuple[list[str], Sequencer, int]:
    """What a stream makes of events: the ids it applied, and how many it found late."""
    sequencer = Sequencer()
    applied: list[str] = []
    late = 0
    for item in events:
        before = sequencer.trace
        if not sequencer.start_trace((item.trace_generation, item.trace_id)):
            sequencer.superseded += 1
            continue
        if sequencer.trace != before:
            applied = []
        late += sequencer.offer(item, limit).what == "late"
        applied += [e.event_id for e in sequencer.ready(limit)]
    return applied, sequencer, late


def reason_of(sequencer: Sequencer) -> str:
    """Why a trace has a gap, in words; none where it has none."""
    gap = gap_of(sequencer, EMPTY)
    return gap.reason if gap else ""


def test_arrival_order_does_not_matter_without_conflicts() -> None:
    events = [event(n) for n in range(50)] * 2 + [event(n, generation=1) for n in (0, 1, 3)]
    expected = in_order(events)
    for seed in range(20):
        shuffled = random.Random(seed).sample(events, len(events))
        applied, sequencer, _ = one_by_one(shuffled)
        assert applied == [e.event_id for e in expected.ready] == ["t1-0-a", "t1-1-a"]
        assert sequencer.counts() == expected.sequencer.counts()
        assert sequencer.gaps() == [(2, 3)]


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.builds(event, st.integers(0, 12), st.sampled_from(("a", "b", "end")), st.integers(0, 1)),
        max_size=40,
    )
)
def test_counts_add_up_and_the_bounded_form_agrees(events: list[Event]) -> None:
    ordered = in_order(events)
    assert sum(ordered.sequencer.counts().values()) == len(events)
    sequences = [e.sequence for e in ordered.ready]
    assert sequences == list(range(len(sequences)))
    applied, sequencer, late = one_by_one(events)
    assert sum(sequencer.counts().values()) == len(events)
    if not late:
        # Nothing arrived for a slot already applied: then the stream knows all that the bulk knows.
        assert applied == [e.event_id for e in ordered.ready]
        assert sequencer.counts() == ordered.sequencer.counts()
        assert sequencer.gaps() == ordered.sequencer.gaps()
        assert sequencer.ended == ordered.sequencer.ended


def test_two_contents_in_one_slot_count_for_nothing_whichever_came_first() -> None:
    events = [event(0), event(1), event(1, "b"), event(2), event(1)]
    ordered = in_order(events)
    assert [e.event_id for e in ordered.ready] == ["t0-0-a"]
    assert {e.event_id for e in ordered.conflicts} == {"t0-1-a", "t0-1-b"}
    assert ordered.sequencer.counts() == {
        "applied": 1, "duplicates": 1, "quarantined": 2, "held": 1, "superseded": 0,
    }  # fmt: skip
    apart = "event 1 of trace t was delivered with two contents, so neither counts"
    assert reason_of(ordered.sequencer) == f"trace_gap: {apart}"
    gap = gap_of(in_order([*events, event(5), event(6, "b"), event(6)]).sequencer, EMPTY)
    assert gap is not None
    assert gap.reason == (
        "trace_gap: events 3..4 of trace t are missing: they have not arrived; events 1, 6 of "
        "trace t were each delivered with two contents, so neither counts"
    )
    three = in_order([*events, event(1, "c")]).sequencer
    assert reason_of(three).endswith(
        "event 1 of trace t was delivered with several contents, so none counts"
    )
    row = {"invariant": "x", "verdict": "HOLDS", "reason": "own", "settled_by": []}
    [behind] = with_gap([row], gap)
    assert behind["settled_by"] == [
        "all of trace t again, with the missing events (3..4) and with one content of each event "
        "(1, 6), under a higher trace_generation (`import --generation N`), which replaces it"
    ]


def test_what_settles_a_gap_names_the_whole_trace_where_its_id_has_colons() -> None:
    sequencer = Sequencer()
    sequencer.start_trace((0, "inc:2026-11"))
    sequencer.offer(replace(event(3), trace_id="inc:2026-11"))
    gap = gap_of(sequencer, EMPTY)
    assert gap is not None
    assert gap.settled_by.startswith("the missing events (0..2 of trace inc:2026-11), or all")


def test_a_partition_stalls_beyond_the_limit_and_asks_to_be_folded_again() -> None:
    events = [event(n) for n in range(1, 40)]
    applied, sequencer, _ = one_by_one(events, limit=10)
    assert applied == []
    assert sequencer.stalled
    assert not sequencer.wants_refold
    assert sequencer.held_count == 39
    assert len(sequencer.held) == 0
    assert sequencer.offer(event(0), 10).what == "held"
    assert sequencer.wants_refold
    assert sum(sequencer.counts().values()) == 40


def test_a_stalled_partition_with_many_gaps_still_knows_its_first_one() -> None:
    events = [event(n) for n in range(1, 6_000, 2)]
    _, sequencer, _ = one_by_one(events, limit=10)
    assert sequencer.stalled
    assert sequencer.gaps()[0] == (0, 1)
    assert not sequencer.wants_refold


def test_a_long_contiguous_run_out_of_order_inside_the_limit_is_applied() -> None:
    events = [event(n) for n in range(1, 10)] + [event(0)]
    applied, sequencer, _ = one_by_one(events, limit=10)
    assert len(applied) == 10
    assert not sequencer.gaps()
    assert gap_of(sequencer, EMPTY) is None


def test_the_declared_end_is_said_in_the_reason() -> None:
    last = Event("end", "t", "c", "t", "", 0, 3, InputEnded())
    _, sequencer, _ = one_by_one([event(0), last])
    assert reason_of(sequencer) == (
        "trace_gap: events 1..2 of trace t are missing: the input ended without them"
    )


@pytest.mark.parametrize("subject", ["broker_log", "log_directory"])
@pytest.mark.parametrize("left_out", [1, 2, 3])
def test_a_trace_that_declares_evidence_complete_and_is_cut_off_decides_nothing(
    subject: str, left_out: int
) -> None:
    facts = [CoverageDeclared(subject, 1, True), *[HighWatermarkAdvanced(1, 1)] * 3, InputEnded()]
    trace = [replace(event(n), fact=fact) for n, fact in enumerate(facts)]
    cut = fold_partition(("c", "t", "", 0), trace[:-left_out])
    whole = fold_partition(("c", "t", "", 0), trace)

    assert all(v["verdict"] == "UNKNOWN" for v in cut.answer.verdicts)
    assert all(v["reason"].startswith("trace_gap") for v in cut.answer.verdicts)
    assert not any("trace_gap" in v["reason"] for v in whole.answer.verdicts)


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [("HOLDS", "UNKNOWN"), ("UNKNOWN", "UNKNOWN"), ("VIOLATED", "VIOLATED")],
)
def test_behind_a_gap_nothing_holds_and_what_is_proven_stays(verdict: str, expected: str) -> None:
    row = {"invariant": "x", "verdict": verdict, "reason": "own", "settled_by": ["log"],
           "assuming": ["disks_keep"] * (verdict != "UNKNOWN")}  # fmt: skip
    (changed,) = with_gap([row], Gap("trace_gap: why", "once more with --generation"))
    assert changed["verdict"] == expected
    assert row["reason"] == "own"
    assert changed["reason"].startswith("trace_gap") == (expected == "UNKNOWN")
    assert ("own" in changed["reason"]) == (verdict != "HOLDS")
    assert ("log" in changed["settled_by"]) == (verdict != "HOLDS")
    assert bool(changed["assuming"]) == (expected == "VIOLATED")
    assert any("--generation" in each for each in changed["settled_by"]) == (expected == "UNKNOWN")


def derived(found: Event) -> Event:
    """The event with the id that import would give it."""
    return replace(found, event_id=wire.content_id(wire.to_row(found)))


def test_an_event_far_above_that_is_not_what_its_id_says_is_named() -> None:
    """Whoever changes the number of an event and keeps its id makes a gap of a thousand."""
    trace = [derived(event(n)) for n in range(5)]
    gap = "trace_gap: events 5..1003 of trace t are missing: they have not arrived"
    moved, last = replace(trace[4], sequence=1_004), derived(event(1_005))
    assert reason_of(in_order([*trace, moved, last]).sequencer) == (
        f"{gap}; event 1004 behind them has not the event_id that its content gives: if `import` "
        "wrote it, it was changed since"
    )
    for honest in (derived(moved), replace(moved, event_id="writer-7/1004")):
        assert reason_of(in_order([*trace, honest, last]).sequencer) == gap


@settings(max_examples=100, deadline=None)
@given(st.sets(st.integers(0, 12), min_size=1), st.sampled_from(["w/{}", "{:032x}"]))
def test_an_event_whose_id_its_writer_gave_is_not_suspected(there: set[int], ids: str) -> None:
    """Also where such an id looks like one that import derives."""
    own = [replace(event(n), event_id=ids.format(n)) for n in there]
    assert "event_id" not in (reason_of(in_order(own).sequencer))
