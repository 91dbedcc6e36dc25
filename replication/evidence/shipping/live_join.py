"""One micro-batch of shipped lines in, the events of every partition that changed by it out.

The same joining as `import`: the spool is imported, and a partition whose events are others than
before is written whole, under a higher trace generation, which replaces the older one in the fold.
So at any moment the answer is that of importing what has been shipped so far.

Bounds: what is kept are the lines that tell something (`compaction`) since the present leader of
their partition was elected, where all that came before is settled (`settled`). What a micro-batch
costs beside its own lines is a look at every partition's evidence, not its joining (`memory`).
"""

import hashlib
import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Any

from replication.evidence.clients.client_logs import AS_THEY_ARE, AckFields
from replication.evidence.collecting.collection import NoEvidence, Told
from replication.evidence.collecting.envelopes import NotALine, ShippedLine
from replication.evidence.event_dumps import write_events
from replication.evidence.importer import Import, import_evidence
from replication.evidence.joining.partition_evidence import PartitionEvidence
from replication.evidence.joining.partition_join import finished, identified
from replication.evidence.shipping.memory import WITHIN_MS, Fingerprints, Memory
from replication.evidence.shipping.settled import Base, settled, without_settled
from replication.evidence.shipping.silence import Heard, heard_of, newest_of, silent_brokers
from replication.evidence.shipping.spool import Spool, Taken
from replication.protocol.ground import wire
from replication.protocol.ground.events import Event, ReplicaLogObserved

Name = tuple[str, str, str, int]
STATE, CLOCK = "partitions.json", "clock"
# Each partition is asked in one of so many micro-batches whether it is settled.
SETTLED_IN_TURN = 20


@dataclass(slots=True)
class Joined:
    """What a micro-batch brought: what became of its lines, and of which partitions events were
    written. notes: what the import said of the evidence, by cluster. silent: by cluster the brokers
    from which nothing comes any more, and since when."""

    taken: Taken
    events: int = 0
    changed: list[Name] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    silent: dict[str, dict[int, str]] = field(default_factory=dict)
    heard: Heard = field(default_factory=dict)


@dataclass(slots=True)
class Known:
    """What is kept between two micro-batches: of each partition the fingerprint of what was written
    last and the base that its lines continue, when each host was heard of, the ids of topics that
    were first written without one, and by cluster the silent brokers, in words."""

    partitions: dict[str, str] = field(default_factory=dict)
    heard: Heard = field(default_factory=dict)
    nameless: dict[str, str] = field(default_factory=dict)
    bases: dict[str, dict[str, Any]] = field(default_factory=dict)
    silent: dict[str, dict[str, str]] = field(default_factory=dict)

    def base(self, key: str) -> Base | None:
        """Of a partition by its name in JSON."""
        told = self.bases.get(key)
        return None if told is None else Base.from_json(told)

    def bases_by_name(
        self, cluster_ids: Mapping[str, str]
    ) -> dict[str, dict[tuple[str, int], Base]]:
        """By the clusters' names and the topics'; none of topics of which several bore the name."""
        names = {cluster_id: name for name, cluster_id in cluster_ids.items()}
        written = Counter((c, t, p) for c, t, _, p in map(json.loads, self.partitions))
        found: dict[str, dict[tuple[str, int], Base]] = {}
        for key in self.bases:
            cluster_id, topic, _, partition = json.loads(key)
            if written[cluster_id, topic, partition] == 1:
                of_cluster = found.setdefault(names.get(cluster_id, cluster_id), {})
                of_cluster[topic, partition] = Base.from_json(self.bases[key])
        return found

    def newest(self, cluster: str) -> int:
        """When a digest of a cluster was made last, by its machine's clock, ms; 0: never."""
        own = (clocks for host, clocks in self.heard.items() if host.split("/", 1)[0] == cluster)
        return newest_of(own, "digest")

    def topic_id(self, name: Name, there: set[Name]) -> str:
        """By what the partition is called: "" where it was written before its topic's id was told,
        and nothing else is called so now. there: all that the import has."""
        cluster_id, topic, topic_id, partition = name
        before = (cluster_id, topic, "", partition)
        nameless = json.dumps(before) in self.partitions and before not in there
        if nameless and self.nameless.setdefault(json.dumps(before), topic_id) == topic_id:
            return ""
        return topic_id


@dataclass(frozen=True, slots=True)
class LiveJoin:
    """folder: where the spool and the fingerprints of what was written last lie. out: the folder
    of event files that the stream follows. cluster_ids: Kafka's cluster id by a cluster's name.

    A partition's identity must not change while lines come in, and most lines name no cluster: a
    cluster is called by its id here, else by its name, whatever start-up lines may say later. So is
    a topic that was written before its id was told: it stays without.
    silence_bound: as `silence.silent_hosts` has it. base_after: how old the election of a leader
    must be, seconds, before what lines said about the time before it is folded into a base; 0:
    never. ack_fields: as `shipped_lines` was told. zone: of the brokers' machines, in which their
    logs print the time; None: nobody said it. memory: by cluster, for as long as this lives.
    now: the clock of the job, in seconds since 1970.
    """

    folder: Path
    out: Path
    cluster_ids: Mapping[str, str] = field(default_factory=dict)
    silence_bound: float = 0.0
    base_after: float = 0.0
    ack_fields: AckFields | None = AS_THEY_ARE
    zone: tzinfo | None = None
    memory: dict[str, Memory] = field(default_factory=dict)
    now: Callable[[], float] = time.time

    def step(
        self,
        micro_batch_id: int,
        lines: Iterable[ShippedLine | NotALine],
        kafka_version: str | None = None,
    ) -> Joined:
        """Done again under the same number it writes the same. Raises OSError."""
        clock = self._clock(micro_batch_id)
        spool = Spool(self.folder / "spool", self.zone or UTC, clock)
        joined = Joined(spool.take(micro_batch_id, lines))
        known = self._known(micro_batch_id)
        bases = known.bases_by_name(self.cluster_ids)
        known.heard = joined.heard = heard_of(known.heard, joined.taken.heard, clock)
        chosen: list[Event] = []
        for cluster in spool.clusters() if joined.taken.kept else []:
            if cluster.name not in joined.taken.clusters:
                continue
            try:
                imported = import_evidence(
                    [cluster],
                    kafka_version=kafka_version,
                    generation=micro_batch_id + 1,
                    spread=self.memory.setdefault(cluster.name, Memory()).spread,
                    told=Told(self.ack_fields, time_zone=self.zone, laid_out=True),
                )
            except NoEvidence as error:
                joined.notes.append(f"{cluster.name}: {error}")
                continue
            silent = silent_brokers(imported.collection, cluster, known.heard, self.silence_bound)
            joined.silent[cluster.name] = silent
            known.silent[cluster.name] = {str(broker): words for broker, words in silent.items()}
            for partition in imported.partitions:
                partition.silent = silent
            chosen += self._changed(imported, cluster.name, known, joined, micro_batch_id)
            notes = [*imported.notes, *left_aside(imported)]
            joined.notes += [f"{cluster.name}: {note}" for note in notes]
        self.out.mkdir(parents=True, exist_ok=True)
        target = self.out / f"{micro_batch_id:010}.jsonl"
        target.unlink(missing_ok=True)
        if chosen:
            unfinished = self.out / f"_{target.name}"
            joined.events = write_events(unfinished, chosen)
            unfinished.replace(target)
        self._remember(micro_batch_id, known)
        spool.compact(micro_batch_id, bases)
        return joined

    def _changed(
        self, imported: Import, cluster: str, known: Known, joined: Joined, micro_batch_id: int
    ) -> list[Event]:
        """The events of each partition whose facts are not those written last."""
        result: list[Event] = []
        several = len({p.cluster_id for p in imported.partitions} - {""}) > 1
        if several:
            joined.notes.append(f"{cluster}: lines of several clusters came under this name")
        memory = self.memory[cluster]
        told = memory.told
        fingerprints = Fingerprints(imported.collection.unpacked.into, memory.last_lines)
        names = [self._name(cluster, p, several=several) for p in imported.partitions]
        there, written = set(names), known.partitions
        for index, (partition, name) in enumerate(zip(imported.partitions, names, strict=True)):
            topic_id = known.topic_id(name, there)
            name = (*name[:2], topic_id, name[3])
            key, evidence = json.dumps(name), fingerprints.of(partition)
            if (index + micro_batch_id) % SETTLED_IN_TURN == 0:
                self._settle(imported, partition, known, key, cluster)
            base = known.base(key)
            evidence += repr(base).encode()
            if key in written and told.get(key) == (evidence, written[key]):
                continue
            imported.partitions[index] = without_settled(partition, base)
            events = [named(event, name[0], topic_id) for event in imported.events_of(index)]
            fingerprint = _fingerprint(events)
            told[key] = evidence, fingerprint
            if written.get(key) != fingerprint:
                written[key] = fingerprint
                joined.changed.append(name)
                result += events
        memory.last_lines = fingerprints.last_lines
        return result

    def _settle(
        self, imported: Import, partition: PartitionEvidence, known: Known, key: str, cluster: str
    ) -> None:
        """Notes the base that the partition's lines continue now, if that is another one."""
        if not self.base_after:
            return
        before = known.newest(cluster) - int(self.base_after * 1000)
        trace = imported.trace_id, imported.generation

        def events_of(evidence: PartitionEvidence) -> list[Event]:
            return list(identified(finished(evidence), *trace))

        base = settled(partition, known.base(key), events_of, before)
        if base is not None:
            known.bases[key] = base.to_json()

    def _name(self, cluster: str, partition: PartitionEvidence, *, several: bool) -> Name:
        cluster_id = self.cluster_ids.get(cluster, cluster)
        if several and partition.cluster_id:
            cluster_id = partition.cluster_id
        return (cluster_id, partition.topic, partition.topic_id, partition.partition)

    def _known(self, micro_batch_id: int) -> Known:
        """What was kept before this micro-batch, done for the first time or again."""
        return self._read(self._state(micro_batch_id - 1))

    def known(self) -> Known:
        """What the newest micro-batch has left."""
        found = self._read(max(self.folder.glob(f"*.{STATE}"), default=self.folder / STATE))
        found.heard = heard_of(found.heard, {}, int(self.now() * 1000))
        return found

    def _read(self, path: Path) -> Known:
        if not path.exists():
            return Known()
        found = json.loads(path.read_text(encoding="utf-8"))
        return Known(**found) if "heard" in found else Known(found)

    def _clock(self, micro_batch_id: int) -> int:
        """The clock of the job, milliseconds, when the micro-batch was first done."""
        path = self.folder / f"{micro_batch_id:010}.{CLOCK}"
        if not path.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            for old in self.folder.glob(f"*.{CLOCK}"):
                old.unlink()
            unfinished = path.with_name(f".{path.name}")
            unfinished.write_text(str(int(self.now() * 1000)), encoding="utf-8")
            unfinished.replace(path)
        return int(path.read_text(encoding="utf-8"))

    def _remember(self, micro_batch_id: int, known: Known) -> None:
        path = self._state(micro_batch_id)
        unfinished = path.with_name(f".{path.name}")
        unfinished.write_text(json.dumps(asdict(known), sort_keys=True), encoding="utf-8")
        unfinished.replace(path)
        old = self._state(micro_batch_id - 2)
        old.unlink(missing_ok=True)

    def _state(self, micro_batch_id: int) -> Path:
        return self.folder / f"{micro_batch_id:010}.{STATE}"


def named(event: Event, cluster_id: str, topic_id: str | None = None) -> Event:
    """The event as one of that cluster, and of a topic of that id; its own id is derived from its
    content, so it changes too."""
    topic_id = event.topic_id if topic_id is None else topic_id
    if (event.cluster_id, event.topic_id) == (cluster_id, topic_id):
        return event
    changed = replace(event, cluster_id=cluster_id, topic_id=topic_id, event_id="")
    return replace(changed, event_id=wire.content_id(wire.to_row(changed)))


def left_aside(imported: Import) -> list[str]:
    """What of the shipped lines nobody reads, in words."""
    ignored = imported.collection.ignored
    if not ignored:
        return []
    of = f"{len(ignored)} file{'s' if len(ignored) > 1 else ''} of shipped lines"
    return [f"{of} left aside, such as {ignored[0].path}: {ignored[0].reason}"]


def _fingerprint(events: list[Event]) -> str:
    """Of what the events say, whichever import they are of and wherever they were read.

    That a running broker's log is the same later on is told again and again, and is no change; that
    it was read so long after another had grown that what it lacks counts as missing is one.
    """
    digest = hashlib.blake2b(digest_size=16)
    seen: dict[int, list[tuple[Any, int]]] = {}
    for event in events:
        plain = replace(event, event_id="", trace_id="", trace_generation=0, source=None)
        if isinstance(event.fact, ReplicaLogObserved) and event.fact.copy == "live":
            own, before = seen.setdefault(event.fact.replica, []), event.fact
            own.append((before, event.observed_at or 0))
            if len(own) > 1 and own[-2][0] == before:
                continue
        digest.update(wire.to_json(replace(plain, sequence=0)).encode())
    after = [
        (a, b, since.log_end_offset, within)
        for a in seen
        for b in seen
        for since, at in seen[b]
        for within in WITHIN_MS
        if a != b and seen[a][-1][1] - at >= within
    ]
    digest.update(repr(sorted(set(after))).encode())
    return digest.hexdigest()
