"""Records that Kafka removed by its rules: with their topic, below where the log begins, by
compaction. They are no losses, and whoever misses them asks where they went."""

from collections.abc import Iterable
from dataclasses import dataclass

from replication.protocol.ground.model import Span, joined_ranges, ranges_without
from replication.protocol.ground.topic_partition import Promise, State
from replication.protocol.judgement.view import View

TOPIC_DELETED, LOG_START, COMPACTION = "topic_deleted", "log_start", "compaction"
Ranges = list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class LawfulRemoval:
    """Records at offsets [first, end) that are gone lawfully. why: TOPIC_DELETED, LOG_START (the
    log begins at end) or COMPACTION. acknowledged: how many of them were acknowledged to a
    producer, None where no acknowledgement log is here; seen: how many anything shows, these among
    them."""

    why: str
    first_offset: int
    end_offset: int
    acknowledged: int | None
    seen: int


def lawful_removals(view: View) -> list[LawfulRemoval]:
    """What was removed of one topic partition."""
    state = view.state
    if state.settings.deleted:
        seen = ranges_seen(state)
        # A topic of which nothing was ever written took nothing with it.
        return [_removal(state, TOPIC_DELETED, seen, seen[0][0], seen[-1][1])] if seen else []
    start = view.fates.line.log_start
    found = []
    if start:
        found.append(_removal(state, LOG_START, [(0, start)], 0, start))
    compacted = _compacted(view, start)
    if compacted:
        found.append(_removal(state, COMPACTION, compacted, compacted[0][0], compacted[-1][1]))
    return found


def acknowledged_ranges(state: State, how: str | None = None) -> Ranges:
    """The offsets that were acknowledged to producers. how: acks_all or acks_1; None: either."""
    return _ranges(p for p in state.history.acknowledgements if how in (None, p.how))


def ranges_seen(state: State) -> Ranges:
    """The offsets at which anything shows a record: a client's log, a replica's, an older copy."""
    spans = [s for r in state.replicas.values() for s in r.log.spans]
    spans += _copied(state)
    held = [(s.first_offset, s.end_offset) for s in spans if s.end_offset > s.first_offset]
    return joined_ranges([*held, *_promised(state)])


def _copied(state: State) -> list[Span]:
    """What copies show, the older ones and directories set aside too."""
    steps = (step for own in state.story.own.values() for step in own if step.kind == "copy")
    return [*(s for step in steps for s in step.spans), *state.story.set_aside]


def committed_ranges(state: State) -> Ranges:
    """The offsets that are known to have been committed."""
    return _ranges(state.history.commitments)


def _promised(state: State) -> Ranges:
    return [*acknowledged_ranges(state), *_ranges(state.history.consumptions)]


def _ranges(promises: Iterable[Promise]) -> Ranges:
    return joined_ranges([(p.span[0], p.span[1]) for p in promises if p.span[1] > p.span[0]])


def _removal(state: State, why: str, gone: Ranges, first: int, end: int) -> LawfulRemoval:
    told = any(subject == "acknowledgements" for subject, _ in state.coverage)
    return LawfulRemoval(
        why,
        first,
        end,
        _size(_within(acknowledged_ranges(state), gone)) if told else None,
        _size(_within(ranges_seen(state), gone)),
    )


def _compacted(view: View, start: int) -> Ranges:
    """Where records were that are promised or that a copy has, and that the leader's log, which may
    be compacted, once had and has no more; what the ledger names is lost."""
    state, led = view.state, view.ref.replica
    if "compact" not in (state.settings.cleanup_policy or "") or led is None:
        return []
    if led.stale or led.partial or not state.still_has_records(led):
        return []
    copied = [(s.first_offset, s.end_offset) for s in _copied(state)]
    gone = _within(joined_ranges([*_promised(state), *copied]), [(start, led.log.log_end_offset)])
    for span in led.log.spans:
        gone = ranges_without(gone, span.first_offset, span.end_offset)
    for loss in view.losses:
        gone = ranges_without(gone, loss.first_offset, loss.end_offset)
    return gone


def _within(ranges: Ranges, bounds: Ranges) -> Ranges:
    """What of ranges is within any of the bounds; both in offset order, without overlaps."""
    clipped = [(max(a, first), min(b, end)) for first, end in bounds for a, b in ranges]
    return [(a, b) for a, b in clipped if a < b]


def _size(ranges: Ranges) -> int:
    return sum(end - first for first, end in ranges)
