"""The very lines of text evidence that a page names, read again from where they were found."""

import gzip
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO

LONGEST = 400
# A file is read up to the last line that is wanted, and no further than this.
MOST_BYTES = 512 * 1024 * 1024


def read_lines(places: set[tuple[str, int]]) -> Mapping[tuple[str, int], str]:
    """(path, line from 1) -> the line as text, long ones cut; what cannot be read is absent.

    A file that is gone or no text any more is no error here: the page names it anyway.
    """
    wanted: dict[str, set[int]] = {}
    for path, line in places:
        wanted.setdefault(path, set()).add(line)
    found: dict[tuple[str, int], str] = {}
    for path, numbers in sorted(wanted.items()):
        for number, text in _lines(Path(path), numbers):
            found[(path, number)] = text
    return found


def _lines(path: Path, numbers: set[int]) -> Iterator[tuple[int, str]]:
    try:
        with _opened(path) as file:
            last, seen = max(numbers), 0
            for number, raw in enumerate(file, start=1):
                seen += len(raw)
                if number in numbers:
                    yield number, _shown(raw)
                if number >= last or seen > MOST_BYTES:
                    return
    except (OSError, EOFError, zlib.error):
        return


def _opened(path: Path) -> IO[bytes] | gzip.GzipFile:
    with path.open("rb") as file:
        compressed = file.read(2) == b"\x1f\x8b"
    return gzip.open(path, "rb") if compressed else path.open("rb")


def _shown(raw: bytes) -> str:
    text = raw.decode("utf-8", "replace").rstrip("\r\n")
    return text if len(text) <= LONGEST else text[:LONGEST] + " …"
