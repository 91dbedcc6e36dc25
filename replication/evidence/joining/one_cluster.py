"""What of all that was collected is one cluster's."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from replication.evidence.clients.client_logs import Acknowledgement, Consumption
from replication.evidence.clients.told_once import told_once
from replication.evidence.collecting.archives import Unpacked
from replication.evidence.collecting.broker_text_log import BrokerLog
from replication.evidence.collecting.collection import (
    BrokerDirectory,
    BrokerDump,
    Collection,
)
from replication.evidence.joining.clocks import Clocks, clocks_set_back
from replication.evidence.metadata_log.history import MetadataHistory
from replication.evidence.tools.log_dirs import LogDirectoryError, LogDirectorySize
from replication.evidence.tools.metadata_quorum import QuorumReplica, QuorumStatus
from replication.evidence.tools.topic_descriptions import PartitionDescription, TopicDescription
from replication.evidence.zookeeper.history import ZooKeeperHistory

INTERNAL = frozenset(("__cluster_metadata",))

# One incarnation of one topic partition: (topic, topic id, partition).
Key = tuple[str, str, int]


@dataclass(frozen=True, slots=True)
class ClusterEvidence:
    """One cluster's share of a `Collection`, whose words these are.

    unread: what clients wrote (acknowledgements, consumptions) -> how many places of it could not
    be read. clocks_compare: the times in brokers' logs may be held against those of all else. Where
    the zone of a log is not known nothing may rest on that.
    """

    cluster_id: str
    directories: tuple[BrokerDirectory, ...] = ()
    logs: tuple[BrokerLog, ...] = ()
    dumps: tuple[BrokerDump, ...] = ()
    history: MetadataHistory | None = None
    zookeeper: ZooKeeperHistory | None = None
    acknowledgements: tuple[Acknowledgement, ...] = ()
    consumptions: tuple[Consumption, ...] = ()
    descriptions: tuple[TopicDescription | PartitionDescription, ...] = ()
    log_dirs: tuple[LogDirectorySize | LogDirectoryError, ...] = ()
    quorum: tuple[QuorumStatus | QuorumReplica, ...] = ()
    unread: Mapping[str, int] = field(default_factory=dict)
    all_producers: bool = False
    clocks_compare: bool = True
    unpacked: Unpacked | None = None


def evidence_of(collection: Collection, cluster_id: str, files: set[str]) -> ClusterEvidence:
    """The cluster's own evidence. files: paths that name no cluster and are this one's."""
    return ClusterEvidence(
        cluster_id,
        directories=tuple(d for d in collection.directories if d.cluster_id == cluster_id),
        logs=tuple(log for log in collection.logs if log.cluster_id == cluster_id),
        dumps=tuple(d for d in collection.dumps if d.cluster_id == cluster_id),
        history=collection.histories.get(cluster_id),
        zookeeper=collection.zookeeper.get(cluster_id),
        acknowledgements=told_once(a for a in collection.acknowledgements if a.path in files),
        consumptions=told_once(c for c in collection.consumptions if c.path in files),
        descriptions=tuple(d for d in collection.descriptions if d.path in files),
        log_dirs=tuple(listed for listed in collection.log_dirs if listed.path in files),
        quorum=tuple(q for q in collection.quorum if _is_of(q, cluster_id, files)),
        unread={
            "acknowledgements": sum(u.path in files for u in collection.unread_acknowledgements),
            "consumptions": sum(u.path in files for u in collection.unread_consumptions),
        },
        all_producers=collection.all_producers,
        unpacked=collection.unpacked,
    )


def _is_of(quorum: QuorumStatus | QuorumReplica, cluster_id: str, files: set[str]) -> bool:
    if isinstance(quorum, QuorumStatus) and quorum.cluster_id:
        return quorum.cluster_id == cluster_id
    return quorum.path in files


def with_logs_in_utc(
    cluster: ClusterEvidence, acknowledgements: list[Acknowledgement], *, zone_is_told: bool = False
) -> tuple[ClusterEvidence, list[str]]:
    """The evidence with its logs' times in UTC, as far as the rest of it tells, and notes.

    acknowledgements: all that are at hand. zone_is_told: the user said in which zone the logs are,
    so that only clocks that were set are left.
    """
    notes: list[str] = []
    set_back = clocks_set_back(cluster.logs) if zone_is_told else {}
    if zone_is_told and not set_back:
        return cluster, notes
    clocks = Clocks(cluster.directories, cluster.history, cluster.zookeeper, acknowledgements)
    if zone_is_told:
        logs = tuple(clocks.in_order(list(cluster.logs), set_back, notes))
    else:
        logs = tuple(clocks.in_utc(cluster.logs, notes))
    doubted = [log for log in logs if not zone_is_told or log.broker in set_back]
    unknown = [log for log in doubted if log.ahead is None and log.first_at is not None]
    others = cluster.directories or cluster.acknowledgements or cluster.consumptions
    if unknown and others:
        notes.append(_of_no_zone(unknown))
    return replace(cluster, logs=logs, clocks_compare=not unknown), notes


def _of_no_zone(logs: list[BrokerLog]) -> str:
    others = f" (and {len(logs) - 1} more)" if len(logs) > 1 else ""
    return (
        f"{logs[0].path}{others}: its time stamps name no zone, or its clock was "
        "set back, and nothing shows what time it was. They are compared with no "
        "other clock; --time-zone says the zone"
    )
