"""A broker's starts and stops: what a replica comes back with, and what its disk lost."""

from replication.protocol.folding.steps.promises import (
    add_promise,
    before_leading_again,
    promise_committed,
)
from replication.protocol.folding.steps.replica import (
    cut_epochs,
    lives_on,
    observe_log_end,
    replica_of,
)
from replication.protocol.folding.steps.terms import end_term
from replication.protocol.ground import events as ev
from replication.protocol.ground.model import Span
from replication.protocol.ground.topic_partition import (
    Promise,
    Replica,
    State,
    StorageLoss,
    UncleanStart,
)


def replica_started(state: State, event: ev.Event, fact: ev.ReplicaStarted) -> None:
    """A broker loaded the log: a new process, or a line of one that runs already."""
    replica = replica_of(state, fact.replica)
    replica.stopped = False
    if not fact.clean and not _is_told_again(replica, fact.log_end_offset):
        _note_unclean_start(state, replica, fact.log_end_offset)
    if replica.known_log_end_offset is not None and not replica.just_started:
        # The log was loaded before and something happened since: this is another process.
        end_term(state, replica, "stopped")
        replica.role = None
        replica.high_watermark_before_start = None if fact.clean else replica.high_watermark
    replica.just_started = True
    replica.kafka_version = fact.kafka_version or replica.kafka_version
    lives_on(state, replica)
    replica.clean_start = fact.clean
    if fact.log_end_offset is not None:
        observe_log_end(state, replica, fact.log_end_offset, event)
        replica.tail_known = True
        if replica.seen_at is not None:
            # Its digests go on: until the next one comes, this line says where the log ends.
            replica.seen_at = event.observed_at
        _promise_lost_suffix(state, replica, fact.log_end_offset, event)
    if fact.high_watermark is not None:
        replica.high_watermark = fact.high_watermark
        replica.high_watermark_before_start = None
        promise_committed(state, replica, fact.high_watermark, event, "load")
    if fact.log_start_offset is not None:
        replica.log.advance_log_start(fact.log_start_offset)
    if replica.tail_known:
        cut_epochs(state, replica, unclean=fact.clean is False)


def _is_told_again(replica: Replica, end: int | None) -> bool:
    """Whether this is another line of the start that was told last."""
    return replica.just_started and end is not None and end == replica.known_log_end_offset


def _note_unclean_start(state: State, replica: Replica, log_end_offset: int | None) -> None:
    """What a replica came back with from a stop that was not seen to be clean."""
    end = log_end_offset or 0
    if log_end_offset is not None and replica.known_log_end_offset is not None:
        before = replica.came_back_with
        replica.came_back_with = end if before is None else min(before, end)
    first = replica.known_log_end_offset is None and replica.leader_epoch is None and not end
    if not first or state.registration.leader_epoch > 0:
        told = log_end_offset is not None
        start = UncleanStart(replica.replica, end, replica.leader_epoch, state.applied, told)
        state.history.unclean_starts.append(start)


def _promise_lost_suffix(state: State, replica: Replica, end: int, event: ev.Event) -> None:
    """A start found less in the log than the checkpointed high watermark had reached: what lay
    between was committed, under an epoch that the replica's own cache still names."""
    known = replica.checkpointed
    replica.checkpointed = None
    if known is None or known[1] <= end:
        return
    if not any(s.event_id == event.event_id for s in state.history.storage_losses[-1:]):
        # A copy alone that ends below its checkpoint may be torn, or of a running broker.
        members = state.registration.last_members
        loss = StorageLoss(
            replica.replica, known[1], end, state.witness(event), members, known[0],
            at=state.applied,
        )  # fmt: skip
        state.history.storage_losses.append(loss)
    if known[0] is None:
        return
    add_promise(
        state.history.commitments,
        Promise(
            Span(end, known[1], None, None),
            before_leading_again(replica, known[0]),
            "checkpoint",
            state.witness(event),
            replica.replica,
            event.observed_at,
        ),
    )


def replica_stopped(state: State, event: ev.Event, fact: ev.ReplicaStopped) -> None:
    """A broker stopped; what a power failure or a lost disk left, where the event says so."""
    replica = replica_of(state, fact.replica)
    replica.stopped = fact.reason == "clean"
    replica.crashed = fact.reason not in ("clean", "unknown")
    end_term(state, replica, "stopped")
    replica.role = None
    replica.just_started = False
    if fact.log_end_offset is not None:
        if fact.reason in ("power_loss", "disk_loss"):
            observe_log_end(state, replica, fact.log_end_offset, event)
        else:
            replica.promised_below = None
            replica.log.truncate_to(fact.log_end_offset)
    if fact.reason == "disk_loss":
        replica.epoch_entries = ()
