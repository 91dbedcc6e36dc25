"""Lives of a topic that some brokers only had a replica of: any of them, any brokers."""

import random
from typing import Any

import pytest

from replication.evidence.broker_logs.broker_log import LogLineFact
from replication.evidence.joining.lives_side_by_side import lives_of_topic
from replication.evidence.joining.topic_lives import stretches

_SEEDS = range(100)


def line(broker: int, at: int, kind: str, **fields: Any) -> LogLineFact:
    return LogLineFact(kind, at, at, "server.log", broker, "t", 0, fields)


def lines_of_a_life(
    broker: int, leader: int, begun: int, ended: int | None, number: int
) -> list[LogLineFact]:
    """What a broker prints of one life; number: of the life, under which the test finds it."""
    role = "became_leader" if broker == leader else "became_follower"
    printed = [
        line(broker, begun, "log_created", life=number),
        line(broker, begun + 1, role, leader_epoch=0, partition_epoch=0),
    ]
    if ended is not None:
        printed.append(line(broker, ended, "log_marked_deleted", directory=f"t-0.{number}-delete"))
        printed.append(line(broker, ended + 60_000, "log_deleted", directory="t-0.x-delete"))
    return printed


def lives_found(
    lines: dict[int, list[LogLineFact]], *, compare: bool = False
) -> list[tuple[set[int], list[int]]]:
    """Of each life that is found: the true ones in it, and its brokers."""
    cut = {b: stretches(of_broker, others=True) for b, of_broker in lines.items() if of_broker}
    found = lives_of_topic(cut, compare=compare)
    return [
        (
            {
                f.fields["life"]
                for s in life.stretches.values()
                for f in s.facts
                if "life" in f.fields
            },
            sorted(life.stretches),
        )
        for life in found
    ]


def story(
    seed: int, most_brokers: int = 5
) -> tuple[dict[int, list[LogLineFact]], dict[int, list[int]]]:
    """Brokers' lines of several lives, the later ones with three replicas, and who had which.

    Each broker's clock is off by a little, and the same throughout.
    """
    chance = random.Random(seed)
    brokers = range(1, most_brokers + 1)
    off = {b: chance.choice((0, 0, 20, -90)) for b in brokers}
    lines: dict[int, list[LogLineFact]] = {b: [] for b in brokers}
    replicas: dict[int, list[int]] = {}
    at, count = 1_000_000_000, chance.randint(3, 6)
    for number in range(count):
        replicas[number] = chance.sample(brokers, 3 if number else most_brokers)
        ended = at + chance.randint(2_000, 20_000) if number + 1 < count else None
        for b in replicas[number]:
            late = chance.randint(0, 60)
            begun, gone = at + off[b] + late, ended and ended + off[b] + late
            lines[b] += lines_of_a_life(b, replicas[number][0], begun, gone, number)
        at = (ended or at) + chance.randint(800, 5_000)
    return lines, replicas


@pytest.mark.parametrize("seed", _SEEDS)
@pytest.mark.parametrize("withheld", [0, 1])
def test_no_life_is_made_of_two(seed: int, withheld: int) -> None:
    lines, _ = story(seed)
    lines = {b: of_broker for b, of_broker in lines.items() if b > withheld}
    found = lives_found(lines, compare=True)
    assert all(len(true) == 1 for true, _ in found), found
    order = [min(true) for true, _ in found]
    assert order == sorted(set(order)), found


def test_two_brokers_that_each_saw_as_many_lives_need_not_have_seen_the_same() -> None:
    first, second = [], []
    for number, (at, ended) in enumerate(
        [(0, 3_000), (4_000, 6_000), (9_000, 11_000), (13_000, None)]
    ):
        if number != 1:
            first += lines_of_a_life(1, 3, at, ended, number)
        if number != 3:
            second += lines_of_a_life(2, 3, at + 5, ended and ended + 5, number)
    found = lives_found({1: first, 2: second})
    assert found == [({0}, [1, 2]), ({1}, [2]), ({2}, [1, 2]), ({3}, [1])]


def test_a_clock_that_is_set_back_between_two_lives_makes_no_further_life() -> None:
    ahead = {0: 0, 1: 0, 2: 7_200_000}
    lines: dict[int, list[LogLineFact]] = {1: [], 2: []}
    for number, (at, ended) in enumerate([(0, 3_000), (4_000, 6_000), (9_000, None)]):
        lines[1] += lines_of_a_life(1, 3, at, ended, number)
        shown = ended and ended + ahead[number]
        lines[2] += lines_of_a_life(2, 3, at + ahead[number], shown, number)
    assert [brokers for _, brokers in lives_found(lines)] == [[1, 2]] * 3
