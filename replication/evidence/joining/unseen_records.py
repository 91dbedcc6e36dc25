"""Records that were promised and that no copy shows: at one offset each has a content of its own.

One log's records follow each other. So a record goes on what was promised last before it at the
offset below, as far as the clients' time tells; the numbers only keep apart what is not the same.
"""

from collections.abc import Iterable
from typing import TypeVar

from replication.evidence.joining.copies import UNSEEN_CONTENT

Who = TypeVar("Who")


def contents_of_unseen(promised: Iterable[tuple[int, int, Who]]) -> dict[Who, int]:
    """A content for each (offset, ms, name) of a record that no copy shows."""
    result: dict[Who, int] = {}
    below: list[tuple[int, int]] = []
    last: int | None = None
    here: list[tuple[int, int]] = []
    for offset, at, who in sorted(promised, key=lambda p: (p[0], p[1], str(p[2]))):
        if offset != last:
            below, here, last = (here if last == offset - 1 else []), [], offset
        taken = {content for _, content in here}
        before = [content for told, content in below if told <= at and content not in taken]
        free = next(n for n in range(UNSEEN_CONTENT, 1 << 62) if n not in taken)
        result[who] = before[-1] if before else free
        here.append((at, result[who]))
    return result
