"""What runs of offsets share of their histories changes no answer, and saves each its own way."""

import random
from collections.abc import Callable, Iterator
from dataclasses import asdict
from itertools import pairwise
from typing import Any

import pytest

from replication.protocol.ground.topic_partition import State
from replication.protocol.histories import ask
from replication.protocol.histories.filters.windows import Window
from replication.protocol.histories.moves.states import At
from replication.protocol.histories.search import Search
from replication.protocol.judgement import ledger
from replication.protocol.judgement.judge import answer
from tests.growth import LARGE_SIZES
from tests.protocol.histories.refinement import rests
from tests.protocol.judgement.test_cost import calls
from tests.protocol.schedules import schedule_story
from tests.protocol.test_growth import (
    ACKNOWLEDGEMENTS,
    CONTROLLER,
    KINDS,
    LINES,
    Covered,
    Facts,
    a_leader_that_leads_again_and_again,
    clean_elections,
    left_in_the_isr,
    logs_that_are_looked_at,
    restarts_of_a_follower,
    state_of,
    truncations,
)

# What happened within one leader epoch is read for each run of offsets.
WITHIN_ONE_LEADER_EPOCH = (
    truncations,
    logs_that_are_looked_at,
    a_leader_that_leads_again_and_again,
)
OF_LEADER_EPOCHS = [kind for kind in KINDS if kind not in WITHIN_ONE_LEADER_EPOCH]


def states(count: int) -> Iterator[tuple[str, State]]:
    """What so many elections of each kind, and random schedules, leave, with more and with less of
    it handed over."""
    for kind in KINDS:
        for covered in ([], [CONTROLLER, LINES[0]], [CONTROLLER, *LINES, ACKNOWLEDGEMENTS]):
            yield f"{kind.__name__} {covered}", state_of(kind, count, covered)
    for seed in range(2):
        world = schedule_story(seed).world
        for name, state in rests(world, random.Random(seed), 1):
            yield f"seed {seed} {name}", state


def answers(count: int, *, whole: bool) -> dict[tuple[str, bool], Any]:
    """Every answer by default and strictly; or a third of them by turns."""
    return {
        (name, strict): asdict(answer(state, strict=strict))
        for turn, (name, state) in enumerate(states(count))
        for strict in (False, True)
        if whole or (turn % 3 == 1 and strict is (turn % 2 == 1))
    }


def _followed_to_the_end(search: Search, states: set[At], window: Window) -> int:
    return len(search.line.windows) if search._settled(states, window) else 0


SHARED_PARTS = {
    "_begun": lambda search: (search.windows(), search.starts()),
    "_idle": _followed_to_the_end,
    "after": Search._followed,
}


@pytest.mark.parametrize(
    ("count", "whole"),
    [pytest.param(2, False, marks=pytest.mark.slow), *(
        pytest.param(count, True, marks=pytest.mark.sweep) for count in (2, 5)
    )],
)  # fmt: skip
def test_what_is_shared_changes_no_answer(
    count: int, *, whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Without bounds: what is shared leaves more of them.
    monkeypatch.setattr(ledger, "MOST_STEPS_OF_CAUSES", 1 << 40)
    monkeypatch.setattr(ask, "MOST_STEPS_OF_ALL_FEWER", 1 << 40)
    monkeypatch.setattr(ask, "MOST_STEPS_OF_FEWER", 1 << 40)
    shared = answers(count, whole=whole)
    for part, by_itself in SHARED_PARTS.items():
        with monkeypatch.context() as alone:
            alone.setattr(Search, part, by_itself)
            found = answers(count, whole=whole)
        assert [key for key in shared if shared[key] != found[key]] == [], part


@pytest.mark.parametrize("kind", OF_LEADER_EPOCHS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize(
    "sizes", [(15, 30), pytest.param(LARGE_SIZES, marks=pytest.mark.sweep)], ids=["few", "many"]
)
def test_with_all_lines_handed_over_judging_grows_with_the_leader_epochs_alone(
    kind: Callable[[int], Facts], sizes: tuple[int, ...]
) -> None:
    covered: Covered = [CONTROLLER, *LINES, ACKNOWLEDGEMENTS]
    counts = [calls(lambda n=n: answer(state_of(kind, n, covered))) for n in sizes]
    assert all(many < 2.2 * few for few, many in pairwise(counts)), counts


# All kinds take some 350 s: `make test` has some of them, and less of each.
IN_EVERY_RUN = (clean_elections, left_in_the_isr, restarts_of_a_follower)
GROWING = [
    *(
        pytest.param(kind, (20, 40), id=kind.__name__, marks=pytest.mark.slow)
        for kind in IN_EVERY_RUN
    ),
    *(
        pytest.param(
            kind, (125, 250, 500, 1_000, 2_000),
            id=f"{kind.__name__} for long", marks=pytest.mark.sweep,
        )
        for kind in OF_LEADER_EPOCHS
    ),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "sizes"), GROWING)
def test_with_nothing_handed_over_judging_grows_with_the_leader_epochs_alone(
    kind: Callable[[int], Facts], sizes: tuple[int, ...]
) -> None:
    counts = [calls(lambda n=n: answer(state_of(kind, n, []))) for n in sizes]
    assert all(many < 2.2 * few for few, many in pairwise(counts)), counts
