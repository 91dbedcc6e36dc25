"""Lines of a text file, packed or not, with what cannot be read in its place."""

import gzip
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from replication.evidence.opening import DAMAGED, Part, open_unpacked
from replication.evidence.unreadable import Unreadable

LONGEST_LINE = 1 << 20
# A file of so many lines that have so few bytes on average is neither of events nor of logs: their
# shortest lines have over a hundred. Of one the unpacked size says nothing of what reading takes.
MANY_LINES = 1_000_000
SHORT_LINE = 16
_UNIX_START = datetime(1970, 1, 1, tzinfo=UTC)


def text_lines(path: Path, longest: int = LONGEST_LINE) -> Iterator[tuple[int, str | Unreadable]]:
    """(number from 1, line with its line end) in file order, of a part of a file its lines alone.
    Memory is bounded by `longest` bytes.

    A line that is too long or no UTF-8, a compressed file that breaks off and a file that cannot be
    opened each answer an Unreadable; nothing is raised.
    """
    number = 0
    only = path.lines if isinstance(path, Part) else None
    try:
        with open_unpacked(path) as file:
            while line := file.readline(longest):
                number += 1
                if only is not None and number not in only:
                    continue
                if len(line) == longest and not line.endswith(b"\n"):
                    reason = f"this line is longer than {longest} bytes"
                    yield number, Unreadable(str(path), f"line {number}", reason)
                    while (rest := file.readline(longest)) and not rest.endswith(b"\n"):
                        pass
                    continue
                try:
                    yield number, line.decode("utf-8-sig" if number == 1 else "utf-8")
                except UnicodeDecodeError:
                    yield number, Unreadable(str(path), f"line {number}", "this line is no UTF-8")
    except (*DAMAGED, gzip.BadGzipFile) as error:
        reason = f"the compressed file breaks off: {error}"
        yield number + 1, Unreadable(str(path), f"line {number + 1}", reason)
    except OSError as error:
        reason = f"cannot be opened: {error.strerror or error}"
        yield number + 1, Unreadable(str(path), "file", reason)


def of_short_lines(path: Path) -> Unreadable | None:
    """Why a file is not read that holds a great many lines of nearly nothing, None where it does
    not. A look at all of its bytes, a hundred times as fast as reading its lines."""
    size = lines = 0
    if isinstance(path, Part):
        return None
    try:
        with open_unpacked(path) as file:
            while piece := file.read(MANY_LINES):
                if not size and len(piece) < MANY_LINES:
                    return None
                size += len(piece)
                lines += piece.count(b"\n")
    except (*DAMAGED, OSError):
        pass  # Who reads it says so.
    reason = short_lines(size, lines)
    return Unreadable(str(path), "file", reason) if reason else None


def short_lines(size: int, lines: int) -> str:
    """Why so many lines in so many bytes are not read one by one; "" where they are."""
    if lines <= MANY_LINES or size >= SHORT_LINE * lines:
        return ""
    return (
        f"{lines} lines of fewer than {SHORT_LINE} bytes on average: neither events nor lines of a "
        "log"
    )


def iso_milliseconds(text: str) -> int:
    """Milliseconds since 1970 of ISO 8601 text, UTC where it names no zone; ValueError if none."""
    moment = datetime.fromisoformat(text)
    since = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _UNIX_START
    return since.days * 86_400_000 + since.seconds * 1000 + since.microseconds // 1000
