"""Copies of log directories and their checkpoints: what a replica was seen to hold."""

from replication.protocol.folding.steps.promises import (
    add_promise,
    before_leading_again,
    promise_committed,
)
from replication.protocol.folding.steps.replica import replica_of, set_aside
from replication.protocol.folding.steps.terms import lived_since_it_led
from replication.protocol.ground import events as ev
from replication.protocol.ground.leader_epoch_cache import latest_epoch
from replication.protocol.ground.model import (
    Span,
    clipped,
    is_seen,
    normalized,
    overlaps,
    uncovered,
)
from replication.protocol.ground.replica_log import ReplicaLog
from replication.protocol.ground.topic_partition import (
    ANY_OCCURRENCE,
    Copy,
    Promise,
    Replica,
    State,
)

# Of a growing log so many of its ends are kept.
SIGHTINGS = 8


def replica_log_observed(state: State, event: ev.Event, fact: ev.ReplicaLogObserved) -> None:
    """A copy of a log: of the present one it is what the replica holds, else one of the copies."""
    event_id = state.witness(event)
    if fact.copy not in ("current", "live", "part"):
        state.history.copies.append(
            Copy(fact.replica, list(fact.spans), event_id, fact.copy, event.observed_at)
        )
        return
    replica = replica_of(state, fact.replica)
    _take_log(state, event, fact, replica)
    if fact.copy != "part":
        # Whether less than before is a loss of storage, the next start will tell. A part may be
        # of any later moment.
        replica.known_log_end_offset = max(replica.known_log_end_offset or 0, fact.log_end_offset)
    if fact.epoch_entries is not None:
        replica.epoch_entries = fact.epoch_entries
        replica.filed_epoch = latest_epoch(fact.epoch_entries)
    else:
        replica.epoch_entries, replica.filed_epoch = replica.log.epoch_entries(), None
    if fact.high_watermark is not None:
        _take_high_watermark(state, event, fact, replica, fact.high_watermark)


def _take_log(state: State, event: ev.Event, fact: ev.ReplicaLogObserved, replica: Replica) -> None:
    """The log as the copy shows it, in place of what was known of it."""
    is_open = fact.copy == "part" and fact.stopped is None
    start, spans = fact.log_start_offset, list(fact.spans)
    if is_open and replica.log.log_start_offset < start:
        # What lies before the first offset that was seen may have been removed, or not.
        spans.append(Span(replica.log.log_start_offset, start, None, None))
        start = replica.log.log_start_offset
    # A digest of a release without leader epochs names no record. A directory that names some, and
    # others not, is damaged there: the trace is no word for what that file holds.
    digest = fact.copy == "live" and not any(is_seen(span) for span in spans)
    traced = digest and state.is_traced(replica.replica)
    if traced:
        spans = _as_known(spans, replica.log.spans)
    lost = clipped(_not_held(replica.log.spans, spans), start, ANY_OCCURRENCE << 32)
    set_aside(state, replica, lost)
    replica.promised_below = None
    had = replica.log.log_end_offset
    replica.log = ReplicaLog()
    replica.log.replace(spans, start, fact.log_end_offset)
    replica.captured = True
    replica.shown_end = None if traced else fact.log_end_offset
    replica.stale = False
    replica.partial = is_open
    told = traced and had == fact.log_end_offset
    replica.tail_known = bool(fact.stopped) or (told and replica.tail_known)
    replica.stopped = fact.stopped
    replica.crashed = False
    replica.as_of = event.event_id
    replica.observed_at = event.observed_at
    _note_sighting(replica, event, fact.log_end_offset, cut=bool(lost) or fact.log_end_offset < had)


def _take_high_watermark(
    state: State,
    event: ev.Event,
    fact: ev.ReplicaLogObserved,
    replica: Replica,
    high_watermark: int,
) -> None:
    """The checkpointed high watermark: what lies below it was committed, seen or not."""
    led_until_then = fact.stopped and replica.led_in_epoch and not replica.just_started
    led_until_then = led_until_then and not lived_since_it_led(state, replica)
    latest = max(_epochs_of(replica, fact.spans), default=None)
    replica.checkpointed = (latest, high_watermark)
    replica.high_watermark = min(high_watermark, fact.log_end_offset)
    latest_term = None if latest is None else (latest, ANY_OCCURRENCE)
    if latest is not None and led_until_then:
        latest_term = before_leading_again(replica, latest)
    promise_committed(state, replica, replica.high_watermark, event, "checkpoint", latest_term)
    if latest is not None and high_watermark > fact.log_end_offset:
        # Of what lay between, the log at hand shows nothing.
        missing = Span(fact.log_end_offset, high_watermark, None, None)
        order = before_leading_again(replica, latest)
        promise = Promise(
            missing, order, "checkpoint", event.event_id, fact.replica, event.observed_at
        )
        add_promise(state.history.commitments, promise)


def _note_sighting(replica: Replica, event: ev.Event, end: int, *, cut: bool) -> None:
    """When a running broker's log was read, and how it grew until then; once it was stopped, too:
    how far it had come by then is no less so."""
    live = getattr(event.fact, "copy", "") == "live"
    replica.seen_at = event.observed_at if live else None
    if cut or event.observed_at is None:
        replica.sightings = []
    known = replica.sightings
    if event.observed_at is not None and (known[-1][1] < end if known else live):
        replica.sightings = [*known, (event.observed_at, end)][-SIGHTINGS:]


def _epochs_of(replica: Replica, spans: tuple[Span, ...]) -> list[int]:
    """Every leader epoch that the replica and its log name."""
    epochs = [e.leader_epoch for e in replica.epoch_entries]
    epochs += [s.leader_epoch for s in spans if s.leader_epoch is not None]
    return epochs if replica.leader_epoch is None else [*epochs, replica.leader_epoch]


def _as_known(spans: list[Span], known: list[Span]) -> list[Span]:
    """Where a copy shows that there is something, and not what: what the replica's trace has
    told."""
    result = []
    for span in spans:
        told = [] if is_seen(span) else clipped(known, span.first_offset, span.end_offset)
        left = uncovered(span.first_offset, span.end_offset, told)
        result += [*told, *[Span(a, b, span.leader_epoch, span.content) for a, b in left]]
    return normalized(result)


def _not_held(spans: list[Span], now: list[Span]) -> list[Span]:
    """The parts of spans whose record is not at its offset in now."""
    now = normalized(now)
    kept = [Span(first, end, 0, 0) for first, end, a, b in overlaps(spans, now) if a[2:] == b[2:]]
    kept = normalized(kept)
    result = []
    for span in spans:
        for first, end in uncovered(span.first_offset, span.end_offset, kept):
            result.append(Span(first, end, span.leader_epoch, span.content))
    return result


def checkpoint_observed(state: State, event: ev.Event, fact: ev.CheckpointObserved) -> None:
    """A checkpoint file alone, without the log that it speaks of."""
    replica = replica_of(state, fact.replica)
    promise_committed(state, replica, fact.high_watermark, event, "load")
