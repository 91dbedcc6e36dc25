"""From a log file's bytes to the few lines worth reading.

A log file may hold gigabytes of which little matters, so whole blocks are searched for the loggers
that line families know; of their lines those are taken apart that begin as a family's do. Layouts
that carry the logger elsewhere than in brackets are read line by line, and wrappers (docker,
journald) are taken off first.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import tzinfo
from functools import partial
from pathlib import Path
from typing import BinaryIO, NamedTuple

from replication.evidence.broker_logs.json_lines import JsonLine, json_line_fields, json_time
from replication.evidence.broker_logs.line_families import (
    LOGGER_IN_BRACKETS,
    RARE_WORDINGS,
    START,
    short_logger,
)
from replication.evidence.broker_logs.line_headers import HEADER, HEADER_PATTERN, LEVEL, Clock
from replication.evidence.broker_logs.line_wrappers import LONGEST_LINE
from replication.evidence.broker_logs.log_layouts import SAMPLE, detect_layout
from replication.evidence.broker_logs.loggers_in_lines import (
    LOGGER_FIRST,
    TRAILING_LOGGER,
    behind_what_layouts_print,
    may_be_kafkas,
    thread_of,
    vouched,
    without_logger,
)
from replication.evidence.broker_logs.wrapped_lines import DOUBT
from replication.evidence.opening import READ_ERRORS, open_unpacked, read_up_to, without_holes

_BLOCK = 1 << 20
# A settings dump is 10 to 40 kB; one that a block's end cuts is carried over up to this size.
_LONGEST_DUMP = 1 << 18

# A line that families may know: header and beginning of the message. Kafka's own layout is tried
# first, and atomically, because this is asked of every line of a known logger.
_KNOWN = re.compile(
    rb"(?>\[[^\]\n]{8,40}+\] ++[A-Z]++ ++|"
    + re.sub(rb"\?P<\w+>", b"?:", HEADER_PATTERN)
    + rb")"
    + START.encode()
)
_KNOWN_MESSAGE = re.compile(START)
_KNOWN_TEXT = re.compile(START.encode())

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
_DUMP_TEXT = _DUMP_TITLE.decode()


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
        sample = read_up_to(stream, SAMPLE)
        layout = detect_layout(without_holes(sample))
        if layout is None:
            if sample.strip():
                yield Skipped(1, "no line looks like a broker's log line")
            return
        scan: Callable[[bytes], Iterator[LogLine | Skipped]] = {
            "brackets": self._scan_brackets,
            "json": self._scan_json,
        }.get(layout.form, self._scan_each_line)
        if layout.is_broken:
            scan = partial(_without_doubt, scan)
        transform = layout.transform(self._year)
        carried = b""
        for block in self._blocks(stream, sample):
            if isinstance(block, Skipped):
                yield block
                continue
            text = without_holes(block)
            text = carried + (text if transform is None else transform(text))
            carried = b"" if layout.form == "json" else self._unfinished_dump(text)
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
                yield Skipped(self._number, f"reading stops here: {error}")
                return
        if tail.startswith(b"[") and b")\n" in sample and not TRAILING_LOGGER.search(tail):
            # Kafka's layout ends with the logger: what is left of a number is another number.
            yield Skipped(self._number, "the file ends within this line")
        elif tail:
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
                # One message of many lines; the logger is behind the last.
                begin += start
                line, logger = block[begin : _end_of_dump(block, begin)], "KafkaConfig"
                thread = None
            else:
                line, logger, thread = without_logger(line, begin)
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
        place = 0
        for number, line in enumerate(block.split(b"\n"), self._number):
            begin, place = place, place + len(line) + 1
            header = HEADER.match(line)
            if header is None:
                continue
            logger: str | None = None
            start, end = header.end(), len(line.rstrip())
            leading = LOGGER_FIRST.match(line, start)
            trailing = TRAILING_LOGGER.search(line, start)
            named = trailing or leading
            name = named["logger"].decode() if named else ""
            if trailing:
                end = trailing.start()
            elif leading and "." in name:
                start = leading.end()
            else:
                start, logger = behind_what_layouts_print(line, start, _KNOWN_TEXT)
                name = ""
            if name:
                logger = vouched(name)
            if line.startswith(_DUMP_TITLE, start):
                # One message of many lines, as in Kafka's own layout.
                begin += start
                dump = block[begin : _end_of_dump(block, begin)].decode("utf-8", "replace")
                yield LogLine(number, self._clock.at(header), "KafkaConfig", dump)
                continue
            message = line[start:end].decode("utf-8", "replace")
            if name and logger is None and not may_be_kafkas(name, message):
                continue
            if _KNOWN_MESSAGE.match(message):
                thread = thread_of(header, leading if name or logger else None, trailing)
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
            name = vouched(logger)
            if name is None and not may_be_kafkas(logger, message):
                return []
            return [LogLine(number, json_time(time, self._clock), name, message, thread)]
        # A collector that wraps the whole printed line.
        inner = message.encode("utf-8", "replace")
        header = HEADER.match(inner)
        trailing = TRAILING_LOGGER.search(inner)
        if header is None and trailing is None:
            at = json_time(time, self._clock)
            return [LogLine(number, at, None, message, thread)]
        if header is None or trailing is None:
            return []
        text = inner[header.end() : trailing.start()].decode("utf-8", "replace")
        name = short_logger(trailing["logger"].decode())
        return [LogLine(number, self._clock.at(header), name, text)]


def _without_doubt(
    scan: Callable[[bytes], Iterator[LogLine | Skipped]], text: bytes
) -> Iterator[LogLine | Skipped]:
    """The lines, but for those that were broken within a long word or behind it."""
    for line in scan(text):
        message = "" if isinstance(line, Skipped) else line.message
        in_doubt = DOUBT.decode() in message and not message.startswith(_DUMP_TEXT)
        why = "this line was broken within a long word or behind it: the line is not read"
        yield Skipped(line.number, why) if in_doubt else line


def _places_of(wording: bytes, block: bytes) -> Iterator[int]:
    place = block.find(wording)
    while place >= 0:
        yield place
        place = block.find(wording, place + 1)


def _end_of_dump(block: bytes, title: int) -> int:
    """Where the first line after the dump begins: one that is not indented."""
    place = block.find(b"\n", title) + 1
    while place and block[place : place + 1] in (b"\t", b" "):
        place = block.find(b"\n", place) + 1
    return place or len(block)
