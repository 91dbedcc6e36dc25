"""Truncation by KIP-101: to where the leader says that the follower's latest epoch ends."""

from replication.protocol.rules.truncate_to_high_watermark import Cut, truncate_to_high_watermark


def truncate_to_leader_end_offset(
    latest_epoch: int | None,
    leader_end_offset: int | None,
    log_end_offset: int,
    high_watermark: int,
) -> Cut:
    """Decides where a follower cuts after its leader answered for its latest epoch.

    leader_end_offset: the answer, None when undefined.

    Versions: code 0.11.0 to 1.1 speaking 0.11.0-IV2 or later.
    Followed: truncate_to_high_watermark. Gave way to: truncate_by_common_epoch (KIP-279): after
    two quick elections the leader has never seen the follower's latest epoch, and the end of what
    follows it says nothing of where the logs part (s03_kip_279_fast_failover_15.txt).
    Leaves unchanged: records below the answer.
    Unknown: nothing.
    """
    if leader_end_offset is None:
        return truncate_to_high_watermark(high_watermark)
    return Cut(
        min(leader_end_offset, log_end_offset),
        True,
        "truncate_to_leader_end_offset",
        f"the leader ends epoch {'none' if latest_epoch is None else latest_epoch} "
        f"at {leader_end_offset}",
    )
