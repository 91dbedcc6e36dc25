"""Which verdicts stand beside evidence that is declared to be missing."""

import pytest

from replication.protocol.ground import events as ev
from replication.protocol.ground.verdict import HOLDS, UNKNOWN, VIOLATED, Verdict
from replication.protocol.judgement.declared_gaps import Gaps, declared_gaps, with_gaps
from tests.protocol.judgement.told import ACKNOWLEDGED, copy, elected, given, told, verdict

FACTS = [*given(1, 2, 3), elected(1, 0, "initial"), ev.BecameLeader(1, 0, 0, 0)]
STATE = told(FACTS)


def gap(stream: str, replica: int | None = None) -> Gaps:
    return declared_gaps(told([*FACTS, ev.CoverageDeclared(stream, replica, False)]))


def test_gaps_are_those_declared_and_no_others() -> None:
    assert not declared_gaps(STATE)
    assert gap("replica_trace", 2).brokers == {2}
    assert gap("controller_history").controller
    assert gap("acknowledgements").clients == {"acknowledgements"}
    assert gap("controller_history_end").later == "the end of the controller's history"


@pytest.mark.parametrize(
    ("gaps", "invariant", "verdict", "expected"),
    [
        (gap("replica_trace", 1), "committed_records_survive", HOLDS, UNKNOWN),
        # Broker 2 never led, so nothing of it was promised.
        (gap("replica_trace", 2), "committed_records_survive", HOLDS, HOLDS),
        (gap("replica_trace", 2), "log_matching", HOLDS, UNKNOWN),
        (gap("replica_trace", 1), "single_leader_per_epoch", VIOLATED, VIOLATED),
        (gap("controller_history"), "leader_in_isr", HOLDS, UNKNOWN),
        (gap("controller_history"), "leader_in_isr", VIOLATED, VIOLATED),
        (gap("acknowledgements"), "acknowledged_records_survive", HOLDS, UNKNOWN),
        (gap("acknowledgements"), "consumed_records_survive", HOLDS, HOLDS),
        (gap("committed_records"), "committed_records_survive", HOLDS, UNKNOWN),
        (gap("committed_records"), "committed_records_survive", VIOLATED, VIOLATED),
        (gap("committed_records"), "log_matching", HOLDS, HOLDS),
        (gap("controller_history_end"), "leader_in_isr", HOLDS, UNKNOWN),
        (gap("controller_history_end"), "leader_in_isr", VIOLATED, VIOLATED),
    ],
)
def test_a_verdict_stands_where_no_filling_of_the_gap_could_change_it(
    gaps: Gaps, invariant: str, verdict: str, expected: str
) -> None:
    assert with_gaps(gaps, STATE, Verdict(invariant, verdict, "because")).verdict == expected


def test_what_was_declared_of_a_gap_is_said() -> None:
    some = ev.CoverageDeclared("acknowledgements", None, False, "2 lines cannot be read")
    state = told([*FACTS, some])
    found = with_gaps(declared_gaps(state), state, Verdict(ACKNOWLEDGED, HOLDS, "because"))
    assert found.settled_by == ["some acknowledgements (2 lines cannot be read)"]


@pytest.mark.parametrize(
    ("gone", "policy", "expected"),
    [(1, "delete", UNKNOWN), (1, "compact", VIOLATED), (3, "delete", VIOLATED)],
)
def test_what_a_leader_of_whose_steps_some_are_missing_may_have_deleted_is_in_doubt(
    gone: int, policy: str, expected: str
) -> None:
    facts = [
        *FACTS,
        ev.PartitionDescribed(cleanup_policy=policy),
        ev.RecordsAcknowledged(0, 1, "1", 0, 7),
        elected(2, 1, "unclean", (2,)),
        ev.BecameLeader(2, 1, 0, 0),
        copy(2, (0, 1, 1, 8)),
        ev.CoverageDeclared("replica_trace", gone, False),
    ]
    assert verdict(facts, ACKNOWLEDGED) == expected
