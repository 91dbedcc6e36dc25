"""What a follower makes of the high watermark in a fetch response."""

from replication.protocol.ground.versions import Behaviour


def high_watermark_of_follower(
    answered: int, log_start_offset: int, log_end_offset: int, behaviour: Behaviour
) -> int:
    """Decides a follower's high watermark after it appended what the response brought.

    Shown by jira_9491_high_watermark_below_log_start.txt.

    Versions: at most its own log end; from 2.4 also at least its log start.
    Followed: nothing. Gave way to: nothing. It is an assignment and no maximum: it falls when a
    new leader's high watermark is lower, and that is lawful.
    Leaves unchanged: the log; the checkpointed high watermark.
    Unknown: nothing.
    """
    bounded = min(answered, log_end_offset)
    if behaviour.has("high_watermark_kept_within_log"):
        return max(bounded, log_start_offset)
    return bounded
