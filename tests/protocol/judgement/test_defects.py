"""A defect of ours is UNKNOWN for its partition, with its reason, and never an exception."""

import pytest

from replication.protocol.folding.fold import new_state
from replication.protocol.ground import events as ev
from replication.protocol.judgement import judge
from replication.protocol.judgement.defects import answer_or_defect, cannot_be_folded
from tests.protocol.judgement.told import elected, given, told

STATE = told([*given(1), elected(1, 0, "initial")])


def test_without_a_defect_it_is_the_answer() -> None:
    answer, defect = answer_or_defect(STATE, None)
    assert (answer.verdicts, defect) == (judge.answer(STATE).verdicts, None)


def test_an_event_that_could_not_be_folded_leaves_nothing_decided() -> None:
    event = ev.Event("e", "trace", "", "t", "", 0, 7, elected(1, 0))
    words = cannot_be_folded(event, KeyError("x\ny"))
    assert "(sequence 7, leadership_recorded)" in words
    answer, defect = answer_or_defect(STATE, words)
    assert defect == words
    assert {v["verdict"] for v in answer.verdicts} == {"UNKNOWN"}
    assert all(words in v["reason"] for v in answer.verdicts)
    assert answer.losses == []


def test_judging_that_fails_is_a_defect_too() -> None:
    broken = new_state("", "t", "", 0)
    broken.replicas[1] = None  # type: ignore[assignment]
    with pytest.raises(AttributeError):
        judge.answer(broken)
    answer, defect = answer_or_defect(broken, None)
    assert defect is not None
    assert "cannot be judged: AttributeError" in defect
    assert {v["verdict"] for v in answer.verdicts} == {"UNKNOWN"}
