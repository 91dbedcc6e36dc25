"""What was committed, by which term at the latest: what every high watermark says of records."""

from replication.protocol.folding.steps.terms import is_deposed, is_succeeded, lived_since_it_led
from replication.protocol.ground import events as ev
from replication.protocol.ground.model import Span, clipped, is_seen, touching
from replication.protocol.ground.replica_log import ReplicaLog
from replication.protocol.ground.topic_partition import (
    ANY_OCCURRENCE,
    LENGTHENED,
    Promise,
    Replica,
    State,
)


def before_leading_again(replica: Replica, leader_epoch: int) -> tuple[int, int]:
    """The order of the term by whose end a replica had reached what its disk lost since."""
    led = replica.led_in_epoch and replica.leader_epoch == leader_epoch
    return leader_epoch, replica.term_occurrence if led else ANY_OCCURRENCE


def promise_committed(
    state: State,
    replica: Replica,
    high_watermark: int,
    event: ev.Event,
    how: str,
    latest_term: tuple[int, int] | None = None,
) -> None:
    """Notes that everything below high_watermark in this replica's log was committed.

    A follower's high watermark comes from a leader of the epoch it follows, or an earlier one:
    the epoch last known to the replica bounds from above when the promise was made. A zombie
    leader's high watermark (its epoch is superseded by then) promises nothing new.
    """
    offset_alone = how in ("load", "start_line")
    if event.grade == "traced" and _promises_nothing(state, replica, offset_alone):
        return
    if latest_term is None and replica.leader_epoch is not None:
        occurrence = replica.term_occurrence if replica.role == "leader" else ANY_OCCURRENCE
        latest_term = (replica.leader_epoch, occurrence)
    start = replica.log.log_start_offset
    if not offset_alone:
        start = max(start, _promised_before(replica, event, latest_term))
    if high_watermark <= start:
        return
    bounded = _is_bounded(state, replica, latest_term)
    if offset_alone:
        if bounded:
            # A line tells the offset alone: which records lay below it, the known log may have
            # missed.
            below = Span(start, high_watermark, None, None)
            if not _already_promised(state, below, latest_term):
                _commit(state, replica, event, how, below, latest_term)
        return
    replica.promised_below = (latest_term, high_watermark)
    log = replica.log
    known = log.committed
    if known is None or not _not_later(known[2], latest_term):
        known = (log.log_start_offset, log.log_start_offset, None)
    # Of a long log nearly all was committed by the end of an earlier term: that is passed over.
    first, end, _ = known
    held = _held(log, start, min(first, high_watermark))
    held += _held(log, max(start, end), high_watermark)
    for span in held:
        if latest_term is not None and (span.leader_epoch or 0) > latest_term[0]:
            latest_term = (span.leader_epoch or 0, ANY_OCCURRENCE)
        if not bounded and not is_seen(span):
            first = first if span is held[-1] else max(first, span.end_offset)
        elif not _already_promised(state, span, latest_term):
            _commit(state, replica, event, how, span, latest_term)
    if held and start <= end:
        # The last span may be appended to.
        log.committed = (first, max(end, held[-1].first_offset), latest_term)


def _held(log: ReplicaLog, first: int, end: int) -> list[Span]:
    return clipped(touching(log.spans, first, end), first, end)


def _promised_before(replica: Replica, event: ev.Event, latest_term: tuple[int, int] | None) -> int:
    """Up to where the replica's log was promised already, as far as that still counts."""
    if replica.promised_below is None:
        return 0
    before, below = replica.promised_below
    # What a complete trace promised by the end of an earlier term stays promised later.
    earlier = event.grade == "traced" and before is not None and _not_later(before, latest_term)
    return below if before == latest_term or earlier else 0


def _is_bounded(state: State, replica: Replica, latest_term: tuple[int, int] | None) -> bool:
    """Whether the epoch that a replica knows bounds when its high watermark was reached.

    Before KIP-320 a follower fetches on from a leader whose newer epoch it has not heard of: then
    for records that the evidence does not show, nothing bounds it. A broker that last led is
    bounded by the epoch it led in.
    """
    if latest_term is None:
        return False
    led = replica.role is None and replica.led_in_epoch and not lived_since_it_led(state, replica)
    led = led or replica.role == "leader"
    return led or latest_term[1] < ANY_OCCURRENCE or _fences(state, replica)


def _commit(
    state: State,
    replica: Replica,
    event: ev.Event,
    how: str,
    span: Span,
    latest_term: tuple[int, int] | None,
) -> None:
    promise = Promise(
        span, latest_term, how, event.event_id, replica.replica, event.observed_at, state.applied
    )
    if add_promise(state.history.commitments, promise):
        state.history.note_commitments()
        state.witness(event)


def promise_by_line(
    state: State, replica: Replica, event: ev.Event, fact: ev.BecameLeader | ev.BecameFollower
) -> None:
    """The high watermark that the line of a change of role names.

    It was reached under the epoch known before this line, or, where none was, possibly under this
    very epoch in an earlier life of the process.
    """
    if fact.high_watermark is None:
        return
    replica.high_watermark, replica.high_watermark_before_start = fact.high_watermark, None
    before = fact.leader_epoch if replica.leader_epoch is None else replica.leader_epoch
    latest_term = (before, ANY_OCCURRENCE)
    promise_committed(state, replica, fact.high_watermark, event, "start_line", latest_term)


def _promises_nothing(state: State, replica: Replica, offset_alone: bool) -> bool:
    """Whether a traced high watermark adds nothing to what was committed.

    A deposed leader commits nothing, and the line of its next term tells again what it had told.
    Where every leader's own steps are here, a follower's value adds nothing, and may lie over
    records that it is about to cut (KAFKA-14704).
    """
    if replica.role == "leader":
        again = offset_alone and is_succeeded(state, replica.leader_epoch or 0)
        return again or is_deposed(state, replica)
    return state.is_wholly_traced()


def _fences(state: State, replica: Replica) -> bool:
    """Whether its fetches carry the leader epoch, so that its epoch is its leader's."""
    flags = state.behaviour(replica.replica)
    return flags is not None and flags.has("fetch_carries_leader_epoch")


def _already_promised(state: State, span: Span, latest_term: tuple[int, int] | None) -> bool:
    return any(
        promise.span.first_offset <= span.first_offset
        and promise.span.end_offset >= span.end_offset
        and _not_later(promise.latest_term, latest_term)
        for promise in state.history.committed_up_to(span)
    )


def _not_later(a: tuple[int, int] | None, b: tuple[int, int] | None) -> bool:
    return b is None or (a is not None and a <= b)


def add_promise(promises: list[Promise], new: Promise) -> bool:
    """Lengthens a promise that the new one continues; True where it had to be added instead."""
    for old in reversed(promises[-LENGTHENED:]):
        if (
            old.latest_term == new.latest_term
            and old.how == new.how
            and old.replica == new.replica
            and old.span[2:] == new.span[2:]
            and old.span.first_offset <= new.span.first_offset <= old.span.end_offset
        ):
            end = max(old.span.end_offset, new.span.end_offset)
            old.span = Span(old.span.first_offset, end, *new.span[2:])
            known = old.until is not None and new.until is not None
            old.until = max(old.until or 0, new.until or 0) if known else None
            return False
    promises.append(new)
    return True
