"""Finds and reads every artefact below the folders a user hands over, by content, not by name."""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

from replication.evidence.broker_logs.broker_log import LogLineFact, is_broker_log, read_broker_log
from replication.evidence.broker_logs.packed_facts import PackedLines, Packer
from replication.evidence.clients.client_logs import (
    Acknowledgement,
    Consumption,
    client_log_kind,
    read_acknowledgements,
    read_consumptions,
)
from replication.evidence.collecting.owners import TRAILING_NUMBER, Owner, Surroundings
from replication.evidence.event_dumps import is_event_dump
from replication.evidence.log_directories.digest_reader import (
    is_digest,
    read_digest,
    restore_cluster_metadata,
)
from replication.evidence.log_directories.log_directory import (
    LogDirectory,
    find_log_directories,
    read_log_directory,
)
from replication.evidence.log_directories.small_files import MetaProperties
from replication.evidence.metadata_log.cluster_metadata import (
    MetadataHistory,
    longest_history,
    read_cluster_metadata,
)
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

# Log directories up to this size have every batch's CRC checked; larger ones only their headers.
VERIFIED_BYTES = 256 << 20
PARTITION_FOLDER = re.compile(r"^(.+)-(\d+)(\.[0-9a-f]{32}-(delete|future|stray))?$")
# Applies a function to each of many files or partitions, in their order: `map`, or a cluster's.
Spread = Callable[..., Iterable[Any]]
# Facts about no topic that joining looks at.
PROCESS_KINDS = frozenset(
    ("process_started", "process_signalled", "stopping", "stopped_cleanly", "clean_shutdown_found",
     "unclean_recovery", "broker_epoch_granted", "broker_shutdown_granted", "kafka_version",
     "settings")
)  # fmt: skip
SEGMENT_PARTS = re.compile(
    r"\.(log|index|timeindex|txnindex|snapshot|checkpoint|deleted|swap|cleaned|lock|tmp)$"
)
DIRECTORY_FILES = frozenset(
    (
        "meta.properties", "replication-offset-checkpoint", "recovery-point-offset-checkpoint",
        "log-start-offset-checkpoint", "cleaner-offset-checkpoint", ".kafka_cleanshutdown",
        "bootstrap.checkpoint", ".lock", "quorum-state", "leader-epoch-checkpoint",
        "partition.metadata",
    )
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

    processes: facts about the process itself, as far as joining needs them. lines: those about
    topic partitions, packed. writers: the brokers that lines name, None for lines that name none,
    by their first line. topic_ids: (writer, topic, topic id) -> when it was first printed; in_lines
    those of them that stand in lines about partitions. homes: (writer, log directory on its
    machine) where it created logs.
    """

    path: str
    broker: int | None = None
    cluster_id: str = ""
    known_by: str = ""
    count: int = 0
    processes: list[LogLineFact] = field(default_factory=list)
    lines: list[PackedLines] = field(default_factory=list)
    writers: list[int | None] = field(default_factory=list)
    topic_ids: dict[tuple[int | None, str, str], int | None] = field(default_factory=dict)
    in_lines: set[tuple[int | None, str, str]] = field(default_factory=set)
    homes: set[tuple[int | None, str]] = field(default_factory=set)


@dataclass(slots=True)
class Collection:
    """Everything that was found, read.

    found_directories, found_logs and found_dumps: before it is known whose they are. log_dirs,
    quorum: what those tools printed.
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

    def take(self, reading: "Collection") -> None:
        """Adds what another file gave."""
        for each in fields(self):
            mine, more = getattr(self, each.name), getattr(reading, each.name)
            if isinstance(mine, list):
                mine.extend(more)
            elif isinstance(mine, int):
                setattr(self, each.name, mine + more)


class NoEvidence(ValueError):
    """Nothing that was handed over is evidence of a Kafka cluster."""


def collect(
    paths: Iterable[Path], spread: Spread = map, facts_folder: Path | None = None
) -> Collection:
    """Reads all evidence at or below paths.

    spread: applies a function to many files or partitions, as `map` does, perhaps on many machines;
    answers in the same order. facts_folder: where facts of broker logs are kept meanwhile, in
    memory without. Raises NoEvidence when a path does not exist or nothing in them is evidence.
    """
    roots = list(paths)
    for root in roots:
        if not root.exists():
            raise NoEvidence(f"{root}: no such file or folder")
    result = Collection()
    folders = find_log_directories([r for r in roots if r.is_dir()])
    result.found_directories += _read_directories(folders, spread)
    for directory in result.found_directories:
        result.unreadable += directory.unreadable
        for partition in directory.partitions:
            result.unreadable += partition.unreadable
            result.files += len(partition.segments)
    reader = partial(read_file, facts_folder=facts_folder)
    for reading in spread(reader, _files(roots, folders)):
        result.take(reading)
    _attribute(result, roots, spread)
    if not (
        result.directories
        or result.logs
        or result.dumps
        or result.event_dumps
        or result.descriptions
        or result.acknowledgement_logs
        or result.consumption_logs
    ):
        named = ", ".join(str(r) for r in roots)
        raise NoEvidence(
            f"{named}: no evidence of a Kafka cluster found (looked at {result.files} files for "
            "broker logs, log directories, digests, acknowledgement logs, event dumps)"
            + "".join(f"; {note}" for note in result.notes[:3])
        )
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
        total += path.stat().st_size
        if total > VERIFIED_BYTES:
            return False
    return True


def _files(roots: list[Path], directories: list[Path]) -> list[Path]:
    """Files that are not part of a log directory's own machinery, sorted."""
    own = {d.resolve() for d in directories}
    found: dict[Path, Path] = {}
    for root in roots:
        for path in [root] if root.is_file() else sorted(root.rglob("*")):
            if not path.is_file() or path.is_symlink():
                continue
            parent = path.parent.resolve()
            if parent in own and path.name in DIRECTORY_FILES:
                continue
            if (
                parent.parent in own
                and PARTITION_FOLDER.match(parent.name)
                and (SEGMENT_PARTS.search(path.name) or path.name in DIRECTORY_FILES)
            ):
                continue
            found.setdefault(path.resolve(), path)
    return sorted(found.values())


def read_file(path: Path, facts_folder: Path | None = None) -> Collection:
    """What one file gives that is not part of a log directory."""
    result = Collection(files=1)
    if is_digest(path):
        directory = read_digest(path)
        result.found_directories.append(directory)
        result.unreadable += directory.unreadable
        for partition in directory.partitions:
            result.unreadable += partition.unreadable
    elif is_event_dump(path):
        result.event_dumps.append(path)
    elif (kind := client_log_kind(path)) == "acknowledgements":
        result.acknowledgement_logs += 1
        for item in read_acknowledgements(path):
            if isinstance(item, Unreadable):
                result.unreadable.append(item)
            else:
                result.acknowledgements.append(item)
    elif kind == "consumption":
        result.consumption_logs += 1
        for seen in read_consumptions(path):
            if isinstance(seen, Unreadable):
                result.unreadable.append(seen)
            else:
                result.consumptions.append(seen)
    elif (output := tool_output_kind(path)) == METADATA_DUMP:
        result.metadata_dumps.append(read_metadata_dump(path))
    elif output == DUMP_LOG:
        result.found_dumps, result.unreadable, result.notes = read_dumped_segments(path)
    elif output == LOG_DIRS:
        for listed in read_log_dirs(path):
            if isinstance(listed, Unreadable):
                result.unreadable.append(listed)
            else:
                result.log_dirs.append(listed)
    elif output == METADATA_QUORUM:
        for member in read_metadata_quorum(path):
            if isinstance(member, Unreadable):
                result.unreadable.append(member)
            else:
                result.quorum.append(member)
    elif is_broker_log(path):
        result.found_logs.append(_read_log(path, facts_folder, result.unreadable))
    elif is_topic_description(path):
        for described in read_topic_descriptions(path):
            if isinstance(described, Unreadable):
                result.unreadable.append(described)
            else:
                result.descriptions.append(described)
    return result


def _read_log(path: Path, facts_folder: Path | None, unreadable: list[Unreadable]) -> BrokerLog:
    """One broker log, its facts sorted by what joining needs of them."""
    log = BrokerLog(str(path))
    packer = Packer(str(path), facts_folder)
    votes: Counter[int] = Counter()
    writers: dict[int | None, None] = {}
    for fact in read_broker_log(path):
        if isinstance(fact, Unreadable):
            unreadable.append(fact)
            continue
        log.count += 1
        writers[fact.broker] = None
        if fact.broker is not None:
            votes[fact.broker] += 1
        if fact.topic is None:
            _take_process_fact(log, fact)
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
        if fact.kind == "log_created":
            log.homes.add((fact.broker, _home(fact)))
    log.lines = packer.done()
    log.writers = list(writers)
    log.broker = votes.most_common(1)[0][0] if votes else None
    return log


def _home(fact: LogLineFact) -> str:
    """The log directory in which a log was created; newer lines name the partition's own."""
    directory = PurePosixPath(str(fact.fields["directory"]))
    own = directory.name == f"{fact.topic}-{fact.partition}"
    return str(directory.parent if own else directory)


def _take_process_fact(log: BrokerLog, fact: LogLineFact) -> None:
    if fact.kind == "cluster_id":
        log.cluster_id = log.cluster_id or str(fact.fields["cluster_id"])
    elif fact.kind in PROCESS_KINDS:
        log.processes.append(fact)


def _attribute(result: Collection, roots: list[Path], spread: Spread) -> None:
    """Says of each directory and log which broker of which cluster it is of."""
    directories, logs = result.found_directories, result.found_logs
    by_folder: dict[Path, tuple[int, str]] = {}
    clusters = {d.meta.cluster_id for d in directories if d.meta and d.meta.cluster_id}
    only = next(iter(clusters)) if len(clusters) == 1 else ""
    top = {r.resolve() for r in roots} | {r.resolve().parent for r in roots}
    for log in logs:
        if log.broker is not None:
            parent = Path(log.path).parent.resolve()
            known = by_folder.get(parent, (log.broker, ""))
            by_folder[parent] = (known[0], known[1] or log.cluster_id)
    histories = spread(_metadata, [(d.path, d.has_cluster_metadata) for d in directories])
    for directory, history in zip(directories, histories, strict=True):
        _attribute_directory(directory, history, by_folder, top, only, result)
    for log in logs:
        folder = _nearest(Path(log.path).parent.resolve(), by_folder, top)
        log.known_by = "its lines"
        if log.broker is None and folder is not None:
            log.broker, log.known_by = folder[0], "its folder's other evidence"
        if log.broker is None:
            log.broker, log.known_by = _by_folder_name(Path(log.path).parent), "its folder's name"
        log.cluster_id = log.cluster_id or (folder[1] if folder else "") or only
        if log.count:
            result.logs.append(log)
    by_cluster: dict[str, list[MetadataHistory]] = {}
    for found in result.directories:
        if found.metadata is not None:
            cluster = found.cluster_id
            by_cluster.setdefault(cluster, []).append(found.metadata)
    for dump in result.metadata_dumps:
        by_cluster.setdefault(dump.cluster_id or only, []).append(dump)
    for cluster, histories in sorted(by_cluster.items()):
        history = longest_history(histories)
        result.histories[cluster] = history
        result.unreadable += [u for u in history.unreadable if u not in result.unreadable]
    _attribute_dumps(result, roots)


def _attribute_dumps(result: Collection, roots: list[Path]) -> None:
    """Says of each file with dumped segments which broker it is of."""
    known = Surroundings([r if r.is_dir() else r.parent for r in roots])
    for found in result.directories:
        path = found.directory.path.resolve()
        known.places += [(p, found.broker, found.cluster_id) for p in (path, path.parent)]
        known.clusters.add(found.cluster_id)
        if found.directory.partitions:
            known.brokers.add(found.broker)
    for log in result.logs:
        known.clusters.add(log.cluster_id)
        for writer in log.writers:
            broker = writer if writer is not None else log.broker
            if broker is not None:
                known.places.append((Path(log.path).parent.resolve(), broker, log.cluster_id))
                known.brokers.update([broker] if log.homes else [])
        for writer, home in log.homes:
            broker = writer if writer is not None else log.broker
            if broker is not None:
                known.homes.setdefault(home, set()).add(broker)
    for history in result.histories.values():
        known.brokers.update(b.broker for b in history.brokers)
    for listed in result.log_dirs:
        known.homes.setdefault(listed.directory, set()).add(listed.broker)
    by_file: dict[Path, list[SegmentDump]] = {}
    for segment in result.found_dumps:
        by_file.setdefault(segment.path, []).append(segment)
    for path, segments in by_file.items():
        homes = {str(PurePosixPath(s.directory).parent) for s in segments}
        owner = known.owner(path, homes)
        if isinstance(owner, Owner):
            result.dumps.append(BrokerDump(owner.broker, owner.cluster_id, segments))
            if owner.known_by != "the evidence beside it":
                result.notes.append(
                    f"{path}: taken for dumps of broker {owner.broker} by {owner.known_by}"
                )
        else:
            result.notes.append(f"{path}: {owner}; these dumps were not used")


def _attribute_directory(
    directory: LogDirectory,
    history: MetadataHistory | None,
    by_folder: dict[Path, tuple[int, str]],
    top: set[Path],
    only: str,
    result: Collection,
) -> None:
    meta = directory.meta
    path = directory.path.resolve()
    around = _nearest(path.parent, by_folder, top)
    number, known_by = (meta.broker_id if meta else None), "meta.properties"
    if number is None and around is not None:
        number, known_by = around[0], "the broker log beside it"
    if number is None:
        number, known_by = _by_folder_name(path), "its folder's name"
    if number is None:
        if directory.partitions:
            result.unreadable.append(
                Unreadable(
                    str(directory.path),
                    "file",
                    "no meta.properties, no broker log beside it and no number in its "
                    "folder's name: whose log directory it is cannot be told",
                )
            )
        return
    if known_by != "meta.properties":
        result.notes.append(f"{directory.path}: taken for broker {number} by {known_by}")
    cluster = _cluster_of(meta, around, only)
    if cluster is None:
        result.unreadable.append(
            Unreadable(
                str(directory.path),
                "file",
                "its meta.properties names no cluster, as other directories' do, and nothing "
                f"beside it is of broker {number}: of which cluster it is cannot be told",
            )
        )
        return
    if path.parent not in top:
        by_folder.setdefault(path.parent, (number, cluster))
    result.directories.append(BrokerDirectory(number, cluster, directory, history, known_by))


def _cluster_of(
    meta: MetaProperties | None, around: tuple[int, str] | None, only: str
) -> str | None:
    """The cluster a directory is of, "" where none is named anywhere; None: it may be another one.

    Old brokers (1.1 still) do not write the cluster id. Among directories that name theirs, one
    that does not is taken in only beside evidence of the same broker.
    """
    if meta is not None and meta.cluster_id:
        return meta.cluster_id
    if meta is not None and only:
        return around[1] or only if around is not None and around[0] == meta.broker_id else None
    return (around[1] if around else "") or only


def _metadata(directory_and_log: tuple[Path, Path | None]) -> MetadataHistory | None:
    """The controllers' log of a directory, or of the digest that stands for it."""
    directory, where = directory_and_log
    if where is None or not directory.is_file():
        return None if where is None else read_cluster_metadata(where)
    with TemporaryDirectory() as into:
        restored = restore_cluster_metadata(directory, Path(into))
        if restored is None:
            return None
        history = read_cluster_metadata(restored)
    # Where it was unpacked is gone, and another place in every run.
    return replace(
        history,
        path=str(directory),
        unreadable=tuple(
            replace(u, path=u.path.replace(str(restored.parent), str(directory), 1))
            for u in history.unreadable
        ),
    )


def _nearest(
    folder: Path, known: dict[Path, tuple[int, str]], top: set[Path]
) -> tuple[int, str] | None:
    """What is known of the folder or its nearest ancestor below the folders handed over."""
    while folder not in top and folder != folder.parent:
        if folder in known:
            return known[folder]
        folder = folder.parent
    return known.get(folder)


def _by_folder_name(folder: Path) -> int | None:
    for part in (folder, *list(folder.parents)[:3]):
        match = TRAILING_NUMBER.search(part.name)
        if match:
            return int(match[1])
    return None
