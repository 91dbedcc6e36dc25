"""Where every send is known, and its record stands, nothing was lost that nothing tells of."""

from collections.abc import Sequence

from replication.protocol.ground import events as ev
from replication.protocol.judgement.every_send import every_send_stands
from replication.protocol.judgement.view import view_of
from tests.protocol.judgement.told import copy, elected, given, told, verdict

ALL_PRODUCERS = ev.CoverageDeclared("all_producers", None, True)
Spans = Sequence[tuple[int, int, int, int]]


def elected_beside(
    *more: ev.Fact, began: int = 5, first: Spans = ((0, 5, 0, 0),), acks: str = "all"
) -> list[ev.Fact]:
    """Broker 1, alone in the ISR, crashed; broker 2 is elected beside it, and leads on."""
    return [
        *given(1, 2, 3),
        *more,
        elected(1, 0, "initial", (1, 2, 3)),
        ev.BecameLeader(1, 0, 0, 0),
        ev.LeadershipRecorded(1, 0, (1,), 1, None),
        ev.RecordsAcknowledged(0, 5, acks, 0, 0),
        ev.ReplicaStopped(1, "process_crash"),
        elected(2, 1, "unclean", (2,)),
        ev.BecameLeader(2, 1, began, None),
        copy(1, *first, stopped=False),
        *(copy(r, (0, 5, 0, 0), (5, 7, 1, 1)) for r in (2, 3)),
    ]


def test_what_an_election_beside_the_isr_may_have_cost_is_known_where_every_send_stands() -> None:
    assert verdict(elected_beside()) == "UNKNOWN"
    assert verdict(elected_beside(ALL_PRODUCERS)) == "HOLDS"
    assert every_send_stands(view_of(told(elected_beside(ALL_PRODUCERS))))
    unanswered = ev.CoverageDeclared("sends", None, False, "1 without an answer")
    assert verdict(elected_beside(ALL_PRODUCERS, unanswered)) == "UNKNOWN"


def test_a_record_beside_the_log_or_one_that_a_leader_was_without_may_have_been_committed() -> None:
    beside = ((0, 5, 0, 0), (5, 6, 0, 9))
    assert verdict(elected_beside(ALL_PRODUCERS, first=beside)) == "UNKNOWN"
    assert verdict(elected_beside(ALL_PRODUCERS, began=3, acks="1")) != "HOLDS"


def test_the_logs_of_some_producers_tell_nothing_of_others() -> None:
    gap = ev.CoverageDeclared("acknowledgements", None, False, "a line is torn")
    assert verdict(elected_beside(ALL_PRODUCERS, gap)) == "UNKNOWN"
    assert told(elected_beside()).covered("acknowledgements")
