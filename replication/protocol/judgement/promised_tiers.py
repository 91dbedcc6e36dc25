"""The strongest promise about each record of a log, by tiers as in the loss ledger."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

from replication.protocol.ground.model import Span, ranges_without, same_record, touching
from replication.protocol.ground.topic_partition import Replica, State

UNDETERMINED = "undetermined"
COMMITTED = ("acknowledged_by_isr", "committed", "consumed")
_CLIENTS = (("consumed", "consumed"), ("acks_all", "acknowledged_by_isr"))
Said = TypeVar("Said")


def by_tier(state: State, holder: Replica, first: int, end: int) -> list[tuple[int, int, str]]:
    """The range cut where the strongest promise about its records changes."""
    held = [s for s in touching(holder.log.spans, first, end) if s[0] < end and s[1] > first]
    found: list[tuple[int, int, str]] = []
    left = [(first, end)]
    for tier, span in _promised(state, holder, first, end) if held else ():
        for own in held:
            a, b = max(span[0], own[0]), min(span[1], own[1])
            if a < b and same_record(span, own) is not False:
                found += [(max(a, x), min(b, y), tier) for x, y in left if a < y and x < b]
                left = ranges_without(left, a, b)
        if not left:
            break
    if not found:
        return [(first, end, UNDETERMINED)]
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
    promised_in = state.history.promised_in
    told = promised_in("consumptions", first, end) + promised_in("acknowledgements", first, end)
    for how, tier in _CLIENTS:
        for promise in told:
            if promise.how == how:
                yield tier, promise.span
    for promise in promised_in("commitments", first, end):
        yield "committed", promise.span
    if holder.high_watermark:
        yield "committed", Span(0, holder.high_watermark, None, None)
    for promise in told:
        if promise.how == "acks_1":
            yield "acknowledged_by_leader", promise.span
