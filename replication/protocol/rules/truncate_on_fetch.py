"""Truncation on fetch: the leader's fetch response says where the logs part."""

from dataclasses import replace

from replication.protocol.ground.leader_epoch_cache import EpochCache
from replication.protocol.ground.model import EpochEndOffset
from replication.protocol.ground.versions import Behaviour
from replication.protocol.rules.truncate_by_common_epoch import truncate_by_common_epoch
from replication.protocol.rules.truncate_to_high_watermark import Cut


def truncate_on_fetch(
    diverging: EpochEndOffset,
    epoch_entries: EpochCache,
    log_end_offset: int,
    high_watermark: int,
    behaviour: Behaviour,
) -> Cut:
    """Decides where to cut when a fetch was answered with a diverging epoch.

    The follower stays fetching: another answer may diverge again, which is the next round.

    Versions: followers of code 2.8 on that speak 2.7-IV1 or later (leaders answer so from 2.7). A
    follower without any epoch truncates to its high watermark before it fetches, as before.
    Followed: truncate_by_common_epoch, whose formula it keeps. Gave way to: nothing.
    Leaves unchanged: the follower's high watermark, but for truncation_effect: from 3.4.1 the one
    in that response is not taken (KAFKA-14704, s16_high_watermark_before_truncation.txt).
    Unknown: nothing.
    """
    cut = truncate_by_common_epoch(
        diverging, epoch_entries, log_end_offset, high_watermark, behaviour
    )
    return replace(cut, rule="truncate_on_fetch", finished=True)


def truncates_before_fetching(latest_epoch: int | None, behaviour: Behaviour) -> bool:
    """Whether a new follower passes through a truncation phase at all."""
    return latest_epoch is None or not behaviour.has("truncates_on_fetch")
