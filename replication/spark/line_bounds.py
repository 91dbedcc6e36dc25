"""How long lines may be, how short, and to how much a packed file may unpack, before it is read.

What goes beyond would take the memory or the hours of whoever reads it line by line: such a file is
refused whole. The look goes through the bytes piece by piece and holds none of them.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from replication.evidence.event_dumps import LONGEST_LINE
from replication.evidence.text_lines import short_lines

PIECE_BYTES = 1 << 20


@dataclass
class Bounds:
    """What a look has counted: bytes and ends of lines.

    first_byte: where it began. most_bytes: beyond which it ends. problem: what is beyond a bound.
    """

    first_byte: int = 0
    most_bytes: int | None = None
    size: int = 0
    lines: int = 0
    problem: str = ""

    def look(self, pieces: Iterable[bytes]) -> None:
        """Goes through the bytes until one of the bounds is passed."""
        begin = 0
        for piece in pieces:
            at = piece.find(b"\n")
            if self.size + (at if at >= 0 else len(piece)) - begin > LONGEST_LINE:
                where = self.first_byte + begin
                self.problem = f"a line of more than {LONGEST_LINE} bytes begins at byte {where}"
                return
            if at >= 0:
                self.lines += piece.count(b"\n")
                begin = self.size + piece.rfind(b"\n") + 1
            self.size += len(piece)
            if self.most_bytes is not None and self.size > self.most_bytes:
                self.problem = f"it unpacks to more than {self.most_bytes} bytes"
                return
        self.problem = short_lines(self.size, self.lines)


def pieces_of(file: Any, left: int | None = None) -> Iterator[bytes]:
    """The bytes of an open file from where it is read next, as many as are left."""
    while left is None or left > 0:
        piece = file.read1(PIECE_BYTES if left is None else min(PIECE_BYTES, left))
        if not piece:
            return
        yield piece
        left = None if left is None else left - len(piece)
