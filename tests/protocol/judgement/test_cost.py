"""What folding and judging cost grows with what a partition went through, not with its square."""

import cProfile
import pstats
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from benchmarks.core import elections, stormy
from replication.protocol.folding.codec import decode, encode
from replication.protocol.folding.fold import apply, new_state
from replication.protocol.ground import events as ev
from replication.protocol.ground.model import Span
from replication.protocol.ground.topic_partition import Replica, State
from replication.protocol.histories import ask
from replication.protocol.histories.search import Search
from replication.protocol.judgement import lacking_records, ledger, two_histories
from replication.protocol.judgement.at_risk import dangers
from replication.protocol.judgement.judge import answer
from tests.protocol.judgement.told import told
from tests.protocol.test_growth import KINDS, state_of, unclean_elections


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


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_beyond_its_bounds_judging_grows_with_the_events_alone(
    kind: Callable[[int], Iterator[ev.Fact]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the lines of any broker, where most histories fit."""
    monkeypatch.setattr(two_histories, "EFFORT", (1_000, 1_000))
    monkeypatch.setattr(ask, "MOST_STEPS_OF_ALL", 1_000)
    monkeypatch.setattr(ask, "MOST_STEPS_OF_ALL_FEWER", 500)
    monkeypatch.setattr(ask, "MOST_READ_OF_ALL", 2_000)
    monkeypatch.setattr(ledger, "MOST_STEPS_OF_CAUSES", 500)
    states = [state_of(kind, count, []) for count in (40, 80)]
    few, many = (calls(lambda state=state: answer(state)) for state in states)
    assert many < 2.2 * few


def test_two_logs_are_compared_once_for_all_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []
    compare = lacking_records._where_they_differ

    def comparing(state: State, holder: Replica, other: Replica) -> tuple[list[Span], list[Span]]:
        asked.append((holder.replica, other.replica))
        return compare(state, holder, other)

    monkeypatch.setattr(lacking_records, "_where_they_differ", comparing)
    found = []
    for seed in range(6):
        asked.clear()
        found += dangers(told(stormy(seed, 60), "traced"))
        assert len(asked) == len(set(asked))
    assert len({(d.failure, d.broker, d.next_leader) for d in found}) > 3


def test_a_run_of_offsets_whose_promises_are_kept_is_followed_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """But for the first few, which tell under which assumptions the others are asked."""
    followed = []

    def search(*given: Any, **named: Any) -> Search:
        followed.append(Search(*given, **named))
        return followed[-1]

    monkeypatch.setattr(ask, "Search", search)
    answer(told(elections(30), "traced"))
    assert 30 < len(followed) < 40


def test_a_loss_whose_causes_are_too_many_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    state = state_of(unclean_elections, 2, [])
    whole = [finding["summary"] for finding in answer(state).findings]
    monkeypatch.setattr(ledger, "MOST_STEPS_OF_CAUSES", 400)
    bounded = [finding["summary"] for finding in answer(state).findings]
    said = "(unknown: more histories lose them than are followed)"
    assert not any(said in summary for summary in whole)
    assert any(said in summary for summary in bounded)


def test_stories_of_one_run_of_offsets_are_followed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever promises ask for them."""
    made = []

    def search(*given: Any, **named: Any) -> Search:
        made.append(Search(*given, **named))
        return made[-1]

    monkeypatch.setattr(two_histories, "Search", search)
    state = state_of(unclean_elections, 2, [])
    told = [v for v in answer(state).verdicts if v["histories"]]
    assert len(told) > 1
    assert len(made) == 1
