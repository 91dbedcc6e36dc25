"""Joins one cluster's evidence: what belongs to which partition, in whose order."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeVar

from replication.evidence.broker_logs.births import Births
from replication.evidence.broker_logs.broker_log import LogLineFact
from replication.evidence.broker_logs.packed_facts import PackedLines, Packer
from replication.evidence.clients.client_logs import Acknowledgement, Consumption
from replication.evidence.collecting.collection import BrokerDirectory, Collection
from replication.evidence.joining.clocks import Clocks
from replication.evidence.joining.copies import Copy
from replication.evidence.joining.incarnations import (
    incarnations_of_lines,
    incarnations_of_promises,
    payloads_by_incarnation,
)
from replication.evidence.joining.partition_events import PartitionEvidence
from replication.evidence.joining.partition_join import SETTING_NAMES, file_rank
from replication.evidence.joining.placement import Order, Ordered, lives_of, place
from replication.evidence.joining.registrations import from_metadata, from_zookeeper
from replication.evidence.joining.repeated_lines import each_once
from replication.evidence.joining.topic_lives import (
    Life,
    Stretch,
    life_of_directory,
    lifetimes_of_lives,
    lives_of_topic,
    stretches,
)
from replication.evidence.log_directories.log_directory import LogDirectory
from replication.evidence.metadata_log.cluster_metadata import MetadataHistory, PartitionChange
from replication.evidence.tools.dumped_logs import NotOneLog, SegmentDump, dumped_directory
from replication.evidence.tools.tool_output import (
    LogDirectoryError,
    LogDirectorySize,
    QuorumReplica,
    QuorumStatus,
)
from replication.evidence.tools.topic_descriptions import TopicDescription
from replication.evidence.unreadable import Unreadable
from replication.evidence.zookeeper.history import TopicLife, ZooKeeperHistory
from replication.protocol.ground import events as ev

INTERNAL = frozenset(("__cluster_metadata",))
LIFE_KINDS = frozenset(
    ("process_started", "process_signalled", "stopping", "stopped_cleanly", "clean_shutdown_found",
     "unclean_recovery")
)  # fmt: skip
PromiseT = TypeVar("PromiseT", Acknowledgement, Consumption)


@dataclass(slots=True)
class ClusterFacts:
    """What is known of a cluster as a whole."""

    cluster_id: str
    kafka_versions: list[str] = field(default_factory=list)
    controller: str | None = None
    brokers: list[int] = field(default_factory=list)
    inter_broker_version: str | None = None


@dataclass(slots=True)
class _BrokerLines:
    """What one broker wrote. partitions: (number of the log, lines) by (topic, partition)."""

    processes: list[Ordered] = field(default_factory=list)
    partitions: dict[tuple[str, int], list[tuple[int, PackedLines]]] = field(default_factory=dict)
    topic_ids: dict[str, set[str]] = field(default_factory=dict)

    def by_partition(self) -> Iterator[list[Ordered]]:
        """Each partition's lines in order."""
        for found in self.partitions.values():
            lines = [(_order(fact, log), fact) for log, packed in found for fact in packed]
            lines.sort(key=lambda ordered: ordered[0])
            yield lines


class Joiner:
    """Joins one cluster's evidence."""

    def __init__(
        self,
        collection: Collection,
        cluster_id: str,
        kafka_version: str | None,
        nameless: set[str],
    ) -> None:
        self.collection = collection
        self.nameless = nameless
        self.directories = [d for d in collection.directories if d.cluster_id == cluster_id]
        self.logs = [log for log in collection.logs if log.cluster_id == cluster_id]
        self.dumps = [d for d in collection.dumps if d.cluster_id == cluster_id]
        self.history: MetadataHistory | None = collection.histories.get(cluster_id)
        self.zookeeper: ZooKeeperHistory | None = collection.zookeeper.get(cluster_id)
        self.cluster = self._cluster(cluster_id, kafka_version)
        if collection.time_zone is None:
            clocks = Clocks(
                self.directories, self.history, self.zookeeper, collection.acknowledgements
            )
            self.logs = clocks.in_utc(self.logs, collection.notes)
        self.brokers = self._brokers()
        self.partitions: dict[tuple[str, str, int], PartitionEvidence] = {}
        self.topic_lives = self._topic_lives()
        self.incarnations = self._incarnations()
        self.later_history: str | None = None

    def _cluster(self, cluster_id: str, kafka_version: str | None) -> ClusterFacts:
        cluster = ClusterFacts(cluster_id)
        versions = set()
        brokers = {d.broker for d in self.directories if d.directory.partitions}
        brokers |= {d.broker for d in self.dumps}
        settings: dict[str, str] = {}
        for log in self.logs:
            for fact in log.processes:
                if fact.kind == "kafka_version":
                    versions.add(str(fact.fields["version"]))
                elif fact.kind == "settings":
                    settings.update(fact.fields["values"])
                    if "broker" in fact.fields["values"].get("process.roles", "broker") and (
                        log.broker is not None
                    ):
                        brokers.add(log.broker)
        cluster.kafka_versions = [kafka_version] if kafka_version else sorted(versions)
        if kafka_version and versions - {kafka_version}:
            named = ", ".join(sorted(versions))
            self.collection.notes.append(
                f"warning: judged by the rules of Kafka {kafka_version} as told, though the logs "
                f"name {named}"
            )
        cluster.brokers = sorted(brokers)
        zookeeper = settings.get("zookeeper.connect", "") not in ("", "null")
        if self.history is not None:
            cluster.controller = "kraft"
        elif (
            self.zookeeper is not None
            or zookeeper
            or any(d.directory.meta and d.directory.meta.version == 0 for d in self.directories)
        ):
            cluster.controller = "zookeeper"
        elif settings.get("process.roles", "").strip("[]"):
            cluster.controller = "kraft"
        if cluster.controller == "zookeeper":
            spoken = settings.get("inter.broker.protocol.version")
            told = kafka_version is not None and versions != {kafka_version}
            cluster.inter_broker_version = None if told else spoken
        self.settings = settings
        return cluster

    def _brokers(self) -> dict[int, "_BrokerLines"]:
        """Every broker's lines: of the logs that are its own, and where others name it."""
        result: dict[int, _BrokerLines] = {}
        for number, log in enumerate(self.logs):
            for writer in log.writers:
                broker = writer if writer is not None else log.broker
                if broker is None:
                    continue
                lines = result.setdefault(broker, _BrokerLines())
                lines.processes += [
                    (_order(f, number), f) for f in log.processes if f.broker == writer
                ]
                for packed in log.lines:
                    if packed.about[0] == writer:
                        key = (packed.about[1], packed.about[2])
                        lines.partitions.setdefault(key, []).append((number, packed))
                for who, topic, topic_id in log.in_lines:
                    if who == writer:
                        lines.topic_ids.setdefault(topic, set()).add(topic_id)
        for lines in result.values():
            lines.processes.sort(key=lambda ordered: ordered[0])
            happened = {id(fact) for fact in each_once(fact for _, fact in lines.processes)}
            lines.processes = [each for each in lines.processes if id(each[1]) in happened]
        return result

    def _topic_lives(self) -> dict[str, list[Life]]:
        """The lives of topics that the brokers' lines show to have been created anew.

        Where the metadata log tells of a topic, it decides.
        """
        signs = Births()
        for log in self.logs:
            signs.add(log.births, log.broker)
        told = {life.name for life in self.history.topics.values()} if self.history else set()
        result: dict[str, list[Life]] = {}
        for topic in sorted(signs.topics() - told - INTERNAL):
            by_broker: dict[int, list[Stretch]] = {}
            for broker, lines in self.brokers.items():
                ordered = [
                    (_order(fact, log), fact)
                    for (name, _), found in lines.partitions.items()
                    if name == topic
                    for log, packed in found
                    for fact in packed
                ]
                ordered.sort(key=lambda each: each[0])
                if ordered:
                    by_broker[broker] = stretches(each_once(fact for _, fact in ordered))
            lives = lives_of_topic(by_broker)
            if len(lives) > 1:
                result[topic] = lives
        return result

    def _incarnations(self) -> dict[str, list[tuple[str, int | None, int | None]]]:
        """Per topic name: (topic id, created at, deleted at), oldest first.

        Without the metadata log an incarnation is as old as the first line that names it, and gone
        when a later one exists or when its directories are set aside.
        """
        found: dict[str, dict[str, tuple[int | None, int | None]]] = {}
        if self.history is not None:
            for topic_id, life in self.history.topics.items():
                found.setdefault(life.name, {})[topic_id] = (life.created_at, life.deleted_at)
        for kept in self.zookeeper.topics if self.zookeeper is not None else ():
            if kept.topic_id:
                times = (kept.created_at, kept.deleted_at)
                found.setdefault(kept.topic, {})[kept.topic_id] = times
        first_seen: dict[str, int] = {}
        for log in self.logs:
            for (writer, topic, printed), at in log.topic_ids.items():
                if writer is None and log.broker is None:
                    continue
                found.setdefault(topic, {}).setdefault(printed, (None, None))
                if at is not None:
                    first_seen[printed] = min(at, first_seen.get(printed, at))
        set_aside: set[str] = set()
        for d in self.directories:
            for p in d.directory.partitions:
                if p.topic_id:
                    found.setdefault(p.topic, {}).setdefault(p.topic_id, (None, None))
                    if p.kind in ("deleted", "stray"):
                        set_aside.add(p.topic_id)
        result = {name: _lifetimes(ids, first_seen, set_aside) for name, ids in found.items()}
        for name, lives in self.topic_lives.items():
            ids = _by_age(found.get(name, {}), first_seen, set_aside, self._last_seen(name))
            result[name] = lifetimes_of_lives(lives, ids)
        return result

    def _last_seen(self, topic: str) -> dict[str, int]:
        """The newest record beside each of a topic's ids, in the log directories that hold it."""
        result: dict[str, int] = {}
        for d in self.directories:
            times = [p.max_timestamp or 0 for p in d.directory.partitions]
            for p in d.directory.partitions:
                if p.topic == topic and p.topic_id:
                    result[p.topic_id] = max(max(times), result.get(p.topic_id, 0))
        return result

    def _incarnation(self, topic: str, at: int | None) -> str:
        """The topic id that bore the name at a moment; the last one where nothing tells."""
        known = self.incarnations.get(topic, [])
        if not known:
            return ""
        if at is not None:
            for topic_id, created, deleted in known:
                if (created is None or created <= at) and (deleted is None or at < deleted):
                    return topic_id
        return known[-1][0]

    def _partition(self, topic: str, topic_id: str, partition: int) -> PartitionEvidence:
        key = (topic, topic_id, partition)
        if key not in self.partitions:
            self.partitions[key] = PartitionEvidence(
                self.cluster.cluster_id,
                topic,
                topic_id,
                partition,
                unpacked=self.collection.unpacked,
            )
        return self.partitions[key]

    def join(self, only_topic: str | None) -> list[PartitionEvidence]:
        """All partitions of the cluster, joined but for what `partition_join.finished` does."""
        self._take_history()
        self._take_zookeeper()
        self._take_directories()
        self._take_dumps()
        self._take_lines()
        self._take_log_dirs()
        self._take_quorum()
        self._take_promises()
        result = []
        for key in sorted(self.partitions):
            evidence = self.partitions[key]
            if evidence.topic in INTERNAL or (only_topic and evidence.topic != only_topic):
                continue
            self._describe(evidence)
            evidence.unsure_lines = {
                writer for log in self.logs if log.nobodys and log.several for writer in log.writers
            }
            evidence.later_history = self.later_history
            result.append(evidence)
        return result

    def _take_history(self) -> None:
        if self.history is None:
            return
        for change in self.history.changes:
            after = change.after
            if after.topic is None:
                continue
            self._partition(after.topic, after.topic_id, after.partition)
        mine: dict[tuple[str | None, str, int], list[PartitionChange]] = {}
        for change in self.history.changes:
            after = change.after
            mine.setdefault((after.topic, after.topic_id, after.partition), []).append(change)
        for key, evidence in self.partitions.items():
            evidence.recorded = from_metadata(mine.get(key, []), self.history.path)
            evidence.history_complete = (
                self.history.first_offset == 0 and self.history.damaged_from is None
            )

    def _take_zookeeper(self) -> None:
        """ZooKeeper's history of each partition; of a name created anew without topic ids, the
        last life's."""
        if self.zookeeper is None or self.history is not None:
            return
        lives: dict[tuple[str, str], list[TopicLife]] = {}
        for life in self.zookeeper.topics:
            lives.setdefault((life.topic, life.topic_id or ""), []).append(life)
        for (topic, topic_id), found in lives.items():
            last = found[-1]
            if len(found) > 1:
                self.collection.notes.append(
                    f"{topic}: ZooKeeper had {len(found)} topics of this name one after the other, "
                    "without ids; only the last one's history is used"
                )
            known = topic_id or self._incarnation(topic, None)
            for number, states in last.states.items():
                if topic in INTERNAL:
                    continue
                evidence = self._partition(topic, known, number)
                evidence.recorded = from_zookeeper(states, last.replicas.get(number))
                evidence.history_complete = last.is_whole(number) and len(found) == 1
                evidence.by_zookeeper = True

    def _take_directories(self) -> None:
        for d in self.directories:
            for p in d.directory.partitions:
                if p.topic in INTERNAL:
                    continue
                topic_id = p.topic_id
                known = self.incarnations.get(p.topic, [])
                if topic_id is None and len(known) > 1 and p.topic in self.topic_lives:
                    topic_id = life_of_directory(p, known)
                if topic_id is None and len(known) > 1:
                    self.collection.unreadable.append(
                        Unreadable(
                            str(p.path),
                            "file",
                            "no readable partition.metadata, and the topic was created anew: of "
                            "which incarnation this directory is cannot be told",
                        )
                    )
                    continue
                if topic_id is None:
                    topic_id = self._incarnation(p.topic, None)
                evidence = self._partition(p.topic, topic_id, p.partition)
                evidence.copies.append(_copy(d, p))

    def _take_dumps(self) -> None:
        """What kafka-dump-log printed, where the directory itself was not handed over."""
        sizes: dict[tuple[int, str, int], set[int]] = {}
        for listed in self.collection.log_dirs:
            if isinstance(listed, LogDirectorySize) and listed.path in self.nameless:
                key = (listed.broker, listed.topic, listed.partition)
                sizes.setdefault(key, set()).update([] if listed.is_future else [listed.size])
        found: dict[tuple[int, str, int], list[SegmentDump]] = {}
        for dump in self.dumps:
            for segment in dump.segments:
                key = (dump.broker, segment.topic, segment.partition)
                found.setdefault(key, []).append(segment)
        for key, segments in sorted(found.items()):
            broker, topic, partition = key
            if topic in INTERNAL:
                continue
            why = self._take_dump(broker, topic, partition, segments, sizes.get(key, set()))
            if why is not None:
                path = min(str(s.path) for s in segments)
                self.collection.notes.append(
                    f"{path}: the dump of {topic}-{partition} of broker {broker} was not used: "
                    f"{why}"
                )

    def _take_dump(
        self, broker: int, topic: str, number: int, segments: list[SegmentDump], sizes: set[int]
    ) -> str | None:
        """Adds one replica's dumped log as a copy; why not, where it cannot be."""
        if len(self.incarnations.get(topic, [])) > 1:
            return (
                "the topic was created anew, and of which incarnation it is cannot be told: hand "
                "over the log directory or a digest of it"
            )
        evidence = self._partition(topic, self._incarnation(topic, None), number)
        own = [c for c in evidence.copies if c.broker == broker and not c.is_dump]
        if any(c.directory.kind == "replica" and c.directory.segments for c in own):
            return "it is not needed, the log directory itself is here"
        try:
            directory = dumped_directory(segments, sizes)
        except NotOneLog as error:
            return f"{error}: hand over the log directory or a digest of it"
        parent = LogDirectory(directory.path, None, None, (directory,), (), None)
        evidence.copies.append(
            Copy(
                broker,
                directory,
                parent,
                clean=False,
                latest_timestamp=directory.max_timestamp,
                latest_epoch=directory.latest_epoch,
            )
        )
        if not directory.is_whole:
            shown = f"{directory.log_start_offset}..{(directory.log_end_offset or 0) - 1}"
            self.collection.notes.append(
                f"{directory.path}: the dump of {topic}-{number} of broker {broker} shows offsets "
                f"{shown}; whether its log goes on cannot be told from it (kafka-log-dirs "
                "--describe would tell its size)"
            )
        return None

    def _take_log_dirs(self) -> None:
        """Which replicas kafka-log-dirs lists, and what it says of directories."""
        notes = self.collection.notes
        for listed in self.collection.log_dirs:
            if listed.path not in self.nameless:
                continue
            if isinstance(listed, LogDirectoryError):
                notes.append(
                    f"{listed.path}: broker {listed.broker} could not describe its log directory "
                    f"{listed.directory} ({listed.error}): the replicas in it are offline, and "
                    "kafka-log-dirs does not name them"
                )
                continue
            where = f"{listed.topic}-{listed.partition}"
            if listed.is_future:
                lag = "" if listed.offset_lag is None else f", {listed.offset_lag} offsets behind"
                notes.append(
                    f"{listed.path}: broker {listed.broker} was moving {where} to "
                    f"{listed.directory}{lag}: the log there is not yet its replica's"
                )
                continue
            known = self.incarnations.get(listed.topic, [])
            key = (listed.topic, self._incarnation(listed.topic, None), listed.partition)
            evidence = self.partitions.get(key)
            if evidence is not None and len(known) < 2:
                evidence.listed_replicas.add(listed.broker)
        for evidence in self.partitions.values():
            for broker in sorted(evidence.listed_replicas - {c.broker for c in evidence.copies}):
                notes.append(
                    f"{evidence.topic}-{evidence.partition}: kafka-log-dirs lists a replica on "
                    f"broker {broker}, of which neither log directory nor dump was handed over"
                )

    def _take_quorum(self) -> None:
        """Whether the copy of the metadata log reaches what its quorum had committed."""
        statuses = [
            q
            for q in self.collection.quorum
            if isinstance(q, QuorumStatus)
            and (
                q.cluster_id == self.cluster.cluster_id if q.cluster_id else q.path in self.nameless
            )
        ]
        committed = [(q.high_watermark, q.path) for q in statuses if q.high_watermark is not None]
        by_file: dict[str, dict[int, QuorumReplica]] = {}
        for member in self.collection.quorum:
            if isinstance(member, QuorumReplica) and member.path in self.nameless:
                by_file.setdefault(member.path, {})[member.node] = member
        for path, members in by_file.items():
            voters = [m for m in members.values() if m.role != "Observer"]
            ends = sorted((m.log_end_offset for m in voters), reverse=True)
            if any(m.role == "Leader" for m in voters):
                # What a majority has; the leader's own high watermark may be a little behind.
                committed.append((ends[len(ends) // 2], path))
        if not committed:
            return
        offset, path = max(committed)
        if self.history is None:
            self.collection.notes.append(
                f"{path}: the metadata log had {offset} committed offsets, and no copy of it is "
                "here: hand over __cluster_metadata-0 of any node"
            )
        elif self.history.end_offset < offset:
            missing = f"{self.history.end_offset}..{offset - 1}"
            self.later_history = (
                f"the metadata log's offsets {missing}, which its quorum had committed"
            )
            reaching = sorted(
                m.node
                for found in by_file.values()
                for m in found.values()
                if m.log_end_offset >= offset
            )
            nodes = f" (node {', '.join(map(str, reaching))} had them)" if reaching else ""
            self.collection.notes.append(
                f"{path}: the copy of the metadata log here, {self.history.path}, ends before "
                f"offsets {missing} that were committed{nodes}: elections after it are not known; "
                "copy __cluster_metadata-0 after running kafka-metadata-quorum"
            )

    def _take_lines(self) -> None:
        for broker, lines in self.brokers.items():
            processes = [f for _, f in lines.processes if f.topic is None and f.kind in LIFE_KINDS]
            for key, packed in self._by_incarnation(broker, lines):
                if key[0] in INTERNAL:
                    continue
                evidence = self._partition(*key)
                evidence.packed.setdefault(broker, []).extend(packed)
                evidence.processes[broker] = processes
            copies = self._copies_of(broker)
            if copies:
                lives = lives_of(lines.processes, lines.by_partition())
                place(copies, lives, _registrations(self.history, broker))
        for log in self.logs:
            for nobodys in log.lines if log.broker is None else ():
                # What they say is told, and their partition is looked at.
                topic, number = nobodys.about[1], nobodys.about[2]
                if topic not in INTERNAL:
                    self._partition(topic, self._incarnation(topic, None), number)
        for evidence in self.partitions.values():
            unplaced = {c.broker for c in evidence.copies} - set(self.brokers)
            for broker in unplaced:
                place(self._copies_of(broker), [])

    def _copies_of(self, broker: int) -> list[Copy]:
        """Its copied directories: those that have a place in its process's lives."""
        copies = [c for e in self.partitions.values() for c in e.copies if not c.is_dump]
        return [c for c in copies if c.broker == broker]

    def _by_incarnation(
        self, broker: int, lines: "_BrokerLines"
    ) -> Iterator[tuple[tuple[str, str, int], list[PackedLines]]]:
        """One broker's lines by (topic, topic id, partition)."""
        unsure: dict[str, list[tuple[int, PackedLines]]] = {}
        for lives in self.topic_lives.values():
            for life in lives:
                if broker in life.stretches:
                    facts = life.stretches[broker].facts
                    yield from _packed_again((fact, life.topic_id) for fact in facts)
        for (topic, number), found in lines.partitions.items():
            if topic in self.topic_lives:
                continue
            packed = [p for _, p in found]
            printed = lines.topic_ids.get(topic, set())
            known = self.incarnations.get(topic, [])
            if len(printed) == 1:
                yield (topic, next(iter(printed)), number), packed
            elif not printed and len(known) <= 1:
                yield (topic, self._incarnation(topic, None), number), packed
            else:
                unsure.setdefault(topic, []).extend(found)
        for mixed in unsure.values():
            yield from self._told_apart(mixed)

    def _told_apart(
        self, mixed: list[tuple[int, PackedLines]]
    ) -> Iterator[tuple[tuple[str, str, int], list[PackedLines]]]:
        """A topic's lines where it was created anew, one by one."""
        ordered = [(_order(fact, log), fact) for log, packed in mixed for fact in packed]
        ordered.sort(key=lambda each: each[0])
        facts = [fact for _, fact in ordered]
        yield from _packed_again(incarnations_of_lines(facts, self._incarnation))

    def _take_promises(self) -> None:
        acked = [a for a in self.collection.acknowledgements if a.path in self.nameless]
        seen = [c for c in self.collection.consumptions if c.path in self.nameless]
        unsure: set[tuple[str, int]] = set()
        for a, topic_id in self._placed(acked, unsure):
            self._partition(a.topic, topic_id, a.partition).acknowledgements.append(a)
        for c, topic_id in self._placed(seen, unsure):
            self._partition(c.topic, topic_id, c.partition).consumptions.append(c)
        for evidence in self.partitions.values():
            told = (evidence.topic, evidence.partition) not in unsure
            evidence.has_acknowledgement_log = bool(acked) and told
            evidence.has_all_producers = bool(acked) and told and self.collection.all_producers
            evidence.has_consumption_log = bool(seen) and told
        for topic, number in sorted(unsure):
            self.collection.notes.append(
                f"{topic}-{number}: the topic was created anew, and which of its incarnations some "
                "promises in clients' logs are of cannot be told; those were not used"
            )

    def _placed(
        self, promises: list[PromiseT], unsure: set[tuple[str, int]]
    ) -> Iterator[tuple[PromiseT, str]]:
        """Each promise with the topic id it is of; partitions where that is unsure are noted."""
        mixed: dict[tuple[str, int], list[PromiseT]] = {}
        for promise in promises:
            mixed.setdefault((promise.topic, promise.partition), []).append(promise)
        for (topic, number), mine in mixed.items():
            order = [topic_id for topic_id, _, _ in self.incarnations.get(topic, [])]
            standing: dict[str, set[str]] = {}
            if len(order) > 1 and any(not p.topic_id for p in mine):
                evidence = [(i, self.partitions.get((topic, i, number))) for i in order]
                copies = [(i, c) for i, e in evidence if e is not None for c in e.copies]
                standing = payloads_by_incarnation(copies, {p.payload_id or "" for p in mine})
            for promise, topic_id in incarnations_of_promises(
                mine, order, standing, self._incarnation
            ):
                if topic_id is not None:
                    yield promise, topic_id
                elif isinstance(promise, Consumption) or promise.status == "acked":
                    unsure.add((topic, number))

    def _describe(self, evidence: PartitionEvidence) -> None:
        """What the cluster as a whole says of a partition."""
        values = evidence.settings
        for name in SETTING_NAMES:
            broker_name = "log.cleanup.policy" if name == "cleanup.policy" else name
            if broker_name in self.settings:
                values[name] = self.settings[broker_name]
        if self.history is not None:
            for configs in (
                self.history.cluster_configs.get("", ()),
                self.history.topic_configs.get(evidence.topic, ()),
            ):
                for change in configs:
                    if change.key in SETTING_NAMES and change.value is not None:
                        values[change.key] = change.value
        if self.zookeeper is not None:
            for scope in ("", evidence.topic):
                told = self.zookeeper.settings.get(scope, {})
                values.update({k: v for k, v in told.items() if k in SETTING_NAMES})
        self._take_descriptions(evidence)
        deleted = any(
            i == evidence.topic_id and gone is not None
            for i, _, gone in self.incarnations.get(evidence.topic, [])
        )
        lives = self.topic_lives.get(evidence.topic, [])
        for life, following in pairwise(lives):
            # Epochs alone that begin anew do not say what became of the logs before.
            if life.topic_id == evidence.topic_id:
                deleted = life.ends_deleted or following.begins_empty
        evidence.described = ev.PartitionDescribed(
            kafka_version=self.cluster.kafka_versions[0] if self.cluster.kafka_versions else None,
            inter_broker_version=self.cluster.inter_broker_version,
            controller=self.cluster.controller,
            deleted=True if deleted else None,
        )

    def _take_descriptions(self, evidence: PartitionEvidence) -> None:
        """What kafka-topics printed of the partition; of its assignment the newest output counts.

        A line that names no topic id is of the incarnation that the topic's own line names in the
        same output, else of the one that bore the name then.
        """
        ids: dict[tuple[str, int | None], str] = {}
        newest: tuple[int, str, int] | None = None
        for item in self.collection.descriptions:
            if item.topic != evidence.topic or item.path not in self.nameless:
                continue
            if isinstance(item, TopicDescription) and item.topic_id:
                ids[item.path, item.at] = item.topic_id
            topic_id = ids.get((item.path, item.at))
            if (topic_id or self._incarnation(item.topic, item.at)) != evidence.topic_id:
                continue
            if isinstance(item, TopicDescription):
                told = {k: v for k, v in item.configs.items() if k in SETTING_NAMES}
                evidence.told_settings.update(told)
                continue
            place = (-1 if item.at is None else item.at, item.path, item.line)
            if item.partition == evidence.partition and (newest is None or place > newest):
                newest = place
                evidence.told_replicas, evidence.told_at = item.replicas, item.at


def _packed_again(
    facts: Iterable[tuple[LogLineFact, str]],
) -> Iterator[tuple[tuple[str, str, int], list[PackedLines]]]:
    """One broker's lines, each with the topic id it is of, by partition."""
    apart: dict[tuple[str, str, int], dict[str, Packer]] = {}
    for fact, topic_id in facts:
        assert fact.topic is not None
        assert fact.partition is not None
        packers = apart.setdefault((fact.topic, topic_id, fact.partition), {})
        packers.setdefault(fact.path, Packer(fact.path)).add(fact)
    for key, packers in apart.items():
        yield key, [lines for packer in packers.values() for lines in packer.done()]


def _by_age(
    ids: dict[str, tuple[int | None, int | None]],
    first_seen: dict[str, int],
    set_aside: set[str],
    last_seen: dict[str, int],
) -> list[str]:
    """A topic's ids, oldest first: those set aside, then as they were printed or had records."""
    return sorted(
        (i for i in ids if i),
        key=lambda i: (i not in set_aside, first_seen.get(i, last_seen.get(i, 0)), i),
    )


def _lifetimes(
    ids: dict[str, tuple[int | None, int | None]], first_seen: dict[str, int], set_aside: set[str]
) -> list[tuple[str, int | None, int | None]]:
    """One topic name's incarnations, oldest first, each gone when the next one came."""
    rows = []
    for topic_id, (created, deleted) in ids.items():
        rows.append((topic_id, created or first_seen.get(topic_id), deleted))
    rows.sort(key=lambda r: (r[0] not in set_aside, r[1] is not None, r[1] or 0, r[0]))
    result = []
    for index, (topic_id, created, deleted) in enumerate(rows):
        following = rows[index + 1][1] if index + 1 < len(rows) else None
        if deleted is None and index + 1 < len(rows):
            deleted = following if following is not None else created
            if deleted is None and topic_id in set_aside:
                deleted = 0
        result.append((topic_id, created if index else None, deleted))
    return result


def _order(fact: LogLineFact, log: int) -> Order:
    return (fact.at if fact.at is not None else 0, file_rank(fact.path), fact.line, log)


def _registrations(history: MetadataHistory | None, broker: int) -> int | None:
    """How often a broker had registered by the end of a copy of the controllers' log.

    One with unreadable places may have reached further than can be seen.
    """
    if history is None or history.first_offset > 0 or history.unreadable:
        return None
    return sum(1 for b in history.brokers if b.broker == broker and b.kind == "registered")


def _metadata_end(history: MetadataHistory | None) -> int | None:
    return None if history is None or history.unreadable else history.end_offset


def _copy(found: BrokerDirectory, partition: object) -> Copy:
    directory = found.directory
    clean = directory.clean_shutdown
    epochs = [e for p in directory.partitions for e, _ in (p.epoch_entries or ())]
    epochs += [s[0] for p in directory.partitions for s in p.spans if s[0] is not None]
    times = [p.max_timestamp for p in directory.partitions if p.max_timestamp is not None]
    return Copy(
        broker=found.broker,
        directory=partition,  # type: ignore[arg-type]
        parent=directory,
        clean=clean is not None,
        broker_epoch=clean.broker_epoch if clean is not None else None,
        metadata_end=_metadata_end(found.metadata),
        registrations=_registrations(found.metadata, found.broker),
        latest_timestamp=max(times, default=None),
        latest_epoch=max(epochs, default=-1),
    )
