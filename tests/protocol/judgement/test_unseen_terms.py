"""A later leader whose start nobody saw is a doubt, unless rules decide."""

import pytest

from replication.evidence.joining.copies import UNSEEN_CONTENT
from replication.protocol.ground import events as ev
from replication.protocol.ground.model import Span
from replication.protocol.judgement.reference import reference
from replication.protocol.judgement.unseen_terms import (
    kept_since_in_sync,
    lost_after_it_began,
    lost_storage_in_isr,
    never_began,
    unnamed_leader_epoch,
)
from tests.protocol.judgement.told import ACKNOWLEDGED, copy, elected, given, told, verdict


def through_broker_2(acks: str, kind: str, *covered: int) -> list[ev.Fact]:
    """Broker 1 acknowledges in epoch 0, broker 2 leads epoch 1 unseen, broker 1 epoch 2."""
    return [
        *given(*covered),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        ev.RecordsAcknowledged(0, 2, acks, 0, 0),
        ev.ReplicaStopped(1, "process_crash"),
        elected(2, 1, kind),
        ev.ReplicaStarted(1, 0, 2, None, True),
        elected(1, 2),
        ev.BecameLeader(1, 2, 2, 2),
        copy(1, (0, 2, 0, 0), (2, 3, 2, 0), mark=3),
        copy(2, (0, 2, 0, 0), (2, 3, 2, 0), mark=3),
        copy(3, (0, 2, 0, 0), (2, 3, 2, 0), mark=3),
    ]


@pytest.mark.parametrize(
    ("acks", "kind", "found"),
    [
        ("all", "clean", "HOLDS"),
        ("all", "unclean", "UNKNOWN"),
        ("1", "clean", "UNKNOWN"),
    ],
)
def test_whether_a_leader_held_it_that_nobody_saw_begin(acks: str, kind: str, found: str) -> None:
    assert verdict(through_broker_2(acks, kind, 1, 3), ACKNOWLEDGED) == found


def test_a_leader_whose_whole_log_tells_of_no_start_never_led() -> None:
    facts = through_broker_2("1", "clean", 1, 2, 3)
    state = told(facts)

    assert [t.leader for t in state.history.terms if never_began(state, t)] == [2]
    assert verdict(facts, ACKNOWLEDGED) == "HOLDS"


def test_an_epoch_that_nothing_names_may_have_had_a_leader() -> None:
    facts: list[ev.Fact] = [
        *given(1, 3),
        ev.BecameLeader(1, 0, 0, 0),
        ev.RecordsAcknowledged(0, 2, "1", 0, 0),
        ev.BecameLeader(1, 2, 2, 2),
        copy(1, (0, 2, 0, 0), mark=2),
        copy(2, (0, 2, 0, 0), mark=2),
        copy(3, (0, 2, 0, 0), mark=2),
    ]
    state = told(facts)

    assert unnamed_leader_epoch(state, reference(state).starts, 0) == 1
    assert verdict(facts, ACKNOWLEDGED) == "UNKNOWN"


def test_a_controller_tells_of_the_epochs_since_its_own_first_record_alone() -> None:
    """The first record of broker 2 as the controller is of an epoch that nobody led."""
    for gone in (2, 1):
        facts: list[ev.Fact] = [
            *given(2, 3),
            elected(1, 0, "initial"),
            ev.RecordsAcknowledged(0, 2, "1", 0, 0),
            ev.LeadershipRecorded(None, gone, (2,), gone, None),
            elected(2, gone + 1, "clean", (2,)),
            ev.BecameLeader(2, gone + 1, 2, 2),
            copy(2, (0, 2, 0, 0), mark=2),
        ]
        state = told(facts)
        missed = unnamed_leader_epoch(state, reference(state).starts, 0)
        assert missed == (1 if gone == 2 else None)
        assert verdict(facts, ACKNOWLEDGED) == ("UNKNOWN" if gone == 2 else "HOLDS")


def log_without_epochs(replica: int) -> ev.Fact:
    """Before leader epochs, and compacted: nothing is left below offset 4."""
    held = (Span(4, 6, None, 0),)
    return ev.ReplicaLogObserved(replica, 0, 6, held, None, None, (), True)


def test_a_record_that_begins_in_a_gap_tells_nothing_of_the_epochs_before() -> None:
    """Broker 2 answered in one of them, of which no line is here: that its record replaced the
    other broker's, which it wrote in no epoch but the last then, is not said."""
    for kind, missed, found in (("unknown", 0, "UNKNOWN"), ("clean", None, "VIOLATED")):
        facts: list[ev.Fact] = [
            *given(3, version="0.10.2.2"),
            ev.PartitionDescribed(cleanup_policy="compact"),
            elected(1, 2, kind),
            ev.BecameLeader(1, 2),
            ev.RecordsAcknowledged(0, 1, "all", None, UNSEEN_CONTENT, leader=1),
            ev.RecordsAcknowledged(0, 1, "all", None, UNSEEN_CONTENT + 1, leader=2),
            elected(2, 3),
            ev.BecameLeader(2, 3),
            *(log_without_epochs(r) for r in (1, 2, 3)),
        ]
        state = told(facts)

        assert unnamed_leader_epoch(state, reference(state).starts, -1) == missed
        assert verdict(facts, ACKNOWLEDGED) == found


@pytest.mark.parametrize(("committed", "kept"), [(4, True), (5, False), (None, False)])
def test_what_a_leader_cut_as_it_stepped_down_had_not_been_committed(
    committed: int | None, kept: bool
) -> None:
    """Broker 1 cuts to 4 as it follows in epoch 1, and is elected from the ISR again."""
    facts = [
        *given(1, 2, 3, version="0.10.2.2"),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        elected(2, 1),
        ev.BecameFollower(1, 1, 2),
        ev.Truncated(1, 4, 6, "high_watermark"),
        elected(1, 2),
        ev.BecameLeader(1, 2),
    ]
    state = told(facts)
    assert state.history.terms[0].end_high_watermark == 4
    state.history.terms[0].end_high_watermark = committed

    assert kept_since_in_sync(state, state.history.terms[-1]) is kept


@pytest.mark.parametrize(("clean", "found"), [(None, 4), (True, 4), (False, None)])
def test_who_crashed_before_it_cut_what_it_had_led_with_cuts_to_an_older_high_watermark(
    clean: bool | None, found: int | None
) -> None:
    """A clean stop has written how far it had come, a crash leaves what was written before."""
    back: list[ev.Fact] = [] if clean is None else [ev.ReplicaStarted(1, 0, 6, None, clean)]
    facts = [
        *given(1, 2, 3, version="0.10.2.2"),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        elected(2, 1, "unclean", (2,)),
        ev.BecameFollower(1, 1, 2),
        *back,
        ev.BecameFollower(1, 1, 2),
        ev.Truncated(1, 4, 6, "high_watermark"),
    ]
    assert told(facts).history.terms[0].end_high_watermark == found


def test_a_leader_that_lost_its_disk_after_it_began_had_all_until_then() -> None:
    """Its own lines tell which came first, also where none tells its log end."""
    facts = [
        *given(1, 2, 3, version="0.10.2.2"),
        elected(1, 0, "initial"),
        ev.ReplicaStarted(1, 0, 9, None, True),
        ev.BecameFollower(1, 0, 2),
        ev.BecameLeader(1, 1),
        ev.ReplicaStopped(1, "process_crash"),
        ev.ReplicaStarted(1, 0, 0, None, False),
        ev.BecameLeader(1, 2, 0),
    ]
    state = told(facts)
    (loss,) = state.history.storage_losses
    before, after = state.history.terms[-2:]

    assert (lost_after_it_began(loss, before), lost_after_it_began(loss, after)) == (True, False)
    assert not lost_storage_in_isr(state, before, 9)
    assert lost_storage_in_isr(state, after, 9)


def cut_to_high_watermark(*before: ev.Fact) -> list[ev.Fact]:
    """Before KIP-101: broker 2 follows broker 3 and cuts to its high watermark, 8; broker 3 writes
    up to 18, had 18 committed by the end of its term, and broker 2 leads next, from the ISR."""
    settings = ev.PartitionDescribed((1, 2, 3), 1, False, "delete", "0.10.2.2", None, "zookeeper")
    held = Span(0, 18, None, 0)
    return [
        *given(1, 2, 3),
        settings,
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0),
        *(ev.BecameFollower(r, 0, 1) for r in (2, 3)),
        ev.RecordsAcknowledged(0, 9, "all", None, 0, 1),
        ev.ReplicaStopped(1, "process_crash"),
        elected(3, 1, "clean", (2, 3)),
        ev.BecameLeader(3, 1),
        ev.BecameFollower(2, 1, 3),
        *before,
        ev.Truncated(2, 8, None, "high_watermark"),
        ev.RecordsAcknowledged(9, 18, "all", None, 0, 3),
        elected(2, 2, "clean", (2, 3)),
        ev.BecameLeader(2, 2),
        ev.BecameFollower(3, 2, 2),
        ev.Truncated(3, 18, None, "high_watermark"),
        ev.ReplicaStarted(1, 0, 9, None, None),
        ev.BecameFollower(1, 2, 2),
        *(ev.ReplicaLogObserved(r, 0, 18, (held,), 18, stopped=True) for r in (1, 2, 3)),
    ]


def test_what_a_leader_committed_a_follower_fetched_after_the_cut_that_it_began_with() -> None:
    again = (ev.ReplicaStarted(2, 0, 18, None, True), ev.BecameFollower(2, 1, 3))

    assert verdict(cut_to_high_watermark()) == "HOLDS"
    # Back in the same epoch it cuts what it had fetched.
    assert verdict(cut_to_high_watermark(*again)) == "UNKNOWN"


@pytest.mark.parametrize(("version", "found"), [("2.0.0", "UNKNOWN"), ("2.8.1", "HOLDS")])
def test_a_followers_log_does_not_tell_where_its_leader_began_where_it_may_keep_a_fork(
    version: str, found: str
) -> None:
    """Before KIP-320 it may have appended what its leader wrote behind what that one lacked."""
    facts = [
        *given(1, 2, version=version),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        ev.RecordsAcknowledged(0, 2, "all", 0, 0),
        ev.ReplicaStopped(1, "process_crash"),
        elected(3, 1, "unclean", (3,)),
        ev.BecameFollower(2, 1, 3, 2, 0),
        elected(2, 2),
        ev.BecameLeader(2, 2, 4, 0),
        copy(2, (0, 2, 0, 0), (2, 4, 1, 1), mark=0),
    ]
    assert verdict(facts, ACKNOWLEDGED) == found


CRASHED = [ev.ReplicaStopped(2, "process_crash")]
FOLLOWING = ev.BecameFollower(2, 0, 3)


@pytest.mark.parametrize(
    ("started_with", "then", "found"),
    [
        (5, [], "HOLDS"),
        (4, [], "UNKNOWN"),
        (5, [ev.Truncated(2, 4, None, "high_watermark")], "UNKNOWN"),
        (5, [*CRASHED, ev.ReplicaStarted(2, 0, 4, None, False), FOLLOWING], "UNKNOWN"),
    ],
)
def test_what_a_leader_had_when_it_started_last_it_led_with_unless_it_cut_it(
    started_with: int, then: list[ev.Fact], found: str
) -> None:
    """Up to 0.10 no line of a new leader tells its log end; the one that loaded its log does."""
    facts: list[ev.Fact] = [
        *given(1, 2, 3, version="0.10.2.2", acks=False),
        elected(3, 0, "initial"),
        ev.BecameLeader(3, 0),
        FOLLOWING,
        ev.Truncated(2, 0, None, "high_watermark"),
        *CRASHED,
        ev.ReplicaStarted(2, 0, started_with, None, False),
        FOLLOWING,
        *then,
        elected(2, 1, isr=(2,)),
        ev.BecameLeader(2, 1),
        ev.BecameFollower(3, 1, 2),
        ev.Truncated(3, 5, None, "high_watermark"),
        *(
            ev.ReplicaLogObserved(r, 0, 6, (Span(0, 6, None, 0),), 6, None, None, True)
            for r in (1, 2, 3)
        ),
    ]

    assert verdict(facts) == found


@pytest.mark.parametrize(("cut", "found"), [(0, "UNKNOWN"), (1, "HOLDS")])
def test_what_a_follower_cut_below_its_own_high_watermark_had_been_committed(
    cut: int, found: str
) -> None:
    """Broker 2 had learned of broker 3, whose lines are missing, that one record is committed; the
    next leader holds another there."""
    facts = [
        *given(1, 2, version="4.0.0"),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        elected(3, 1, isr=(1, 3)),
        ev.BecameFollower(1, 1, 3, 2, 0),
        ev.BecameFollower(2, 1, 3, 0, 0),
        elected(1, 2, isr=(1,)),
        ev.BecameLeader(1, 2, 2, 0),
        ev.BecameFollower(2, 2, 1, 2, 1),
        ev.Truncated(2, cut, None, "diverging_epoch"),
        copy(1, (0, 2, 0, 0), (2, 5, 2, 2), mark=5),
    ]
    assert verdict(facts) == found


@pytest.mark.parametrize(("kind", "found"), [("unclean", "UNKNOWN"), ("clean", "HOLDS")])
def test_who_leads_on_past_one_elected_beside_it_may_have_answered_before(
    kind: str, found: str
) -> None:
    """Broker 3 led from below what broker 1 answered for in epoch 0 or when it led on in epoch 2: a
    leader from the ISR would have had it."""
    facts = [
        *given(1, 2, 3, version="3.9.1"),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        elected(3, 1, kind, (1, 3)),
        ev.BecameLeader(3, 1, 0, 0),
        ev.RecordsAcknowledged(0, 1, "all", 0, 0),
        elected(1, 2, "clean", (1, 3)),
        ev.BecameLeader(1, 2, 1, 1),
        copy(1, (0, 1, 0, 0)),
        copy(3),
    ]
    assert verdict(facts, ACKNOWLEDGED) == found


@pytest.mark.parametrize(("recorded", "found"), [(False, "UNKNOWN"), (True, "HOLDS")])
def test_who_led_again_may_have_come_back_with_less_where_neither_controller_nor_lines_tell(
    recorded: bool, found: str
) -> None:
    """Broker 1 led two epochs, as broker 3 heard, which has the record and leads now."""
    facts = [
        *given(2, 3, version="1.1.1"),
        *([elected(1, 0, "initial")] if recorded else []),
        ev.BecameFollower(3, 0, 1, 0, 0),
        ev.RecordsAcknowledged(1, 4, "1", 0, 1),
        *([elected(1, 1, "same_leader")] if recorded else []),
        ev.BecameFollower(3, 1, 1, 5, 0),
        *([elected(3, 2)] if recorded else []),
        ev.BecameLeader(3, 2, 5, 0),
        *(copy(r, (0, 1, 0, 0), (1, 4, 0, 1), (4, 5, 0, 2)) for r in (1, 2, 3)),
    ]
    assert verdict(facts, ACKNOWLEDGED) == found


def test_whoever_led_in_the_newest_epoch_of_a_log_may_have_answered() -> None:
    """The controllers' history at hand ends with epoch 0; broker 2 may lead in the next, too."""
    facts = [
        *given(1, 3, version="3.3.2"),
        ev.PartitionDescribed(leader=2, controller="kraft"),
        ev.CoverageDeclared("controller_history", None, True),
        elected(2, 0, "initial"),
        ev.RecordsAcknowledged(5, 6, "1", None, None, 2),
        *(copy(r, (0, 4, 0, 0), (4, 9, 1, 0), mark=9) for r in (1, 2, 3)),
    ]
    assert verdict(facts, ACKNOWLEDGED) == "UNKNOWN"


@pytest.mark.parametrize(("kind", "newest", "found"), [
    ("unknown", 3, "UNKNOWN"), ("clean", 3, "VIOLATED"), ("clean", 4, "UNKNOWN"),
])  # fmt: skip
def test_an_epoch_behind_a_gap_in_the_controllers_record_may_have_had_a_leader(
    kind: str, newest: int, found: str
) -> None:
    """The lines of another controller are missing, and of broker 2, which may have led epoch 1.
    Whoever leads in epoch 3 began above the record; in one before epoch 4 it may have been lost."""
    facts = [
        *given(1, 3),
        ev.PartitionDescribed(leader=2),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        ev.ReplicaStopped(1, "process_crash"),
        ev.RecordsAcknowledged(3, 4, "all", None, None, 2),
        elected(2, 2, kind, (2,)),
        copy(2, (0, 2, 0, 0), (2, 5, 1, 0), (5, 7, 2, 0), (7, 9, newest, 0), mark=9),
    ]
    assert verdict(facts) == found
