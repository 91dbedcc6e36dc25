"""What a replica's log held at an earlier step, and what that decides before leader epochs."""

import pytest

from replication.protocol.ground import events as ev
from replication.protocol.ground.model import Span
from replication.protocol.judgement.earlier_logs import held_then, stands_all
from tests.protocol.judgement.told import COMMITTED, copy, elected, given, told, verdict


def old(replica: int, *spans: tuple[int, int, int], stopped: bool = True) -> ev.Fact:
    """A log directory of 0.10: spans of (first offset, end offset, content), no leader epochs."""
    held = tuple(Span(first, end, None, content) for first, end, content in spans)
    end = max((s.end_offset for s in held), default=0)
    return ev.ReplicaLogObserved(replica, 0, end, held, None, None, (), stopped)


def before_epochs(*facts: ev.Fact) -> list[ev.Fact]:
    """Broker 1 leads epoch 0 and follows broker 2, which the ISR gives epoch 1."""
    return [
        *given(1, 2, 3, version="0.10.2.2", acks=True),
        ev.LeadershipRecorded(1, 0, (1, 2, 3), 0, "initial"),
        ev.BecameLeader(1, 0, partition_epoch=0),
        ev.BecameFollower(2, 0, 1, partition_epoch=0),
        *facts,
    ]


HANDED_OVER = (
    ev.LeadershipRecorded(2, 1, (1, 2, 3), 1, "preferred"),
    ev.BecameLeader(2, 1, partition_epoch=1),
    ev.BecameFollower(1, 1, 2, partition_epoch=1),
    ev.Truncated(1, 4, None, "high_watermark"),
)
EQUAL = (old(1, (0, 6, 0)), old(2, (0, 6, 0)), old(3, (0, 6, 0)))


def test_a_log_is_what_is_left_of_it_and_what_was_cut_since() -> None:
    facts = [
        *given(1),
        ev.BecameLeader(1, 0, 0, 0),
        copy(1, (0, 4, 0, 0), stopped=False),
        ev.ReplicaStarted(1, 0, 4, None, True),
        ev.BecameFollower(1, 1, 2, 4, 4),
        ev.Truncated(1, 2, 4, "leader_epoch"),
        copy(1, (0, 2, 0, 0), (2, 5, 1, 1)),
    ]
    state = told(facts)
    cut = state.history.truncations[0]

    assert held_then(state, 1, cut.at - 1, 0, 4) == [Span(2, 4, 0, 0), Span(0, 2, 0, 0)]
    assert held_then(state, 1, cut.at, 0, 4) == [Span(0, 2, 0, 0), Span(2, 4, 1, 1)]


def test_without_the_brokers_lines_nothing_is_known_of_earlier() -> None:
    state = told([*given(), copy(1, (0, 4, 0, 0))])

    assert held_then(state, 1, 0, 0, 4) == []


@pytest.mark.parametrize(("content", "same"), [(0, True), (1, False), (None, False)])
def test_a_log_holds_the_same_records_where_contents_are_equal(
    content: int | None, same: bool
) -> None:
    assert stands_all([Span(0, 3, None, 0)], 0, 3, [Span(0, 5, None, content)]) is same


def test_a_leader_from_the_isr_that_cut_nothing_holds_what_was_committed() -> None:
    facts = [
        ev.ReplicaStopped(1, "process_crash"),
        ev.LeadershipRecorded(2, 1, (2, 3), 1, "clean"),
        ev.BecameLeader(2, 1, partition_epoch=1),
    ]

    assert verdict(before_epochs(*facts, *EQUAL)) == "HOLDS"


@pytest.mark.parametrize(("joined_anew", "found"), [(False, "UNKNOWN"), (True, "HOLDS")])
def test_what_it_cut_before_it_joined_the_isr_it_has_fetched_again(
    joined_anew: bool, found: str
) -> None:
    """Broker 2 comes back and cuts; then it is elected, out of the ISR that it never left or not.

    Broker 1, whose disk is lost, had committed nobody knows what.
    """
    isr = (1, 3) if joined_anew else (1, 2, 3)
    facts = [
        ev.ReplicaStopped(2, "process_crash"),
        ev.LeadershipRecorded(1, 0, isr, 1),
        ev.ReplicaStarted(2, 0, 3, None, False),
        ev.BecameFollower(2, 0, 1, partition_epoch=1),
        ev.Truncated(2, 2, None, "high_watermark"),
        ev.LeadershipRecorded(1, 0, (1, 2, 3), 2),
        ev.ReplicaStopped(1, "process_crash"),
        ev.LeadershipRecorded(2, 1, (2, 3), 3, "clean"),
        ev.BecameLeader(2, 1, partition_epoch=3),
        *EQUAL[1:],
    ]

    assert verdict(before_epochs(*facts)) == found


def test_a_leader_that_follows_cuts_to_what_it_had_committed() -> None:
    state = told(before_epochs(*HANDED_OVER))

    assert state.history.terms[0].end_high_watermark == 4


@pytest.mark.parametrize(
    ("left", "found"), [((0, 6, 0), "HOLDS"), ((0, 6, 1), "VIOLATED"), ((0, 3, 0), "VIOLATED")]
)
def test_below_that_its_own_log_shows_which_records_were_committed(
    left: tuple[int, int, int], found: str
) -> None:
    """No acknowledgement names them; the new leader holds them, others, or too few."""
    facts = [*HANDED_OVER, old(1, (0, 6, 0)), old(2, left), old(3, left)]

    assert verdict(before_epochs(*facts), COMMITTED) == found


@pytest.mark.parametrize(("seen", "found"), [(True, "HOLDS"), (False, "UNKNOWN")])
def test_all_that_a_stopped_leader_held_stands_in_the_log_that_counts(
    seen: bool, found: str
) -> None:
    """Broker 2 had cut and may have been elected too early; but nothing of broker 1's is gone."""
    facts = [
        ev.Truncated(2, 2, None, "high_watermark"),
        ev.ReplicaStopped(1, "process_crash"),
        ev.LeadershipRecorded(2, 1, (2, 3), 1, "clean"),
        ev.BecameLeader(2, 1, partition_epoch=1),
        *([old(1, (0, 5, 0), stopped=False)] if seen else []),
        ev.ReplicaStarted(1, 0, 5, None, False),
        ev.BecameFollower(1, 1, 2, partition_epoch=1),
        ev.Truncated(1, 4, 5, "high_watermark"),
    ]

    assert verdict(before_epochs(*facts, *EQUAL)) == found


def test_an_election_beside_the_isr_stays_in_doubt() -> None:
    facts = [
        ev.ReplicaStopped(1, "process_crash"),
        ev.LeadershipRecorded(2, 1, (2,), 1, "unclean"),
        ev.BecameLeader(2, 1, partition_epoch=1),
    ]

    assert verdict([*before_epochs(*facts), elected(2, 1, "unclean"), *EQUAL]) == "UNKNOWN"


def test_the_making_of_a_leaders_log_is_not_the_end_of_its_term() -> None:
    """0.10 prints that a log was made after the request by which its broker leads."""
    made = ev.ReplicaStarted(1, 0, 0, None, None)
    led = ev.BecameLeader(1, 0, partition_epoch=0)
    back = [ev.ReplicaStopped(1, "process_crash"), ev.ReplicaStarted(1, 0, 5, None, False)]

    assert told([*given(1), led, made]).history.terms[0].end_log_end_offset is None
    assert told([*given(1), led, made, *back]).history.terms[0].end_log_end_offset == 5


def test_a_copy_of_a_leader_that_goes_on_is_not_the_end_of_its_term() -> None:
    led = [ev.BecameLeader(1, 0, 0, 0), copy(1, (0, 3, 0, 0), stopped=False)]
    back = [ev.ReplicaStopped(1, "process_crash"), ev.ReplicaStarted(1, 0, 5, None, False)]

    assert told([*given(1), *led]).history.terms[0].end_log_end_offset == 3
    assert told([*given(1), *led, *back]).history.terms[0].end_log_end_offset == 5


def test_how_far_a_leader_had_committed_a_copy_of_a_later_life_does_not_tell() -> None:
    """Broker 1 led, crashed, and may have followed since: the lines that would tell are missing."""

    def committed(*between: ev.Fact) -> tuple[int | None, list[object]]:
        facts = [
            *given(1),
            ev.BecameLeader(1, 0, 0, 0),
            *between,
            ev.ReplicaStopped(1, "clean"),
            copy(1, (0, 5, 0, 0), (5, 9, 1, 0), mark=9),
        ]
        state = told(facts)
        return state.history.terms[0].end_high_watermark, [
            p.latest_term for p in state.history.commitments if p.span.leader_epoch == 1
        ]

    crash = [ev.ReplicaStopped(1, "process_crash"), ev.ReplicaStarted(1, 0, 5, None, False)]
    assert committed()[0] == 9
    assert committed(*crash)[0] is None
    assert committed(crash[0], ev.ReplicaStarted(1, 0, 5, None, True))[0] is None
    assert committed(*crash, ev.BecameLeader(1, 0, 5))[0] is None


def test_a_leader_named_for_an_epoch_in_between_may_have_written_before_its_line() -> None:
    """Of 0.10's files one may reach back to the start, and another not: no line tells an end."""

    def began(*named: ev.Fact) -> int | None:
        facts = [
            *given(1, version="0.10.2.2"),
            *named,
            ev.ReplicaStarted(1, 0, 44, None, False),
            ev.BecameLeader(1, 5),
        ]
        return told(facts).history.terms[-1].start_offset

    assert began() == 44
    assert began(elected(1, 4, "clean", (1,))) is None
    assert began(elected(2, 4, "clean", (2,))) == 44
