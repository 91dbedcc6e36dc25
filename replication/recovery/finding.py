"""Finds the records of the loss ledger in the copies: which bytes are which lost record.

At the offset of a row several records may be found, in several copies. The row's leader epoch says
which of them is meant; what the leader's log has at present is not lost; and where clients' logs
name the record by its content, that one is meant. Where more than one is left, nobody says which
was lost: all are written, held back.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from replication.evidence.joining.copies import Copy, overlapping
from replication.evidence.log_directories.segments import RecordBatch
from replication.protocol.ground import events as ev
from replication.protocol.ground.model import Span, touching
from replication.recovery import transactions as tx
from replication.recovery.candidates import Candidate, Reader, add, alike
from replication.recovery.copies_at_hand import Held, batches_of, unread_places
from replication.recovery.ledger_rows import Ranges, Row, Rows

# What became of an offset of the ledger.
RECOVERED, HELD_BACK, NOT_HAD = "recovered", "held_back", "not_had"
CONTROL, ABORTED = "control_record", "aborted_transaction"
OUTCOMES = (RECOVERED, HELD_BACK, NOT_HAD, CONTROL, ABORTED)
# Why a record is written and not to be produced without being asked for.
WHY_HELD_BACK = {
    "open_transaction": "no copy shows whether its transaction was committed or aborted",
    "disputed_transaction": "copies differ in whether its transaction was committed",
    "one_of_several": "several records were at this offset, and nothing tells which was lost",
    "undetermined": "the ledger leaves open whether it is lost",
    "incomplete": "the dump does not show all of it, or not its very bytes",
    "newer_value": "its topic is compacted and the leader's log has a newer record of its key: "
    "produced again it would count as the newest, and compaction would take that one away",
}
NO_COPY = "no copy in the evidence holds it"
NOT_IN_BATCH = "the copies at hand have the batch around its offset without it"
COMPACTED = f"{NOT_IN_BATCH}: compaction of the topic may have taken it"
OTHERS = "no copy holds it, the copies have other records at its offset"
# Tiers that rest on what clients were told or given.
PROMISED = ("consumed", "acknowledged_by_isr", "acknowledged_by_leader")
Told = ev.RecordsAcknowledged | ev.RecordsConsumed
# Offsets [first, end) of which something could not be had, and why.
Gap = tuple[int, int, str]


@dataclass(slots=True)
class Found:
    """A record of a row. held_back: a word of WHY_HELD_BACK, None for what is surely it."""

    row: Row
    candidate: Candidate
    held_back: str | None = None


def _never(candidate: Candidate) -> bool:
    return False


@dataclass(slots=True)
class Search:
    """What is needed to find one topic partition's records.

    leader_spans: what the leader's log holds at the evidence's end. told: what clients were told
    and given. is_replaced: whether a compacted leader's log has a newer record of the same key.
    may_compact: whether the topic's cleanup.policy names compaction, or is not known.
    """

    reader: Reader
    rows: Rows
    leader_spans: list[Span]
    told: Ranges[Told]
    is_replaced: Callable[[Candidate], bool] = _never
    may_compact: bool = True
    _unread: list[Gap] = field(default_factory=list)

    @property
    def copies(self) -> list[Copy]:
        """Where the records are looked for."""
        return self.reader.copies

    def found(self) -> Iterator[Found]:
        """The rows' records in offset order; afterwards each row says what became of the rest."""
        self.reader.markers = tx.markers_behind(self.copies, self.rows)
        self._unread = unread_places(self.copies)
        streams = (batches_of(index, copy) for index, copy in enumerate(self.copies))
        for cell in overlapping(streams):
            first = min(held.batch.base_offset for held in cell)
            end = max(held.batch.end_offset for held in cell)
            rows = self.rows.touching(first, end)
            if rows:
                yield from self._of_cell(cell, rows, first, end)
        for row in self.rows.all:
            _fill(row, row.end, self._unread, NO_COPY)

    def _of_cell(
        self, cell: list[Held], rows: Sequence[Row], first: int, end: int
    ) -> Iterator[Found]:
        """The records of batches that overlap each other."""
        at: dict[int, list[Candidate]] = {}
        damaged: list[tuple[RecordBatch, str]] = []
        whole: list[RecordBatch] = []
        for equals in alike(cell):
            batch = equals[0].batch
            wanted = [row for row in rows if _may_hold(batch, row)]
            if not wanted:
                continue
            read = self.reader.read(equals)
            if isinstance(read, str):
                damaged.append((batch, read))
                continue
            whole.append(batch)
            for candidate in read:
                if any(row.first <= candidate.offset < row.end for row in wanted):
                    add(at.setdefault(candidate.offset, []), candidate)
        without = [(batch, COMPACTED if self.may_compact else NOT_IN_BATCH) for batch in whole]
        gaps = {id(row): _gaps(row, damaged, without) for row in rows}
        for row in rows:
            _fill(row, first, self._unread, NO_COPY)
        for offset in sorted(at):
            left = at[offset]
            here = [row for row in rows if row.first <= offset < row.end]
            for row in sorted(here, key=lambda r: r.leader_epoch is None):
                _fill(row, offset, gaps[id(row)], OTHERS)
                chosen, is_sure = self._chosen(row, offset, left)
                left = [c for c in left if c not in chosen]
                yield from _settled(row, offset, chosen, is_sure, self.is_replaced)
        for row in rows:
            _fill(row, min(end, row.end), gaps[id(row)], OTHERS)

    def _chosen(
        self, row: Row, offset: int, candidates: list[Candidate]
    ) -> tuple[list[Candidate], bool]:
        """Those of the records at an offset that may be the row's; whether one surely is."""
        left = [c for c in candidates if row.may_be_of(c.batch.leader_epoch)]
        left = [c for c in left if not self._is_present(c)]
        named = {
            t.content
            for t in self.told.touching(offset, offset + 1)
            if t.leader_epoch is None or row.may_be_of(t.leader_epoch)
        }
        by_name = [c for c in left if c.contents & named]
        if by_name:
            return by_name, True
        if named and None not in named and row.tier in PROMISED:
            return [c for c in left if not c.contents], False
        return left, True

    def _is_present(self, candidate: Candidate) -> bool:
        """Whether the leader's log holds this very record at its place."""
        offset, leader_epoch = candidate.offset, candidate.batch.leader_epoch
        return any(
            span.first_offset <= offset < span.end_offset
            and span.leader_epoch == leader_epoch
            and span.content in candidate.contents
            for span in touching(self.leader_spans, offset, offset + 1)
        )


def _may_hold(batch: RecordBatch, row: Row) -> bool:
    """Whether a record of the row may be in the batch, by its offsets and leader epoch."""
    if not (batch.base_offset < row.end and row.first < batch.end_offset):
        return False
    return row.may_be_of(batch.leader_epoch)


def _gaps(row: Row, *batches: list[tuple[RecordBatch, str]]) -> list[Gap]:
    """Where batches may hold the row's records, with what is said of such an offset without one:
    what is given first where several overlap. Behind and between these are others' records."""
    found: list[Gap] = []
    for several in batches:
        for batch, why in sorted(several, key=lambda told: told[0].base_offset):
            if not _may_hold(batch, row):
                continue
            if found and found[-1][2] == why and batch.base_offset <= found[-1][1]:
                found[-1] = (found[-1][0], max(found[-1][1], batch.end_offset), why)
            else:
                found.append((batch.base_offset, batch.end_offset, why))
    edges = sorted({edge for first, end, _ in found for edge in (first, end)})
    told = ((a, b, [w for f, e, w in found if f <= a and b <= e]) for a, b in pairwise(edges))
    return [(a, b, why[0]) for a, b, why in told if why]


def _fill(row: Row, until: int, gaps: Iterable[Gap], otherwise: str) -> None:
    """Notes why nothing was had of the row's offsets below until of which nothing was said yet.

    gaps: (first, end, why) in offset order.
    """
    for first, end, why in gaps:
        if first < until:
            row.settle_rest(first, NOT_HAD, otherwise)
            row.settle_rest(min(end, until), NOT_HAD, why)
    row.settle_rest(until, NOT_HAD, otherwise)


def _settled(
    row: Row,
    offset: int,
    chosen: list[Candidate],
    is_sure: bool,
    is_replaced: Callable[[Candidate], bool],
) -> Iterator[Found]:
    """What became of a row's offset, with the records to write."""
    of_clients = [c for c in chosen if not c.batch.is_control]
    if not of_clients:
        outcome, why = (CONTROL, "") if chosen else (NOT_HAD, OTHERS)
        row.settle(offset, offset + 1, outcome, why)
        return
    living = [c for c in of_clients if c.transaction != tx.ABORTED]
    if not living:
        row.settle(offset, offset + 1, ABORTED)
        return
    is_sure = is_sure and len(of_clients) == 1
    held_back = [_why_held_back(row, c, is_sure) for c in living]
    if held_back == [None] and is_replaced(living[0]):
        held_back = ["newer_value"]
    outcome = RECOVERED if held_back == [None] else HELD_BACK
    row.settle(offset, offset + 1, outcome, next(iter(held_back), None) or "")
    for candidate, reason in zip(living, held_back, strict=True):
        yield Found(row, candidate, reason)


def _why_held_back(row: Row, candidate: Candidate, is_sure: bool) -> str | None:
    if not is_sure:
        return "one_of_several"
    if candidate.lacks is not None:
        return "incomplete"
    if candidate.transaction == tx.OPEN:
        return "open_transaction"
    if candidate.transaction == tx.DISPUTED:
        return "disputed_transaction"
    return "undetermined" if row.status == "undetermined" else None
