"""Which of the leader's high watermarks a fetch response carries."""

from replication.protocol.ground.versions import Behaviour


def fetch_response_high_watermark(
    before: int, after: int, waited: bool, behaviour: Behaviour
) -> int:
    """Decides between the high watermark from before and from after the fetch's own effect.

    waited: the fetch found too little and was answered later, from purgatory.

    Versions: the one from before, since the read precedes the update of the follower's state, but
    after a wait; 1.0.0, 1.0.1 and 1.1.0 answered with the later one (KAFKA-5758, undone by
    KAFKA-7104).
    Followed: the same. Gave way to: the same. So a follower learns that its records are committed
    one fetch late: the gap that s01_kip_101_loss.txt falls into.
    Leaves unchanged: the leader's state.
    Unknown: nothing.
    """
    later = waited or behaviour.has("fetch_answers_high_watermark_after_update")
    return after if later else before


def answers_at_once(
    last_sent: int | None, current: int, has_records: bool, behaviour: Behaviour
) -> bool:
    """Whether a fetch is not held back: it has records, or (2.4, 2.5) a new high watermark."""
    if has_records:
        return True
    news = last_sent is not None and last_sent < current
    return news and behaviour.has("fetch_answers_at_once_for_new_high_watermark")
