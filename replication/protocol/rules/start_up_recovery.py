"""What a replica holds and knows after its broker starts."""

from dataclasses import dataclass

from replication.protocol.ground.leader_epoch_cache import (
    EpochCache,
    truncate_from_end,
    truncate_from_start,
)
from replication.protocol.ground.versions import Behaviour


@dataclass(frozen=True, slots=True)
class OnDisk:
    """What a start finds. log_end_offset: of the last valid batch; high_watermark: checkpointed.

    batch_epochs: epochs as the re-scanned batches are stamped (empty after a clean stop).
    first_segment_offset: the base of the oldest segment. log_start_offset: the checkpointed one,
    where there is none that base.
    """

    log_end_offset: int
    first_segment_offset: int = 0
    log_start_offset: int = 0
    high_watermark: int | None = None
    epoch_entries: EpochCache = ()
    batch_epochs: EpochCache = ()


@dataclass(frozen=True, slots=True)
class Recovered:
    """A replica right after start-up. emptied: what survived was below its log start."""

    log_start_offset: int
    log_end_offset: int
    high_watermark: int
    epoch_entries: EpochCache
    emptied: bool


def start_up_recovery(disk: OnDisk, behaviour: Behaviour) -> Recovered:
    """Decides log bounds, high watermark and epoch cache at start-up.

    Shown by jira_1647_high_watermark_lost.txt and log_start_boundaries.txt.

    Versions: epochs from 0.11; the high watermark is kept at or above the log start from 2.4.
    Followed: nothing. Gave way to: nothing. The checkpointed high watermark is up to
    replica.high.watermark.checkpoint.interval.ms old, and may lie above the log end after a
    truncation and a crash: then it is clamped, lawfully.
    Leaves unchanged: records below the recovered end; ISR and leadership, which are the
    controller's.
    Unknown: what a power failure leaves: any suffix above the last flush may be gone.
    """
    entries = disk.epoch_entries
    for entry in disk.batch_epochs:
        if not entries or entry.leader_epoch > entries[-1].leader_epoch:
            entries = (*entries, entry)
    start = max(disk.first_segment_offset, disk.log_start_offset)
    end = disk.log_end_offset
    entries = truncate_from_end(entries, end)
    entries = truncate_from_start(entries, disk.log_start_offset)
    emptied = end < start
    if emptied:
        end, entries = start, ()
    high_watermark = min(disk.high_watermark or 0, end)
    if behaviour.has("high_watermark_kept_within_log"):
        high_watermark = max(high_watermark, start)
    if not behaviour.has("leader_epoch_in_record_batches"):
        entries = ()
    return Recovered(start, end, high_watermark, entries, emptied)
