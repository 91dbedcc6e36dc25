"""Offsets at which a log has a batch and a consumer gets nothing: transaction markers, and batches
that compaction emptied. Whoever counts records leaves them out."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from replication.evidence.log_directories.segments import RecordBatch


class WithoutRecords(NamedTuple):
    """Offsets [first_offset, end_offset) of a batch of one leader epoch without a record. alone: no
    batch of another leader epoch has a record there."""

    first_offset: int
    end_offset: int
    leader_epoch: int | None
    alone: bool


def without_records(cell: Sequence[RecordBatch]) -> list[WithoutRecords]:
    """Of batches that overlap in several copies, those in which no copy has a record."""
    empty = [b for b in cell if b.is_control or b.record_count == 0]
    if not empty:
        return []
    # A batch that was emptied in one copy alone has its records in the others.
    full = {(b.base_offset, b.leader_epoch) for b in cell if b not in empty}
    found = {
        WithoutRecords(b.base_offset, b.end_offset, b.leader_epoch, not full)
        for b in empty
        if (b.base_offset, b.leader_epoch) not in full
    }
    return sorted(found, key=lambda w: (w.first_offset, w.leader_epoch or 0))


def count_records(rows: Iterable[dict[str, Any]], found: Sequence[WithoutRecords]) -> None:
    """Sets `records` of rows of losses, or of dangers, to what a consumer could read there. found:
    in offset order."""
    starts, ends = [w.first_offset for w in found], [w.end_offset for w in found]
    for row in rows:
        first, end = row["first_offset"], row["end_offset"]
        leader_epoch = row.get("leader_epoch") if "status" in row else None
        empty: set[int] = set()
        for w in found[bisect_left(ends, first + 1) : bisect_right(starts, end - 1)]:
            if w.alone or (leader_epoch is not None and w.leader_epoch == leader_epoch):
                empty.update(range(max(first, w.first_offset), min(end, w.end_offset)))
        row["records"] = end - first - len(empty)
