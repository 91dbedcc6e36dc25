"""Values the whole core speaks in: spans of a replica's log, epoch entries, identities.

A replica's log is run-length: spans of (leader epoch, first offset, end offset, content), so its
size follows the number of leader epochs, never the number of records. Offsets that end something
are exclusive. Absent is None: Kafka's -1 exists only in evidence/.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

# Fields that follow from others: no part of the state that is encoded or compared.
DERIVED = {"derived": True}
# So many spans are looked through sooner than searched.
FEW = 8
# Past every offset.
_NO_END = float("inf")
# The last millisecond of the year 9999, in Unix time: beyond it no calendar of ours has a date.
LAST_MOMENT = 253_402_300_799_999


class Span(NamedTuple):
    """A run of records of one leader epoch and one content, offsets [first_offset, end_offset).

    leader_epoch is None before message format v2 (Kafka 0.11), or where nobody saw it.
    content tells records at one offset apart: within one topic partition of one trace, two spans
    hold the same bytes at an offset exactly when their contents are equal. None: content unseen;
    then leader epoch and offset stand for the record (KIP-101 makes them unique but for a leader
    that loses its tail and writes on in the same epoch).
    """

    first_offset: int
    end_offset: int
    leader_epoch: int | None
    content: int | None


class EpochEntry(NamedTuple):
    """A leader epoch and the first offset of its own (LeaderEpochFileCache)."""

    leader_epoch: int
    start_offset: int


class EpochEndOffset(NamedTuple):
    """Answer to "where does this leader epoch end": both None when undefined (KIP-101, KIP-279)."""

    leader_epoch: int | None
    end_offset: int | None


@dataclass(frozen=True, slots=True, order=True)
class TopicPartition:
    """Identity of one incarnation of a partition: cluster id, topic, topic id, partition number.

    cluster_id and topic_id are "" where no evidence names them (ZooKeeper mode has no topic ids
    before 2.8), so that identities order and compare.
    """

    cluster_id: str
    topic: str
    topic_id: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def same_record(a: Span, b: Span) -> bool | None:
    """Whether two spans hold the same record at each offset they share; None when undecidable.

    Different contents or different leader epochs are different records. Equal contents under
    different epochs (a header mismatch: the epoch is outside the CRC) is undecidable.
    """
    epochs_known = a.leader_epoch is not None and b.leader_epoch is not None
    contents_known = a.content is not None and b.content is not None
    if contents_known and a.content != b.content:
        return False
    if epochs_known and a.leader_epoch != b.leader_epoch:
        return None if contents_known else False
    if contents_known or epochs_known:
        return True
    return None


def is_seen(span: Span) -> bool:
    """Whether anybody saw what is in the span: without epoch and content, nobody did."""
    return span.leader_epoch is not None or span.content is not None


def normalized(spans: Iterable[Span]) -> list[Span]:
    """Spans in offset order with empty ones dropped and equal neighbours joined."""
    result: list[Span] = []
    for span in sorted(spans, key=lambda s: s.first_offset):
        if span.end_offset <= span.first_offset:
            continue
        last = result[-1] if result else None
        if last and last.end_offset == span.first_offset and last[2:] == span[2:]:
            result[-1] = Span(last.first_offset, span.end_offset, span.leader_epoch, span.content)
        else:
            result.append(span)
    return result


def clipped(spans: Iterable[Span], first_offset: int, end_offset: int) -> list[Span]:
    """The parts of spans inside [first_offset, end_offset)."""
    result = []
    for span in spans:
        if first_offset <= span.first_offset < span.end_offset <= end_offset:
            result.append(span)
            continue
        first = max(span.first_offset, first_offset)
        end = min(span.end_offset, end_offset)
        if first < end:
            result.append(Span(first, end, span.leader_epoch, span.content))
    return result


def touching(spans: list[Span], first_offset: int, end_offset: int) -> list[Span]:
    """The spans that reach into [first_offset, end_offset), of a log: sorted, free of overlaps."""
    if len(spans) < FEW:
        return spans
    # Tuples are compared as they are: a key of our own would be most of the search.
    after = bisect_right(spans, (first_offset, _NO_END))
    return spans[max(0, after - 1) : bisect_left(spans, (end_offset,), after)]


def overlaps(a: Iterable[Span], b: list[Span]) -> Iterator[tuple[int, int, Span, Span]]:
    """(first_offset, end_offset, span of a, span of b) for each stretch that both cover.

    b must be sorted and free of overlaps; a may be any order.
    """
    for left in a:
        first, end = left[0], left[1]
        for right in touching(b, first, end):
            begins, ends = right[0], right[1]
            if begins >= end:
                break
            # Comparisons: min and max take most of a loop over logs of a few spans.
            begins, ends = begins if begins > first else first, ends if ends < end else end
            if begins < ends:
                yield begins, ends, left, right


def uncovered(first_offset: int, end_offset: int, spans: Iterable[Span]) -> list[tuple[int, int]]:
    """The offset ranges inside [first_offset, end_offset) that no span covers."""
    gaps = []
    position = first_offset
    for span in sorted(spans, key=lambda s: s.first_offset):
        if span.first_offset >= end_offset:
            break
        if span.first_offset > position:
            gaps.append((position, span.first_offset))
        position = max(position, span.end_offset)
    if position < end_offset:
        gaps.append((position, end_offset))
    return gaps


def joined_ranges(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ranges in offset order; those that meet are one."""
    result: list[tuple[int, int]] = []
    for first, end in sorted(ranges):
        if result and first <= result[-1][1]:
            result[-1] = (result[-1][0], max(end, result[-1][1]))
        else:
            result.append((first, end))
    return result


def ranges_without(ranges: list[tuple[int, int]], first: int, end: int) -> list[tuple[int, int]]:
    """What is left of ranges beside [first, end)."""
    left = []
    for a, b in ranges:
        if a < first:
            left.append((a, min(b, first)))
        if b > end:
            left.append((max(a, end), b))
    return left


def moment(at: int | None) -> str | None:
    """A millisecond of the observer's clock as ISO 8601 in UTC; None where it is no date."""
    if at is None or not 0 <= at <= LAST_MOMENT:
        return None
    when = datetime.fromtimestamp(at / 1000, UTC)
    return when.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at % 1000:03d}Z"


def is_within(at: int | None, told: tuple[str, str]) -> bool:
    """Whether a moment (ms since 1970) is within two that are told in words, both included, with
    their zone or without; also where it is no date, or not known."""
    words = moment(at)
    if words is None:
        return True
    first, last = (each.removesuffix("Z") for each in told)
    return first <= words.removesuffix("Z") <= last
