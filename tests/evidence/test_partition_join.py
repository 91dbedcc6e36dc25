"""The last step of joining one partition, in the smallest forms."""

import pytest

from replication.evidence.broker_logs.packed_facts import Packer
from replication.evidence.joining.partition_events import events_of
from replication.evidence.joining.partition_evidence import PartitionEvidence
from replication.evidence.joining.partition_join import finished
from replication.evidence.joining.registrations import Recorded
from replication.protocol.ground import events as ev
from tests.evidence.joining.lines import line
from tests.protocol.judgement.told import told


def registered(at: int, replicas: tuple[int, ...] | None) -> Recorded:
    fact = ev.LeadershipRecorded(1, 0, (1, 2), 0, "initial", assigned_replicas=replicas)
    return Recorded(fact, at, ev.Source("controller.log", 1))


def assigned(evidence: PartitionEvidence) -> tuple[int, ...] | None:
    """What the partition's events leave as its assignment."""
    return told(events_of(finished(evidence), "trace", 0)).settings.assigned_replicas


@pytest.mark.parametrize(
    ("told_at", "complete", "expected"),
    [
        (200, False, (1, 2, 4)),
        (50, False, (1, 2, 3)),
        (None, False, (1, 2, 3)),
        (200, True, (1, 2, 3)),
    ],
)
def test_the_newest_source_of_the_assignment_wins(
    told_at: int | None, complete: bool, expected: tuple[int, ...]
) -> None:
    """A description after the last registration that names one; a metadata log misses none."""
    evidence = PartitionEvidence("", "t", "", 0)
    evidence.recorded = [registered(100, (1, 2, 3))]
    evidence.history_complete = complete
    evidence.kafka_topics_replicas, evidence.kafka_topics_at = (1, 2, 4), told_at
    assert assigned(evidence) == expected


def test_an_assignment_that_only_a_description_names() -> None:
    evidence = PartitionEvidence("", "t", "", 0)
    evidence.recorded = [registered(100, None)]
    evidence.kafka_topics_replicas = (1, 2, 4)
    assert assigned(evidence) == (1, 2, 4)


@pytest.mark.parametrize(
    ("created", "printed", "described", "expected"),
    [
        (["false", "false"], {}, None, False),
        (["false", "true"], {}, None, None),
        (["false"], {"unclean.leader.election.enable": "true"}, None, None),
        (["true"], {"unclean.leader.election.enable": None}, "true", None),
        (["false"], {}, "true", None),
        (["false"], None, "true", True),
    ],
)
def test_of_a_setting_that_was_changed_in_use_nobody_knows_what_was_in_force_when(
    created: list[str], printed: dict[str, str | None] | None, described: str | None,
    expected: bool | None,
) -> None:  # fmt: skip
    """By the lines in which logs were created and settings changed, and by kafka-topics; where the
    controllers record settings (printed is None) these tell."""
    name = "unclean.leader.election.enable"
    evidence = PartitionEvidence("", "t", "", 0, printed=printed)
    for broker, value in enumerate(created, 1):
        packer = Packer(f"broker-{broker}/server.log")
        packer.add(line("log_created", broker, settings={name: value}))
        evidence.packed[broker] = packer.done()
    evidence.kafka_topics_settings = {} if described is None else {name: described}
    assert finished(evidence).described.unclean_leader_election is expected


def test_a_list_that_lines_print_in_two_ways_is_one_value() -> None:
    name = "cleanup.policy"
    evidence = PartitionEvidence("", "t", "", 0, printed={name: "compact, delete"})
    packer = Packer("broker-1/server.log")
    packer.add(line("log_created", settings={name: "[compact, delete]"}))
    evidence.packed[1] = packer.done()
    evidence.kafka_topics_settings = {name: "compact,delete"}
    assert finished(evidence).described.cleanup_policy == "compact,delete"


@pytest.mark.parametrize(
    ("release", "controller", "needed", "kind"),
    [("4.3.0", "kraft", 2, "unknown"), ("4.3.0", "kraft", 1, "unclean"),
     ("4.3.0", "kraft", None, "unknown"), (None, "kraft", 2, "unknown"),
     ("3.9.1", "kraft", 2, "unclean"), ("2.8.2", "zookeeper", 2, "unclean")],
)  # fmt: skip
def test_whether_an_election_beside_the_isr_was_unclean_depends_on_who_may_be_eligible(
    release: str | None, controller: str, needed: int | None, kind: str
) -> None:
    lines = [
        line("became_leader", broker=b, number=b, partition_epoch=b, leader_epoch=b, isr=(b,))
        for b in (1, 2)
    ]
    evidence = PartitionEvidence("", "t", "", 0)
    evidence.packed = {}
    for each in lines:
        packer = Packer(each.path)
        packer.add(each)
        evidence.packed[each.fields["leader_epoch"]] = packer.done()
    evidence.described = ev.PartitionDescribed(controller=controller, kafka_version=release)
    evidence.settings = {} if needed is None else {"min.insync.replicas": str(needed)}
    assert finished(evidence).recorded[-1].fact.election_kind == kind


@pytest.mark.parametrize(("partition_epoch", "isr"), [(1, (1,)), (0, (1, 2))])
def test_lines_tell_of_an_isr_that_the_metadata_log_at_hand_has_not_reached(
    partition_epoch: int, isr: tuple[int, ...]
) -> None:
    """The leader epoch stays when the ISR shrinks; the copy of the metadata log is from before."""
    kept = line("leadership_kept", broker=1, number=1, partition_epoch=partition_epoch,
                leader_epoch=0, leader=1, isr=(1,))  # fmt: skip
    packer = Packer(kept.path)
    packer.add(kept)
    evidence = PartitionEvidence("", "t", "", 0)
    evidence.packed = {1: packer.done()}
    evidence.recorded, evidence.history_complete = [registered(100, (1, 2))], True
    assert finished(evidence).recorded[-1].fact.isr == isr
