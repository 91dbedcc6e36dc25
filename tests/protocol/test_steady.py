"""The fast steps against fold.apply: on any trace the two leave the same state behind."""

import copy
from dataclasses import fields
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from replication.protocol.folding import fold, steady
from replication.protocol.ground import wire
from replication.protocol.ground.events import (
    FACT_TYPES,
    BecameFollower,
    BecameLeader,
    CoverageDeclared,
    Event,
    LeadershipRecorded,
    PartitionDescribed,
    Source,
    Truncated,
)
from replication.protocol.ground.topic_partition import State

OFFSETS = st.integers(0, 6)
REPLICAS = st.integers(1, 3)
EPOCHS = st.integers(0, 2)
ANY = {
    "int": OFFSETS,
    "str": st.sampled_from(["all", "1"]),
}


def hot_fact(kind: str) -> st.SearchStrategy[Any]:
    """Any fact of a kind that has a fast step, close enough to others to continue them."""
    arguments: dict[str, st.SearchStrategy[Any]] = {}
    for field in fields(FACT_TYPES[kind]):
        word, required = wire.FIELD_TYPES[kind][field.name]
        values = ANY[word]
        if field.name in ("replica", "leader"):
            values = REPLICAS
        elif field.name == "leader_epoch":
            values = EPOCHS
        elif field.name in ("content", "error", "diverging_epoch"):
            values = st.one_of(st.none(), st.none(), st.none(), values)
        arguments[field.name] = values if required else st.one_of(st.none(), values)
    return st.builds(FACT_TYPES[kind], **arguments)


COLD = st.one_of(
    st.builds(BecameLeader, REPLICAS, EPOCHS, OFFSETS),
    st.builds(BecameFollower, REPLICAS, EPOCHS, REPLICAS, OFFSETS),
    st.builds(Truncated, REPLICAS, OFFSETS),
    st.builds(LeadershipRecorded, REPLICAS, EPOCHS, st.just((1, 2, 3)), OFFSETS, st.just("clean")),
)
HOT = st.one_of(*[hot_fact(kind) for kind in sorted(steady.STEPS)])


def start(traced: bool) -> list[Any]:
    facts: list[Any] = [
        PartitionDescribed((1, 2, 3), 2, False, "delete", "4.1.1", "4.1", "kraft"),
        *(CoverageDeclared("replica_trace", r, True) for r in (1, 2, 3) if traced),
        LeadershipRecorded(1, 0, (1, 2, 3), 0, "initial"),
        BecameLeader(1, 0, 0, 0),
        BecameFollower(2, 0, 1, 0, 0),
        BecameFollower(3, 0, 1, 0, 0),
    ]
    return facts


def numbers_of(fact: Any) -> tuple[list[int], str | None]:
    """The fact as the fast steps take it."""
    numbers: list[int] = []
    word = None
    for field in fields(fact):
        value = getattr(fact, field.name)
        if wire.FIELD_TYPES[fact.kind][field.name][0] == "str":
            word = value
        else:
            numbers.append(steady.ABSENT if value is None else value)
    return numbers + [steady.ABSENT] * (6 - len(numbers)), word


def event_of(fact: Any, n: int, traced: bool) -> Event:
    source = Source("server.log", n)
    return Event(f"e{n}", "t", "c", "t", "", 0, n, fact, n, "traced" if traced else "forensic",
                 source)  # fmt: skip


def applied(state: State, event: Event) -> bool:
    """Whether the fold takes the event."""
    try:
        fold.apply(state, event)
    except fold.Rejected:
        return False
    return True


def both_ways(facts: list[Any], traced: bool) -> int:
    """Folds twice, once with the fast steps; returns how many of them were taken."""
    plain, fast = (fold.new_state("c", "t", "", 0) for _ in range(2))
    taken = 0
    for n, fact in enumerate([*start(traced), *facts]):
        event = event_of(fact, n, traced)
        applied(plain, event)
        step = steady.STEPS.get(fact.kind)
        before = copy.deepcopy(fast)
        if step is not None and step(fast, *numbers_of(fact)[0], numbers_of(fact)[1], traced):
            taken += 1
        else:
            assert fast == before
            applied(fast, event)
        assert fast == plain, f"after {fact}"
    return taken


ANSWERED_BY_1, ANSWERED = (
    FACT_TYPES["records_acknowledged"](0, 4, "all", 2, leader=leader) for leader in (1, None)
)


@example([ANSWERED_BY_1, FACT_TYPES["high_watermark_advanced"](1, 0), ANSWERED], False)
@given(st.lists(st.one_of(HOT, HOT, HOT, COLD), max_size=25), st.booleans())
def test_fast_and_full_steps_leave_the_same_state(facts: list[Any], traced: bool) -> None:
    both_ways(facts, traced)


def test_a_fast_append_in_the_next_epoch_is_a_fetch_in_it_too() -> None:
    append, follow = FACT_TYPES["follower_appended"], BecameFollower(2, 1, 1, 4, 0)
    assert both_ways([append(2, 0, 4, 0, 0), follow, append(2, 4, 8, 0, 0)], False)


def healthy(rounds: int, traced: bool) -> list[Any]:
    """A leader and two followers at work, nothing special; followers tell their own high watermark
    where each step of theirs is told."""
    facts: list[Any] = [FACT_TYPES["fetch_requested"](f, 1, 0, 0) for f in (2, 3)]
    for r in range(rounds):
        first, end = 10 * r, 10 * r + 10
        facts.append(FACT_TYPES["leader_appended"](1, first, end, 0))
        for follower in (2, 3):
            facts += [
                FACT_TYPES["fetch_answered"](follower, 1, first, 0),
                FACT_TYPES["follower_appended"](follower, first, end, 0),
                FACT_TYPES["fetch_requested"](follower, 1, end, 0, 0, 0),
            ]
        facts += [
            FACT_TYPES["high_watermark_advanced"](1, end),
            *(FACT_TYPES["high_watermark_advanced"](f, end) for f in (2, 3) if traced),
            FACT_TYPES["records_acknowledged"](first, end, "all", 0),
        ]
    return facts


def test_a_healthy_trace_takes_the_fast_steps_nearly_always() -> None:
    for traced in (True, False):
        facts = healthy(50, traced)
        assert both_ways(facts, traced) > 0.97 * len(facts)
