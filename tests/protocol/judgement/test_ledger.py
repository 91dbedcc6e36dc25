"""Tiers, copies and artefacts of the loss ledger, in the smallest stories."""

from dataclasses import replace
from typing import Any

import pytest

from replication.machine.scenario_check import events_of, fold_steps
from replication.protocol.ground import events as ev
from replication.protocol.ground.topic_partition import State
from replication.protocol.judgement import ledger
from replication.protocol.judgement.judge import answer
from replication.protocol.judgement.settling import ONLY_BEFOREHAND, still_to_get
from tests.changed_evidence import folded_with
from tests.protocol.judgement.told import copy, elected, given, told
from tests.protocol.stories import story_of

UNCLEAN = (
    "isolate B", "fence B", "fence C", "produce A a", "stop A", "rejoin B", "elect B isr=B",
)  # fmt: skip


def losses_of(*facts: ev.Fact) -> list[dict[str, Any]]:
    """Of a record that was committed, with these facts besides."""
    events = events_of(story_of("kafka=2.8.2 unclean=yes", *UNCLEAN).world)
    return answer(told([*(e.fact for e in events), *facts], events[0].grade)).losses


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
    [(2, 0, "committed"), (None, None, "committed")],
)
def test_a_committed_record_that_is_or_may_be_acknowledged_at_acks_one_is_not_called_never_so(
    leader_epoch: int | None, content: int | None, found: str
) -> None:
    every = ev.CoverageDeclared("all_producers", None, True)
    answered = ev.RecordsAcknowledged(0, 1, "1", leader_epoch, content)
    assert found in {x["tier"] for x in losses_of(every, answered)}


def test_undetermined_where_acknowledgements_are_declared_missing() -> None:
    assert tier(ev.CoverageDeclared("acknowledgements", None, False)) == "undetermined"


def test_a_leader_that_died_before_it_led_owes_its_place_to_the_unclean_election() -> None:
    """B never begins to lead leader epoch 2, and is elected again from an ISR that has only B."""
    told_again = story_of(
        "kafka=3.9.1 controller=kraft unclean=yes",
        "fence B", "fence C", "produce A a", "crash A", "fence A", "elect B isr=B deliver=C",
        "crash B", "fence B", "start B",
    )  # fmt: skip

    (loss,) = answer(fold_steps(told_again.world)).losses

    assert (loss["cause"], loss["next_leader_epoch"]) == ("unclean_election", 4)


def copies(state: State) -> dict[int, str | None]:
    (loss,) = answer(state).losses
    return {
        c["replica"]: c["destroyed_when"]
        for c in loss["surviving_copies"]
        if c["kind"] == "replica"
    }


def test_a_copy_that_truncation_removes_ends_when_its_broker_follows() -> None:
    state = fold_steps(story_of("kafka=2.8.2 unclean=yes", *UNCLEAN).world)

    assert copies(state) == {1: "broker 1 starts as a follower"}


def test_a_copy_that_the_rule_keeps_outlives_following() -> None:
    """KIP-101's divergence: A's high watermark lies above what the new leader wrote there."""
    fork = story_of(
        "kafka=0.10.2.2 unclean=yes",
        "fence B", "fence C", "produce A a acks=all", "checkpoint A", "stop A", "elect B isr=B",
        "produce B x acks=all",
    )  # fmt: skip

    assert copies(fold_steps(fork.world)) == {1: "broker 1 loses this directory"}


def test_nothing_is_asked_for_that_was_handed_over() -> None:
    state = fold_steps(story_of("kafka=2.8.2 unclean=yes", "produce A a", "stop A").world)
    asked = [
        "the controller's history (metadata log or state-change.log)",
        "an acknowledgement log of the producers",
        "--kafka VERSION",
    ]

    assert still_to_get(state, asked) == [ONLY_BEFOREHAND]
    assert still_to_get(state, [*asked, "the log directory of broker 9"]) == [
        "the log directory of broker 9"
    ]
    assert still_to_get(state, []) == [ONLY_BEFOREHAND]


def test_a_cleanly_stopped_directory_is_here_and_a_running_one_may_have_gone_on() -> None:
    state = told(ev.ReplicaLogObserved(r, 0, 0, (), stopped=r == 1) for r in (1, 2))
    asked = ["the log directory of broker 1", "the log directory of broker 2 as it is now"]

    assert still_to_get(state, asked) == asked[1:]


@pytest.mark.parametrize(
    "asked", ["an acknowledgement log", "an acknowledgement log of the producers"]
)
def test_an_acknowledgement_log_at_hand_is_not_asked_for(asked: str) -> None:
    assert still_to_get(told(given()), [asked, "consumption logs"]) == ["consumption logs"]
    assert still_to_get(told(given(acks=False)), [asked]) == [asked]


@pytest.mark.parametrize(("policy", "status"), [("delete", "recoverable"), ("compact", "lost")])
def test_what_compaction_has_taken_is_no_copy_of_the_record(policy: str, status: str) -> None:
    """Replica 2 stopped with five records, of which its directory shows all but the first."""
    facts = [
        ev.PartitionDescribed((1, 2), 1, True, policy, "2.8.2", None, "zookeeper"),
        ev.CoverageDeclared("acknowledgements", None, True),
        *(ev.CoverageDeclared("broker_log", r, True) for r in (1, 2)),
        elected(1, 0, "initial", (1, 2)),
        *(ev.ReplicaStarted(r, 0, 0) for r in (1, 2)),
        ev.BecameLeader(1, 0, 0, 0),
        ev.BecameFollower(2, 0, None, 0, 0),
        ev.RecordsAcknowledged(0, 1, "all", 0, 7),
        ev.ReplicaStopped(2, "clean", 5),
        elected(1, 1, "same_leader", (1,)),
        ev.ReplicaStopped(1, "process_crash"),
        ev.ReplicaStarted(1, 0, 0, 0),
        elected(1, 2, "clean", (1,)),
        ev.BecameLeader(1, 2, 0, 0),
        copy(2, (1, 5, 0, 0), mark=5),
        copy(1, (0, 9, 2, 1), mark=9),
    ]
    found = {row["first_offset"]: row["status"] for row in answer(told(facts)).losses}
    assert found == {0: status, 1: "recoverable"}


@pytest.mark.parametrize("incident", ["same_epoch_power_loss__1.1.1", "unclean_election__2.8.2"])
def test_where_records_are_not_kept_apart_none_is_said_to_be_nowhere(
    incident: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without acknowledgements, and with no steps left for the rows of losses: nothing tells which
    record it is, so that a replica with some record there may hold it."""
    monkeypatch.setattr(ledger, "MOST_STEPS_OF_CAUSES", 0)
    (found,) = folded_with(incident, lambda evidence: (evidence / "acks.jsonl").unlink())
    assert [row["status"] for row in found.answer.losses] == ["undetermined"]


def test_the_proof_names_where_a_leader_leads_again_without_what_its_disk_lost() -> None:
    """Within one leader epoch: it began twice, the first time with all."""
    facts: list[ev.Fact] = [
        ev.PartitionDescribed((1,), 1, True, "delete", "1.1.1", "1.1", "zookeeper"),
        *(ev.CoverageDeclared(s, None, True) for s in ("controller_history", "acknowledgements")),
        ev.CoverageDeclared("broker_log", 1, True),
        ev.LeadershipRecorded(1, 0, (1,), 0, "initial", (1,)),
        ev.BecameLeader(1, 0, 0, 0),
        ev.LeaderAppended(1, 0, 5, 0, 7),
        ev.HighWatermarkAdvanced(1, 5),
        ev.RecordsAcknowledged(0, 5, "all", 0, 7),
        ev.ReplicaStopped(1, "process_crash"),
        ev.ReplicaStarted(1, 0, 0, None, False),
        ev.BecameLeader(1, 0, 0, 0),
        ev.LeaderAppended(1, 0, 6, 0, 8),
    ]
    found = answer(told(facts))
    assert [loss["cause"] for loss in found.losses] == ["storage_loss"]
    (proof,) = (f for f in found.findings if f["finding_id"] == found.losses[0]["finding_id"])
    led = [step["event_id"] for step in proof["witness"] if "leads epoch 0" in step["because"]]
    again = max(n for n, fact in enumerate(facts) if isinstance(fact, ev.BecameLeader))
    assert led == [str(again)]


@pytest.mark.parametrize(
    ("policy", "status"), [("delete", "recoverable"), ("compact", "undetermined")]
)
def test_what_compaction_may_have_taken_from_a_log_that_nobody_saw_is_not_told_to_be_there(
    policy: str, status: str
) -> None:
    """Broker 1 stopped with the records, by its lines; its log directory is not here."""
    described, *rest = given(1, 2, 3, version="2.8.2")
    assert isinstance(described, ev.PartitionDescribed)
    facts = [
        replace(described, cleanup_policy=policy),
        *rest,
        elected(1, 0, "initial", (1,)),
        *(ev.ReplicaStarted(r, 0, 0) for r in (1, 2, 3)),
        ev.BecameLeader(1, 0, 0, 0),
        ev.RecordsAcknowledged(5, 6, "1", 0, 0),
        ev.ReplicaStopped(1, "clean", 6),
        elected(2, 1, "unclean", (2,)),
        ev.BecameLeader(2, 1, 0, 0),
        copy(2, mark=0),
        copy(3, mark=0),
    ]
    (loss,) = answer(told(facts)).losses
    assert (loss["status"], loss["surviving_copies"]) == (status, [])
