"""The strongest promise about each record of a log, by tiers as in the loss ledger."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

from replication.protocol.ground.model import Span, overlaps, ranges_without, same_record, touching
from replication.protocol.ground.topic_partition import Replica, State

UNDETERMINED = "undetermined"
COMMITTED = ("acknowledged_by_isr", "committed", "consumed")
Said = TypeVar("Said")


def by_tier(state: State, holder: Replica, first: int, end: int) -> list[tuple[int, int, str]]:
    """The range cut where the strongest promise about its records changes."""
    held, left = touching(holder.log.spans, first, end), [(first, end)]
    found: list[tuple[int, int, str]] = []
    for tier, span in _promised(state, holder, first, end):
        for a, b, _, own in overlaps([span], held):
            if left and same_record(span, own) is not False:
                found += [(max(a, x), min(b, y), tier) for x, y in left if a < y and x < b]
                left = ranges_without(left, a, b)
        if not left:
            break
    return joined_alike([*found, *((x, y, UNDETERMINED) for x, y in left)])


def joined_alike(ranges: Iterable[tuple[int, int, Said]]) -> list[tuple[int, int, Said]]:
    """Ranges in offset order; those that meet and of which the same is said are one."""
    result: list[tuple[int, int, Said]] = []
    for first, end, said in sorted(ranges, key=lambda r: r[:2]):
        if result and result[-1][1:] == (first, said):
            first = result.pop()[0]
        result.append((first, end, said))
    return result


def _promised(state: State, holder: Replica, first: int, end: int) -> Iterator[tuple[str, Span]]:
    """(tier, span) of every promise about offsets in [first, end), the strongest first."""
    told = [
        (p.how, p.span)
        for kind in ("consumptions", "acknowledgements")
        for p in state.history.promised_in(kind, first, end)
    ]
    yield from (("consumed", span) for how, span in told if how == "consumed")
    yield from (("acknowledged_by_isr", span) for how, span in told if how == "acks_all")
    for promise in state.history.promised_in("commitments", first, end):
        yield "committed", promise.span
    if holder.high_watermark:
        yield "committed", Span(0, holder.high_watermark, None, None)
    yield from (("acknowledged_by_leader", span) for how, span in told if how == "acks_1")
