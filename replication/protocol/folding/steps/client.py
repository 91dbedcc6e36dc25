"""What clients were promised: records acknowledged and records consumed."""

from replication.protocol.folding.steps.promises import add_promise
from replication.protocol.folding.steps.terms import is_succeeded
from replication.protocol.ground import events as ev
from replication.protocol.ground.model import Span, clipped, touching, uncovered
from replication.protocol.ground.topic_partition import ANY_OCCURRENCE, Promise, State


def records_acknowledged(state: State, event: ev.Event, fact: ev.RecordsAcknowledged) -> None:
    """Records that a producer was told were written."""
    latest_term = None if fact.leader_epoch is None else (fact.leader_epoch, ANY_OCCURRENCE)
    span = Span(fact.first_offset, fact.end_offset, fact.leader_epoch, fact.content)
    how = "acks_all" if fact.acks == "all" else "acks_1"
    if event.grade == "traced" and _is_a_zombies(state, span) and not _is_committed(state, span):
        how = "acks_1"  # A deposed leader promises no more than itself.
    promise = Promise(
        span, latest_term, how, event.event_id, fact.leader, event.observed_at,
        state.applied, fact.observed_until,
    )  # fmt: skip
    if add_promise(state.history.acknowledgements, promise):
        state.witness(event)


def _is_a_zombies(state: State, span: Span) -> bool:
    """Whether the leader that wrote the records is known to lead no more: all its steps are here,
    and none takes up the newest epoch, or the controller's, by which another leads."""
    made_in = span.leader_epoch
    if made_in is None or not is_succeeded(state, made_in):
        return False
    wrote = {t.leader for t in state.history.terms if t.leader_epoch == made_in}
    leading = [r for r in map(state.replicas.get, wrote) if r is not None and r.role == "leader"]
    by_another = state.covered("controller_history") and state.registration.leader not in wrote
    if not (by_another or all(map(state.is_traced, wrote))):
        return False
    return all(is_succeeded(state, r.leader_epoch or 0) for r in leading)


def _is_committed(state: State, span: Span) -> bool:
    """Whether the registered leader's high watermark has passed these very records."""
    leader = state.replicas.get(state.registration.leader or 0)
    if leader is None or (leader.high_watermark or 0) < span.end_offset:
        return False
    held = touching(leader.log.spans, span.first_offset, span.end_offset)
    held = clipped(held, span.first_offset, span.end_offset)
    same = [s for s in held if s.leader_epoch == span.leader_epoch]
    return not uncovered(span.first_offset, span.end_offset, same)


def records_consumed(state: State, event: ev.Event, fact: ev.RecordsConsumed) -> None:
    """Records that a consumer was given."""
    latest_term = None if fact.leader_epoch is None else (fact.leader_epoch, ANY_OCCURRENCE)
    span = Span(fact.first_offset, fact.end_offset, fact.leader_epoch, fact.content)
    at = event.observed_at
    promise = Promise(span, latest_term, "consumed", event.event_id, None, at, state.applied)
    if add_promise(state.history.consumptions, promise):
        state.witness(event)
