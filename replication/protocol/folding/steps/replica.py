"""What any replica does, whoever leads: its log, its leader epochs, its high watermark."""

from replication.protocol.folding.steps.promises import promise_committed
from replication.protocol.folding.steps.terms import is_superseded
from replication.protocol.ground import events as ev
from replication.protocol.ground.leader_epoch_cache import (
    assign,
    latest_epoch,
    truncate_from_end,
    truncate_from_start,
)
from replication.protocol.ground.model import Span, clipped, touching
from replication.protocol.ground.topic_partition import Copy, Removal, Replica, State, StorageLoss
from replication.protocol.ground.versions import NEWEST_KNOWN, Behaviour, behaviour
from replication.protocol.rules.start_up_recovery import OnDisk, start_up_recovery

NEWEST = behaviour(NEWEST_KNOWN)


def replica_of(state: State, number: int) -> Replica:
    """The replica on a broker, a new one where nothing was known of it."""
    known = state.replicas.get(number)
    if known is None:
        known = state.replicas[number] = Replica(number)
    return known


def lives_on(state: State, replica: Replica) -> None:
    """The broker acts after what was last seen of its log: only a trace still tells its end."""
    replica.crashed, replica.shown_end = False, None
    if not state.is_traced(replica.replica):
        # Of a part, nobody knew the end anyway; what is cut from it, the broker's log tells.
        told = state.told_of("broker_log", replica.replica)
        replica.stale = replica.captured and not (replica.partial and told)
        replica.tail_known = False


def observe_log_end(state: State, replica: Replica, end: int, event: ev.Event) -> None:
    """The log end as a start or transition line names it, held against what was known."""
    had = replica.known_log_end_offset
    if had is not None and end < had:
        state.history.storage_losses.append(
            StorageLoss(
                replica.replica,
                had,
                end,
                state.witness(event),
                state.registration.last_members,
                replica.leader_epoch,
                clipped(touching(replica.log.spans, end, had), end, had),
                state.applied,
            )
        )
    if end < replica.log.log_end_offset:
        lost = touching(replica.log.spans, end, replica.log.log_end_offset)
        set_aside(state, replica, clipped(lost, end, replica.log.log_end_offset))
        replica.promised_below = None
        replica.log.truncate_to(end)
    replica.log.log_end_offset = end
    replica.known_log_end_offset = end
    replica.epoch_entries = truncate_from_end(replica.epoch_entries, end)


def take_log_end(state: State, replica: Replica, event: ev.Event, end: int | None) -> None:
    """The log end that the line of a change of role names, if it names one."""
    if end is None:
        return
    if end != replica.log.log_end_offset:
        observe_log_end(state, replica, end, event)
    replica.known_log_end_offset = end


def set_aside(state: State, replica: Replica, spans: list[Span]) -> None:
    """Records that the replica no longer holds, kept as a salvage copy when a copy showed them."""
    if spans and replica.captured:
        state.history.copies.append(
            Copy(replica.replica, spans, replica.as_of or "", observed_at=replica.observed_at)
        )


def epoch_rules(state: State, replica: Replica) -> Behaviour:
    """The rules by which an epoch cache is kept: its broker's version's, if it keeps one."""
    flags = state.behaviour(replica.replica)
    return flags if flags is not None and flags.has("leader_epoch_in_record_batches") else NEWEST


def cut_epochs(state: State, replica: Replica, *, unclean: bool = False) -> None:
    """What is left of the epoch cache when the log was cut at either end, as a start finds it."""
    log, entries = replica.log, replica.epoch_entries
    disk = OnDisk(
        log.log_end_offset,
        log_start_offset=log.log_start_offset,
        epoch_entries=entries,
        batch_epochs=log.epoch_entries(latest_epoch(entries)) if unclean else (),
    )
    replica.epoch_entries = start_up_recovery(disk, epoch_rules(state, replica)).epoch_entries


def append(
    state: State,
    replica: Replica,
    first: int,
    end: int,
    leader_epoch: int | None,
    content: int | None,
) -> None:
    """Records [first, end) at the log's end; what was there from first on goes."""
    log = replica.log
    if first < log.log_end_offset:
        replica.promised_below = None
        log.truncate_to(first)
    elif not log.spans and not log.log_end_offset:
        log.log_start_offset = first
    log.append(first, end, leader_epoch, content)
    replica.known_log_end_offset = end
    if leader_epoch is not None:
        entries = replica.epoch_entries
        if not entries or entries[-1].leader_epoch != leader_epoch:
            replica.epoch_entries = assign(
                entries, leader_epoch, first, epoch_rules(state, replica)
            )


def advance_log_start(replica: Replica, offset: int) -> None:
    """Records below offset are gone lawfully; never backwards."""
    if offset > replica.log.log_start_offset:
        replica.log.advance_log_start(offset)
        replica.epoch_entries = truncate_from_start(replica.epoch_entries, offset)


def high_watermark_advanced(state: State, event: ev.Event, fact: ev.HighWatermarkAdvanced) -> None:
    """A high watermark moved; a leader's never falls and never lies past its log's end."""
    replica = replica_of(state, fact.replica)
    if replica.role == "leader" and event.grade == "traced":
        _refute_leaders_high_watermark(state, event, replica, fact.high_watermark)
    replica.high_watermark = fact.high_watermark
    promise_committed(state, replica, fact.high_watermark, event, "high_watermark")


def _refute_leaders_high_watermark(
    state: State, event: ev.Event, replica: Replica, high_watermark: int
) -> None:
    before, end = replica.known_high_watermark, replica.log.log_end_offset
    flags = state.behaviour(replica.replica)
    # Until the log kept it, two requests at once could set it back for a moment: compared, then
    # set, without a lock (Partition.maybeIncrementLeaderHW).
    raced = flags is not None and not flags.has("high_watermark_kept_within_log")
    if before is not None and high_watermark < before and not raced:
        state.refute(
            "leader_high_watermark_monotonic",
            event,
            f"leader {replica.replica}'s high watermark fell from {before} to "
            f"{high_watermark} in epoch {replica.leader_epoch}",
        )
    if replica.tail_known and high_watermark > end:
        state.refute(
            "high_watermark_within_log",
            event,
            f"leader {replica.replica}'s high watermark {high_watermark} is above its log "
            f"end {end}",
        )


def log_start_advanced(state: State, event: ev.Event, fact: ev.LogStartAdvanced) -> None:
    """The log begins later: by retention, deleteRecords, or because the leader's does."""
    replica = replica_of(state, fact.replica)
    advance_log_start(replica, fact.log_start_offset)
    if replica.role == "leader" or (replica.role == "follower" and fact.reason == "leader"):
        note_removal(state, replica, fact.log_start_offset)


def note_removal(state: State, replica: Replica, below: int) -> None:
    """Keeps from where on the log of the leader that a replica is, or follows, begins."""
    leader_epoch = replica.leader_epoch
    if leader_epoch is None or is_superseded(state, leader_epoch):
        return
    term = (leader_epoch, replica.term_occurrence if replica.role == "leader" else 0)
    known = state.history.removals
    if known and (known[-1].leader_epoch, known[-1].occurrence) == term:
        known[-1].below = max(known[-1].below, below)
    else:
        known.append(Removal(*term, below))
