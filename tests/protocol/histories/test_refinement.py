"""What the machine really did is admitted, whatever is withheld; what is too much is given up."""

from collections.abc import Callable

import pytest

from replication.protocol.ground import events as ev
from replication.protocol.ground.model import Span
from replication.protocol.histories import ask
from replication.protocol.histories.ask import Histories
from replication.protocol.histories.assumptions import STRICT
from replication.protocol.histories.filters.windows import MOST_UNNAMED
from replication.protocol.judgement.judge import answer
from tests.protocol.default_evidence import folded
from tests.protocol.histories.refinement import Score, compare, fails
from tests.protocol.histories.test_beginnings import OF_LEADER_EPOCHS
from tests.protocol.stories import story_of
from tests.protocol.test_growth import (
    ACKNOWLEDGEMENTS,
    CONTROLLER,
    LINES,
    Facts,
    state_of,
    unclean_elections,
)

# Smallest schedules of which a history was missing once: settings, commands, what was withheld.
KEPT = [
    # A traced follower that has not heard of its leader's new epoch fetches in it (before KIP-320).
    ("kafka=1.0.2 controller=zookeeper", ["elect A deliver=A,B", "produce A r", "fetch C"]),
    (
        "kafka=1.1.0 controller=zookeeper min_insync_replicas=2",
        ["produce A r", "fetch B max=1", "fetch C", "elect A deliver=A,C", "fetch C", "fetch B"],
    ),
    # A follower's log is emptied and begins above the offset.
    (
        "kafka=3.4.0 controller=kraft min_insync_replicas=2 unclean=yes",
        [
            "stop A", "start A deliver=no", "produce B r", "fetch C", "fetch C", "delete_records",
            "fetch C", "elect C isr=B,C", "fetch A max=1", "elect B isr=B",
        ],
    ),
    # All hold the record, and it becomes committed only in a later epoch.
    (
        "kafka=2.7.2 controller=zookeeper unclean=yes",
        ["produce A r acks=1", "fetch C", "fetch B", "elect A isr=A,C deliver=A,C"],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("given", "lines"), KEPT)
def test_stories_of_which_a_history_was_missing_are_admitted(given: str, lines: list[str]) -> None:
    assert fails(story_of(given, *lines).world, seed=0, count=1) == []


def test_a_leader_whose_lines_are_missing_may_have_missed_an_epoch() -> None:
    """A has not heard of C's epoch, in which B cuts r, and commits r with C."""
    lines = ["produce A r acks=all", "fetch B", "fetch B", "elect C isr=C,A,B deliver=C"]
    lines += ["deliver B", "fetch B", "elect A isr=A,B,C", *["fetch C"] * 3, "elect B isr=B,A,C"]
    world = story_of("kafka=4.1.0 controller=kraft min_insync_replicas=2", *lines).world
    assert fails(world, seed=0, count=4) == []


def test_a_traced_answer_of_an_earlier_epoch_may_be_taken_late() -> None:
    """Before KAFKA-18991, by a follower of the same leader again."""
    lines = ["produce A r", "fetch B response=delayed", "elect B", "fetch A", "elect A"]
    world = story_of("kafka=3.6.0 controller=kraft unclean=yes", *lines, "receive B").world
    failures = fails(world, seed=0, count=1)
    assert not [failure for failure in failures if "whole trace" in failure]


def test_true_ends_of_random_schedules_are_admitted() -> None:
    score: Score = compare(range(6), 1)
    assert not score.failures, score.failures[:5]
    assert score.counts["strict whole trace", "admitted"] > 20


@pytest.mark.parametrize("kind", OF_LEADER_EPOCHS[:4], ids=lambda kind: kind.__name__)
def test_beyond_the_bound_of_all_steps_a_partition_is_given_up_and_said(
    kind: Callable[[int], Facts], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What one partition takes is bounded, whatever it has been through."""
    few, many = (state_of(kind, n, [CONTROLLER, *LINES, ACKNOWLEDGEMENTS]) for n in (5, 60))
    histories = Histories(few, strict=True)
    assert not any(s.contradicted or s.admitted.too_many for s in histories.stretches())
    of_few = histories.steps
    monkeypatch.setattr(ask, "MOST_READ_OF_ALL", of_few)
    histories = Histories(many, strict=True)
    over = [stretch.admitted.too_many for stretch in histories.stretches()]
    assert over == sorted(over)
    assert over.count(True) > 50
    assert histories.steps < 2 * of_few
    verdicts = {verdict["invariant"]: verdict for verdict in answer(many).verdicts}
    told = verdicts["committed_records_survive"]
    assert told["verdict"] != "HOLDS"
    if kind is not unclean_elections:  # There two histories came before.
        assert told["verdict"] == "UNKNOWN"
        assert "more histories fit the evidence than are followed" in told["reason"]


@pytest.mark.parametrize("lines_are_here", [False, True])
def test_a_partition_of_very_many_replicas_is_given_up_and_said(lines_are_here: bool) -> None:
    """Their ways multiply: 2 to the 40th together would fill any memory."""
    replicas = range(1, 41)
    facts: list[ev.Fact] = [ev.PartitionDescribed(None)]
    if lines_are_here:
        facts += [ev.CoverageDeclared("broker_log", replica, True) for replica in replicas]
    facts.append(ev.LeadershipRecorded(1, 0, tuple(replicas), 0, "initial"))
    facts += [ev.BecameFollower(replica, 1, 2) for replica in replicas]
    facts.append(ev.ReplicaLogObserved(1, 0, 5, (Span(0, 5, 0, 7),), 3))
    told = {v["invariant"]: v for v in answer(folded(tuple(facts)), strict=True).verdicts}
    assert told["committed_records_survive"]["verdict"] == "UNKNOWN"
    assert "more histories fit" in told["committed_records_survive"]["reason"]


def test_a_leader_epoch_far_above_the_others_leaves_a_bounded_gap() -> None:
    """One event may name any epoch: each one between is an epoch that nothing names."""
    facts: list[ev.Fact] = [
        ev.PartitionDescribed((1, 2)), ev.CoverageDeclared("broker_log", 1, True),
        ev.BecameLeader(1, 3, 0, 0, 0), ev.BecameFollower(1, 1_790_000_000, 2, 0, 0),
    ]  # fmt: skip
    line = Histories(folded(tuple(facts)), strict=True).line(STRICT)
    epochs = [w.leader_epoch for w in line.windows]
    assert epochs[:6] == [0, 1, 2, 3, 4, 5]
    assert epochs[-4:] == [1_790_000_000 + n for n in (-1, 0, 1, 2)]
    assert len(epochs) < 2 * MOST_UNNAMED


def _started(end: int, *, clean: bool = True) -> ev.Fact:
    return ev.ReplicaStarted(1, 0, end, None, clean)


def _led(leader_epoch: int, end: int, high_watermark: int = 0) -> ev.Fact:
    return ev.BecameLeader(1, leader_epoch, end, high_watermark)


def _followed(leader_epoch: int, end: int, high_watermark: int = 0) -> ev.Fact:
    return ev.BecameFollower(1, leader_epoch, 2, end, high_watermark)


BEGIN_LATE = {
    "leads again": [_led(0, 6)],
    "started and leads again": [_started(6), _led(0, 6)],
    "crashed and leads again": [_started(6, clean=False), _led(0, 6), _started(4), _led(0, 4)],
    "follows": [_started(6), _followed(0, 6)],
    "leads a later epoch": [_led(3, 42, 42), ev.LeadershipRecorded(None, 4, (1,), 6)],
    "leads, then follows": [_led(0, 6, 4), _followed(1, 6, 6)],
    "high watermark first": [ev.CheckpointObserved(1, 5), _led(0, 6, 5)],
    "cut first": [_followed(0, 6), ev.Truncated(1, None, 3, "leader_epoch")],
}


@pytest.mark.parametrize("release", [None, "0.10.2.2", "4.1.1"])
@pytest.mark.parametrize("name", BEGIN_LATE)
def test_lines_that_begin_in_the_midst_of_a_partitions_life_are_explained(
    name: str, release: str | None
) -> None:
    controller = "kraft" if release == "4.1.1" else "zookeeper"
    described = ev.PartitionDescribed((1, 2), 1, False, "delete", release, None, controller)
    before = [] if release is None else [described]
    for whole in (None, False, True):
        covered = [] if whole is None else [ev.CoverageDeclared("broker_log", 1, whole)]
        state = folded([*before, *covered, *BEGIN_LATE[name]])
        for strict in (False, True):
            stretches = Histories(state, strict=strict).stretches()
            assert [s.first for s in stretches if s.contradicted] == []
