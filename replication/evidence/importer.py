"""Evidence in, events out: identity first, then joining, partition by partition."""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from replication.evidence.broker_log import LogLineFact
from replication.evidence.client_logs import Acknowledgement, Consumption
from replication.evidence.cluster_metadata import MetadataHistory, PartitionChange
from replication.evidence.collection import BrokerDirectory, BrokerLog, Collection, collect
from replication.evidence.copies import Copy, identify_contents
from replication.evidence.incarnations import (
    incarnations_of_lines,
    incarnations_of_promises,
    payloads_by_incarnation,
)
from replication.evidence.partition_events import PartitionEvidence, events_of
from replication.evidence.placement import lives_of, place
from replication.evidence.registrations import from_lines, from_metadata, joined
from replication.evidence.topic_descriptions import TopicDescription
from replication.evidence.unreadable import Unreadable
from replication.protocol import events as ev
from replication.protocol import wire
from replication.protocol.versions import behaviour

INTERNAL = frozenset(("__cluster_metadata",))
PromiseT = TypeVar("PromiseT", Acknowledgement, Consumption)
SETTING_NAMES = {
    "min.insync.replicas": "min_insync_replicas",
    "unclean.leader.election.enable": "unclean_leader_election",
    "cleanup.policy": "cleanup_policy",
}


@dataclass(slots=True)
class ClusterFacts:
    """What is known of a cluster as a whole."""

    cluster_id: str
    kafka_versions: list[str] = field(default_factory=list)
    controller: str | None = None
    brokers: list[int] = field(default_factory=list)
    inter_broker_version: str | None = None


@dataclass(slots=True)
class Import:
    """The outcome of an import: events per partition, and what could not be used."""

    collection: Collection
    clusters: list[ClusterFacts]
    partitions: list[PartitionEvidence]
    trace_id: str
    generation: int = 0

    @property
    def unreadable(self) -> list[Unreadable]:
        """Every place that could not be read, in the files' order."""
        found = list(self.collection.unreadable)
        for partition in self.partitions:
            found += [u for u in partition.contents.unreadable if u not in found]
        return sorted(found, key=lambda u: (u.path, u.where, u.reason))

    def events(self) -> Iterator[ev.Event]:
        """All events, each partition's in sequence, with their content-derived ids."""
        for partition in self.partitions:
            for event in events_of(partition, self.trace_id, self.generation):
                yield replace(event, event_id=wire.content_id(wire.to_row(event)))


def import_evidence(
    paths: Iterable[Path],
    *,
    kafka_version: str | None = None,
    topic: str | None = None,
    generation: int = 0,
) -> Import:
    """Reads the evidence at or below paths and joins it.

    Raises collection.NoEvidence when there is none. kafka_version: for evidence that does not name
    it. topic: only this one.
    """
    collection = collect(paths)
    clusters: list[ClusterFacts] = []
    partitions: list[PartitionEvidence] = []
    ids = sorted(
        {d.cluster_id for d in collection.directories} | {log.cluster_id for log in collection.logs}
    )
    if len(ids) == 2 and ids[0] == "":
        _adopt_nameless(collection, ids[1])
        ids = ids[1:]
    nameless = _clusters_of_nameless(collection, ids or [""])
    for cluster_id in ids or [""]:
        joiner = _Joiner(collection, cluster_id, kafka_version, nameless.get(cluster_id, set()))
        clusters.append(joiner.cluster)
        partitions += joiner.join(topic)
    return Import(collection, clusters, partitions, _trace_id(collection), generation)


def _clusters_of_nameless(collection: Collection, ids: list[str]) -> dict[str, set[str]]:
    """Per cluster the client logs and tool outputs that are its: they name no cluster, so where
    several are at hand each belongs to the one whose brokers' evidence lies nearest to it."""
    paths = {a.path for a in collection.acknowledgements}
    paths |= {c.path for c in collection.consumptions}
    paths |= {d.path for d in collection.descriptions}
    if len(ids) == 1:
        return {ids[0]: paths}
    places: dict[str, list[tuple[str, ...]]] = {}
    for d in collection.directories:
        places.setdefault(d.cluster_id, []).append(d.directory.path.parts)
    for log in collection.logs:
        places.setdefault(log.cluster_id, []).append(Path(log.path).parts)
    result: dict[str, set[str]] = {}
    for path in sorted(paths):
        parts = Path(path).parts
        near = {i: max(_shared(parts, p) for p in found) for i, found in places.items()}
        best = [i for i, depth in near.items() if depth == max(near.values())]
        if len(best) == 1:
            result.setdefault(best[0], set()).add(path)
        else:
            collection.notes.append(
                f"{path}: names no cluster and lies equally near to the evidence of several, so "
                "it was not used"
            )
    return result


def _shared(a: tuple[str, ...], b: tuple[str, ...]) -> int:
    """How many leading parts two paths share."""
    count = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        count += 1
    return count


def _adopt_nameless(collection: Collection, cluster_id: str) -> None:
    """Evidence without a cluster id beside exactly one named cluster is taken to be of it."""
    for directory in collection.directories:
        directory.cluster_id = directory.cluster_id or cluster_id
    for log in collection.logs:
        log.cluster_id = log.cluster_id or cluster_id


def _trace_id(collection: Collection) -> str:
    """Derived from what was read, not from where it lay."""
    digest = hashlib.sha256()
    for log in sorted(
        (log.broker or -1, len(log.facts), log.cluster_id) for log in collection.logs
    ):
        digest.update(repr(log).encode())
    for d in sorted(
        (
            d.broker,
            d.cluster_id,
            tuple((p.topic, p.partition, p.log_end_offset or 0) for p in d.directory.partitions),
        )
        for d in collection.directories
    ):
        digest.update(repr(d).encode())
    digest.update(repr((len(collection.acknowledgements), len(collection.consumptions))).encode())
    return "import-" + digest.hexdigest()[:16]


class _Joiner:
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
        self.history: MetadataHistory | None = collection.histories.get(cluster_id)
        self.cluster = self._cluster(cluster_id, kafka_version)
        self.facts = self._facts_by_broker()
        self.partitions: dict[tuple[str, str, int], PartitionEvidence] = {}
        self.incarnations = self._incarnations()

    def _cluster(self, cluster_id: str, kafka_version: str | None) -> ClusterFacts:
        cluster = ClusterFacts(cluster_id)
        versions = set()
        brokers = {d.broker for d in self.directories if d.directory.partitions}
        settings: dict[str, str] = {}
        for log in self.logs:
            for fact in log.facts:
                if fact.kind == "kafka_version":
                    versions.add(str(fact.fields["version"]))
                elif fact.kind == "settings":
                    settings.update(fact.fields["values"])
                    if "broker" in fact.fields["values"].get("process.roles", "broker") and (
                        log.broker is not None
                    ):
                        brokers.add(log.broker)
        cluster.kafka_versions = sorted(versions) or ([kafka_version] if kafka_version else [])
        if kafka_version and not versions:
            cluster.kafka_versions = [kafka_version]
        cluster.brokers = sorted(brokers)
        zookeeper = settings.get("zookeeper.connect", "") not in ("", "null")
        if self.history is not None:
            cluster.controller = "kraft"
        elif zookeeper or any(
            d.directory.meta and d.directory.meta.version == 0 for d in self.directories
        ):
            cluster.controller = "zookeeper"
        elif settings.get("process.roles", "").strip("[]"):
            cluster.controller = "kraft"
        if cluster.controller == "zookeeper":
            cluster.inter_broker_version = settings.get("inter.broker.protocol.version")
        self.settings = settings
        return cluster

    def _facts_by_broker(self) -> dict[int, list[LogLineFact]]:
        """Every broker's lines in one order: by clock, then by file and line."""
        result: dict[int, list[LogLineFact]] = {}
        for log in self.logs:
            for fact in log.facts:
                broker = fact.broker if fact.broker is not None else log.broker
                if broker is not None:
                    result.setdefault(broker, []).append(fact)
        for facts in result.values():
            facts.sort(key=lambda f: (f.at if f.at is not None else 0, _file_rank(f), f.line))
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
        first_seen: dict[str, int] = {}
        for facts in self.facts.values():
            for fact in facts:
                printed = str(fact.fields.get("topic_id") or "")
                if fact.topic and printed:
                    found.setdefault(fact.topic, {}).setdefault(printed, (None, None))
                    if fact.at is not None:
                        first_seen[printed] = min(fact.at, first_seen.get(printed, fact.at))
        set_aside: set[str] = set()
        for d in self.directories:
            for p in d.directory.partitions:
                if p.topic_id:
                    found.setdefault(p.topic, {}).setdefault(p.topic_id, (None, None))
                    if p.kind in ("deleted", "stray"):
                        set_aside.add(p.topic_id)
        return {name: _lifetimes(ids, first_seen, set_aside) for name, ids in found.items()}

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
                self.cluster.cluster_id, topic, topic_id, partition
            )
        return self.partitions[key]

    def join(self, only_topic: str | None) -> list[PartitionEvidence]:
        """All partitions of the cluster, joined."""
        self._take_history()
        self._take_directories()
        self._take_lines()
        self._take_promises()
        result = []
        for key in sorted(self.partitions):
            evidence = self.partitions[key]
            if evidence.topic in INTERNAL or (only_topic and evidence.topic != only_topic):
                continue
            self._finish(evidence)
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

    def _take_directories(self) -> None:
        for d in self.directories:
            for p in d.directory.partitions:
                if p.topic in INTERNAL:
                    continue
                if p.topic_id is None and len(self.incarnations.get(p.topic, [])) > 1:
                    self.collection.unreadable.append(
                        Unreadable(
                            str(p.path),
                            "file",
                            "no readable partition.metadata, and the topic was created anew: of "
                            "which incarnation this directory is cannot be told",
                        )
                    )
                    continue
                topic_id = p.topic_id or self._incarnation(p.topic, None)
                evidence = self._partition(p.topic, topic_id, p.partition)
                evidence.copies.append(_copy(d, p))

    def _take_lines(self) -> None:
        process_kinds = (
            "process_started",
            "process_signalled",
            "stopping",
            "stopped_cleanly",
            "clean_shutdown_found",
            "unclean_recovery",
        )
        for broker, facts in self.facts.items():
            general = [f for f in facts if f.topic is None and f.kind in process_kinds]
            mine: dict[tuple[str, str, int], list[LogLineFact]] = {}
            for fact, topic_id in incarnations_of_lines(facts, self._incarnation):
                if fact.topic is None or fact.partition is None or fact.topic in INTERNAL:
                    continue
                mine.setdefault((fact.topic, topic_id, fact.partition), []).append(fact)
            for (topic, topic_id, number), lines in mine.items():
                evidence = self._partition(topic, topic_id, number)
                merged = general + lines
                merged.sort(key=lambda f: (f.at if f.at is not None else 0, _file_rank(f), f.line))
                evidence.lines[broker] = merged
            copies = [c for e in self.partitions.values() for c in e.copies if c.broker == broker]
            place(copies, lives_of(facts), _registrations(self.history, broker))
        for evidence in self.partitions.values():
            unplaced = {c.broker for c in evidence.copies} - set(self.facts)
            for broker in unplaced:
                place(
                    [c for e in self.partitions.values() for c in e.copies if c.broker == broker],
                    [],
                )

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
        nameless: dict[tuple[str, int], list[PromiseT]] = {}
        for promise in promises:
            if promise.topic_id:
                yield promise, promise.topic_id
            else:
                nameless.setdefault((promise.topic, promise.partition), []).append(promise)
        for (topic, number), mine in nameless.items():
            order = [topic_id for topic_id, _, _ in self.incarnations.get(topic, [])]
            standing: dict[str, set[str]] = {}
            if len(order) > 1:
                evidence = [self.partitions.get((topic, i, number)) for i in order]
                copies = [c for e in evidence if e is not None for c in e.copies]
                standing = payloads_by_incarnation(copies, {p.payload_id or "" for p in mine})
            for promise, topic_id in incarnations_of_promises(
                mine, order, standing, self._incarnation
            ):
                if topic_id is None:
                    unsure.add((topic, number))
                else:
                    yield promise, topic_id

    def _finish(self, evidence: PartitionEvidence) -> None:
        """Describes the partition, orders its copies and tells their contents apart."""
        described = self._described(evidence)
        if not evidence.history_complete or self._outlives_history(evidence):
            facts = [
                replace(f, broker=f.broker if f.broker is not None else b)
                for b, lines in evidence.lines.items()
                for f in lines
                if f.topic is not None
            ]
            evidence.recorded = joined(
                evidence.recorded, from_lines(facts, described.assigned_replicas)
            )
            if described.assigned_replicas is None:
                named = [
                    r.fact.assigned_replicas for r in evidence.recorded if r.fact.assigned_replicas
                ]
                if named:
                    described = replace(described, assigned_replicas=named[-1])
        evidence.described = described
        evidence.truncates_by = _truncates_by(described)
        evidence.bytes_verified = all(
            getattr(segment, "verify_crc", False)
            for copy in evidence.copies
            for segment in copy.directory.segments
        )
        evidence.copies.sort(key=lambda c: (-c.slot, c.broker, c.path))
        payloads = any(a.payload_id for a in evidence.acknowledgements) or any(
            c.payload_id for c in evidence.consumptions
        )
        sequences = any(a.sequence is not None for a in evidence.acknowledgements)
        evidence.contents = identify_contents(
            evidence.copies, with_payloads=payloads, with_sequences=sequences
        )

    def _outlives_history(self, evidence: PartitionEvidence) -> bool:
        """Whether lines name a leader epoch that the metadata log at hand has not reached."""
        known = max((r.fact.leader_epoch for r in evidence.recorded), default=-1)
        return any(
            isinstance(f.fields.get("leader_epoch"), int)
            and f.kind in ("became_leader", "became_follower")
            and f.fields["leader_epoch"] > known
            for lines in evidence.lines.values()
            for f in lines
        )

    def _described(self, evidence: PartitionEvidence) -> ev.PartitionDescribed:
        values: dict[str, str] = {}
        for name in SETTING_NAMES:
            broker_name = "log.cleanup.policy" if name == "cleanup.policy" else name
            if broker_name in self.settings:
                values[name] = self.settings[broker_name]
        assigned = None
        for recorded in evidence.recorded:
            assigned = recorded.fact.assigned_replicas or assigned
        self._topic_settings(evidence, values)
        for item in self.collection.descriptions:
            if item.topic != evidence.topic or item.path not in self.nameless:
                continue
            if isinstance(item, TopicDescription):
                if not item.topic_id or item.topic_id == evidence.topic_id:
                    values.update({k: v for k, v in item.configs.items() if k in SETTING_NAMES})
            elif assigned is None and item.partition == evidence.partition:
                assigned = item.replicas
        minimum = values.get("min.insync.replicas", "")
        unclean = values.get("unclean.leader.election.enable")
        deleted = any(
            i == evidence.topic_id and gone is not None
            for i, _, gone in self.incarnations.get(evidence.topic, [])
        )
        return ev.PartitionDescribed(
            assigned_replicas=assigned,
            min_insync_replicas=int(minimum) if minimum.isdigit() else None,
            unclean_leader_election=None if unclean is None else unclean.lower() == "true",
            cleanup_policy=values.get("cleanup.policy"),
            kafka_version=self.cluster.kafka_versions[0] if self.cluster.kafka_versions else None,
            inter_broker_version=self.cluster.inter_broker_version,
            controller=self.cluster.controller,
            deleted=True if deleted else None,
        )

    def _topic_settings(self, evidence: PartitionEvidence, values: dict[str, str]) -> None:
        if self.history is not None:
            for configs in (
                self.history.cluster_configs.get("", ()),
                self.history.topic_configs.get(evidence.topic, ()),
            ):
                for change in configs:
                    if change.key in SETTING_NAMES and change.value is not None:
                        values[change.key] = change.value
        for lines in evidence.lines.values():
            for fact in lines:
                if fact.kind == "log_created":
                    for key, value in fact.fields.get("settings", {}).items():
                        if key in SETTING_NAMES:
                            values[key] = str(value).strip("[]")


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


def _truncates_by(described: ev.PartitionDescribed) -> str:
    """What an unexplained cut of a follower's log follows, by the version's rule."""
    if described.kafka_version is None:
        return "unknown"
    try:
        flags = behaviour(described.kafka_version, described.inter_broker_version)
    except ValueError:
        return "unknown"
    return "high_watermark" if flags.truncation == "truncate_to_high_watermark" else "leader_epoch"


def _file_rank(fact: LogLineFact) -> int:
    """Within one millisecond: the server's own log, then the state change log."""
    return 1 if "state-change" in fact.path else 0


def _registrations(history: MetadataHistory | None, broker: int) -> int | None:
    """How often a broker had registered by the end of a copy of the controllers' log."""
    if history is None or history.first_offset > 0 or history.damaged_from is not None:
        return None
    return sum(1 for b in history.brokers if b.broker == broker and b.kind == "registered")


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
        metadata_end=found.metadata.end_offset if found.metadata is not None else None,
        registrations=_registrations(found.metadata, found.broker),
        latest_timestamp=max(times, default=None),
        latest_epoch=max(epochs, default=-1),
    )


__all__ = ["BrokerLog", "Import", "import_evidence"]
