"""What judging costs grows with what a partition went through, not with its square."""

import cProfile
import pstats

import pytest

from benchmarks.core import elections
from replication.protocol.ground import events as ev
from replication.protocol.judgement.judge import answer
from tests.protocol.judgement.told import told


def calls(facts: list[ev.Fact], grade: str) -> int:
    """Of one judging: the same on every machine and at every load."""
    state = told(facts, grade)
    profiler = cProfile.Profile()
    profiler.runcall(answer, state)
    return int(pstats.Stats(profiler).total_calls)  # type: ignore[attr-defined]


@pytest.mark.parametrize("grade", ["forensic", "traced"])
@pytest.mark.parametrize("withheld", [ev.FACT_TYPES["leadership_recorded"], None])
def test_four_times_the_elections_cost_four_times_the_calls(
    grade: str, withheld: type[ev.Fact] | None
) -> None:
    few, many = (
        calls([f for f in elections(n) if type(f) is not withheld], grade) for n in (50, 200)
    )

    assert many < 4.4 * few
