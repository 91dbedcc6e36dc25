"""Evidence in, events out: identity first, then joining, partition by partition."""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

from replication.evidence.collecting.attribution import collect
from replication.evidence.collecting.collection import NOTHING_TOLD, Collection, Spread, Told
from replication.evidence.collecting.inventory import inventory
from replication.evidence.collecting.observations import observations
from replication.evidence.joining.cluster_facts import ClusterFacts
from replication.evidence.joining.cluster_join import join_cluster
from replication.evidence.joining.one_cluster import INTERNAL
from replication.evidence.joining.partition_evidence import PartitionEvidence
from replication.evidence.joining.partition_join import finished, identified
from replication.evidence.joining.told_removals import ToldRemovals, told_removals
from replication.evidence.joining.without_records import WithoutRecords
from replication.evidence.log_directories.left_out import without_folders, without_segments
from replication.evidence.tools.metadata_quorum import QuorumReplica
from replication.evidence.unreadable import Unreadable
from replication.protocol.ground import events as ev

_MOST_NAMED = 20
# Cluster id, topic, topic id, partition.
Identity = tuple[str, str, str, int]


@dataclass(slots=True)
class Import:
    """The outcome of an import. partitions: joined, but for the last step of each. late_notes: of
    each partition by its index, once its events have been read; empty: the batches without a record
    of each partition by its identity, likewise; removals: what is known of lawful ones. files: by
    cluster the files that name none and are its."""

    collection: Collection
    clusters: list[ClusterFacts]
    partitions: list[PartitionEvidence]
    trace_id: str
    generation: int = 0
    incident: str = ""
    seen: dict[int, list[Unreadable]] = field(default_factory=dict)
    late_notes: dict[int, list[str]] = field(default_factory=dict)
    empty: dict[Identity, list[WithoutRecords]] = field(default_factory=dict)
    removals: dict[Identity, ToldRemovals] = field(default_factory=dict)
    files: dict[str, set[str]] = field(default_factory=dict)
    _last: tuple[PartitionEvidence, PartitionEvidence] | None = field(default=None, repr=False)

    def cluster_of(self, path: str) -> str | None:
        """The cluster that a file without a cluster's name is of; None where nothing tells."""
        return next((cluster for cluster, paths in self.files.items() if path in paths), None)

    @property
    def unreadable(self) -> list[Unreadable]:
        """Every place that could not be read, in the files' order."""
        found = dict.fromkeys(self.collection.unreadable)
        for index, partition in enumerate(self.partitions):
            if index not in self.seen:
                self.seen[index] = finished(partition).contents.unreadable
            found.update(dict.fromkeys(self.seen[index]))
        shown = self.collection.unpacked.shown
        named = {replace(u, path=shown(u.path), reason=shown(u.reason)) for u in found}
        return sorted(named, key=Unreadable.order)

    @property
    def notes(self) -> list[str]:
        """What was decided about the evidence as a whole, for the user."""
        return [self.collection.unpacked.shown(note) for note in self.collection.notes]

    @property
    def clocks_compare(self) -> bool:
        """Whether the times in brokers' logs may be held against those of clients."""
        return all(cluster.clocks_compare for cluster in self.clusters)

    @property
    def inventory(self) -> dict[str, Any]:
        """What was recognised and what was left aside, as the answer has it."""
        return inventory(self.collection)

    @property
    def observations(self) -> list[dict[str, Any]]:
        """What single lines tell of losses, as the answer has it."""
        return observations(self.collection)

    def nothing(self, topics: frozenset[str]) -> str | None:
        """Why no partition came out, None where one did. topics: those asked for, none: all."""
        if self.partitions:
            return None
        if topics:
            return self.no_topic(topics)
        if self.collection.event_dumps:
            return "event dumps hold events already: diagnose, stream.py and replay.py read them"
        named = [d.directory for d in self.collection.directories if d.directory.named]
        if named:
            lacks = [*without_segments(named[0]), *without_folders(named[0])]
            return f"no partition's log is in this evidence; {'; '.join(lacks)}"
        return (
            "no topic partition found in this evidence: it is Kafka's, but names no "
            "partition (only __cluster_metadata, or logs without a line about one). "
            "Hand over server.log and state-change.log of all brokers, whole, and "
            "their log directories" + "".join(f"; {aside}" for aside in self._left_aside()[:3])
        )

    def no_topic(self, asked: frozenset[str]) -> str:
        """That none of these topics is here, and which there are."""
        found = self.collection
        named = {p.topic for d in found.directories for p in d.directory.partitions}
        named |= {lines.about[1] for log in found.found_logs for lines in log.lines}
        known = sorted(named - INTERNAL)
        more = f" and {len(known) - _MOST_NAMED} more" if known[_MOST_NAMED:] else ""
        there = f"; there are {', '.join(known[:_MOST_NAMED])}{more}" if known else ""
        return f"no topic {', '.join(sorted(asked))} in this evidence{there}"

    def _left_aside(self) -> list[str]:
        found = self.collection
        told = [f"{u.path}: {u.reason}" for u in [*found.unreadable, *found.ignored]]
        return [found.unpacked.shown(each) for each in dict.fromkeys(told)]

    def events(self) -> Iterator[ev.Event]:
        """All events, each partition's in sequence, with their content-derived ids."""
        for index in range(len(self.partitions)):
            yield from self.events_of(index)

    def finished(self, partition: PartitionEvidence) -> PartitionEvidence:
        """One of the partitions with the last step done; the newest is kept, to be asked again."""
        if self._last is None or self._last[0] is not partition:
            self._last = (partition, finished(partition))
        return self._last[1]

    def events_of(self, index: int) -> Iterator[ev.Event]:
        """The events of one of the partitions; nothing of it stays in memory afterwards."""
        partition = self.finished(self.partitions[index])
        self.seen[index] = partition.contents.unreadable
        identity = (
            partition.cluster_id, partition.topic, partition.topic_id, partition.partition,
        )  # fmt: skip
        self.empty[identity] = partition.contents.empty
        self.removals[identity] = told_removals(partition)
        yield from identified(partition, self.trace_id, self.generation, self.incident)
        self.late_notes[index] = [partition.shown(note) for note in partition.notes]


def import_evidence(
    paths: Iterable[Path],
    *,
    kafka_version: str | None = None,
    topics: frozenset[str] = frozenset(),
    generation: int = 0,
    incident: str = "",
    spread: Spread = map,
    facts_folder: Path | None = None,
    payload_id_in: str | None = None,
    told: Told = NOTHING_TOLD,
) -> Import:
    """Reads the evidence at or below paths and joins it.

    Raises collection.NoEvidence when there is none. kafka_version: judge by this release, whatever
    the evidence names (a note says so). topics: only these, all where none
    is named. incident: what to call it. spread,
    facts_folder, told: as `collect` takes them. payload_id_in: where in the records the payload ids
    of clients' logs are ("key", "value", "header:NAME"), if told.
    """
    collection = collect(paths, spread, facts_folder, told)
    clusters: list[ClusterFacts] = []
    partitions: list[PartitionEvidence] = []
    ids = sorted(
        {d.cluster_id for d in collection.directories}
        | {log.cluster_id for log in collection.logs if not log.cluster_unknown}
        | {dump.cluster_id for dump in collection.dumps}
        | set(collection.zookeeper)
    )
    if len(ids) == 2 and ids[0] == "":
        _adopt_without_cluster_id(collection, ids[1])
        ids = ids[1:]
    files = _files_by_cluster(collection, ids or [""])
    for cluster_id in ids or [""]:
        joined = join_cluster(
            collection,
            cluster_id,
            kafka_version,
            files=files.get(cluster_id, set()),
            only_topics=topics,
        )
        clusters.append(joined.facts)
        partitions += joined.partitions
        collection.notes += joined.notes
        collection.unreadable += joined.unreadable
    for partition in partitions:
        partition.payload_id_in = payload_id_in
        partition.clock_bound = told.clock_bound
    trace_id = _trace_id(collection)
    return Import(
        collection, clusters, partitions, trace_id, generation, incident, files=files
    )  # fmt: skip


def _files_by_cluster(collection: Collection, ids: list[str]) -> dict[str, set[str]]:
    """Per cluster the client logs and tool outputs that are its: they name no cluster, so where
    several are at hand each belongs to the one whose brokers' evidence lies nearest to it."""
    paths = {a.path for a in collection.acknowledgements}
    paths |= {c.path for c in collection.consumptions}
    paths |= {d.path for d in collection.descriptions}
    paths |= {listed.path for listed in collection.log_dirs}
    paths |= {q.path for q in collection.quorum if isinstance(q, QuorumReplica) or not q.cluster_id}
    if len(ids) == 1:
        return {ids[0]: paths}
    places: dict[str, list[tuple[str, ...]]] = {}
    shown = collection.unpacked.place
    for d in collection.directories:
        places.setdefault(d.cluster_id, []).append(shown(d.directory.path).parts)
    for log in (log for log in collection.logs if not log.cluster_unknown):
        places.setdefault(log.cluster_id, []).append(shown(Path(log.path)).parts)
    result: dict[str, set[str]] = {}
    for path in sorted(paths):
        parts = shown(Path(path)).parts
        near = {i: max(_shared(parts, p) for p in found) for i, found in places.items()}
        best = [i for i, depth in near.items() if depth == max(near.values())]
        if len(best) == 1:
            result.setdefault(best[0], set()).add(path)
        else:
            collection.notes.append(
                f"{path}: it names no cluster, and the evidence of several clusters is "
                "equally near to it, so it was not used"
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


def _adopt_without_cluster_id(collection: Collection, cluster_id: str) -> None:
    """Evidence without a cluster id beside exactly one named cluster is taken to be of it."""
    for directory in collection.directories:
        directory.cluster_id = directory.cluster_id or cluster_id
    for log in (log for log in collection.logs if not log.cluster_unknown):
        log.cluster_id = log.cluster_id or cluster_id
    for dump in collection.dumps:
        dump.cluster_id = dump.cluster_id or cluster_id
    if "" in collection.zookeeper:
        collection.zookeeper.setdefault(cluster_id, collection.zookeeper.pop(""))


def _trace_id(collection: Collection) -> str:
    """Derived from what was read, not from where it lay."""
    digest = hashlib.sha256()
    for log in sorted((log.broker or -1, log.count, log.cluster_id) for log in collection.logs):
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
    for dump in sorted(
        (d.broker, d.cluster_id, s.fingerprint) for d in collection.dumps for s in d.segments
    ):
        digest.update(repr(dump).encode())
    said: Iterable[Any] = chain(
        collection.acknowledgements,
        collection.consumptions,
        collection.descriptions,
        collection.log_dirs,
        collection.quorum,
    )
    for each in said:
        digest.update(repr(replace(each, path="")).encode())
    for cluster_id, history in sorted(collection.histories.items()):
        known = (cluster_id, history.first_offset, history.end_offset, history.epoch_starts)
        digest.update(repr(known).encode())
    return "import-" + digest.hexdigest()[:16]
