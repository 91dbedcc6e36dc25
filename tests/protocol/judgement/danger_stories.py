"""Partitions in danger: by a scenario that is played, or by what digests and lines tell."""

from replication.machine.partition_machine import PartitionMachine
from replication.protocol.ground import events as ev
from replication.protocol.ground.model import EpochEntry, Span
from replication.protocol.ground.topic_partition import State
from replication.protocol.judgement.at_risk import Danger
from tests.protocol.judgement.told import event, told
from tests.protocol.stories import played

GIVEN = """given isr={isr} min_insync_replicas=2 kafka={kafka} unclean={unclean}
A{a} e0  {one} |
B{b} e0  {two} |
C  e0  {three} |
----
"""


def folded(*machines: PartitionMachine) -> State:
    """What a complete trace of the machine tells; of a copy's, after that of whom it was copied."""
    facts = (step.fact for machine in machines for step in machine.world.steps)
    return told(facts, "traced", refusing=False)


def offsets_of(danger: Danger) -> set[int]:
    return set(range(danger.first_offset, danger.end_offset))


def story(text: str) -> State:
    """The state that the fold reaches over the machine's facts in a scenario."""
    return folded(played(text).machine)


def given(isr: str = "A,B,C", *, leader: str = "A", kafka: str = "3.9.1", unclean: str = "no",
          logs: tuple[str, str, str] = ("0:m*10", "0:m*10", "0:m*10")) -> str:  # fmt: skip
    """A partition of A, B and C, all of whose records are committed on the leader."""
    marks = {"a": "*" if leader == "A" else " ", "b": "*" if leader == "B" else " "}
    return GIVEN.format(
        isr=isr, kafka=kafka, unclean=unclean, one=logs[0], two=logs[1], three=logs[2], **marks
    )


def live(replica: int, at: int, end: int, leader_epoch: int | None = 0) -> ev.Event:
    """Its log when it was read beside its broker."""
    spans = (Span(0, end, leader_epoch, None),)
    return event(0, ev.ReplicaLogObserved(replica, 0, end, spans, stopped=False, copy="live"), at)


def of_two(*facts: ev.Event | ev.Fact, unclean: bool = False, isr: tuple[int, ...]) -> State:
    """A partition of 1 and 2 that 1 leads."""
    known: list[ev.Fact] = [
        ev.PartitionDescribed(
            kafka_version="3.9.1", assigned_replicas=(1, 2), unclean_leader_election=unclean,
            min_insync_replicas=1, controller="kraft",
        ),
        ev.CoverageDeclared("broker_log", 1, True),
        ev.CoverageDeclared("broker_log", 2, True),
        ev.LeadershipRecorded(leader=1, leader_epoch=0, isr=isr, partition_epoch=1),
        ev.BecameLeader(1, 0),
    ]  # fmt: skip
    all_facts = enumerate([*known, *facts])
    return told(fact if isinstance(fact, ev.Event) else event(n, fact, 0) for n, fact in all_facts)


def came_back(end: int, at: int, *, clean: bool, replica: int = 2) -> ev.Event:
    """What the line of a start says."""
    return event(0, ev.ReplicaStarted(replica, 0, end, None, clean), at)


def log_without_epochs(
    replica: int, at: int, end: int, *filed: tuple[int, int], stopped: bool = False
) -> ev.Event:
    """What a digest tells of a compacted log. filed: its epoch file."""
    fact = ev.ReplicaLogObserved(
        replica, 0, end, (Span(0, end, None, None),), stopped=stopped, copy="live",
        epoch_entries=tuple(EpochEntry(*each) for each in filed),
    )  # fmt: skip
    return event(0, fact, at)
