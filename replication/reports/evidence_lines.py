"""The very lines of text evidence that a page names, read again from where they were found."""

import gzip
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

LONGEST = 400
# A file is read up to the last line that is wanted, and no further than this.
MOST_BYTES = 512 * 1024 * 1024


Lines = Callable[[str], Iterator[bytes]]
# A path, and a line from 1.
Place = tuple[str, int]
Quotes = Callable[[set[Place]], Mapping[Place, str]]


def _lines_of(path: str) -> Iterator[bytes]:
    """A file's lines where no host knows better how it is packed: plain or gzipped."""
    try:
        with Path(path).open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
        with gzip.open(path, "rb") if packed else Path(path).open("rb") as file:
            yield from file
    except (OSError, EOFError, zlib.error):
        return


def read_lines(places: set[Place], lines_of: Lines = _lines_of) -> Mapping[Place, str]:
    """(path, line from 1) -> the line as text, long ones cut; what cannot be read is absent.

    A file that is gone or no text any more is no error here: the page names it anyway. lines_of:
    the lines of a file by its path, unpacked.
    """
    wanted: dict[str, set[int]] = {}
    for path, line in places:
        wanted.setdefault(path, set()).add(line)
    found: dict[Place, str] = {}
    for path, numbers in sorted(wanted.items()):
        last, seen = max(numbers), 0
        for number, raw in enumerate(lines_of(path), start=1):
            seen += len(raw)
            if number in numbers:
                found[(path, number)] = _shown(raw)
            if number >= last or seen > MOST_BYTES:
                break
    return found


def _shown(raw: bytes) -> str:
    text = raw.decode("utf-8", "replace").rstrip("\r\n")
    return text if len(text) <= LONGEST else text[:LONGEST] + " …"
