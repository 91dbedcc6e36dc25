"""Records as the copies show them: their bytes, every place that has them, their transactions."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from replication.evidence.joining.copies import Copy
from replication.evidence.log_directories.record_payloads import (
    RecordIdentity,
    content_digest,
    read_record_identities,
)
from replication.evidence.log_directories.segments import RecordBatch
from replication.evidence.tools.dump_log import DumpedRecord, printed_bytes
from replication.evidence.unreadable import Unreadable
from replication.protocol.ground.model import touching
from replication.recovery import transactions as tx
from replication.recovery.copies_at_hand import Held


@dataclass(slots=True)
class Place:
    """Where a record is: a copy, its file, and the byte of its batch."""

    copy: int
    path: Path
    position: int


@dataclass(slots=True)
class Candidate:
    """A record that is at the offset of a row. lacks: what of it the evidence does not show.

    contents: the numbers that its bytes have among the copies. in_transaction: of each place.
    """

    record: RecordIdentity
    batch: RecordBatch
    lacks: str | None = None
    header_names: str = ""
    places: list[Place] = field(default_factory=list)
    contents: set[int] = field(default_factory=set)
    in_transaction: list[str] = field(default_factory=list)
    sequence: int | None = None

    @property
    def offset(self) -> int:
        """Where it was."""
        return self.record.offset

    @property
    def transaction(self) -> str:
        """Its transaction's outcome, `none` outside of one."""
        return tx.of_all(self.in_transaction) if self.in_transaction else tx.NOT_IN_ONE


@dataclass(slots=True)
class Reader:
    """Reads batches of some copies. markers: of the transactions among them. notes: what could not
    be read on the way."""

    copies: list[Copy]
    markers: tx.Markers = field(default_factory=tx.Markers)
    notes: dict[str, None] = field(default_factory=dict)

    def read(
        self, equals: list[Held], wanted: Callable[[RecordIdentity], bool] = lambda _: True
    ) -> list[Candidate] | str:
        """The wanted records of a batch that these copies hold; why it cannot be read."""
        why: str | None = None
        files = [held for held in equals if held.printed is None]
        for held in files:
            records = read_record_identities(held.path, held.batch, verify_crc=True)
            if not isinstance(records, Unreadable):
                return [self._candidate(r, equals) for r in records if wanted(r)]
            why = f"{records.path} ({records.where}): {records.reason}"
            self.notes[why] = None
        printed = next((held.printed for held in equals if held.printed), None)
        if printed is None:
            return why or "a dump without --print-data-log shows no record's bytes"
        return [
            self._candidate(record, equals, p) for p in printed if wanted(record := _of_dump(p))
        ]

    def _candidate(
        self,
        record: RecordIdentity,
        equals: list[Held],
        printed: DumpedRecord | None = None,
    ) -> Candidate:
        batch = equals[0].batch
        result = Candidate(record, batch, sequence=_sequence(batch, record.offset))
        if printed is not None:
            result.lacks, result.header_names = _lacking(printed), printed.header_names
        for held in equals:
            result.places.append(Place(held.copy, held.path, held.batch.position))
            for span in touching(self.copies[held.copy].spans, record.offset, record.offset + 1):
                if (
                    span.first_offset <= record.offset < span.end_offset
                    and span.content is not None
                ):
                    result.contents.add(span.content)
        self.look_for_outcome(result)
        return result

    def look_for_outcome(self, candidate: Candidate) -> None:
        """Notes what the markers say of a record's transaction, in each place."""
        batch = candidate.batch
        if batch.is_transactional and not batch.is_control and batch.producer_id is not None:
            candidate.in_transaction = [
                self.markers.outcome(
                    place.copy, batch.producer_id, candidate.offset, batch.leader_epoch
                )
                for place in candidate.places
            ]


def alike(cell: list[Held]) -> Iterable[list[Held]]:
    """The batches of a cell, those that are the same bytes at the same place together."""
    groups: dict[tuple[int | None, ...], list[Held]] = {}
    for held in sorted(cell, key=lambda h: h.copy):
        b = held.batch
        key = (b.base_offset, b.end_offset, b.leader_epoch, b.crc, b.size)
        groups.setdefault(key, []).append(held)
    return groups.values()


def add(known: list[Candidate], more: Candidate) -> None:
    """Adds a record to those of its offset, or its places to the same one in other batches."""
    for number, other in enumerate(known):
        if not _is_same(other, more):
            continue
        fuller, poorer = (other, more) if other.lacks is None else (more, other)
        fuller.places += poorer.places
        fuller.contents |= poorer.contents
        fuller.in_transaction += poorer.in_transaction
        known[number] = fuller
        return
    known.append(more)


def _is_same(one: Candidate, other: Candidate) -> bool:
    """Whether two are one record: equal bytes of one leader epoch, as far as both are shown."""
    if one.batch.leader_epoch != other.batch.leader_epoch:
        return False
    if one.batch.is_control != other.batch.is_control:
        return False
    if one.lacks is None and other.lacks is None:
        return one.record.digest == other.record.digest
    a, b = one.record, other.record
    return (a.key_bytes, a.value) == (b.key_bytes, b.value) or (
        a.key == b.key and one.batch.crc == other.batch.crc
    )


def _sequence(batch: RecordBatch, offset: int) -> int | None:
    """The record's number among its producer's, of an idempotent one."""
    if batch.base_sequence is None or batch.producer_id is None or batch.is_control:
        return None
    return (batch.base_sequence + offset - batch.base_offset) & 0x7FFFFFFF


def _lacking(printed: DumpedRecord) -> str | None:
    """What a dump does not show of a record, None where it shows all."""
    if printed.marker is not None:
        return None
    if printed.header_names:
        return f"the values of its headers ({printed.header_names})"
    for what, text, size in (
        ("key", printed.key, printed.key_size),
        ("value", printed.payload, printed.value_size),
    ):
        if size is not None and printed_bytes(text, size) is None:
            return f"the bytes of its {what}: printed is a text that may be another's"
    return None


def _of_dump(printed: DumpedRecord) -> RecordIdentity:
    """A record as a dump printed it; where not its very bytes, then those of the text."""
    key = printed_bytes(printed.key, printed.key_size)
    value = printed_bytes(printed.payload, printed.value_size)
    key = key if key is not None else _text_bytes(printed.key)
    value = value if value is not None else _text_bytes(printed.payload)
    digest = content_digest(key, value, -1 if printed.at is None else printed.at, [])
    told = (printed.offset, printed.key, digest, key, value)
    return RecordIdentity(*told, [], printed.at, printed.by_broker)


def _text_bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode("utf-8", "surrogatepass")
