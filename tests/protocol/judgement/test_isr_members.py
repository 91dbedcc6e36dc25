"""What a member of the ISR beside which another was elected had of a lost record."""

import pytest

from replication.protocol.ground import events as ev
from replication.protocol.ground.model import Span
from replication.protocol.ground.topic_partition import State
from replication.protocol.judgement.isr_members import came_back_without, has_led_with, kept_it
from replication.protocol.judgement.lost_record import Lost
from tests.protocol.judgement.told import copy, elected, given, told

LOST = Lost(Span(3, 4, 0, 0), "acknowledged_by_isr", (0, 0))


def deposed(
    *then: ev.Fact, covered: tuple[int, ...] = (1, 2, 3), stopped: ev.Fact | None = None
) -> State:
    """Broker 1 led with the record and crashed; broker 2 is elected beside it, without."""
    return told(
        [
            *given(*covered, version="3.9.1"),
            elected(1, 0, "initial", (1,)),
            ev.BecameLeader(1, 0, 0, 0),
            *([] if stopped is None else [stopped]),
            elected(2, 1, "unclean", (2,)),
            ev.BecameLeader(2, 1, 3, 3),
            *then,
        ]
    )


@pytest.mark.parametrize(("back_with", "expected"), [(3, True), (4, False)])
def test_who_led_with_it_and_came_back_with_less_has_lost_it(
    back_with: int, expected: bool
) -> None:
    state = deposed(ev.ReplicaStarted(1, 0, back_with, None, False))
    term = state.history.terms[-1]
    assert has_led_with(state, 1, term, LOST)
    assert came_back_without(state, 1, term, LOST) is expected
    assert not came_back_without(state, 2, term, LOST)


def test_who_was_cut_before_it_came_back_with_less_had_it_until_then() -> None:
    state = deposed(
        ev.ReplicaStarted(1, 0, 4, None, False),
        ev.Truncated(1, 3, None, "diverging_epoch"),
        ev.ReplicaStarted(1, 0, 3, None, False),
    )
    assert not came_back_without(state, 1, state.history.terms[-1], LOST)


def test_a_start_that_names_no_log_end_does_not_tell_that_anything_was_lost() -> None:
    """A copied folder without a segment shows that its broker lived on, and no more."""
    state = deposed(ev.ReplicaStarted(1), ev.ReplicaStarted(1, 0, 4, None, True))
    assert not came_back_without(state, 1, state.history.terms[-1], LOST)


@pytest.mark.parametrize("clean", [True, False])
def test_who_stopped_cleanly_with_it_and_came_back_short_from_a_later_stop_had_it(
    clean: bool,
) -> None:
    """The other was elected while it was down: it would have come back with the record."""
    state = deposed(
        ev.ReplicaStarted(1, 0, 4 if clean else 3, None, clean),
        ev.ReplicaStarted(1, 0, 3, None, False),
        stopped=ev.ReplicaStopped(1, "clean" if clean else "process_crash"),
    )
    assert came_back_without(state, 1, state.history.terms[-1], LOST) is not clean


@pytest.mark.parametrize("cut", [False, True])
def test_who_led_last_before_had_what_was_committed_whoever_wrote_it(cut: bool) -> None:
    """Before KIP-98 no record names an epoch. Broker 2 was elected from the ISR, and comes back
    empty only after broker 1 was elected beside it."""
    facts = [
        *given(1, 2, 3, version="0.10.2.2"),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0),
        ev.BecameFollower(2, 0, 1),
        *([ev.Truncated(2, 0, None, "high_watermark")] if cut else []),
        elected(2, 1, "clean", (2,)),
        ev.BecameLeader(2, 1),
        elected(1, 2, "unclean", (1,)),
        ev.ReplicaStarted(2, 0, 0, None, False),
        ev.BecameLeader(1, 2, 0, 0),
    ]
    state = told(facts)
    lost = Lost(Span(3, 4, None, 7), "acknowledged_by_isr", None)
    assert came_back_without(state, 2, state.history.terms[-1], lost) is not cut
    # A release that tells where it began: what stood above that it wrote.
    later = [*given(1, 2, 3, version="3.9.1"), *facts[5:]]
    later[-4:-3] = [ev.BecameLeader(2, 1, 0, 0)]
    assert came_back_without(told(later), 2, told(later).history.terms[-1], lost)
    by_leader = Lost(Span(3, 4, None, 7), "acknowledged_by_leader", None)
    assert not came_back_without(state, 2, state.history.terms[-1], by_leader)


def test_who_came_by_it_as_a_follower_after_it_was_back_has_not_lost_it() -> None:
    """Broker 1 led, came back with three records, and fetched the fourth in epoch 1."""
    fetched = Lost(Span(3, 4, 1, 0), "acknowledged_by_isr", (1, 0))
    facts = [
        *given(1, 2, 3, version="3.9.1"),
        elected(1, 0, "initial", (1,)),
        ev.BecameLeader(1, 0, 0, 0),
        ev.ReplicaStarted(1, 0, 3, None, False),
        elected(2, 1, "unclean", (2,)),
        ev.BecameLeader(2, 1, 3, 3),
        elected(3, 3, "unclean", (3,)),
        ev.BecameLeader(3, 3, 3, 3),
        copy(1, (0, 3, 0, 0), (3, 4, 1, 0), mark=3),
    ]
    state = told(facts)
    assert has_led_with(state, 1, state.history.terms[-1], fetched)
    assert not came_back_without(state, 1, state.history.terms[-1], fetched)


@pytest.mark.parametrize("covered", [(1, 2, 3), (2, 3)])
@pytest.mark.parametrize("has_it", [True, False])
def test_lines_or_its_log_tell_that_a_member_has_kept_it(
    covered: tuple[int, ...], has_it: bool
) -> None:
    end = 4 if has_it else 3
    state = deposed(copy(1, (0, end, 0, 0), mark=3), covered=covered)
    assert kept_it(state, 1, state.history.terms[-1], LOST) is (has_it or 1 in covered)


@pytest.mark.parametrize("start", [None, 3, 4])
def test_what_a_member_has_in_the_end_it_may_have_fetched_again(start: int | None) -> None:
    """Of a later leader that led with it, or of which nothing tells; its lines are missing."""
    told_of = [] if start is None else [ev.BecameLeader(3, 2, start, start)]
    later = [elected(3, 2, "unclean", (3,)), *told_of, copy(1, (0, 4, 0, 0), mark=3)]
    state = deposed(*later, covered=(2,) if start is None else (2, 3))
    assert kept_it(state, 1, state.history.terms[1], LOST) is (start == 3)


def test_of_who_came_back_without_lines_nothing_tells_whether_it_was_cut() -> None:
    """That it lived on after its copy is a start of which no end is known."""
    for back in (ev.ReplicaStarted(1), ev.ReplicaStarted(1, 0, 3, None, False)):
        state = deposed(back, covered=(2, 3))
        assert not came_back_without(state, 1, state.history.terms[-1], LOST)
