"""How long a loss was one failure away, on made samples; and what a healthy run may do."""

from dataclasses import replace

import pytest

from tests.kafka_lab.healthy import HealthyPlan
from tests.kafka_lab.history import Election, LeaderStart
from tests.kafka_lab.lineage import Replicas
from tests.kafka_lab.test_laboratory import FIRST, SECOND, batch, log_sample
from tests.kafka_lab.truth import LostRecord
from tests.kafka_lab.versions import SUPPORTED, Version
from tests.kafka_lab.windows import Lifetimes, Partition

LOST = LostRecord("c", 2, "1", True, False, False, [], [], [], "leader 2 in epoch 1")


def partition(isr: tuple[int, ...], *, cut_at: float = 40.0, dead_at: float = 20.0) -> Partition:
    """1 leads 2 and holds record c alone from 10 on; it dies, and 2 leads without c from 40 on."""
    return Partition(
        [Election(0, 0, 1, (1, 2)), Election(5, 0, 1, isr), Election(40, 1, 2, (2,))],
        [LeaderStart(0, 1, 0, 0), LeaderStart(40.1, 2, 1, 2)],
        Replicas(
            [
                log_sample(1, 1, FIRST), log_sample(1, 2, FIRST), log_sample(10, 1, FIRST, SECOND),
                log_sample(cut_at, 1, FIRST), log_sample(41, 2, FIRST),
            ]
        ),
        Lifetimes([(0, 1, True), (0, 2, True), (0, 3, True), (dead_at, 1, False)]),
        [(0, (1, 2, 3))],
        60,
    )  # fmt: skip


@pytest.mark.parametrize(("isr", "begins"), [((1,), 11.0), ((1, 2), 11.0), ((1, 3), 20.0)])
def test_a_window_begins_when_one_failure_was_left(isr: tuple[int, ...], begins: float) -> None:
    """With 3 in the ISR, which lived on, 1 and 3 had to go: one of them once 1 was dead."""
    found = partition(isr).window(LOST, 11.0, 1)
    assert found is not None
    assert (found.begins, found.lost, found.from_disk) == (begins, 40.0, False)


def test_it_ends_with_the_last_copy() -> None:
    found = partition((1,), cut_at=30.0).window(LOST, 11.0, 1)
    assert found is not None
    assert (found.begins, found.lost, found.from_disk) == (11.0, 30.0, True)


def test_what_was_compacted_is_lost_with_what_superseded_it() -> None:
    """c was cleaned when d had come; both went from the disk at 30."""
    newer = batch(3, 0, "d")
    samples = [
        log_sample(1, 1, FIRST), log_sample(1, 2, FIRST), log_sample(10, 1, FIRST, SECOND),
        log_sample(20, 1, FIRST, newer), log_sample(30, 1, FIRST), log_sample(41, 2, FIRST),
    ]  # fmt: skip
    found = replace(partition((1,)), replicas=Replicas(samples)).window(LOST, 11.0, 1)
    assert found is not None
    assert (found.begins, found.lost) == (11.0, 30.0)


@pytest.mark.parametrize(
    ("unclean", "pauses", "begins"),
    [
        (True, [], 20.0),
        (False, [], 11.0),
        # Its session ends in the fifth second of a pause.
        (True, [(10.5, 2, True)], 15.5),
        (True, [(10.5, 2, True), (18.0, 2, False)], 20.0),
    ],
)
def test_who_is_alone_and_loses_its_log_leads_on_only_where_no_other_can_be_elected(
    unclean: bool, pauses: list[tuple[float, int, bool]], begins: float
) -> None:
    """1 is alone in the ISR, 2 has c as well; c is gone from 1 at 20, and 1 leads on."""
    known = Partition(
        [Election(0, 0, 1, (1, 2)), Election(5, 0, 1, (1,))],
        [LeaderStart(0, 1, 0, 0), LeaderStart(30, 1, 0, 2)],
        Replicas(
            [
                log_sample(1, 1, FIRST), log_sample(10, 1, FIRST, SECOND),
                log_sample(10, 2, FIRST, SECOND), log_sample(20, 1, FIRST),
                log_sample(31, 1, FIRST),
            ]
        ),
        Lifetimes([(0, 1, True), (0, 2, True)], pauses),
        [(0, (1, 2))],
        60,
        unclean,
    )  # fmt: skip
    found = known.window(replace(LOST, missing_from="leader 1 in epoch 0"), 11.0, 1)
    assert found is not None
    assert (found.begins, found.lost) == (begins, 30.0)


def test_what_a_log_has_a_later_record_of_the_key_for_is_not_missing_there() -> None:
    """2 has cleaned c when d came; both are gone from it at 30, and it leads at 40."""
    newer = batch(3, 0, "d", key="c")
    samples = [
        log_sample(1, 1, FIRST), log_sample(10, 1, FIRST, SECOND), log_sample(12, 2, FIRST, newer),
        log_sample(30, 2, FIRST), log_sample(41, 2, FIRST),
    ]  # fmt: skip
    isr = [Election(0, 0, 1, (1, 2)), Election(40, 1, 2, (2,))]
    known = replace(partition((1, 2), dead_at=39), elections=isr, replicas=Replicas(samples))
    for compacted, begins in ((True, 30.0), (False, 11.0)):
        found = replace(known, compacted=compacted).window(LOST, 11.0, 1)
        assert found is not None
        assert found.begins == begins


def test_what_a_deposed_leader_acknowledged_was_in_no_danger() -> None:
    assert partition((1,)).window(LOST, 11.0, 2) is None
    assert partition((1,)).window(LOST, 39.96, 1) is None, "2 was elected at 40"


def test_nobody_is_killed_in_a_healthy_run() -> None:
    plans = [HealthyPlan.from_seed(seed, Version(v)) for seed in range(1, 9) for v in SUPPORTED]
    assert {step for plan in plans for step in plan.steps} == {"restart", "reassign", "elect"}
    assert all(plan.steps.count("restart") <= 3 for plan in plans)
    assert all(min(map(len, p.assignment.values())) > p.min_insync_replicas for p in plans)


def test_lifetimes_pass_by_what_names_no_broker() -> None:
    told = [
        {"ts": "2026-11-23T04:40:48.733Z", "action": "start", "controller": 100},
        {"ts": "2026-11-23T04:40:49.000Z", "action": "start", "broker": 1},
        {"ts": "2026-11-23T04:40:50.000Z", "action": "kill9", "broker": 1},
    ]
    found = Lifetimes.of(told)
    at = found.changes[0][0]
    assert [found.runs(1, at + moment) for moment in (-1.0, 0.0, 1.0)] == [False, True, False]
