"""Reads a broker's text log into facts: leaders, truncations, starts and stops.

`read_broker_log` streams: memory does not grow with the file. Which wordings are known is data, in
`line_families`; how lines are laid out is `log_layouts`. Lines nobody knows are passed over; a line
that begins like a known one and goes on otherwise is handed out as `Unreadable`.
"""

import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Any, NamedTuple

from replication.evidence.broker_logs.line_families import INDEX
from replication.evidence.broker_logs.line_families.family import SHORTENED, LineFamily
from replication.evidence.broker_logs.line_reader import LineReader, LogLine, Skipped
from replication.evidence.broker_logs.log_layouts import looks_like_broker_log
from replication.evidence.broker_logs.threads import broker_of_thread
from replication.evidence.unreadable import Unreadable

# So many lines of one family in an unknown wording are listed one by one; the rest is counted.
_LISTED = 50


class LogLineFact(NamedTuple):
    """What one line says about one topic partition (or about the process).

    `at` is ms since the Unix epoch, None where the layout prints no date; `line` counts from 1;
    `broker` is the id the line itself names as its writer (a controller's node id too), by its
    prefix, its settings or its thread (`thread`, as the layout prints it). `fields` hold what the
    wording prints, by the names of `line_families`: Kafka's -1 for "none" is None, a field that a
    release does not print is missing.
    """

    kind: str
    at: int | None
    line: int
    path: str
    broker: int | None
    topic: str | None
    partition: int | None
    fields: dict[str, Any]
    thread: str | None = None


def is_broker_log(path: Path) -> bool:
    """Whether the content is a broker's or controller's text log, in any layout, packed or not."""
    return looks_like_broker_log(path)


def read_broker_log(
    path: Path, *, time_zone: tzinfo = UTC, year: int | None = None
) -> Iterator[LogLineFact | Unreadable]:
    """The facts of a broker's log in the order of its lines, with what could not be read.

    `time_zone` is that of the JVM that wrote the log: Kafka's own layout prints none. `year` is for
    journald and syslog prefixes where the message carries no date of its own.
    """
    where = str(path)
    unknown: Counter[str] = Counter()
    first_line_seen = False
    for line in LineReader(path, time_zone, year).lines():
        if isinstance(line, Skipped):
            yield Unreadable(where, f"line {line.number}", line.reason)
            continue
        answer = INDEX.read(line.message, line.logger)
        if answer is None:
            continue
        family, found = answer
        if found is None:
            unknown[family.kind] += 1
            if unknown[family.kind] <= _LISTED:
                yield _unknown_wording(where, line, family)
            continue
        first_line_seen = first_line_seen or family.kind == "process_started"
        kind = family.kind
        if kind == "server_starting" and not first_line_seen:
            kind = "process_started"
        number, at, _, _, thread = line
        for fields, node, topic, partition in found:
            broker = broker_of_thread(thread) if node is None else node
            yield LogLineFact(kind, at, number, where, broker, topic, partition, fields, thread)
    for kind, count in unknown.items():
        if count > _LISTED:
            reason = f"{count - _LISTED} more lines like {kind} in a wording that is not known"
            yield Unreadable(where, "whole file", reason)


_CUT_SHORT = re.compile(SHORTENED)


def is_cut_short(message: str) -> bool:
    """Whether somebody left out the rest of a line and marked that."""
    return _CUT_SHORT.search(message) is not None


def cut_short(path: str, number: int, message: str) -> Unreadable:
    """A line that begins as one that is read, and of which the rest was left out."""
    reason = f"is cut short, and what it says is not read: {message[:160]} (paste the whole line)"
    return Unreadable(path, f"line {number}", reason)


def _unknown_wording(path: str, line: LogLine, family: LineFamily) -> Unreadable:
    if is_cut_short(line.message):
        return cut_short(path, line.number, line.message)
    shown = line.message if len(line.message) <= 160 else line.message[:160] + ".."
    what = family.kind or "a known line"
    return Unreadable(path, f"line {line.number}", f"begins like {what}, unknown wording: {shown}")
