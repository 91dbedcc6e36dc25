"""Where a line names its logger and its thread: in front of the message, or behind it."""

import re
from datetime import UTC

from replication.evidence.broker_logs.line_families import short_logger
from replication.evidence.broker_logs.line_headers import HEADER, Clock

# `[thread] logger:line - message` and `logger: message` behind the level.
# In front of them Spring Boot puts the process and, from 3.2, the application.
LOGGER_FIRST = re.compile(
    rb"(?:\d+ --- )?(?:\[(?P<thread>[^\]\n]*)\] +){0,2}(?P<logger>[\w.$]+)(?::\d+)?"
    rb"(?: *\([^)\n]*\))?"
    rb" *(?:-|:) +"
)
# Exports put the line into quotes, which then end it.
TRAILING_LOGGER = re.compile(
    rb" \((?P<logger>[\w.$]+)(?::\d+)?\)(?: \[(?P<thread>[^\]\n]*)\])?[\"',;]*\s*$"
)


def split_line(text: str) -> tuple[int | None, str, str | None, bool]:
    """One line by itself: its time (UTC where it names no zone), message, logger, and whether it
    begins as log lines do."""
    line = text.encode("utf-8", "replace")
    header = HEADER.match(line)
    begin = header.end() if header else 0
    message, logger, _ = without_logger(line, begin)
    at = Clock(UTC).at(header) if header else None
    return at, message.decode("utf-8", "replace").strip(), logger, header is not None


# Few loggers write many lines: short names by whole ones.
_short_names: dict[bytes, str] = {}
_LOGGER_NAME = re.compile(rb"[\w.$]+")
_MANY_NAMES = 10_000


def without_logger(line: bytes, begin: int) -> tuple[bytes, str | None, str | None]:
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
    trailing = TRAILING_LOGGER.search(line, begin)
    if trailing is None:
        return line[begin:], None, None
    logger = short_logger(trailing["logger"].decode())
    return line[begin : trailing.start()], logger, thread_of(trailing)


def thread_of(*found: re.Match[bytes] | None) -> str | None:
    """The thread that one of them names."""
    named = next((match["thread"] for match in found if match and match["thread"]), None)
    return None if named is None else named.decode("utf-8", "replace")
