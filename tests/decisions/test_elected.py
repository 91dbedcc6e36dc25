"""What is foretold of a candidate is what becomes of it when the machine elects it."""

import re

import pytest

from replication.decisions.answer import decide
from replication.machine.states import copied
from replication.protocol.judgement.at_risk import dangers
from replication.protocol.judgement.risk_rows import present_row
from tests.decisions import chosen
from tests.decisions.elected import Score, compare
from tests.protocol.judgement.danger_stories import folded
from tests.protocol.schedules import schedule_story


@pytest.mark.slow
@pytest.mark.parametrize(("first", "strict"), [(0, True), (1000, False)])
def test_losses_and_cuts_are_as_foretold(first: int, *, strict: bool) -> None:
    """Surely lost is lost; lost is surely or perhaps lost; whatever is withheld."""
    score: Score = compare(range(first, first + 4), 1, strict=strict)
    assert not score.failures, score.failures[:5]
    assert score.counts["decided, loses"] > 5
    assert score.counts["decided, keeps"] > 100
    # Where a copy is said to be cut, that rests on assumptions unless nothing is assumed.
    assert bool(score.counts["copy"]) is strict


@pytest.mark.slow
def test_losses_are_as_foretold_where_all_are_said_to_be_down() -> None:
    score: Score = compare(range(2000, 2003), 2, down=True)
    assert not score.failures, score.failures[:5]
    assert score.counts["decided, loses"] > 3


def test_whole_traces_leave_little_open() -> None:
    score = compare(range(300, 330), 0, strict=True)
    assert not score.failures, score.failures[:5]
    is_open = sum(n for what, n in score.counts.items() if what.startswith("undecided"))
    decided = sum(n for what, n in score.counts.items() if what.startswith("decided"))
    assert is_open * 100 <= decided


@pytest.mark.slow
def test_what_is_advised_loses_least_and_log_ends_choose_worse() -> None:
    """Of the whole trace, by what the machine loses with each: in some stories the newest leader
    epoch, then the longest log, loses promised records that the advice does not."""
    score = chosen.compare(range(10000, 10050), 0)
    assert not score.failures, score.failures[:5]
    assert score.counts["chosen is not the least"] == 0
    assert score.counts["log ends choose better"] == 0
    assert score.counts["log ends choose worse"] > 0
    assert score.counts["in the last ISR of min.insync.replicas"] > 20


# Of the first 900 schedules these leave promised records one failure away, or nobody leads them.
ENDANGERED = (134, 151, 175, 202, 211, 241, 484, 759)


@pytest.mark.parametrize("seed", ENDANGERED)
def test_a_danger_names_whom_decide_has_lead_once_it_has_happened(seed: int) -> None:
    machine = schedule_story(seed).machine
    state = folded(machine)
    leader = machine.world.controller.leader
    then = copied(machine)
    if leader is not None:
        then.stop(leader, "process_crash")
        then.fence(leader)
    choice = decide(folded(machine, then)).choice
    chosen_ones = {choice.replica} if choice.replica is not None else {*choice.rivals}
    told = [
        re.findall(r"decide has broker ([\d or]+) lead", row["ends_when"], re.IGNORECASE)
        for row in (present_row(state, danger) for danger in dangers(state))
        if row["next_leader"] == then.world.controller.leader
        or (leader is None and row["failure"].endswith("_election"))
    ]
    named = [{int(n) for n in brokers.split(" or ")} for (brokers,) in filter(None, told)]
    assert named
    assert all(chosen_ones & brokers for brokers in named), (choice, named)
