"""The text that names one life of a partition within one incident: made, and taken apart.

`cluster_id/topic/topic_id/partition`, and `@incident` behind it where the incident has a name: so
incidents of one cluster are folded, judged and kept beside each other, none in another's place.
"""

from typing import NamedTuple

INCIDENT_MARK = "@"
# SQL over the columns of replica_events.
TOPIC_PARTITION_ID = (
    "concat(concat_ws('/', cluster_id, topic, topic_id, CAST(partition AS STRING)), "
    f"coalesce(concat('{INCIDENT_MARK}', nullif(incident, '')), ''))"
)
# SQL over topic_partition_id.
PARTS = {
    "cluster_id": "nullif(array_join(slice(split(topic_partition_id, '/'), 1, "
    "size(split(topic_partition_id, '/')) - 3), '/'), '')",
    "topic": "element_at(split(topic_partition_id, '/'), -3)",
    "topic_id": "nullif(element_at(split(topic_partition_id, '/'), -2), '')",
    "partition": "CAST(substring_index(element_at(split(topic_partition_id, '/'), -1), "
    f"'{INCIDENT_MARK}', 1) AS BIGINT)",
    "incident": "nullif(regexp_extract(topic_partition_id, "
    f"'/[0-9]+{INCIDENT_MARK}([A-Za-z0-9._-]+)$', 1), '')",
}


class Parts(NamedTuple):
    """What a topic_partition_id names; "" where that is not known or has no name."""

    cluster_id: str
    topic: str
    topic_id: str
    partition: int
    incident: str

    @property
    def identity(self) -> tuple[str, str, str, int]:
        """(cluster_id, topic, topic_id, partition)."""
        return self[:4]


def parts_of(topic_partition_id: str) -> Parts:
    """A topic_partition_id taken apart."""
    cluster_id, topic, topic_id, last = topic_partition_id.rsplit("/", 3)
    partition, _, incident = last.partition(INCIDENT_MARK)
    return Parts(cluster_id, topic, topic_id, int(partition), incident)


def topic_partition_id(
    cluster_id: str, topic: str, topic_id: str, partition: int, incident: str
) -> str:
    """The text that names these."""
    mark = f"{INCIDENT_MARK}{incident}" if incident else ""
    return f"{cluster_id}/{topic}/{topic_id}/{partition}{mark}"
