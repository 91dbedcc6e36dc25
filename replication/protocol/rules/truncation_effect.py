"""What a cut changes in a replica besides its records."""

from dataclasses import dataclass

from replication.protocol.ground.leader_epoch_cache import EpochCache, truncate_from_end
from replication.protocol.ground.versions import Behaviour


@dataclass(frozen=True, slots=True)
class AfterCut:
    """A replica after a cut. emptied: the log restarts at its start offset without records."""

    log_start_offset: int
    log_end_offset: int
    high_watermark: int
    epoch_entries: EpochCache
    emptied: bool


def truncation_effect(
    to_offset: int,
    log_start_offset: int,
    log_end_offset: int,
    high_watermark: int,
    epoch_entries: EpochCache,
    behaviour: Behaviour,
    *,
    first_segment_offset: int,
) -> AfterCut:
    """Decides log bounds, high watermark and epoch cache after a log is cut to to_offset.

    first_segment_offset: base of the oldest segment, at or below the log start offset.

    Shown by jira_10706_empty_epoch_at_the_end.txt and log_start_boundaries.txt.

    Versions: from 2.4 the high watermark falls with the log end; up to 2.3 it stays above it until
    the next fetch. An empty epoch at the log end is dropped even by a cut that cuts nothing from
    2.6.1 (KAFKA-10706). Emptying the log raises the high watermark too from 2.4.1 (KAFKA-9491).
    Followed: the log alone. Gave way to: each of the above (jira_9491 and jira_10706 scenarios).
    Leaves unchanged: the checkpointed high watermark, which may thus lie above the log end after a
    crash; the recovery point is lowered and checkpointed.
    Unknown: nothing.
    """
    if to_offset >= log_end_offset:
        entries = epoch_entries
        if behaviour.has("empty_epoch_dropped_at_log_end"):
            entries = truncate_from_end(entries, log_end_offset)
        return AfterCut(log_start_offset, log_end_offset, high_watermark, entries, False)
    if to_offset < first_segment_offset:
        return emptied_at(to_offset, high_watermark, behaviour)
    if behaviour.has("high_watermark_kept_within_log"):
        high_watermark = min(high_watermark, to_offset)
    return AfterCut(
        min(log_start_offset, to_offset),
        to_offset,
        high_watermark,
        truncate_from_end(epoch_entries, to_offset),
        False,
    )


def emptied_at(offset: int, high_watermark: int, behaviour: Behaviour) -> AfterCut:
    """A log emptied and restarted at offset (truncateFullyAndStartAt)."""
    if behaviour.has("high_watermark_reset_by_full_truncation"):
        high_watermark = offset
    elif behaviour.has("high_watermark_kept_within_log"):
        high_watermark = min(high_watermark, offset)
    return AfterCut(offset, offset, high_watermark, (), True)
