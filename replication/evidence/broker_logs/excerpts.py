"""Reads lines of brokers as people paste them: without a time, quoted, wrapped, or out of a trace.

Every line is tried for what it says by itself. What is no line of a broker is passed over, so that
a whole issue thread can be handed over as one file.
"""

import codecs
import io
import quopri
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import compress, pairwise
from pathlib import Path
from typing import cast

from replication.evidence.broker_logs.broker_log import LogLineFact, cut_short, is_cut_short
from replication.evidence.broker_logs.line_families import INDEX
from replication.evidence.broker_logs.line_families.family import (
    Found,
    is_beyond_kafka,
    topic_partition,
)
from replication.evidence.broker_logs.line_headers import LEVELS
from replication.evidence.broker_logs.lines_that_may_tell import (
    THROWN,
    TYPOGRAPHY,
    WRAPPED_INTO,
    Lines,
    undisguised,
)
from replication.evidence.broker_logs.loggers_in_lines import BROKERS_PREFIX, split_line
from replication.evidence.opening import READ_ERRORS, open_unpacked
from replication.evidence.text_lines import LONGEST_LINE
from replication.evidence.unreadable import Unreadable

# What people paste is small; a whole log is read in another way.
LARGEST = 2 << 20
# What mail, issue trackers and terminals put in front of a line.
_QUOTED = re.compile(r"^(?:[>|`*•\s]|-\s|\d{1,5}[:.)]\s|\S+@\S+[:$#]\s)+")
# A line without its time may keep its level.
_LEVEL = re.compile(r"^\[?(?:TRACE|DEBUG|INFO|WARN|ERROR|FATAL)\]?[ \t:]+")
# Kafka's own header, wherever it is in a line, and its logger, whatever is pasted behind it.
_HEADER = re.compile(
    r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\] (?:TRACE|DEBUG|INFO|WARN|ERROR|FATAL) "
)
_LOGGER = re.compile(r" \((?:kafka|org\.apache\.kafka|state\.change)\.[\w.$]+(?::\d+)?\)")
_SOFT_BREAK = re.compile(rb"=\r?\n$")
_TP = r"(?P<tp>[^\s\[\],:]+-\d+|\[[^\],\s]+,\d+\])"
# Messages of exceptions are in traces, without a logger. Kind, pattern; groups but `tp` are
# offsets. Kafka: ReplicaFetcherThread.processPartitionData, UnifiedLog.append and
# maybeIncrementLogStartOffset, AbstractFetcherThread.
_EXCEPTIONS = tuple(
    (kind, re.compile(pattern))
    for kind, pattern in (
        (
            "fetch_offset_mismatch",
            rf"Offset mismatch for (?:the future replica|partition) {_TP}: fetched offset = "
            r"(?P<fetch_offset>\d+), log end offset = (?P<log_end_offset>\d+)",
        ),
        (
            "unexpected_append_offset",
            rf"Unexpected offset in append to {_TP}\. First offset (?:or last offset of the first "
            r"batch )?(?P<first_offset>\d+) is less than the next offset (?P<log_end_offset>\d+)",
        ),
        ("offsets_out_of_order", rf"Out of order offsets found in append to {_TP}:"),
        (
            "log_start_above_high_watermark",
            r"Cannot increment the log start offset to (?P<log_start_offset>\d+) of partition "
            rf"{_TP} since it is larger than the high watermark (?P<high_watermark>\d+)",
        ),
        (
            "unknown_leader_epoch",
            rf"(?i:(?:partition|partition:) {_TP}\b.{{0,200}}?UNKNOWN_LEADER_EPOCH"
            r"|UNKNOWN_LEADER_EPOCH.{0,200}?partition (?P<tp_2>[^\s\[\],:]+-\d+))",
        ),
        (
            "fetch_processing_failed",
            rf"Error processing data for partition {_TP} (?:at )?offset (?P<fetch_offset>\d+)",
        ),
        (
            "unknown_leader_epoch",
            rf"Partition {_TP} has a newer epoch \((?P<leader_epoch>\d+)\) than the current leader",
        ),
    )
)
_TRIGGERS = re.compile("|".join(THROWN))
# LeaderElectionCommand.electLeaders and ReplicaVerificationTool.verifyCheckSum.
_ELECTED = re.compile(
    r"^Successfully completed leader election \(UNCLEAN\) for partitions "
    r"(?P<partitions>[\w.-]+-\d+(?:, ?[\w.-]+-\d+)*)"
)
_DIFFER = re.compile(
    rf": partition {_TP}(?: has unmatched checksum at offset (?P<at>\d+); replica (?P<a>\d+)'s "
    r"checksum \d+; replica (?P<b>\d+)'s|: replica (?P<a_2>\d+)'s offset (?P<at_2>\d+) doesn't "
    r"match replica (?P<b_2>\d+)'s offset)"
)
# A whole line as Kafka's own layout writes it, with nothing around it that somebody put there; a
# line of the settings printed at a start, or of a stack; what only a line with more to say holds.
_WHOLE = re.compile(_HEADER.pattern + rf"[^&\x1b{''.join(TYPOGRAPHY)}]*" + _LOGGER.pattern + "$")
_BENEATH = re.compile(r"\t[\w.]+ = |\tat ")
_SAYS_MORE = re.compile(_TRIGGERS.pattern + "|: partition ")
_MAY_BE_KAFKAS = re.compile(BROKERS_PREFIX.pattern.encode() + rb"|" + _LOGGER.pattern.encode())
# Kind, fields, writer, topic, partition.
_Said = tuple[str, dict[str, object], int | None, str | None, int | None]
_WRITER = re.compile(
    r"\breplicaId=(\d{1,9})\b|\[Broker id=(\d{1,9})\]|\bbroker=(\d{1,9})\]|on broker (\d{1,9}): "
)
# More digits than any number of Kafka's has, but for the names of its files.
_TOO_LONG = re.compile(r"\d{20}(?![.\d])|\d{21}")


def read_excerpt(path: Path, *, headed: bool) -> Iterator[LogLineFact | Unreadable]:
    """What the lines say, in their order. headed: lines that begin with a time too; without, only
    those that a reader of whole logs leaves out. Nothing where the file is large."""
    lines = PastedLines.of(path)
    writers = _Writers(lines, headed=headed)
    for index in lines.searched.that_may_tell(headed=headed):
        pieces = lines.pieces(index, index + 1)
        for place, text in enumerate(pieces):
            if not headed and _is_nothing_more(text):
                continue
            bare, behind = _bare(text, anywhere=headed)
            at, message, logger, has_head = split_line(bare)
            where = str(path), lines.number(index)
            found: list[_Said] = []
            unended = has_head and logger is None and not headed and bare == text
            if headed or not has_head or bare != text or unended:
                wrapped: list[str] = []
                if not (behind or unended):
                    later = lines.pieces(index + 1, index + WRAPPED_INTO)
                    wrapped = [*pieces[place + 1 :], *later][: WRAPPED_INTO - 1]
                found = list(_facts(message, logger, wrapped))
            if unended and found and message[-1:].isdigit():
                found = []
                yield _unended(*where, message)
            # An exception may be behind its line, without the line end that was between them.
            thrown = behind if found else bare + behind
            if _TRIGGERS.search(thrown):
                owner = _writer(message)
                owner = writers.at(index, pieces[: place + 1]) if owner is None else owner
                found += _thrown(thrown, owner)
            for kind, fields, node, topic, partition in [*found, *_by_tools(text)]:
                if not is_beyond_kafka(Found(fields, node, topic, partition)):
                    number = lines.number(index)
                    yield LogLineFact(kind, at, number, str(path), node, topic, partition, fields)
            if not found and _is_known_and_cut_short(message):
                yield cut_short(*where, message)


def _unended(path: str, number: int, message: str) -> Unreadable:
    reason = f"ends within a line that may be longer: {message[:160]} (paste the whole line)"
    return Unreadable(path, f"line {number}", reason)


def _is_known_and_cut_short(message: str) -> bool:
    return (
        is_cut_short(message)
        and BROKERS_PREFIX.match(message) is not None
        and INDEX.read(message, None) is not None
    )


def is_kafkas(path: Path) -> bool:
    """Whether some line of a small file is a broker's, though it tells nothing that is read."""
    lines = PastedLines.of(path)
    return any(
        BROKERS_PREFIX.search(text) or (_LOGGER.search(text) and _HEADER.search(text))
        for index in lines.searched.matching(_MAY_BE_KAFKAS)
        for text in lines.pieces(index, index + 1)
    )


class PastedLines:
    """A small file's lines as bytes, with their numbers; of a mail as it is stored those that were
    written. A line that is too long or no UTF-8 is left out."""

    def __init__(
        self,
        text: bytes,
        raw: list[bytes] | None = None,
        numbers: Sequence[int] | None = None,
    ) -> None:
        """text: the lines as they are searched, without the last line end; raw: as they are read,
        where that differs."""
        self.searched = Lines(text)
        self._text, self._raw, self._numbers = text, raw, numbers

    @classmethod
    def of(cls, path: Path) -> "PastedLines":
        """None of a file that is large or cannot be read: who reads it as a log says so."""
        data = _read_small(path)
        text = data.removeprefix(codecs.BOM_UTF8).removesuffix(b"\n")
        numbers: list[int] | None = None
        if not _is_utf8(text) or _is_long(text):
            raw = text.split(b"\n")
            readable = [not _is_long(line) and _is_utf8(line) for line in raw]
            numbers = list(compress(range(1, len(raw) + 1), readable)) or None
            text = b"\n".join(compress(raw, readable))
        lines = cls(text, numbers=numbers)
        if lines.searched.marked and b"=3D" in text:
            raw = lines.raw
            return cls._of_mail(data, raw, numbers or range(1, len(raw) + 1)) or lines
        return lines

    @classmethod
    def _of_mail(
        cls, data: bytes, raw: list[bytes], numbers: Sequence[int]
    ) -> "PastedLines | None":
        """Quoted-printable lines, put together and decoded; each with the number of its first. None
        where no line goes on in the next one."""
        ended = [line + b"\n" for line in raw]
        if raw and numbers[-1] > data.count(b"\n"):
            ended[-1] = raw[-1]
        if not any(map(_SOFT_BREAK.search, ended)):
            return None
        lines: list[bytes] = []
        firsts: list[int] = []
        first, whole = 0, b""
        for number, text in zip(numbers, ended, strict=True):
            first = first if whole else number
            broken = _SOFT_BREAK.search(text)
            whole += text[: broken.start()] if broken else text
            if not broken:
                lines.append(quopri.decodestring(whole).decode("utf-8", "replace").encode())
                firsts.append(first)
                whole = b""
        # What it is decoded to may hold line ends.
        return cls(b"\n".join(line.replace(b"\n", b" ") for line in lines), lines, firsts)

    @cached_property
    def raw(self) -> list[bytes]:
        """The lines as they are read, without line ends."""
        return self._text.split(b"\n") if self._raw is None else self._raw

    def number(self, index: int) -> int:
        """The number in the file of the line at that place."""
        return index + 1 if self._numbers is None else self._numbers[index]

    def text(self, index: int) -> str:
        """One line without its line end."""
        return self.raw[index].decode("utf-8").rstrip("\r\n")

    def pieces(self, first: int, end: int) -> list[str]:
        """The lines of these places, as far as there are any, and of torn ones what is whole."""
        places = range(first, min(end, len(self.raw)))
        return [piece for index in places for piece in _torn(self.text(index))]


class _Writers:
    """Who wrote the lines, by the last line before that has a time."""

    def __init__(self, lines: PastedLines, *, headed: bool) -> None:
        self._lines, self._headed = lines, headed
        self._known_to = 0
        self._writer: int | None = None

    @cached_property
    def _heads(self) -> list[int]:
        return sorted(self._lines.searched.with_any(LEVELS))

    def at(self, index: int, pieces: list[str]) -> int | None:
        """The writer of the line at that place, which only grows. pieces: what is known of it."""
        first, end = (bisect_left(self._heads, n) for n in (self._known_to, index))
        for place in reversed(self._heads[first:end]):
            if self._take(self._lines.pieces(place, place + 1)):
                break
        self._known_to = index
        before = self._writer
        self._take(pieces)
        named, self._writer = self._writer, before
        return named

    def _take(self, pieces: list[str]) -> bool:
        """Whether one of the pieces begins with a time; the last that does names the writer."""
        for piece in reversed(pieces):
            text = piece
            if self._headed or not _is_nothing_more(text):
                text = _bare(text, anywhere=self._headed)[0]
            elif not _WHOLE.match(text):
                continue
            _, message, _, has_head = split_line(text)
            if has_head:
                self._writer = _writer(message)
                return True
        return False


def _torn(text: str) -> list[str]:
    """The line; where another begins in its middle, as of two writers or a cut copy, those that are
    whole: what is left of a number is another number."""
    begins = [found.start() for found in _HEADER.finditer(text)][1:]
    pieces = [text[a:b] for a, b in pairwise([0, *begins, len(text)])]
    return [p for p in pieces[:-1] if _WHOLE.match(p.rstrip())] + pieces[-1:]


def _is_nothing_more(text: str) -> bool:
    """Whether a line is one that the reader of whole logs reads, or one beneath such a line."""
    known = _WHOLE.match(text) or _BENEATH.match(text)
    return known is not None and not _SAYS_MORE.search(text)


def _read_small(path: Path) -> bytes:
    """The file's whole lines, and the last one where it does not break off; nothing of a large
    file."""
    pieces: list[bytes] = []
    try:
        with open_unpacked(path) as stream:
            left = LARGEST + 1
            while left and (piece := cast(io.BufferedReader, stream).read1(left)):
                pieces.append(piece)
                left -= len(piece)
    except READ_ERRORS:
        data = b"".join(pieces)
        return data[: data.rfind(b"\n") + 1] if len(data) <= LARGEST else b""
    data = b"".join(pieces)
    return data if left else b""


def _is_long(text: bytes) -> bool:
    """Whether some line is too long to be one."""
    return len(text) >= LONGEST_LINE and max(map(len, text.split(b"\n"))) >= LONGEST_LINE


def _is_utf8(text: bytes) -> bool:
    if text.isascii():
        return True
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _bare(text: str, *, anywhere: bool) -> tuple[str, str]:
    """The line without what mail, trackers, pages and terminals put around it; and the text
    behind its logger. anywhere: a broker's prefix may be behind anything; in a log that is read
    by its layout that layout has read it."""
    text = undisguised(text)
    begin = _HEADER.search(text)
    if begin is None and anywhere and not split_line(text)[3]:
        begin = BROKERS_PREFIX.search(text)
        if begin is not None and text[: begin.start()].endswith('"'):
            text = text.rstrip().removesuffix(",").removesuffix('"')
    bare = text[begin.start() :] if begin else _LEVEL.sub("", _QUOTED.sub("", text))
    logger = _LOGGER.search(bare)
    return (bare[: logger.end()], bare[logger.end() :] or " ") if logger else (bare, "")


def _writer(message: str) -> int | None:
    named = _WRITER.search(message)
    return int(next(filter(None, named.groups()))) if named else None


def _thrown(text: str, owner: int | None) -> list[_Said]:
    """What the message of an exception says, wherever it is in the text."""
    if _TOO_LONG.search(text):
        return []
    for kind, pattern in _EXCEPTIONS if _TRIGGERS.search(text) else ():
        match = pattern.search(text)
        if match:
            groups = {k: v for k, v in match.groupdict().items() if v is not None}
            place = topic_partition(groups.pop("tp", None) or groups.pop("tp_2"))
            return [(kind, {k: int(v) for k, v in groups.items()}, owner, *place)]
    return []


def _by_tools(text: str) -> Iterator[_Said]:
    """What kafka-leader-election and kafka-replica-verification printed."""
    if _TOO_LONG.search(text):
        return
    elected = _ELECTED.search(text)
    for each in elected["partitions"].split(",") if elected else ():
        yield "unclean_election_triggered", {}, None, *topic_partition(each.strip())
    differ = _DIFFER.search(text)
    if differ:
        a, b = differ["a"] or differ["a_2"], differ["b"] or differ["b_2"]
        fields = {"replicas": (int(a), int(b)), "offset": int(differ["at"] or differ["at_2"])}
        yield "replicas_differ", fields, None, *topic_partition(differ["tp"])


def _facts(message: str, logger: str | None, following: list[str]) -> Iterator[_Said]:
    """A message's facts; where it is none, with the lines that it may have been wrapped into."""
    text = message
    for more in ("", *following) if message.strip() else ():
        if BROKERS_PREFIX.match(_LEVEL.sub("", _QUOTED.sub("", more))):
            # A message of its own.
            return
        text = f"{text} {_QUOTED.sub('', more)}".rstrip() if more else text
        _, text_only, behind, _ = split_line(text)
        for name in {logger, behind, None}:
            answer = INDEX.read(text_only, name)
            if answer is not None and answer[1]:
                family = answer[0]
                for fields, node, topic, partition in answer[1]:
                    yield family.kind, fields, node, topic, partition
                return
        if more and split_line(_QUOTED.sub("", more))[3]:
            return
