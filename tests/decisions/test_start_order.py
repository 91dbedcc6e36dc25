"""The order over all partitions: whom a plan waits for starts first; contradictions are said."""

import pytest

from replication.decisions.choosing import ELECT, START, UNDECIDED, Choice
from replication.decisions.commands import FOLLOW
from replication.decisions.plan import NotYet, Plan, Step
from replication.decisions.start_order import start_order


def planned(leader: int | None, *waiting: int, advice: str = START) -> tuple[Choice, Plan]:
    choice = Choice("no_leader", None, advice, leader)
    return choice, Plan(not_yet=[NotYet(n, "it has to wait") for n in waiting])


def test_who_is_waited_for_comes_first() -> None:
    plans = [planned(3, 1), planned(2, 3, advice=ELECT), planned(2)]
    assert start_order(plans).brokers == [2, 3, 1]


def test_all_that_start_in_the_end_are_named_but_who_stays_away() -> None:
    """Broker 2 waits for nobody; 4 stays away."""
    plans = [planned(3, 1, 4)]
    assert start_order(plans, {1, 2, 3}, {4}).brokers == [2, 3, 1]


def test_steps_that_wait_for_a_leader_come_after_it_where_that_is_possible() -> None:
    choice, plan = planned(3, 1)
    plan.steps.append(following(2))
    assert start_order([(choice, plan)], {1, 2, 3}).brokers == [3, 1, 2]
    assert start_order([(choice, plan), planned(2, 3)], {1, 2, 3}).brokers == [2, 3, 1]


def following(broker: int) -> Step:
    told = ("kafka-server-start.sh", True, "", "", "", None, 0, None, None, "", ())
    return Step(FOLLOW, broker, "Start it once another leads.", *told)


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
