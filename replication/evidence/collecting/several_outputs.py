"""A file that holds several kinds of output, as a ticket or somebody's notes do: which of its lines
are of which kind.

Each line is known by itself, or goes on with the one before it. What a printed record holds is that
record's, whatever it looks like.
"""

import json
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from replication.evidence.broker_logs.excerpts import LARGEST
from replication.evidence.broker_logs.json_lines import json_line_fields
from replication.evidence.broker_logs.line_headers import HEADER_PATTERN, LEVEL
from replication.evidence.broker_logs.loggers_in_lines import BROKERS_PREFIX
from replication.evidence.clients.client_logs import kind_of_fields
from replication.evidence.collecting.headings import heading_of
from replication.evidence.digest import LINES_NAME
from replication.evidence.opening import (
    READ_ERRORS,
    Part,
    open_unpacked,
    read_up_to,
    without_holes,
)
from replication.evidence.text_lines import iso_milliseconds, text_lines
from replication.evidence.tools.dump_log import DUMPING, is_dump_line, prints_payload
from replication.evidence.tools.metadata_dump import METADATA_PAYLOAD
from replication.evidence.tools.metadata_quorum import REPLICA_ROW, REPLICATION_HEADER
from replication.evidence.tools.topic_descriptions import GOES_ON, QUOTED
from replication.evidence.unreadable import Unreadable

LOG, JSON_LOG, DESCRIBE, DUMP = "log", "json_log", "describe", "dump"
METADATA, DIRECTORIES, QUORUM = "metadata", "directories", "quorum"
CLIENT, DIGEST, PAYLOAD, OTHER = "client", "digest", "payload", "other"
_TOOLS = frozenset((DESCRIBE, DUMP, METADATA, DIRECTORIES, QUORUM))
LOGS = (LOG, JSON_LOG)
KINDS = frozenset((*LOGS, CLIENT, DIGEST)) | _TOOLS
_NAMES = {
    LOG: "a broker's log",
    JSON_LOG: "a broker's log in JSON",
    DESCRIBE: "output of kafka-topics",
    DUMP: "output of kafka-dump-log",
    METADATA: "output of kafka-dump-log of the metadata log",
    DIRECTORIES: "output of kafka-log-dirs",
    QUORUM: "output of kafka-metadata-quorum",
    CLIENT: "a client's log",
    DIGEST: "lines of a digest",
    PAYLOAD: "perhaps a record's payload, not read",
    OTHER: "other text, not read",
}
_BLANK, _COMMENT = "", "comment"

# A large file is looked at where it begins.
_SAMPLE = 1 << 18
_LONGEST_JSON = 1 << 20
# Of JSON so many lines are looked at where a file begins and ends.
_AT_AN_END = 100
_QUORUM_NAMES = (
    "ClusterId|LeaderId|LeaderEpoch|HighWatermark|MaxFollowerLag|MaxFollowerLagTimeMs"
    "|CurrentVoters|CurrentObservers"
)
_DESCRIBED = re.compile(r"^\s*Topic:\s?\S+(?:\s+(?:TopicId|PartitionCount|Partition)\b|\s*$)")
_LIST_GOES_ON = re.compile(r"^\s*,?\d[\d,]*(?:\s+[A-Z].*)?$")
_QUORUM_LINE = re.compile(rf"^(?:{_QUORUM_NAMES}):\s")
_DIRECTORIES_LINE = re.compile(r"^(?:Querying brokers for log dir|Received log directory info)")
_LOG_LINE = re.compile(
    rb"^" + re.sub(rb"\?P<\w+>", b"?:", HEADER_PATTERN)
    + rb"|\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\] " + LEVEL + rb" |^" + LEVEL + rb"[ \t]+\["
    + rb"|" + BROKERS_PREFIX.pattern.encode()
    + rb"|[ \t]\((?:kafka|org\.apache\.kafka|state\.change)\.[\w.$]+(?::\d+)?\)"
)  # fmt: skip
# What a shell or a text around outputs shows, behind which no record's payload goes on.
_BETWEEN = re.compile(r"^(?:[$#%] |```|\S+@\S+[:$#])")
# Without any of these a text is a log, or nothing that is known.
_MARK = re.compile(
    rb"\n[ \t>]*(?:Topic:|Dumping |baseOffset: \d|offset: \d|\| offset: |(?:"
    + _QUORUM_NAMES.encode()
    + rb"):|(?:Node|Replica)Id\s|Querying brokers|Received log dir|\{)"
)
# Apart, since what begins with a word is found fast.
_CSV_NAMES = (re.compile(rb"topic\"?[,;\t]"), re.compile(rb"partition\"?[,;\t]\"?offset"))


def outputs_of(path: Path) -> dict[str, list[int]] | None:
    """By kind the numbers of the lines, from 1, of a file that holds several kinds, or output of a
    tool with other text; None for any other file."""
    try:
        about = path.stat()
    except OSError:
        return None
    return _outputs_of(path, about.st_size, about.st_mtime_ns)


# A file is asked about by each that reads some of it.
@lru_cache(maxsize=4)
def _outputs_of(path: Path, size: int, changed: int) -> dict[str, list[int]] | None:
    try:
        with open_unpacked(path) as stream:
            head = without_holes(read_up_to(stream, LARGEST + 1))
    except READ_ERRORS:
        return None
    if len(head) > LARGEST:
        # Line by line it takes its time.
        beginning = head[: head.rfind(b"\n", 0, _SAMPLE) + 1]
        if not _is_marked(beginning) or not _are_several(_kinds(_texts(beginning))):
            return None
    elif not _is_marked(head) or _is_json_of_one_kind(head):
        return None
    found: dict[str, list[int]] = {}
    times: list[int] = []
    kinds = _kinds((n, t) for n, t in text_lines(path) if not isinstance(t, Unreadable))
    for number, kind in kinds:
        if kind == _COMMENT:
            # A time that somebody put before outputs, of whichever they are.
            times.append(number)
        elif kind:
            found.setdefault(kind, []).append(number)
    for tool in (DESCRIBE, QUORUM):
        if tool in found:
            found[tool] = sorted([*found[tool], *times])
    told = [kind for kind, numbers in found.items() if kind in KINDS and numbers]
    if DUMP in found and any(heading_of(line) is not None for _, line in text_of(path, found)):
        return found
    return found if _are_several((0, kind) for kind in told) or _has_text(found) else None


def text_of(path: Path, outputs: dict[str, list[int]]) -> list[tuple[int, str]]:
    """The lines that are no output of any kind, but for blank ones, with their numbers."""
    if OTHER not in outputs:
        return []
    lines = text_lines(Part.of(path, outputs[OTHER]))
    return [(n, t) for n, t in lines if not isinstance(t, Unreadable) and t.strip()]


def _is_marked(text: bytes) -> bool:
    if _MARK.search(b"\n" + text[:_AT_AN_END]) or _MARK.search(text):
        return True
    return any(names.search(text) for names in _CSV_NAMES)


def _is_json_of_one_kind(text: bytes) -> bool:
    """Whether every line is an object, and those at both ends are of one kind."""
    lines = [line for line in text.splitlines(keepends=True) if line.strip()]
    if not all(line.startswith(b"{") for line in lines):
        return False
    ends = lines if len(lines) <= 2 * _AT_AN_END else [*lines[:_AT_AN_END], *lines[-_AT_AN_END:]]
    return not _are_several(_kinds(_texts(b"".join(ends))))


def _texts(sample: bytes) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(sample.splitlines(keepends=True), 1):
        yield number, line.decode("utf-8", "replace")


def _are_several(kinds: Iterable[tuple[int, str]]) -> bool:
    return len({kind for _, kind in kinds if kind in KINDS}) > 1


def _has_text(found: dict[str, list[int]]) -> bool:
    """Whether somebody's text has the output of one tool in it, or has it before what may be
    payload."""
    if PAYLOAD in found:
        return True
    return OTHER in found and any(kind in found for kind in (DESCRIBE, QUORUM, DIRECTORIES))


def _kinds(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """The kind of each line."""
    before, in_payload, header = _BLANK, False, 0
    dumped = DUMP
    blank: list[int] = []
    for number, text in _with_json(lines):
        if not isinstance(text, str):
            kind = _kind_of_json(text)
            if in_payload:
                kind = dumped if kind == OTHER else PAYLOAD
        else:
            line = QUOTED.sub("", text).rstrip("\r\n")
            kind = _kind(line, before, header)
            if kind == DUMP:
                dumped = _dumped(line, dumped)
                kind, in_payload = dumped, prints_payload(line)
            elif in_payload and kind in (OTHER, LOG) and not _BETWEEN.match(line):
                kind = dumped if kind == OTHER else PAYLOAD
            else:
                in_payload = False
            header = _csv_columns(line) or (header if kind == CLIENT else 0)
        if kind == _BLANK:
            in_payload = False
            blank.extend(_numbers(number))
            continue
        # With --skip-record-metadata an empty line is a record.
        yield from ((n, kind if kind == before else _BLANK) for n in blank)
        blank = []
        yield from ((n, kind) for n in _numbers(number))
        before = kind
    yield from ((n, _BLANK) for n in blank)


def _numbers(number: int | range) -> Iterable[int]:
    return number if isinstance(number, range) else (number,)


def _with_json(
    lines: Iterable[tuple[int, str]],
) -> Iterator[tuple[Any, Any]]:
    """The lines; objects of JSON in place of theirs, with the numbers of all their lines."""
    held: list[tuple[int, str]] = []
    depth = size = 0
    for number, text in lines:
        if not held and not text.lstrip().startswith("{"):
            yield number, text
            continue
        held.append((number, text))
        depth += text.count("{") - text.count("}")
        size += len(text)
        if depth > 0 and size < _LONGEST_JSON:
            continue
        yield from _parsed(held)
        held, depth, size = [], 0, 0
    yield from _parsed(held)


def _parsed(held: list[tuple[int, str]]) -> Iterator[tuple[Any, Any]]:
    try:
        found = json.loads("".join(text for _, text in held)) if held else None
    except (ValueError, RecursionError):
        found = None
    if isinstance(found, dict):
        yield range(held[0][0], held[-1][0] + 1), (found, held[0][1])
    else:
        yield from held


def _kind_of_json(parsed: tuple[dict[str, Any], str]) -> str:
    found, text = parsed
    if isinstance(found.get("brokers"), list):
        return DIRECTORIES
    if LINES_NAME in found:
        return DIGEST
    if kind_of_fields(frozenset(found)) is not None:
        return CLIENT
    return JSON_LOG if json_line_fields(text.encode()) is not None else OTHER


def _kind(line: str, before: str, columns: int) -> str:
    text = line.strip()
    if not text:
        return _BLANK
    if _DESCRIBED.match(line) or (
        before == DESCRIBE and (GOES_ON.match(line) or _LIST_GOES_ON.match(line))
    ):
        return DESCRIBE
    if is_dump_line(text):
        return DUMP
    if _QUORUM_LINE.match(text) or REPLICATION_HEADER.match(text):
        return QUORUM
    if before == QUORUM and REPLICA_ROW.match(text):
        return QUORUM
    if _DIRECTORIES_LINE.match(text):
        return DIRECTORIES
    if _csv_columns(line) or (columns and _separators(line) == columns):
        return CLIENT
    if _LOG_LINE.search(line.encode("utf-8", "replace")):
        return LOG
    if before in (LOG, PAYLOAD) and line[:1] in ("\t", " "):
        return before
    if text.startswith("#") and _is_time(text.lstrip("# \t")):
        return _COMMENT
    return OTHER


def _is_time(text: str) -> bool:
    try:
        iso_milliseconds(text)
    except (ValueError, OverflowError):
        return False
    return True


def _dumped(line: str, before: str) -> str:
    """Which of both dumps a line of kafka-dump-log is of: the partition's folder tells."""
    dumping = DUMPING.match(line.strip())
    if dumping:
        return METADATA if "__cluster_metadata-" in dumping[1] else DUMP
    return METADATA if METADATA_PAYLOAD.search(line) else before


def _csv_columns(line: str) -> int:
    """How many separators the line of names of a client's log in CSV has; 0 for any other line."""
    for separator in (",", ";", "\t"):
        names = [name.strip().strip('"') for name in line.split(separator)]
        if len(names) > 3 and kind_of_fields(frozenset(names)) is not None:
            return len(names) - 1
    return 0


def _separators(line: str) -> int:
    return max(line.count(separator) for separator in (",", ";", "\t"))


def in_words(outputs: dict[str, list[int]]) -> str:
    """Which part of a file of several kinds is of which kind."""
    told = (f"{_NAMES[kind]} ({lines_in_words(outputs[kind])})" for kind in outputs)
    return f"several kinds in one file: {', '.join(told)}"


def lines_in_words(numbers: list[int]) -> str:
    """`line 4`, `lines 2..9`, `lines 2..9 and 4 more`."""
    first = last = numbers[0]
    for number in numbers[1:]:
        if number != last + 1:
            break
        last = number
    more = len(numbers) - (last - first + 1)
    named = f"line {first}" if first == last else f"lines {first}..{last}"
    return named + (f" and {more} more" if more else "")
