"""Reads what Kafka's own tools printed: kafka-dump-log, kafka-log-dirs, kafka-metadata-quorum.

The bytes themselves say more than kafka-dump-log does (before 2.4 its record lines leave out the
leader epoch), so its text stands in only for a directory that was not handed over
(`dumped_logs`). kafka-log-dirs gives sizes, no offsets: by them a dump is known to be whole.
kafka-metadata-quorum gives the committed end of the metadata log. `kafka-topics --describe` and a
decoded metadata log have readers of their own.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from replication.evidence.digest import DIRECTORY_NAME
from replication.evidence.log_directories.segments import RecordBatch
from replication.evidence.text_lines import text_lines
from replication.evidence.tools.metadata_dump import is_metadata_dump
from replication.evidence.unreadable import Unreadable
from replication.protocol.ground.wire import MAX_OFFSET

DUMP_LOG, METADATA_DUMP = "dump_log", "metadata_dump"
LOG_DIRS, METADATA_QUORUM = "log_dirs", "metadata_quorum"
_LINES_TO_KNOW_A_FILE_BY = 40
_LARGEST_JSON = 64 << 20
_LONGEST_DUMP_LINE = 64 << 20  # a printed payload is as long as the record

_DUMPING = re.compile(r"^Dumping (.+)$")
_STARTING = re.compile(r"^(?:Log s|S)tarting offset: \d+$")
_INVALID_BYTES = re.compile(r"^Found (\d+) invalid bytes at the end of (.+)$")
_BATCH_LINE = re.compile(r"^baseOffset: \d+ lastOffset: \d+ ")
_OLD_LINE = re.compile(r"^offset: \d+ position: \d+ ")
_RECORD_LINE = re.compile(r"^\| offset: \d+ ")
_PAIR = re.compile(r"([A-Za-z]+): (-?\w[\w.]*)")
_FORMAT_0_OVERHEAD, _FORMAT_1_OVERHEAD = 26, 34  # bytes around key and value of one message
_CODECS = ("no", "gzip", "snappy", "lz4", "zstd")

_STATUS_LINE = re.compile(r"^([A-Z][A-Za-z]+):\s+(\S.*|)$")
_REPLICATION_HEADER = re.compile(r"^(?:Node|Replica)Id\s+(?:\S+\s+)?LogEndOffset\s+Lag\s")


@dataclass(frozen=True, slots=True)
class DumpedSegment:
    """The tool turned to the file `segment`. `base_offset`: by that file's name."""

    segment: str
    topic: str | None
    partition: int | None
    base_offset: int | None
    path: str
    line: int


@dataclass(frozen=True, slots=True)
class DumpedBatch:
    """One batch as kafka-dump-log printed it. `segment` is the file it was asked to dump; `topic`
    and `partition` come from that file's directory. Before 2.1 it does not print the count."""

    segment: str
    topic: str | None
    partition: int | None
    batch: RecordBatch
    path: str
    line: int


@dataclass(frozen=True, slots=True)
class DumpedRecord:
    """One record as kafka-dump-log printed it; `key` only with --print-data-log, as text."""

    segment: str
    topic: str | None
    partition: int | None
    offset: int
    at: int | None
    producer_id: int | None
    producer_epoch: int | None
    sequence: int | None
    key: str | None
    path: str
    line: int


@dataclass(frozen=True, slots=True)
class LogDirectorySize:
    """One replica by kafka-log-dirs: bytes on disk; `is_future`: being moved to that directory.
    `offset_lag`: how far behind, a future one behind the current one; None where not printed."""

    broker: int
    directory: str
    topic: str
    partition: int
    size: int
    is_future: bool
    path: str
    offset_lag: int | None = None


@dataclass(frozen=True, slots=True)
class LogDirectoryError:
    """A log directory that its broker could not describe (offline, for one)."""

    broker: int
    directory: str
    error: str
    path: str


@dataclass(frozen=True, slots=True)
class QuorumStatus:
    """`describe --status`. `high_watermark` is the committed end of the metadata log, exclusive."""

    cluster_id: str | None
    leader: int | None
    leader_epoch: int | None
    high_watermark: int | None
    voters: tuple[int, ...]
    observers: tuple[int, ...]
    path: str
    line: int


@dataclass(frozen=True, slots=True)
class QuorumReplica:
    """One line of `describe --replication`. `role`: Leader, Follower or Observer."""

    node: int
    directory_id: str | None
    log_end_offset: int
    role: str
    path: str
    line: int


class _BadLine(ValueError):
    """What is wrong with a line, for the user."""


def tool_output_kind(path: Path) -> str | None:
    """Which tool printed the file, by its first lines; None if none of these did.

    "dump_log" (read_dump_log), "metadata_dump" (metadata_dump.read_metadata_dump), "log_dirs"
    (read_log_dirs), "metadata_quorum" (read_metadata_quorum).
    """
    kind = _kind(path)
    return METADATA_DUMP if kind == DUMP_LOG and is_metadata_dump(path) else kind


def _kind(path: Path) -> str | None:
    for number, line in text_lines(path, _LONGEST_DUMP_LINE):
        if isinstance(line, Unreadable) or number > _LINES_TO_KNOW_A_FILE_BY:
            return None
        text = line.strip()
        if _DUMPING.match(text) and text.endswith((".log", ".checkpoint")):
            return DUMP_LOG
        if _BATCH_LINE.match(text) or _STARTING.match(text):
            return DUMP_LOG
        if text.startswith(("LeaderId:", "LeaderEpoch:")) or _REPLICATION_HEADER.match(text):
            return METADATA_QUORUM
        if text.startswith(("Querying brokers for log dir", "Received log directory information")):
            return LOG_DIRS
        if '"logDirs"' in text or (number < 5 and text.startswith('{"version":1,"brokers":[')):
            return LOG_DIRS
    return None


# -- kafka-dump-log -------------------------------------------------------------------------------


@dataclass(slots=True)
class _Segment:
    """The file the lines speak of, from the last "Dumping" line."""

    name: str = ""
    topic: str | None = None
    partition: int | None = None
    base_offset: int | None = None
    is_log: bool = True
    in_payload: bool = False


def read_dump_log(
    path: Path, lines: range | None = None
) -> Iterator[DumpedSegment | DumpedBatch | DumpedRecord | Unreadable]:
    """Segments, with the batches and records that one or more runs of kafka-dump-log printed.

    Index files and the like are passed over. Lines after a printed record that are none of the
    tool's own belong to that record's payload. lines: only these (numbers from 1), which must
    begin with a "Dumping" line.
    """
    segment = _Segment()
    for number, line in text_lines(path, _LONGEST_DUMP_LINE):
        if lines is not None and number >= lines.stop:
            return
        if lines is not None and number < lines.start:
            continue
        if isinstance(line, Unreadable):
            yield line
            continue
        text = line.rstrip("\r\n")
        try:
            dumping = _DUMPING.match(text)
            if dumping:
                segment = _segment(dumping[1].strip())
                if segment.is_log:
                    where = (segment.name, segment.topic, segment.partition)
                    yield DumpedSegment(*where, segment.base_offset, str(path), number)
            elif segment.is_log and text.strip() and not _STARTING.match(text):
                complete = line.endswith("\n")
                yield from _dumped(text, complete, segment, str(path), number)
        except _BadLine as error:
            yield Unreadable(str(path), f"line {number}", str(error))


def _replica(name: str) -> tuple[str, int] | tuple[None, None]:
    """Whose directory a name is, if it is no directory set aside: those are no replica's log."""
    named = DIRECTORY_NAME.fullmatch(name)
    if named is None or named["kind"]:
        return None, None
    return named["topic"], int(named["partition"])


def _segment(name: str) -> _Segment:
    file = PurePosixPath(name.replace("\\", "/"))
    topic, partition = _replica(file.parent.name)
    return _Segment(
        name=name,
        topic=topic,
        partition=partition,
        base_offset=int(file.stem) if re.fullmatch(r"\d{20}", file.stem) else None,
        is_log=file.suffix in (".log", ".checkpoint"),
    )


def _dumped(
    text: str, complete: bool, segment: _Segment, path: str, line: int
) -> Iterator[DumpedBatch | DumpedRecord | Unreadable]:
    is_batch, is_old = _BATCH_LINE.match(text), _OLD_LINE.match(text)
    invalid = _INVALID_BYTES.match(text)
    if invalid:
        reason = f"kafka-dump-log found {invalid[1]} invalid bytes at the end of {invalid[2]}"
        yield Unreadable(path, f"line {line}", reason)
        return
    if not (is_batch or is_old or _RECORD_LINE.match(text)):
        if not segment.in_payload:
            raise _BadLine("this is no line of kafka-dump-log")
        return
    if not complete:
        raise _BadLine("the file ends within this line")
    pairs, key, segment.in_payload = _pairs(text)
    where = (segment.name, segment.topic, segment.partition)
    if pairs.get("isvalid", "true") != "true":
        offset = pairs.get("baseOffset", pairs.get("offset"))
        raise _BadLine(f"kafka-dump-log found the batch at offset {offset} to be damaged")
    if is_batch:
        yield DumpedBatch(*where, _batch(pairs), path, line)
    elif is_old and _whole(pairs, "magic") < 2:
        yield DumpedBatch(*where, _message(pairs), path, line)
    if not is_batch:
        yield DumpedRecord(
            *where,
            offset=_whole(pairs, "offset"),
            at=_known(pairs, "CreateTime", "LogAppendTime"),
            producer_id=_known(pairs, "producerId"),
            producer_epoch=_known(pairs, "producerEpoch"),
            sequence=_known(pairs, "sequence"),
            key=key,
            path=path,
            line=line,
        )


def _pairs(text: str) -> tuple[dict[str, str], str | None, bool]:
    """(the `name: value` pairs, the record's key, whether key or payload were printed)."""
    head, with_headers, tail = text.partition(" headerKeys: [")
    if with_headers:
        tail = tail[tail.find("]") + 1 :]
    else:
        # Up to 0.10 the key follows its size at once.
        found = re.search(r"keysize: -?\d+(?= (?:key|payload): )", text)
        head, tail = (text[: found.end()], text[found.end() :]) if found else (text, "")
    pairs = dict(_PAIR.findall(head.removeprefix("| ")))
    printed = tail.startswith((" key: ", " payload: "))
    return pairs, _printed_key(pairs, tail), printed


def _printed_key(pairs: dict[str, str], tail: str) -> str | None:
    """The key is as long as `keySize` says: it may hold spaces and colons, or be cut by no one."""
    size = pairs.get("keySize", pairs.get("keysize", "-1"))
    if not tail.startswith(" key: ") or not size.isdigit():
        return None
    raw = tail.removeprefix(" key: ").encode()
    key, rest = raw[: int(size)], raw[int(size) :]
    if len(key) != int(size) or (rest and not rest.startswith(b" payload: ")):
        return None  # bytes that are no UTF-8 were printed as something else
    return key.decode("utf-8", "replace")


def _batch(pairs: dict[str, str]) -> RecordBatch:
    base, last = _whole(pairs, "baseOffset"), _whole(pairs, "lastOffset")
    if last < base:
        raise _BadLine(f"this batch ends at offset {last}, before its first, {base}")
    return RecordBatch(
        base_offset=base,
        end_offset=last + 1,
        leader_epoch=_known(pairs, "partitionLeaderEpoch"),
        magic=_whole(pairs, "magic"),
        crc=_whole(pairs, "crc"),
        size=_whole(pairs, "size"),
        position=_whole(pairs, "position"),
        producer_id=_known(pairs, "producerId"),
        producer_epoch=_known(pairs, "producerEpoch"),
        base_sequence=_known(pairs, "baseSequence"),
        is_control=pairs.get("isControl") == "true",
        is_transactional=pairs.get("isTransactional") == "true",
        record_count=_known(pairs, "count"),
        max_timestamp=_known(pairs, "CreateTime", "LogAppendTime"),
        codec=_codec(pairs),
    )


def _message(pairs: dict[str, str]) -> RecordBatch:
    """A message of format 0 or 1, which is a batch of one."""
    offset, magic = _whole(pairs, "offset"), _whole(pairs, "magic")
    if _codec(pairs):
        reason = "a compressed message hides its offsets: dump this segment with --deep-iteration"
        raise _BadLine(reason)
    key, value = _known(pairs, "keysize") or 0, _known(pairs, "payloadsize", "valuesize") or 0
    overhead = _FORMAT_1_OVERHEAD if magic else _FORMAT_0_OVERHEAD
    return RecordBatch(
        base_offset=offset,
        end_offset=offset + 1,
        leader_epoch=None,
        magic=magic,
        crc=_whole(pairs, "crc"),
        size=overhead + key + value,
        position=_whole(pairs, "position"),
        producer_id=None,
        producer_epoch=None,
        base_sequence=None,
        is_control=False,
        is_transactional=False,
        record_count=1,
        max_timestamp=_known(pairs, "CreateTime", "LogAppendTime"),
        codec=0,
    )


def _whole(pairs: dict[str, str], name: str) -> int:
    value = pairs.get(name, "missing")
    if not (value.isascii() and value.isdigit() and len(value) < 20):
        raise _BadLine(f"has {name} {value[:40]}, which is no number")
    number = int(value)
    if number > MAX_OFFSET:
        raise _BadLine(f"has {name} {value}, which is out of range")
    return number


def _known(pairs: dict[str, str], *names: str) -> int | None:
    """The first of the names that is there; None for Kafka's -1 and for what is not printed."""
    for name in names:
        if name in pairs:
            return None if pairs[name] in ("-1", "null") else _whole(pairs, name)
    return None


def _codec(pairs: dict[str, str]) -> int:
    name = pairs.get("compresscodec", "none").lower()
    for number, start in enumerate(_CODECS):
        if name.startswith(start):
            return number
    raise _BadLine(f"has compresscodec {name[:40]}, which is not known")


# -- kafka-log-dirs -------------------------------------------------------------------------------


def read_log_dirs(path: Path) -> Iterator[LogDirectorySize | LogDirectoryError | Unreadable]:
    """The JSON of one or more runs of `kafka-log-dirs --describe`, on one line or on many."""
    pieces: list[str] = []
    size = start = 0
    for number, line in text_lines(path, _LARGEST_JSON):
        if isinstance(line, Unreadable):
            yield line
            continue
        if not pieces and not line.lstrip().startswith("{"):
            continue
        start = start if pieces else number
        pieces.append(line)
        size += len(line)
        if size > _LARGEST_JSON:
            break
        if line.rstrip().endswith("}"):
            found = _json("".join(pieces))
            if found is not None:
                yield from _log_dirs(found, str(path), start)
                pieces, size = [], 0
    if pieces:
        yield Unreadable(str(path), f"line {start}", "the JSON that begins here is cut or damaged")


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _log_dirs(
    found: Any, path: str, line: int
) -> Iterator[LogDirectorySize | LogDirectoryError | Unreadable]:
    try:
        for broker in found["brokers"]:
            number = _json_number(broker["broker"])
            for directory in broker["logDirs"]:
                name = str(directory["logDir"])
                if directory.get("error"):
                    yield LogDirectoryError(number, name, str(directory["error"]), path)
                for replica in directory["partitions"]:
                    yield _log_dir_replica(number, name, replica, path)
    except (KeyError, TypeError, _BadLine) as error:
        what = f"lacks {error}" if isinstance(error, KeyError) else str(error)
        yield Unreadable(path, f"line {line}", f"this is no output of kafka-log-dirs: {what}")


def _log_dir_replica(broker: int, name: str, replica: Any, path: str) -> LogDirectorySize:
    topic, partition = _replica(str(replica["partition"]))
    if topic is None or partition is None:
        raise _BadLine(f"{replica['partition']} is no topic partition")
    return LogDirectorySize(
        broker=broker,
        directory=name,
        topic=topic,
        partition=partition,
        size=_json_number(replica["size"]),
        is_future=replica.get("isFuture") is True,
        path=path,
        offset_lag=lag if isinstance(lag := replica.get("offsetLag"), int) else None,
    )


def _json_number(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise _BadLine(f"{str(value)[:40]} is no number")
    return value


# -- kafka-metadata-quorum ------------------------------------------------------------------------


def read_metadata_quorum(path: Path) -> Iterator[QuorumStatus | QuorumReplica | Unreadable]:
    """`describe --status` and `describe --replication`, from 3.3 on, one or several in a file."""
    status: dict[str, str] = {}
    columns: list[str] = []
    first = number = 0
    for number, line in text_lines(path):
        if isinstance(line, Unreadable):
            yield line
            continue
        text = line.strip()
        pair = _STATUS_LINE.match(text)
        if pair:
            if pair[1] in status:
                yield _quorum_status(status, str(path), first)
                status = {}
            first = first if status else number
            status[pair[1]] = pair[2].strip()
            columns = []
        elif _REPLICATION_HEADER.match(text):
            columns = _columns(text)
        elif columns and text and not text.startswith("#"):
            yield _quorum_replica(columns, text, line.endswith("\n"), str(path), number)
    if status:
        yield _quorum_status(status, str(path), first)


def _columns(text: str) -> list[str]:
    return re.split(r"\t+\s*|\s{2,}", text)


def _quorum_status(status: dict[str, str], path: str, line: int) -> QuorumStatus | Unreadable:
    try:
        return QuorumStatus(
            cluster_id=status.get("ClusterId") or None,
            leader=_known(status, "LeaderId"),
            leader_epoch=_known(status, "LeaderEpoch"),
            high_watermark=_known(status, "HighWatermark"),
            voters=_nodes(status.get("CurrentVoters", "[]")),
            observers=_nodes(status.get("CurrentObservers", "[]")),
            path=path,
            line=line,
        )
    except _BadLine as error:
        return Unreadable(path, f"line {line}", str(error))


def _nodes(text: str) -> tuple[int, ...]:
    """`[1,2]` up to 3.8; `[{"id": 1, "directoryId": .., "endpoints": [..]}, ..]` since."""
    found = _json(text)
    if not isinstance(found, list):
        raise _BadLine(f"{text[:60]} is no list of nodes")
    return tuple(_json_number(one.get("id") if isinstance(one, dict) else one) for one in found)


def _quorum_replica(
    columns: list[str], text: str, complete: bool, path: str, line: int
) -> QuorumReplica | Unreadable:
    where = f"line {line}"
    values = _columns(text)
    if not complete:
        return Unreadable(path, where, "the file ends within this line")
    if len(values) != len(columns):
        # Pasted from a terminal, where one space may be all that is left between two columns.
        values = text.split()
    pairs = dict(zip(columns, values, strict=False))
    try:
        node = pairs.get("NodeId", pairs.get("ReplicaId", ""))
        role = values[-1]
        if role not in ("Leader", "Follower", "Observer"):
            raise _BadLine(f"{text[:60]} is no replica of the metadata quorum")
        directory = pairs.get("DirectoryId", pairs.get("ReplicaDirectoryId"))
        return QuorumReplica(
            node=_whole({"NodeId": node}, "NodeId"),
            directory_id=directory,
            log_end_offset=_whole(pairs, "LogEndOffset"),
            role=role,
            path=path,
            line=line,
        )
    except _BadLine as error:
        return Unreadable(path, where, str(error))
