"""Which leaders lacked one record, and by which steps it left a log."""

from dataclasses import replace

import pytest

from replication.protocol.ground import events as ev
from replication.protocol.ground.model import Span
from replication.protocol.ground.topic_partition import State
from replication.protocol.judgement.lost_record import (
    Lost,
    cuts,
    has_by_rule,
    has_since,
    is_after,
    lacks,
    may_be_anothers,
    taken_from,
)
from tests.protocol.judgement.told import copy, elected, given, told

LOST = Lost(Span(5, 6, 0, 0), "acknowledged_by_isr", None)


def cut_before_it_led() -> list[ev.Fact]:
    """Broker 2 follows in epoch 1, cuts to 4, and leads epoch 2 from there."""
    return [
        *given(1, 2, 3),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        elected(3, 1),
        ev.BecameFollower(2, 1, 3, 8, 4),
        ev.Truncated(2, 4, 8, "high_watermark"),
        elected(2, 2),
        ev.BecameLeader(2, 2, 4, 4),
        copy(2, (0, 4, 0, 0), (4, 9, 2, 0)),
    ]


def test_the_last_step_by_which_a_leader_lost_the_record() -> None:
    state = told(cut_before_it_led())
    first, then = state.history.terms[0], state.history.terms[-1]
    (step,) = cuts(state, 2, 5)
    assert taken_from(state, LOST, 2, then) is step
    assert not is_after(step, then)
    assert cuts(state, 2, 3) == []
    assert (lacks(state, first, LOST), lacks(state, then, LOST)) == (True, True)


def test_a_leader_with_the_very_record_does_not_lack_it() -> None:
    facts = cut_before_it_led()
    facts[-2:] = [ev.BecameLeader(2, 2, 8, 4), copy(2, (0, 8, 0, 0), (8, 9, 2, 0))]
    facts = [f for f in facts if not isinstance(f, ev.Truncated)]
    state = told(facts)
    assert lacks(state, state.history.terms[-1], LOST) is False


def test_a_leader_that_holds_it_still_has_not_lost_it() -> None:
    state = told(cut_before_it_led())
    then = state.history.terms[-1]
    assert not has_since(state, then, LOST)
    assert has_since(state, then, Lost(Span(5, 6, 2, 0), "acknowledged_by_isr", None))


def test_a_follower_cuts_nothing_of_the_epoch_that_it_follows() -> None:
    """Broker 2 cut broker 1's records as it followed broker 3; that one's own it never had."""
    facts = cut_before_it_led()
    facts[9] = ev.Truncated(2, 4, 8, "leader_epoch")
    state = told(facts)
    then = state.history.terms[-1]
    own = Lost(Span(5, 6, 1, 7), "acknowledged_by_leader", None)

    assert taken_from(state, own, 2, then) is None
    came_back = [
        ev.BecameLeader(3, 1, 9, 4),
        ev.ReplicaStarted(3, 0, 4, None, False),
        ev.BecameLeader(3, 1, 4, 4),
    ]
    again = told([*facts[:8], *came_back, *facts[8:]])
    assert taken_from(again, own, 2, again.history.terms[-1]) is not None


@pytest.mark.parametrize(
    ("version", "cut", "kept"),
    [("0.10.2.2", False, True), ("0.10.2.2", True, False), ("2.8.0", False, False)],
)
def test_before_kip_101_a_leader_from_the_isr_has_what_it_was_promised_unless_it_cut(
    version: str, cut: bool, kept: bool
) -> None:
    """Broker 2 led epoch 1 from an end that nothing tells, as is usual then."""
    facts = [
        *given(1, 2, 3, version=version),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        ev.BecameFollower(2, 0, 1),
        *([ev.Truncated(2, 4, 8, "high_watermark")] if cut else []),
        elected(2, 1),
        ev.BecameLeader(2, 1),
    ]
    state = told(facts)

    assert has_by_rule(state, state.history.terms[-1], replace(LOST, not_after=(0, 0))) is kept


def test_what_a_follower_cuts_before_it_fetches_is_nothing_of_that_epoch() -> None:
    """To its high watermark, as it begins to follow broker 3; back in that epoch it may be."""

    def cut_by(*before: ev.Fact) -> State:
        facts = [
            *given(1, 2, 3, version="0.10.2.2"),
            elected(1, 0, "initial"),
            ev.BecameLeader(1, 0),
            ev.BecameFollower(2, 0, 1),
            elected(3, 1),
            ev.BecameLeader(3, 1),
            ev.BecameFollower(2, 1, 3),
            *before,
            ev.Truncated(2, 4, None, "high_watermark"),
            elected(2, 2),
            ev.BecameLeader(2, 2),
        ]
        return told(facts)

    lost = Lost(Span(5, 6, 1, 7), "acknowledged_by_isr", None)
    first, again = cut_by(), cut_by(ev.ReplicaStarted(2, 0, 9), ev.BecameFollower(2, 1, 3))
    assert taken_from(first, lost, 2, first.history.terms[-1]) is None
    assert taken_from(again, lost, 2, again.history.terms[-1]) is not None


def test_what_stands_in_its_log_was_written_after_it_was_back_with_less_in_its_epoch() -> None:
    """Broker 1 crashes, is back in its epoch with five records, writes on, and broker 2 is elected
    without all that: what its log shows behind the five it cannot have lost in that crash."""
    facts = [
        *given(1, 2, 3, version="1.1.1"),
        elected(1, 2, "initial"),
        ev.BecameLeader(1, 2, 0, 0),
        ev.ReplicaStopped(1, "process_crash"),
        ev.ReplicaStarted(1, 0, 5, None, False),
        ev.BecameLeader(1, 2, 5, 0),
        ev.ReplicaStopped(1, "process_crash"),
        copy(1, (0, 7, 2, 0), stopped=False),
        elected(2, 3, "unclean", (2,)),
        ev.BecameLeader(2, 3, 3, 0),
        copy(2, (0, 3, 2, 0), (3, 9, 3, 0)),
    ]
    state = told(facts)
    back = state.history.terms[1]
    assert (back.leader, back.occurrence) == (1, 1)
    assert lacks(state, back, Lost(Span(5, 6, 2, 0), "committed", None)) is False
    assert lacks(state, back, Lost(Span(5, 6, 2, 1), "committed", None)) is None


@pytest.mark.parametrize(
    ("reason", "again", "takes"),
    [
        ("out_of_range", True, True),
        ("out_of_range", False, False),
        ("leader_epoch", True, False),
    ],
)
def test_who_was_cut_after_its_leader_was_back_with_less_had_fetched_meanwhile(
    reason: str, again: bool, takes: bool
) -> None:
    """Broker 2 comes to follow with two records. Out of range it may be once its leader has lost
    its disk, and led again in its epoch: of what it had fetched by then no line tells."""
    back = [ev.ReplicaStarted(1, 0, 0, None, False), ev.BecameLeader(1, 1, 0, 0)]
    facts = [
        *given(1, 2, 3, version="1.1.1"),
        elected(3, 0, "initial"),
        ev.BecameFollower(2, 0, 3, 2, 0),
        elected(1, 1),
        ev.BecameLeader(1, 1, 2, 0),
        ev.BecameFollower(2, 1, 1, 2, 0),
        *(back if again else ()),
        ev.Truncated(2, 0, None, reason),
    ]
    state = told(facts)
    lost = Lost(Span(5, 6, 1, 7), "acknowledged_by_leader", None)
    assert bool(cuts(state, 2, 5)) is takes
    assert (taken_from(state, lost, 2, None) is not None) is takes
    assert cuts(state, 2, 1)


def test_what_a_log_held_when_it_was_loaded_is_not_what_is_cut_of_it_in_a_later_epoch() -> None:
    """Before 1.0 no line of a change of role tells the log end (0.10.2.2)."""
    facts = [
        *given(1, 2, 3, version="0.10.2.2"),
        elected(1, 0, "initial"),
        ev.ReplicaStarted(2, 0, 4, None, True),
        ev.BecameFollower(2, 0, 1),
        elected(3, 1),
        ev.BecameFollower(2, 1, 3),
        ev.Truncated(2, 2, None, "high_watermark"),
    ]
    assert cuts(told(facts), 2, 5)
    at_once = [*facts[:-3], ev.Truncated(2, 2, None, "high_watermark")]
    assert not cuts(told(at_once), 2, 5)


@pytest.mark.parametrize(("written_in", "anothers"), [(None, True), (1, False)])
def test_what_is_out_of_range_its_leader_may_have_lacked_from_the_start(
    written_in: int | None, anothers: bool
) -> None:
    """Broker 2's log ends below the record; with what it began no line tells."""
    facts = [
        *given(1, 2, version="0.10.2.2"),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        elected(2, 1, "unclean", (2,)),
        ev.BecameLeader(2, 1),
        ev.BecameFollower(1, 1, 2),
        ev.Truncated(1, 3, 5, "out_of_range"),
    ]
    state = told(facts)
    lost = Lost(Span(4, 5, written_in, 7), "acknowledged_by_isr", None)
    [cut] = state.history.truncations
    assert may_be_anothers(state, lost, cut) is anothers


@pytest.mark.parametrize(
    ("kind", "began_with", "kept"),
    [("clean", None, True), ("unclean", None, False), ("unclean", 8, True)],
)
def test_an_isr_that_began_beside_the_one_before_has_what_its_leader_had(
    kind: str, began_with: int | None, kept: bool
) -> None:
    """Broker 2 leads on from epoch 1, and of its first lines one may be missing."""
    facts = [
        *given(1, 3),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        elected(2, 1, kind, (2,)),
        *([] if began_with is None else [ev.BecameLeader(2, 1, began_with, 4)]),
        elected(2, 2, "same_leader", (2, 3)),
        ev.BecameLeader(2, 2, 9, 4),
        elected(3, 3, "clean", (3,)),
        ev.BecameLeader(3, 3, 9, 9),
        *([] if began_with is None else [copy(2, (0, 8, 0, 0), (8, 9, 1, 0))]),
    ]
    state = told(facts)

    for term in state.history.terms[-2:]:
        assert has_by_rule(state, term, replace(LOST, not_after=(0, 0))) is kept
    # In its own reign it was promised what it had.
    assert has_by_rule(state, state.history.terms[-1], replace(LOST, not_after=(1, 0)))
