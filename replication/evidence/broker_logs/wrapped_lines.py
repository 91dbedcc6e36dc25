"""Log lines that a terminal, a ticket or a mail broke at a width are made whole again.

Kafka's own layout ends each line with its logger, so a line without one goes on in the next. Where
most lines are as long as the width they were broken anywhere. Where none had room for the word that
begins the next they were broken between words, and a blank was there. Of others nothing is joined.
"""

import re
from collections.abc import Iterator
from itertools import compress, islice, pairwise

from replication.evidence.broker_logs.line_headers import HEADER, HEADER_BEGINS
from replication.evidence.broker_logs.loggers_in_lines import ends_without_logger, trailing_logger

# A log line is broken into at most so many, the dump of a broker's settings into more.
_MOST_PARTS = 40
_MOST_OF_A_DUMP = 2_000
# Such a part of a file's log lines has to be broken, and few lines may be longer than the width.
_BROKEN = 0.05
_LONGER = 0.05
# Of lines that are broken anywhere so many are as long as the width, of others few.
_OF_FULL_WIDTH = 0.6
# A word of so many letters may have been broken itself: this is put where it was, or ended.
_LONG_WORD = 40
DOUBT = b" ... "
# One message of many lines, which are indented: the logger is behind the last.
_DUMP = re.compile(rb"values: *$")
_LONGEST_LOGGER = 300
_INDENT = (b"\t", b" ")


class WholeLines:
    """Each log line in one line, with the line ends that it had behind it. DOUBT is where a line
    was broken within a long word or behind it, which its parts do not tell.

    widths: the most of a line's first part, and of the later ones: a prefix that was taken off
    makes the first shorter. anywhere: lines were broken anywhere, and not between words.
    """

    def __init__(self, widths: tuple[int, int], *, anywhere: bool) -> None:
        self.widths, self.anywhere = widths, anywhere
        self._parts: list[bytes] = []
        self._whole = b""
        self._ends = 0
        self._is_dump = False

    def __call__(self, block: bytes) -> bytes:
        lines = (line.rstrip(b"\r\n") for line in block.splitlines(keepends=True))
        return b"".join(self._of_line(line) for line in lines)

    def _of_line(self, line: bytes) -> bytes:
        before = b""
        most = _MOST_OF_A_DUMP if self._is_dump else _MOST_PARTS
        if self._parts and (len(self._parts) >= most or HEADER.match(line)):
            before = self._taken()
        if not self._parts and not _goes_on(line):
            return before + line + b"\n"
        if not self._parts:
            self._whole, self._is_dump = line, _DUMP.search(line) is not None
        elif self._is_dump and line.startswith(_INDENT):
            self._whole += b"\n" + line
            self._ends -= 1
        else:
            self._whole += self._between(line) + line
        self._parts.append(line)
        self._ends += 1
        return before + (self._taken() if _ends(self._whole) else b"")

    def _between(self, line: bytes) -> bytes:
        """What was between the last part and this one."""
        last = self._parts[-1]
        if last.endswith(b" ") or line.startswith(b" "):
            return b""
        full = len(last) == self.widths[len(self._parts) > 1]
        if full and not self.anywhere and len(last.rsplit(b" ", 1)[-1]) >= _LONG_WORD:
            return DOUBT
        return b"" if full and self.anywhere else b" "

    def _taken(self) -> bytes:
        whole = self._whole + b"\n" * self._ends
        self._whole, self._parts, self._ends = b"", [], 0
        return whole


def whole_lines(lines: list[bytes]) -> WholeLines | None:
    """What makes the lines of a file whole that begins with these; None where none are broken, or
    where it does not show how they were."""
    begun = [line[:1] in HEADER_BEGINS for line in lines]
    # A line that was broken ends without its logger, mostly without what is behind one, too.
    open_ended = sum(map(ends_without_logger, compress(lines, begun)))
    least = islice(filter(HEADER.match, compress(lines, begun)), int(open_ended / _BROKEN) + 1)
    if sum(1 for _ in least) > open_ended / _BROKEN:
        return None
    headed = [b and HEADER.match(line) is not None for b, line in zip(begun, lines, strict=True)]
    headers = list(compress(lines, headed))
    if sum(map(ends_without_logger, headers)) < _BROKEN * len(headers) or not headers:
        return None
    broken = list(_broken(lines, headed))
    if not broken or len(broken) < _BROKEN * len(headers):
        return None
    first = [len(parts[0]) for parts in broken]
    later = [len(part) for parts in broken for part in parts[1:-1]]
    widths = max(first), max(later or first)
    if sum(len(line) > widths[0] for line in headers) > _LONGER * len(headers):
        return None
    if all(_mostly(width, lengths) for width, lengths in zip(widths, (first, later), strict=True)):
        return WholeLines(widths, anywhere=True)
    fits = [
        len(part) + 1 + len(after.split(b" ", 1)[0]) <= widths[number > 0]
        for parts in broken
        for number, (part, after) in enumerate(pairwise(parts))
        if not part.endswith(b" ") and not after.startswith(b" ")
    ]
    return WholeLines(widths, anywhere=False) if sum(fits) <= _LONGER * len(fits) else None


def _mostly(width: int, lengths: list[int]) -> bool:
    return sum(length == width for length in lengths) >= _OF_FULL_WIDTH * len(lengths)


def _goes_on(line: bytes) -> bool:
    """Whether a log line begins here that does not end here."""
    return bool(HEADER.match(line)) and not _ends(line)


def _ends(line: bytes) -> bool:
    """Whether a log line ends here, with its logger: a message may have a word in brackets."""
    logger = trailing_logger(line, max(0, len(line) - _LONGEST_LOGGER))
    return logger is not None and b"." in logger


def _broken(lines: list[bytes], headed: list[bool]) -> Iterator[list[bytes]]:
    """The log lines, but for dumps, that end with their logger in a later line, by their parts.
    headed: which lines begin with a header."""
    parts: list[bytes] = []
    for line, is_header in zip(lines, headed, strict=True):
        if is_header:
            parts = [] if _ends(line) or _DUMP.search(line) else [line]
            continue
        if not parts:
            continue
        parts.append(line)
        if _ends(b" " + line) or _ends(b"".join(parts[-2:])):
            yield parts
            parts = []
