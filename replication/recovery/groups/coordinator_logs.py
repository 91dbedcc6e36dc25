"""The coordinators' logs, copy by copy: records in order, those of transactions once committed.

The leader's copy tells the present. What another copy has and the leader's lacks was
cut, lost with a disk, or taken out by compaction. Only compaction leaves a hole between records
of the same leader epochs. Behind the end of a copy of a running broker others may just be newer.
"""

import struct
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from replication.evidence.coordinator_records import CoordinatorRecord, decode_coordinator_record
from replication.evidence.joining.copies import Copy, latest
from replication.evidence.joining.partition_evidence import PartitionEvidence
from replication.evidence.log_directories.record_payloads import read_record_identities
from replication.evidence.messages.byte_reader import MessageError
from replication.evidence.unreadable import Unreadable
from replication.protocol.ground.model import Span, touching
from replication.protocol.judgement.bounded import FoldedPartition, Identity
from replication.recovery.copies_at_hand import with_records
from replication.recovery.ledger_rows import NOT_BACK
from replication.recovery.moments import last_leader

# A type of control records (ControlRecordType in Kafka's clients).
COMMIT_MARKER = 1
MOST_NOTES = 20
LostRange = tuple[int, int, int | None]


@dataclass(frozen=True, slots=True)
class Entry:
    """One record of a coordinator's log, where it is, and since when it counts.

    leader_epoch: of its batch. displaced: the leader's log does not have it, nor had it taken
    out by compaction.
    """

    record: CoordinatorRecord
    offset: int
    leader_epoch: int | None
    path: Path
    position: int
    displaced: bool = False


@dataclass(slots=True)
class CoordinatorLog:
    """One partition of a coordinator's topic. present: the copy that tells what counts now.

    is_leaders: whether that copy is the (last) leader's. others: copies that differ from it.
    lost: offsets [first, end) and leader epoch (None: any) that the loss ledger names. notes: what
    could not be read.
    """

    evidence: PartitionEvidence
    present: Copy | None
    is_leaders: bool
    others: list[Copy] = field(default_factory=list)
    lost: Sequence[LostRange] = ()
    notes: dict[str, None] = field(default_factory=dict)

    @property
    def sources(self) -> set[Path]:
        """The segments that are read."""
        copies = [c for c in (self.present, *self.others) if c is not None]
        return {path for copy in copies for _, path in copy.directory.segment_files}

    def now(self) -> Iterator[Entry]:
        """The records that count now, in the log's order."""
        return iter(()) if self.present is None else self._entries(self.present)

    def now_whole_up_to(self) -> int:
        """Up to which offset (exclusive) the log that counts has all that was ever written to it:
        nothing was removed or compacted away there."""
        end = 0
        for span in [] if self.present is None else self.present.spans:
            if span.first_offset > end:
                break
            end = span.end_offset
        return end

    def elsewhere(self) -> Iterator[Entry]:
        """The records of the other copies, displaced where the present log does not have them."""
        if self.present is None:
            return
        for copy in self.others:
            for entry in self._entries(copy):
                span = _span_at(copy.spans, entry.offset)
                gone = span is not None and self._is_gone(self.present, span, entry.offset)
                yield replace(entry, displaced=gone)

    def _is_gone(self, present: Copy, record: Span, offset: int) -> bool:
        """Whether the present log has lost the record of another copy at an offset."""
        spans = present.spans
        end = spans[-1].end_offset if spans else 0
        if offset < end or present.clean:
            return is_displaced(record, offset, spans, present.directory.log_start_offset or 0)
        if spans and (record.leader_epoch or 0) < (spans[-1].leader_epoch or 0):
            return True
        return any(
            first <= offset < last and leader_epoch in (None, record.leader_epoch)
            for first, last, leader_epoch in self.lost
        )

    def _entries(self, copy: Copy) -> Iterator[Entry]:
        """Records outside of transactions as they come; those of a transaction at its commit."""
        waiting: dict[int, list[Entry]] = {}
        for path, batch in copy.directory.iter_batches_with_path():
            records = read_record_identities(path, batch)
            if isinstance(records, Unreadable):
                self._note(f"{records.path} ({records.where}): {records.reason}")
                continue
            producer = batch.producer_id if batch.producer_id is not None else -1
            if batch.is_control:
                for record in records:
                    held = waiting.pop(producer, [])
                    if marker_kind(record.key_bytes) == COMMIT_MARKER:
                        yield from held
                continue
            for record in records:
                try:
                    decoded = decode_coordinator_record(
                        self.evidence.topic, record.key_bytes, record.value
                    )
                except MessageError as error:
                    self._note(f"{path} (byte {batch.position}): offset {record.offset}: {error}")
                    continue
                if decoded is None:
                    continue
                entry = Entry(decoded, record.offset, batch.leader_epoch, path, batch.position)
                if batch.is_transactional:
                    waiting.setdefault(producer, []).append(entry)
                else:
                    yield entry

    def _note(self, text: str) -> None:
        if len(self.notes) < MOST_NOTES:
            self.notes[self.evidence.shown(text)] = None


def coordinator_log(
    partition: PartitionEvidence, folded: FoldedPartition, losses: Iterable[dict[str, Any]] = ()
) -> CoordinatorLog:
    """The copies of a finished partition: the leader's, and the others. losses: the loss ledger."""
    lost = [
        (x["first_offset"], x["end_offset"], x["leader_epoch"])
        for x in losses
        if x["status"] in NOT_BACK and is_of(x, folded.identity)
    ]
    copies = [c for c in with_records(partition.copies) if not c.is_dump]
    replicas = latest(copies)
    leader = last_leader(folded)
    present = replicas.get(leader) if leader is not None else None
    is_leaders = present is not None
    if present is None:
        present = max(replicas.values(), key=_reached, default=None)
    others = [
        c for c in copies if c is not present and (present is None or c.spans != present.spans)
    ]
    return CoordinatorLog(partition, present, is_leaders, others, lost)


def is_of(loss: dict[str, Any], identity: Identity) -> bool:
    """Whether a row of the ledger is of a topic partition."""
    named = (loss["topic"], loss["topic_id"] or "", loss["partition"])
    return identity == (loss["cluster_id"] or "", *named)


def _reached(copy: Copy) -> tuple[int, int]:
    last = copy.spans[-1] if copy.spans else None
    return (-1, 0) if last is None else (last.leader_epoch or 0, last.end_offset)


def marker_kind(key: bytes | None) -> int | None:
    """What the marker with this key says of its transaction: 0 aborted, 1 committed."""
    return struct.unpack_from(">hh", key)[1] if key is not None and len(key) >= 4 else None


def _span_at(spans: list[Span], offset: int) -> Span | None:
    near = touching(spans, offset, offset + 1)
    return next((s for s in near if s.first_offset <= offset < s.end_offset), None)


def is_displaced(record: Span, offset: int, spans: list[Span], log_start_offset: int) -> bool:
    """Whether a log lacks the record of a copy otherwise than by compaction or retention.

    record: the span of the copy at the offset. spans: the log's own.
    """
    here = _span_at(spans, offset)
    if here is not None:
        return (here.leader_epoch, here.content) != (record.leader_epoch, record.content)
    if offset < log_start_offset:
        return False
    behind = bisect_right(spans, offset, key=lambda s: s.first_offset)
    if behind >= len(spans):
        return True
    before = spans[behind - 1].leader_epoch if behind else None
    after = spans[behind].leader_epoch
    known = record.leader_epoch
    if known is None or after is None:
        return False
    return not (before or 0) <= known <= after
