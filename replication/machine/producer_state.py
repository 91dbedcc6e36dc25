"""What idempotent and transactional producers left in a log, read from the log itself.

Record batches carry it, so it goes where the log goes: to followers, to the next leader, and away
with a truncation. ProducerStateManager.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from replication.protocol.ground.model import Span
from replication.protocol.rules.last_stable_offset import Transaction

REMEMBERED_BATCHES = 5


@dataclass(frozen=True, slots=True)
class Batch:
    """What one content is besides its records. marker: commit or abort, else None."""

    producer: str
    producer_epoch: int = 0
    first_sequence: int = 0
    last_sequence: int = 0
    transaction: str | None = None
    marker: str | None = None


def batch_of(span: Span, batches: Mapping[int, Batch]) -> Batch | None:
    """What a producer wrote there, None where no idempotent producer did."""
    return None if span.content is None else batches.get(span.content)


def known_of_producer(
    spans: Iterable[Span], batches: Mapping[int, Batch], producer: str
) -> tuple[int, int, frozenset[tuple[int, int]]] | None:
    """(producer epoch, last sequence, its last five batches) as a log of these spans tells.

    None where it holds nothing of that producer.
    """
    own = [
        batch
        for span in spans
        if (batch := batch_of(span, batches)) is not None
        and batch.producer == producer
        and batch.marker is None
    ]
    if not own:
        return None
    newest = own[-1]
    same = [b for b in own if b.producer_epoch == newest.producer_epoch][-REMEMBERED_BATCHES:]
    recent = frozenset((b.first_sequence, b.last_sequence) for b in same)
    return newest.producer_epoch, newest.last_sequence, recent


def transactions_of(spans: Iterable[Span], batches: Mapping[int, Batch]) -> tuple[Transaction, ...]:
    """The transactions that a log of these spans tells, by the order of their first offsets."""
    begun: dict[str, int] = {}
    result: list[Transaction] = []
    for span in spans:
        batch = batch_of(span, batches)
        if batch is None or batch.transaction is None:
            continue
        if batch.marker is None:
            begun.setdefault(batch.transaction, span.first_offset)
        elif batch.transaction in begun:
            first = begun.pop(batch.transaction)
            result.append(Transaction(first, span.first_offset))
    result += [Transaction(first, None) for first in begun.values()]
    return tuple(sorted(result, key=lambda t: t.first_offset))


def aborted_contents(spans: Iterable[Span], batches: Mapping[int, Batch]) -> frozenset[int]:
    """The contents that aborted transactions wrote."""
    waiting: dict[str, list[int]] = {}
    aborted: list[int] = []
    for span in spans:
        batch = batch_of(span, batches)
        if batch is None or batch.transaction is None or span.content is None:
            continue
        if batch.marker is None:
            waiting.setdefault(batch.transaction, []).append(span.content)
            continue
        ended = waiting.pop(batch.transaction, [])
        aborted += ended if batch.marker == "abort" else []
    return frozenset(aborted)
