"""A file that several brokers wrote: no line goes to the wrong one, most go to the right one."""

from pathlib import Path

import pytest

from replication.evidence.importer import import_evidence
from replication.protocol.judgement.bounded import fold_all
from tests.changed_evidence import (
    DECIDING,
    EXPECTED,
    as_captured,
    broker_logs,
    changed_copy,
    each_incident,
    living,
    verdicts_of,
)
from tests.merged_logs import (
    WORLDS,
    Counter,
    Merged,
    a_random_form,
    a_window,
    attributed,
    in_pieces,
    whole,
    written,
)
from tests.test_layouts import QUICK

WAYS = {"whole": whole, "rotated": in_pieces, "a window": a_window(3)}
# What at default loggers may stay nobody's where every broker's disk has the same path.
LEAST_RIGHT = {"one installation": 0.97, "one path for all": 0.75}


def outcomes(incident: str, world: str, way: str) -> Counter[str]:
    told: Counter[str] = Counter()
    for (outcome, _), count in attributed(WORLDS[world](written(incident)), WAYS[way]).items():
        told[outcome] += count
    return told


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("incident", each_incident(QUICK[:1]))
def test_no_line_is_given_to_the_wrong_broker(incident: str, world: str, way: str) -> None:
    told = outcomes(incident, world, way)
    assert told["right"] + told["nobody"] > 0
    assert told["wrong"] == 0


@pytest.mark.parametrize("world", ["one path for all", "clocks that differ"])
def test_of_a_window_that_names_one_broker_no_line_of_the_others_is_its(world: str) -> None:
    lines = WORLDS[world](written("not_loss_traps__4.3.0__retention"))
    told: Counter[str] = Counter()
    for (outcome, _), count in attributed(lines, a_window(0)).items():
        told[outcome] += count
    assert told["nobody"] > 0
    assert told["wrong"] == 0


@pytest.mark.parametrize("seed", [79, 102])
def test_no_line_of_a_random_form_is_given_to_the_wrong_broker(seed: int) -> None:
    told = a_random_form(seed)
    assert told["right"] > 0
    assert told["wrong"] == 0


@pytest.mark.parametrize("world", WORLDS)
def test_what_is_decided_by_all_stays_decided(world: str, tmp_path: Path) -> None:
    """The logs are in one file, the directories and acknowledgements as they were."""

    def merged(evidence: Path) -> None:
        for path in broker_logs(evidence):
            path.unlink()
        whole(WORLDS[world](written(QUICK[0])), evidence, Merged())

    folded = fold_all(import_evidence([changed_copy(QUICK[0], merged, tmp_path)]).events())
    for topic_partition in EXPECTED[QUICK[0]]:
        found = living(folded, topic_partition)
        assert found is not None
        verdicts = verdicts_of(found)
        expected = verdicts_of(living(as_captured(QUICK[0]), topic_partition))
        assert {name: verdicts[name] for name in DECIDING} == {n: expected[n] for n in DECIDING}


@pytest.mark.parametrize("world", LEAST_RIGHT)
def test_most_lines_are_given_to_the_right_one(world: str) -> None:
    told = outcomes("unclean_election__2.8.2", world, "whole")
    assert told["right"] >= LEAST_RIGHT[world] * told.total()
