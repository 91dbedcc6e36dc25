"""Whether a follower must check its log against the leader's before it fetches."""

from replication.protocol.ground.versions import Behaviour


def when_to_truncate(
    known: tuple[int, int] | None, leader: int, leader_epoch: int, behaviour: Behaviour
) -> bool:
    """Decides at a notification of leadership whether truncation is due (again).

    known: the leader and leader epoch that it followed last, None after a start of the broker, or
    when it led.

    Versions: when the leader is another broker (0.8 to 2.0.0); in 2.0.1 also when an epoch was
    missed (KAFKA-7164); from 2.1 whenever the epoch rises (KIP-320).
    Followed: the leader's identity. Gave way to: the epoch, because a leader may have been deposed
    and elected again between two notifications (s05_missed_epoch.txt).
    Leaves unchanged: the log: what is cut is the truncation rule's answer.
    Unknown: nothing.
    """
    if known is None:
        return True
    known_leader, known_leader_epoch = known
    if behaviour.has("retruncates_on_every_leader_epoch"):
        return leader_epoch > known_leader_epoch
    if leader != known_leader:
        return True
    if behaviour.has("retruncates_after_missed_epoch"):
        return leader_epoch > known_leader_epoch + 1
    return False
