"""The machine and the naive model agree after every step of random schedules, and so do verdicts.

1,000 in `make test`, 300 of them in a quick run, 10,000 in `make sweeps` and `make soak`;
`SCHEDULES=n` for another number. Seeds are fixed, so a failure repeats.
"""

import os

import pytest

from replication.machine.scenario import run_scenario
from tests.protocol.schedules import Setting, as_scenario, schedule, search, shrunk

COUNT = int(os.environ.get("SCHEDULES", "1000"))
PARTS = 10


@pytest.mark.parametrize(
    ("part", "count"),
    [
        *(pytest.param(n, COUNT, marks=[pytest.mark.slow] * (n > 2)) for n in range(PARTS)),
        *(pytest.param(n, 10_000, marks=pytest.mark.sweep) for n in range(PARTS)),
    ],
)
def test_random_schedules_agree(part: int, count: int) -> None:
    each = max(1, count // PARTS)

    failures = search(each, part * each)

    assert failures == [], "\n".join(failures)


def test_schedules_reach_what_matters() -> None:
    """Random commands are worth little if they seldom elect, truncate and lose."""
    seen: set[str] = set()
    for seed in range(300):
        _, lines, _ = schedule(seed)
        seen |= {line.split()[0] for line in lines}

    assert {"produce", "fetch", "receive", "stop", "crash", "start", "elect", "fence"} <= seen


def test_a_failure_prints_itself_as_a_scenario() -> None:
    under = Setting("2.8.1", False, 1, True)
    lines = ["produce A r0", "fetch B", "stop A", "elect B isr=B"]

    text = as_scenario(under, lines, "seed 1: why")
    _, told = run_scenario(text)

    assert run_scenario(told) == (True, told)
    assert "B* e1" in told


def test_shrinking_keeps_what_the_difference_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    def differs_after_c(under: Setting, lines: list[str]) -> tuple[str, int] | None:
        needed = "b" in lines and "c" in lines and lines.index("b") < lines.index("c")
        return ("records of A: x", lines.index("c")) if needed else None

    monkeypatch.setattr("tests.protocol.schedules.run", differs_after_c)

    assert shrunk(Setting("2.8.1", False, 1, True), ["a", "b", "a", "c", "d"]) == ["b", "c"]
