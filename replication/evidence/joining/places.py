"""Where the records are that clients name."""

from dataclasses import dataclass

from replication.evidence.log_directories.segments import RecordBatch


@dataclass(frozen=True, slots=True)
class Place:
    """Where a payload is: offset, leader epoch and content."""

    offset: int
    leader_epoch: int | None
    content: int


def sequence_key(producer_id: int, producer_epoch: int, sequence: int) -> str:
    """The name under which a record of an idempotent producer is indexed (KIP-98)."""
    return f"\0{producer_id}/{producer_epoch}/{sequence}"


def sequence_at(batch: RecordBatch, offset: int) -> str | None:
    """The sequence key of one record; None where the batch tells none.

    The cleaner keeps a batch's first offset and sequence, be it empty: what was there it may
    take.
    """
    if batch.producer_id is None or batch.producer_epoch is None or batch.base_sequence is None:
        return None
    if batch.is_control:
        return None
    sequence = (batch.base_sequence + offset - batch.base_offset) & 0x7FFFFFFF
    return sequence_key(batch.producer_id, batch.producer_epoch, sequence)
