"""What stands in front of a log line's message: time, level, logger, in any layout."""

import re

from replication.evidence.broker_logs.line_families import short_logger

# A line beyond this is no log line; what is read of it is given up.
LONGEST_LINE = 8 << 20
LEVEL = rb"\[?(?:TRACE|DEBUG|INFO|WARN|ERROR|FATAL)\]?"
HEADER_PATTERN = (
    rb"\[?(?:(?P<date>\d{4}-\d\d-\d\d)[ T])?(?P<minute>\d\d:\d\d):(?P<second>\d\d)"
    rb"(?:[,.](?P<fraction>\d{1,9}))?(?: ?(?P<zone>Z|UTC|GMT|[+-]\d\d:?\d\d))?\]? +"
    rb"(?:\[(?!\d{4}-)[^\]\n]*\] +)?" + LEVEL + rb"[ :]+"
)
HEADER = re.compile(HEADER_PATTERN)
KAFKAS_MINUTE = re.compile(rb"\[(\d{4}-\d\d-\d\d) (\d\d:\d\d):")
LEVELS = frozenset((b"TRACE", b"DEBUG", b"INFO", b"WARN", b"ERROR", b"FATAL"))
SPACES = (b"", b" ", b":")
# `[thread] logger:line - message` and `logger: message` behind the level.
# In front of them Spring Boot puts the process and, from 3.2, the application.
LOGGER_FIRST = re.compile(
    rb"(?:\d+ --- )?(?:\[[^\]\n]*\] +){0,2}(?P<logger>[\w.$]+)(?::\d+)?(?: *\([^)\n]*\))?"
    rb" *(?:-|:) +"
)
# Exports put the line into quotes, which then end it.
TRAILING_LOGGER = re.compile(rb" \((?P<logger>[\w.$]+)\)(?: \[[^\]\n]*\])?[\"',;]*\s*$")
# Few loggers write many lines: short names by whole ones.
_short_names: dict[bytes, str] = {}
_MANY_NAMES = 10_000
_LOGGER_NAME = re.compile(rb"[\w.$]+")


def without_logger(line: bytes, begin: int) -> tuple[bytes, str | None]:
    """The message from begin on, and the logger that stands behind it in brackets."""
    if line.endswith(b")"):
        place = line.rfind(b" (", begin)
        name = line[place + 2 : -1]
        short = _short_names.get(name)
        if short is None and place >= 0 and _LOGGER_NAME.fullmatch(name):
            if len(_short_names) > _MANY_NAMES:
                _short_names.clear()
            short = _short_names[name] = short_logger(name.decode())
        if short is not None:
            return line[begin:place], short
    trailing = TRAILING_LOGGER.search(line, begin)
    if trailing is None:
        return line[begin:], None
    return line[begin : trailing.start()], short_logger(trailing["logger"].decode())
