"""Which of several records that were acknowledged at one offset was written last there."""

from replication.protocol.ground.topic_partition import Promise, State
from replication.protocol.judgement.same_record import may_have_written
from replication.protocol.judgement.term_starts import TermStarts


def written_later(
    state: State, starts: TermStarts, promise: Promise, offset: int, writers: list[int]
) -> bool | None:
    """Whether another record was acknowledged at the offset and written after the promised one.

    writers: the leader epochs in which that one may have been written. None: nothing tells which
    was first.
    """
    if promise.span.content is None:
        return False
    others = others_there(state, promise, offset)
    found = [_is_later(state, starts, other, offset, writers) for other in others]
    if all(later is False for later in found):
        return False
    return True if any(found) else None


def one_of_two(state: State, promise: Promise, offset: int) -> bool:
    """Whether another record was surely acknowledged at the offset: one of them is gone."""
    seen = [p.span.content for p in others_there(state, promise, offset)]
    return promise.span.content is not None and any(content is not None for content in seen)


def counts_as_lost(state: State, starts: TermStarts, promise: Promise, offset: int) -> bool:
    """Whether another record was acknowledged at the offset, so that one of them is gone whichever
    was written first, and this is the one to name: what was promised least, then told first.

    Only where the evidence shows that clients were told the records' own offsets, and that leaders
    may have written there twice: else the topic may have been created anew, and nothing tells.
    """
    if not state.covered("acknowledged_offsets") or not one_of_two(state, promise, offset):
        return False
    if len(may_have_written(state, starts, offset)) < 2:
        return False
    told = [
        p
        for p in state.history.promised_in("acknowledgements", offset, offset + 1)
        if p.span.content is not None
    ]
    return min(told, key=_promised_least).event_id == promise.event_id


def _promised_least(promise: Promise) -> tuple[bool, bool, int, str]:
    known = promise.latest_term is not None
    return (promise.how == "acks_all", known, promise.observed_at or 0, promise.event_id)


def taken_by_others(state: State, starts: TermStarts, promise: Promise, offset: int) -> set[int]:
    """Leader epochs in the only term of which another acknowledged record can have been written at
    the offset: none led twice, so the promised record is not of these."""
    if promise.span.content is None:
        return set()
    found = [
        may_have_written(state, starts, offset, other)
        for other in others_there(state, promise, offset)
        if other.span.content is not None
    ]
    return {writers[0] for writers in found if len(writers) == 1}


def others_there(state: State, promise: Promise, offset: int) -> list[Promise]:
    """What else was acknowledged at the offset, perhaps of another record."""
    return [
        p
        for p in state.history.promised_in("acknowledgements", offset, offset + 1)
        if p.span.content != promise.span.content
    ]


def _is_later(
    state: State, starts: TermStarts, other: Promise, offset: int, writers: list[int]
) -> bool | None:
    """Whether the other record was written in a later epoch than any of these; False: earlier."""
    if other.span.content is None or not writers:
        return None
    of_other = may_have_written(state, starts, offset, other)
    if not of_other:
        return None
    if max(writers) < min(of_other):
        return True
    return False if max(of_other) < min(writers) else None
