"""Ranges of offsets [first, end), the last one perhaps without an end that anybody knows."""

from collections.abc import Iterable, Sequence

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


def overlap(some: Iterable[Sequence[int | None]], others: Iterable[Sequence[int | None]]) -> bool:
    """Whether two sets of ranges as JSON has them, an unknown end being None, share an offset."""
    ends = [(c or 0, NO_END if d is None else d) for c, d in others]
    return any((a or 0) < d and c < (NO_END if b is None else b) for a, b in some for c, d in ends)


def with_open_end(ranges: Ranges) -> list[list[int | None]]:
    """As JSON has them: None as the end that nobody knows."""
    return [[first, None if end == NO_END else end] for first, end in ranges]


def common(one: Ranges, other: Ranges) -> Ranges:
    """The offsets that are in both."""
    found = [(max(a, c), min(b, d)) for a, b in one for c, d in other]
    return joined((first, end) for first, end in found if first < end)
