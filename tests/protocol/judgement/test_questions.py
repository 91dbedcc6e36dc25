"""Losses as the histories tell them: the question, the cause, the copies, and the two histories."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from replication.protocol.folding.fold import apply
from replication.protocol.ground import events as ev
from replication.protocol.ground.model import Span
from replication.protocol.ground.topic_partition import State
from replication.protocol.histories.assumptions import TOPIC_CREATED_ONCE
from replication.protocol.histories.filters.clients import begun, clocks_tell, written_by
from replication.protocol.histories.search import Search
from replication.protocol.judgement.cause import cause_of
from replication.protocol.judgement.contract import contract_of
from replication.protocol.judgement.copies import surviving_copies
from replication.protocol.judgement.fates import fates_of
from replication.protocol.judgement.judge import answer
from replication.protocol.judgement.ledger import losses
from replication.protocol.judgement.loss import TIERS
from replication.protocol.judgement.questions import (
    ACKNOWLEDGED,
    BROKEN,
    COMMITTED,
    KEPT,
    QUESTIONS,
    differ,
)
from replication.protocol.judgement.survival import judge_promise
from replication.protocol.judgement.two_histories import two_histories, words
from replication.protocol.judgement.view import view_of
from tests.protocol.judgement.told import copy, elected, event, given, told, verdict

LOST: list[ev.Fact] = [
    *given(), elected(1, 0, "initial"), ev.BecameLeader(1, 0, 0, 0),
    ev.LeadershipRecorded(1, 0, (1,), 1), ev.RecordsAcknowledged(0, 2, "all", 0, 0),
    elected(2, 1, "unclean", (2,)), ev.BecameLeader(2, 1, 0, 0),
    copy(1, (0, 2, 0, 0), mark=2), copy(2, (0, 3, 1, 1), mark=3), copy(3),
]  # fmt: skip


def test_every_promise_is_a_question() -> None:
    fates = fates_of(told(LOST))
    for name in QUESTIONS:
        assert all(outcomes for _, outcomes, _ in fates.answer(name))
    assert [fate.stretch.first for fate, _ in fates.broken(COMMITTED)] == [0]
    assert {o for _, o, _ in fates.answer(ACKNOWLEDGED)} == {BROKEN, KEPT}
    assert differ(fates.runs[0].stretch.admitted) == KEPT  # Broker 1 cuts it once it follows.


def test_records_of_one_leader_epoch_are_not_mended_by_following() -> None:
    forked = [*given(), elected(1, 0, "initial"), ev.BecameLeader(1, 0, 0, 0),
              copy(1, (0, 2, 0, 0), mark=2), copy(2, (0, 2, 0, 1), mark=2), copy(3)]  # fmt: skip
    assert differ(fates_of(told(forked)).runs[0].stretch.admitted) == BROKEN


def test_the_cause_is_the_step_without_which_the_record_survives() -> None:
    (broken, _), *_ = fates_of(told(LOST)).broken(COMMITTED)
    run = broken.stretch.admitted.run
    found = cause_of(
        Search(run, exact=True),
        lambda at: at.committed & at.missed_committed,
        by_clients=False,
        acks_one=False,
    )
    assert found.name == "unclean_election"
    assert found.window is not None
    assert (found.window.leader, found.window.leader_epoch) == (2, 1)


def test_a_leader_from_outside_of_the_last_known_isr_may_have_been_elected_uncleanly() -> None:
    told_as = [replace(f, election_kind="unknown") if f is LOST[-5] else f for f in LOST]
    state = told(told_as)
    run = fates_of(state).runs[0].stretch.admitted.run
    found = cause_of(
        Search(run, exact=True),
        lambda at: at.committed & at.missed_committed,
        by_clients=False,
        acks_one=False,
    )
    unclean, *_ = [cause for cause in found.each if cause.name == "unclean_election"]
    assert contract_of(state, unclean, "committed", None, may_be_committed=True) == "not_promised"


def test_a_copy_that_still_holds_the_record_is_named() -> None:
    (copied,) = surviving_copies(told(LOST), {2}, Span(0, 2, 0, 0), {1: True})
    assert (copied.replica, copied.kind) == (1, "replica")
    assert copied.destroyed_when == "broker 1 starts as a follower"


def test_two_histories_of_a_run_part_somewhere() -> None:
    untold = [f for f in LOST if not isinstance(f, ev.RecordsAcknowledged | ev.CoverageDeclared)]
    view = view_of(told([f for f in untold if not isinstance(f, ev.ReplicaLogObserved)]))
    (fate, *_) = view.fates.undecided(COMMITTED)
    kept, broken = two_histories(fate.stretch, COMMITTED).parts
    assert [words(t) for t in kept] != [words(t) for t in broken]
    verdict = judge_promise(view, COMMITTED, [])
    assert verdict.verdict == "UNKNOWN"
    assert verdict.histories is not None


def test_the_ledger_has_a_row_for_what_every_history_loses() -> None:
    (row,) = losses(fates_of(told(LOST)))
    assert (row.first_offset, row.end_offset, row.tier, row.status) == (
        0, 2, "acknowledged_by_isr", "recoverable",
    )  # fmt: skip
    assert row.tier in TIERS


def test_what_two_leaders_wrote_is_two_records_though_one_answer_names_neither() -> None:
    """Both wrote at offset 0, and each told a producer; no copy of a log tells them apart."""
    facts: list[ev.Fact] = [
        *given(1, 2, 3), elected(1, 0, "initial"), ev.BecameLeader(1, 0, 0, 0),
        ev.LeaderAppended(1, 0, 1, 0), ev.RecordsAcknowledged(0, 1, "1", None, 1 << 31),
        ev.ReplicaStopped(1, "clean"), elected(2, 1, "clean", (2, 3)), ev.BecameLeader(2, 1, 0, 0),
        ev.BecameFollower(3, 1, 2), ev.LeaderAppended(2, 0, 1, 1), ev.FollowerAppended(3, 0, 1, 1),
        ev.HighWatermarkAdvanced(2, 1), ev.RecordsAcknowledged(0, 1, "all"),
    ]  # fmt: skip
    fates = fates_of(told(facts))
    assert {label for fate in fates.runs for label in fate.stretch.admitted.run.labels} == {
        (0, None), (1, None),
    }  # fmt: skip
    (row,) = losses(fates)
    assert (row.tier, row.status, row.cause.name, row.contract) == (
        "acknowledged_by_leader", "recoverable", "acks_one_failover", "not_promised",
    )  # fmt: skip


# All replicas end below an acknowledged record, and nothing else is here.
SHORT: list[ev.Fact] = [
    *given(), ev.RecordsAcknowledged(4, 6, "all", 0, 7),
    *(copy(r, (0, 4, 0, 3), mark=4) for r in (1, 2, 3)),
]  # fmt: skip


def test_an_acknowledgement_may_be_of_an_earlier_topic_of_the_same_name() -> None:
    (row,) = losses(fates_of(told(SHORT)))
    assert TOPIC_CREATED_ONCE in row.assuming
    assert verdict(SHORT, ACKNOWLEDGED) == "VIOLATED"
    assert verdict(SHORT, ACKNOWLEDGED, strict=True) == "UNKNOWN"


@pytest.mark.parametrize(
    "shown",
    [
        [ev.CoverageDeclared("broker_log", 1, True)],
        [ev.CoverageDeclared("controller_history", None, True)],
        # A copy has a record that was acknowledged before: the topic was this one by then.
        [ev.RecordsAcknowledged(0, 4, "all", 0, 3)],
    ],
)
def test_nothing_is_assumed_of_a_topic_whose_creation_is_told(shown: list[ev.Fact]) -> None:
    facts = [*SHORT[:1], *shown, *SHORT[1:]]
    assert all(TOPIC_CREATED_ONCE not in row.assuming for row in losses(fates_of(told(facts))))
    assert verdict(facts, ACKNOWLEDGED) == "VIOLATED"


def timed(facts: Sequence[tuple[int, ev.Fact]]) -> State:
    """The state that facts lead to of which it is known when each was observed, in seconds."""
    return told(event(n, fact, 60_000 + 1_000 * at) for n, (at, fact) in enumerate(facts))


def answered(
    first: int, end: int, leader_epoch: int | None, content: int, second: int
) -> ev.RecordsAcknowledged:
    """Records whose last answer at acks=all a client had at that second."""
    at = 60_000 + 1_000 * second
    return ev.RecordsAcknowledged(first, end, "all", leader_epoch, content, None, at)


def test_nothing_is_bound_where_the_last_answer_has_no_time() -> None:
    state = timed([(1, elected(1, 0, "initial")), (2, ev.RecordsAcknowledged(0, 2, "all", 0, 0)),
                   (20, elected(2, 1))])  # fmt: skip
    (promise,) = state.history.acknowledgements
    assert written_by(promise, begun(state)) is None


def lost_with_power(acknowledged_at: int) -> State:
    """The only replica comes back with less, and its log is copied as it runs."""
    given = [
        ev.PartitionDescribed((1,), 1, True, "delete", "2.8.1", None, "zookeeper"),
        ev.CoverageDeclared("acknowledgements", None, True),
        ev.CoverageDeclared("controller_history", None, True),
        ev.CoverageDeclared("broker_log", 1, True),
    ]
    return timed([
        *((0, fact) for fact in given), (1, elected(1, 0, "initial", (1,))),
        (1, ev.ReplicaStarted(1, log_end_offset=0)), (1, ev.BecameLeader(1, 0, 0, 0)),
        (5, ev.RecordsAcknowledged(0, 4, "all", 0, 0)),
        (acknowledged_at, answered(4, 6, None, 7, acknowledged_at)),
        (20, ev.ReplicaStopped(1, "process_crash")),
        (22, ev.ReplicaStarted(1, log_end_offset=4, clean=False)),
        (30, elected(1, 1, "clean", (1,))), (30, ev.BecameLeader(1, 1, 4, 4)),
        (5, copy(1, (0, 4, 0, 0), mark=4, stopped=False)),
    ])  # fmt: skip


def test_a_record_acknowledged_before_the_next_election_was_not_written_after_it() -> None:
    """Else nothing is lost: it was written by the next leader after the copies were taken."""
    judged = answer(lost_with_power(acknowledged_at=10))
    (found,) = [v for v in judged.verdicts if v["invariant"] == ACKNOWLEDGED]
    assert (found["verdict"], found["assuming"]) == ("VIOLATED", ["clocks_agree"])
    assert [(loss["first_offset"], loss["end_offset"]) for loss in judged.losses] == [(4, 6)]


@pytest.mark.parametrize("acknowledged_at", [29, 40])
def test_no_clock_is_asked_of_what_is_close_or_came_after(acknowledged_at: int) -> None:
    judged = answer(lost_with_power(acknowledged_at)).verdicts
    assert "clocks_agree" not in {name for v in judged for name in v["assuming"]}
    assert {v["verdict"] for v in judged if v["invariant"] == ACKNOWLEDGED} == {"HOLDS"}


@pytest.mark.parametrize(
    "shown",
    [
        # A later leader has written what was acknowledged at 11.
        (11, answered(6, 7, 1, 9, 11)),
        # Nobody is known to have led before 1; clocks that differ by less than two seconds may.
        (-5, answered(6, 7, None, 9, -5)),
        (0, ev.CoverageDeclared("clocks", None, False, "no time zone")),
    ],
)
def test_what_shows_a_clock_to_be_wrong_withdraws_it(shown: tuple[int, ev.Fact]) -> None:
    state = lost_with_power(acknowledged_at=10)
    assert clocks_tell(state)
    apply(state, event(99, shown[1], 60_000 + 1_000 * shown[0]))
    assert not clocks_tell(state)


@pytest.mark.parametrize("kind", [None, "unknown"])
def test_a_change_of_the_isr_tells_of_no_beginning(kind: str | None) -> None:
    """A history may begin in the midst of a leader epoch, hours after its election."""
    facts = [(0, elected(1, 0, "initial")), (9, ev.LeadershipRecorded(1, 4, (1,), 8, kind)),
             (20, elected(1, 5))]  # fmt: skip
    assert begun(timed(facts)).before(61_000) == 4
