"""Up to where a read_committed consumer reads."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Transaction:
    """One producer's transaction in a log. end_marker_offset None: still open."""

    first_offset: int
    end_marker_offset: int | None


def last_stable_offset(high_watermark: int, transactions: Iterable[Transaction]) -> int:
    """Decides the last stable offset, exclusive, never above the high watermark.

    A transaction holds it back while open, and while its end marker is not below the high
    watermark.

    Shown by transactions.txt.

    Versions: transactions exist from 0.11 (KIP-98).
    Followed: nothing. Gave way to: nothing. It is not monotonic, and replicas differ in it.
    Leaves unchanged: the high watermark.
    Unknown: nothing.
    """
    unstable = [
        t.first_offset
        for t in transactions
        if t.end_marker_offset is None or t.end_marker_offset >= high_watermark
    ]
    return min([high_watermark, *unstable])
