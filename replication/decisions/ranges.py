"""Ranges of offsets [first, end), the last one perhaps without an end that anybody knows."""

from collections.abc import Iterable, Sequence

from replication.protocol.ground.model import joined_ranges

# As the end of a range of which nothing tells where it ends.
NO_END = 1 << 60
Ranges = list[tuple[int, int]]


def joined(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """In order, those that meet joined."""
    return joined_ranges([*ranges])


def ranges_in_words(ranges: Ranges, most: int = 4) -> str:
    """`offset 3, offsets 5..9`, some of them where there are many."""
    told = [
        f"from offset {first} on"
        if end == NO_END
        else f"offset {first}"
        if end == first + 1
        else f"offsets {first}..{end - 1}"
        for first, end in ranges[:most]
    ]
    more = len(ranges) - most
    return ", ".join(told) + (f" and {more} more" if more > 0 else "")


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


def common(one: Ranges, other: Ranges) -> Ranges:
    """The offsets that are in both."""
    found = [(max(a, c), min(b, d)) for a, b in one for c, d in other]
    return joined((first, end) for first, end in found if first < end)
