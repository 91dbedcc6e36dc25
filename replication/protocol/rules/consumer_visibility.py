"""What a consumer's fetch gets."""

from replication.protocol.ground.versions import Behaviour


def consumer_visibility(
    fetch_offset: int,
    log_start_offset: int,
    log_end_offset: int,
    high_watermark: int,
    last_stable_offset: int,
    *,
    read_committed: bool = False,
) -> tuple[int, int] | str:
    """Decides the readable range [first, end), empty allowed, or the error, on the replica read.

    Shown by kip_392_follower_read.txt and consumer_boundaries.txt.

    Versions: read_committed from 0.11; on a follower from 2.4 (KIP-392), by the follower's own
    high watermark, which trails the leader's by up to a fetch round.
    Followed: nothing. Gave way to: nothing. An offset between the high watermark and the log end
    is an empty answer and no error.
    Leaves unchanged: everything.
    Unknown: nothing.
    """
    if not log_start_offset <= fetch_offset <= log_end_offset:
        return "OFFSET_OUT_OF_RANGE"
    end = last_stable_offset if read_committed else high_watermark
    return (fetch_offset, max(fetch_offset, min(end, log_end_offset)))


def may_read_from_follower(
    in_isr: bool, follower_start: int, follower_end: int, fetch_offset: int, behaviour: Behaviour
) -> bool:
    """Whether a leader names this follower as preferred read replica (KIP-392).

    Up to 3.3.1 it may lag outside the ISR (KAFKA-14372).
    """
    if not behaviour.has("consumers_may_fetch_from_followers"):
        return False
    fits = in_isr or not behaviour.has("preferred_read_replica_is_in_isr")
    return fits and follower_start <= fetch_offset <= follower_end


def latest_offset_available(
    high_watermark: int, leader_epoch_start_offset: int, behaviour: Behaviour
) -> bool:
    """Whether ListOffsets(latest) is answered, or OFFSET_NOT_AVAILABLE (KIP-207)."""
    if not behaviour.has("latest_offset_waits_for_epoch_start"):
        return True
    return high_watermark >= leader_epoch_start_offset


def consumer_was_truncated(
    position: int, last_epoch: int, answer_epoch: int | None, answer_end_offset: int | None
) -> bool:
    """Whether a KIP-320 consumer sees, from OffsetsForLeaderEpoch, that its log was truncated.

    An answer without an end offset says so too: nobody who knew that epoch leads any more.
    """
    if answer_end_offset is None:
        return True
    return answer_end_offset < position or answer_epoch != last_epoch
