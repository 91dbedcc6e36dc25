"""A checksum of every byte of a table's file, as Hadoop keeps it beside each file on a local disk.

Parquet's own checksums are of pages alone: not of the names of columns, nor of where pages begin.
Hadoop's ChecksumFileSystem writes `.NAME.crc` beside NAME (a CRC-32 of each 512 bytes) and holds
against it all that is read, so Spark does. What is written without Hadoop gets the same here.
"""

import zlib
from collections.abc import Iterator
from pathlib import Path

MAGIC = b"crc\0"
PIECE = 512
SUM_BYTES = 4
HEAD = len(MAGIC) + SUM_BYTES
# So many pieces are read at once.
PIECES = 1 << 12


def beside(path: Path) -> Path:
    """Where the checksums of a file lie."""
    return path.with_name(f".{path.name}.crc")


def write(path: Path) -> None:
    """Writes the checksums of a file that is whole."""
    head = MAGIC + PIECE.to_bytes(SUM_BYTES, "big")
    beside(path).write_bytes(head + b"".join(_sums(path, PIECE)))


def problem(path: Path) -> str | None:
    """What the checksums beside a file say against it; None where there are none, too.

    Raises FileNotFoundError where the file is gone.
    """
    try:
        kept = beside(path).read_bytes()
    except FileNotFoundError:
        return None
    piece, wanted = int.from_bytes(kept[len(MAGIC) : HEAD], "big"), memoryview(kept)[HEAD:]
    if kept[: len(MAGIC)] != MAGIC or not piece:
        return f"{beside(path).name} holds no checksums"
    place = 0
    for found in _sums(path, piece):
        if wanted[place : place + SUM_BYTES] != found:
            first = place // SUM_BYTES * piece
            return f"checksum of bytes {first} to {first + piece}"
        place += SUM_BYTES
    return None if place == len(wanted) else "bytes are missing at its end"


def _sums(path: Path, piece: int) -> Iterator[bytes]:
    """The checksum of each piece of a file, the last of which may be shorter."""
    with path.open("rb") as stream:
        while block := memoryview(stream.read(piece * PIECES)):
            for first in range(0, len(block), piece):
                yield zlib.crc32(block[first : first + piece]).to_bytes(SUM_BYTES, "big")
