"""When a producer is told that its records are written."""


def acknowledge(
    acks: str,
    end_offset: int,
    high_watermark: int,
    maximal_isr_size: int,
    min_insync_replicas: int,
    replicas_at_end: int = 1,
    *,
    leads: bool = True,
) -> str:
    """Decides the answer for records that end at end_offset: its code, or "pending", or "none".

    acks: "0", "all", or how many replicas shall hold them: "1", in 0.8 also more. replicas_at_end
    counts the members of the ISR at or past end_offset, the leader included. leads: whether the
    broker has led ever since, in whatever epochs: a leader that is re-elected keeps its
    waiting producers.

    Shown by acks_of_producers.txt and not_enough_replicas_after_append.txt.

    Versions: all; numbers above 1 only in 0.8.
    Followed: nothing. Gave way to: nothing. Committed and acknowledged differ in both directions:
    acks=1 acknowledges what is not committed, and records answered
    NOT_ENOUGH_REPLICAS_AFTER_APPEND stay in the log and may be committed.
    Leaves unchanged: the log.
    Unknown: nothing.
    """
    if acks == "0":
        return "none"
    if not leads:
        return "NOT_LEADER_OR_FOLLOWER"
    if acks != "all":
        return "NONE" if replicas_at_end >= int(acks) else "pending"
    if high_watermark < end_offset:
        return "pending"
    if maximal_isr_size < min_insync_replicas:
        return "NOT_ENOUGH_REPLICAS_AFTER_APPEND"
    return "NONE"
