"""Metadata transactions (KIP-868): their records count when the transaction has ended."""

from typing import NamedTuple

from replication.evidence.metadata_log.log_parts import PlacedRecord


class OpenTransaction(NamedTuple):
    """`held`: what was written since `start`; one list, which grows while it is open."""

    start: int
    held: list[PlacedRecord]


def due(
    opened: OpenTransaction | None, entry: PlacedRecord, is_control: bool
) -> tuple[OpenTransaction | None, list[PlacedRecord]]:
    """The transaction that is open after a record, and the records that count from now on."""
    name = entry.record.name
    if name == "BeginTransactionRecord":
        return OpenTransaction(entry.offset, []), []
    if name == "AbortTransactionRecord":
        return None, []
    if name == "EndTransactionRecord":
        return None, opened.held if opened else []
    if opened is None or is_control:
        return opened, [entry]
    opened.held.append(entry)
    return opened, []
