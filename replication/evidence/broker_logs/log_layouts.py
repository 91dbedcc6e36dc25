"""The layouts broker logs come in, and the way from a file's bytes to the few lines worth reading.

A log file may hold gigabytes of which little matters, so whole blocks are searched for the loggers
that line families know; of their lines those are taken apart that begin as a family's do. Layouts
that carry the logger elsewhere than in brackets are read line by line, and wrappers (docker,
journald) are taken off first.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, tzinfo
from functools import reduce
from pathlib import Path
from typing import BinaryIO, NamedTuple

from replication.evidence.broker_logs.json_lines import JsonLine, json_line_fields, json_time
from replication.evidence.broker_logs.line_families import (
    LOGGER_IN_BRACKETS,
    LOGGERS,
    RARE_WORDINGS,
    START,
    short_logger,
)
from replication.evidence.broker_logs.line_headers import HEADER, HEADER_PATTERN, LEVEL, Clock
from replication.evidence.opening import READ_ERRORS, open_unpacked, read_up_to

_BLOCK = 1 << 20
# A line beyond this is no log line; what is read of it is given up.
LONGEST_LINE = 8 << 20
# A settings dump is 10 to 40 kB; one that a block's end cuts is carried over up to this size.
_LONGEST_DUMP = 1 << 18
_SAMPLE = 1 << 18
_SAMPLE_LINES = 600

# A line that families may know: header and beginning of the message. Kafka's own layout is tried
# first, and atomically, because this is asked of every line of a known logger.
_KNOWN = re.compile(
    rb"(?>\[[^\]\n]{8,40}+\] ++[A-Z]++ ++|"
    + re.sub(rb"\?P<\w+>", b"?:", HEADER_PATTERN)
    + rb")"
    + START.encode()
)
_KNOWN_MESSAGE = re.compile(START)
# `[thread] logger:line - message` and `logger: message` behind the level.
# In front of them Spring Boot puts the process and, from 3.2, the application.
_LOGGER_FIRST = re.compile(
    rb"(?:\d+ --- )?(?:\[(?P<thread>[^\]\n]*)\] +){0,2}(?P<logger>[\w.$]+)(?::\d+)?"
    rb"(?: *\([^)\n]*\))?"
    rb" *(?:-|:) +"
)
# Exports put the line into quotes, which then end it.
_TRAILING_LOGGER = re.compile(
    rb" \((?P<logger>[\w.$]+)\)(?: \[(?P<thread>[^\]\n]*)\])?[\"',;]*\s*$"
)

_IN_BRACKETS = re.compile(LOGGER_IN_BRACKETS.encode())
_JSON_MESSAGE = re.compile(
    rb'"(?:message|msg|@message|log|MESSAGE|short_message|textPayload|_raw)" ?: ?"'
    + rb'(?:\[?\d[^\]\n"]{7,40}?\]? +'
    + LEVEL
    + rb" +)?"
    + START.encode()
)
_RARE_WORDINGS = tuple(wording.encode() for wording in RARE_WORDINGS)
_DUMP_TITLE = b"KafkaConfig values:"

_BROKER_LOGGER = re.compile(
    r"^(?:state\.change\.logger|kafka\.(?!examples|javaapi|consumer|producer|mirrormaker|etl)[\w.$]+"
    r"|org\.apache\.kafka\.(?:controller|server|storage|image|raft|metadata|coordinator|network|queue)"
    r"\.[\w.$]+)$"
)


class LogLine(NamedTuple):
    """A line of a logger that families know. `at` in ms since the epoch, None without a date."""

    number: int
    at: int | None
    logger: str | None
    message: str
    thread: str | None = None


class Skipped(NamedTuple):
    """A place that could not be read as lines: `reason` says why."""

    number: int
    reason: str


# Wrappers: what collectors put in front of each line, continuation lines included.
_ISO = rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"
_SYSLOG_TIME = rb"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)?"
_SENDER = rb" [\w.-]+ [^\s:\[]+(?:\[\d+\])?: "
_WRAPPERS = tuple(
    re.compile(rb"(?m)^" + pattern)
    for pattern in (
        # CRI (containerd, cri-o)
        _ISO + rb" (?:stdout|stderr) [FP] ",
        # docker compose, with and without its time stamps
        rb"[\w.-]+ *\| +" + _ISO + rb" ",
        rb"[\w.-]+ *\| ",
        # journald (short-iso) and rsyslog, journald (short) and classic syslog
        rb"(?:<\d+>)?(?P<iso>" + _ISO + rb")" + _SENDER,
        rb"(?:<\d+>)?(?P<syslog>" + _SYSLOG_TIME + rb")" + _SENDER,
        # docker logs -t, kubectl logs --timestamps
        rb"(?P<iso>" + _ISO + rb") ",
        # kubectl logs --prefix, with and without --timestamps
        rb"\[pod/[^\]\s]+\] (?:" + _ISO + rb" )?",
        # stern: pod and container
        rb"[\w.-]+ [\w.-]+ ",
    )
)
# Kafka's own header, of a second and a level at least; and whatever stands before it in a line.
_KAFKAS_HEADER = rb"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\] " + LEVEL + rb" "
_ANYTHING_BEFORE = re.compile(rb"(?m)^[^\n]{1,400}?(?=" + _KAFKAS_HEADER + rb")")
_COLOURS = re.compile(rb"\x1b\[[0-9;]*[A-Za-z]")
_MONTHS = b"Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()
_STARTS_WITH_LEVEL = re.compile(LEVEL + rb"[ :]")

Transform = Callable[[bytes], bytes]


class _DockerJson:
    """Docker's json-file driver: one object per line, `{"log":"..\\n","stream":..,"time":..}`.

    A long line is split over objects; its pieces are joined in the last one's place.
    """

    def __init__(self) -> None:
        self._pending = b""

    def __call__(self, block: bytes) -> bytes:
        return b"".join(self._line(line) for line in block.splitlines(keepends=True))

    def _line(self, line: bytes) -> bytes:
        try:
            text = json.loads(line)["log"].encode("utf-8", "replace")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return line if line.endswith(b"\n") else line + b"\n"
        text = self._pending + text
        if text.endswith(b"\n") or len(text) > LONGEST_LINE:
            self._pending = b""
            return text.rstrip(b"\r\n").replace(b"\n", b" ") + b"\n"
        self._pending = text
        return b"\n"


class _OneObjectALine:
    """JSON objects that are spread over lines (log4j2's JSON layout), or stand in an array: each in
    one line, with the line ends that it had behind it."""

    _MARKS = re.compile(rb'\\.|["{}\n]')

    def __init__(self) -> None:
        self._pending = b""
        self._depth = 0
        self._quoted = False

    def __call__(self, block: bytes) -> bytes:
        done: list[bytes] = []
        start, lines = 0, 0
        text = self._pending + block
        for mark in self._MARKS.finditer(text, len(self._pending)):
            sign = mark[0]
            if sign == b'"':
                self._quoted = not self._quoted
            elif sign == b"\n" and not self._depth:
                done.append(b"\n")
                start = mark.end()
            elif not self._quoted and sign == b"{":
                start = start if self._depth else mark.start()
                self._depth += 1
            elif not self._quoted and sign == b"}" and self._depth:
                self._depth -= 1
                if not self._depth:
                    whole = text[start : mark.end()]
                    lines = whole.count(b"\n")
                    done.append(whole.replace(b"\n", b" ") + b"\n" * lines)
                    start = mark.end()
        self._pending = text[start:] if self._depth else b""
        if len(self._pending) > LONGEST_LINE:
            self._pending, self._depth, self._quoted = b"", 0, False
        result = b"".join(done)
        return result if result.endswith(b"\n") or not result else result + b"\n"


def _unwrapping(wrapper: re.Pattern[bytes]) -> Transform:
    return lambda block: wrapper.sub(b"", block)


def _dating(wrapper: re.Pattern[bytes], year: int | None) -> Transform:
    """For messages that carry no date of their own: the wrapper's becomes theirs."""

    def dated(match: re.Match[bytes]) -> bytes:
        if not _STARTS_WITH_LEVEL.match(match.string, match.end()):
            return b""
        groups = match.groupdict()
        if groups.get("iso"):
            return b"[" + match["iso"] + b"] "
        month, day, time = match["syslog"].split()
        if year is None or month not in _MONTHS:
            return b"[" + time + b"] "
        date = f"{year:04d}-{_MONTHS.index(month) + 1:02d}-{int(day):02d} "
        return b"[" + date.encode() + time + b"] "

    return lambda block: wrapper.sub(dated, block)


@dataclass(frozen=True, slots=True)
class Layout:
    """How a file's lines are laid out: `form` and what is taken off each block before."""

    form: str  # "brackets", "logger_first", "no_logger", "json"
    transforms: tuple[str, ...]
    wrapper: re.Pattern[bytes] | None = None

    def transform(self, year: int | None) -> Transform | None:
        chain: list[Transform] = []
        for name in self.transforms:
            if name == "docker":
                chain.append(_DockerJson())
            elif name == "objects":
                chain.append(_OneObjectALine())
            elif name == "colours":
                chain.append(lambda block: _COLOURS.sub(b"", block))
            elif self.wrapper is not None:
                dating = name == "dating"
                chain.append(_dating(self.wrapper, year) if dating else _unwrapping(self.wrapper))
        if not chain:
            return None
        return lambda block: reduce(lambda text, change: change(text), chain, block)


def detect_layout(sample: bytes) -> Layout | None:
    """The layout of a file that begins with `sample`; None where no line looks like a log line."""
    transforms: tuple[str, ...] = ()
    if _COLOURS.search(sample):
        sample, transforms = _COLOURS.sub(b"", sample), ("colours",)
    lines = [line for line in sample.splitlines() if line.strip()][:_SAMPLE_LINES]
    if (lines and lines[0].lstrip().startswith((b"{", b"[{"))) or lines[:1] == [b"["]:
        if not _is_docker_json(lines[0]):
            if any(map(json_line_fields, lines[:50])):
                return Layout("json", transforms)
            whole = _OneObjectALine()(sample).splitlines()
            spread = any(map(json_line_fields, [line for line in whole if line][:50]))
            return Layout("json", (*transforms, "objects")) if spread else None
        transforms = (*transforms, "docker")
        lines = _DockerJson()(b"\n".join(lines) + b"\n").splitlines()
    wrapper, taken_off = _wrapper_of(lines)
    if wrapper is not None:
        transforms = (*transforms, taken_off)
        strip = _dating(wrapper, None) if taken_off == "dating" else _unwrapping(wrapper)
        lines = strip(b"\n".join(lines) + b"\n").splitlines()
    form = _form_of(lines)
    return None if form is None else Layout(form, transforms, wrapper)


def _is_docker_json(line: bytes) -> bool:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(fields, dict) and isinstance(fields.get("log"), str)


def _wrapper_of(lines: list[bytes]) -> tuple[re.Pattern[bytes] | None, str]:
    """The wrapper behind which most lines begin as log lines do; none where lines begin bare."""
    behind = [match.end() for line in lines if (match := _ANYTHING_BEFORE.match(line))]
    bare = sum(HEADER.match(line) is not None for line in lines)
    if bare > len(behind) or (bare and not behind):
        return None, ""
    best: tuple[int, re.Pattern[bytes] | None, str] = (0, None, "")
    for wrapper in _WRAPPERS:
        inside = dateless = 0
        for line in lines:
            match = wrapper.match(line)
            if match and HEADER.match(line, match.end()):
                inside += 1
            elif match and match.groupdict() and _STARTS_WITH_LEVEL.match(line, match.end()):
                dateless += 1
        if inside > best[0]:
            best = (inside, wrapper, "unwrapping")
        if dateless > best[0]:
            best = (dateless, wrapper, "dating")
    if len(behind) > best[0] or bare:
        return _ANYTHING_BEFORE, "unwrapping"
    return best[1], best[2]


def _form_of(lines: list[bytes]) -> str | None:
    """Which of the forms most lines with a header are in."""
    counts = {"brackets": 0, "logger_first": 0, "no_logger": 0}
    for line in lines:
        header = HEADER.match(line)
        if header is None:
            continue
        trailing = _TRAILING_LOGGER.search(line, header.end())
        leading = _LOGGER_FIRST.match(line, header.end())
        if trailing and b"." in trailing["logger"]:
            counts["brackets"] += 1
        elif leading and b"." in leading["logger"]:
            counts["logger_first"] += 1
        else:
            counts["no_logger"] += 1
    if not any(counts.values()):
        # A settings dump may fill the whole sample; its last line names the logger.
        return "brackets" if any(_TRAILING_LOGGER.search(line) for line in lines) else None
    return max(counts, key=lambda form: counts[form])


def stamps_name_zone(path: Path) -> bool:
    """Whether the file's time stamps say which zone they are in; Kafka's own layout does not."""
    try:
        with open_unpacked(path) as stream:
            sample = read_up_to(stream, _SAMPLE)
    except READ_ERRORS:
        return False
    layout = detect_layout(sample)
    if layout is None:
        return False
    transform = layout.transform(None)
    for line in (transform(sample) if transform else sample).splitlines():
        fields = json_line_fields(line) if layout.form == "json" else None
        if fields is not None and fields[1] is not None:
            text = fields[2] if isinstance(fields[2], str) else ""
            return not text or text.isdecimal() or _names_zone(text.encode() + b" INFO ")
        header = line if fields is None else fields[0].encode("utf-8", "replace")
        if HEADER.match(header):
            return _names_zone(header)
    return False


def _names_zone(header: bytes) -> bool:
    found = HEADER.match(header)
    return found is not None and found["zone"] is not None


def looks_like_broker_log(path: Path) -> bool:
    """Whether the beginning of the file holds lines of a broker's or controller's loggers."""
    try:
        with open_unpacked(path) as stream:
            sample = read_up_to(stream, _SAMPLE)
    except READ_ERRORS:
        return False
    # Segments and indexes begin with zero bytes; log text has none.
    if b"\0" in sample[:1024]:
        return False
    layout = detect_layout(sample)
    if layout is None:
        return False
    transform = layout.transform(None)
    if transform:
        sample = transform(sample if sample.endswith(b"\n") else sample + b"\n")
    return any(_is_broker_line(line, layout.form) for line in sample.splitlines())


def _is_broker_line(line: bytes, form: str) -> bool:
    if form == "json":
        fields = json_line_fields(line)
        if fields is None:
            return False
        if fields[1] is None:
            return _is_broker_line(fields[0].encode("utf-8", "replace"), "brackets")
        return _BROKER_LOGGER.match(fields[1]) is not None
    header = HEADER.match(line)
    if form == "brackets":
        # The last line of a message of several lines has no header.
        match = _TRAILING_LOGGER.search(line)
    elif header is None:
        return False
    elif form == "logger_first":
        match = _LOGGER_FIRST.match(line, header.end())
    else:
        trailing = _TRAILING_LOGGER.search(line)
        return trailing is not None and trailing["logger"].decode() in LOGGERS
    return match is not None and _BROKER_LOGGER.match(match["logger"].decode()) is not None


class LineReader:
    """Reads the lines of one file that families may know, in order, in bounded memory."""

    def __init__(self, path: Path, time_zone: tzinfo, year: int | None) -> None:
        self._path = path
        self._clock = Clock(time_zone)
        self._year = year
        # The number of the first line of the block in hand.
        self._number = 1
        # Up to where in the block lines are counted, and the number of the line there.
        self._counted_to, self._counted = 0, 1

    def lines(self) -> Iterator[LogLine | Skipped]:
        try:
            with open_unpacked(self._path) as stream:
                yield from self._of_stream(stream)
        except READ_ERRORS as error:
            yield Skipped(self._number, f"reading stops here: {error}")

    def _of_stream(self, stream: BinaryIO) -> Iterator[LogLine | Skipped]:
        sample = read_up_to(stream, _SAMPLE)
        layout = detect_layout(sample)
        if layout is None:
            if sample.strip():
                yield Skipped(1, "no line looks like a broker's log line")
            return
        scan = {
            "brackets": self._scan_brackets,
            "json": self._scan_json,
        }.get(layout.form, self._scan_each_line)
        transform = layout.transform(self._year)
        carried = b""
        for block in self._blocks(stream, sample):
            if isinstance(block, Skipped):
                yield block
                continue
            text = block if transform is None else transform(block)
            text = carried + text
            carried = self._unfinished_dump(text) if layout.form == "brackets" else b""
            if carried:
                text = text[: -len(carried)]
            self._counted_to, self._counted = 0, self._number
            yield from scan(text)
            self._number = self._line_at(text, len(text))
        if carried:
            self._counted_to, self._counted = 0, self._number
            yield from scan(carried)

    def _blocks(self, stream: BinaryIO, sample: bytes) -> Iterator[bytes | Skipped]:
        """Whole lines, about a mebibyte at a time."""
        tail = b""
        given_up = False
        chunk = sample
        while chunk:
            cut = chunk.rfind(b"\n") + 1
            if cut:
                block = tail + chunk[:cut]
                # What is left of a line that was given up still counts as a line.
                yield b"\n" + block.partition(b"\n")[2] if given_up else block
                tail, given_up = chunk[cut:], False
            elif not given_up:
                tail += chunk
            if len(tail) > LONGEST_LINE:
                yield Skipped(self._number, f"a line of more than {LONGEST_LINE} bytes")
                tail, given_up = b"", True
            try:
                chunk = read_up_to(stream, _BLOCK)
            except READ_ERRORS as error:
                if tail:
                    yield tail + b"\n"
                yield Skipped(self._number, f"reading stops here: {error}")
                return
        if tail:
            yield tail + b"\n"

    @staticmethod
    def _unfinished_dump(text: bytes) -> bytes:
        """The settings dump that the block ends in, from its first line on, or nothing."""
        title = text.rfind(_DUMP_TITLE, max(0, len(text) - _LONGEST_DUMP))
        if title < 0:
            return b""
        start = text.rfind(b"\n", 0, title) + 1
        if _end_of_dump(text, title) < len(text):
            return b""
        return text[start:]

    def _scan_brackets(self, block: bytes) -> Iterator[LogLine]:
        """`[time] LEVEL message (logger)`, perhaps with a thread behind the logger."""
        find, line_at, by_kafka = block.find, self._line_at, self._clock.at_kafkas
        for start in self._known_lines(block):
            line = block[start : find(b"\n", start)]
            at, begin = by_kafka(line)
            if not begin:
                header = HEADER.match(line)
                if header is None:
                    continue
                at, begin = self._clock.at(header), header.end()
            logger: str | None
            if line.startswith(_DUMP_TITLE, begin):
                # One message of many lines; the logger stands behind the last.
                begin += start
                line, logger = block[begin : _end_of_dump(block, begin)], "KafkaConfig"
                thread = None
            else:
                line, logger, thread = _without_logger(line, begin)
            message = line.decode("utf-8", "replace")
            yield LogLine(line_at(block, start), at, logger, message, thread)

    @staticmethod
    def _known_lines(block: bytes) -> Iterator[int]:
        """Where lines begin that families may know, in order."""
        rare = [
            block.rfind(b"\n", 0, place) + 1
            for wording in _RARE_WORDINGS
            for place in _places_of(wording, block)
        ]
        known, last = _KNOWN.match, -1
        starts = []
        for match in _IN_BRACKETS.finditer(block):
            start = block.rfind(b"\n", 0, match.start()) + 1
            if known(block, start) and start != last:
                starts.append(start)
                last = start
        if not rare:
            return iter(starts)
        return iter(sorted({*starts, *(start for start in rare if known(block, start))}))

    def _line_at(self, block: bytes, place: int) -> int:
        """The number of the line at that place of the block; places only grow."""
        self._counted += block.count(b"\n", self._counted_to, place)
        self._counted_to = place
        return self._counted

    def _scan_each_line(self, block: bytes) -> Iterator[LogLine]:
        """`time LEVEL [thread] logger - message` and messages without a logger."""
        for number, line in enumerate(block.split(b"\n"), self._number):
            header = HEADER.match(line)
            if header is None:
                continue
            logger: str | None = None
            start, end = header.end(), len(line.rstrip())
            leading = _LOGGER_FIRST.match(line, start)
            trailing = _TRAILING_LOGGER.search(line, start)
            if trailing:
                name, end = trailing["logger"].decode(), trailing.start()
                logger = short_logger(name) if "." in name else None
            elif leading and b"." in leading["logger"]:
                logger, start = short_logger(leading["logger"].decode()), leading.end()
            if logger is None or logger in LOGGERS:
                message = line[start:end].decode("utf-8", "replace")
                if _KNOWN_MESSAGE.match(message):
                    thread = _thread(header, leading if logger else None, trailing)
                    yield LogLine(number, self._clock.at(header), logger, message, thread)

    def _scan_json(self, block: bytes) -> Iterator[LogLine]:
        line_end = -1
        for match in _JSON_MESSAGE.finditer(block):
            if match.start() < line_end:
                continue
            start = block.rfind(b"\n", 0, match.start()) + 1
            line_end = block.find(b"\n", match.end())
            fields = json_line_fields(block[start:line_end])
            if fields is None:
                continue
            yield from self._json_line(self._line_at(block, start), fields)

    def _json_line(self, number: int, fields: JsonLine) -> Iterable[LogLine]:
        message, logger, time, thread = fields
        if logger is not None:
            name = short_logger(logger)
            return [LogLine(number, json_time(time, self._clock), name, message, thread)]
        # A collector that wraps the whole printed line.
        inner = message.encode("utf-8", "replace")
        header = HEADER.match(inner)
        trailing = _TRAILING_LOGGER.search(inner)
        if header is None or trailing is None:
            return []
        text = inner[header.end() : trailing.start()].decode("utf-8", "replace")
        name = short_logger(trailing["logger"].decode())
        return [LogLine(number, self._clock.at(header), name, text)]


def split_line(text: str) -> tuple[int | None, str, str | None, bool]:
    """One line by itself: its time (UTC where it names no zone), message, logger, and whether it
    begins as log lines do."""
    line = text.encode("utf-8", "replace")
    header = HEADER.match(line)
    begin = header.end() if header else 0
    message, logger, _ = _without_logger(line, begin)
    at = Clock(UTC).at(header) if header else None
    return at, message.decode("utf-8", "replace").strip(), logger, header is not None


def _places_of(wording: bytes, block: bytes) -> Iterator[int]:
    place = block.find(wording)
    while place >= 0:
        yield place
        place = block.find(wording, place + 1)


# Few loggers write many lines: short names by whole ones.
_short_names: dict[bytes, str] = {}
_LOGGER_NAME = re.compile(rb"[\w.$]+")
_MANY_NAMES = 10_000


def _without_logger(line: bytes, begin: int) -> tuple[bytes, str | None, str | None]:
    """The message from begin on, and the logger and the thread that stand behind it in brackets."""
    if line.endswith(b")"):
        place = line.rfind(b" (", begin)
        name = line[place + 2 : -1]
        short = _short_names.get(name)
        if short is None and place >= 0 and _LOGGER_NAME.fullmatch(name):
            if len(_short_names) > _MANY_NAMES:
                _short_names.clear()
            short = _short_names[name] = short_logger(name.decode())
        if short is not None:
            return line[begin:place], short, None
    trailing = _TRAILING_LOGGER.search(line, begin)
    if trailing is None:
        return line[begin:], None, None
    logger = short_logger(trailing["logger"].decode())
    return line[begin : trailing.start()], logger, _thread(trailing)


def _thread(*found: re.Match[bytes] | None) -> str | None:
    """The thread that one of them names."""
    named = next((match["thread"] for match in found if match and match["thread"]), None)
    return None if named is None else named.decode("utf-8", "replace")


def _end_of_dump(block: bytes, title: int) -> int:
    """Where the first line after the dump begins: one that is not indented."""
    place = block.find(b"\n", title) + 1
    while place and block[place : place + 1] in (b"\t", b" "):
        place = block.find(b"\n", place) + 1
    return place or len(block)
