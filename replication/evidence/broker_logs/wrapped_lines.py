"""Log lines that a terminal, a ticket or a mail broke at a width are made whole again.

Kafka's own layout ends each line with its logger, so a line without one goes on in the next. What
ends in the midst of a word was broken anywhere; else there was a blank where the line was broken.
"""

import re
from collections.abc import Iterator

from replication.evidence.broker_logs.line_headers import HEADER
from replication.evidence.broker_logs.loggers_in_lines import TRAILING_LOGGER

# A log line is broken into at most so many, the dump of a broker's settings into more.
_MOST_PARTS = 40
_MOST_OF_A_DUMP = 2_000
# Such a part of a file's log lines has to be broken, and few lines may be longer than the width.
_BROKEN = 0.05
_LONGER = 0.05
# Of lines that are broken anywhere most are as long as the width, of others few.
_OF_FULL_WIDTH = 0.6
# One message of many lines, which are indented: the logger is behind the last.
_DUMP = re.compile(rb"values: *$")
_LONGEST_LOGGER = 300
_INDENT = (b"\t", b" ")


class WholeLines:
    """Each log line in one line, with the line ends that it had behind it. width: where lines were
    broken, if they were broken anywhere; None where only between words."""

    def __init__(self, width: int | None) -> None:
        self.width = width
        self._whole = b""
        self._last = b""
        self._parts = 0
        self._ends = 0
        self._is_dump = False

    def __call__(self, block: bytes) -> bytes:
        lines = (line.rstrip(b"\r\n") for line in block.splitlines(keepends=True))
        return b"".join(self._of_line(line) for line in lines)

    def _of_line(self, line: bytes) -> bytes:
        before = b""
        most = _MOST_OF_A_DUMP if self._is_dump else _MOST_PARTS
        if self._parts and (self._parts >= most or HEADER.match(line)):
            before = self._taken()
        if not self._parts and not _goes_on(line):
            return before + line + b"\n"
        if not self._parts:
            self._whole, self._is_dump = line, _DUMP.search(line) is not None
        elif self._is_dump and line.startswith(_INDENT):
            self._whole += b"\n" + line
            self._ends -= 1
        else:
            blank = self._last.endswith(b" ") or line.startswith(b" ")
            self._whole += line if blank or len(self._last) == self.width else b" " + line
        self._last = line
        self._parts += 1
        self._ends += 1
        return before + (self._taken() if _ends(self._whole) else b"")

    def _taken(self) -> bytes:
        whole = self._whole + b"\n" * self._ends
        self._whole, self._parts, self._ends = b"", 0, 0
        return whole


def whole_lines(lines: list[bytes]) -> WholeLines | None:
    """What makes the lines of a file whole that begins with these; None where none are broken."""
    parts = [len(part) for broken in _broken(lines) for part in broken[:-1]]
    headers = [line for line in lines if HEADER.match(line)]
    if not parts or len(parts) < _BROKEN * len(headers):
        return None
    width = max(parts)
    if sum(len(line) > width for line in headers) > _LONGER * len(headers):
        return None
    full = sum(length == width for length in parts)
    return WholeLines(width if full >= _OF_FULL_WIDTH * len(parts) else None)


def _goes_on(line: bytes) -> bool:
    """Whether a log line begins here that does not end here."""
    return bool(HEADER.match(line)) and not _ends(line)


def _ends(line: bytes) -> bool:
    """Whether a log line ends here, with its logger."""
    return TRAILING_LOGGER.search(line, max(0, len(line) - _LONGEST_LOGGER)) is not None


def _broken(lines: list[bytes]) -> Iterator[list[bytes]]:
    """The log lines, but for dumps, that end with their logger in a later line, by their parts."""
    parts: list[bytes] = []
    for line in lines:
        if HEADER.match(line):
            parts = []
        if parts or (_goes_on(line) and not _DUMP.search(line)):
            parts.append(line)
        if len(parts) > 1 and (_ends(b" " + line) or _ends(b"".join(parts[-2:]))):
            yield parts
            parts = []
