"""What a copy of the metadata log tells of a cluster, as values: its partitions, topics, brokers.

`leader_epoch` rises exactly when a change carries the leader field, `partition_epoch` with every
change (KIP-631, KIP-966).
"""

from dataclasses import dataclass
from typing import NamedTuple

from replication.evidence.unreadable import Unreadable


@dataclass(frozen=True, slots=True)
class PartitionRegistration:
    """What the controller had decided about one partition at one moment.

    `topic_id` is Kafka's 22 characters of base64. `leader` is None while there is none.
    `recovering`: the last election was unclean and the leader has not reported since (KIP-704).
    """

    topic_id: str
    topic: str | None
    partition: int
    leader: int | None
    leader_epoch: int
    partition_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()
    recovering: bool = False


@dataclass(frozen=True, slots=True)
class PartitionChange:
    """One record about one partition. `before` is None for a new one and for one from a snapshot.

    `at` is the controller's clock, ms. `election` is None when no leader was elected, else one of
    initial, clean, preferred, unclean, eligible_leader_replica, last_known_leader, same_leader.
    """

    before: PartitionRegistration | None
    after: PartitionRegistration
    metadata_offset: int
    at: int
    election: str | None


@dataclass(frozen=True, slots=True)
class BrokerChange:
    """`kind`: registered, fenced, unfenced, controlled_shutdown or unregistered.

    A broker that registers is fenced until it is unfenced. `incarnation` is the process, known from
    its registration; `log_dirs` are directory ids, given by a registration of 3.7 or later.
    `metadata_version`: the newest level that its release knows, given by one of 3.3 or later.
    """

    broker: int
    kind: str
    broker_epoch: int
    incarnation: str | None
    at: int
    metadata_offset: int
    log_dirs: tuple[str, ...] = ()
    metadata_version: int | None = None


class TopicLifetime(NamedTuple):
    """Times are the controller's, ms; `created_at` is None where only a snapshot tells of it."""

    name: str
    created_at: int | None
    deleted_at: int | None


class ConfigChange(NamedTuple):
    """A setting took `value` from `metadata_offset` on; None: it was removed (or its topic was)."""

    at: int
    metadata_offset: int
    key: str
    value: str | None


class ControllerChange(NamedTuple):
    """A node became the active controller with this epoch of the metadata log."""

    controller: int
    leader_epoch: int
    at: int
    metadata_offset: int


@dataclass(frozen=True, slots=True)
class MetadataHistory:
    """What one copy of the metadata log tells, in its order.

    `first_offset` above 0 means that earlier history was replaced by a snapshot. `end_offset` is
    exclusive. `committed_end_offset` is None where a copy alone cannot tell: a tail may be one that
    the quorum never accepted. `epoch_starts` are (leader epoch, first offset) of the log itself, by
    which copies are compared. `damaged_from` is the first metadata offset from which something of
    the partitions is missing; None where the copy is whole. `unknown_since`: the history is known
    up to this metadata offset, and more was written from there on; None where it is known to the
    end. `cluster_configs` is keyed by broker id, "" for all brokers.
    """

    path: str
    features: dict[str, int]
    topics: dict[str, TopicLifetime]
    topic_configs: dict[str, tuple[ConfigChange, ...]]
    cluster_configs: dict[str, tuple[ConfigChange, ...]]
    changes: tuple[PartitionChange, ...]
    brokers: tuple[BrokerChange, ...]
    controllers: tuple[ControllerChange, ...]
    first_offset: int
    end_offset: int
    committed_end_offset: int | None
    epoch_starts: tuple[tuple[int, int], ...]
    cluster_id: str | None
    node_id: int | None
    voters: tuple[int, ...]
    damaged_from: int | None
    unreadable: tuple[Unreadable, ...]
    unknown_since: int | None = None

    @property
    def known_end_offset(self) -> int:
        """Up to where the history of every partition is known, exclusive."""
        return self.end_offset if self.damaged_from is None else self.damaged_from
