"""Whether a follower may join the ISR."""

from replication.protocol.ground.versions import Behaviour


def isr_expand(
    log_end_offset: int,
    leader_high_watermark: int,
    leader_epoch_start_offset: int,
    behaviour: Behaviour,
    *,
    active: bool = True,
) -> bool:
    """Decides at a fetch of an assigned replica outside the ISR whether the leader proposes it.

    active: unfenced and not in controlled shutdown (ZooKeeper: alive).

    Versions: log end at the high watermark; from 2.0.1 also at the leader epoch's start
    (KAFKA-7128); from 3.3 active (KIP-841), whatever the metadata version. That the fetch is of
    the broker's present life (KIP-903) is asked before, by fetch_admission, and after, by
    isr_commit.
    Followed: the high watermark alone. Gave way to: the epoch start, because a new leader's high
    watermark lags behind what was committed (s07_early_isr_join.txt).
    Leaves unchanged: the ISR until isr_commit; the high watermark.
    Unknown: nothing.
    """
    if log_end_offset < leader_high_watermark:
        return False
    if (
        behaviour.has("isr_expansion_waits_for_epoch_start")
        and log_end_offset < leader_epoch_start_offset
    ):
        return False
    return active or not behaviour.has("isr_needs_unfenced_broker")
