"""Reads lines of brokers as people paste them: without a time, quoted, wrapped, or out of a trace.

Every line is tried for what it says by itself. What is no line of a broker is passed over, so that
a whole issue thread can be handed over as one file.
"""

import html
import quopri
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from replication.evidence.broker_logs.broker_log import LogLineFact, cut_short, is_cut_short
from replication.evidence.broker_logs.line_families import INDEX
from replication.evidence.broker_logs.line_families.family import (
    Found,
    is_beyond_kafka,
    topic_partition,
)
from replication.evidence.broker_logs.loggers_in_lines import BROKERS_PREFIX, split_line
from replication.evidence.text_lines import text_lines
from replication.evidence.unreadable import Unreadable

# What people paste is small; a whole log is read in another way.
LARGEST = 2 << 20
# What mail, issue trackers and terminals put in front of a line.
_QUOTED = re.compile(r"^(?:[>|`*•\s]|-\s|\d{1,5}[:.)]\s|\S+@\S+[:$#]\s)+")
# A line without its time may keep its level.
_LEVEL = re.compile(r"^\[?(?:TRACE|DEBUG|INFO|WARN|ERROR|FATAL)\]?[ \t:]+")
_COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
# Kafka's own header, wherever in a line it stands, and its logger, whatever is pasted behind it.
_HEADER = re.compile(
    r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\] (?:TRACE|DEBUG|INFO|WARN|ERROR|FATAL) "
)
_LOGGER = re.compile(r" \((?:kafka|org\.apache\.kafka|state\.change)\.[\w.$]+(?::\d+)?\)")
# What mail, chats and word processors make of blanks and quotation marks.
_TYPOGRAPHY = str.maketrans(
    {"\u00a0": " ", "\u202f": " ", "\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"'}
)
_SOFT_BREAK = re.compile(r"=\r?\n$")
_TP = r"(?P<tp>[^\s\[\],:]+-\d+|\[[^\],\s]+,\d+\])"
# Messages of exceptions stand in traces, without a logger. Kind, pattern; groups but `tp` are
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
_TRIGGERS = re.compile(
    r"mismatch for|in append to|Cannot increment|UNKNOWN_LEADER|newer epoch|processing data for"
)
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
_WHOLE = re.compile(
    _HEADER.pattern + rf"[^&\x1b{''.join(map(chr, _TYPOGRAPHY))}]*" + _LOGGER.pattern + "$"
)
_BENEATH = re.compile(r"\t[\w.]+ = |\tat ")
_SAYS_MORE = re.compile(_TRIGGERS.pattern + "|: partition ")
# Kind, fields, writer, topic, partition.
_Said = tuple[str, dict[str, object], int | None, str | None, int | None]
_WRITER = re.compile(
    r"\breplicaId=(\d{1,9})\b|\[Broker id=(\d{1,9})\]|\bbroker=(\d{1,9})\]|on broker (\d{1,9}): "
)
# More digits than any number of Kafka's has, but for the names of its files.
_TOO_LONG = re.compile(r"\d{20}(?![.\d])|\d{21}")


def read_excerpt(path: Path, *, headed: bool) -> Iterator[LogLineFact | Unreadable]:
    """What the lines say, in their order. headed: lines that begin with a time too; without, only
    those that a reader of whole logs leaves out."""
    lines = _lines(path)
    writer: int | None = None
    head = ""
    for index, (number, text) in enumerate(lines):
        whole = not headed and _WHOLE.match(text)
        if (whole or (not headed and _BENEATH.match(text))) and not _SAYS_MORE.search(text):
            head = text if whole else head
            continue
        if head:
            writer, head = _writer(split_line(head)[1]), ""
        bare, behind = _bare(text, anywhere=headed)
        at, message, logger, has_head = split_line(bare)
        if has_head:
            writer = _writer(message)
        found: list[_Said] = []
        unended = has_head and logger is None and not headed and bare == text
        if headed or not has_head or bare != text or unended:
            wrapped = [] if behind or unended else [t for _, t in lines[index + 1 : index + 3]]
            found = list(_facts(message, logger, wrapped))
        if unended and found and message[-1:].isdigit():
            found = []
            reason = (
                f"ends within a line that may be longer: {message[:160]} (paste the whole line)"
            )
            yield Unreadable(str(path), f"line {number}", reason)
        # An exception may stand behind its line, without the line end that was between them.
        owner = _writer(message)
        found += _thrown(behind if found else bare + behind, owner if owner is not None else writer)
        for kind, fields, node, topic, partition in [*found, *_by_tools(text)]:
            if not is_beyond_kafka(Found(fields, node, topic, partition)):
                yield LogLineFact(kind, at, number, str(path), node, topic, partition, fields)
        if (
            not found
            and is_cut_short(message)
            and BROKERS_PREFIX.match(message)
            and INDEX.read(message, None) is not None
        ):
            yield cut_short(str(path), number, message)


def is_kafkas(path: Path) -> bool:
    """Whether some line is a broker's, though it tells nothing that is read."""
    return any(
        BROKERS_PREFIX.search(text) or (_LOGGER.search(text) and _HEADER.search(text))
        for _, text in _lines(path)
    )


def _lines(path: Path) -> list[tuple[int, str]]:
    """The lines with their numbers, of a mail as it is stored as they were written."""
    read = [(n, t) for n, t in text_lines(path) if not isinstance(t, Unreadable)]
    if any("=3D" in t for _, t in read) and any(_SOFT_BREAK.search(t) for _, t in read):
        read = list(_of_mail(read))
    return [(n, each) for n, t in read for each in _torn(t.rstrip("\r\n"))]


def _torn(text: str) -> list[str]:
    """The line; where another begins in its middle, as of two writers or a cut copy, those that are
    whole: what is left of a number is another number."""
    begins = [found.start() for found in _HEADER.finditer(text)][1:]
    pieces = [text[a:b] for a, b in pairwise([0, *begins, len(text)])]
    return [p for p in pieces[:-1] if _WHOLE.match(p.rstrip())] + pieces[-1:]


def _of_mail(lines: list[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Quoted-printable lines, put together and decoded; each with the number of its first."""
    number, whole = 0, ""
    for line, text in lines:
        number, whole = (number, whole) if whole else (line, "")
        broken = _SOFT_BREAK.search(text)
        whole += text[: broken.start()] if broken else text
        if not broken:
            yield number, quopri.decodestring(whole.encode()).decode("utf-8", "replace")
            whole = ""


def _bare(text: str, *, anywhere: bool) -> tuple[str, str]:
    """The line without what mail, trackers, pages and terminals put around it; and what stands
    behind its logger. anywhere: a broker's prefix may stand behind anything; in a log that is read
    by its layout that layout has read it."""
    text = html.unescape(_COLOURS.sub("", text)).translate(_TYPOGRAPHY)
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
    """What the message of an exception says, wherever in the text it stands."""
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
