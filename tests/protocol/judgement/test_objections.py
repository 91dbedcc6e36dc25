"""Where the promise itself is in question, offsets alone lose nothing."""

import pytest

from replication.protocol.ground import events as ev
from replication.protocol.ground.model import Span
from replication.protocol.judgement import objections
from replication.protocol.judgement.view import view_of
from tests.protocol.judgement.told import (
    ACKNOWLEDGED,
    COMMITTED,
    copy,
    elected,
    given,
    told,
    verdict,
)


def test_every_objection_is_asked() -> None:
    asked = objections.objection.__code__.co_names

    for question in (
        objections.promised_by_zombie,
        objections.answered_after_leading_again,
        objections.foreign_to_its_leader,
        objections.promised_later,
        objections.removed_before_or_after,
    ):
        assert question.__name__ in asked


def beside_the_isr(*ending: ev.Fact) -> list[ev.Fact]:
    """Broker 1 alone in the ISR has a high watermark of 5; broker 2 is elected with less."""
    return [
        *given(1, 2, 3),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        ev.LeadershipRecorded(1, 0, (1,), 1),
        ev.LeadershipRecorded(2, 1, (2,), 2, "unclean"),
        ev.BecameLeader(2, 1, 3, 3),
        *ending,
        copy(2, (0, 3, 0, 0), (3, 4, 1, 0), mark=4),
        copy(3, (0, 3, 0, 0), (3, 4, 1, 0), mark=4),
    ]


def test_what_a_leader_has_once_another_is_elected_beside_the_isr_may_be_a_zombies() -> None:
    alive = beside_the_isr(ev.BecameFollower(1, 1, 2, 5, 5))

    assert verdict(alive) == "UNKNOWN"


def test_a_leader_that_had_stopped_promised_before() -> None:
    stopped = beside_the_isr(
        ev.ReplicaStopped(1, "process_crash"),
        ev.ReplicaStarted(1, 0, 5, None, False),
        ev.CheckpointObserved(1, 5),
    )

    assert verdict(stopped) == "VIOLATED"


def test_a_kraft_leader_that_stops_cleanly_may_have_promised_after_its_epoch_had_ended() -> None:
    """The controller takes its leadership as it asks to leave; until it learns that, it writes on.
    ZooKeeper's leaves a leader that is alone in the ISR in its place until it is gone."""

    def let_go(controller: str, *, clean: bool) -> list[ev.Fact]:
        return [
            *beside_the_isr(
                ev.ReplicaStopped(1, "unknown" if clean else "process_crash"),
                ev.ReplicaStarted(1, 0, 5, None, clean),
                ev.CheckpointObserved(1, 5),
            ),
            ev.PartitionDescribed(controller=controller),
        ]

    assert verdict(let_go("kraft", clean=True)) == "UNKNOWN"
    assert verdict(let_go("kraft", clean=False)) == "VIOLATED"
    assert verdict(let_go("zookeeper", clean=True)) == "VIOLATED"


def test_a_successor_of_which_only_its_log_tells_may_have_been_elected_beside_the_isr() -> None:
    def cut_off(*ending: ev.Fact) -> list[ev.Fact]:
        return [
            *given(1, acks=False),
            ev.BecameLeader(1, 0, 0, 0),
            *ending,
            copy(1, (0, 3, 0, 0), mark=3),
            copy(2, (0, 2, 0, 0), (2, 4, 1, 1), mark=4),
            copy(3, (0, 2, 0, 0), (2, 4, 1, 1), mark=4),
        ]

    assert verdict(cut_off()) == "UNKNOWN"
    assert verdict(cut_off(ev.ReplicaStopped(1, "process_crash"))) == "VIOLATED"


def test_an_epoch_in_which_the_controller_names_no_leader_has_none() -> None:
    facts = [
        *given(1, 2, 3),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        ev.RecordsAcknowledged(0, 4, "all", 0, 0),
        ev.LeadershipRecorded(None, 1, (1,), 1, None),
        ev.BecameFollower(1, 1, None, 3, 3),
        copy(1, (0, 3, 0, 0), mark=3),
        copy(2, (0, 3, 0, 0), mark=3),
        copy(3, (0, 3, 0, 0), mark=3),
    ]

    assert verdict(facts) == "VIOLATED"


def test_what_a_leader_had_before_it_stopped_and_led_again_is_no_zombies() -> None:
    """It was cut off only in the life after: the copy of the clean stop is of the one before."""
    lived_on = beside_the_isr(ev.BecameFollower(1, 1, 2, 5, 5))
    stop = [
        ev.ReplicaStopped(1, "clean"),
        copy(1, (0, 5, 0, 0), mark=5),
        ev.ReplicaStarted(1, 0, 5, None, True),
    ]
    led_again = [*stop, ev.BecameLeader(1, 0, 5, 5)]
    place = lived_on.index(ev.LeadershipRecorded(2, 1, (2,), 2, "unclean"))

    assert verdict(lived_on) == "UNKNOWN"
    assert verdict([*lived_on[:place], *led_again, *lived_on[place:]]) == "VIOLATED"


def test_a_zombies_high_watermark_lends_nothing_to_other_records() -> None:
    """At acks=1 alone: acknowledged, never committed."""
    acked = [ev.RecordsAcknowledged(3, 5, "1", 0, 1), ev.BecameFollower(1, 1, 2, 5, 5)]

    assert verdict(beside_the_isr(*acked), ACKNOWLEDGED) == "VIOLATED"
    assert verdict(beside_the_isr(*acked), COMMITTED) == "UNKNOWN"


def test_what_was_acknowledged_at_acks_all_and_is_gone_is_lost_though_perhaps_by_a_zombie() -> None:
    acked = [ev.RecordsAcknowledged(3, 5, "all", 0, 1), ev.BecameFollower(1, 1, 2, 5, 5)]
    facts = beside_the_isr(*acked)

    assert verdict(facts, ACKNOWLEDGED) == "VIOLATED"
    assert verdict(facts, COMMITTED) == "UNKNOWN"
    (loss,) = view_of(told(facts)).losses
    assert (loss.tier, loss.finding and loss.finding.invariant) == (
        "acknowledged_by_isr",
        ACKNOWLEDGED,
    )


def test_acks_all_that_the_last_isr_was_too_small_for_came_before() -> None:
    facts = beside_the_isr(
        ev.RecordsAcknowledged(3, 5, "all", 0, 1), ev.BecameFollower(1, 1, 2, 5, 5)
    )
    facts.insert(1, ev.PartitionDescribed(min_insync_replicas=2))

    assert verdict(facts) == "VIOLATED"


def test_only_the_lines_of_who_wrote_tell_that_it_led_on_and_answered_later() -> None:
    """Broker 1 writes in epoch 0; broker 2 leads epoch 1 without; broker 1 leads epoch 2 again."""
    first, then = ev.BecameLeader(1, 0, 0, 0), ev.BecameLeader(1, 2, 1, 0)
    again = [
        elected(1, 0, "initial"),
        elected(2, 1),
        ev.BecameLeader(2, 1, 0, 0),
        elected(1, 2),
        ev.RecordsAcknowledged(0, 1, "all", 0, 0),
        copy(1, (0, 1, 0, 0), (1, 2, 2, 0), mark=2),
        copy(2, (0, 1, 0, 0), (1, 2, 2, 0), mark=2),
        copy(3, (0, 1, 0, 0), (1, 2, 2, 0), mark=2),
    ]

    assert verdict([*given(2, 3), *again]) == "UNKNOWN"
    assert verdict([*given(1, 2, 3), first, then, *again]) == "HOLDS"


def test_a_leader_that_leads_on_answers_as_a_valid_one() -> None:
    """In a trace: what it wrote in epoch 0 it acknowledges in epoch 2, missed high watermark or
    not; one whose steps end in epoch 0 promises no more than itself."""
    steps = [
        *(ev.CoverageDeclared("replica_trace", r, True) for r in (1, 2, 3)),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        ev.LeaderAppended(1, 0, 1, 0, 0),
        elected(2, 1),
        ev.BecameLeader(2, 1, 0, 0),
    ]
    again = [elected(1, 2, isr=(1,)), ev.BecameLeader(1, 2, 1, 0)]
    acked = ev.RecordsAcknowledged(0, 1, "all", 0, 0)

    def how(*facts: ev.Fact) -> str:
        return told([*given(1, 2, 3), *facts], "traced").history.acknowledgements[0].how

    assert how(*steps, *again, acked) == "acks_all"
    assert how(*steps, acked) == "acks_1"
    assert how(*steps[1:], acked) == "acks_all"  # Broker 1 may have led on unseen.
    history = ev.CoverageDeclared("controller_history", None, True)
    assert how(history, *steps[1:], acked) == "acks_1"
    assert how(history, *steps[1:], again[0], acked) == "acks_all"


def test_a_later_epoch_that_only_a_log_names_may_be_of_who_wrote_and_led_on() -> None:
    """Broker 1's lines and the controller's history are withheld; its log names epoch 2."""
    facts = [
        *given(2, 3),
        ev.BecameFollower(2, 0, 1, 0, 0),
        ev.BecameLeader(2, 1, 0, 0),
        ev.RecordsAcknowledged(0, 1, "all", 0, 0),
        copy(1, (0, 1, 0, 0), (1, 2, 2, 0), stopped=False),
        copy(2, stopped=False),
        copy(3, stopped=False),
    ]

    assert verdict(facts) == verdict(facts, ACKNOWLEDGED) == "UNKNOWN"


def test_of_an_epoch_that_nothing_names_any_whose_lines_are_missing_may_have_led_on() -> None:
    """Broker 3 led epoch 3, named by its records alone, missed epoch 4 and answered in epoch 5."""
    facts = [
        *given(1, 2),
        ev.BecameFollower(1, 2, 3, 0, 0),
        ev.BecameLeader(1, 4, 0, 0),
        ev.BecameFollower(1, 5, 3, 0, 0),
        ev.RecordsAcknowledged(0, 1, "all", 3, 0),
        *(copy(r, (0, 1, 3, 0), (1, 2, 5, 0), mark=1) for r in (1, 2, 3)),
    ]

    assert verdict(facts) == verdict(facts, ACKNOWLEDGED) == "UNKNOWN"
    assert verdict([ev.CoverageDeclared("broker_log", 3, True), *facts]) == "VIOLATED"


def test_a_mark_at_a_transition_is_of_any_earlier_epoch_where_lines_are_missing() -> None:
    """Broker 2 led epoch 1, too, of which no line is left; the log that counts is not here."""
    facts = [
        *given(1),
        elected(2, 1, isr=(2,)),
        ev.BecameLeader(1, 0, 0, 0),
        ev.BecameFollower(2, 0, 1, 0, 0),
        ev.BecameLeader(2, 2, 1, 1),
        copy(1),
    ]

    assert verdict(facts) != "VIOLATED"


def test_the_mark_that_a_follower_cuts_to_is_no_longer_that_of_its_last_term() -> None:
    """Before KIP-101: broker 1 led epoch 0, learned a mark in epoch 1, cuts to it in epoch 2."""
    facts = [
        *given(1, 2, 3, version="0.8.2.2", acks=False),
        *(elected(1, 0, "initial"), ev.BecameLeader(1, 0, None, None)),
        *(elected(2, 1), ev.BecameLeader(2, 1, None, None), ev.BecameFollower(1, 1, 2, None, None)),
        *(elected(3, 2), ev.BecameLeader(3, 2, None, None), ev.BecameFollower(1, 2, 3, None, None)),
        ev.Truncated(1, 1, None, "high_watermark"),
        *(copy(r, (0, 1, 1, 0), mark=1) for r in (1, 2)),
    ]

    assert not view_of(told(facts)).absences


def diverged(mark: int) -> list[ev.Fact]:
    """Broker 3 kept offset 3 of epoch 0, which broker 2, leader of epoch 1, never had."""
    return [
        *given(1, 2, 3, version="2.0.0"),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        ev.ReplicaStopped(1, "process_crash"),
        elected(2, 1),
        ev.BecameLeader(2, 1, 3, 3),
        ev.BecameFollower(3, 1, 2, 4, 3),
        copy(1, (0, 3, 0, 0), (3, 5, 1, 0), mark=5),
        copy(2, (0, 3, 0, 0), (3, 5, 1, 0), mark=5),
        copy(3, (0, 3, 0, 0), (3, 4, 0, 7), mark=mark),
    ]


def test_a_high_watermark_learned_later_commits_nothing_of_a_diverged_followers_own() -> None:
    assert verdict(diverged(4)) == "UNKNOWN"
    assert verdict(diverged(3)) == "HOLDS"


def test_nor_one_learned_from_a_longer_log_that_holds_another_record() -> None:
    """KIP-279: broker 1 leads on in epoch 2 with a longer log; broker 3 keeps its own offset 3."""
    facts = [
        *given(1, 2, 3, version="1.1.1"),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        elected(3, 1, "unclean", (3,)),
        ev.BecameLeader(3, 1, 3, 3),
        elected(1, 2, "unclean", (1,)),
        ev.BecameLeader(1, 2, 5, 5),
        ev.BecameFollower(3, 2, 1, 4, 3),
        copy(1, (0, 5, 0, 0), (5, 6, 2, 0), mark=6),
        copy(2, (0, 5, 0, 0), (5, 6, 2, 0), mark=6),
        copy(3, (0, 3, 0, 0), (3, 4, 1, 7), (4, 5, 0, 0), (5, 6, 2, 0), mark=6),
    ]

    assert not view_of(told(facts)).absences


@pytest.mark.parametrize(("lines", "leader_epoch", "found"), [
    (True, 0, "VIOLATED"), (False, 0, "UNKNOWN"), (False, 1, "VIOLATED"),
])  # fmt: skip
def test_nor_one_learned_from_a_leader_with_another_record_of_the_same_epoch(
    lines: bool, leader_epoch: int, found: str
) -> None:
    """Broker 1 led epoch 0 twice (ZooKeeper) and wrote offset 0 again. Whether it has followed
    broker 2 since, and cut nothing by epochs, its lines would tell."""
    facts = [
        *given(*((1, 2, 3) if lines else (2, 3)), version="2.0.1"),
        elected(1, 0, "initial"),
        *([ev.BecameLeader(1, 0, 0, 0)] if lines else []),
        elected(2, 1, "clean"),
        ev.BecameLeader(2, 1, 3 - leader_epoch, 2),
        copy(1, (0, 2, 0, 0), (2, 3, 0, 7), mark=3),
        copy(2, (0, 2, 0, 0), (2, 3, leader_epoch, 1), (3, 9, 1, 0), mark=9),
        copy(3, (0, 2, 0, 0), (2, 3, leader_epoch, 1), (3, 9, 1, 0), mark=9),
    ]
    assert verdict(facts) == found


def test_a_traced_follower_may_take_a_high_watermark_over_what_it_is_about_to_cut() -> None:
    """KAFKA-14704; broker 2, which leads without these records, is not traced."""
    facts = [
        *given(2, 3, version="2.8.2", acks=False),
        ev.CoverageDeclared("replica_trace", 1, True),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        ev.LeaderAppended(1, 0, 4, 0),
        elected(2, 1),
        ev.BecameLeader(2, 1, 2, 0),
        ev.BecameFollower(1, 1, 2, 4, 0),
        ev.HighWatermarkAdvanced(1, 4),
        ev.Truncated(1, 2, 4, "diverging_epoch"),
        copy(2, (0, 2, 0, 0), (2, 6, 1, 0)),
    ]
    state = told(facts, "traced")

    assert not view_of(state).absences


def test_a_high_watermark_may_lie_over_what_had_been_removed_when_it_was_last_seen() -> None:
    """Broker 1 deletes below 1; broker 2 is elected without it; the file is of broker 1's end."""
    facts = [
        *given(1, 2, acks=False),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 1, 1),
        ev.LogStartAdvanced(1, 1, "deletion"),
        ev.LeadershipRecorded(2, 1, (1, 2), 1, "unclean"),
        ev.BecameLeader(2, 1, 0, 0),
        ev.BecameFollower(1, 1, 2, 1, 1),
        ev.Truncated(1, 0, None, "leader_epoch"),
        elected(2, 2, "same_leader"),
        ev.BecameLeader(2, 2, 0, 0),
        copy(1, mark=1, stopped=False),
        copy(2, (0, 1, 2, 4), mark=0, stopped=False),
        copy(3, mark=0, stopped=False),
    ]

    assert verdict(facts) == "UNKNOWN"


@pytest.mark.parametrize(
    ("leader", "followed", "covered", "expected"),
    [
        (1, True, (1, 2, 3), "UNKNOWN"),
        (1, False, (1, 2, 3), "UNKNOWN"),
        (3, False, (1, 2, 3), "VIOLATED"),
        (3, False, (1, 3), "UNKNOWN"),
    ],
)
def test_what_stood_below_a_followers_mark_may_never_have_been_its_leaders(
    leader: int, followed: bool, covered: tuple[int, ...], expected: str
) -> None:
    """A leader came back with nothing and wrote anew, without epochs; broker 2, whose log ended no
    lower, kept the old records, and its mark of the new ones lies over them."""

    def held(replica: int, *contents: int) -> ev.Fact:
        spans = tuple(Span(n, n + 1, None, content) for n, content in enumerate(contents))
        return ev.ReplicaLogObserved(replica, 0, len(contents), spans, 3, None, None, True)

    facts = [
        *given(*covered, version="0.10.2.2"),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        ev.BecameFollower(2, 0, 1),
        ev.ReplicaStopped(leader, "process_crash"),
        elected(leader, 1, "same_leader" if leader == 1 else "clean"),
        *([ev.BecameFollower(2, 1, leader)] if followed else []),
        ev.ReplicaStarted(leader, 0, 0, None, False),
        ev.BecameLeader(leader, 1, 0, 0),
        held(leader, 2, 3, 4),
        held(2, 0, 1, 4),
    ]
    assert verdict(facts) == expected


def test_a_leader_of_whom_no_line_tells_may_have_held_another_under_a_followers_mark() -> None:
    """Broker 2's record of epoch 1 lies below a mark that it may have learned of broker 3, which
    has one of epoch 0 there, and wrote none."""
    facts = [
        *given(1, 2, version="1.1.1"),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        elected(2, 1, isr=(2, 3)),
        ev.BecameLeader(2, 1, 0, 0),
        ev.RecordsAcknowledged(0, 1, "1", 1, 1),
        elected(3, 2, isr=(3,)),
        ev.BecameFollower(2, 2, 3, 1, 0),
        copy(2, (0, 1, 1, 1), mark=1),
        copy(3, (0, 1, 0, 0), mark=1),
    ]
    rows = [x for x in view_of(told(facts)).losses if x.record.leader_epoch == 1]
    assert [x.tier for x in rows] == ["acknowledged_by_leader"]


@pytest.mark.parametrize(("again", "found"), [(True, "UNKNOWN"), (False, "VIOLATED")])
def test_a_followers_high_watermark_may_be_of_what_its_leader_wrote_anew_in_its_own_epoch(
    again: bool, found: str
) -> None:
    """Broker 1 loses its disk, keeps its epoch (ZooKeeper), and writes others there: its followers
    cut nothing, and what they learn of it from then on is of its own records."""
    reign: list[ev.Fact] = [
        ev.ReplicaStopped(1, "process_crash"),
        ev.ReplicaStarted(1, 0, 0, None, False),
        ev.BecameLeader(1, 0, 0, 0),
    ]
    facts = [
        *given(1, 2, 3, version="1.1.0"),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        *(reign if again else []),
        copy(1, (0, 2, 0, 1)),
        *(copy(r, (0, 1, 0, 0), (1, 2, 0, 1), mark=1) for r in (2, 3)),
    ]
    assert verdict(facts) == found
    facts.remove(ev.CoverageDeclared("broker_log", 1, True))
    assert verdict([f for f in facts if f not in reign]) == "UNKNOWN"


@pytest.mark.parametrize(("version", "lines", "end", "found"), [
    ("3.2.0", False, 3, "UNKNOWN"), ("3.2.0", True, 3, "VIOLATED"),
    ("2.7.2", False, 3, "VIOLATED"), ("3.4.1", False, 3, "VIOLATED"),
    ("3.2.0", False, 0, "VIOLATED"),
])  # fmt: skip
def test_nor_one_that_a_later_leader_may_have_told_before_a_cut_of_which_no_line_tells(
    version: str, lines: bool, end: int, found: str
) -> None:
    """KAFKA-14704: whether broker 1 followed broker 2, and stopped before it cut, its lines would
    tell; and broker 2 tells of no mark above its log."""
    facts = [
        *given(*((1, 2, 3) if lines else (2, 3)), version=version),
        elected(1, 0, "initial"),
        *([ev.BecameLeader(1, 0, 0, 0)] if lines else []),
        *([ev.ReplicaStopped(1, "process_crash")] if lines else []),
        elected(2, 1, "unclean", (2,)),
        ev.BecameLeader(2, 1, 0, 0),
        copy(1, (0, 1, 0, 0), mark=1),
        copy(2, *[(0, end, 1, 1)] * (end > 0), mark=end),
        copy(3, mark=0),
    ]
    assert verdict(facts) == found
