"""Causes where nothing tells how a leader was elected, or who was, in the smallest forms."""

from collections.abc import Sequence

import pytest

from replication.protocol.ground import events as ev
from replication.protocol.ground.model import Span
from replication.protocol.ground.topic_partition import Promise
from replication.protocol.judgement.absence import Absence
from replication.protocol.judgement.loss_cause import cause_of
from replication.protocol.judgement.lost_record import Lost
from replication.protocol.judgement.unsure_elections import (
    is_unnamed,
    may_be_unnamed,
    misses_elections,
    perhaps_by_election,
    perhaps_elected_beside,
    perhaps_unclean,
)
from tests.protocol.judgement.told import copy, elected, given, told

RECORD = Span(3, 4, 0, 0)


def name_of(facts: Sequence[ev.Fact], tier: str, how: str) -> str:
    """The cause of the loss of the record that was written in epoch 0."""
    gone = [Absence(3, 4, Promise(RECORD, (0, 0), how, "a"), None, back=False, final=True)]
    return cause_of(told(facts), RECORD, tier, gone).name


@pytest.mark.parametrize(("leader_epoch", "permitted", "cause"), [
    (1, False, "acks_one_failover"), (1, True, "unknown"), (2, False, "unknown"),
    (2, True, "unknown"),
])  # fmt: skip
def test_where_settings_forbid_it_an_operator_may_force_it_of_a_partition_without_a_leader(
    leader_epoch: int, permitted: bool, cause: str
) -> None:
    """Broker 1 alone answered. Of how broker 2 was elected no controller tells."""
    facts = [
        *given(1, 2, 3),
        ev.PartitionDescribed(unclean_leader_election=permitted),
        ev.BecameLeader(1, 0, 0, 0),
        ev.BecameLeader(2, leader_epoch, 3, 3),
        copy(2, (0, 3, 0, 0), (3, 9, leader_epoch, 1), mark=9),
    ]
    assert name_of(facts, "acknowledged_by_leader", "acks_1") == cause
    state = told(facts)
    assert perhaps_unclean(state, state.history.terms[-1]) is (cause == "unknown")


@pytest.mark.parametrize(("between", "leader_epoch", "permitted", "cause"), [
    (False, 1, True, "storage_loss"),
    (False, 2, True, "unknown"),
    (False, 2, False, "storage_loss"),
    (False, 3, False, "unknown"),
    (True, 2, True, "unknown"),
    (True, 2, False, "storage_loss"),
    (True, 3, False, "unknown"),
])  # fmt: skip
def test_who_came_back_short_may_have_been_elected_beside_one_that_never_led(
    between: bool, leader_epoch: int, permitted: bool, cause: str
) -> None:
    """Broker 1 came back empty and leads again. In between broker 2 may have been elected that had
    the record, and was down already: of that only a line of another broker tells, if any."""
    facts = [
        *given(1, 2, 3),
        ev.PartitionDescribed(unclean_leader_election=permitted),
        ev.BecameLeader(1, 0, 0, 0),
        copy(1, (0, 5, 0, 0), mark=5, stopped=False),
        ev.ReplicaStopped(1, "process_crash"),
        *([ev.BecameFollower(3, 1, 2)] if between else []),
        ev.ReplicaStarted(1, 0, 0, None, False),
        ev.BecameLeader(1, leader_epoch, 0, 0),
        copy(1, (0, 9, leader_epoch, 1), mark=9),
    ]
    assert name_of(facts, "acknowledged_by_isr", "acks_all") == cause
    state = told(facts)
    lost = Lost(RECORD, "acknowledged_by_isr", (0, 0))
    assert perhaps_elected_beside(state, lost, state.history.terms[-1]) is (cause == "unknown")


@pytest.mark.parametrize("told_of", [True, False])
def test_a_leader_of_which_nothing_tells_may_have_been_the_first_without_it(told_of: bool) -> None:
    """Broker 2 was elected from the ISR with another record there: it had followed who led before,
    of which lines tell or not. Where broker 1's lines are missing, that may be itself."""
    facts = [
        *given(2, 3),
        elected(1, 0, "initial"),
        *([elected(3, 1), ev.BecameLeader(3, 1, 5, 5)] if told_of else []),
        ev.LeadershipRecorded(None, 2, (2,), 2, None),
        elected(2, 3, "clean", (2,)),
        ev.BecameLeader(2, 3, 5, 5),
        copy(2, (0, 3, 0, 0), (3, 5, 1, 1), (5, 9, 3, 0), mark=9),
    ]
    assert name_of(facts, "acknowledged_by_isr", "acks_all") == (
        "divergence_overwrite" if told_of else "unknown"
    )
    state = told(facts)
    lost = Lost(RECORD, "acknowledged_by_isr", (0, 0))
    assert may_be_unnamed(state, lost, state.history.terms[-1]) is not told_of
    assert is_unnamed(state) is not told_of


def test_elections_are_missed_where_leaders_lie_more_than_one_epoch_apart() -> None:
    """One epoch between two leaders may be one that nobody led."""
    lost = Lost(RECORD, "acknowledged_by_isr", (0, 0))
    for leader_epoch, missed in ((1, False), (2, False), (3, True)):
        state = told([*given(1, 2, 3), elected(1, 0, "initial"), elected(2, leader_epoch)])
        assert misses_elections(lost, state.history.terms) is missed
        assert not perhaps_by_election(state, state.history.terms[0])
