"""Tiers, copies and artefacts of the loss ledger, in the smallest stories."""

from dataclasses import replace
from typing import Any

import pytest

from replication.machine.scenario import Story
from replication.machine.scenario_check import events_of, fold_steps
from replication.machine.scenario_text import parse_command
from replication.protocol.folding.fold import apply, new_state
from replication.protocol.ground import events as ev
from replication.protocol.ground.topic_partition import State
from replication.protocol.judgement.judge import answer
from replication.protocol.judgement.settling import ONLY_BEFOREHAND, still_to_get
from tests.protocol.judgement.told import (
    ACKNOWLEDGED,
    COMMITTED,
    copy,
    elected,
    given,
    told,
    verdict,
)

UNCLEAN = (
    "isolate B", "fence B", "fence C", "produce A a", "stop A", "rejoin B", "elect B isr=B",
)  # fmt: skip


def story(given: str, *commands: str) -> Story:
    """A leads from the beginning."""
    start = parse_command(f"given isr=A,B,C {given}", 1)
    start.lines = [(2, "A* e0  |"), (3, "B  e0  |"), (4, "C  e0  |")]
    made = Story(start, None, None)
    for command in commands:
        made.tell(parse_command(command, 1))
    return made


def losses_of(*facts: ev.Fact) -> list[dict[str, Any]]:
    """Of a record that was committed, with these facts besides."""
    events = events_of(story("kafka=2.8.2 unclean=yes", *UNCLEAN).world)
    state = new_state("", "scenario", events[0].topic_id, 0)
    for number, fact in enumerate([*(e.fact for e in events), *facts]):
        event = replace(events[0], event_id=str(number), sequence=number, fact=fact)
        apply(state, event)
    return answer(state).losses


def tier(*coverage: ev.CoverageDeclared) -> str:
    """Of a record that only the high watermark tells of, under this coverage."""
    (loss,) = losses_of(*coverage)
    assert loss["end_offset_bound"] == "at_least"
    return str(loss["tier"])


def test_what_a_high_watermark_alone_tells_of_is_committed() -> None:
    assert tier() == "committed"


def test_never_acknowledged_only_under_a_log_of_every_producer() -> None:
    assert tier(ev.CoverageDeclared("all_producers", None, True)) == "never_acknowledged"


@pytest.mark.parametrize(
    ("leader_epoch", "content", "found"),
    [(2, 0, "committed"), (None, None, "committed"), (2, 1, "never_acknowledged")],
)
def test_a_committed_record_that_is_or_may_be_acknowledged_at_acks_one_is_not_called_never_so(
    leader_epoch: int | None, content: int | None, found: str
) -> None:
    every = ev.CoverageDeclared("all_producers", None, True)
    told = ev.RecordsAcknowledged(0, 1, "1", leader_epoch, content)
    assert found in {x["tier"] for x in losses_of(every, told)}


def test_undetermined_where_acknowledgements_are_declared_missing() -> None:
    assert tier(ev.CoverageDeclared("acknowledgements", None, False)) == "undetermined"


def test_where_acknowledgements_are_declared_missing_more_may_be_gone() -> None:
    def bounds(*facts: ev.Fact) -> set[str]:
        losses = losses_of(ev.RecordsAcknowledged(0, 1, "1", 0, 0), *facts)
        return {x["end_offset_bound"] for x in losses if x["tier"] == "acknowledged_by_leader"}

    assert bounds() == {"exact"}
    assert bounds(ev.CoverageDeclared("acknowledgements", None, False)) == {"at_least"}


def test_a_loss_tells_when_producers_were_told_of_its_records() -> None:
    def found(*acks: tuple[int | None, int | None]) -> tuple[str | None, str | None]:
        """Of records acknowledged one by one at (observed_at, observed_until)."""
        before = [*given(1, 2), elected(1, 0, "initial"), ev.BecameLeader(1, 0, 0, 0)]
        promised = [
            (ev.RecordsAcknowledged(n, n + 1, "all", 0, 0, None, until), at)
            for n, (at, until) in enumerate(acks)
        ]
        after = [elected(2, 1, "unclean"), ev.BecameLeader(2, 1, 0, 0), copy(1), copy(2), copy(3)]
        state = new_state("", "t", "", 0)
        facts = [*((f, None) for f in before), *promised, *((f, None) for f in after)]
        for n, (fact, at) in enumerate(facts):
            apply(state, ev.Event(str(n), "trace", "", "t", "", 0, n, fact, at))
        (loss,) = answer(state).losses
        return loss["acknowledged_from"], loss["acknowledged_until"]

    day = "1970-01-01T00:00:0"
    assert found((1_000, 2_000), (3_000, 4_000)) == (f"{day}1.000Z", f"{day}4.000Z")
    assert found((1_000, 2_000), (3_000, None)) == (f"{day}1.000Z", None)
    assert found((None, 2_000)) == (None, f"{day}2.000Z")


def copies(state: State) -> dict[int, str | None]:
    (loss,) = answer(state).losses
    return {
        c["replica"]: c["destroyed_when"]
        for c in loss["surviving_copies"]
        if c["kind"] == "replica"
    }


def test_a_copy_that_truncation_removes_ends_when_its_broker_follows() -> None:
    state = fold_steps(story("kafka=2.8.2 unclean=yes", *UNCLEAN).world)

    assert copies(state) == {1: "broker 1 starts as a follower"}


def test_a_copy_that_the_rule_keeps_outlives_following() -> None:
    """KIP-101's divergence: A's high watermark lies above what the new leader wrote there."""
    told = story(
        "kafka=0.10.2.2 unclean=yes",
        "fence B", "fence C", "produce A a acks=all", "checkpoint A", "stop A", "elect B isr=B",
        "produce B x acks=all",
    )  # fmt: skip

    assert copies(fold_steps(told.world)) == {1: "broker 1 loses this directory"}


def test_a_copy_whose_broker_lived_on_unseen_is_no_current_replica() -> None:
    """Broker 2 started again after the copy that holds the record; its lines are missing."""
    facts = [
        *given(1, 3, version="0.10.2.2"),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        ev.RecordsAcknowledged(2, 4, "all", 0, 0),
        copy(2, (0, 4, 0, 0)),
    ]

    def found(*more: ev.Fact) -> tuple[object, list[object]]:
        left = [copy(1, (0, 2, 0, 0)), copy(3, (0, 2, 0, 0))]
        (loss,) = answer(told([*facts, *more, *left])).losses
        return loss["status"], [c["kind"] for c in loss["surviving_copies"]]

    assert found() == ("recoverable", ["replica"])
    assert found(ev.ReplicaStarted(2)) == ("undetermined", ["salvage"])
    told_of_2 = ev.CoverageDeclared("broker_log", 2, True)
    assert found(told_of_2, ev.ReplicaStarted(2)) == ("recoverable", ["replica"])
    compacted = ev.PartitionDescribed(cleanup_policy="compact"), told_of_2, ev.ReplicaStarted(2)
    assert found(*compacted) == ("undetermined", ["salvage"])


def test_nothing_is_asked_for_that_was_handed_over() -> None:
    state = fold_steps(story("kafka=2.8.2 unclean=yes", "produce A a", "stop A").world)
    asked = [
        "the controller's history (metadata log or state-change.log)",
        "an acknowledgement log of the producers",
        "--kafka VERSION",
    ]

    assert still_to_get(state, asked) == [ONLY_BEFOREHAND]
    assert still_to_get(state, [*asked, "the log directory of broker 9"]) == [
        "the log directory of broker 9"
    ]
    assert still_to_get(state, []) == []


def test_a_cleanly_stopped_directory_is_here_and_a_running_one_may_have_gone_on() -> None:
    state = new_state("", "t", "", 0)
    for number, stopped in ((1, True), (2, False)):
        fact = ev.ReplicaLogObserved(number, 0, 0, (), stopped=stopped)
        apply(state, ev.Event(str(number), "x", "", "t", "", 0, number, fact))
    asked = ["the log directory of broker 1", "the log directory of broker 2 as it is now"]

    assert still_to_get(state, asked) == asked[1:]


def test_an_acknowledgement_by_offsets_alone_is_of_the_record_at_each_offset() -> None:
    """Two records were committed, and both are acknowledged in one run without payload ids."""
    facts = [
        *given(2, 3),
        elected(1, 0, "initial"),
        ev.RecordsAcknowledged(0, 2, "all"),
        elected(2, 1, "unclean", (2,)),
        ev.BecameLeader(2, 1, 0, 0),
        copy(1, (0, 1, 0, 0), (1, 2, 0, 1), mark=2),
        copy(2, mark=0),
    ]

    losses = answer(told(facts)).losses

    assert [(x["first_offset"], x["end_offset"], x["tier"]) for x in losses] == [
        (0, 2, "acknowledged_by_isr")
    ]
    assert verdict(facts, ACKNOWLEDGED) == "VIOLATED"


def test_an_acknowledgement_that_may_be_of_either_lost_record_is_of_one() -> None:
    """Epochs 0 and 1 both wrote offset 0 and committed it; which was acknowledged is not told."""
    facts = [
        *given(3, version="3.5.0"),
        elected(1, 0, "initial"),
        ev.RecordsAcknowledged(0, 1, "all"),
        elected(2, 1, "unclean", (2,)),
        ev.BecameLeader(2, 1, 0, 0),
        elected(3, 2, "unclean", (3,)),
        ev.BecameLeader(3, 2, 0, 0),
        copy(1, (0, 1, 0, 0), mark=1),
        copy(2, (0, 1, 1, 1), mark=1),
        copy(3, mark=0),
    ]

    assert {x["tier"] for x in answer(told(facts)).losses} == {"committed"}
    assert verdict(facts, ACKNOWLEDGED) == "VIOLATED"


def test_a_promise_is_of_no_record_that_was_written_after_it() -> None:
    """Broker 1 tells of its high watermark as it hands over: it is of the record of epoch 0, not of
    the one that broker 3 wrote there in epoch 2."""
    facts = [
        *given(1, 2, 3),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        ev.RecordsAcknowledged(0, 1, "1", 0, 0),
        elected(2, 1, "preferred"),
        ev.BecameFollower(1, 1, 2, 1, 1),
        ev.BecameLeader(2, 1, 1, 1),
        elected(3, 2, "unclean", (3,)),
        ev.BecameLeader(3, 2, 0, 0),
        ev.RecordsAcknowledged(0, 1, "1", 2, 1),
        elected(2, 3, "unclean", (2,)),
        ev.BecameLeader(2, 3, 0, 0),
        copy(2, mark=0),
    ]

    found = {(x["leader_epoch"], x["tier"]) for x in answer(told(facts)).losses}

    assert found == {(0, "committed"), (2, "acknowledged_by_leader")}


@pytest.mark.parametrize("another", [False, True])
@pytest.mark.parametrize(("start", "tier"), [(0, "acknowledged_by_leader"), (1, "committed")])
def test_a_high_watermark_may_be_of_what_a_later_leader_wrote_there(
    another: bool, start: int, tier: str
) -> None:
    """Broker 1 wrote offset 0, then broker 2 did, or went on after it, and lost its disk. The line
    by which broker 1 goes on following tells its high watermark."""
    facts = [
        *given(1, 2, 3, version="3.9.1"),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        ev.RecordsAcknowledged(0, 1, "1", 0, 0),
        elected(2, 1, "clean", (2,)),
        ev.BecameLeader(2, 1, start, 0),
        ev.BecameFollower(1, 1, 2, 1, 0),
        *([ev.Truncated(1, 0, 1, "diverging_epoch")] if start == 0 else []),
        *([ev.RecordsAcknowledged(start, start + 1, "1")] if another else []),
        ev.ReplicaStarted(2, 0, 0, None, False),
        elected(2, 2, "clean", (2,)),
        ev.BecameLeader(2, 2, 0, 0),
        ev.BecameFollower(1, 2, 2, 1, 1),
        copy(2, mark=0),
    ]
    found = answer(told(facts)).losses
    assert {x["tier"] for x in found if x["leader_epoch"] == 0} == {tier}
    others = {x["tier"] for x in found if x["leader_epoch"] is None}
    assert ("committed" in others) is (start == 0 and not another)


def test_what_was_committed_by_the_end_of_an_epoch_is_no_record_of_a_later_one() -> None:
    """A follower's line tells offsets alone, and what a later epoch wrote there is gone as well."""
    facts = [
        *given(1, 2, 3),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        ev.BecameFollower(2, 0, 1, 0, 0),
        ev.ReplicaStopped(1, "process_crash"),
        elected(3, 1, "unclean", (3,)),
        ev.BecameFollower(2, 1, 3, 1, 1),
        ev.Truncated(2, 0, 1, "diverging_epoch"),
        ev.BecameLeader(3, 1, 0, 0),
        ev.RecordsAcknowledged(0, 1, "1", 1, 1),
        ev.ReplicaStopped(3, "process_crash"),
        elected(2, 2, "unclean", (2,)),
        ev.BecameLeader(2, 2, 0, 0),
        *(copy(r, mark=0) for r in (1, 2, 3)),
    ]
    verdicts = {v["invariant"]: v["reason"] for v in answer(told(facts)).verdicts}
    assert "acks=1" in verdicts[ACKNOWLEDGED]
    assert "acks=1" not in verdicts[COMMITTED]


@pytest.mark.parametrize(
    "asked", ["an acknowledgement log", "an acknowledgement log of the producers"]
)
def test_an_acknowledgement_log_at_hand_is_not_asked_for(asked: str) -> None:
    assert still_to_get(told(given()), [asked, "consumption logs"]) == ["consumption logs"]
    assert still_to_get(told(given(acks=False)), [asked]) == [asked]


@pytest.mark.parametrize(("shown", "early", "status"), [
    (True, False, "recoverable"), (False, False, "undetermined"), (False, True, "undetermined"),
])  # fmt: skip
def test_what_a_leader_was_without_the_last_one_may_have_again(
    shown: bool, early: bool, status: str
) -> None:
    """Broker 3 holds what broker 2 began without; broker 1, who leads since, is not here, or as a
    copy that was taken while it ran, long before."""
    facts = [
        *given(1, 2, 3),
        elected(3, 0, "initial", (3,)),
        ev.BecameLeader(3, 0, 0, 0),
        *([copy(1, (0, 1, 0, 0), stopped=False)] if early else []),
        ev.RecordsAcknowledged(2, 4, "all", 0, 0),
        ev.ReplicaStopped(3, "process_crash"),
        elected(2, 1, "unclean", (2,)),
        ev.BecameLeader(2, 1, 2, 0),
        elected(1, 2, "unclean", (1,)),
        ev.BecameLeader(1, 2, 2, 0) if shown else ev.BecameLeader(1, 2, 4, 0),
        copy(3, (0, 4, 0, 0)),
        copy(2, (0, 2, 0, 0)),
        *([copy(1, (0, 2, 0, 0), (2, 3, 2, 0))] if shown else []),
    ]
    (loss,) = answer(told(facts)).losses
    assert loss["status"] == status


@pytest.mark.parametrize(("held", "status"), [(True, "undetermined"), (False, "lost")])
def test_what_one_that_may_lead_has_again_is_not_outside_the_leaders_history(
    held: bool, status: str
) -> None:
    """Broker 2 led without the record. Nothing names the last leader; broker 1 has the record."""
    facts = [
        *given(2),
        ev.RecordsAcknowledged(0, 1, "1", 0, 0),
        ev.BecameLeader(2, 1, 0, 0),
        copy(1, (0, 1, *((0, 0) if held else (1, 1)))),
        copy(2, (0, 1, 1, 1)),
        copy(3, (0, 1, 1, 1)),
    ]
    (loss,) = answer(told(facts)).losses
    assert loss["status"] == status


@pytest.mark.parametrize(("covered", "status"), [
    ((1, 2, 3), "recovered"), ((2, 3), "undetermined"),
])  # fmt: skip
def test_what_the_last_leader_wrote_and_leads_on_with_is_back_though_its_log_is_not_here(
    covered: tuple[int, ...], status: str
) -> None:
    """Broker 2 led in between without it."""
    facts = [
        *given(*covered),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        ev.RecordsAcknowledged(3, 4, "1", 0, 0),
        elected(2, 1, "unclean", (2,)),
        ev.BecameLeader(2, 1, 3, 3),
        elected(1, 2, "unclean", (1,)),
        ev.BecameLeader(1, 2, 5, 5),
        copy(2, (0, 3, 0, 0), (3, 4, 1, 0), mark=4),
    ]
    (loss,) = [x for x in answer(told(facts)).losses if x["leader_epoch"] == 0]
    assert loss["status"] == status


def test_what_may_be_one_record_that_is_back_or_another_that_is_not_is_undetermined() -> None:
    """An acknowledgement of an offset alone: broker 1 wrote there and leads again, or broker 2."""
    facts = [
        *given(1, 2, 3),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        ev.RecordsAcknowledged(0, 1, "1"),
        elected(2, 1),
        ev.BecameLeader(2, 1, 0, 0),
        elected(1, 2, "unclean", (1,)),
        ev.BecameLeader(1, 2, 1, 1),
        copy(1, (0, 1, 0, 0), (1, 2, 2, 0), mark=2),
    ]
    (loss,) = [x for x in answer(told(facts)).losses if x["first_offset"] == 0]
    assert loss["status"] == "undetermined"
