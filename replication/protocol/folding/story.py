"""Notes events into the story of a partition: each broker's own steps, the controller's records."""

from collections.abc import Callable, Iterator
from typing import Any

from replication.protocol.ground import events as ev
from replication.protocol.ground.model import EpochEntry, Span, clipped, touching
from replication.protocol.ground.story import WRITES, OwnStep, Recorded, Story
from replication.protocol.ground.topic_partition import State

# Steps that are told by what a replica comes to hold, not one by one: steady.py folds most of them.
_GROWTH = (
    ev.LeaderAppended, ev.FollowerAppended, ev.HighWatermarkAdvanced, ev.FetchRequested,
    ev.FetchAnswered, ev.RecordsAcknowledged,
)  # fmt: skip


def before(state: State, fact: ev.Fact) -> None:
    """Notes what replicas grew by, before a step of another kind; before records that do not
    continue the log they are written to; and before a high watermark that falls."""
    if not isinstance(fact, _GROWTH):
        catch_up(state)
    elif isinstance(fact, (ev.LeaderAppended, ev.FollowerAppended)):
        noted, replica = state.story.noted, state.replicas.get(fact.replica)
        end = None if replica is None else replica.log.log_end_offset
        if fact.replica not in noted or end != fact.first_offset:
            catch_up(state)
            high_watermark = None if replica is None else replica.high_watermark
            noted[fact.replica] = (fact.first_offset, high_watermark)
    elif isinstance(fact, ev.HighWatermarkAdvanced):
        replica = state.replicas.get(fact.replica)
        if replica is not None and fact.high_watermark < (replica.high_watermark or 0):
            catch_up(state)  # Else it is seen only where a micro-batch ends before it.


def after(state: State, event: ev.Event, fact: ev.Fact) -> None:
    """Adds what a step of any other kind tells."""
    writer = _WRITERS.get(type(fact))
    if writer is None:
        return
    writer(state, event, fact)
    number = getattr(fact, "replica", None)
    replica = None if number is None else state.replicas.get(number)
    if replica is not None:
        state.story.noted[replica.replica] = (replica.log.log_end_offset, replica.high_watermark)


def catch_up(state: State) -> None:
    """Notes what replicas grew by since their steps were last noted: records at the end of their
    logs, and other high watermarks."""
    for number, (end, high_watermark) in state.story.noted.items():
        replica = state.replicas[number]
        now = (replica.log.log_end_offset, replica.high_watermark)
        if now == (end, high_watermark):
            continue
        kind = "wrote" if replica.role == "leader" else "fetched"
        for first, last, leader_epoch, content in clipped(
            touching(replica.log.spans, end, now[0]), end, now[0]
        ):
            _write(state.story, number, OwnStep(
                kind, "", leader_epoch, last, first_offset=first, content=content
            ))  # fmt: skip
        if now[1] is not None and now[1] != high_watermark:
            _rise(state.story, number, OwnStep("high_watermark", "", high_watermark=now[1]))
        state.story.noted[number] = now


def _add(story: Story, number: int, step: OwnStep) -> None:
    story.own.setdefault(number, []).append(step)


def _write(story: Story, number: int, step: OwnStep) -> None:
    """Lengthens the records that the broker wrote last, where these continue them."""
    for last in reversed(story.own.get(number, ())[-2:]):
        same = (last.kind, last.leader_epoch, last.content) == (
            step.kind, step.leader_epoch, step.content,
        )  # fmt: skip
        if same and last.log_end_offset == step.first_offset:
            last.log_end_offset = step.log_end_offset
            return
        if last.kind not in (*WRITES, "high_watermark"):
            break
    _add(story, number, step)


def _rise(story: Story, number: int, step: OwnStep) -> None:
    """Raises the high watermark that the broker had last; one that falls is a step of its own."""
    steps = story.own.get(number, [])
    if steps and steps[-1].kind == "high_watermark":
        before, now = steps[-1].high_watermark, step.high_watermark
        if before is not None and now is not None and now >= before:
            steps[-1].high_watermark = now
            return
    _add(story, number, step)


def _described(state: State, event: ev.Event, fact: ev.PartitionDescribed) -> None:
    value = fact.min_insync_replicas
    if value is not None and value not in state.story.min_insync_replicas:
        state.story.min_insync_replicas.append(value)


def _recorded(state: State, event: ev.Event, fact: ev.LeadershipRecorded) -> None:
    if state.story.ordered and fact.leader is not None:
        for number, replica in state.replicas.items():
            leads = replica.role == "leader"
            if leads and (replica.leader_epoch or 0) < fact.leader_epoch:
                _add(state.story, number, OwnStep("replaced", event.event_id))
    state.story.recorded.append(Recorded(
        fact.leader_epoch, fact.partition_epoch, fact.leader, fact.isr, fact.election_kind,
        event.event_id, fact.assigned_replicas, event.observed_at,
    ))  # fmt: skip


def _started(state: State, event: ev.Event, fact: ev.ReplicaStarted) -> None:
    _add(state.story, fact.replica, OwnStep(
        "started", event.event_id if fact.clean else state.witness(event),
        log_end_offset=fact.log_end_offset,
        high_watermark=fact.high_watermark, log_start_offset=fact.log_start_offset,
        clean=fact.clean, observed_at=event.observed_at,
    ))  # fmt: skip


def _stopped(state: State, event: ev.Event, fact: ev.ReplicaStopped) -> None:
    _add(state.story, fact.replica, OwnStep(
        "stopped", event.event_id, log_end_offset=fact.log_end_offset,
        clean=fact.reason == "clean", reason=fact.reason, observed_at=event.observed_at,
    ))  # fmt: skip


def _led(state: State, event: ev.Event, fact: ev.BecameLeader) -> None:
    _add(state.story, fact.replica, OwnStep(
        "led", event.event_id, fact.leader_epoch, fact.log_end_offset, fact.high_watermark,
        observed_at=event.observed_at,
    ))  # fmt: skip


def _followed(state: State, event: ev.Event, fact: ev.BecameFollower) -> None:
    _add(state.story, fact.replica, OwnStep(
        "followed", event.event_id, fact.leader_epoch, fact.log_end_offset, fact.high_watermark,
        leader=fact.leader, observed_at=event.observed_at,
    ))  # fmt: skip


def _cut(state: State, event: ev.Event, fact: ev.Truncated) -> None:
    _add(state.story, fact.replica, OwnStep(
        "cut", event.event_id, log_end_offset=fact.to_offset, first_offset=fact.from_offset,
        reason=fact.reason, observed_at=event.observed_at,
    ))  # fmt: skip


def _log_start(state: State, event: ev.Event, fact: ev.LogStartAdvanced) -> None:
    steps = state.story.own.setdefault(fact.replica, [])
    if steps and steps[-1].kind == "log_start":
        steps[-1].log_start_offset = fact.log_start_offset
        return
    steps.append(OwnStep("log_start", event.event_id, log_start_offset=fact.log_start_offset))


def _copy(state: State, event: ev.Event, fact: ev.ReplicaLogObserved) -> None:
    if fact.copy not in ("current", "live", "part"):
        state.story.set_aside += [s for s in fact.spans if s not in state.story.set_aside]
        return
    # A look at a running broker's log reads no batch; in a copy each batch has its own epoch.
    spans = _by_epoch(fact.spans, fact.epoch_entries or ()) if fact.copy == "live" else fact.spans
    step = OwnStep(
        "copy", event.event_id, log_end_offset=fact.log_end_offset,
        high_watermark=fact.high_watermark, log_start_offset=fact.log_start_offset,
        clean=fact.stopped, spans=spans,
        epoch_entries=fact.epoch_entries or (), kind_of_copy=fact.copy,
        observed_at=event.observed_at,
    )  # fmt: skip
    steps = state.story.own.setdefault(fact.replica, [])
    if steps and steps[-1].kind == "copy" and _only_grew(steps[-1], step):
        steps[-1] = step
        return
    if _shows_nothing(fact) and any(s.log_end_offset for s in steps):
        # Only its disk takes all of a log: whatever it fetches later, it comes back with nothing.
        steps.append(OwnStep("started", event.event_id, log_end_offset=0))
    steps.append(step)


def _shows_nothing(fact: ev.ReplicaLogObserved) -> bool:
    """Whether it is of a directory in which nothing was left: no record, and no file beside the log
    that tells of one. A log that was cut as it was copied has such a file."""
    files = (fact.high_watermark, fact.recovery_point, fact.epoch_entries)
    return fact.copy == "current" and not fact.log_end_offset and files == (None, None, None)


def _by_epoch(spans: tuple[Span, ...], entries: tuple[EpochEntry, ...]) -> tuple[Span, ...]:
    """The spans; those of no known record with the leader epochs that the replica's epoch file has
    there."""
    found: list[Span] = []
    for span in spans:
        if entries and (span.leader_epoch, span.content) == (None, None):
            found += _split(span, entries)
        else:
            found.append(span)
    return tuple(found)


def _split(span: Span, entries: tuple[EpochEntry, ...]) -> Iterator[Span]:
    """One span, cut where the entries of an epoch file begin."""
    yield from clipped([span], span.first_offset, entries[0].start_offset)
    ends = [*(e.start_offset for e in entries[1:]), span.end_offset]
    for entry, end in zip(entries, ends, strict=True):
        for first, last, _, content in clipped([span], entry.start_offset, end):
            yield Span(first, last, entry.leader_epoch, content)


def _only_grew(before: OwnStep, now: OwnStep) -> bool:
    """Whether a look at a running broker's log shows all that the look before it showed."""
    if not before.kind_of_copy == now.kind_of_copy == "live":
        return False
    if (now.high_watermark or 0) < (before.high_watermark or 0):
        return False
    spans = before.spans
    if not spans:
        return True
    same = now.spans[: len(spans) - 1] == spans[:-1] and len(now.spans) >= len(spans)
    return same and now.spans[len(spans) - 1][2:] == spans[-1][2:] and (
        now.spans[len(spans) - 1].end_offset >= spans[-1].end_offset
    )  # fmt: skip


def _high_watermark_checkpoint(state: State, event: ev.Event, fact: ev.CheckpointObserved) -> None:
    steps = state.story.own.setdefault(fact.replica, [])
    if steps and steps[-1].kind == "checkpoint":
        steps[-1].high_watermark = max(steps[-1].high_watermark or 0, fact.high_watermark)
        return
    steps.append(OwnStep("checkpoint", event.event_id, high_watermark=fact.high_watermark))


_WRITERS: dict[type[Any], Callable[[State, ev.Event, Any], None]] = {
    ev.PartitionDescribed: _described,
    ev.LeadershipRecorded: _recorded,
    ev.ReplicaStarted: _started,
    ev.ReplicaStopped: _stopped,
    ev.BecameLeader: _led,
    ev.BecameFollower: _followed,
    ev.Truncated: _cut,
    ev.LogStartAdvanced: _log_start,
    ev.ReplicaLogObserved: _copy,
    ev.CheckpointObserved: _high_watermark_checkpoint,
}
