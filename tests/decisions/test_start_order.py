"""The order over all partitions: whom a plan waits for starts first; contradictions are said."""

import pytest

from replication.decisions.choosing import ELECT, START, UNDECIDED, Choice
from replication.decisions.plan import NotYet, Plan
from replication.decisions.start_order import start_order


def planned(leader: int | None, *waiting: int, advice: str = START) -> tuple[Choice, Plan]:
    choice = Choice("no_leader", None, advice, leader)
    return choice, Plan(not_yet=[NotYet(n, "it has to wait") for n in waiting])


def test_who_is_waited_for_comes_first() -> None:
    plans = [planned(3, 1), planned(2, 3, advice=ELECT), planned(2)]
    assert start_order(plans).brokers == [2, 3, 1]


@pytest.mark.parametrize("plans", [[], [planned(1)], [planned(None, 1, 2, advice=UNDECIDED)]])
def test_where_no_plan_waits_there_is_no_order(plans: list[tuple[Choice, Plan]]) -> None:
    assert start_order(plans).brokers == []


def test_two_plans_that_contradict_each_other_are_named() -> None:
    found = start_order([planned(1, 2), planned(3, 2), planned(2, 1)])
    assert found.brokers is None
    assert found.ring == [(1, 2, [0]), (2, 1, [2])]


def test_a_ring_of_three_has_no_order_either() -> None:
    found = start_order([planned(1, 2), planned(2, 3), planned(3, 1)])
    assert found.brokers is None
    assert found.ring == [(1, 2, [0]), (2, 3, [1]), (3, 1, [2])]
