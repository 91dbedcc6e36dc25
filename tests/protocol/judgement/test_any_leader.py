"""With every log here and nobody who names the leader, the answer is what all leaders give."""

import random
from dataclasses import replace
from typing import Any

import pytest

from replication.protocol.ground import events as ev
from replication.protocol.judgement.any_leader import either
from replication.protocol.judgement.judge import answer
from replication.protocol.judgement.reference import LEADERS_NAME
from tests.protocol.judgement.told import ACKNOWLEDGED, COMMITTED, copy, given, told

MATCHING = "log_matching"
JUDGED = (COMMITTED, ACKNOWLEDGED, MATCHING)


def verdicts(facts: list[ev.Fact]) -> dict[str, dict[str, Any]]:
    return {v["invariant"]: v for v in answer(told(facts)).verdicts}


def named(facts: list[ev.Fact], leader: int) -> list[ev.Fact]:
    """The same where kafka-topics names the leader."""
    first = facts[0]
    assert isinstance(first, ev.PartitionDescribed)
    return [replace(first, leader=leader), *facts[1:]]


def acked(first: int, end: int, leader_epoch: int, content: int) -> ev.Fact:
    return ev.RecordsAcknowledged(first, end, "all", leader_epoch, content)


def logs(chance: random.Random) -> list[ev.Fact]:
    """Three stopped replicas of one lineage, some shorter, some with other ends; acknowledgements.

    Every log knows the newest epoch, so that a description of any leader may be from now.
    """
    facts = given(acks=True, version="2.8.1")
    for replica in (1, 2, 3):
        end = chance.choice((6, 8, 10))
        fork = chance.choice((0, 0, replica))
        spans = [(0, 5, 0, 0), (5, end, 0, fork)]
        if chance.random() < 0.5:
            spans[1] = (5, end, 1, fork)
        facts.append(copy(replica, *spans, (end, end + 1, 2, 9), mark=chance.choice((4, 5, 6))))
    for _ in range(chance.randrange(3)):
        first = chance.randrange(9)
        facts.append(acked(first, first + 1, chance.choice((0, 1)), chance.choice((0, 1, 2, 3))))
    return facts


@pytest.mark.parametrize("seed", range(120))
def test_what_is_decided_is_so_whoever_leads(seed: int) -> None:
    facts = logs(random.Random(seed))
    joint = verdicts(facts)
    by_leader = {leader: verdicts(named(facts, leader)) for leader in (1, 2, 3)}
    for name in JUDGED:
        single = {judged[name]["verdict"] for judged in by_leader.values()}
        if joint[name]["verdict"] != "UNKNOWN":
            assert single == {joint[name]["verdict"]}, (name, joint[name]["reason"])
        elif single == {"VIOLATED"}:
            raise AssertionError(f"{name}: every leader breaks it, and it is called unknown")
        elif len(single) > 1:
            assert LEADERS_NAME in joint[name]["settled_by"]


def test_both_kinds_of_answer_come_up() -> None:
    found = {
        (name, verdicts(logs(random.Random(seed)))[name]["verdict"])
        for seed in range(120)
        for name in JUDGED
    }
    assert {(ACKNOWLEDGED, v) for v in ("HOLDS", "VIOLATED", "UNKNOWN")} <= found
    assert {(MATCHING, v) for v in ("HOLDS", "VIOLATED")} <= found


def test_the_leader_that_would_cost_records_is_named() -> None:
    facts = [
        *given(),
        copy(1, (0, 10, 0, 0), mark=5),
        copy(2, (0, 5, 0, 0), mark=5),
        copy(3, (0, 5, 0, 0), mark=5),
        acked(7, 8, 0, 0),
    ]
    judged = verdicts(facts)[ACKNOWLEDGED]
    assert judged["verdict"] == "UNKNOWN"
    assert judged["reason"].startswith("nothing names the leader: if broker 2 or 3 leads, offset 7")
    assert "if broker 1 leads, nothing that is known is wrong" in judged["reason"]
    assert judged["settled_by"][0] == LEADERS_NAME
    assert verdicts(named(facts, 1))[ACKNOWLEDGED]["verdict"] == "HOLDS"
    assert verdicts(named(facts, 2))[ACKNOWLEDGED]["verdict"] == "VIOLATED"


def test_what_every_log_lacks_is_lost_and_in_the_ledger() -> None:
    facts = [*given(), *(copy(r, (0, 5, 0, 0), mark=5) for r in (1, 2, 3)), acked(7, 8, 0, 0)]
    found = answer(told(facts))
    judged = next(v for v in found.verdicts if v["invariant"] == ACKNOWLEDGED)
    assert judged["verdict"] == "VIOLATED"
    assert judged["reason"].startswith("whichever of brokers 1, 2 or 3 leads: ")
    assert [(x["first_offset"], x["end_offset"], x["status"]) for x in found.losses] == [
        (7, 8, "lost")
    ]


def test_elections_that_nobody_tells_of_may_have_cost_more() -> None:
    """One leader epoch, one leader: nothing was elected. A second one was, and how is not told."""
    one = [*given(), *(copy(r, (0, 5, 0, 0), mark=5) for r in (1, 2, 3))]
    assert verdicts(one)[COMMITTED]["verdict"] == "HOLDS"
    two = [*given(), *(copy(r, (0, 5, 0, 0), (5, 6, 1, 1), mark=6) for r in (1, 2, 3))]
    judged = verdicts(two)[COMMITTED]
    assert judged["verdict"] == "UNKNOWN"
    assert "nothing tells how the leader of epoch 1 was elected" in judged["reason"]


def test_a_description_from_before_the_logs_names_no_leader() -> None:
    """A leader's own log knows its epoch: who lacks the newest does not lead any more."""
    facts = [
        *given(),
        copy(1, (0, 10, 0, 0), mark=5),
        copy(2, (0, 5, 0, 0), (5, 6, 1, 1), mark=6),
        copy(3, (0, 5, 0, 0), (5, 6, 1, 1), mark=6),
        acked(7, 8, 0, 0),
    ]
    assert verdicts(named(facts, 1)) == verdicts(facts)
    assert verdicts(named(facts, 2)) != verdicts(facts)


def test_words() -> None:
    assert (either([2]), either([3, 1]), either([3, 1, 2])) == ("2", "1 or 3", "1, 2 or 3")


@pytest.mark.parametrize("leader", [None, 1])
@pytest.mark.parametrize("epochs", [(0, 1), (0, 2)], ids=["an epoch of no history", "a gap"])
def test_an_election_that_nothing_tells_of_may_have_cost_more(
    leader: int | None, epochs: tuple[int, int]
) -> None:
    facts = given(acks=True, version="2.8.1")
    facts += [copy(r, (0, 5, epochs[0], 0), (5, 8, epochs[1], 0), mark=8) for r in (1, 2, 3)]
    judged = verdicts(facts if leader is None else named(facts, leader))
    assert judged[COMMITTED]["verdict"] == "UNKNOWN"
    assert f"epoch {'1, ' * (epochs[1] - 1)}{epochs[1]}" in judged[COMMITTED]["reason"]
    assert judged[ACKNOWLEDGED]["verdict"] == judged[MATCHING]["verdict"] == "HOLDS"
