"""Ranges of offsets [first, end), the last one perhaps without an end that anybody knows."""

from collections.abc import Iterable

from replication.protocol.ground.model import joined_ranges

# As the end of a range of which nothing tells where it ends.
NO_END = 1 << 60
Ranges = list[tuple[int, int]]


def joined(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """In order, those that meet joined."""
    return joined_ranges([*ranges])


def size(ranges: Ranges) -> int:
    """How many offsets; very many where nothing tells the end."""
    return sum(end - first for first, end in ranges)


def has_no_end(ranges: Ranges) -> bool:
    """Whether nothing tells where the last range ends."""
    return any(end == NO_END for _, end in ranges)
