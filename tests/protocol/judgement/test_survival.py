"""What became of a promise, part by part."""

from replication.protocol.ground import events as ev
from replication.protocol.judgement.absence import Absence, Doubt, absence
from replication.protocol.judgement.reference import reference
from replication.protocol.judgement.survival import fate
from replication.protocol.judgement.term_starts import term_start
from tests.protocol.judgement.told import ACKNOWLEDGED, copy, elected, given, told, verdict


def nameless(acks: str) -> list[ev.Fact]:
    """Broker 1 acknowledges by offset alone; broker 2 leads epoch 1 from 0; broker 1 leads on."""
    return [
        *given(1, 2, 3),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        elected(2, 1),
        ev.BecameLeader(2, 1, 0, 0),
        ev.RecordsAcknowledged(0, 2, acks),
        elected(1, 2),
        ev.BecameLeader(1, 2, 2, 0),
        ev.BecameFollower(2, 2, 1, 0, 0),
        copy(1, (0, 2, 0, 0), (2, 3, 2, 0), mark=0),
        copy(2, (0, 2, 0, 0), (2, 3, 2, 0), mark=0),
        copy(3, (0, 2, 0, 0), (2, 3, 2, 0), mark=0),
    ]


def test_a_record_known_by_offset_is_followed_under_the_epoch_that_stands_there() -> None:
    assert verdict(nameless("1"), ACKNOWLEDGED) == "VIOLATED"


def test_a_promise_falls_into_what_is_absent_and_what_is_in_doubt() -> None:
    facts = [
        *given(1, 2, 3),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        ev.RecordsAcknowledged(0, 4, "all", 0, 0),
        ev.ReplicaStopped(1, "process_crash"),
        elected(2, 1),
        ev.BecameLeader(2, 1, 2, 2),
        copy(2, (0, 2, 0, 0), (2, 3, 1, 5), mark=3),
    ]
    state = told(facts)
    ref = reference(state)
    absences, doubts = fate(state, ref, state.history.acknowledgements[0])

    assert [(a.first_offset, a.end_offset, a.back) for a in absences] == [
        (2, 3, False),
        (3, 4, False),
    ]
    assert all(isinstance(a, Absence) for a in absences)
    assert doubts == list[Doubt]()
    last = state.history.terms[-1]
    assert absences[0].term is last
    assert term_start(state, last) == 2
    again = absence(state, ref, absences[0].promise, 2, 3, last, back=False, final=True)
    assert [s.because for s in again.steps][1] == (
        "broker 2 leads epoch 1 from offset 2: its log ended below 3"
    )


def test_what_was_deleted_is_not_asked_for_where_only_lines_tell_it() -> None:
    facts = [
        *given(1, 2, 3),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        ev.RecordsAcknowledged(0, 2, "all", 0, 0),
        ev.LogStartAdvanced(1, 2, "deletion"),
        copy(2, (0, 2, 0, 0), mark=2),
    ]
    state = told(facts)

    assert fate(state, reference(state), state.history.acknowledgements[0]) == ([], [])
