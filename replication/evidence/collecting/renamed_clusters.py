"""Cluster ids that are one cluster's: a topic id is made once, and belongs to one cluster.

A cluster's id changes where ZooKeeper is emptied and the logs stay on the disks, or where somebody
edits meta.properties: the brokers go on with the topics that they have.
"""

from collections.abc import Iterable

from replication.evidence.collecting.broker_text_log import BrokerLog
from replication.evidence.log_directories.log_directory import LogDirectory

# KRaft's own topic has one id everywhere.
_FIXED = frozenset(("__cluster_metadata",))


def renamed_clusters(
    logs: Iterable[BrokerLog], directories: Iterable[LogDirectory], notes: list[str]
) -> dict[str, str]:
    """By cluster id the one that is used instead: that of the newest lines. notes: gets why."""
    topics: dict[tuple[str, str], set[str]] = {}
    newest: dict[str, int] = {}
    for log in logs:
        if log.cluster_id:
            newest[log.cluster_id] = max(log.last_at or 0, newest.get(log.cluster_id, 0))
            for _, topic, topic_id in log.topic_ids:
                topics.setdefault((topic, topic_id), set()).add(log.cluster_id)
    for directory in directories:
        cluster = directory.meta.cluster_id if directory.meta else None
        for p in directory.partitions if cluster else ():
            if p.topic_id and cluster:
                topics.setdefault((p.topic, p.topic_id), set()).add(cluster)
    result: dict[str, str] = {}
    for (topic, topic_id), clusters in sorted(topics.items()):
        named = {result.get(cluster, cluster) for cluster in clusters}
        if topic in _FIXED or len(named) < 2:
            continue
        one = max(sorted(named), key=lambda cluster: newest.get(cluster, 0))
        for cluster in [*result, *named]:
            if result.get(cluster, cluster) in named and cluster != one:
                result[cluster] = one
        notes.append(
            f"clusters {', '.join(sorted(named))} both have topic {topic} with id {topic_id}: they "
            f"are one cluster, whose id changed, and are judged as {one}"
        )
    return result
