"""Records that bear no leader epoch: what a leader between may have lacked."""

import pytest

from replication.protocol.ground import events as ev
from replication.protocol.ground.model import Span
from replication.protocol.judgement.reference import reference
from replication.protocol.judgement.without_epochs import lacked_whoever_wrote
from tests.protocol.judgement.told import ACKNOWLEDGED, elected, given, told, verdict


@pytest.mark.parametrize("content", [7, None])
@pytest.mark.parametrize(
    ("recorded", "acks", "found"), [(False, "1", "UNKNOWN"), (True, "all", "HOLDS")]
)
def test_a_leader_between_whose_election_nothing_tells_may_have_lacked_what_is_back(
    content: int | None, recorded: bool, acks: str, found: str
) -> None:
    """Broker 1 writes, broker 2 leads, and broker 1 leads again (0.10: lines name no log ends)."""
    word = [[elected(1, 0, "initial")], [elected(2, 1)], [elected(1, 2)]]
    first, second, third = word if recorded else ([], [], [])
    facts = [
        *given(1, 2, 3, version="0.10.2.2"),
        *first,
        ev.BecameLeader(1, 0, None, None),
        ev.RecordsAcknowledged(0, 1, acks, None, content),
        *second,
        ev.BecameLeader(2, 1, None, None),
        *third,
        ev.BecameLeader(1, 2, None, None),
        ev.BecameFollower(2, 2, 1, None, None),
        *(
            ev.ReplicaLogObserved(
                r, 0, 1, spans=(Span(0, 1, None, 7),), high_watermark=1, stopped=True
            )
            for r in (1, 2, 3)
        ),
    ]

    assert verdict(facts, ACKNOWLEDGED) == found
    state = told(facts)
    (promise,) = state.history.acknowledgements
    doubts = lacked_whoever_wrote(state, reference(state), promise)
    assert bool(doubts) is (found == "UNKNOWN")


@pytest.mark.parametrize(("kind", "named"), [("unclean", False), (None, True)])
def test_where_it_is_told_how_a_leader_was_elected_nobody_is_asked_for_that(
    kind: str | None, named: bool
) -> None:
    second = [] if kind is None else [ev.LeadershipRecorded(2, 1, (2,), 1, kind)]
    facts = [
        *given(1, 2, 3, version="0.10.2.2"),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0),
        ev.RecordsAcknowledged(0, 1, "1", None, 7),
        *second,
        ev.BecameLeader(2, 1),
        elected(1, 2),
        ev.BecameLeader(1, 2),
        *(ev.ReplicaLogObserved(r, 0, 1, (Span(0, 1, None, 7),), 1) for r in (1, 2, 3)),
    ]
    state = told(facts)
    (doubt,) = lacked_whoever_wrote(state, reference(state), state.history.acknowledgements[0])
    assert ("controller's history" in doubt.settled_by) is named
    assert ("how it was elected" in doubt.reason) is named


@pytest.mark.parametrize(
    ("recorded", "acks", "more", "found"),
    [
        (True, "1", [], "UNKNOWN"),
        (False, "1", [], "UNKNOWN"),
        (True, "1", [ev.BecameFollower(1, 1, 2, None, None), ev.Truncated(1, 0, 1)], "HOLDS"),
        (True, "1", [ev.BecameLeader(1, 1, None, None)], "HOLDS"),
        (True, "all", [], "HOLDS"),
    ],
)
def test_who_led_on_past_one_that_lacked_it_may_have_answered_before_that_or_since(
    recorded: bool, acks: str, more: list[ev.Fact], found: str
) -> None:
    """Broker 2 starts with nothing, leads, and is not heard of by broker 1 (0.8 to 0.10)."""
    word = [[elected(1, 0, "initial")], [elected(2, 1)], [elected(1, 2)]]
    first, second, third = word if recorded else ([], [], [])
    beside: list[ev.Fact] = [ev.ReplicaStarted(2, 0, 0, None, True), ev.BecameLeader(2, 1)]
    if more and isinstance(more[0], ev.BecameLeader):
        second, beside = [elected(1, 1, "same_leader")], []
    facts = [
        *given(1, 2, 3, version="0.10.2.2"),
        *first,
        ev.ReplicaStarted(1, 0, 0, None, True),
        ev.BecameLeader(1, 0),
        ev.RecordsAcknowledged(0, 1, acks, None, 7, 1),
        *second,
        *beside,
        *more,
        *third,
        ev.BecameLeader(1, 2),
        *(
            ev.ReplicaLogObserved(
                r, 0, 1, spans=(Span(0, 1, None, 7),), high_watermark=1, stopped=True
            )
            for r in (1, 2, 3)
        ),
    ]
    assert verdict(facts, ACKNOWLEDGED) == found


@pytest.mark.parametrize(("kind", "found"), [("unclean", "UNKNOWN"), ("clean", "HOLDS")])
def test_behind_a_leader_from_the_isr_of_which_nothing_tells_one_beside_it_may_have_lacked_it(
    kind: str, found: str
) -> None:
    """Broker 3 writes and is back; broker 1, whose lines are missing, leads, then broker 2."""
    facts = [
        *given(2, 3, version="0.10.2.2"),
        elected(3, 0, "initial"),
        ev.BecameLeader(3, 0),
        ev.RecordsAcknowledged(0, 1, "all", None, 7, 3),
        elected(1, 1, "preferred", isr=(1, 3)),
        ev.BecameFollower(3, 1, 1),
        ev.Truncated(3, 1, None, "high_watermark"),
        elected(2, 2, kind, isr=(2, 3)),
        ev.BecameLeader(2, 2),
        ev.BecameFollower(3, 2, 2),
        elected(3, 3, isr=(2, 3)),
        ev.BecameLeader(3, 3),
        *(
            ev.ReplicaLogObserved(
                r, 0, 1, spans=(Span(0, 1, None, 7),), high_watermark=1, stopped=True
            )
            for r in (1, 3)
        ),
    ]
    assert verdict(facts, ACKNOWLEDGED) == found
