"""What became of transactions, by the markers that are behind their records in the same log."""

import struct
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from replication.evidence.joining.copies import Copy
from replication.evidence.log_directories.record_payloads import read_record_identities
from replication.evidence.unreadable import Unreadable
from replication.recovery.copies_at_hand import Held, SetAside, batches_of
from replication.recovery.ledger_rows import Ranges

EpochEntries = tuple[tuple[int, int], ...]
NOT_IN_ONE = "none"
COMMITTED, ABORTED, OPEN, DISPUTED = "committed", "aborted", "open", "disputed"
# Types of control records (ControlRecordType in Kafka's clients).
_OUTCOMES = {0: ABORTED, 1: COMMITTED}
_PRINTED = {"ABORT": ABORTED, "COMMIT": COMMITTED}


@dataclass(slots=True)
class Markers:
    """Of each copy and producer id the transaction markers: at which offsets, and what they say.

    logs: of each segment that was set aside the copy of the log beside it, by their numbers, and by
    its epoch file where each leader epoch begins there.
    """

    found: dict[tuple[int, int], tuple[list[int], list[str]]] = field(default_factory=dict)
    logs: dict[int, tuple[int, EpochEntries]] = field(default_factory=dict)

    def add(self, copy: int, producer_id: int, offset: int, outcome: str) -> None:
        """Takes a marker; each copy's come in offset order."""
        offsets, outcomes = self.found.setdefault((copy, producer_id), ([], []))
        offsets.append(offset)
        outcomes.append(outcome)

    def outcome(self, copy: int, producer_id: int, offset: int, leader_epoch: int | None) -> str:
        """What the first marker of the producer behind a record says; open without one. Of a
        segment that was set aside it may be in the log beside it, if that had the record."""
        offsets, outcomes = self.found.get((copy, producer_id), ([], []))
        at = bisect_right(offsets, offset)
        if at < len(outcomes):
            return outcomes[at]
        log, entries = self.logs.get(copy, (None, ()))
        before = [entry[0] for entry in entries if entry[1] <= offset]
        if log is None or not before or before[-1] != leader_epoch:
            return OPEN
        return self.outcome(log, producer_id, offset, leader_epoch)


def markers_behind(copies: list[Copy], wanted: Ranges[Any]) -> Markers:
    """The markers of every producer of which a transactional batch is among the wanted records."""
    result = Markers()
    set_aside = [n for n, c in enumerate(copies) if isinstance(c.directory, SetAside)]
    whole = [n for n, c in enumerate(copies) if not isinstance(c.directory, SetAside)]
    logs = {copies[n].path: n for n in whole}
    of_folder: dict[str, set[int]] = {}
    for n in set_aside:
        log = logs.get(copies[n].path)
        if log is not None:
            result.logs[n] = (log, copies[n].directory.epoch_entries or ())
    # Of a log the producers count that segments set aside beside it have.
    for index in [*set_aside, *whole]:
        copy = copies[index]
        producers = of_folder.setdefault(copy.path, set())
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
