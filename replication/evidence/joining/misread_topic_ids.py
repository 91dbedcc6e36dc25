"""Topic ids that one copied directory alone names, though its records are those of another topic.

Two topics share no batch. So where one does, its partition.metadata was changed after it had been
written: that is said, and the id passed over.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from replication.evidence.joining.lives_of_directories import batches_of
from replication.evidence.joining.one_cluster import ClusterEvidence
from replication.evidence.log_directories.log_directory import (
    PARTITION_METADATA,
    PartitionDirectory,
)
from replication.evidence.unreadable import Unreadable


def without_misread_topic_ids(
    cluster: ClusterEvidence,
) -> tuple[ClusterEvidence, list[Unreadable]]:
    """The cluster without them, and each of them as what could not be read."""
    found = {p.path: other for p, other in _misread(cluster)}
    if not found:
        return cluster, []
    directories = []
    unreadable = []
    for d in cluster.directories:
        partitions = []
        for p in d.directory.partitions:
            if p.path in found:
                unreadable.append(_said(p, found[p.path]))
            partitions.append(replace(p, topic_id=None) if p.path in found else p)
        directories.append(replace(d, directory=replace(d.directory, partitions=tuple(partitions))))
    return replace(cluster, directories=tuple(directories)), unreadable


def _said(p: PartitionDirectory, other: str) -> Unreadable:
    return Unreadable(
        str(p.path / PARTITION_METADATA),
        "file",
        f"names topic id {p.topic_id}, which nothing else names, beside records of topic id "
        f"{other}: damaged, and passed over",
    )


def _misread(cluster: ClusterEvidence) -> Iterator[tuple[PartitionDirectory, str]]:
    """The replicas, each with the topic id whose records it has."""
    told = set(_told_elsewhere(cluster))
    alike: dict[tuple[str, int], list[PartitionDirectory]] = {}
    named: dict[str, set[Path]] = {}
    for p in (p for d in cluster.directories for p in d.directory.partitions):
        if p.topic_id is not None:
            alike.setdefault((p.topic, p.partition), []).append(p)
            named.setdefault(p.topic_id, set()).add(p.path)
    for replicas in alike.values():
        if len({p.topic_id for p in replicas}) < 2:
            continue
        for p in replicas:
            once = p.topic_id not in told and len(named[p.topic_id or ""]) == 1
            other = _whose_records(p, replicas) if once else None
            if other is not None:
                yield p, other


def _whose_records(p: PartitionDirectory, replicas: list[PartitionDirectory]) -> str | None:
    """Another topic id under which the same batches lie."""
    mine = batches_of(p)
    others = (o for o in replicas if o.topic_id != p.topic_id)
    return next((o.topic_id for o in others if mine & batches_of(o)), None)


def _told_elsewhere(cluster: ClusterEvidence) -> Iterator[str]:
    """Topic ids by the controllers' histories, kafka-topics, clients, and brokers' lines."""
    if cluster.history is not None:
        yield from cluster.history.topics
    for kept in cluster.zookeeper.topics if cluster.zookeeper is not None else ():
        yield kept.topic_id or ""
    for described in (*cluster.descriptions, *cluster.acknowledgements, *cluster.consumptions):
        yield getattr(described, "topic_id", None) or ""
    for log in cluster.logs:
        yield from (printed for _, _, printed in log.topic_ids)
        yield from (str(f.fields.get("topic_id") or "") for f in log.processes)
