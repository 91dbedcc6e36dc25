"""What every broker does with its own replica: append, cut, empty, load, lose, forget.

It asks nobody: what leaders and followers do is in `leader` and `follower`.
"""

from dataclasses import replace

from replication.machine.machine_state import (
    Broker,
    Impossible,
    World,
)
from replication.protocol.ground import events as ev
from replication.protocol.ground.leader_epoch_cache import (
    assign,
    truncate_from_start,
)
from replication.protocol.ground.model import EpochEntry, Span
from replication.protocol.ground.replica_log import ReplicaLog
from replication.protocol.rules.start_up_recovery import OnDisk, start_up_recovery
from replication.protocol.rules.truncate_to_high_watermark import Cut
from replication.protocol.rules.truncation_effect import emptied_at, truncation_effect

REASONS = {
    "truncate_to_high_watermark": "high_watermark",
    "truncate_to_leader_end_offset": "leader_epoch",
    "truncate_by_common_epoch": "leader_epoch",
    "truncate_on_fetch": "diverging_epoch",
    "out_of_range_reset": "out_of_range",
}


def append_span(broker: Broker, span: Span) -> None:
    """Records at the end of a log, and their epoch in the cache."""
    broker.log.append(span.first_offset, span.end_offset, span.leader_epoch, span.content)
    if broker.behaviour.has("leader_epoch_in_record_batches") and span.leader_epoch is not None:
        broker.epoch_entries = assign(
            broker.epoch_entries, span.leader_epoch, span.first_offset, broker.behaviour
        )


def set_high_watermark(world: World, broker: Broker, value: int) -> None:
    before = broker.high_watermark
    if value != before:
        broker.high_watermark = value
        world.emit(ev.HighWatermarkAdvanced(broker.replica, value), before)


def advance_log_start(world: World, broker: Broker, offset: int, reason: str) -> None:
    """Removes records from the front of a log; no effect if they are gone already."""
    if offset <= broker.log.log_start_offset:
        return
    broker.log.advance_log_start(offset)
    broker.epoch_entries = truncate_from_start(broker.epoch_entries, offset)
    world.emit(ev.LogStartAdvanced(broker.replica, offset, reason))


def apply_cut(world: World, broker: Broker, cut: Cut) -> None:
    """Cuts a log and what hangs on it; emits the truncation if records went."""
    before = broker.log.log_end_offset
    after = truncation_effect(
        cut.to_offset,
        broker.log.log_start_offset,
        before,
        broker.high_watermark,
        broker.epoch_entries,
        broker.behaviour,
        first_segment_offset=broker.first_segment_offset,
    )
    if after.log_end_offset < before:
        cuts = f"truncates {before} -> {after.log_end_offset}"
        if after.emptied:
            cuts = f"restarts its log at {after.log_end_offset}"
        world.note(f"{world.name(broker.replica)} {cuts} ({cut.rule}: {cut.because})")
        reason = "full" if after.emptied else REASONS[cut.rule]
        fact = ev.Truncated(broker.replica, after.log_end_offset, before, reason)
        world.emit(fact, before, cut.rule)
    if after.emptied:
        broker.log.truncate_fully_and_start_at(after.log_end_offset)
        broker.first_segment_offset = after.log_start_offset
    else:
        broker.log.truncate_to(cut.to_offset)
        broker.log.log_start_offset = after.log_start_offset
    broker.epoch_entries = after.epoch_entries
    set_high_watermark(world, broker, after.high_watermark)


def empty_at(world: World, broker: Broker, offset: int, because: str) -> None:
    """Empties a log and restarts it at offset."""
    before = broker.log.log_end_offset
    after = emptied_at(offset, broker.high_watermark, broker.behaviour)
    world.note(f"{world.name(broker.replica)} restarts its log at {offset} ({because})")
    world.emit(ev.Truncated(broker.replica, offset, before, "full"), before, "out_of_range_reset")
    broker.log.truncate_fully_and_start_at(offset)
    broker.first_segment_offset = offset
    broker.epoch_entries = after.epoch_entries
    set_high_watermark(world, broker, after.high_watermark)


def end_process(
    world: World,
    broker: Broker,
    reason: str,
    *,
    surviving: int | None = None,
    high_watermark_checkpoint: int | None = None,
    epochs_lost: bool = False,
    directory_deleted: bool = False,
) -> None:
    """A broker's process ends: clean, process_crash, power_loss or disk_loss.

    surviving: the log end that the disk keeps, by default all (none after disk_loss); it may lie
    below the log start, where that is inside the first segment. high_watermark_checkpoint: what
    the file says, by default what was written to it last. epochs_lost: the file of the leader epoch
    cache comes back empty (KAFKA-16541). directory_deleted: once it has ended somebody deletes the
    partition's directory, which leaves the mark of a clean shutdown beside it where it is.
    """
    if not broker.running:
        raise Impossible(f"{world.name(broker.replica)} is stopped already")
    end = broker.log.log_end_offset
    if reason == "clean":
        broker.checkpointed_high_watermark = broker.high_watermark
    if high_watermark_checkpoint is not None:
        broker.checkpointed_high_watermark = high_watermark_checkpoint
    empty = reason == "disk_loss" or directory_deleted
    if empty:
        broker.log, broker.first_segment_offset = ReplicaLog(), 0
        broker.epoch_entries, broker.checkpointed_high_watermark = (), 0
    elif surviving is not None:
        if not broker.first_segment_offset <= surviving <= end:
            raise Impossible(f"{world.name(broker.replica)} has no offset {surviving}")
        start = broker.log.log_start_offset
        broker.log.truncate_to(surviving)
        broker.log.log_start_offset = start
    if epochs_lost:
        broker.epoch_entries = ()
    if empty:
        broker.topic_id = ""
    broker.running, broker.clean, broker.controller_epoch = False, reason == "clean", 0
    broker.role, broker.leader, broker.leader_epoch, broker.partition_epoch = (None,) * 4
    broker.pending = []
    broker.truncated_for, broker.truncating, broker.in_flight = None, False, None
    broker.followers, broker.proposed, broker.isr = {}, None, frozenset()
    told = "disk_loss" if empty else reason
    world.emit(ev.ReplicaStopped(broker.replica, told, broker.log.log_end_offset))


def begin_process(world: World, broker: Broker) -> None:
    """A broker's process starts and loads what its disk holds."""
    if broker.running:
        raise Impossible(f"{world.name(broker.replica)} runs already")
    stamped = () if broker.clean else tuple(broker.log.epoch_entries())
    disk = OnDisk(
        broker.log.log_end_offset,
        broker.first_segment_offset,
        broker.log.log_start_offset,
        broker.checkpointed_high_watermark,
        broker.epoch_entries,
        stamped,
    )
    recovered = start_up_recovery(disk, broker.behaviour)
    if recovered.emptied:
        broker.log.truncate_fully_and_start_at(recovered.log_start_offset)
        broker.first_segment_offset = recovered.log_start_offset
    broker.log.log_start_offset = recovered.log_start_offset
    broker.high_watermark = recovered.high_watermark
    broker.epoch_entries = recovered.epoch_entries
    broker.running, broker.fetching = True, True
    broker.broker_epoch += 1
    world.emit(
        ev.ReplicaStarted(
            broker.replica,
            recovered.log_start_offset,
            recovered.log_end_offset,
            recovered.high_watermark,
            broker.clean,
        )
    )


def stop_replica(world: World, broker: Broker) -> None:
    """A broker deletes a replica that is no longer assigned to it."""
    forget_replica(broker)
    world.note(f"{world.name(broker.replica)} deletes its replica")
    world.emit(ev.ReplicaStopped(broker.replica, "unknown", None))


def forget_replica(broker: Broker) -> None:
    """A broker without a directory of the partition, and without a part in it."""
    broker.topic_id = ""
    broker.log, broker.first_segment_offset, broker.epoch_entries = ReplicaLog(), 0, ()
    broker.high_watermark = broker.checkpointed_high_watermark = 0
    broker.role, broker.leader, broker.leader_epoch, broker.partition_epoch = (None,) * 4
    broker.truncated_for, broker.truncating, broker.in_flight = None, False, None
    broker.followers, broker.proposed, broker.isr, broker.pending = {}, None, frozenset(), []


def cached_epochs(broker: Broker) -> tuple[EpochEntry, ...]:
    """The epoch cache that appending this log from its start would have left."""
    fresh = replace(broker, log=ReplicaLog(), epoch_entries=())
    for span in broker.log.spans:
        append_span(fresh, span)
    return fresh.epoch_entries
