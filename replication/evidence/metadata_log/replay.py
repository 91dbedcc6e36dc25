"""Replays the parts of a metadata log into the history of its partitions, topics and brokers.

The log is one totally ordered history with one clock, the active controller's.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from replication.evidence.metadata_log import log_parts as parts
from replication.evidence.metadata_log import partition_records
from replication.evidence.metadata_log.broker_records import Standing, standing_after
from replication.evidence.metadata_log.history import (
    BrokerChange,
    ConfigChange,
    ControllerChange,
    MetadataHistory,
    PartitionChange,
    PartitionRegistration,
    TopicLifetime,
)
from replication.evidence.metadata_log.leader_epochs import Run, epoch_starts
from replication.evidence.metadata_log.log_parts import Part, PlacedRecord
from replication.evidence.metadata_log.setting_records import (
    removed_with_topic,
    setting,
    unclean_allowed,
)
from replication.evidence.metadata_log.transactions import OpenTransaction, due
from replication.evidence.unreadable import Unreadable


@dataclass(slots=True)
class Cluster:
    """The cluster at one metadata offset, and the changes that led there.

    `from_snapshot`: what is told now was so before, and nobody knows since when.
    """

    from_snapshot: bool = False
    features: dict[str, int] = field(default_factory=dict)
    topics: dict[str, TopicLifetime] = field(default_factory=dict)
    topic_configs: dict[str, list[ConfigChange]] = field(default_factory=dict)
    cluster_configs: dict[str, list[ConfigChange]] = field(default_factory=dict)
    partitions: dict[str, dict[int, PartitionRegistration]] = field(default_factory=dict)
    standing: dict[int, Standing] = field(default_factory=dict)
    voters: tuple[int, ...] = ()
    changes: list[PartitionChange] = field(default_factory=list)
    brokers: list[BrokerChange] = field(default_factory=list)
    # Partitions whose changes could not be applied: topic id, partition, the first one's offset.
    unapplied: dict[tuple[str, int], int] = field(default_factory=dict)

    def topic_name(self, topic_id: str) -> str | None:
        topic = self.topics.get(topic_id)
        return topic.name if topic else None


def history_of(
    path: str,
    told: Iterable[Part],
    properties: Mapping[str, str] | None = None,
    voters: tuple[int, ...] = (),
    snapshot_ends: Iterable[int] = (),
) -> MetadataHistory:
    """The history that the parts of a log tell.

    properties: of `meta.properties`; voters: those that a static quorum's file names;
    snapshot_ends: of all snapshots in the copy, which are only made of what is committed.
    """
    replay = _Replay(path, Cluster(voters=voters))
    for part in told:
        replay.take(part)
    return replay.history(properties or {}, max(snapshot_ends, default=0))


@dataclass(slots=True)
class _Replay:
    """Takes part after part: where in the log it is, and what that makes of the cluster."""

    path: str
    cluster: Cluster
    unreadable: list[Unreadable] = field(default_factory=list)
    first_offset: int = 0
    end_offset: int = 0
    damaged_from: int | None = None
    unknown_since: int | None = None
    controllers: list[ControllerChange] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    run_broken: bool = True
    transaction: OpenTransaction | None = None

    def take(self, part: Part) -> None:
        match part:
            case parts.Begins(at):
                self.first_offset = self.end_offset = at
            case parts.Snapshot():
                self._snapshot(part)
            case parts.Records():
                self._records(part)
            case parts.Lost():
                self._lost(part)
            case _:
                self.unreadable.append(part)

    def _snapshot(self, part: parts.Snapshot) -> None:
        """Replaces the state; topics that the snapshot no longer has were removed before it."""
        self.transaction = self.unknown_since = None
        start_over(self.cluster, part.records)
        self.cluster.from_snapshot = True
        for entry in part.records:
            self._apply(entry)
        self.cluster.from_snapshot = False
        if not self.cluster.changes or self.end_offset == 0:
            self.first_offset = part.end_offset
        self.end_offset = part.end_offset

    def _records(self, part: parts.Records) -> None:
        new_leader = any(entry.record.name == "LeaderChange" for entry in part.records)
        if self.run_broken or new_leader:
            self.runs.append(Run(part.base_offset, Counter()))
            self.run_broken = False
        self.runs[-1].said[part.leader_epoch] += 1
        for entry in part.records:
            if entry.offset >= self.end_offset:
                is_control = entry.record.name in _CONTROL
                self.transaction, now = due(self.transaction, entry, is_control)
                for one in now:
                    self._apply(one)
        self.end_offset = max(self.end_offset, part.end_offset)

    def _lost(self, part: parts.Lost) -> None:
        if self.damaged_from is None:
            self.damaged_from = self.end_offset
        if part.partition is not None:
            topic_id, partition = part.partition
            self.cluster.partitions.get(topic_id, {}).pop(partition, None)
            return
        if self.unknown_since is None:
            self.unknown_since = self.end_offset
        self.cluster.partitions.clear()
        self.transaction = None
        self.run_broken = True
        self.end_offset = max(self.end_offset, part.resume_at)

    def _apply(self, entry: PlacedRecord) -> None:
        if entry.record.name == "LeaderChange":
            leader_epoch = max(self.runs[-1].said) if self.runs else 0
            leader = entry.record.values["leader_id"]
            self.controllers.append(ControllerChange(leader, leader_epoch, entry.at, entry.offset))
        known = len(self.cluster.unapplied)
        apply(self.cluster, entry)
        if len(self.cluster.unapplied) > known:
            self.unreadable.append(self._unapplied(*list(self.cluster.unapplied.items())[-1]))

    def _unapplied(self, partition: tuple[str, int], offset: int) -> Unreadable:
        topic_id, number = partition
        topic = self.cluster.topic_name(topic_id) or topic_id
        reason = (
            f"changes of partition {number} of topic {topic}"
            f" from metadata offset {offset} on cannot be applied: its state before is not known"
        )
        return Unreadable(self.path, "file", reason)

    def _unknown_since(self) -> int | None:
        begun = None if self.transaction is None else self.transaction.start
        return min((o for o in (self.unknown_since, begun) if o is not None), default=None)

    def history(self, properties: Mapping[str, str], newest_snapshot: int) -> MetadataHistory:
        cluster = self.cluster
        if self.transaction is not None:
            reason = (
                f"the metadata transaction begun at offset {self.transaction.start} has not ended"
                f" in this copy: none of its records counts ({len(self.transaction.held)})"
            )
            self.unreadable.append(Unreadable(self.path, "file", reason))
        starts, doubts = epoch_starts(self.runs)
        self.unreadable.extend(Unreadable(self.path, "file", doubt) for doubt in doubts)
        node = properties.get("node.id", "").strip()
        # A lone controller commits what it appends. A snapshot is only made of what is committed.
        committed = self.end_offset if len(cluster.voters) == 1 else newest_snapshot or None
        return MetadataHistory(
            path=self.path,
            features=cluster.features,
            topics=cluster.topics,
            topic_configs={name: tuple(log) for name, log in cluster.topic_configs.items()},
            cluster_configs={name: tuple(log) for name, log in cluster.cluster_configs.items()},
            changes=tuple(cluster.changes),
            brokers=tuple(cluster.brokers),
            controllers=tuple(self.controllers),
            first_offset=self.first_offset,
            end_offset=self.end_offset,
            committed_end_offset=committed,
            epoch_starts=starts,
            cluster_id=properties.get("cluster.id", "").strip() or None,
            node_id=int(node) if re.fullmatch("[0-9]{1,9}", node) else None,
            voters=cluster.voters,
            damaged_from=self.damaged_from,
            unknown_since=self._unknown_since(),
            unreadable=tuple(self.unreadable),
        )


def start_over(cluster: Cluster, snapshot: Iterable[PlacedRecord]) -> None:
    """Forgets the state, not the changes: a snapshot of these records takes its place."""
    cluster.partitions.clear()
    cluster.standing.clear()
    cluster.features.clear()
    topics = [entry for entry in snapshot if entry.record.name == "TopicRecord"]
    alive = {entry.record.values["topic_id"] for entry in topics}
    at = max((entry.at for entry in snapshot), default=0)
    for topic_id, topic in cluster.topics.items():
        if topic.deleted_at is None and topic_id not in alive and at:
            cluster.topics[topic_id] = topic._replace(deleted_at=at)


def apply(cluster: Cluster, entry: PlacedRecord) -> None:
    """Makes the cluster what it is after one record."""
    step = _STEPS.get(entry.record.name)
    if step is not None:
        step(cluster, entry)


def _topic(cluster: Cluster, entry: PlacedRecord) -> None:
    topic_id, name = entry.record.values["topic_id"], entry.record.values["name"]
    known = cluster.topics.get(topic_id)
    created = known.created_at if known else None if cluster.from_snapshot else entry.at
    cluster.topics[topic_id] = TopicLifetime(name, created, None)


def _remove_topic(cluster: Cluster, entry: PlacedRecord) -> None:
    topic_id = entry.record.values["topic_id"]
    cluster.partitions.pop(topic_id, None)
    topic = cluster.topics.get(topic_id)
    if topic is not None:
        cluster.topics[topic_id] = topic._replace(deleted_at=entry.at)
        settings = cluster.topic_configs.get(topic.name, [])
        settings.extend(removed_with_topic(settings, entry.at, entry.offset))


def _config(cluster: Cluster, entry: PlacedRecord) -> None:
    said = setting(entry)
    if said is not None:
        configs = cluster.topic_configs if said.of_topic else cluster.cluster_configs
        configs.setdefault(said.name, []).append(said.change)


def _feature(cluster: Cluster, entry: PlacedRecord) -> None:
    cluster.features[entry.record.values["name"]] = entry.record.values["feature_level"]


def _partition(cluster: Cluster, entry: PlacedRecord) -> None:
    values = entry.record.values
    after = partition_records.registered(values, cluster.topic_name(values["topic_id"]))
    elected = after.leader is not None and not cluster.from_snapshot
    _changed(cluster, None, after, entry, "initial" if elected else None)


def _partition_change(cluster: Cluster, entry: PlacedRecord) -> None:
    values = entry.record.values
    topic_id, partition = values["topic_id"], values["partition"]
    before = cluster.partitions.get(topic_id, {}).get(partition)
    if before is None:
        cluster.unapplied.setdefault((topic_id, partition), entry.offset)
        return
    after = partition_records.changed(before, values)
    election = None
    if partition_records.names_leader(values) and after.leader is not None:
        election = partition_records.how_elected(
            before,
            after,
            None if before.leader is None else cluster.standing.get(before.leader),
            unclean_allowed(
                cluster.topic_configs.get(before.topic or "", ()),
                cluster.cluster_configs.get("", ()),
            ),
        )
    _changed(cluster, before, after, entry, election)


def _clear_elr(cluster: Cluster, entry: PlacedRecord) -> None:
    """Kafka replays it as a change of every partition that has something to clear."""
    for partitions in cluster.partitions.values():
        for before in list(partitions.values()):
            after = partition_records.without_elr(before, entry.record.values["topic_name"])
            if after is not None:
                _changed(cluster, before, after, entry, None)


def _changed(
    cluster: Cluster,
    before: PartitionRegistration | None,
    after: PartitionRegistration,
    entry: PlacedRecord,
    election: str | None,
) -> None:
    cluster.partitions.setdefault(after.topic_id, {})[after.partition] = after
    cluster.unapplied.pop((after.topic_id, after.partition), None)
    cluster.changes.append(PartitionChange(before, after, entry.offset, entry.at, election))


def _broker(cluster: Cluster, entry: PlacedRecord) -> None:
    broker = entry.record.values["broker_id"]
    standing, changes = standing_after(cluster.standing.get(broker), entry)
    cluster.brokers.extend(changes)
    if standing is None:
        cluster.standing.pop(broker, None)
    else:
        cluster.standing[broker] = standing


def _voters(cluster: Cluster, entry: PlacedRecord) -> None:
    voters = tuple(sorted(one["voter_id"] for one in entry.record.values["voters"]))
    cluster.voters = voters or cluster.voters


_CONTROL = frozenset(("LeaderChange", "KRaftVoters"))
_STEPS: dict[str, Callable[[Cluster, PlacedRecord], None]] = {
    "TopicRecord": _topic,
    "RemoveTopicRecord": _remove_topic,
    "ConfigRecord": _config,
    "FeatureLevelRecord": _feature,
    "PartitionRecord": _partition,
    "PartitionChangeRecord": _partition_change,
    "ClearElrRecord": _clear_elr,
    "RegisterBrokerRecord": _broker,
    "UnregisterBrokerRecord": _broker,
    "FenceBrokerRecord": _broker,
    "UnfenceBrokerRecord": _broker,
    "BrokerRegistrationChangeRecord": _broker,
    "LeaderChange": _voters,
    "KRaftVoters": _voters,
}
