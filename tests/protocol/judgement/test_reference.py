"""Which log counts now: a later epoch that anything names has a leader, known or not."""

import pytest

from replication.protocol.ground import events as ev
from replication.protocol.judgement.reference import (
    all_logs_are_covered,
    lived_on_unseen,
    newest_leader_epoch,
    reference,
)
from tests.protocol.judgement.told import copy, elected, given, told


def test_a_line_of_a_follower_names_the_leader() -> None:
    state = told(
        [
            *given(1, 2, 3),
            ev.BecameLeader(1, 0, 0, 0),
            ev.BecameFollower(1, 1, 2, 2, 0),
            copy(2, (0, 2, 0, 0), mark=2),
        ]
    )

    assert reference(state).leader == 2


def test_an_epoch_in_a_log_that_no_line_names_leaves_the_leader_open() -> None:
    facts = [
        *given(1),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        copy(1, (0, 2, 0, 0), mark=2),
        copy(2, (0, 2, 0, 0), (2, 3, 1, 0), mark=3),
        copy(3, (0, 2, 0, 0), mark=2),
    ]
    state = told(facts)
    ref = reference(state)

    assert newest_leader_epoch(state) == 1
    assert not all_logs_are_covered(state)
    assert ref.leader is None


def test_where_all_lines_are_here_the_last_that_led_still_counts() -> None:
    """An epoch without a leader: the controller raised it, and nobody took it."""
    state = told(
        [
            *given(1, 2, 3),
            ev.BecameLeader(1, 0, 0, 0),
            ev.BecameFollower(2, 1, None, 0, 0),
            copy(1, (0, 2, 0, 0), mark=2),
        ]
    )

    assert reference(state).leader == 1


@pytest.mark.parametrize(("covered", "unseen"), [(True, False), (False, True), (None, True)])
def test_where_lines_have_gaps_a_log_may_have_been_cut_since_its_copy(
    covered: bool | None, unseen: bool
) -> None:
    facts: list[ev.Fact] = [
        *given(),
        *([] if covered is None else [ev.CoverageDeclared("broker_log", 1, covered)]),
        copy(1, (0, 5, 0, 0)),
        ev.ReplicaStarted(1),
    ]
    state = told(facts)
    assert lived_on_unseen(state, state.replicas[1]) is unseen
