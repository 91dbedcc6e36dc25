"""Who is to lead: by what the histories say that each lacks, never by where the logs end."""

import random

import pytest

from replication.decisions.answer import Decision, as_json, decide, exit_status
from replication.decisions.choosing import (
    ANY,
    ELECT,
    LEADER_IS_DOWN,
    LEADER_LACKS_RECORDS,
    NO_LEADER,
    NOTHING_TO_DECIDE,
    SHOW_BOTH,
    START,
    UNDECIDED,
    IsrProof,
    by_log_end,
)
from replication.decisions.words import text
from replication.machine.scenario_check import fold_steps
from replication.protocol.ground import events as ev
from replication.protocol.histories.assumptions import DISKS_KEEP, RECORDS_AS_SEEN
from tests.decisions.told_stories import OLDER_EPOCH_COMMITTED, A, B, C, decided, left, story
from tests.protocol.default_evidence import evidence, folded, left_by
from tests.protocol.judgement.told import copy, elected, given, told

ZOOKEEPER = "kafka=2.8.1 controller=zookeeper"


def lost(decision: Decision, replica: int, tier: str) -> tuple[list[object], list[object]]:
    """The offsets that one candidate surely, and perhaps, loses."""
    found = next(c for c in decision.outlook.candidates if c.replica == replica).lost[tier]
    return [*found.surely], [*found.perhaps]


def shown(decision: Decision) -> str:
    return text(as_json([decision], None), ["e"])


def test_the_last_isr_of_min_insync_members_beats_a_later_epoch() -> None:
    """B's log ends in a later epoch and is as long: electing it would lose what was promised."""
    world = story(*OLDER_EPOCH_COMMITTED).world
    found = decide(fold_steps(world))
    assert by_log_end(found.outlook.state) == B
    assert lost(found, B, "acknowledged_by_isr") == lost(found, B, "committed") == ([(0, 1)], [])
    assert lost(found, C, "acknowledged_by_isr") == lost(found, C, "committed") == ([], [])
    assert (found.choice.advice, found.choice.replica, found.choice.safe) == (START, A, [A, C])
    assert found.choice.proof == IsrProof(2, (A, C), 2)
    assert exit_status([found]) == 0


def test_of_a_broker_that_was_down_the_copy_shows_the_whole_log() -> None:
    """Of one that may have run its end may be missing: what it seems to lack is perhaps lost."""
    lines = ["produce A a acks=all", "fetch B", "fetch C", "fetch B", "isr remove=B,C"]
    lines += ["produce A x acks=all", "crash A kind=process", "fence A"]
    given = "kafka=4.1.0 controller=kraft unclean=no elr=off"
    perhaps = decide(left(story(given, lines)))
    surely = decide(left(story(given, lines)), down=frozenset([A, B, C]))
    for replica in (B, C):
        assert lost(perhaps, replica, "acknowledged_by_isr") == ([], [(1, 2)])
        assert lost(surely, replica, "acknowledged_by_isr") == ([(1, 2)], [])
    assert "call it with --down 1,2,3: less is left open then." in shown(perhaps)
    assert "--down" not in shown(surely)


def test_a_leader_that_lost_power_is_not_taken_for_whole() -> None:
    """Its own lines show that it had the last record, its directory that it has not: the copy may
    be of a running broker. Nobody is told that its start loses nothing."""
    lines = ["produce A a acks=all", "fetch B", "fetch C", "fetch B", "fetch C", "isr remove=C"]
    lines += ["produce A b acks=all", "fetch B", "fetch B", "isr remove=B"]
    lines += ["crash A kind=power to=1", "fence A"]
    given = "kafka=4.1.0 controller=kraft unclean=no elr=off"
    perhaps = decide(left(story(given, lines)))
    assert lost(perhaps, A, "acknowledged_by_isr") == ([], [(1, 2)])
    assert perhaps.choice.replica == B
    surely = decide(left(story(given, lines)), down=frozenset([A, B, C]))
    assert lost(surely, A, "acknowledged_by_isr") == ([(1, 2)], [])
    assert (surely.choice.advice, surely.choice.replica) == (ELECT, B)


def test_a_leader_that_is_said_to_be_down_is_none() -> None:
    world = story("kafka=4.1.0 controller=kraft", ["produce A a acks=all"]).world
    assert decide(fold_steps(world)).choice.advice == NOTHING_TO_DECIDE
    assert decide(fold_steps(world), down=frozenset([A])).choice.occasion == LEADER_IS_DOWN


def test_an_older_copy_is_judged_as_if_it_were_put_back() -> None:
    """Broker 1 was copied with offset 1, which no log has now; offset 2 was written since."""
    state = told(
        [
            *given(version="4.1.1"),
            elected(A, 0, isr=(A,)),
            ev.RecordsAcknowledged(0, 1, "all", 0, 10),
            ev.RecordsAcknowledged(1, 2, "all", 0, 11),
            ev.RecordsAcknowledged(2, 3, "all", 0, 12),
            copy(A, (0, 1, 0, 10), (1, 2, 0, 11)),
            copy(A, (0, 1, 0, 10)),
            copy(B, (0, 1, 0, 10)),
        ]
    )
    found = decide(state, down=frozenset([A, B, C]), elect=A)
    (older,) = found.outlook.older
    assert (older.replica, older.kind, older.alone) == (A, "older", [(1, 2)])
    assert older.lost["acknowledged_by_isr"].surely == [(2, 3)]
    (steps,) = found.older
    done = [s.action for s in steps]
    back = done.index("put_back")
    assert set(done[:back]) <= {"copy", "stop"}
    follow = ["start_to_follow", "start_to_follow"]
    assert done[back + 1 :] == ["start", "elect_uncleanly", *follow, "unclean_off"]
    assert (steps[back].broker, steps[back].copy_first) == (A, None)
    assert all(s.copy_first for s in steps if s.action == "start_to_follow")
    assert lost(found, A, "acknowledged_by_isr") == ([(1, 3)], [])
    assert "Elected with this copy in the place of its directory, broker 1 loses" in shown(found)


def test_a_survivor_is_elected_where_the_last_leader_is_gone_for_good() -> None:
    found = decide(left(story(*OLDER_EPOCH_COMMITTED), "directory 1"))
    assert (found.choice.advice, found.choice.replica) == (ELECT, C)
    assert found.choice.costs == "nothing"
    assert found.choice.proof == IsrProof(2, (A, C), 2)
    assert lost(found, B, "acknowledged_by_isr") == ([(0, 1)], [])
    told_to_a_person = shown(found)
    assert "ELECT 3: it loses nothing that was promised." in told_to_a_person
    assert "would choose broker 2: they do not tell" in told_to_a_person
    assert [n.broker for n in found.plan.not_yet] == [A]


def test_waiting_is_best_where_only_the_missing_leader_can_have_what_it_wrote() -> None:
    """It led alone, and no acknowledgement log tells what it was sent."""
    found = decide(left(story(*OLDER_EPOCH_COMMITTED), "directory 1", "log 1", "acks"))
    assert (found.choice.advice, found.choice.replica) == (START, A)
    one, *others = sorted(found.outlook.candidates, key=lambda c: c.replica)
    assert one.is_safe
    assert not one.at_hand
    assert DISKS_KEEP in one.assuming
    # Nobody may take it that it wrote nothing that the others do not show.
    assert all(RECORDS_AS_SEEN not in c.assuming for c in found.outlook.candidates)
    assert not any(c.is_safe for c in others)
    assert "Waiting for broker 1 is best" in shown(found)


def test_two_that_trade_promises_are_both_shown_and_none_is_chosen() -> None:
    """Each was alone in its ISR, and each wrote the record that it answered for at offset 0."""
    found = decided(
        f"{ZOOKEEPER} unclean=yes",
        *("isr remove=B,C", "produce A x acks=all", "crash A kind=process", "fence A"),
        *("isr remove=C", "produce B y acks=all", "crash B kind=process", "fence B"),
        *("crash C kind=process", "fence C"),
    )
    assert found.choice.advice == SHOW_BOTH
    assert sorted(found.choice.rivals) == [A, B]
    assert found.choice.replica is None
    assert lost(found, A, "acknowledged_by_isr") == lost(found, B, "acknowledged_by_isr")
    assert exit_status([found]) == 1
    # Nothing is in the plan but copies.
    assert {s.action for s in found.plan.steps} == {"copy"}


def test_there_is_nothing_to_decide_where_the_leader_has_all() -> None:
    found = decided(ZOOKEEPER, "produce A x acks=all", *("fetch B", "fetch C") * 2)
    assert found.choice.advice == NOTHING_TO_DECIDE
    assert as_json([found], None)["partitions"] == []
    assert shown(found).startswith("Nothing to decide")
    assert exit_status([found]) == 0


def test_any_order_will_do_where_all_have_all() -> None:
    found = decided(
        ZOOKEEPER,
        *("produce A x acks=all", *("fetch B", "fetch C") * 2),
        *("stop C", "fence C", "stop B", "fence B", "stop A", "fence A"),
    )
    assert found.choice.advice == ANY
    assert found.choice.occasion in (NO_LEADER, LEADER_IS_DOWN)
    assert found.plan.steps == []


def test_a_leader_that_lacks_what_another_has_is_told() -> None:
    """B was elected uncleanly without what A had answered for, and has written since."""
    lines = ["isr remove=B,C", "produce A x acks=all", "crash A kind=process", "fence A"]
    found = decided(f"{ZOOKEEPER} unclean=yes", *lines, "produce B y acks=1")
    assert found.choice.occasion == LEADER_LACKS_RECORDS
    assert found.choice.leader == B
    assert lost(found, B, "acknowledged_by_isr") == ([(0, 1)], [])
    assert lost(found, A, "acknowledged_by_isr") == ([], [])
    before_it_wrote = decided(f"{ZOOKEEPER} unclean=yes", *lines)
    assert before_it_wrote.choice.occasion == LEADER_LACKS_RECORDS
    assert (before_it_wrote.choice.advice, before_it_wrote.choice.replica) == (ELECT, A)
    stops = [s.broker for s in before_it_wrote.plan.steps if s.action == "stop"]
    assert stops == [B, C]


def test_what_is_not_decided_says_what_would_settle_it() -> None:
    """Nobody tells how broker 2 came to lead in epoch 1, nor what broker 1 was answered for."""
    facts: list[ev.Fact] = [
        *given(acks=False),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        ev.LeadershipRecorded(1, 0, (1,), 1),
        elected(2, 1, "unclean", (2,)),
        ev.BecameLeader(2, 1, 0, 0),
        ev.LeadershipRecorded(None, 2, (2,), 3),
        copy(1, (0, 2, 0, 0), mark=0),
        copy(2, (0, 3, 1, 1), mark=0),
        copy(3, (0, 3, 1, 1), mark=0),
    ]
    found = decide(told(facts))
    assert found.choice.advice == UNDECIDED
    assert "an acknowledgement log of the producers" in found.choice.settled_by
    assert exit_status([found]) == 3
    assert found.choice.replica is None
    assert sorted(found.choice.ranking) == [1, 2, 3]
    assert "NOT DECIDED" in shown(found)


@pytest.mark.parametrize(("strict", "advice"), [(False, ANY), (True, UNDECIDED)])
def test_a_partition_of_which_nothing_is_told_is_empty_by_assumption(
    *, strict: bool, advice: str
) -> None:
    found = decide(told([copy(r, mark=0) for r in (1, 2)]), strict=strict)
    assert found.choice.advice == advice
    assumed = {RECORDS_AS_SEEN} & {a for c in found.outlook.candidates for a in c.assuming}
    assert bool(assumed) is not strict


def test_plans_that_contradict_each_other_are_told() -> None:
    """Unclean election is allowed: whoever starts before the one that has all may be elected."""
    alone = [
        *("isr remove={0}", "isr remove=C", "produce {1} x acks=all", "crash {1} kind=process"),
        *("fence {1}", "crash {0} kind=process", "fence {0}", "crash C kind=process", "fence C"),
    ]
    of_a = decided(f"{ZOOKEEPER} unclean=yes", *(line.format("B", "A") for line in alone))
    of_b = decided(f"{ZOOKEEPER} unclean=yes", "elect B", *(x.format("A", "B") for x in alone))
    assert (of_a.choice.replica, of_b.choice.replica) == (A, B)
    answer = as_json([of_a, of_b], None)
    assert [x["brokers"] for x in answer["start_orders"]] == [None]
    out = text(answer, ["e"])
    assert "START ORDER: none keeps every plan." in out
    assert "Broker 2 has to lead scenario-0 before broker 1 starts." in out
    together = text(as_json([of_a], None), ["e"])
    assert "START ORDER: broker 1, then broker 2, then broker 3" in together


def test_where_the_isr_is_not_known_the_best_is_started_alone_first() -> None:
    """Of directories alone nobody knows whether it takes an unclean election."""
    copies = [copy(1, (0, 4, 0, 0), mark=4), copy(2, (0, 2, 0, 0), mark=2)]
    found = decide(told([*given(), *copies]))
    assert (found.choice.advice, found.choice.replica) == (START, A)
    actions = [(s.action, s.broker) for s in found.plan.steps]
    assert actions.index(("start_to_lead", A)) + 1 == actions.index(("elect_uncleanly", A))
    assert "broker 2 (is down, not known to be in the ISR" in shown(found)


def test_a_deleted_topic_is_not_decided() -> None:
    deleted = ev.PartitionDescribed((1, 2, 3), 1, True, "delete", "2.8.1", None, "zookeeper", True)
    found = decide(told([*given(1, 2, 3), elected(1, 0, "initial"), deleted]))
    assert found.choice.advice == NOTHING_TO_DECIDE


def test_what_a_broker_comes_back_with_that_nobody_looked_at_is_assumed() -> None:
    """All of A's lines are here, and no copy of its directory; of its end there is no line."""
    lines = ["isr remove=B,C", "produce A x acks=all", "crash A kind=process", "fence A"]
    world = story("kafka=4.1.0 controller=kraft unclean=no elr=off", lines).world
    facts = evidence(left_by(world, random.Random(1)), frozenset(["directory 1"]))
    unseen = [f for f in facts if not isinstance(f, ev.ReplicaStopped)]
    for strict in (False, True):
        found = decide(folded(unseen), strict=strict, down=frozenset([A, B, C]))
        (a,) = [c for c in found.outlook.candidates if c.replica == A]
        assert not a.at_hand
        lost = a.lost["acknowledged_by_isr"]
        assert (lost.surely, lost.perhaps) == ([], [(0, 1)] if strict else [])
        assert (DISKS_KEEP in a.assuming) is not strict
