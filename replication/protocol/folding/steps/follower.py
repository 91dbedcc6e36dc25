"""A follower's steps: whom it follows, where it cuts its log, what it appends."""

from itertools import takewhile

from replication.protocol.folding.conformance.truncations import derived_cut
from replication.protocol.folding.steps.promises import promise_by_line, promise_committed
from replication.protocol.folding.steps.replica import (
    advance_log_start,
    append,
    lives_on,
    note_removal,
    replica_of,
    set_aside,
    take_log_end,
)
from replication.protocol.folding.steps.terms import end_term, term_of, unclean_starts_since
from replication.protocol.ground import events as ev
from replication.protocol.ground.leader_epoch_cache import truncate_from_end
from replication.protocol.ground.model import Span, clipped, normalized, touching, uncovered
from replication.protocol.ground.topic_partition import Replica, State, Truncation


def became_follower(state: State, event: ev.Event, fact: ev.BecameFollower) -> None:
    """A replica follows a leader, or goes on following it in a later epoch."""
    replica = replica_of(state, fact.replica)
    take_log_end(state, replica, event, fact.log_end_offset)
    promise_by_line(state, replica, event, fact)
    lives_on(state, replica)
    end_term(state, replica, "followed")
    replica.role = "follower"
    replica.just_started = False
    replica.leader = fact.leader
    if fact.leader is not None:
        # Its leader was elected, though no line of that leader or of the controller may say so.
        term = term_of(state, fact.leader_epoch, fact.leader)
        term.event_id = term.event_id or state.witness(event)
    if replica.leader_epoch != fact.leader_epoch:
        replica.led_in_epoch = False
    replica.leader_epoch = fact.leader_epoch


def truncated(state: State, event: ev.Event, fact: ev.Truncated) -> None:
    """A cut, to where the line says, or else to where the rule of the version cuts."""
    replica = replica_of(state, fact.replica)
    target = _target(state, event, fact, replica)
    end = fact.from_offset
    if end is None and (replica.tail_known or replica.log.log_end_offset > target):
        end = replica.log.log_end_offset
    if fact.reason == "full" and end is not None and target >= end:
        _restart_ahead(state, replica, target)
        return
    if end is not None and target >= end:
        if fact.reason == "high_watermark" or fact.from_offset is not None:
            # Such a line is printed without effect too (Kafka 0.10).
            return
        end = None
    dropped = _drop(replica, target, full=fact.reason == "full")
    replica.shown_end = None
    set_aside(state, replica, dropped)
    state.history.truncations.append(
        Truncation(
            fact.replica,
            end,
            target,
            fact.reason,
            state.witness(event),
            event.observed_at,
            dropped,
            replica.leader_epoch,
            state.applied,
        )
    )
    if replica.high_watermark is not None:
        is_bound = replica.known_high_watermark is None and fact.reason != "high_watermark"
        replica.high_watermark = min(replica.high_watermark, target)
        replica.high_watermark_before_start = replica.high_watermark if is_bound else None
    if replica.role == "leader" and event.grade == "traced":
        state.refute(
            "version_conformance",
            event,
            f"broker {fact.replica} truncated to {target} while it led; a leader never does",
        )


def _target(state: State, event: ev.Event, fact: ev.Truncated, replica: Replica) -> int:
    """Where the log is cut; of a line that does not say, by the rule, which is noted."""
    if fact.to_offset is not None:
        if fact.reason == "high_watermark":
            _note_last_high_watermark(state, replica, fact.to_offset, event)
        return fact.to_offset
    cut = derived_cut(state, replica)
    if cut is None:
        return replica.high_watermark or 0
    state.history.derived.append(cut)
    return cut.offset


def _restart_ahead(state: State, replica: Replica, target: int) -> None:
    """It restarts ahead of its end, where its leader's log begins: what is gone, retention took."""
    if replica.role == "follower":
        note_removal(state, replica, target)
    _drop(replica, target, full=True)


def _drop(replica: Replica, target: int, *, full: bool) -> list[Span]:
    """Cuts the log, all of it or from target on; the spans that are gone."""
    replica.promised_below = None
    if full:
        dropped = replica.log.truncate_fully_and_start_at(target)
        replica.epoch_entries = ()
    else:
        dropped = replica.log.truncate_to(target)
        replica.log.log_end_offset = target
        replica.epoch_entries = truncate_from_end(replica.epoch_entries, target)
    replica.known_log_end_offset = target
    return dropped


def _note_last_high_watermark(
    state: State, replica: Replica, high_watermark: int, event: ev.Event
) -> None:
    """A leader that follows cuts to its high watermark first (before KIP-101): so far it had
    committed. One that followed in an epoch in between has learned another since, and one that
    crashed before it cut has loaded an older one."""
    if replica.role != "follower" or not state.history.has_led(replica.replica):
        return
    newest = reversed(state.history.terms)
    led = next(t for t in newest if t.leader == replica.replica and t.start_event_id)
    if led.ended != "followed" or any(unclean_starts_since(state, replica, led.started_at)):
        return
    followed, own = replica.leader_epoch or 0, led.leader_epoch
    later = takewhile(lambda term: term.leader_epoch > own, reversed(state.history.terms))
    if any(term.leader_epoch < followed for term in later):
        return
    promise_committed(state, replica, high_watermark, event, "start_line", led.order)


def follower_appended(state: State, event: ev.Event, fact: ev.FollowerAppended) -> None:
    """Records as the line names them, or else its leader's at these offsets, as far as known."""
    replica = replica_of(state, fact.replica)
    if fact.leader_epoch is not None or fact.content is not None:
        append(state, replica, fact.first_offset, fact.end_offset, fact.leader_epoch, fact.content)
        return
    leader = state.replicas.get(replica.leader) if replica.leader is not None else None
    source = leader.log.spans if leader is not None else []
    source = touching(source, fact.first_offset, fact.end_offset)
    copied = clipped(source, fact.first_offset, fact.end_offset)
    holes = [
        Span(a, b, None, None) for a, b in uncovered(fact.first_offset, fact.end_offset, copied)
    ]
    for span in normalized(copied + holes):
        append(state, replica, span.first_offset, span.end_offset, span.leader_epoch, span.content)


def fetch_answered(state: State, event: ev.Event, fact: ev.FetchAnswered) -> None:
    """An answer's high watermark and log start, which the follower takes over."""
    replica = replica_of(state, fact.replica)
    if fact.error is not None or fact.diverging_epoch is not None:
        return
    if fact.high_watermark is not None:
        replica.high_watermark = min(fact.high_watermark, replica.log.log_end_offset)
    if fact.log_start_offset is not None:
        advance_log_start(replica, fact.log_start_offset)
