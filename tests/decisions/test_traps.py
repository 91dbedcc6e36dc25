"""Traps are told where they apply: by release, mode and what the evidence shows."""

import pytest

from replication.decisions.candidates import outlook
from replication.decisions.choosing import ELECT, SHOW_BOTH, Choice, choose
from replication.decisions.traps import (
    CONTROLLERS_AMONG_THEM,
    DEAD_BROKER_IN_LIST,
    FIRST_FETCH_CUTS,
    METRIC_PROVES_NOTHING,
    SETTING_IGNORED,
    START_ELECTS,
    UNCLEAN_IS_ON,
    traps,
)
from replication.machine.scenario_check import fold_steps
from replication.protocol.ground import events as ev
from replication.protocol.ground.topic_partition import State
from tests.decisions.told_stories import A, B, C, story
from tests.protocol.judgement.told import told

# A wrote x alone, and is down; nobody else is elected.
ALONE = ["isr remove=B,C", "produce A x acks=1", "crash A kind=process", "fence A"]


def names(state: State, choice: Choice | None = None) -> set[str]:
    found = outlook(state, whole=True)
    return {t.name for t in traps(found, choice or choose(found))}


def ended(given: str, *lines: str) -> State:
    return fold_steps(story(given, [*ALONE, *lines]).world)


@pytest.mark.parametrize(
    ("version", "ignored"), [("3.2.0", True), ("3.6.0", True), ("3.9.1", False), ("4.1.0", False)]
)
def test_kraft_before_3_9_ignores_the_setting(version: str, *, ignored: bool) -> None:
    state = ended(f"kafka={version} controller=kraft unclean=no")
    assert (SETTING_IGNORED in names(state)) is ignored


@pytest.mark.parametrize("version", ["0.10.2.2", "2.8.1", "3.9.1"])
def test_unclean_election_that_is_not_allowed_is_no_trap(version: str) -> None:
    assert UNCLEAN_IS_ON not in names(ended(f"kafka={version} controller=zookeeper unclean=no"))


@pytest.mark.parametrize(
    ("version", "mode", "allowed", "is_on"),
    [
        ("2.8.1", "zookeeper", True, True),
        ("3.6.0", "kraft", True, False),
        ("3.9.1", "kraft", True, True),
        # By the release's default.
        ("0.10.2.2", "zookeeper", None, True),
        ("0.11.0.0", "zookeeper", None, False),
    ],
)
def test_unclean_election_that_is_allowed_elects_whoever_starts(
    version: str, mode: str, *, allowed: bool | None, is_on: bool
) -> None:
    described = ev.PartitionDescribed((1, 2), 1, allowed, "delete", version, None, mode)
    state = told([described, ev.LeadershipRecorded(None, 1, (1,), 1)])
    assert (UNCLEAN_IS_ON in names(state)) is is_on


def test_the_last_known_leader_is_elected_by_its_start() -> None:
    described = ev.PartitionDescribed((1, 2), 2, False, "delete", "4.1.1", None, "kraft")
    recorded = ev.LeadershipRecorded(None, 3, (), 4, None, (1, 2), (), (2,))
    state = told([described, recorded])
    assert START_ELECTS in names(state, Choice("no_leader", None, ELECT, A))
    assert START_ELECTS not in names(state, Choice("no_leader", None, ELECT, B))
    open_choice = Choice("no_leader", None, SHOW_BOTH, None, rivals=[A, B])
    (told_of,) = [
        t for t in traps(outlook(state, whole=True), open_choice) if t.name == START_ELECTS
    ]
    assert told_of.text.endswith("Do not start broker 2 first, unless it is to lead.")


def test_a_dead_broker_in_the_list_is_no_obstacle_to_the_admin_api() -> None:
    """Named where somebody runs who had to be stopped, and the release takes such an order."""
    for version, named in (("4.1.0", True), ("2.8.1", True), ("2.3.0", False)):
        state = ended(f"kafka={version} unclean=no" + (" elr=off" if version > "4" else ""))
        found = outlook(state, whole=True)
        told = traps(found, Choice("no_leader", None, ELECT, B))
        text = next(t.text for t in told if t.name == DEAD_BROKER_IN_LIST)
        assert ("replication.decisions.reorder" in text) is named, version
    alone = outlook(ended("kafka=4.1.0 unclean=no elr=off"), whole=True, down=frozenset([A, B, C]))
    told = traps(alone, Choice("no_leader", None, ELECT, B))
    assert not any("replication.decisions.reorder" in t.text for t in told)


def test_an_election_of_one_of_several_that_run_has_its_traps() -> None:
    state = ended("kafka=4.1.0 controller=kraft unclean=no elr=off")
    found = names(state, Choice("no_leader", None, ELECT, B))
    assert found >= {
        CONTROLLERS_AMONG_THEM,
        DEAD_BROKER_IN_LIST,
        FIRST_FETCH_CUTS,
        METRIC_PROVES_NOTHING,
    }
