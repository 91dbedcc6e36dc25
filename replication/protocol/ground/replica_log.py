"""The records one replica holds, run-length encoded: what append and truncation change."""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from itertools import islice

from replication.protocol.ground.model import (
    DERIVED,
    EpochEntry,
    Span,
    clipped,
    normalized,
    touching,
)

_NO_OFFSET = 1 << 63  # above every offset


@dataclass(slots=True)
class ReplicaLog:
    """A replica's log: spans from log_start_offset to log_end_offset (exclusive), in offset order.

    Offsets inside may be uncovered: compacted away, or held but never seen by any evidence
    (`log_end_offset` above the last span). Source: UnifiedLog; docs/protocol.md 2.
    """

    log_start_offset: int = 0
    log_end_offset: int = 0
    spans: list[Span] = field(default_factory=list)
    # How many spans is_seamless has found to be so: made again when needed, never written down.
    _seamless: int = field(default=0, compare=False, repr=False, metadata=DERIVED)
    # What the first of them imply of the epoch cache, and how many these are.
    _entries: list[EpochEntry] = field(
        default_factory=list, compare=False, repr=False, metadata=DERIVED
    )
    _entered: int = field(default=0, compare=False, repr=False, metadata=DERIVED)
    # How often anything but the last span has changed: who kept a note of the others looks again.
    cuts: int = field(default=0, compare=False, repr=False, metadata=DERIVED)
    # (first offset, end offset, latest term): of the spans between, each lies in a commitment that
    # was made by the end of that term. Both are where a span begins or ends.
    committed: tuple[int, int, tuple[int, int] | None] | None = field(
        default=None, compare=False, repr=False, metadata=DERIVED
    )

    def append(self, first: int, end: int, leader_epoch: int | None, content: int | None) -> None:
        """Records [first, end) of one epoch and content at the end of the log.

        A first offset beyond the log end leaves a hole (compaction at the source). Offsets below
        the log end are not cut here: the caller truncates first.
        """
        spans = self.spans
        if spans:
            last = spans[-1]
            if (
                last.end_offset == first
                and last.leader_epoch == leader_epoch
                and last.content == content
            ):
                spans[-1] = Span(last.first_offset, end, leader_epoch, content)
                self.log_end_offset = end
                return
        spans.append(Span(first, end, leader_epoch, content))
        if end > self.log_end_offset:
            self.log_end_offset = end

    def is_seamless(self) -> bool:
        """Whether a span of a known leader epoch covers every offset; looks at new spans only."""
        spans = self.spans
        seen = min(self._seamless, max(len(spans) - 1, 0))
        position = spans[seen - 1].end_offset if seen else self.log_start_offset
        for span in spans[seen:]:
            if span.leader_epoch is None or span.first_offset > position:
                self._seamless = seen
                return False
            position = span.end_offset
            seen += 1
        self._seamless = seen
        return position >= self.log_end_offset

    def truncate_to(self, offset: int) -> list[Span]:
        """Drops records at and above offset; the dropped spans are returned."""
        if offset >= self.log_end_offset:
            return []
        self.cuts += 1
        beyond = touching(self.spans, offset, self.log_end_offset)
        dropped = clipped(beyond, offset, self.log_end_offset)
        self._cut_spans(offset)
        self._seamless = min(self._seamless, max(len(self.spans) - 1, 0))
        if self.committed is not None:
            first, end, latest_term = self.committed
            # What is left of the last span may be appended to.
            end = min(end, self.spans[-1].first_offset if self.spans else offset)
            self.committed = (first, end, latest_term) if first < end else None
        self.log_end_offset = offset
        self.log_start_offset = min(self.log_start_offset, offset)
        return dropped

    def _cut_spans(self, offset: int) -> None:
        """Leaves of the spans what lies below offset; looks at those that go alone."""
        spans = self.spans
        del spans[bisect_left(spans, (offset,)) :]
        if spans and spans[-1].end_offset > offset:
            spans[-1] = spans[-1]._replace(end_offset=offset)
        self._entered = min(self._entered, len(spans))
        while self._entries and self._entries[-1].start_offset >= offset:
            self._entries.pop()

    def truncate_fully_and_start_at(self, offset: int) -> list[Span]:
        """Empties the log and restarts it at offset; the dropped spans are returned."""
        self.cuts += 1
        dropped = self.spans
        self.spans = []
        self._seamless = 0
        self._entered, self._entries = 0, []
        self.committed = None
        self.log_start_offset = self.log_end_offset = offset
        return dropped

    def advance_log_start(self, offset: int) -> None:
        """Records below offset are gone lawfully (retention, record deletion); never backwards."""
        if offset <= self.log_start_offset:
            return
        self.cuts += 1
        self.log_start_offset = offset
        self._seamless = 0
        self._entered, self._entries = 0, []
        if self.committed is not None and self.committed[1] < offset:
            self.committed = None
        self.spans = clipped(self.spans, offset, max(self.log_end_offset, offset))
        self.log_end_offset = max(self.log_end_offset, offset)

    def replace(self, spans: list[Span], log_start_offset: int, log_end_offset: int) -> None:
        """The whole log as a copy of the directory shows it."""
        self.cuts += 1
        self.spans = normalized(spans)
        self._seamless = 0
        self._entered, self._entries = 0, []
        self.committed = None
        self.log_start_offset = log_start_offset
        self.log_end_offset = log_end_offset

    def epoch_entries(self, above: int | None = None) -> tuple[EpochEntry, ...]:
        """The epoch cache that the records themselves imply (LogSegment.recover), or what it has
        above a leader epoch; looks at new spans only."""
        entries = self._entries
        for span in islice(self.spans, self._entered, None):
            if span.leader_epoch is None:
                continue
            if not entries or span.leader_epoch > entries[-1].leader_epoch:
                entries.append(EpochEntry(span.leader_epoch, span.first_offset))
        self._entered = len(self.spans)
        known = 0 if above is None else bisect_right(entries, (above, _NO_OFFSET))
        return tuple(islice(entries, known, None))
