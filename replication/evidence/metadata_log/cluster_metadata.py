"""Replays a KRaft cluster's metadata log into the history of its partitions, topics and brokers.

The log is one totally ordered history with one clock, the active controller's. Every broker and
controller keeps a copy of it in `__cluster_metadata-0`: segments, and snapshots that stand for the
records a copy no longer has. What a copy cannot tell (a broken batch, a missing segment) makes the
partitions unknown from there on until the next snapshot: better no state than a wrong one.

The replay follows Kafka's PartitionRegistration.merge: `leader_epoch` rises exactly when a change
carries the leader field, `partition_epoch` with every change (KIP-631, KIP-966).
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from replication.evidence.metadata_log import metadata_records as records
from replication.evidence.metadata_log.election_kind import Before, election_kind
from replication.evidence.metadata_log.metadata_records import (
    MetadataBatch,
    MetadataRecord,
    MetadataRecordError,
)
from replication.evidence.opening import regular
from replication.evidence.unreadable import Unreadable

_NODE_ID = re.compile(r"[0-9]{1,9}")
_SEGMENT = re.compile(r"^(\d{20})\.log$")
_SNAPSHOT = re.compile(r"^(\d{20})-(\d{10})\.checkpoint$")
_TOPIC_RESOURCE, _BROKER_RESOURCE = 2, 4
_ELR_FEATURE = "eligible.leader.replicas.version"
_UNCLEAN = "unclean.leader.election.enable"


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
    directories: tuple[str, ...] = ()


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
    """

    broker: int
    kind: str
    broker_epoch: int
    incarnation: str | None
    at: int
    metadata_offset: int
    log_dirs: tuple[str, ...] = ()


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
    the partitions is missing; None where the copy is whole. `cluster_configs` is keyed by broker
    id, "" for all brokers.
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

    @property
    def known_end_offset(self) -> int:
        """Up to where the history of every partition is known, exclusive."""
        return self.end_offset if self.damaged_from is None else self.damaged_from


@dataclass(frozen=True, slots=True)
class PlacedRecord:
    """One decoded record with its metadata offset and the controller's clock, ms."""

    record: MetadataRecord
    offset: int
    at: int


_Opener = Callable[[], BinaryIO]


def read_cluster_metadata(directory: Path) -> MetadataHistory:
    """Replay a `__cluster_metadata-0` directory. What cannot be read is in `unreadable`."""
    files: dict[str, _Opener] = {}
    unreadable: list[Unreadable] = []
    try:
        for entry in sorted(directory.iterdir()):
            if entry.is_file():
                files[entry.name] = lambda entry=entry: regular(entry).open("rb")  # type: ignore[misc]
    except OSError as error:
        unreadable.append(_file_error(str(directory), error))
    properties = directory.parent / "meta.properties"
    if properties.is_file():
        files["meta.properties"] = lambda: regular(properties).open("rb")
    return _history(str(directory), files, unreadable)


def read_metadata_bytes(path: str, files: Mapping[str, bytes]) -> MetadataHistory:
    """The same from the files' contents by name; `meta.properties` may be among them."""
    openers: dict[str, _Opener] = {
        name: lambda content=content: BytesIO(content)  # type: ignore[misc]
        for name, content in files.items()
    }
    return _history(path, openers, [])


def replay_records(
    path: str, placed: Iterable[tuple[PlacedRecord, int] | Unreadable]
) -> MetadataHistory:
    """The same from records somebody else decoded, each with its leader epoch, in log order.

    An Unreadable among them stands for records that are missing.
    """
    replay = _Replay(path, [])
    for item in placed:
        if isinstance(item, Unreadable):
            replay.unreadable.append(item)
            replay.forget_partitions()
        else:
            replay.read_record(*item)
    return replay.history({}, [])


def _file_error(path: str, error: OSError) -> Unreadable:
    return Unreadable(path, "file", f"cannot be opened: {error.strerror or error}")


def _small_file(files: Mapping[str, _Opener], name: str) -> str:
    try:
        with files[name]() as file:
            return file.read(1 << 20).decode("utf-8", "replace")
    except (KeyError, OSError):
        return ""


def _history(
    path: str, files: Mapping[str, _Opener], unreadable: list[Unreadable]
) -> MetadataHistory:
    segments = sorted((int(m[1]), m[0]) for m in map(_SEGMENT.match, files) if m)
    snapshots = sorted((int(m[1]), m[0]) for m in map(_SNAPSHOT.match, files) if m)
    replay = _Replay(path, unreadable)
    replay.voters = _quorum_state_voters(_small_file(files, "quorum-state"))
    base = segments[0][0] if segments else 0
    usable = [one for one in snapshots if one[0] >= base] or snapshots[-1:]
    if usable and (base > 0 or not segments or usable[0][0] == 0):
        replay.load_snapshot(*usable[0], files[usable[0][1]])
    elif base > 0:
        reason = f"starts at metadata offset {base}, and no snapshot holds what was before"
        unreadable.append(Unreadable(path, "file", reason))
        replay.first_offset = replay.expected = base
    for number, (segment_base, name) in enumerate(segments):
        if number + 1 < len(segments) and segments[number + 1][0] <= replay.expected:
            continue  # wholly below the snapshot that was loaded
        replay.start_segment(segment_base, name, snapshots, files)
        replay.read_segment(name, files[name], snapshots, files)
    if not segments and not snapshots:
        unreadable.append(Unreadable(path, "file", "holds no segment of a metadata log"))
    properties = dict(
        line.split("=", 1)
        for line in _small_file(files, "meta.properties").splitlines()
        if "=" in line
    )
    return replay.history(properties, [end for end, _ in snapshots])


def _quorum_state_voters(text: str) -> tuple[int, ...]:
    """The voters that a static quorum's `quorum-state` names; () for a dynamic quorum's."""
    try:
        voters = json.loads(text)["currentVoters"]
        return tuple(sorted(int(voter["voterId"]) for voter in voters))
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return ()


@dataclass(slots=True)
class _Broker:
    """The last known standing of one broker: decides whether an election was a preferred one."""

    broker_epoch: int
    incarnation: str | None
    fenced: bool
    in_controlled_shutdown: bool


@dataclass(slots=True)
class _Replay:
    """The state of the cluster at one metadata offset, and what has been told so far."""

    path: str
    unreadable: list[Unreadable]
    first_offset: int = 0
    expected: int = 0
    voters: tuple[int, ...] = ()
    features: dict[str, int] = field(default_factory=dict)
    topics: dict[str, TopicLifetime] = field(default_factory=dict)
    topic_configs: dict[str, list[ConfigChange]] = field(default_factory=dict)
    cluster_configs: dict[str, list[ConfigChange]] = field(default_factory=dict)
    partitions: dict[str, dict[int, PartitionRegistration]] = field(default_factory=dict)
    standing: dict[int, _Broker] = field(default_factory=dict)
    changes: list[PartitionChange] = field(default_factory=list)
    brokers: list[BrokerChange] = field(default_factory=list)
    controllers: list[ControllerChange] = field(default_factory=list)
    epoch_runs: list[tuple[int, Counter[int]]] = field(default_factory=list)
    transaction: list[PlacedRecord] | None = None
    transaction_start: int = 0
    from_snapshot: bool = False
    forgotten: bool = False
    run_broken: bool = False
    damaged_from: int | None = None
    reported_unknown: set[tuple[str, int]] = field(default_factory=set)

    # -- files -----------------------------------------------------------------------------------

    def load_snapshot(self, end_offset: int, name: str, opener: _Opener) -> bool:
        """Replace the state by a snapshot's, which holds every record below `end_offset`.

        An incomplete snapshot (no footer) is not used: it would be a smaller cluster, not an older
        one.
        """
        path = f"{self.path}/{name}"
        entries: list[PlacedRecord] = []
        broken: list[Unreadable] = []
        complete, at = False, 0
        for entry in self._entries(path, opener, broken):
            if entry.record.name == "SnapshotHeader":
                at = max(0, int(entry.record.values["last_contained_log_timestamp"]))
            complete = complete or entry.record.name == "SnapshotFooter"
            entries.append(PlacedRecord(entry.record, max(end_offset - 1, 0), at))
        if broken or not complete:
            self.unreadable.extend(broken)
            if not complete:
                reason = "this snapshot has no footer: it is incomplete and was not used"
                self.unreadable.append(Unreadable(path, "file", reason))
            return False
        self.partitions.clear()
        self.transaction = None
        self.standing.clear()
        self.features.clear()
        self.from_snapshot = True
        alive = {e.record.values["topic_id"] for e in entries if e.record.name == "TopicRecord"}
        for topic_id, topic in self.topics.items():
            if topic.deleted_at is None and topic_id not in alive and at:
                self.topics[topic_id] = topic._replace(deleted_at=at)
        for entry in entries:
            self._apply(entry)
        self.from_snapshot = self.forgotten = False
        if not self.changes or self.expected == 0:
            self.first_offset = end_offset
        self.expected = end_offset
        return True

    def _entries(
        self, path: str, opener: _Opener, broken: list[Unreadable]
    ) -> Iterator[PlacedRecord]:
        """Every record of a snapshot, control records included; what is broken goes to `broken`."""
        try:
            with opener() as file:
                for batch in records.metadata_batches(file, path):
                    if isinstance(batch, Unreadable):
                        broken.append(batch)
                    else:
                        yield from self._decoded(batch, path, broken)
        except OSError as error:
            broken.append(_file_error(path, error))

    def start_segment(
        self,
        base: int,
        name: str,
        snapshots: list[tuple[int, str]],
        files: Mapping[str, _Opener],
    ) -> None:
        """Bridge a gap before this segment with the first snapshot that covers it, or forget."""
        if base <= self.expected:
            return
        missing = f"metadata offsets {self.expected} to {base - 1} are missing"
        self._damaged()
        for end_offset, snapshot in snapshots:
            if end_offset >= base and self.load_snapshot(end_offset, snapshot, files[snapshot]):
                reason = f"{missing}; continued from the snapshot at {end_offset}"
                self.unreadable.append(Unreadable(f"{self.path}/{name}", "file", reason))
                return
        reason = f"{missing}: the partitions are unknown from there on"
        self.unreadable.append(Unreadable(f"{self.path}/{name}", "file", reason))
        self.forget_partitions()
        self.expected = base

    def read_segment(
        self,
        name: str,
        opener: _Opener,
        snapshots: list[tuple[int, str]],
        files: Mapping[str, _Opener],
    ) -> None:
        """Apply the records of one segment that are not yet contained in the state."""
        path = f"{self.path}/{name}"
        try:
            with opener() as file:
                for batch in records.metadata_batches(file, path):
                    if isinstance(batch, Unreadable):
                        self.unreadable.append(batch)
                        self.forget_partitions()
                        continue
                    if self.forgotten:
                        self._recover(batch, snapshots, files)
                    self._read_batch(batch, path)
        except OSError as error:
            self.unreadable.append(_file_error(path, error))
            self.forget_partitions()

    def _recover(
        self,
        batch: MetadataBatch,
        snapshots: list[tuple[int, str]],
        files: Mapping[str, _Opener],
    ) -> None:
        """After a broken place: take the state from a snapshot as soon as the log reaches one."""
        for end_offset, snapshot in snapshots:
            if self.expected < end_offset == batch.base_offset:
                self.load_snapshot(end_offset, snapshot, files[snapshot])
                return

    def _read_batch(self, batch: MetadataBatch, path: str) -> None:
        if batch.end_offset <= self.expected and not self.forgotten:
            return  # contained in the snapshot
        if batch.base_offset > self.expected and not self.forgotten:
            reason = (
                f"metadata offset {batch.base_offset} where {self.expected} is due: the partitions"
                " are unknown from there on"
            )
            self.unreadable.append(Unreadable(path, f"byte {batch.position}", reason))
            self.forget_partitions()
        broken: list[Unreadable] = []
        if batch.payload == records.NO_OP_PAYLOAD and not batch.is_control:
            entries = []
        else:
            entries = list(self._decoded(batch, path, broken))
        self.unreadable.extend(broken)
        if (
            not self.epoch_runs
            or self.run_broken
            or any(entry.record.name == "LeaderChange" for entry in entries)
        ):
            self.epoch_runs.append((batch.base_offset, Counter()))
            self.run_broken = False
        self.epoch_runs[-1][1][batch.leader_epoch] += 1
        for entry in entries:
            if entry.offset >= self.expected:
                self._apply_in_transaction(entry)
        self.expected = max(self.expected, batch.end_offset)

    def read_record(self, entry: PlacedRecord, leader_epoch: int) -> None:
        """Apply one record of a log that is given record by record."""
        if not self.epoch_runs:
            self.first_offset = self.expected = entry.offset
        if entry.offset < self.expected:
            return
        if not self.epoch_runs or self.run_broken or entry.record.name == "LeaderChange":
            self.epoch_runs.append((entry.offset, Counter()))
            self.run_broken = False
        self.epoch_runs[-1][1][leader_epoch] += 1
        if entry.offset > self.expected and not self.forgotten:
            reason = f"metadata offsets {self.expected} to {entry.offset - 1} are missing"
            self.unreadable.append(Unreadable(self.path, "file", reason))
            self.forget_partitions()
        self._apply_in_transaction(entry)
        self.expected = entry.offset + 1

    def _decoded(
        self, batch: MetadataBatch, path: str, broken: list[Unreadable]
    ) -> Iterator[PlacedRecord]:
        where = f"byte {batch.position}"
        try:
            for delta, timestamp_delta, key, value in records.batch_records(
                batch.payload, batch.record_count
            ):
                offset = batch.base_offset + delta
                at = batch.base_timestamp + timestamp_delta
                try:
                    record = (
                        records.decode_control_record(key or b"", value)
                        if batch.is_control
                        else records.decode_record(value)
                    )
                except MetadataRecordError as error:
                    reason = f"the record at metadata offset {offset} was passed over: {error}"
                    broken.append(Unreadable(path, where, reason))
                    self._lose(value, batch.is_control)
                    continue
                if record is not None:
                    yield PlacedRecord(record, offset, at)
        except MetadataRecordError as error:
            broken.append(Unreadable(path, where, f"the batch's records end early: {error}"))
            self.forget_partitions()

    # -- what is no longer known -----------------------------------------------------------------

    def forget_partitions(self) -> None:
        """Drop every registration: records are missing that may have changed any of them."""
        self.partitions.clear()
        self.transaction = None
        self.forgotten = self.run_broken = True
        self._damaged()

    def _damaged(self) -> None:
        if self.damaged_from is None:
            self.damaged_from = self.expected

    def _lose(self, value: bytes, is_control: bool) -> None:
        """A record could not be decoded: the partition it speaks of is unknown from here on."""
        if is_control or records.record_api_key(value) not in (
            records.PARTITION,
            records.PARTITION_CHANGE,
        ):
            return
        self._damaged()
        which = records.partition_of(value)
        if which is None:
            self.forget_partitions()
        else:
            self.partitions.get(which[0], {}).pop(which[1], None)

    # -- records ---------------------------------------------------------------------------------

    def _apply_in_transaction(self, entry: PlacedRecord) -> None:
        """Metadata transactions (KIP-868): their records count when the transaction has ended."""
        name = entry.record.name
        if name == "BeginTransactionRecord":
            self.transaction, self.transaction_start = [], entry.offset
        elif name == "AbortTransactionRecord":
            self.transaction = None
        elif name == "EndTransactionRecord":
            held, self.transaction = self.transaction or [], None
            for one in held:
                self._apply(one)
        elif self.transaction is not None and name not in _CONTROL_HANDLERS:
            self.transaction.append(entry)
        else:
            self._apply(entry)

    def _apply(self, entry: PlacedRecord) -> None:
        name = entry.record.name
        handler = _HANDLERS.get(name) or _CONTROL_HANDLERS.get(name)
        if handler is not None:
            handler(self, entry)

    def _topic(self, entry: PlacedRecord) -> None:
        topic_id, name = entry.record.values["topic_id"], entry.record.values["name"]
        known = self.topics.get(topic_id)
        created = known.created_at if known else None if self.from_snapshot else entry.at
        self.topics[topic_id] = TopicLifetime(name, created, None)

    def _remove_topic(self, entry: PlacedRecord) -> None:
        topic_id = entry.record.values["topic_id"]
        self.partitions.pop(topic_id, None)
        topic = self.topics.get(topic_id)
        if topic is None:
            return
        self.topics[topic_id] = topic._replace(deleted_at=entry.at)
        history = self.topic_configs.get(topic.name, [])
        for key, value in _latest(history).items():
            if value is not None:
                history.append(ConfigChange(entry.at, entry.offset, key, None))

    def _config(self, entry: PlacedRecord) -> None:
        values = entry.record.values
        change = ConfigChange(entry.at, entry.offset, values["name"], values["value"])
        if values["resource_type"] == _TOPIC_RESOURCE:
            self.topic_configs.setdefault(values["resource_name"], []).append(change)
        elif values["resource_type"] == _BROKER_RESOURCE:
            self.cluster_configs.setdefault(values["resource_name"], []).append(change)

    def _feature(self, entry: PlacedRecord) -> None:
        self.features[entry.record.values["name"]] = entry.record.values["feature_level"]

    def _partition(self, entry: PlacedRecord) -> None:
        values = entry.record.values
        topic = self.topics.get(values["topic_id"])
        after = PartitionRegistration(
            topic_id=values["topic_id"],
            topic=topic.name if topic else None,
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
            directories=tuple(values.get("directories", ())),
        )
        elected = after.leader is not None and not self.from_snapshot
        self._changed(None, after, entry, "initial" if elected else None)

    def _partition_change(self, entry: PlacedRecord) -> None:
        values = entry.record.values
        topic_id, partition = values["topic_id"], values["partition"]
        before = self.partitions.get(topic_id, {}).get(partition)
        if before is None:
            self._report_unknown(topic_id, partition, entry.offset)
            return
        names_leader = values.get("leader", -2) != -2
        recovery = values.get("leader_recovery_state", -1)
        after = replace(
            before,
            leader=_absent_if_negative(values["leader"]) if names_leader else before.leader,
            leader_epoch=before.leader_epoch + names_leader,
            partition_epoch=before.partition_epoch + 1,
            isr=_or(values.get("isr"), before.isr),
            replicas=_or(values.get("replicas"), before.replicas),
            adding=_or(values.get("adding_replicas"), before.adding),
            removing=_or(values.get("removing_replicas"), before.removing),
            elr=_or(values.get("eligible_leader_replicas"), before.elr),
            last_known_elr=_or(values.get("last_known_elr"), before.last_known_elr),
            recovering=before.recovering if recovery == -1 else recovery == 1,
            directories=_or(values.get("directories"), before.directories),
        )
        elected = names_leader and after.leader is not None
        kind = self._election_kind(before, after) if elected else None
        self._changed(before, after, entry, kind)

    def _report_unknown(self, topic_id: str, partition: int, offset: int) -> None:
        if (topic_id, partition) in self.reported_unknown:
            return
        self.reported_unknown.add((topic_id, partition))
        topic = self.topics.get(topic_id)
        reason = (
            f"changes of partition {partition} of topic {topic.name if topic else topic_id} from"
            f" metadata offset {offset} on cannot be applied: its state before is not known"
        )
        self.unreadable.append(Unreadable(self.path, "file", reason))

    def _clear_elr(self, entry: PlacedRecord) -> None:
        """Kafka replays it as a change of every partition that has something to clear."""
        name = entry.record.values["topic_name"]
        for partitions in self.partitions.values():
            for before in list(partitions.values()):
                if (before.elr or before.last_known_elr) and name in ("", before.topic):
                    following = before.partition_epoch + 1
                    after = replace(before, elr=(), last_known_elr=(), partition_epoch=following)
                    self._changed(before, after, entry, None)

    def _changed(
        self,
        before: PartitionRegistration | None,
        after: PartitionRegistration,
        entry: PlacedRecord,
        election: str | None,
    ) -> None:
        self.partitions.setdefault(after.topic_id, {})[after.partition] = after
        self.reported_unknown.discard((after.topic_id, after.partition))
        self.changes.append(PartitionChange(before, after, entry.offset, entry.at, election))

    def _election_kind(self, before: PartitionRegistration, after: PartitionRegistration) -> str:
        """How the leader of `after` came to lead."""
        assert after.leader is not None
        return election_kind(
            after.leader,
            Before(before.leader, before.isr, before.elr, before.last_known_elr),
            marked_unclean=after.recovering and not before.recovering,
            is_preferred=self._is_preferred(before, after),
            unclean_allowed=self._unclean_allowed(before.topic),
        )

    def _is_preferred(self, before: PartitionRegistration, after: PartitionRegistration) -> bool:
        """The head of the assignment took over from a leader that could have gone on leading."""
        if after.leader != after.replicas[0] or before.leader not in after.isr:
            return False
        old = self.standing.get(before.leader) if before.leader is not None else None
        return old is None or not (old.fenced or old.in_controlled_shutdown)

    def _unclean_allowed(self, topic: str | None) -> bool:
        """By the dynamic settings; a controller's own file is not in the metadata log."""
        of_topic = _latest(self.topic_configs.get(topic or "", [])).get(_UNCLEAN)
        of_cluster = _latest(self.cluster_configs.get("", [])).get(_UNCLEAN)
        return (of_topic or of_cluster or "false").lower() == "true"

    # -- brokers and controllers -----------------------------------------------------------------

    def _register_broker(self, entry: PlacedRecord) -> None:
        values = entry.record.values
        broker = values["broker_id"]
        standing = _Broker(
            broker_epoch=values["broker_epoch"],
            incarnation=values["incarnation_id"],
            fenced=values["fenced"],
            in_controlled_shutdown=values.get("in_controlled_shutdown", False),
        )
        self.standing[broker] = standing
        self._broker_changed(broker, "registered", entry, tuple(values.get("log_dirs", ())))
        if not standing.fenced:
            self._broker_changed(broker, "unfenced", entry)
        if standing.in_controlled_shutdown:
            self._broker_changed(broker, "controlled_shutdown", entry)

    def _unregister_broker(self, entry: PlacedRecord) -> None:
        broker = entry.record.values["broker_id"]
        self._broker_changed(broker, "unregistered", entry)
        self.standing.pop(broker, None)

    def _fence_broker(self, entry: PlacedRecord) -> None:
        self._set_fenced(entry, entry.record.name == "FenceBrokerRecord")

    def _registration_change(self, entry: PlacedRecord) -> None:
        values = entry.record.values
        if values.get("fenced", 0) != 0:
            self._set_fenced(entry, values["fenced"] == 1)
        if values.get("in_controlled_shutdown", 0) == 1:
            broker = values["broker_id"]
            if broker in self.standing:
                self.standing[broker].in_controlled_shutdown = True
            self._broker_changed(broker, "controlled_shutdown", entry)

    def _set_fenced(self, entry: PlacedRecord, fenced: bool) -> None:
        broker = entry.record.values["broker_id"]
        if broker in self.standing:
            self.standing[broker].fenced = fenced
        self._broker_changed(broker, "fenced" if fenced else "unfenced", entry)

    def _broker_changed(
        self, broker: int, kind: str, entry: PlacedRecord, log_dirs: tuple[str, ...] = ()
    ) -> None:
        known = self.standing.get(broker)
        self.brokers.append(
            BrokerChange(
                broker=broker,
                kind=kind,
                broker_epoch=entry.record.values["broker_epoch"],
                incarnation=known.incarnation if known else None,
                at=entry.at,
                metadata_offset=entry.offset,
                log_dirs=log_dirs,
            )
        )

    def _leader_change(self, entry: PlacedRecord) -> None:
        leader_epoch = max(self.epoch_runs[-1][1]) if self.epoch_runs else 0
        leader = entry.record.values["leader_id"]
        self.controllers.append(ControllerChange(leader, leader_epoch, entry.at, entry.offset))
        self._set_voters(entry)

    def _set_voters(self, entry: PlacedRecord) -> None:
        voters = tuple(sorted(one["voter_id"] for one in entry.record.values["voters"]))
        self.voters = voters or self.voters

    # -- the answer ------------------------------------------------------------------------------

    def _epoch_starts(self) -> tuple[tuple[int, int], ...]:
        """(leader epoch, first offset), by what most batches since a LeaderChange say.

        The epoch of a batch stands outside its checksum, and one changed byte there would make a
        copy look newer than all others: so no single batch is believed.
        """
        starts: dict[int, int] = {}
        for start, seen in self.epoch_runs:
            leader_epoch = seen.most_common(1)[0][0]
            starts.setdefault(leader_epoch, start)
            if len(seen) > 1:
                others = ", ".join(str(one) for one in sorted(seen) if one != leader_epoch)
                reason = (
                    f"after metadata offset {start}, in leader epoch {leader_epoch}, batches carry"
                    f" leader epoch {others}: not believed"
                )
                self.unreadable.append(Unreadable(self.path, "file", reason))
        return tuple(sorted(starts.items(), key=lambda start: start[1]))

    def history(self, properties: Mapping[str, str], snapshots: list[int]) -> MetadataHistory:
        if self.transaction is not None:
            reason = (
                f"the metadata transaction begun at offset {self.transaction_start} has not ended"
                f" in this copy: its {len(self.transaction)} records do not count"
            )
            self.unreadable.append(Unreadable(self.path, "file", reason))
        epoch_starts = self._epoch_starts()
        node = properties.get("node.id", "").strip()
        # A lone controller commits what it appends. A snapshot is only made of what is committed.
        committed = self.expected if len(self.voters) == 1 else max(snapshots, default=0) or None
        return MetadataHistory(
            path=self.path,
            features=dict(self.features),
            topics=dict(self.topics),
            topic_configs={name: tuple(log) for name, log in self.topic_configs.items()},
            cluster_configs={name: tuple(log) for name, log in self.cluster_configs.items()},
            changes=tuple(self.changes),
            brokers=tuple(self.brokers),
            controllers=tuple(self.controllers),
            first_offset=self.first_offset,
            end_offset=self.expected,
            committed_end_offset=committed,
            epoch_starts=epoch_starts,
            cluster_id=properties.get("cluster.id", "").strip() or None,
            node_id=int(node) if _NODE_ID.fullmatch(node) else None,
            voters=self.voters,
            damaged_from=self.damaged_from,
            unreadable=tuple(self.unreadable),
        )


_HANDLERS: dict[str, Callable[[_Replay, PlacedRecord], None]] = {
    "TopicRecord": _Replay._topic,
    "RemoveTopicRecord": _Replay._remove_topic,
    "ConfigRecord": _Replay._config,
    "FeatureLevelRecord": _Replay._feature,
    "PartitionRecord": _Replay._partition,
    "PartitionChangeRecord": _Replay._partition_change,
    "ClearElrRecord": _Replay._clear_elr,
    "RegisterBrokerRecord": _Replay._register_broker,
    "UnregisterBrokerRecord": _Replay._unregister_broker,
    "FenceBrokerRecord": _Replay._fence_broker,
    "UnfenceBrokerRecord": _Replay._fence_broker,
    "BrokerRegistrationChangeRecord": _Replay._registration_change,
}
_CONTROL_HANDLERS: dict[str, Callable[[_Replay, PlacedRecord], None]] = {
    "LeaderChange": _Replay._leader_change,
    "KRaftVoters": _Replay._set_voters,
}


def _absent_if_negative(node: int) -> int | None:
    return node if node >= 0 else None


def _or(value: list[Any] | None, otherwise: tuple[Any, ...]) -> tuple[Any, ...]:
    return otherwise if value is None else tuple(value)


def _latest(history: Iterable[ConfigChange]) -> dict[str, str | None]:
    return {change.key: change.value for change in history}


def are_of_two_lives(a: MetadataHistory, b: MetadataHistory) -> bool:
    """Whether two copies under one cluster id are of different logs: formatted anew in between.

    Copies of one log share its records where both have it. These have something to tell of the same
    metadata offsets, and yet no broker's process, no topic and no election of a controller is in
    both.
    """
    first = max(a.first_offset, b.first_offset)
    end = min(a.known_end_offset, b.known_end_offset)
    if not all(any(first <= o < end for o in _told_offsets(copy)) for copy in (a, b)):
        return False
    return not any(mine & theirs for mine, theirs in zip(_known(a), _known(b), strict=True))


def _told_offsets(copy: MetadataHistory) -> Iterator[int]:
    yield from (change.metadata_offset for change in copy.controllers)
    yield from (change.metadata_offset for change in copy.brokers)
    yield from (change.metadata_offset for change in copy.changes)


def _known(copy: MetadataHistory) -> tuple[set[Any], set[Any], set[Any]]:
    """Topics, broker processes and controllers that no other log has."""
    processes = {(b.broker, b.incarnation) for b in copy.brokers if b.incarnation is not None}
    controllers = {(c.metadata_offset, c.controller, c.at) for c in copy.controllers}
    return set(copy.topics), processes, controllers


def longest_history(histories: Iterable[MetadataHistory]) -> MetadataHistory:
    """One history from several copies of one cluster's metadata log (at least one; ValueError).

    Copies are prefixes of one another except for tails that the quorum never accepted. Raft
    decides: two logs with the same leader epoch at an offset are equal up to it, and of two that
    differ the one with the higher last epoch counts, then the longer. A copy that is damaged counts
    up to its damage. The losing tails are reported in `unreadable`. Where the winner begins with a
    snapshot and another copy still has what was before, the two are joined.
    """
    copies = sorted(histories, key=lambda copy: copy.path)
    if not copies:
        raise ValueError("no copy of the metadata log was given")
    best = max(copies, key=_up_to_dateness)
    unreadable = [one for copy in copies for one in copy.unreadable]
    agreeing = [best]
    for copy in copies:
        if copy is best:
            continue
        offset = _first_difference(best, copy)
        if offset is None:
            agreeing.append(copy)
            continue
        reason = (
            f"from metadata offset {offset} on this copy differs from {best.path}, which the quorum"
            " went on with: its own records from there on do not count"
        )
        unreadable.append(Unreadable(copy.path, "file", reason))
    joined = _with_earlier_part(best, agreeing)
    committed = [copy.committed_end_offset or 0 for copy in agreeing]
    committed.append(_held_by_majority(best, agreeing))
    return replace(
        joined,
        committed_end_offset=min(max(committed), best.end_offset) or None,
        unreadable=tuple(dict.fromkeys(unreadable)),
    )


def _up_to_dateness(copy: MetadataHistory) -> tuple[int, int, int, int]:
    end = copy.known_end_offset
    last_epoch = _epoch_at(copy, end - 1)
    return (-1 if last_epoch is None else last_epoch, end, copy.end_offset, -copy.first_offset)


def _epoch_at(copy: MetadataHistory, offset: int) -> int | None:
    """The leader epoch under which the record at `offset` was written; None outside this log."""
    if offset >= copy.end_offset:
        return None
    below = [leader_epoch for leader_epoch, start in copy.epoch_starts if start <= offset]
    return below[-1] if below else None


def _first_difference(best: MetadataHistory, copy: MetadataHistory) -> int | None:
    """The first offset both hold under different leader epochs."""
    starts = {start for one in (best, copy) for _, start in one.epoch_starts}
    for offset in sorted(starts):
        ours, theirs = _epoch_at(best, offset), _epoch_at(copy, offset)
        if ours is not None and theirs is not None and ours != theirs:
            return offset
    return None


def _held_by_majority(best: MetadataHistory, copies: list[MetadataHistory]) -> int:
    """Up to where a majority of the voters holds the log, in the newest epoch's part of it; or 0.

    Only records of the newest epoch are committed by being held by a majority (Raft, 5.4.2); with
    one of them everything below is.
    """
    ends: dict[int, int] = {}
    for copy in copies:
        if copy.node_id in best.voters and copy.node_id is not None:
            ends[copy.node_id] = max(ends.get(copy.node_id, 0), copy.known_end_offset)
    needed = len(best.voters) // 2 + 1
    if len(ends) < needed or not best.epoch_starts:
        return 0
    held = sorted(ends.values(), reverse=True)[needed - 1]
    return held if held > best.epoch_starts[-1][1] else 0


def _with_earlier_part(best: MetadataHistory, agreeing: list[MetadataHistory]) -> MetadataHistory:
    """`best` with what a copy from before its snapshot adds."""
    start = best.first_offset
    earlier = [
        copy
        for copy in agreeing
        if copy.first_offset < start <= copy.known_end_offset and copy.damaged_from is None
    ]
    if not earlier:
        return best
    first = min(earlier, key=lambda copy: copy.first_offset)

    def spliced(old: Iterable[Any], new: Iterable[Any]) -> tuple[Any, ...]:
        # What a snapshot tells stands at the offset before its end: the older copy has it for real.
        return (
            *(one for one in old if one.metadata_offset < start),
            *(one for one in new if one.metadata_offset >= start),
        )

    def spliced_configs(
        old: dict[str, tuple[ConfigChange, ...]], new: dict[str, tuple[ConfigChange, ...]]
    ) -> dict[str, tuple[ConfigChange, ...]]:
        return {name: spliced(old.get(name, ()), new.get(name, ())) for name in {**old, **new}}

    epochs = dict((*best.epoch_starts, *first.epoch_starts))
    topics = dict(first.topics)
    for topic_id, topic in best.topics.items():
        known = topics.get(topic_id, topic)
        topics[topic_id] = topic._replace(created_at=topic.created_at or known.created_at)
    return replace(
        best,
        topics=topics,
        topic_configs=spliced_configs(first.topic_configs, best.topic_configs),
        cluster_configs=spliced_configs(first.cluster_configs, best.cluster_configs),
        changes=spliced(first.changes, best.changes),
        brokers=spliced(first.brokers, best.brokers),
        controllers=spliced(first.controllers, best.controllers),
        first_offset=first.first_offset,
        epoch_starts=tuple(sorted(epochs.items())),
    )
