"""The only place where the state of a topic partition changes: one event in, one step of the state.

The handlers are in steps/, by who acts, each under the name of its kind of event. Each does three
things: it moves the replica's own state (log, high watermark, role) to what was observed, it notes
in the history what was promised or cut on the way, and it refutes an invariant where the step
itself contradicts one. What all of it means is decided later, by the invariants, from the state
alone: so verdicts follow from epochs and offsets, not from the order in which observers on
different brokers were read.

steady.py is the faster twin for uneventful steps; tests/protocol/test_steady.py keeps the two
equal.
"""

from collections.abc import Callable
from typing import Any

from replication.protocol.folding import conformance, story
from replication.protocol.folding.steps import (
    broker,
    client,
    controller,
    follower,
    leader,
    log_copies,
    replica,
)
from replication.protocol.ground import events as ev
from replication.protocol.ground.topic_partition import State


class Rejected(ValueError):
    """The event cannot belong to this partition; the caller quarantines it under its event_id."""


def new_state(cluster_id: str, topic: str, topic_id: str, partition: int) -> State:
    """The state of a partition of which nothing has been observed."""
    return State(cluster_id, topic, topic_id, partition)


def apply(state: State, event: ev.Event) -> None:
    """Folds one event into the state, in place.

    Raises Rejected, with the state unchanged, for a replica that was never assigned and for
    offsets that contradict themselves.
    """
    fact = event.fact
    _check(state, fact)
    state.calm = None
    if event.grade == "traced":
        state.grade = "traced"
    conformance.hold(state, event, fact)
    story.before(state, fact)
    HANDLERS[type(fact)](state, event, fact)
    story.after(state, event, fact)
    state.applied += 1


def _check(state: State, fact: ev.Fact) -> None:
    number = getattr(fact, "replica", None)
    if (
        number is not None
        and state.ever_assigned
        and number not in state.ever_assigned
        and not isinstance(fact, (ev.ReplicaLogObserved, ev.CoverageDeclared))
    ):
        assigned = ",".join(str(r) for r in sorted(state.ever_assigned))
        raise Rejected(
            f"replica {number} is not assigned to {state.topic}-{state.partition} "
            f"(assigned: {assigned})"
        )
    first = getattr(fact, "first_offset", None)
    end = getattr(fact, "end_offset", None)
    if first is not None and end is not None and not 0 <= first < end:
        raise Rejected(f"offsets [{first}, {end}) are no range")


def _coverage_declared(state: State, event: ev.Event, fact: ev.CoverageDeclared) -> None:
    state.coverage[(fact.subject, fact.replica)] = (fact.complete, fact.detail)


def _input_ended(state: State, event: ev.Event, fact: ev.InputEnded) -> None:
    state.ended = True


HANDLERS: dict[type[Any], Callable[[State, ev.Event, Any], None]] = {
    ev.PartitionDescribed: controller.partition_described,
    ev.LeadershipRecorded: controller.leadership_recorded,
    ev.ReplicaStarted: broker.replica_started,
    ev.ReplicaStopped: broker.replica_stopped,
    ev.BecameLeader: leader.became_leader,
    ev.BecameFollower: follower.became_follower,
    ev.Truncated: follower.truncated,
    ev.LeaderAppended: leader.leader_appended,
    ev.FollowerAppended: follower.follower_appended,
    ev.FetchRequested: leader.fetch_requested,
    ev.FetchAnswered: follower.fetch_answered,
    ev.HighWatermarkAdvanced: replica.high_watermark_advanced,
    ev.LogStartAdvanced: replica.log_start_advanced,
    ev.RecordsAcknowledged: client.records_acknowledged,
    ev.RecordsConsumed: client.records_consumed,
    ev.ReplicaLogObserved: log_copies.replica_log_observed,
    ev.CheckpointObserved: log_copies.checkpoint_observed,
    ev.CoverageDeclared: _coverage_declared,
    ev.InputEnded: _input_ended,
}
