"""What a record makes of a partition, after Kafka's PartitionRegistration."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from replication.evidence.metadata_log.broker_records import Standing
from replication.evidence.metadata_log.election_kind import Before, election_kind
from replication.evidence.metadata_log.history import PartitionRegistration

# In a change, a leader field of -2 is one that is not there, -1 is no leader.
_NOT_SAID = -2


def registered(values: Mapping[str, Any], topic: str | None) -> PartitionRegistration:
    """What a PartitionRecord says, which holds the whole registration."""
    return PartitionRegistration(
        topic_id=values["topic_id"],
        topic=topic,
        partition=values["partition"],
        leader=_absent_if_negative(values["leader"]),
        leader_epoch=values["leader_epoch"],
        partition_epoch=values["partition_epoch"],
        isr=tuple(values["isr"]),
        replicas=tuple(values["replicas"]),
        adding=tuple(values["adding_replicas"]),
        removing=tuple(values["removing_replicas"]),
        elr=tuple(values.get("eligible_leader_replicas") or ()),
        last_known_elr=tuple(values.get("last_known_elr") or ()),
        recovering=values.get("leader_recovery_state", 0) == 1,
    )


def names_leader(values: Mapping[str, Any]) -> bool:
    """Whether a PartitionChangeRecord carries the leader field: then the leader epoch rises."""
    return bool(values.get("leader", _NOT_SAID) != _NOT_SAID)


def changed(before: PartitionRegistration, values: Mapping[str, Any]) -> PartitionRegistration:
    """The registration after a PartitionChangeRecord (PartitionRegistration.merge)."""
    recovery = values.get("leader_recovery_state", -1)
    with_leader = names_leader(values)
    return replace(
        before,
        leader=_absent_if_negative(values["leader"]) if with_leader else before.leader,
        leader_epoch=before.leader_epoch + with_leader,
        partition_epoch=before.partition_epoch + 1,
        isr=_or(values.get("isr"), before.isr),
        replicas=_or(values.get("replicas"), before.replicas),
        adding=_or(values.get("adding_replicas"), before.adding),
        removing=_or(values.get("removing_replicas"), before.removing),
        elr=_or(values.get("eligible_leader_replicas"), before.elr),
        last_known_elr=_or(values.get("last_known_elr"), before.last_known_elr),
        recovering=before.recovering if recovery == -1 else recovery == 1,
    )


def without_elr(before: PartitionRegistration, topic: str) -> PartitionRegistration | None:
    """After a ClearElrRecord for a topic ("": all), or None where there is nothing to clear."""
    if not (before.elr or before.last_known_elr) or topic not in ("", before.topic):
        return None
    following = before.partition_epoch + 1
    return replace(before, elr=(), last_known_elr=(), partition_epoch=following)


def how_elected(
    before: PartitionRegistration,
    after: PartitionRegistration,
    old_leader: Standing | None,
    unclean_allowed: bool,
) -> str:
    """How the leader of `after` came to lead; old_leader: the standing of the one before it."""
    assert after.leader is not None
    return election_kind(
        after.leader,
        Before(before.leader, before.isr, before.elr, before.last_known_elr, before.adding),
        isr=after.isr,
        marked_unclean=after.recovering and not before.recovering,
        is_preferred=_is_preferred(before, after, old_leader),
        unclean_allowed=unclean_allowed,
        adding=after.adding,
    )


def _is_preferred(
    before: PartitionRegistration, after: PartitionRegistration, old_leader: Standing | None
) -> bool:
    """The head of the assignment took over from a leader that could have gone on leading."""
    if after.leader != after.replicas[0] or before.leader not in after.isr:
        return False
    return old_leader is None or not (old_leader.fenced or old_leader.in_controlled_shutdown)


def _absent_if_negative(node: int) -> int | None:
    return node if node >= 0 else None


def _or(value: list[Any] | None, otherwise: tuple[Any, ...]) -> tuple[Any, ...]:
    return otherwise if value is None else tuple(value)
