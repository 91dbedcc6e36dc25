"""Transactions as the partitions' logs show them: each with its records and its marker."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from replication.evidence.joining.copies import Copy
from replication.evidence.log_directories.record_payloads import read_record_identities
from replication.evidence.log_directories.segments import RecordBatch
from replication.evidence.unreadable import Unreadable
from replication.recovery import transactions as tx
from replication.recovery.groups.coordinator_logs import COMMIT_MARKER, marker_kind


@dataclass(slots=True)
class InLog:
    """One transaction's part in one log: offsets [first, end), `records` of them its own.

    outcome: `open`, `committed`, `aborted`. began, ended: ms since 1970, of its first batch by its
    producer's clock (or broker's, as the topic has it), and of its marker by its coordinator's.
    """

    producer_id: int
    producer_epoch: int
    first: int
    end: int
    records: int
    began: int | None
    path: Path
    position: int
    outcome: str = tx.OPEN
    ended: int | None = None

    def is_at_one_time_with(self, other: "InLog") -> bool:
        """Whether both were under way at one moment: one producer has one transaction at a time."""
        if self.began is None or other.began is None:
            return False
        return (other.ended is None or self.began <= other.ended) and (
            self.ended is None or other.began <= self.ended
        )


def transactions_in(copy: Copy) -> Iterator[InLog]:
    """The transactions of a copy: those that ended as they did so, then those that are open."""
    under_way: dict[int, InLog] = {}
    for path, batch in copy.directory.iter_batches_with_path():
        producer = batch.producer_id
        if not batch.is_transactional or producer is None:
            continue
        if not batch.is_control:
            known = under_way.get(producer)
            if known is None:
                under_way[producer] = _begun(producer, batch, path)
            else:
                known.end = batch.end_offset
                known.records += _count(batch)
                known.producer_epoch = max(known.producer_epoch, batch.producer_epoch or 0)
            continue
        ended = under_way.pop(producer, None)
        if ended is not None:
            ended.outcome, ended.ended = _outcome(path, batch), batch.max_timestamp
            yield ended
    yield from under_way.values()


def _begun(producer: int, batch: RecordBatch, path: Path) -> InLog:
    span = (batch.base_offset, batch.end_offset, _count(batch))
    producer_epoch = batch.producer_epoch or 0
    return InLog(producer, producer_epoch, *span, batch.max_timestamp, path, batch.position)


def _count(batch: RecordBatch) -> int:
    return batch.record_count or batch.end_offset - batch.base_offset


def _outcome(path: Path, batch: RecordBatch) -> str:
    records = read_record_identities(path, batch)
    if isinstance(records, Unreadable) or not records:
        return tx.OPEN
    is_commit = marker_kind(records[-1].key_bytes) == COMMIT_MARKER
    return tx.COMMITTED if is_commit else tx.ABORTED
