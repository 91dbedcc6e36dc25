"""What kafka-dump-log printed: segments, batches and records of a replica.

The bytes themselves say more (before 2.4 its record lines leave out the leader epoch), so this text
is in only for a directory that was not handed over (`dumped_logs`).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from replication.evidence.log_directories.segments import RecordBatch
from replication.evidence.text_lines import text_lines
from replication.evidence.tools.printed_values import (
    BadLine,
    known_number,
    replica_of,
    whole_number,
)
from replication.evidence.unreadable import Unreadable

NEWLINE = "\n"
LONGEST_DUMP_LINE = 64 << 20  # a printed payload is as long as the record

DUMPING = re.compile(r"^Dumping (.+)$")
STARTING = re.compile(r"^(?:Log s|S)tarting offset: \d+$")
_INVALID_BYTES = re.compile(r"^Found (\d+) invalid bytes at the end of (.+)$")
BATCH_LINE = re.compile(r"^baseOffset: \d+ lastOffset: \d+ ")
_OLD_LINE = re.compile(r"^offset: \d+ position: \d+ ")
_RECORD_LINE = re.compile(r"^\| offset: \d+ ")
# A record of the metadata log with --skip-record-metadata.
_PAYLOAD_LINE = re.compile(r'^payload: \{"type":"[A-Z_]+_RECORD"')
_DUMPED_FILES = (".log", ".checkpoint", ".index", ".timeindex", ".snapshot", ".txnindex")
_PAIR = re.compile(r"([A-Za-z]+): (-?\w[\w.]*)")
_FORMAT_0_OVERHEAD, _FORMAT_1_OVERHEAD = 26, 34  # bytes around key and value of one message
_CODECS = ("no", "gzip", "snappy", "lz4", "zstd")


def is_dump_line(text: str) -> bool:
    """Whether the line is one that the tool itself prints."""
    dumping = DUMPING.match(text)
    if dumping:
        return dumping[1].rstrip().endswith(_DUMPED_FILES)
    return any(
        line.match(text)
        for line in (STARTING, BATCH_LINE, _OLD_LINE, _RECORD_LINE, _INVALID_BYTES, _PAYLOAD_LINE)
    )


def prints_payload(text: str) -> bool:
    """Whether the line prints a record's key or payload, which may go on in lines behind it."""
    return " payload: " in text or " key: " in text


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
    """One record as kafka-dump-log printed it; `key` and `payload` only with --print-data-log.

    Both are text: what the bytes were is told by their sizes at most (`printed_bytes`). payload
    has the line ends in it, without the last one; None where the record has no value, or where a
    line of it could not be read. at: by the broker's clock where by_broker. header_names: their
    values are not printed. marker: COMMIT or ABORT, of a transaction.
    """

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
    payload: str | None = None
    key_size: int | None = None
    value_size: int | None = None
    by_broker: bool = False
    header_names: str = ""
    marker: str | None = None


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
    open_one: _OpenRecord | None = None
    for item in _items(path, lines):
        if isinstance(item, str):
            if open_one is not None:
                open_one.more.append(item)
            continue
        if open_one is not None:
            yield open_one.closed(broken=isinstance(item, Unreadable))
            open_one = None
        if isinstance(item, DumpedRecord):
            open_one = _OpenRecord(item)
        else:
            yield item
    if open_one is not None:
        yield open_one.closed(broken=False)


@dataclass(slots=True)
class _OpenRecord:
    """A record whose payload may go on in the next line."""

    record: DumpedRecord
    more: list[str] = field(default_factory=list)

    def closed(self, *, broken: bool) -> DumpedRecord:
        """The record with all lines of its payload; broken: the next one could not be read."""
        whole = self.record.payload
        if whole is None or not (broken or self.more):
            return self.record
        for line in self.more:
            # Behind the last record the tool may print lines of its own.
            if len(whole.encode("utf-8", "surrogatepass")) == self.record.value_size:
                return replace(self.record, payload=whole)
            whole = f"{whole}\n{line.removesuffix(NEWLINE)}"
        return replace(self.record, payload=None if broken else whole)


def _items(
    path: Path, lines: range | None
) -> Iterator[DumpedSegment | DumpedBatch | DumpedRecord | Unreadable | str]:
    """The same, each record as far as its first line goes; a line that goes on with its payload
    as text."""
    segment = _Segment()
    for number, line in text_lines(path, LONGEST_DUMP_LINE):
        if lines is not None and number >= lines.stop:
            return
        if lines is not None and number < lines.start:
            continue
        if isinstance(line, Unreadable):
            yield line
            continue
        text = line.rstrip("\r\n")
        try:
            dumping = DUMPING.match(text)
            if dumping:
                segment = _segment(dumping[1].strip())
                if segment.is_log:
                    where = (segment.name, segment.topic, segment.partition)
                    yield DumpedSegment(*where, segment.base_offset, str(path), number)
            elif segment.is_log and (text.strip() or segment.in_payload):
                if STARTING.match(text) and not segment.in_payload:
                    continue
                yield from _dumped(line, segment, str(path), number)
        except BadLine as error:
            yield Unreadable(str(path), f"line {number}", str(error))


def _segment(name: str) -> _Segment:
    file = PurePosixPath(name.replace("\\", "/"))
    topic, partition = replica_of(file.parent.name)
    return _Segment(
        name=name,
        topic=topic,
        partition=partition,
        base_offset=int(file.stem) if re.fullmatch(r"\d{20}", file.stem) else None,
        is_log=file.suffix in (".log", ".checkpoint"),
    )


def _dumped(
    whole: str, segment: _Segment, path: str, line: int
) -> Iterator[DumpedBatch | DumpedRecord | Unreadable | str]:
    text, complete = whole.rstrip("\r\n"), whole.endswith("\n")
    is_batch, is_old = BATCH_LINE.match(text), _OLD_LINE.match(text)
    invalid = _INVALID_BYTES.match(text)
    if invalid:
        reason = f"kafka-dump-log found {invalid[1]} invalid bytes at the end of {invalid[2]}"
        yield Unreadable(path, f"line {line}", reason)
        return
    if not (is_batch or is_old or _RECORD_LINE.match(text)):
        if not segment.in_payload:
            raise BadLine("this is no line of kafka-dump-log")
        yield whole
        return
    if not complete:
        raise BadLine("the file ends within this line")
    pairs, tail = _pairs(text)
    segment.in_payload = tail.startswith((" key: ", " payload: "))
    where = (segment.name, segment.topic, segment.partition)
    if pairs.get("isvalid", "true") != "true":
        offset = pairs.get("baseOffset", pairs.get("offset"))
        raise BadLine(f"kafka-dump-log found the batch at offset {offset} to be damaged")
    if is_batch:
        yield DumpedBatch(*where, _batch(pairs), path, line)
    elif is_old and whole_number(pairs, "magic") < 2:
        yield DumpedBatch(*where, _message(pairs), path, line)
    if not is_batch:
        key_size, key, payload = _printed(pairs, whole.removesuffix("\n"), tail)
        marker = pairs.get("endTxnMarker")
        yield DumpedRecord(
            *where,
            offset=whole_number(pairs, "offset"),
            at=known_number(pairs, "CreateTime", "LogAppendTime"),
            producer_id=known_number(pairs, "producerId"),
            producer_epoch=known_number(pairs, "producerEpoch"),
            sequence=known_number(pairs, "sequence"),
            key=key,
            path=path,
            line=line,
            payload=payload,
            key_size=key_size,
            value_size=known_number(pairs, "valueSize", "valuesize", "payloadsize"),
            by_broker="LogAppendTime" in pairs,
            header_names=_header_names(text),
            marker=marker if marker in ("COMMIT", "ABORT") else None,
        )


def printed_bytes(text: str | None, size: int | None) -> bytes | None:
    """The bytes that were printed as this text, None where it may stand for others.

    Java prints bytes that are no UTF-8 as U+FFFD, and what its output's encoding lacks as a
    question mark. On Windows a carriage return ends each line.
    """
    if text is None or size is None or "\ufffd" in text or "?" in text:
        return None
    content = text.encode("utf-8", "surrogatepass")
    if len(content) == size + 1 and content.endswith(b"\r"):
        content = content[:-1]
    return content if len(content) == size else None


def _header_names(text: str) -> str:
    """The names of a record's headers as they were printed, "" without any."""
    _, found, tail = text.partition(" headerKeys: [")
    return tail.partition("]")[0] if found else ""


def _pairs(text: str) -> tuple[dict[str, str], str]:
    """(the `name: value` pairs, the rest of the line, with key and payload)."""
    head, with_headers, tail = text.partition(" headerKeys: [")
    if with_headers:
        tail = tail[tail.find("]") + 1 :]
    else:
        # Up to 0.10 the key follows its size at once.
        found = re.search(r"keysize: -?\d+(?= (?:key|payload): )", text)
        head, tail = (text[: found.end()], text[found.end() :]) if found else (text, "")
    return dict(_PAIR.findall(head.removeprefix("| "))), tail


def _printed(
    pairs: dict[str, str], line: str, tail: str
) -> tuple[int | None, str | None, str | None]:
    """(size of the key, key, first line of the payload); tail: of the line, without its end.

    The key is as long as `keySize` says: it may hold spaces and colons, or be cut by no one.
    """
    told = pairs.get("keySize", pairs.get("keysize", "-1"))
    size = int(told) if told.isdigit() and len(told) < 20 else None
    # Up to its end the line is the payload's, with what this line ends in.
    behind = line[line.rindex(tail) :] if tail else ""
    if size is None and behind.startswith(" payload: "):
        return None, None, behind.removeprefix(" payload: ")
    if size is None or not behind.startswith(" key: "):
        return size, None, None
    raw = behind.removeprefix(" key: ").encode("utf-8", "surrogatepass")
    key, rest = raw[:size], raw[size:]
    if len(key) != size or (rest.strip(b"\r") and not rest.startswith(b" payload: ")):
        return size, None, None  # bytes that are no UTF-8 were printed as something else
    payload = rest.removeprefix(b" payload: ") if rest.startswith(b" payload: ") else None
    told_payload = None if payload is None else payload.decode("utf-8", "replace")
    return size, key.decode("utf-8", "replace"), told_payload


def _batch(pairs: dict[str, str]) -> RecordBatch:
    base, last = whole_number(pairs, "baseOffset"), whole_number(pairs, "lastOffset")
    if last < base:
        raise BadLine(f"this batch ends at offset {last}, before its first, {base}")
    return RecordBatch(
        base_offset=base,
        end_offset=last + 1,
        leader_epoch=known_number(pairs, "partitionLeaderEpoch"),
        magic=whole_number(pairs, "magic"),
        crc=whole_number(pairs, "crc"),
        size=whole_number(pairs, "size"),
        position=whole_number(pairs, "position"),
        producer_id=known_number(pairs, "producerId"),
        producer_epoch=known_number(pairs, "producerEpoch"),
        base_sequence=known_number(pairs, "baseSequence"),
        is_control=pairs.get("isControl") == "true",
        is_transactional=pairs.get("isTransactional") == "true",
        record_count=known_number(pairs, "count"),
        max_timestamp=known_number(pairs, "CreateTime", "LogAppendTime"),
        codec=_codec(pairs),
    )


def _message(pairs: dict[str, str]) -> RecordBatch:
    """A message of format 0 or 1, which is a batch of one."""
    offset, magic = whole_number(pairs, "offset"), whole_number(pairs, "magic")
    if _codec(pairs):
        reason = "a compressed message hides its offsets: dump this segment with --deep-iteration"
        raise BadLine(reason)
    key = known_number(pairs, "keysize") or 0
    value = known_number(pairs, "payloadsize", "valuesize") or 0
    overhead = _FORMAT_1_OVERHEAD if magic else _FORMAT_0_OVERHEAD
    return RecordBatch(
        base_offset=offset,
        end_offset=offset + 1,
        leader_epoch=None,
        magic=magic,
        crc=whole_number(pairs, "crc"),
        size=overhead + key + value,
        position=whole_number(pairs, "position"),
        producer_id=None,
        producer_epoch=None,
        base_sequence=None,
        is_control=False,
        is_transactional=False,
        record_count=1,
        max_timestamp=known_number(pairs, "CreateTime", "LogAppendTime"),
        codec=0,
    )


def _codec(pairs: dict[str, str]) -> int:
    name = pairs.get("compresscodec", "none").lower()
    for number, start in enumerate(_CODECS):
        if name.startswith(start):
            return number
    raise BadLine(f"has compresscodec {name[:40]}, which is not known")
