"""Reads every artefact below the folders a user hands over, known by content, not by name."""

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, tzinfo
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from replication.evidence.broker_logs.broker_log import is_broker_log
from replication.evidence.broker_logs.log_layouts import stamps_name_zone
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
from replication.evidence.collecting import laid_out, several_outputs
from replication.evidence.collecting.archives import Unpacked
from replication.evidence.collecting.broker_text_log import (
    BrokerLog,
    excerpt,
    holds_kafkas_lines,
    read_log,
    with_excerpts,
)
from replication.evidence.collecting.clusters_apart import clusters_apart
from replication.evidence.collecting.clusters_in_turn import clusters_in_turn
from replication.evidence.collecting.finding import (
    Found,
    cannot_be_opened,
    find,
    is_binary,
    is_no_evidence,
    why_ignored,
)
from replication.evidence.collecting.headings import headed
from replication.evidence.collecting.installations import read_again, with_writers
from replication.evidence.collecting.several_outputs import outputs_of
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
from replication.evidence.log_directories.left_out import without_segments
from replication.evidence.log_directories.log_directory import (
    LogDirectory,
    read_log_directory,
)
from replication.evidence.metadata_log.history import MetadataHistory
from replication.evidence.opening import Part
from replication.evidence.text_lines import of_short_lines
from replication.evidence.tools.dumped_logs import SegmentDump, read_dumped_segments
from replication.evidence.tools.log_dirs import LogDirectoryError, LogDirectorySize, read_log_dirs
from replication.evidence.tools.metadata_dump import read_metadata_dump
from replication.evidence.tools.metadata_quorum import (
    QuorumReplica,
    QuorumStatus,
    read_metadata_quorum,
)
from replication.evidence.tools.tool_output import (
    DUMP_LOG,
    LOG_DIRS,
    METADATA_DUMP,
    METADATA_QUORUM,
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
    LogEnd,
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

# What of a file of several kinds is read as these tools' output.
_PRINTED = {
    several_outputs.METADATA: METADATA_DUMP,
    several_outputs.DUMP: DUMP_LOG,
    several_outputs.DIRECTORIES: LOG_DIRS,
    several_outputs.QUORUM: METADATA_QUORUM,
}


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
class Collection:
    """Everything that was found, read.

    found_directories, found_logs and found_dumps: before it is known whose they are. log_dirs,
    quorum: what those tools printed. recognised: path -> what kind of file, of those that are
    neither broker logs nor log directories. digest_lines: until all are read. zookeeper_steps,
    zookeeper: what ZooKeeper's files hold, and by cluster id what that comes to. ignored: what was
    left aside, and why. unpacked: where archives were unpacked to; workplace keeps that as long as
    it is needed. time_zone: of the brokers' machines, where the user said it; all_producers: as the
    user said. unread_acknowledgements, unread_consumptions: of clients' logs, the places that could
    not be read.
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
    unread_acknowledgements: list[Unreadable] = field(default_factory=list)
    unread_consumptions: list[Unreadable] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    found_directories: list[LogDirectory] = field(default_factory=list)
    found_logs: list[BrokerLog] = field(default_factory=list)
    found_dumps: list[SegmentDump] = field(default_factory=list)
    ignored: list[Unreadable] = field(default_factory=list)
    recognised: dict[str, str] = field(default_factory=dict)
    near_misses: list[str] = field(default_factory=list)
    zookeeper_steps: list[ZnodeChange | LogEnd] = field(default_factory=list)
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
    every producer. clock_bound: by how much all clocks differ at most, ms; None: nobody knows.
    laid_out: the files hold shipped lines, laid out as `laid_out` says.
    """

    ack_fields: AckFields | None = AS_THEY_ARE
    brokers: Mapping[Path, int] = field(default_factory=dict)
    time_zone: tzinfo | None = None
    all_producers: bool = False
    clock_bound: int | None = None
    laid_out: bool = False


NOTHING_TOLD = Told()
PIPED = Path("-")


def read_all(
    roots: list[Path], spread: Spread, facts_folder: Path | None, told: Told
) -> Collection:
    """Everything at or below roots, read; whose it is comes later. The root `-` is what comes in on
    standard input, unless a file has that name.

    Raises NoEvidence when a path does not exist.
    """
    is_piped = PIPED in roots and not PIPED.exists()
    for root in roots:
        if not root.exists() and not (is_piped and root == PIPED):
            raise NoEvidence(f"{root}: no such file or folder")
    place = TemporaryDirectory(prefix="replication-analyzer-", dir=facts_folder)
    result = Collection(unpacked=Unpacked(Path(place.name).resolve()), workplace=place)
    result.time_zone, result.all_producers = told.time_zone, told.all_producers
    if is_piped:
        piped = result.unpacked.receive(sys.stdin.buffer, "standard input")
        roots = [piped if root == PIPED else root for root in roots]
    found = Found(files=laid_out.files(roots)) if told.laid_out else find(roots, result.unpacked)
    result.unreadable += found.unreadable
    result.ignored += found.ignored
    result.found_directories += _read_directories(found.directories, spread)
    for directory in result.found_directories:
        result.unreadable += directory.unreadable
        result.notes += without_segments(directory)
        for partition in directory.partitions:
            result.unreadable += partition.unreadable
            result.files += len(partition.segments)
    reader = partial(read_file, facts_folder=facts_folder, told=told)
    again = partial(read_again, spread=spread, zone=told.time_zone or UTC, folder=facts_folder)
    for reading in spread(reader, found.files):
        result.take(reading)
    seen = directories_of(result.digest_lines, result.unpacked.into)
    result.found_directories += seen
    result.unreadable += [u for directory in seen for u in directory.unreadable]
    result.digest_lines = []
    decided = {path.resolve() for path in told.brokers}
    logs = with_writers(
        result.found_logs,
        result.unpacked.place,
        again,
        lambda path: not decided.isdisjoint((path.resolve(), *path.resolve().parents)),
    )
    result.found_logs = clusters_apart(
        clusters_in_turn(logs, result.unpacked.place, result.notes),
        spread=spread,
        zone=told.time_zone or UTC,
        folder=facts_folder,
        notes=result.notes,
    )
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
    closed = cannot_be_opened(path) or of_short_lines(path)
    if closed is not None:
        result.unreadable.append(closed)
    elif told.laid_out:
        _take_laid_out(path, facts_folder, told, result)
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
    elif is_binary(path) or is_no_evidence(path):
        result.ignored.append(Unreadable(str(path), "file", why_ignored(path)))
    elif (outputs := outputs_of(path)) is not None:
        _take_outputs(path, outputs, told, facts_folder, result)
    elif not (
        _take_client_log(path, ack_fields or AS_THEY_ARE, result) or _take_tools(path, result)
    ):
        if is_broker_log(path):
            _take_broker_log(path, zone, facts_folder, result)
        elif is_topic_description(path):
            _sort(read_topic_descriptions(path), result.descriptions, result)
            result.recognised[str(path)] = "output of kafka-topics"
        elif ack_fields is not None and (near := near_miss(path, ack_fields)):
            result.near_misses.append(f"{path}: {near}")
        elif said := excerpt(path, headed=True):
            result.found_logs.append(read_log(path, said, facts_folder, result.unreadable))
        elif holds_kafkas_lines(path):
            result.found_logs.append(BrokerLog(str(path)))
        else:
            result.ignored.append(Unreadable(str(path), "file", why_ignored(path)))
    return result


def _take_broker_log(path: Path, zone: tzinfo, folder: Path | None, result: Collection) -> None:
    names_zone = stamps_name_zone(path)
    found = read_log(path, with_excerpts(path, zone), folder, result.unreadable)
    if not found.count and (said := excerpt(path, headed=True)):
        found = read_log(path, said, folder, result.unreadable)
    found.names_zone = names_zone
    result.found_logs.append(found)


def _take_laid_out(path: Path, folder: Path | None, told: Told, result: Collection) -> None:
    """Reads a file of shipped lines as what it was laid out for."""
    kind, names = laid_out.kind_of(path), told.ack_fields or AS_THEY_ARE
    if kind == laid_out.DIGEST:
        _sort(read_digest_lines(path), result.digest_lines, result)
        result.recognised[str(path)] = "lines of a digest"
    elif kind == laid_out.ACKNOWLEDGED:
        result.acknowledgement_logs += 1
        _sort(read_acknowledgements(path, names), result.acknowledgements, result)
        result.unread_acknowledgements += result.unreadable
        result.recognised[str(path)] = "acknowledgement log"
    elif kind == laid_out.CONSUMED:
        result.consumption_logs += 1
        _sort(read_consumptions(path, names), result.consumptions, result)
        result.unread_consumptions += result.unreadable
        result.recognised[str(path)] = "consumption log"
    elif is_broker_log(path):
        _take_broker_log(path, told.time_zone or UTC, folder, result)
    elif said := excerpt(path, headed=True):
        result.found_logs.append(read_log(path, said, folder, result.unreadable))
    elif holds_kafkas_lines(path):
        result.found_logs.append(BrokerLog(str(path)))
    else:
        result.ignored.append(Unreadable(str(path), "file", why_ignored(path)))


def _text_log(
    path: Path, zone: tzinfo, facts_folder: Path | None, unreadable: list[Unreadable]
) -> BrokerLog:
    names_zone = stamps_name_zone(path)
    found = read_log(path, with_excerpts(path, zone), facts_folder, unreadable)
    if not found.count and (said := excerpt(path, headed=True)):
        found = read_log(path, said, facts_folder, unreadable)
    found.names_zone = names_zone
    return found


def _take_outputs(
    path: Path,
    outputs: dict[str, list[int]],
    told: Told,
    facts_folder: Path | None,
    result: Collection,
) -> None:
    """Reads a file of several kinds of output, each kind by its reader."""
    names = told.ack_fields or AS_THEY_ARE
    for kind in outputs:
        part = Part.of(path, outputs[kind])
        if kind == several_outputs.DIGEST:
            _sort(read_digest_lines(part), result.digest_lines, result)
        elif kind == several_outputs.CLIENT:
            reading = Collection()
            _take_client_log(part, names, reading)
            result.take(reading)
        elif kind == several_outputs.DUMP:
            _take_dumps(part, several_outputs.text_of(path, outputs), result)
        elif kind in _PRINTED:
            _take_tool(part, _PRINTED[kind], result)
        elif kind == several_outputs.DESCRIBE:
            _sort(read_topic_descriptions(part), result.descriptions, result)
        elif kind == several_outputs.PAYLOAD:
            lines = several_outputs.lines_in_words(outputs[kind])
            reason = (
                "is behind a printed record, so that it may be that record's payload: it is "
                "not read; put an empty line between the two, or two files, where it is not"
            )
            result.unreadable.append(Unreadable(str(path), lines, reason))
    if any(kind in outputs for kind in several_outputs.LOGS):
        zone = told.time_zone or UTC
        result.found_logs.append(_text_log(path, zone, facts_folder, result.unreadable))
    result.recognised[str(path)] = several_outputs.in_words(outputs)


def _take_client_log(path: Path, names: AckFields, result: Collection) -> bool:
    """Reads the file where it is a client's log."""
    kind = client_log_kind(path, names)
    if kind == "acknowledgements":
        result.acknowledgement_logs += 1
        _sort(read_acknowledgements(path, names), result.acknowledgements, result)
        result.unread_acknowledgements += result.unreadable
        if not result.acknowledgements and result.unreadable:
            first = result.unreadable[0]
            result.near_misses.append(
                f"{path}: no line of it can be used; {first.where}: "
                f"{first.reason} (--ack-fields says what its fields mean)"
            )
    elif kind == "consumption":
        result.consumption_logs += 1
        _sort(read_consumptions(path, names), result.consumptions, result)
        result.unread_consumptions += result.unreadable
    if kind is not None:
        result.recognised[str(path)] = (
            "acknowledgement log" if kind == "acknowledgements" else "consumption log"
        )
    return kind is not None


def _take_tools(path: Path, result: Collection) -> bool:
    """Reads the file where one of Kafka's tools printed it."""
    output = tool_output_kind(path)
    if output is not None:
        _take_tool(path, output, result)
        result.recognised[str(path)] = f"output of {_TOOLS[output]}"
    return output is not None


def _take_tool(path: Path, output: str, result: Collection) -> None:
    if output == METADATA_DUMP:
        result.metadata_dumps.append(read_metadata_dump(path))
    elif output == DUMP_LOG:
        _take_dumps(path, [], result)
    elif output == LOG_DIRS:
        _sort(read_log_dirs(path), result.log_dirs, result)
    elif output == METADATA_QUORUM:
        _sort(read_metadata_quorum(path), result.quorum, result)


def _take_dumps(path: Path, text: list[tuple[int, str]], result: Collection) -> None:
    """Reads dumped segments. text: the lines among them that are of no output."""
    segments, unreadable, notes = read_dumped_segments(path)
    brokers = headed([s.lines.start for s in segments], text)
    result.found_dumps += [
        replace(s, headed=broker) for s, broker in zip(segments, brokers, strict=True)
    ]
    result.unreadable += unreadable
    result.notes += notes


def _sort(read: Iterable[Any], kept: list[Any], result: Collection) -> None:
    """What was read to what is kept, and what could not be to the unreadable."""
    for item in read:
        (result.unreadable if isinstance(item, Unreadable) else kept).append(item)
