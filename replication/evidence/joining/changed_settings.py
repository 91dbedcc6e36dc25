"""The controllers' history of a partition with the settings that changed in between, in order."""

from collections.abc import Iterator, Mapping
from itertools import pairwise

from replication.evidence.joining.partition_evidence import PartitionEvidence
from replication.evidence.joining.registrations import Recorded
from replication.evidence.joining.settings_in_time import InForce
from replication.protocol.ground import events as ev


def by_controllers(
    evidence: PartitionEvidence,
) -> Iterator[tuple[ev.Fact, int | None, ev.Source | None]]:
    """States of the partition, and between them changed settings: fact, clock (ms), place."""
    changed = list(changed_settings(evidence))
    for recorded in evidence.recorded:
        while changed and _is_before(changed[0], recorded):
            change = changed.pop(0)
            yield described_by(change.values), change.at, recorded.source
        yield recorded.fact, recorded.at, recorded.source
    for change in changed:
        yield described_by(change.values), change.at, None


def changed_settings(evidence: PartitionEvidence) -> Iterator[InForce]:
    """What came into force after the partition's first state."""
    for before, change in pairwise(evidence.settings_in_time):
        if not evidence.recorded or _is_before(change, evidence.recorded[0]):
            continue
        if described_by(change.values) != described_by(before.values):
            yield change


def _is_before(change: InForce, recorded: Recorded) -> bool:
    """Whether settings came into force before the controller wrote a state of the partition."""
    place = recorded.source.byte_offset
    if change.metadata_offset is not None and place is not None:
        return change.metadata_offset < place
    return change.at is None or recorded.at is None or change.at <= recorded.at


def described_by(values: Mapping[str, str | None]) -> ev.PartitionDescribed:
    """The settings in Kafka's names as the core has them."""
    minimum = values.get("min.insync.replicas") or ""
    unclean = values.get("unclean.leader.election.enable")
    return ev.PartitionDescribed(
        min_insync_replicas=int(minimum) if minimum.isdigit() else None,
        unclean_leader_election=None if unclean is None else unclean.lower() == "true",
        cleanup_policy=values.get("cleanup.policy"),
    )
