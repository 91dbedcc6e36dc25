"""What became of transactions, by the markers that are behind their records in the same log."""

import struct
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from replication.evidence.joining.copies import Copy
from replication.evidence.log_directories.record_payloads import read_record_identities
from replication.evidence.unreadable import Unreadable
from replication.recovery.copies_at_hand import Held, batches_of
from replication.recovery.ledger_rows import Ranges

NOT_IN_ONE = "none"
COMMITTED, ABORTED, OPEN, DISPUTED = "committed", "aborted", "open", "disputed"
# Types of control records (ControlRecordType in Kafka's clients).
_OUTCOMES = {0: ABORTED, 1: COMMITTED}
_PRINTED = {"ABORT": ABORTED, "COMMIT": COMMITTED}


@dataclass(slots=True)
class Markers:
    """Of each copy and producer id the transaction markers: at which offsets, and what they say."""

    found: dict[tuple[int, int], tuple[list[int], list[str]]] = field(default_factory=dict)

    def add(self, copy: int, producer_id: int, offset: int, outcome: str) -> None:
        """Takes a marker; each copy's come in offset order."""
        offsets, outcomes = self.found.setdefault((copy, producer_id), ([], []))
        offsets.append(offset)
        outcomes.append(outcome)

    def outcome(self, copy: int, producer_id: int, offset: int) -> str:
        """What the first marker of the producer behind an offset says; open without one."""
        offsets, outcomes = self.found.get((copy, producer_id), ([], []))
        at = bisect_right(offsets, offset)
        return outcomes[at] if at < len(outcomes) else OPEN


def markers_behind(copies: list[Copy], wanted: Ranges[Any]) -> Markers:
    """The markers of every producer of which a transactional batch is among the wanted records."""
    result = Markers()
    for index, copy in enumerate(copies):
        producers: set[int] = set()
        for held in batches_of(index, copy):
            batch = held.batch
            producer = batch.producer_id
            if not batch.is_transactional or producer is None:
                continue
            if not batch.is_control:
                if producer not in producers and wanted.touching(
                    batch.base_offset, batch.end_offset
                ):
                    producers.add(producer)
            elif producer in producers:
                for offset, outcome in _markers(held):
                    result.add(index, producer, offset, outcome)
    return result


def _markers(held: Held) -> Iterator[tuple[int, str]]:
    """(offset, what it says) of each marker of a control batch."""
    if held.printed is not None:
        for printed in held.printed:
            if printed.marker is not None:
                yield printed.offset, _PRINTED[printed.marker]
        return
    records = read_record_identities(held.path, held.batch)
    for record in () if isinstance(records, Unreadable) else records:
        key = record.key_bytes or b""
        kind = struct.unpack_from(">hh", key)[1] if len(key) >= 4 else None
        if kind in _OUTCOMES:
            yield record.offset, _OUTCOMES[kind]


def of_all(outcomes: Iterable[str]) -> str:
    """What several copies say of one transaction: who has no marker does not contradict."""
    told = set(outcomes)
    decided = told - {OPEN}
    if len(decided) > 1:
        return DISPUTED
    return decided.pop() if decided else OPEN
