"""What was committed by the end of a term, and which election or storage may have cost it."""

import pytest

from replication.evidence.joining.copies import UNSEEN_CONTENT
from replication.protocol.ground import events as ev
from replication.protocol.ground.model import Span
from replication.protocol.judgement.judge import answer
from replication.protocol.judgement.reference import reference
from replication.protocol.judgement.unwitnessed_election import (
    came_back_alone,
    lost_by_its_leader,
    lost_what_it_alone_committed,
    unwitnessed_election,
)
from tests.protocol.judgement.told import COMMITTED, copy, elected, given, told, verdict


def unclean(*ending: ev.Fact) -> list[ev.Fact]:
    """Broker 1 starts to lead with a high watermark of 2; broker 2 is elected uncleanly at 2."""
    return [
        *given(1, 2, 3, acks=False),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 2, 2),
        *ending,
        ev.LeadershipRecorded(2, 1, (2,), 1, "unclean"),
        ev.BecameLeader(2, 1, 2, 2),
        copy(2, (0, 2, 0, 0), (2, 3, 1, 0), mark=3),
        copy(3, (0, 2, 0, 0), (2, 3, 1, 0), mark=3),
    ]


def test_a_high_watermark_at_a_leaders_start_is_not_what_it_had_at_its_end() -> None:
    assert verdict(unclean()) == "UNKNOWN"


@pytest.mark.parametrize(
    ("ending", "mark", "found"),
    [
        ([ev.ReplicaStarted(1, 0, 5, None, True)], 2, "HOLDS"),
        ([ev.ReplicaStarted(1, 0, 5, None, True)], 3, "UNKNOWN"),
        ([ev.ReplicaStarted(1, 0, 5, None, False)], 2, "UNKNOWN"),
        (
            [
                ev.ReplicaStarted(1, 0, 5, None, False),
                ev.ReplicaStopped(1, "unknown"),
                ev.ReplicaStarted(1, 0, 5, None, True),
            ],
            2,
            "UNKNOWN",
        ),
        ([ev.BecameFollower(1, 1, 3), ev.ReplicaStarted(1, 0, 5, None, True)], 2, "UNKNOWN"),
    ],
)
def test_what_is_loaded_after_a_clean_stop_is_how_far_a_leader_had_committed_until_it(
    ending: list[ev.Fact], mark: int, found: str
) -> None:
    """A clean stop writes all high watermarks; a crash leaves those of seconds before, and who
    followed since has its later leader's."""
    stopped = [*ending[:-1], ev.ReplicaStopped(1, "unknown"), ending[-1]]
    assert verdict(unclean(*stopped, ev.CheckpointObserved(1, mark))) == found


@pytest.mark.parametrize(("isr", "found"), [((1, 2), "HOLDS"), ((1,), "UNKNOWN")])
def test_who_was_alone_and_is_elected_anew_may_have_lost_what_nobody_else_had(
    isr: tuple[int, ...], found: str
) -> None:
    """A whole cluster that goes down leaves no epoch without a leader (ZooKeeper)."""
    facts = [
        *given(2, 3, acks=False),
        elected(1, 0, "initial"),
        ev.LeadershipRecorded(1, 0, isr, 1),
        ev.LeadershipRecorded(1, 1, isr, 2, "same_leader"),
        *(copy(r, mark=0) for r in (1, 2, 3)),
    ]
    assert verdict(facts) == found


def test_what_a_leader_had_committed_counts_whoever_heard_first_of_its_next_epoch() -> None:
    """Clocks that differ: followers' lines of the later epoch are read before the leader's own."""

    facts = [
        *given(1, 2, 3),
        *(ev.CoverageDeclared("replica_trace", r, True) for r in (1, 2, 3)),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        ev.LeaderAppended(1, 0, 1, 0),
        *(ev.BecameFollower(r, 1, 1, 0, 0) for r in (2, 3)),
        ev.HighWatermarkAdvanced(1, 1),
        ev.ReplicaStopped(1, "process_crash"),
        ev.ReplicaStarted(1, 0, 0),
        elected(1, 1, "same_leader"),
        ev.BecameLeader(1, 1, 0, 0),
        *(copy(r, mark=0) for r in (1, 2, 3)),
    ]
    judged = answer(told(facts, "traced")).verdicts
    assert [v["verdict"] for v in judged if v["invariant"] == COMMITTED] == ["VIOLATED"]


@pytest.mark.parametrize(("successor", "found"), [(None, "VIOLATED"), (2, "HOLDS")])
def test_what_a_leader_commits_counts_until_another_is_elected(
    successor: int | None, found: str
) -> None:
    """The controller thinks it dead, or clocks differ: its high watermark is read after the record
    that the partition has no leader. Alone in the ISR, it then loses its disk."""
    facts = [
        *given(1, 2, 3),
        *(ev.CoverageDeclared("replica_trace", r, True) for r in (1, 2, 3)),
        elected(1, 0, "initial", (1,)),
        ev.BecameLeader(1, 0, 0, 0),
        ev.LeaderAppended(1, 0, 1, 0),
        ev.LeadershipRecorded(successor, 1, (successor or 1,), 1, successor and "unclean"),
        ev.HighWatermarkAdvanced(1, 1),
        ev.ReplicaStopped(1, "process_crash"),
        ev.ReplicaStarted(1, 0, 0),
        elected(1, 2, "clean", (1,)),
        ev.BecameLeader(1, 2, 0, 0),
        *(copy(r, mark=0) for r in (1, 2, 3)),
    ]
    judged = answer(told(facts, "traced")).verdicts
    assert [v["verdict"] for v in judged if v["invariant"] == COMMITTED] == [found]


@pytest.mark.parametrize(("end", "found"), [(2, "HOLDS"), (4, "UNKNOWN")])
def test_what_a_stopped_leader_still_holds_bounds_what_it_had_committed(
    end: int, found: str
) -> None:
    back = [ev.ReplicaStopped(1, "process_crash"), ev.ReplicaStarted(1, 0, end, None, False)]

    assert verdict(unclean(*back)) == found


@pytest.mark.parametrize(("stopped", "found"), [(True, "HOLDS"), (False, "UNKNOWN")])
def test_a_copy_of_no_clean_stop_may_lack_what_a_leader_had(stopped: bool, found: str) -> None:
    """That it had been found clean when it started, before it led, tells nothing of its end."""
    facts = unclean(ev.ReplicaStopped(1, "process_crash"))
    facts.insert(facts.index(elected(1, 0, "initial")), ev.ReplicaStarted(1, 0, 2, None, True))
    end = copy(1, (0, 2, 0, 0), mark=2, stopped=stopped)

    assert verdict([*facts, end]) == found


def test_a_line_that_ends_the_term_tells_how_far_it_had_committed() -> None:
    follows = ev.BecameFollower(1, 1, 2, 4, 2)
    state = told([*unclean(), follows])

    assert unwitnessed_election(state, reference(state)) is None
    # It may have stopped in between, where its lines have a gap, and loaded what the line tells.
    gap = ev.CoverageDeclared("broker_log", 1, False, "a copy is of a stop of which no line tells")
    assert verdict([*unclean(), gap, follows]) == "UNKNOWN"
    short = ev.BecameFollower(1, 1, 2, 2, 2)
    assert verdict([*unclean(), gap, short]) == "UNKNOWN"


def test_who_led_on_past_another_leader_had_not_gone_on_from_its_term() -> None:
    """Broker 3 came back empty and led epoch 2, which broker 1 did not see: how far that one had
    committed before it, its next term does not tell."""
    facts = [
        *given(1, 2, 3, version="0.9.0.1", acks=False),
        *(ev.ReplicaStarted(r, 0, 0, None, True) for r in (1, 2, 3)),
        ev.BecameLeader(1, 0, None, None),
        *(ev.BecameFollower(r, 0, 1, None, None) for r in (2, 3)),
        ev.ReplicaStopped(3, "process_crash"),
        ev.ReplicaStarted(3, 0, 0, None, False),
        ev.BecameLeader(1, 1, None, None),
        *(ev.BecameFollower(r, 1, 1, None, None) for r in (2, 3)),
        ev.BecameLeader(3, 2, None, None),
        ev.BecameLeader(1, 3, None, None),
        *(ev.BecameFollower(r, 3, 1, None, None) for r in (2, 3)),
        ev.Truncated(3, 0, None, "high_watermark"),
        *(copy(r, (0, 4, 0, 0), mark=4) for r in (1, 2)),
        copy(3, stopped=False),
    ]

    assert verdict(facts) == "UNKNOWN"


def test_a_recorded_loss_of_storage_of_a_cleanly_elected_leader_counts() -> None:
    """Broker 2 had four records, came back with one, and was elected from the ISR."""
    facts = [
        *given(1, 2, 3, acks=False),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        ev.BecameFollower(2, 0, 1, 4, 1),
        ev.ReplicaStopped(2, "process_crash"),
        ev.ReplicaStarted(2, 0, 1, None, False),
        elected(2, 1),
        ev.BecameLeader(2, 1, 1, 1),
        copy(2, (0, 1, 0, 0), (1, 2, 1, 0), mark=2),
        copy(3, (0, 1, 0, 0), (1, 2, 1, 0), mark=2),
    ]
    state = told(facts)

    assert lost_by_its_leader(state, reference(state)) == (2, 1, 4)
    assert verdict(facts) == "UNKNOWN"


def test_a_copied_high_watermark_above_the_final_log_end_is_no_clean_end() -> None:
    facts = [
        *given(1, 2, 3, acks=False),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        ev.ReplicaStopped(1, "process_crash"),
        copy(1, (0, 2, 0, 0), mark=5, stopped=False),
        copy(2, (0, 2, 0, 0), mark=2),
        copy(3, (0, 2, 0, 0), mark=2),
    ]

    assert verdict(facts) == "UNKNOWN"


def test_a_leader_that_came_back_alone_is_a_question_without_acknowledgements() -> None:
    facts: list[ev.Fact] = [
        elected(1, 0, "initial", (1,)),
        ev.BecameLeader(1, 0, 0, 0),
        ev.ReplicaStopped(1, "process_crash"),
        ev.ReplicaStarted(1, 0, 2, None, False),
        ev.BecameLeader(1, 0, 2, 2),
        copy(1, (0, 2, 0, 0), mark=2),
        copy(2, (0, 2, 0, 0), mark=2),
        copy(3, (0, 2, 0, 0), mark=2),
    ]
    state = told([*given(1, 2, 3, acks=False), *facts])

    assert came_back_alone(state, reference(state)) == 1
    assert verdict([*given(1, 2, 3, acks=False), *facts]) == "UNKNOWN"
    assert verdict([*given(1, 2, 3), *facts]) == "HOLDS"


def test_what_a_later_leader_commits_does_not_tell_what_one_lost_that_came_back_alone() -> None:
    facts: list[ev.Fact] = [
        elected(1, 0, "initial", (1,)),
        ev.BecameLeader(1, 0, 0, 0),
        ev.ReplicaStopped(1, "process_crash"),
        ev.ReplicaStarted(1, 0, 2, None, False),
        ev.BecameLeader(1, 0, 2, 2),
        ev.LeadershipRecorded(1, 0, (1, 2), 1),
        elected(2, 1, isr=(2,)),
        ev.BecameFollower(1, 1, 2, 2, 2),
        ev.BecameLeader(2, 1, 2, 2),
        elected(1, 2, isr=(1,)),
        ev.BecameFollower(2, 2, 1, 3, 3),
        ev.BecameLeader(1, 2, 3, 3),
        copy(1, (0, 2, 0, 0), (2, 3, 1, 0), mark=3),
        copy(2, (0, 2, 0, 0), (2, 3, 1, 0), mark=3),
        copy(3, (0, 2, 0, 0), (2, 3, 1, 0), mark=3),
    ]
    assert verdict([*given(1, 2, 3, acks=False), *facts]) == "UNKNOWN"
    assert verdict([*given(1, 2, 3), *facts]) == "HOLDS"


def came_back(*covered: int, acks: bool) -> list[ev.Fact]:
    """Broker 1, alone in the ISR, stops uncleanly with an unknown log and leads again from 0."""
    answered = [ev.RecordsAcknowledged(1, 2, "1", None, UNSEEN_CONTENT)] if acks else []
    return [
        *given(*covered, acks=acks),
        elected(1, 0, "initial", (1,)),
        ev.BecameLeader(1, 0, 0, 0),
        *answered,
        ev.ReplicaStopped(1, "process_crash"),
        ev.ReplicaStarted(1, 0, 0, None, False),
        elected(1, 2, "clean", (1,)),
        ev.BecameLeader(1, 2, 0, 0),
        copy(1, mark=0),
        copy(2, mark=0),
        copy(3, mark=0),
    ]


def test_a_leader_that_came_back_alone_from_an_unclean_stop_has_not_all_that_it_committed() -> None:
    """Its high watermark at its own start says nothing of what it had before the stop."""
    assert came_back_alone(told(came_back(1, 2, 3, acks=False)), reference(
        told(came_back(1, 2, 3, acks=False)))) == 1  # fmt: skip
    assert verdict(came_back(1, 2, 3, acks=True)) == "UNKNOWN"


@pytest.mark.parametrize(
    ("isr", "version", "min_insync", "found"),
    [
        ((1,), "2.8.1", 2, "UNKNOWN"),
        ((1,), "4.1.0", 1, "UNKNOWN"),
        ((1,), "4.1.0", 2, "HOLDS"),
        ((1, 2), "2.8.1", 1, "HOLDS"),
    ],
)
@pytest.mark.parametrize("covered", [(1, 2, 3), (2, 3)])
def test_what_was_sent_to_a_lone_leader_and_never_answered_may_have_been_committed_and_lost(
    isr: tuple[int, ...], version: str, min_insync: int, found: str, covered: tuple[int, ...]
) -> None:
    """Sent with acks=0, say. Alone in the ISR it commits what it writes, from 3.7 on only where
    min.insync.replicas lets it; of two members the other has it still."""
    seen = 1 in covered
    facts = [
        *given(*covered, version=version),
        ev.PartitionDescribed(min_insync_replicas=min_insync),
        elected(1, 0, "initial", isr),
        *([ev.BecameLeader(1, 0, 0, 0), ev.ReplicaStopped(1, "process_crash")] if seen else []),
        *([ev.ReplicaStarted(1, 0, 0, None, False)] if seen else []),
        elected(1, 2, "clean", isr[:1]),
        *([ev.BecameLeader(1, 2, 0, 0)] if seen else []),
        *(copy(r, mark=0) for r in (1, 2, 3)),
    ]
    assert verdict(facts) == "HOLDS"
    assert verdict([*facts, ev.CoverageDeclared("sends", None, False, "2 sends")]) == found


@pytest.mark.parametrize(
    ("min_insync", "had", "then", "found"),
    [
        (2, 3, (), "HOLDS"),
        (1, 3, (), "UNKNOWN"),
        # Broker 2 had what the leader has lost, and may have been in the ISR then.
        (2, 3, (ev.Truncated(2, 3, 4, "diverging_epoch"),), "UNKNOWN"),
        (2, 4, (), "UNKNOWN"),
    ],
)
def test_who_waits_for_others_has_lost_nothing_committed_if_none_of_them_had_more(
    min_insync: int, had: int, then: tuple[ev.Fact, ...], found: str
) -> None:
    """From 3.7 on a leader alone in the ISR commits nothing below min.insync.replicas; an offset
    that it told at acks=1 may have been written before or after its crash."""
    facts = [
        *given(1, 2, 3, version="4.1.0"),
        ev.PartitionDescribed(min_insync_replicas=min_insync),
        elected(1, 0, "initial", (1, 2)),
        ev.BecameLeader(1, 0, 0, 0),
        ev.LeadershipRecorded(1, 0, (1,), 1),
        ev.ReplicaStopped(1, "process_crash"),
        ev.ReplicaStarted(1, 0, 3, None, False),
        elected(1, 2, "clean", (1,)),
        ev.BecameLeader(1, 2, 3, 0),
        ev.RecordsAcknowledged(3, 4, "1", None, None, 1),
        ev.BecameFollower(2, 2, 1),
        *then,
        copy(1, (0, 3, 0, 0), (3, 5, 2, 0), mark=0),
        copy(2, (0, had, 0, 0), mark=0, stopped=had == 3),
        copy(3, mark=0),
    ]
    assert verdict(facts) == found


@pytest.mark.parametrize(
    ("members", "told_all", "begins", "found"),
    [
        ((1,), True, 3, "HOLDS"),
        ((1, 2), True, 3, "UNKNOWN"),
        ((1,), False, 3, "UNKNOWN"),
        ((1,), True, 2, "UNKNOWN"),
    ],
)
def test_who_waits_for_others_has_committed_nothing_in_a_term_in_which_it_was_always_alone(
    members: tuple[int, ...], told_all: bool, begins: int, found: str
) -> None:
    """Whatever a follower that came back from a crash, too, had fetched of it by then."""
    facts = [
        *given(1, 2, 3, version="4.1.0"),
        ev.PartitionDescribed(min_insync_replicas=2),
        ev.CoverageDeclared("controller_history", None, told_all),
        elected(1, 0, "initial", members),
        ev.BecameLeader(1, 0, 3, 0),
        ev.LeadershipRecorded(1, 0, (1,), 1),
        ev.ReplicaStopped(1, "process_crash"),
        ev.ReplicaStarted(1, 0, begins, None, False),
        ev.BecameFollower(2, 0, 1),
        ev.ReplicaStopped(2, "process_crash"),
        ev.ReplicaStarted(2, 0, 0, None, False),
        elected(1, 2, "clean", (1,)),
        ev.BecameLeader(1, 2, begins, 0),
        ev.RecordsAcknowledged(begins, begins + 1, "1", None, None, 1),
        copy(1, (0, begins, 0, 0), (begins, 5, 2, 0), mark=0),
        copy(2, mark=0),
        copy(3, mark=0),
    ]
    assert verdict(facts) == found


def away(*between: ev.Fact, covered: tuple[int, ...] = (1, 2, 3), then: int = 2) -> list[ev.Fact]:
    """Broker 1 crashes, broker 2 leads the epoch `then` from the ISR; no acknowledgements."""
    return [
        *given(*covered, acks=False),
        elected(1, 0, "initial", (1, 2)),
        *([ev.BecameLeader(1, 0, 0, 0)] if covered else []),
        *([ev.BecameFollower(2, 0, 1, 0, 0)] if covered else []),
        *([ev.ReplicaStopped(1, "process_crash")] if covered else []),
        *between,
        elected(2, then, "clean", (1, 2)),
        *([ev.BecameLeader(2, then, 2, 2)] if covered else []),
        *([ev.ReplicaStarted(1, 0, 2, None, False)] if covered else []),
        *([ev.BecameFollower(1, then, 2, 2, 2)] if covered else []),
        *(copy(r, (0, 2, 0, 0), (2, 3, then, 0), mark=3) for r in (1, 2, 3)),
    ]


def test_a_leader_from_the_isr_that_was_back_from_a_crash_may_lack_what_was_committed() -> None:
    crashed = (ev.ReplicaStopped(2, "process_crash"), ev.ReplicaStarted(2, 0, 2, None, False))
    left = (ev.ReplicaStopped(2, "clean"), ev.ReplicaStarted(2, 0, 2, None, True))

    assert verdict(away(*crashed)) == "UNKNOWN"
    assert verdict(away(*left)) == "HOLDS"
    assert verdict(away()) == "HOLDS"


def test_where_no_line_tells_an_epoch_without_a_leader_shows_that_the_isr_was_away() -> None:
    nobody = ev.LeadershipRecorded(None, 1, (1, 2), 1, None)

    assert verdict(away(nobody, covered=())) == "UNKNOWN"
    assert verdict(away(covered=(), then=1)) == "HOLDS"


@pytest.mark.parametrize(("leader_epoch", "kind", "found"), [
    (2, "unclean", "UNKNOWN"), (2, "unknown", "UNKNOWN"), (2, "clean", "HOLDS"),
    (0, "initial", "HOLDS"),
])  # fmt: skip
def test_what_led_before_the_first_known_election_may_have_committed(
    leader_epoch: int, kind: str, found: str
) -> None:
    """Unless it came from the ISR, or nobody led before it."""
    facts = [
        *given(),
        ev.LeadershipRecorded(2, leader_epoch, (2,), 1, kind),
        copy(2),
        copy(3),
    ]

    assert verdict(facts) == found


@pytest.mark.parametrize(("stands", "found"), [(True, "HOLDS"), (False, "UNKNOWN")])
def test_a_leader_from_the_isr_began_with_all_that_was_committed_before(
    stands: bool, found: str
) -> None:
    """How far broker 1 had committed nothing tells, but broker 2 began with all of that, and its
    own end tells of the rest; unless what it began with cannot be seen."""
    wrote = [(4, 6, 1, 0)] if stands else []
    end = (0, 4, 0, 0), *wrote, (6 if stands else 4, 8, 2, 0)
    facts = [
        *given(1, 2, 3),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        ev.ReplicaStopped(1, "process_crash"),
        elected(2, 1),
        ev.BecameLeader(2, 1, 4, 2),
        ev.LeadershipRecorded(3, 2, (3,), 2, "unclean"),
        ev.BecameLeader(3, 2, 6 if stands else 4, 2),
        ev.BecameFollower(2, 2, 3, 9, 3),
        copy(2, *end, mark=8),
        copy(3, *end, mark=8),
    ]

    assert verdict(facts) == found


@pytest.mark.parametrize("again", [False, True])
def test_what_a_leader_lost_after_it_had_led_it_did_not_lead_without(again: bool) -> None:
    """Broker 1 leads, crashes twice, and is back without its log; broker 2 led from a crash on."""
    leads_again: list[ev.Fact] = [elected(1, 3, "clean"), ev.BecameLeader(1, 3, 0, 0)]
    facts = [
        *given(1, 2, 3, version="4.3.0", acks=False),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        ev.ReplicaStopped(1, "process_crash"),
        elected(2, 1, "clean", (2, 3)),
        ev.BecameLeader(2, 1, 1, 0),
        ev.ReplicaStopped(2, "process_crash"),
        ev.ReplicaStarted(2, 0, 1, None, False),
        elected(2, 2, "clean", (2,)),
        ev.BecameLeader(2, 2, 1, 0),
        ev.ReplicaStarted(1, 0, 1, None, False),
        ev.ReplicaStopped(1, "process_crash"),
        ev.ReplicaStarted(1, 0, 0, None, False),
        *(leads_again if again else []),
        copy(2, (0, 1, 0, 0), (1, 2, 2, 0), mark=2),
        copy(3, (0, 1, 0, 0), (1, 2, 2, 0), mark=2),
    ]
    state = told(facts)

    assert lost_by_its_leader(state, reference(state)) == ((1, 0, 1) if again else None)


@pytest.mark.parametrize(("answered", "found"), [(1, "HOLDS"), (None, "UNKNOWN")])
def test_who_answered_at_acks_one_wrote_what_is_gone(answered: int | None, found: str) -> None:
    """No epoch names the record: broker 2, which leads since a crash, may have lost it itself."""
    facts = [
        ev.PartitionDescribed((1, 2), 1, False, "delete", "0.10.2.2", None, "zookeeper"),
        *given(1, 2)[1:],
        elected(1, 0, "initial", (1, 2)),
        ev.BecameLeader(1, 0),
        ev.RecordsAcknowledged(1, 2, "1", None, UNSEEN_CONTENT, leader=answered),
        elected(2, 1, "clean", (2,)),
        ev.BecameFollower(1, 1, 2, None, 1),
        ev.BecameLeader(2, 1),
        ev.ReplicaStopped(2, "process_crash"),
        ev.ReplicaStarted(2, 0, 3, None, False),
        ev.BecameLeader(2, 1, 3),
        ev.ReplicaLogObserved(2, 0, 4, (Span(0, 4, None, 0),), 4, None, (), True),
        ev.ReplicaLogObserved(1, 0, 4, (Span(0, 4, None, 0),), 4, None, (), True),
    ]

    assert verdict(facts) == found


@pytest.mark.parametrize(("offset", "found"), [(0, "UNKNOWN"), (None, "HOLDS")])
def test_a_leader_back_from_a_crash_may_have_held_what_was_acknowledged_and_is_in_doubt(
    offset: int | None, found: str
) -> None:
    """It comes back with an empty disk. Nothing tells where the record of acks=1 stood."""
    told_of = [] if offset is None else [ev.RecordsAcknowledged(0, 1, "1", None, UNSEEN_CONTENT)]
    facts = [
        *given(1, 2, 3),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        *told_of,
        ev.ReplicaStopped(1, "process_crash"),
        ev.LeadershipRecorded(2, 1, (2,), 1, "unclean"),
        ev.BecameLeader(2, 1, 0, 0),
        ev.ReplicaStarted(1, 0, 0, None, False),
        ev.ReplicaStopped(2, "process_crash"),
        *(copy(r, mark=0, stopped=False) for r in (1, 2, 3)),
    ]

    assert verdict(facts) == found


@pytest.mark.parametrize(
    ("reason", "found"),
    [("out_of_range", "UNKNOWN"), ("leader_epoch", "HOLDS")],
)
def test_who_was_out_of_range_may_have_kept_another_record_where_one_was_committed(
    reason: str, found: str
) -> None:
    """Broker 2 holds a record of its own at 0 and cuts to broker 1's end alone, before KIP-279."""
    facts = [
        *given(1, 2, 3, version="1.1.1"),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        elected(1, 1, "same_leader"),
        ev.BecameLeader(1, 1, 0, 0),
        ev.RecordsAcknowledged(0, 1, "1", None, UNSEEN_CONTENT),
        ev.Truncated(2, 1, None, reason),
        elected(2, 2),
        ev.BecameLeader(2, 2, 1, 1),
        copy(2, (0, 1, 0, 4), mark=1),
    ]

    assert verdict(facts) == found


@pytest.mark.parametrize(("lines_of", "found"), [((1, 2, 3), "VIOLATED"), ((1, 3), "UNKNOWN")])
def test_of_which_epoch_was_committed_what_a_copy_has_lost_only_its_brokers_lines_tell(
    lines_of: tuple[int, ...], found: str
) -> None:
    """Back from a power failure its epochs were cut with its log; the checkpoint was not. What it
    had followed in epoch 2, and had then, the leader of epoch 2 wrote."""
    facts = [
        *given(*lines_of),
        elected(2, 0, "initial"),
        *([ev.BecameLeader(2, 0, 0, 0)] if 2 in lines_of else []),
        elected(1, 2, "clean"),
        ev.BecameLeader(1, 2, 1, 0),
        copy(2, (0, 1, 0, 0), mark=2, stopped=False),
        copy(1, (0, 1, 0, 0), (1, 2, 2, 0), mark=2),
    ]
    assert verdict(facts) == found


@pytest.mark.parametrize(("isr", "kind"), [((3,), "clean"), ((1, 2, 3), "unknown")])
def test_a_member_that_an_unclean_election_left_in_the_isr_may_lack_what_its_leader_has(
    isr: tuple[int, ...], kind: str
) -> None:
    """No controller records it so: who leads beside the ISR is alone in it."""
    facts = [
        *given(1, 2, 3, version="4.1.0"),
        elected(1, 0, "initial"),
        ev.LeadershipRecorded(3, 1, isr, 1, "unclean"),
        ev.LeadershipRecorded(3, 1, (1, 2, 3), 2),
        ev.LeadershipRecorded(2, 2, (2, 3), 3, "clean"),
    ]
    assert [t.election_kind for t in told(facts).history.terms] == ["initial", "unclean", kind]


def test_what_is_committed_later_tells_nothing_of_what_a_lone_leader_lost_with_sends() -> None:
    """Broker 1 came back from a crash with nothing, led on, and broker 2 after it."""
    facts = [
        *given(1, 2, 3),
        elected(1, 0, "initial", (1,)),
        ev.BecameLeader(1, 0, 0, 0),
        ev.ReplicaStopped(1, "process_crash"),
        ev.ReplicaStarted(1, 0, 0, None, False),
        elected(1, 2, "clean", (1,)),
        ev.BecameLeader(1, 2, 0, 0),
        ev.LeadershipRecorded(1, 2, (1, 2), 3),
        ev.BecameFollower(1, 3, 2, 1, 1),
        ev.LeadershipRecorded(2, 3, (1, 2), 4, "clean"),
        ev.BecameLeader(2, 3, 1, 1),
        copy(1, (0, 1, 2, 0), mark=1),
        copy(2, (0, 1, 2, 0), (1, 2, 3, 0), mark=2),
        copy(3, mark=0),
    ]
    assert verdict(facts) == "HOLDS"
    sends = ev.CoverageDeclared("sends", None, False, "2 sends")
    assert verdict([*facts, sends]) == "UNKNOWN"
    state = told([*facts, sends])
    assert lost_what_it_alone_committed(state, reference(state)) == 1
