"""The strongest promise about each record of a log, by tiers as in the loss ledger."""

from collections.abc import Iterator

from replication.protocol.ground.model import Span, ranges_without, same_record, touching
from replication.protocol.ground.topic_partition import Replica, State

# The strongest promise first.
_TIERS = (
    ("consumed", "consumed"),
    ("acks_all", "acknowledged_by_isr"),
    ("acks_1", "acknowledged_by_leader"),
)
COMMITTED = ("acknowledged_by_isr", "committed", "consumed")


def by_tier(state: State, holder: Replica, first: int, end: int) -> list[tuple[int, int, str]]:
    """The range cut where the strongest promise about its records changes."""
    held, left = touching(holder.log.spans, first, end), [(first, end)]
    found: list[tuple[int, int, str]] = []
    for tier, span in _promised(state, holder, first, end):
        if span.end_offset <= left[0][0] or span.first_offset >= left[-1][1]:
            continue
        for own in held:
            a = own.first_offset if own.first_offset > span.first_offset else span.first_offset
            b = own.end_offset if own.end_offset < span.end_offset else span.end_offset
            if a < b and same_record(span, own) is not False:
                newly = [(max(a, x), min(b, y), tier) for x, y in left if a < y and x < b]
                if newly:
                    found += newly
                    left = ranges_without(left, a, b)
        if not left:
            break
    found += [(x, y, "undetermined") for x, y in left]
    found.sort()
    result: list[tuple[int, int, str]] = []
    for a, b, tier in found:
        if result and result[-1][2] == tier:
            result[-1] = (result[-1][0], b, tier)
        else:
            result.append((a, b, tier))
    return result


def is_promised_from(state: State, holder: Replica, first: int) -> bool:
    """Whether anything at or past an offset may have been promised to anybody."""
    return (holder.high_watermark or 0) > first or state.history.promised_up_to() > first


def _promised(state: State, holder: Replica, first: int, end: int) -> Iterator[tuple[str, Span]]:
    """(tier, span) of every promise about offsets in [first, end), the strongest first."""
    history = state.history
    every = history.promised_in("consumptions", first, end)
    every += history.promised_in("acknowledgements", first, end)
    for how, tier in _TIERS[:2]:
        for promise in every:
            if promise.how == how:
                yield tier, promise.span
    for promise in history.promised_in("commitments", first, end):
        yield "committed", promise.span
    if holder.high_watermark:
        yield "committed", Span(0, holder.high_watermark, None, None)
    for promise in every:
        if promise.how == "acks_1":
            yield _TIERS[2][1], promise.span
