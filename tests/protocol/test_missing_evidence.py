"""Whatever is taken out of a trace and declared missing, no verdict contradicts the truth."""

import random

import pytest

from replication.protocol.ground import events as ev
from tests.protocol.missing_evidence import (
    WORLDS,
    by_chance,
    by_completions,
    by_default_evidence,
    by_offset_alone,
    by_scenarios,
    removals,
    undeclared_in_small_worlds,
    verdicts,
    without,
)
from tests.protocol.schedules import schedule_machine


def test_every_completion_of_a_small_world() -> None:
    score, rests = by_completions("4.1.0", WORLDS["4.1.0"], 2)

    assert score.wrong == []
    assert rests > 300


@pytest.mark.slow
@pytest.mark.parametrize("version", WORLDS)
def test_every_completion_of_a_larger_world(version: str) -> None:
    score, rests = by_completions(version, WORLDS[version], 3)

    assert score.wrong == []
    assert rests > 5_000


def test_every_scenario() -> None:
    score, _ = by_scenarios(1)

    assert score.wrong == []


def test_default_evidence_less_one_or_two_kinds_of_artefact() -> None:
    score, rests = by_default_evidence(60)

    assert score.wrong == []
    assert rests > 3_000
    assert score.counts["committed_records_survive", "decided"] > 600


# Once wrong: each is a class of its own in tests/protocol/judgement.
@pytest.mark.parametrize(
    "seed",
    [252, 334, 371, 420, 546, 733, 848, 963, 1157, 1217, 1347, 2579, 2583, 2785, 3254, 4201, 4928,
     5612, 20552, 21109, 30909, 31489, 33728, 43399, 44194, 44561, 50333, 51577, 53808],
)  # fmt: skip
def test_default_evidence_that_once_was_misjudged(seed: int) -> None:
    score, _ = by_default_evidence(1, seed)

    assert score.wrong == []


def test_default_evidence_of_producers_that_tell_who_answered() -> None:
    """Once wrong: before leader epochs, who led on past a leader that lacked its records."""
    score, rests = by_default_evidence(1, 32325, brokers_named=True)

    assert score.wrong == []
    assert rests > 50


@pytest.mark.parametrize("version", WORLDS)
def test_evidence_that_nobody_declares_missing_in_small_worlds(version: str) -> None:
    score, rests = undeclared_in_small_worlds(version, WORLDS[version], 2)

    assert score.wrong == []
    assert rests > 4_000


@pytest.mark.slow
@pytest.mark.sweep
def test_more_default_evidence() -> None:
    score, _ = by_default_evidence(150, 1_000)

    assert score.wrong == []


def test_random_removals() -> None:
    score, _ = by_chance(20)

    assert score.wrong == []
    assert score.counts["committed_records_survive", "decided"] > 50


@pytest.mark.slow
@pytest.mark.sweep
@pytest.mark.parametrize("part", range(2))
def test_more_random_removals(part: int) -> None:
    score, _ = by_chance(150, 1_000 + 150 * part)

    assert score.wrong == []


def test_offsets_alone_name_a_record_where_nothing_was_ever_cut() -> None:
    decided = 0
    for seed in range(40):
        facts = tuple(step.fact for step in schedule_machine(seed).story.world.steps)
        truth = verdicts(facts)
        for gone in (frozenset[int](), *removals(facts, random.Random(seed))):
            found = verdicts(by_offset_alone(without(facts, gone)))
            for name in ("committed_records_survive", "acknowledged_records_survive"):
                assert found[name] in ("UNKNOWN", truth[name]), (seed, sorted(gone), name)
                decided += found[name] != "UNKNOWN"

    assert decided > 80


def test_nothing_removed_changes_nothing() -> None:
    facts = tuple(step.fact for step in schedule_machine(3).story.world.steps)

    assert without(facts, frozenset()) == facts


def test_missing_acknowledgements_leave_what_logs_decide() -> None:
    facts = tuple(step.fact for step in schedule_machine(3).story.world.steps)
    places = [n for n, f in enumerate(facts) if isinstance(f, ev.RecordsAcknowledged)]
    assert places

    whole, left = verdicts(facts), verdicts(without(facts, frozenset(places)))

    assert left["acknowledged_records_survive"] == "UNKNOWN"
    assert left["committed_records_survive"] == whole["committed_records_survive"] != "UNKNOWN"
