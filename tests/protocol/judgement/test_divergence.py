"""Where replicas differ, and whether the next truncation by the version's rule mends it."""

import pytest

from replication.protocol.ground import events as ev
from replication.protocol.judgement.divergence import (
    divergences,
    is_cut_by_following,
)
from replication.protocol.judgement.judge import answer
from replication.protocol.judgement.reference import reference
from tests.protocol.judgement.told import copy, elected, given, told


def found(version: str, *copies: ev.Fact) -> list[tuple[int, int, int, int, str]]:
    state = told([*given(1, 2, version=version), elected(1, 2), *copies])
    return [
        (d.a, d.b, d.first_offset, d.end_offset, d.status)
        for d in divergences(state, reference(state))
    ]


def test_what_lies_under_an_epoch_that_the_leader_never_had_is_pending() -> None:
    logs = copy(1, (0, 5, 0, 0), (5, 8, 2, 0), mark=5), copy(2, (0, 5, 0, 0), (5, 7, 1, 1), mark=5)
    assert found("2.8.1", *logs) == [(1, 2, 5, 7, "pending")]


def test_one_epoch_with_two_contents_is_settled_by_epochs_and_pending_by_high_watermark() -> None:
    logs = copy(1, (0, 8, 0, 0), mark=5), copy(2, (0, 5, 0, 0), (5, 8, 0, 1), mark=5)
    assert found("2.8.1", *logs) == [(1, 2, 5, 8, "settled")]
    assert found("0.10.2.2", *logs) == [(1, 2, 5, 8, "pending")]


def test_equal_bytes_under_different_epochs_are_a_header_mismatch() -> None:
    logs = copy(1, (0, 5, 1, 0), mark=5), copy(2, (0, 5, 0, 0), mark=5)
    assert found("2.8.1", *logs) == [(1, 2, 0, 5, "header_mismatch")]


def test_equal_logs_and_shorter_ones_do_not_differ() -> None:
    assert found("2.8.1", copy(1, (0, 8, 0, 0), mark=8), copy(2, (0, 5, 0, 0), mark=5)) == []


def test_a_follower_keeps_what_its_leader_had_under_that_epoch() -> None:
    logs = copy(1, (0, 5, 0, 0), (5, 8, 2, 0), mark=5), copy(2, (0, 5, 0, 0), (5, 7, 1, 1), mark=5)
    state = told([*given(1, 2), elected(1, 2), *logs])
    ref = reference(state)
    follower = state.replicas[2]
    assert [is_cut_by_following(state, ref, follower, o) for o in (4, 5, 6)] == [False, True, True]


def test_a_leader_answers_from_an_epoch_above_all_that_its_follower_has() -> None:
    """Elected from an older epoch, it has not led yet: it will cache a newer one before it answers,
    and what the follower wrote in between goes (from 2.0.1; before, only an append caches)."""
    logs = copy(1, (0, 5, 0, 0), mark=0), copy(2, (0, 3, 1, 1), mark=0)

    assert found("2.8.1", *logs) == [(1, 2, 0, 3, "pending")]
    assert found("2.0.0", *logs) == [(1, 2, 0, 3, "settled")]


def test_before_kip_101_a_running_broker_cuts_to_a_mark_that_its_copy_may_not_show() -> None:
    def logs(stopped: bool) -> tuple[ev.Fact, ev.Fact]:
        return (
            copy(1, (0, 3, 0, 0), mark=3),
            copy(2, (0, 2, 0, 0), (2, 3, 0, 1), mark=0, stopped=stopped),
        )

    assert found("0.10.2", *logs(stopped=True)) == [(1, 2, 2, 3, "pending")]
    assert found("0.10.2", *logs(stopped=False)) == [(1, 2, 2, 3, "pending")]


@pytest.mark.parametrize(
    ("policy", "more", "status"),
    [
        ("compact", (), "settled"),
        ("delete", (ev.ReplicaStarted(2),), "settled"),
        ("compact", (ev.ReplicaStarted(2),), "pending"),
        ("compact,delete", (ev.LeaderAppended(2, 8, 9, 0),), "pending"),
        (None, (ev.ReplicaStarted(2),), "pending"),
        ("compact", (ev.ReplicaStarted(2), copy(2, (0, 5, 0, 0), (5, 8, 0, 1))), "settled"),
    ],
)
def test_of_what_no_copy_shows_since_compaction_may_have_taken_one_side(
    policy: str | None, more: tuple[ev.Fact, ...], status: str
) -> None:
    logs = copy(1, (0, 8, 0, 0), mark=5), copy(2, (0, 5, 0, 0), (5, 8, 0, 1), mark=5)
    described = ev.PartitionDescribed((1, 2, 3), cleanup_policy=policy, kafka_version="2.8.1")
    covered = [ev.CoverageDeclared("broker_log", r, True) for r in (1, 2, 3)]
    facts = [described, *covered, elected(1, 2), *logs, *more]
    state = told(facts)
    (found,) = divergences(state, reference(state))

    assert found.status == status
    judged = answer(told([*facts, copy(3, (0, 8, 0, 0), mark=5)])).verdicts
    (verdict,) = [v for v in judged if v["invariant"] == "log_matching"]
    may_have_lost = more == (ev.ReplicaStarted(2),)  # Nothing tells with which log it started.
    undecided = status == "pending" or may_have_lost
    assert verdict["verdict"] == ("UNKNOWN" if undecided else "VIOLATED")
