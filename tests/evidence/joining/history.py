"""Small copies of the metadata log, made by hand."""

from dataclasses import replace
from typing import Any

from replication.evidence.metadata_log.history import (
    MetadataHistory,
    PartitionChange,
    PartitionRegistration,
)

EMPTY = MetadataHistory(
    path="__cluster_metadata-0", features={}, topics={}, topic_configs={}, cluster_configs={},
    changes=(), brokers=(), controllers=(), first_offset=0, end_offset=10,
    committed_end_offset=None, epoch_starts=(), cluster_id="c", node_id=None, voters=(),
    damaged_from=None, unreadable=(),
)  # fmt: skip


def history(**more: Any) -> MetadataHistory:
    """A copy that ends before offset 10 and holds nothing but what is said."""
    return replace(EMPTY, **more)


def created(topic_id: str | None, topic: str | None, at: int = 0) -> PartitionChange:
    """Partition 0 of a topic, led by broker 1."""
    after = PartitionRegistration(topic_id or "", topic, 0, 1, 0, 0, (1, 2), (1, 2))
    return PartitionChange(None, after, at, at, "initial")
