"""Every invariant in its smallest stories: one that breaks it, one that keeps it, one untold."""

from types import ModuleType

import pytest

from replication.protocol.folding.fold import new_state
from replication.protocol.ground import events as ev
from replication.protocol.ground.verdict import HOLDS, UNKNOWN, VIOLATED
from replication.protocol.judgement import judge
from replication.protocol.judgement.invariants import (
    acknowledged_records_survive,
    committed_records_survive,
    consumed_records_survive,
    high_watermark_within_log,
    isr_within_assignment,
    leader_epochs_monotonic,
    leader_high_watermark_monotonic,
    leader_in_isr,
    log_matching,
    refuted,
    single_leader_per_epoch,
    version_conformance,
)
from replication.protocol.judgement.view import view_of
from tests.protocol.judgement.told import copy, elected, given, told

FIRST = [*given(1, 2, 3), elected(1, 0, "initial"), ev.BecameLeader(1, 0, 0, 0)]
ALL_TRACED = [ev.CoverageDeclared("replica_trace", r, True) for r in (1, 2, 3)]
READ = [ev.CoverageDeclared("consumptions", None, True), ev.RecordsConsumed(0, 5, 0, 0)]
EQUAL = [copy(r, (0, 5, 0, 0), mark=5) for r in (1, 2, 3)]
WITHOUT = [
    ev.LeadershipRecorded(1, 0, (1,), 1),
    elected(2, 1, "unclean", (2,)),
    ev.BecameLeader(2, 1, 0, 0),
    *(copy(r, (0, 9, 1, 1), mark=9) for r in (1, 2, 3)),
]
STARTED = ev.ReplicaStarted(1, 0, 0)
LED = [*ALL_TRACED, *FIRST[:-1], STARTED, FIRST[-1], ev.LeaderAppended(1, 0, 5, 0)]
UNSEEN = [*given(), elected(1, 0, "initial"), ev.BecameLeader(1, 0, 0, 0)]
PROMISED = ev.RecordsAcknowledged(0, 5, "all", 0, 0)
Facts = list[ev.Fact]

STORIES: dict[ModuleType, tuple[Facts, Facts]] = {
    committed_records_survive: ([*UNSEEN, PROMISED, *WITHOUT], [*UNSEEN, PROMISED, *EQUAL]),
    acknowledged_records_survive: ([*UNSEEN, PROMISED, *WITHOUT], [*UNSEEN, PROMISED, *EQUAL]),
    consumed_records_survive: ([*UNSEEN, *READ, *WITHOUT], [*UNSEEN, *READ, *EQUAL]),
    log_matching: ([*UNSEEN, *EQUAL[:2], copy(3, (0, 5, 0, 1), mark=5)], [*UNSEEN, *EQUAL]),
    single_leader_per_epoch: ([*FIRST, ev.BecameLeader(2, 0, 0, 0)], FIRST),
    leader_epochs_monotonic: (
        [*FIRST, elected(2, 5), ev.LeadershipRecorded(1, 4, (1, 2, 3), 6, "clean")],
        [*FIRST, elected(2, 5), ev.LeadershipRecorded(1, 6, (1, 2, 3), 6, "clean")],
    ),
    leader_in_isr: (
        [*FIRST, ev.LeadershipRecorded(2, 1, (1, 3), 1, "clean", (1, 2, 3))],
        [*FIRST, ev.LeadershipRecorded(2, 1, (2, 3), 1, "clean", (1, 2, 3))],
    ),
    isr_within_assignment: (
        [*FIRST, ev.LeadershipRecorded(1, 1, (1, 9), 1, "clean", (1, 2, 3))],
        [*FIRST, ev.LeadershipRecorded(1, 1, (1, 2), 1, "clean", (1, 2, 3))],
    ),
    leader_high_watermark_monotonic: (
        [*LED, ev.HighWatermarkAdvanced(1, 3), ev.HighWatermarkAdvanced(1, 2)],
        LED,
    ),
    high_watermark_within_log: (
        [*LED, ev.HighWatermarkAdvanced(1, 6)],
        [*FIRST, *EQUAL],
    ),
    version_conformance: ([*LED, ev.Truncated(1, 3)], LED),
}  # fmt: skip


def test_every_invariant_has_its_stories() -> None:
    assert set(STORIES) == set(judge.INVARIANTS)


@pytest.mark.parametrize("module", STORIES, ids=lambda m: m.NAME)
def test_it_is_broken_kept_and_not_decided_where_nothing_is_told(module: ModuleType) -> None:
    grade = "traced" if STORIES[module][0][:3] == ALL_TRACED else "forensic"
    broken, kept = (module.judge(view_of(told(facts, grade))) for facts in STORIES[module])
    assert (broken.verdict, broken.invariant) == (VIOLATED, module.NAME)
    assert broken.findings
    assert kept.verdict == HOLDS
    assert module.judge(view_of(new_state("", "t", "", 0))).verdict == UNKNOWN


def test_a_refutation_is_a_finding_of_its_own_invariant_alone() -> None:
    view = view_of(told([*FIRST, ev.BecameLeader(2, 0, 0, 0)]))
    assert len(refuted.findings(view, single_leader_per_epoch.NAME)) == 1
    assert refuted.findings(view, leader_in_isr.NAME) == []


@pytest.mark.parametrize("deleted", [None, True])
def test_of_a_deleted_topic_no_replica_is_left_to_differ(deleted: bool | None) -> None:
    """Two logs whose records nothing tells apart: no artefact could, once the topic is gone."""
    started = [ev.ReplicaStarted(r, 0, 0) for r in (1, 2, 3)]
    appended = [ev.FollowerAppended(r, 0, 5) for r in (2, 3)]
    lines = [*ALL_TRACED, *FIRST[:-1], *started, *appended, ev.PartitionDescribed(deleted=deleted)]
    verdict = log_matching.judge(view_of(told(lines), strict=True))
    assert verdict.verdict == (HOLDS if deleted else UNKNOWN)


LIVED_ON = [
    *(ev.BecameFollower(r, 0, 1, 0, 0) for r in (2, 3)),
    elected(2, 1),
    ev.BecameLeader(2, 1, 5, 5),
    ev.BecameFollower(3, 1, 2, 5, 5),
    ev.ReplicaStopped(1, "clean"),
    EQUAL[0],
    ev.ReplicaStarted(1, 0, 5, None, True),
    ev.BecameFollower(1, 1, 2, 5, 5),
]


CRASHED = ev.ReplicaStopped(1, "process_crash")
LEADER_CRASHED = [
    ev.ReplicaStopped(2, "process_crash"),
    ev.ReplicaStarted(2, 0, 5, None, False),
]
LED_BY_3 = [elected(3, 2), ev.BecameLeader(3, 2, 5, 5), ev.BecameFollower(2, 2, 3, 5, 5)]


@pytest.mark.parametrize(
    ("more", "end", "found"),
    [
        ([], 8, HOLDS),
        ([ev.Truncated(1, 4, 5, "leader_epoch")], 8, HOLDS),
        # The leader lost what it had by then, and broker 1 may have what it was before.
        (LEADER_CRASHED, 8, UNKNOWN),
        (LEADER_CRASHED, 5, HOLDS),
        (LED_BY_3, 8, UNKNOWN),
        ([CRASHED, ev.ReplicaStarted(1, 0, 4, None, False)], 5, HOLDS),
        ([CRASHED, ev.ReplicaStarted(1, 0, None, None, False)], 5, HOLDS),
    ],
)  # fmt: skip
def test_what_a_broker_holds_that_lived_on_after_its_copy_the_histories_tell(
    more: Facts, end: int, found: str
) -> None:
    facts = [*FIRST, *LIVED_ON, *more]
    spans = [(0, 5, 0, 0), *([(5, end, 1, 0)] if end > 5 else [])]
    facts += [copy(r, *spans, mark=end) for r in (2, 3)]
    for strict in (False, True):
        assert log_matching.judge(view_of(told(facts), strict=strict)).verdict == found
    facts.remove(ev.CoverageDeclared("broker_log", 1, True))
    assert log_matching.judge(view_of(told(facts), strict=True)).verdict == UNKNOWN


@pytest.mark.parametrize("here", [[copy(1), copy(2)], [copy(1), copy(2, stopped=False)]])
def test_a_log_that_is_not_here_differs_from_nobody_where_all_others_are_empty(here: Facts) -> None:
    facts = [f for f in FIRST if f != ev.CoverageDeclared("broker_log", 3, True)]
    assert log_matching.judge(view_of(told([*facts, *here]))).verdict == HOLDS


@pytest.mark.parametrize(("release", "expected"), [("2.3.1", HOLDS), ("2.4.0", VIOLATED)])
def test_two_requests_at_once_may_set_a_leaders_high_watermark_back_up_to_2_3(
    release: str, expected: str
) -> None:
    facts = [
        *LED, ev.PartitionDescribed(kafka_version=release), *ALL_TRACED,
        ev.HighWatermarkAdvanced(1, 3), ev.HighWatermarkAdvanced(1, 2),
    ]  # fmt: skip
    state = told(facts, "traced")
    assert leader_high_watermark_monotonic.judge(view_of(state)).verdict == expected
