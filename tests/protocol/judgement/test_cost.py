"""What folding and judging cost grows with what a partition went through, not with its square."""

import cProfile
import pstats
from collections.abc import Callable

import pytest

from benchmarks.core import elections, stormy
from replication.protocol.folding.codec import decode, encode
from replication.protocol.folding.fold import apply, new_state
from replication.protocol.ground import events as ev
from replication.protocol.judgement.judge import answer
from tests.protocol.judgement.told import told


def calls(work: Callable[[], object]) -> int:
    """Of one piece of work: the same on every machine and at every load."""
    profiler = cProfile.Profile()
    profiler.runcall(work)
    return int(pstats.Stats(profiler).total_calls)  # type: ignore[attr-defined]


def costs(facts: list[ev.Fact], grade: str) -> tuple[int, int]:
    """Calls of one folding, and of one judging."""
    state = told(facts, grade)
    return calls(lambda: told(facts, grade)), calls(lambda: answer(state))


@pytest.mark.parametrize("grade", ["forensic", "traced"])
@pytest.mark.parametrize("withheld", [ev.FACT_TYPES["leadership_recorded"], None])
def test_four_times_the_elections_cost_four_times_the_calls(
    grade: str, withheld: type[ev.Fact] | None
) -> None:
    few, many = (
        costs([f for f in elections(n) if type(f) is not withheld], grade) for n in (50, 200)
    )

    assert many[0] < 4.4 * few[0]
    assert many[1] < 4.4 * few[1]


@pytest.mark.parametrize("grade", ["forensic", "traced"])
@pytest.mark.parametrize("facts", [elections(40), *(stormy(seed, 200) for seed in range(4))])
def test_what_the_fold_passes_over_changes_nothing(grade: str, facts: list[ev.Fact]) -> None:
    state = new_state("", "t", "", 0)
    for n, fact in enumerate(facts):
        apply(state, ev.Event(str(n), "trace", "", "t", "", 0, n, fact, None, grade))
        if n % 7 == 0:
            # Notes of what was committed already are not written down: without, all is looked at.
            state = decode(encode(state))

    assert state == told(facts, grade)


def test_of_an_isr_that_keeps_changing_only_the_last_place_is_kept() -> None:
    def registered(*falls: int) -> list[str]:
        state = new_state("", "t", "", 0)
        changes = [ev.LeadershipRecorded(1, 5, (1, 2), n) for n in range(1, 60)]
        fallen = [ev.LeadershipRecorded(1, 4, (1,), n) for n in falls]
        facts = [ev.LeadershipRecorded(1, 5, (1, 2, 3), 0, "clean"), *changes, *fallen]
        for n, fact in enumerate(facts):
            source = ev.Source("state-change.log", n)
            apply(state, ev.Event(str(n), "trace", "", "t", "", 0, n, fact, None, "traced", source))
        return list(state.sources)

    assert registered() == ["0", "59"]
    # A refutation names both the step and the one before it.
    assert registered(60, 61) == ["0", "59", "60", "61"]
