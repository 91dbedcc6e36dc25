"""Which verdicts stand beside evidence that is declared to be missing."""

import pytest

from replication.protocol.ground import events as ev
from replication.protocol.ground.verdict import HOLDS, UNKNOWN, VIOLATED, Verdict
from replication.protocol.judgement.declared_gaps import Gaps, declared_gaps, with_gaps
from tests.protocol.judgement.told import elected, given, told

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
        # Of these three promises the histories know what is missing.
        (gap("replica_trace", 1), "committed_records_survive", HOLDS, HOLDS),
        (gap("replica_trace", 2), "log_matching", HOLDS, UNKNOWN),
        (gap("replica_trace", 1), "single_leader_per_epoch", VIOLATED, VIOLATED),
        (gap("controller_history"), "leader_in_isr", HOLDS, UNKNOWN),
        (gap("controller_history"), "leader_in_isr", VIOLATED, VIOLATED),
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
    some = ev.CoverageDeclared("replica_trace", 2, False, "2 lines cannot be read")
    state = told([*FACTS, some])
    found = with_gaps(declared_gaps(state), state, Verdict("log_matching", HOLDS, "because"))
    assert found.settled_by == ["some steps of broker 2 (2 lines cannot be read)"]
