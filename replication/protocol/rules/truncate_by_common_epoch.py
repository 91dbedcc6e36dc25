"""Truncation by KIP-279: to where the last epoch that both logs have ends, in rounds."""

from replication.protocol.ground.leader_epoch_cache import EpochCache, end_offset_for_epoch
from replication.protocol.ground.model import EpochEndOffset
from replication.protocol.ground.versions import Behaviour
from replication.protocol.rules.truncate_to_high_watermark import Cut, truncate_to_high_watermark


def truncate_by_common_epoch(
    answer: EpochEndOffset,
    epoch_entries: EpochCache,
    log_end_offset: int,
    high_watermark: int,
    behaviour: Behaviour,
) -> Cut:
    """Decides one round: where to cut after the leader answered for the latest cached epoch.

    high_watermark: the offset the partition was given to the fetcher with.

    Shown by s03_kip_279_fast_failover_15.txt.

    Versions: code 2.0 on (from 2.8 only where truncate_on_fetch does not apply). An answer without
    an epoch is an older leader's, or spoken below 2.0-IV0.
    Followed: truncate_to_leader_end_offset. Gave way to: truncate_on_fetch (KAFKA-10554), which
    applies the same formula to the diverging epoch of a fetch response and saves the separate
    phase.
    Leaves unchanged: records below the cut; the high watermark (truncation_effect).
    Unknown: nothing.
    """
    rule = "truncate_by_common_epoch"
    if answer.end_offset is None:
        return truncate_to_high_watermark(high_watermark)
    end = answer.end_offset
    asked = "its latest epoch" if answer.leader_epoch is None else f"epoch {answer.leader_epoch}"
    own = end_offset_for_epoch(epoch_entries, answer.leader_epoch, log_end_offset, behaviour)
    because = f"the leader ends {asked} at {end}"
    if own.end_offset is None:
        return Cut(min(end, log_end_offset), True, rule, because)
    if own.leader_epoch != answer.leader_epoch:
        because = f"{because}, and its own log has epoch {own.leader_epoch} up to {own.end_offset}"
        return Cut(min(own.end_offset, log_end_offset), False, rule, because)
    if own.end_offset < end:
        because = f"its own epoch {answer.leader_epoch} ends at {own.end_offset}"
    return Cut(min(own.end_offset, end, log_end_offset), True, rule, because)
