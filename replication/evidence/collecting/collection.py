"""Reads every artefact below the folders a user hands over, known by content, not by name."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, tzinfo
from functools import partial
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

from replication.evidence.broker_logs.births import Births
from replication.evidence.broker_logs.broker_log import LogLineFact, is_broker_log, read_broker_log
from replication.evidence.broker_logs.excerpts import LARGEST, read_excerpt
from replication.evidence.broker_logs.log_layouts import stamps_name_zone
from replication.evidence.broker_logs.packed_facts import PackedLines, Packer
from replication.evidence.broker_logs.telling_lines import Telling
from replication.evidence.broker_logs.writers import Writers
from replication.evidence.clients.client_logs import (
    AS_THEY_ARE,
    AckFields,
    Acknowledgement,
    Consumption,
    client_log_kind,
    near_miss,
    read_acknowledgements,
    read_consumptions,
)
from replication.evidence.collecting.archives import Unpacked
from replication.evidence.collecting.finding import (
    cannot_be_opened,
    find,
    is_binary,
    is_of_distribution,
    why_ignored,
)
from replication.evidence.event_dumps import is_event_dump
from replication.evidence.log_directories.digest_lines import (
    directories_of,
    is_digest_lines,
    read_digest_lines,
)
from replication.evidence.log_directories.digest_reader import (
    is_digest,
    read_digest,
)
from replication.evidence.log_directories.log_directory import (
    LogDirectory,
    read_log_directory,
)
from replication.evidence.metadata_log.history import MetadataHistory
from replication.evidence.opening import READ_ERRORS, open_unpacked, read_up_to
from replication.evidence.tools.dumped_logs import SegmentDump, read_dumped_segments
from replication.evidence.tools.metadata_dump import read_metadata_dump
from replication.evidence.tools.tool_output import (
    DUMP_LOG,
    LOG_DIRS,
    METADATA_DUMP,
    METADATA_QUORUM,
    LogDirectoryError,
    LogDirectorySize,
    QuorumReplica,
    QuorumStatus,
    read_log_dirs,
    read_metadata_quorum,
    tool_output_kind,
)
from replication.evidence.tools.topic_descriptions import (
    PartitionDescription,
    TopicDescription,
    is_topic_description,
    read_topic_descriptions,
)
from replication.evidence.unreadable import Unreadable
from replication.evidence.zookeeper.files import (
    ZnodeChange,
    is_zookeeper_file,
    read_zookeeper_file,
)
from replication.evidence.zookeeper.history import ZooKeeperHistory

# Log directories up to this size have every batch's CRC checked; larger ones only their headers.
VERIFIED_BYTES = 256 << 20
# Applies a function to each of many files or partitions, in their order: `map`, or a cluster's.
Spread = Callable[..., Iterable[Any]]
_TOOLS = {
    METADATA_DUMP: "kafka-dump-log of the metadata log",
    DUMP_LOG: "kafka-dump-log",
    LOG_DIRS: "kafka-log-dirs",
    METADATA_QUORUM: "kafka-metadata-quorum",
}
# So long a start waits for ZooKeeper, at most, before it names its cluster.
_NAMED_WITHIN = 120_000
# Facts about no topic partition that joining looks at.
PROCESS_KINDS = frozenset(
    ("process_started", "process_signalled", "stopping", "stopped_cleanly", "clean_shutdown_found",
     "unclean_recovery", "broker_epoch_granted", "broker_shutdown_granted", "kafka_version",
     "settings", "cluster_settings_changed", "topic_settings_changed", "topic_created",
     "topic_removed")
)  # fmt: skip


@dataclass(slots=True)
class BrokerDirectory:
    """A log directory and the broker and cluster it belongs to."""

    broker: int
    cluster_id: str
    directory: LogDirectory
    metadata: MetadataHistory | None
    known_by: str


@dataclass(slots=True)
class BrokerDump:
    """Segments that kafka-dump-log printed of one broker's log directories, from one file."""

    broker: int
    cluster_id: str
    segments: list[SegmentDump]


@dataclass(slots=True)
class BrokerLog:
    """A broker's text log: whose it is, and which facts it holds.

    clusters: (since when, cluster id) of each start that prints it.
    processes: facts about the process itself or a whole topic, as far as joining needs them.
    lines: those about topic partitions, packed. writers: the brokers that lines name, None for
    lines that name none, by their first line. topic_ids: (writer, topic, topic id) -> when it was
    first printed; in_lines those of them that stand in lines about partitions. homes: (writer,
    log directory on its machine) where it created logs. first_at, last_at: ms since 1970, as lines
    print them.
    telling: lines that say something of losses by themselves. ahead: milliseconds by which its
    clock is ahead of UTC, None where that was not found. names_zone: its stamps say their zone.
    several: several brokers wrote it;
    nobodys: how many of its lines may be of any of them. births: signs of topics that were created
    anew. damaged: some lines of it could not be read.
    """

    path: str
    broker: int | None = None
    cluster_id: str = ""
    clusters: list[tuple[int, str]] = field(default_factory=list)
    known_by: str = ""
    count: int = 0
    processes: list[LogLineFact] = field(default_factory=list)
    lines: list[PackedLines] = field(default_factory=list)
    writers: list[int | None] = field(default_factory=list)
    topic_ids: dict[tuple[int | None, str, str], int | None] = field(default_factory=dict)
    in_lines: set[tuple[int | None, str, str]] = field(default_factory=set)
    homes: set[tuple[int | None, str]] = field(default_factory=set)
    first_at: int | None = None
    last_at: int | None = None
    telling: list[LogLineFact] = field(default_factory=list)
    births: Births = field(default_factory=Births)
    ahead: int | None = None
    names_zone: bool = False
    several: bool = False
    nobodys: int = 0
    damaged: bool = False

    @property
    def speaks_for_one(self) -> bool:
        """Whether a line that names no broker can only be of this log's."""
        return not self.several and len({w for w in self.writers if w is not None}) < 2


@dataclass(slots=True)
class Collection:
    """Everything that was found, read.

    found_directories, found_logs and found_dumps: before it is known whose they are. log_dirs,
    quorum: what those tools printed. recognised: path -> what kind of file, of those that are
    neither broker logs nor log directories. digest_lines: until all are read. zookeeper_steps,
    zookeeper: what ZooKeeper's files hold, and by cluster id what that comes to. ignored: what was
    left aside, and why. unpacked: where archives were unpacked to; workplace keeps that as long as
    it is needed. time_zone: of the brokers' machines, where the user said it; all_producers: as the
    user said.
    """

    files: int = 0
    directories: list[BrokerDirectory] = field(default_factory=list)
    logs: list[BrokerLog] = field(default_factory=list)
    acknowledgements: list[Acknowledgement] = field(default_factory=list)
    consumptions: list[Consumption] = field(default_factory=list)
    acknowledgement_logs: int = 0
    consumption_logs: int = 0
    descriptions: list[TopicDescription | PartitionDescription] = field(default_factory=list)
    histories: dict[str, MetadataHistory] = field(default_factory=dict)
    digest_lines: list[dict[str, Any]] = field(default_factory=list)
    event_dumps: list[Path] = field(default_factory=list)
    metadata_dumps: list[MetadataHistory] = field(default_factory=list)
    dumps: list[BrokerDump] = field(default_factory=list)
    log_dirs: list[LogDirectorySize | LogDirectoryError] = field(default_factory=list)
    quorum: list[QuorumStatus | QuorumReplica] = field(default_factory=list)
    unreadable: list[Unreadable] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    found_directories: list[LogDirectory] = field(default_factory=list)
    found_logs: list[BrokerLog] = field(default_factory=list)
    found_dumps: list[SegmentDump] = field(default_factory=list)
    ignored: list[Unreadable] = field(default_factory=list)
    recognised: dict[str, str] = field(default_factory=dict)
    near_misses: list[str] = field(default_factory=list)
    zookeeper_steps: list[ZnodeChange] = field(default_factory=list)
    zookeeper: dict[str, ZooKeeperHistory] = field(default_factory=dict)
    unpacked: Unpacked = field(default_factory=lambda: Unpacked(Path("/nonexistent")))
    workplace: TemporaryDirectory[str] | None = None
    time_zone: tzinfo | None = None
    all_producers: bool = False

    def take(self, reading: "Collection") -> None:
        """Adds what another file gave."""
        for each in fields(self):
            mine, more = getattr(self, each.name), getattr(reading, each.name)
            if isinstance(mine, list):
                mine.extend(more)
            elif isinstance(mine, dict):
                mine.update(more)
            elif isinstance(mine, int):
                setattr(self, each.name, mine + more)


class NoEvidence(ValueError):
    """Nothing that was handed over is evidence of a Kafka cluster."""


@dataclass(frozen=True, slots=True)
class Told:
    """What the user says where the files do not.

    ack_fields: how an acknowledgement log's fields are named; None: a file that is nearly one is
    none. brokers: per file or folder the broker it is of. time_zone: that of the brokers'
    machines, in which their logs print the time. all_producers: the acknowledgement logs cover
    every producer.
    """

    ack_fields: AckFields | None = AS_THEY_ARE
    brokers: Mapping[Path, int] = field(default_factory=dict)
    time_zone: tzinfo | None = None
    all_producers: bool = False


NOTHING_TOLD = Told()


def read_all(
    roots: list[Path], spread: Spread, facts_folder: Path | None, told: Told
) -> Collection:
    """Everything at or below roots, read; whose it is comes later.

    Raises NoEvidence when a path does not exist.
    """
    for root in roots:
        if not root.exists():
            raise NoEvidence(f"{root}: no such file or folder")
    place = TemporaryDirectory(prefix="replication-analyzer-", dir=facts_folder)
    result = Collection(unpacked=Unpacked(Path(place.name).resolve()), workplace=place)
    result.time_zone, result.all_producers = told.time_zone, told.all_producers
    found = find(roots, result.unpacked)
    result.unreadable += found.unreadable
    result.ignored += found.ignored
    result.found_directories += _read_directories(found.directories, spread)
    for directory in result.found_directories:
        result.unreadable += directory.unreadable
        for partition in directory.partitions:
            result.unreadable += partition.unreadable
            result.files += len(partition.segments)
    reader = partial(read_file, facts_folder=facts_folder, told=told)
    for reading in spread(reader, found.files):
        result.take(reading)
    seen = directories_of(result.digest_lines, result.unpacked.into)
    result.found_directories += seen
    result.unreadable += [u for directory in seen for u in directory.unreadable]
    result.digest_lines = []
    if result.near_misses:
        raise NoEvidence("; ".join(result.unpacked.shown(text) for text in result.near_misses))
    return result


def _read_directories(folders: list[Path], spread: Spread) -> list[LogDirectory]:
    """Small log directories one by one, large ones partition by partition."""
    small = [folder for folder in folders if _is_small(folder)]
    read = dict(zip(small, spread(_read_and_verify, small), strict=True))
    for folder in folders:
        if folder not in read:
            read[folder] = read_log_directory(folder, spread=spread)
    return [read[folder] for folder in folders]


def _read_and_verify(folder: Path) -> LogDirectory:
    return read_log_directory(folder, verify_crc=True)


def _is_small(directory: Path) -> bool:
    """Whether every byte of the log directory can be checked without anybody waiting for it."""
    total = 0
    for path in directory.rglob("*.log"):
        total += path.lstat().st_size
        if total > VERIFIED_BYTES:
            return False
    return True


def read_file(
    path: Path, facts_folder: Path | None = None, told: Told = NOTHING_TOLD
) -> Collection:
    """What one file gives that is not part of a log directory."""
    result = Collection(files=1)
    ack_fields, zone = told.ack_fields, told.time_zone or UTC
    closed = cannot_be_opened(path)
    if closed is not None:
        result.unreadable.append(closed)
    elif is_digest(path):
        directory = read_digest(path)
        result.found_directories.append(directory)
        result.unreadable += directory.unreadable
        for partition in directory.partitions:
            result.unreadable += partition.unreadable
    elif is_digest_lines(path):
        _sort(read_digest_lines(path), result.digest_lines, result)
        result.recognised[str(path)] = "lines of a digest"
    elif is_zookeeper_file(path):
        _sort(read_zookeeper_file(path), result.zookeeper_steps, result)
        result.recognised[str(path)] = "ZooKeeper snapshot or transaction log"
    elif is_event_dump(path):
        result.event_dumps.append(path)
    elif is_binary(path) or is_of_distribution(path):
        result.ignored.append(Unreadable(str(path), "file", why_ignored(path)))
    elif not (
        _take_client_log(path, ack_fields or AS_THEY_ARE, result) or _take_tools(path, result)
    ):
        if is_broker_log(path):
            names_zone = stamps_name_zone(path)
            found = _read_log(path, _with_excerpts(path, zone), facts_folder, result.unreadable)
            if not found.speaks_for_one:
                found = _read_log_of_several(path, zone, facts_folder)
            found.names_zone = names_zone
            result.found_logs.append(found)
        elif is_topic_description(path):
            _sort(read_topic_descriptions(path), result.descriptions, result)
            result.recognised[str(path)] = "output of kafka-topics"
        elif ack_fields is not None and (near := near_miss(path, ack_fields)):
            result.near_misses.append(f"{path}: {near}")
        elif excerpt := _excerpt(path, headed=True):
            result.found_logs.append(_read_log(path, excerpt, facts_folder, result.unreadable))
        else:
            result.ignored.append(Unreadable(str(path), "file", why_ignored(path)))
    return result


def _with_excerpts(path: Path, zone: tzinfo) -> Iterator[LogLineFact | Unreadable]:
    """A broker log's facts, and those of lines without a header in a file that may be pasted."""
    told: set[int] = set()
    for fact in read_broker_log(path, time_zone=zone):
        if isinstance(fact, LogLineFact):
            told.add(fact.line)
        yield fact
    yield from (fact for fact in _excerpt(path, headed=False) if fact.line not in told)


def _excerpt(path: Path, *, headed: bool) -> list[LogLineFact]:
    """What lines say that a reader of whole logs leaves out; nothing where the file is large."""
    try:
        with open_unpacked(path) as stream:
            if len(read_up_to(stream, LARGEST + 1)) > LARGEST:
                return []
    except READ_ERRORS:
        return []  # Who reads it as a log says so.
    return list(read_excerpt(path, headed=headed))


def _take_client_log(path: Path, names: AckFields, result: Collection) -> bool:
    """Reads the file where it is a client's log."""
    kind = client_log_kind(path, names)
    if kind == "acknowledgements":
        result.acknowledgement_logs += 1
        _sort(read_acknowledgements(path, names), result.acknowledgements, result)
        if not result.acknowledgements and result.unreadable:
            first = result.unreadable[0]
            result.near_misses.append(
                f"{path}: no line of it can be used; {first.where}: "
                f"{first.reason} (--ack-fields says what its fields mean)"
            )
    elif kind == "consumption":
        result.consumption_logs += 1
        _sort(read_consumptions(path, names), result.consumptions, result)
    if kind is not None:
        result.recognised[str(path)] = (
            "acknowledgement log" if kind == "acknowledgements" else "consumption log"
        )
    return kind is not None


def _take_tools(path: Path, result: Collection) -> bool:
    """Reads the file where one of Kafka's tools printed it."""
    output = tool_output_kind(path)
    if output == METADATA_DUMP:
        result.metadata_dumps.append(read_metadata_dump(path))
    elif output == DUMP_LOG:
        result.found_dumps, result.unreadable, result.notes = read_dumped_segments(path)
    elif output == LOG_DIRS:
        _sort(read_log_dirs(path), result.log_dirs, result)
    elif output == METADATA_QUORUM:
        _sort(read_metadata_quorum(path), result.quorum, result)
    if output is not None:
        result.recognised[str(path)] = f"output of {_TOOLS[output]}"
    return output is not None


def _sort(read: Iterable[Any], kept: list[Any], result: Collection) -> None:
    """What was read to what is kept, and what could not be to the unreadable."""
    for item in read:
        (result.unreadable if isinstance(item, Unreadable) else kept).append(item)


def _read_log(
    path: Path,
    facts: Iterable[LogLineFact | Unreadable],
    facts_folder: Path | None,
    unreadable: list[Unreadable],
) -> BrokerLog:
    """One broker log, its facts sorted by what joining needs of them."""
    log = BrokerLog(str(path))
    packer = Packer(str(path), facts_folder)
    votes: Counter[int] = Counter()
    writers: dict[int | None, None] = {}
    telling = Telling()
    for fact in facts:
        if isinstance(fact, Unreadable):
            unreadable.append(fact)
            log.damaged = True
            continue
        log.count += 1
        telling.take(fact)
        if fact.at is not None:
            log.first_at = fact.at if log.first_at is None else min(log.first_at, fact.at)
            log.last_at = fact.at if log.last_at is None else max(log.last_at, fact.at)
        writers[fact.broker] = None
        log.nobodys += fact.broker is None
        if fact.broker is not None:
            votes[fact.broker] += 1
        if fact.partition is None:
            _take_process_fact(log, fact)
        if fact.topic is None:
            continue
        printed = fact.fields.get("topic_id")
        if printed:
            key = (fact.broker, fact.topic, str(printed))
            first = log.topic_ids.get(key)
            if key not in log.topic_ids or (
                fact.at is not None and (first is None or fact.at < first)
            ):
                log.topic_ids[key] = fact.at
            if fact.partition is not None:
                log.in_lines.add(key)
        if fact.partition is not None:
            packer.add(fact)
            log.births.take(fact)
        if fact.kind == "log_created":
            log.homes.add((fact.broker, _home(fact)))
    log.lines = packer.done()
    log.telling = telling.lines
    log.writers = list(writers)
    log.broker = votes.most_common(1)[0][0] if votes else None
    return log


def _read_log_of_several(path: Path, zone: tzinfo, facts_folder: Path | None) -> BrokerLog:
    """A broker log once more in which lines name several brokers: each line with its writer."""
    writers = Writers()
    for fact in _with_excerpts(path, zone):
        if isinstance(fact, LogLineFact):
            writers.learn(fact)
    log = _read_log(path, writers.resolved(_with_excerpts(path, zone)), facts_folder, [])
    # No line is of a broker because most others are.
    log.broker = None
    log.several = True
    return log


def _home(fact: LogLineFact) -> str:
    """The log directory in which a log was created; newer lines name the partition's own."""
    directory = PurePosixPath(str(fact.fields["directory"]))
    own = directory.name == f"{fact.topic}-{fact.partition}"
    return str(directory.parent if own else directory)


def _take_process_fact(log: BrokerLog, fact: LogLineFact) -> None:
    if fact.kind == "cluster_id":
        log.cluster_id = log.cluster_id or str(fact.fields["cluster_id"])
        if fact.at is not None:
            log.clusters.append((_begun(log, fact.at), str(fact.fields["cluster_id"])))
    elif fact.kind in PROCESS_KINDS:
        log.processes.append(fact)


def _begun(log: BrokerLog, named: int) -> int:
    """When the start began that named its cluster then."""
    starts = (f.at for f in reversed(log.processes) if f.kind == "process_started")
    begun = next(starts, None)
    return named if begun is None or not 0 <= named - begun <= _NAMED_WITHIN else begun
