"""The step that took a record: by term, by cut and by disk, each alone."""

from replication.protocol.ground import events as ev
from replication.protocol.ground.model import Span
from replication.protocol.judgement.loss_cause import Lost, borders, cause_of, losing_term
from tests.protocol.judgement.told import copy, elected, given, told

RECORD = Span(3, 4, 0, 0)


def story(kind: str, start: int, isr: tuple[int, ...] = (1, 2, 3)) -> list[ev.Fact]:
    """Broker 1 led with five records; broker 2 takes over from this offset on."""
    return [
        *given(1, 2, 3),
        elected(1, 0, "initial", isr),
        ev.BecameLeader(1, 0, 0, 0),
        elected(2, 1, kind),
        ev.BecameLeader(2, 1, start, 0),
        copy(2, (0, start, 0, 0), (start, 9, 1, 0), mark=9),
    ]


def test_the_term_whose_leader_began_below_the_record_lost_it() -> None:
    state = told(story("clean", 3))
    term = losing_term(state, Lost(RECORD, "acknowledged_by_leader", None), [])
    assert term is not None
    assert (term.leader, term.leader_epoch) == (2, 1)
    assert 3 in borders(state)
    kept = told(story("clean", 5))
    assert losing_term(kept, Lost(RECORD, "acknowledged_by_leader", None), []) is None


def test_only_the_leader_had_promised_it() -> None:
    state = told(story("clean", 3))
    assert cause_of(state, RECORD, "acknowledged_by_leader", []).name == "acks_one_failover"


def test_an_unclean_election_outside_the_isr_took_it() -> None:
    cause = cause_of(told(story("unclean", 3, (1, 3))), RECORD, "acknowledged_by_isr", [])
    assert (cause.name, cause.contributing) == ("unclean_election", ())
    assert cause.election is not None
    assert cause.election.leader == 2


def test_what_the_last_leader_wrote_itself_no_election_took() -> None:
    """Gone from its own log: it took over before the record was written."""
    lost = Lost(Span(10, 11, 1, 0), "committed", None)

    assert losing_term(told(story("unclean", 5)), lost, []) is None
