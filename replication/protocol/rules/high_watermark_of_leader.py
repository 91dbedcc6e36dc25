"""How far a leader may move its high watermark: the records that every awaited replica holds."""

from collections.abc import Iterable
from dataclasses import dataclass

from replication.protocol.ground.versions import Behaviour


@dataclass(frozen=True, slots=True)
class RemoteReplica:
    """A follower as its leader sees it.

    log_end_offset: None until its first fetch in this leadership. member: of the maximal ISR, which
    is the ISR where no change is in flight. caught_up: by is_caught_up. eligible: it may join the
    ISR (KRaft: unfenced, not stopping, broker epoch known; ZooKeeper: alive).
    """

    log_end_offset: int | None
    member: bool
    caught_up: bool
    eligible: bool = True


def high_watermark_of_leader(
    current: int,
    log_end_offset: int,
    followers: Iterable[RemoteReplica],
    isr_size: int,
    min_insync_replicas: int,
    behaviour: Behaviour,
) -> int:
    """Decides a leader's high watermark after an append, a fetch, an ISR change or an election.

    isr_size counts the committed ISR, leader included; min_insync_replicas is the effective one.

    Versions: the ISR alone up to 0.10.1; with every assigned replica that is caught up from
    0.10.2 (KAFKA-4485); the maximal ISR from 2.7-IV2 (KIP-497; before, no change is ever in
    flight); only outsiders that may join from 3.6 (KAFKA-15021); standing below
    min.insync.replicas from 3.7 (KAFKA-15583).
    Followed: waiting for all replicas. Gave way to: nothing; each form is still here, since one
    acks=1 record below min.insync.replicas is committed up to 3.6 and is not from 3.7
    (high_watermark_below_min_insync.txt).
    Leaves unchanged: everything but the leader's high watermark, which it never lowers.
    Unknown: nothing. Whether it is asked at all when an ISR change is committed is isr_commit's
    `commit_raises_high_watermark`.
    """
    if (
        behaviour.has("high_watermark_waits_for_min_insync_replicas")
        and isr_size < min_insync_replicas
    ):
        return current
    candidate = log_end_offset
    for follower in followers:
        if not _awaited(follower, behaviour):
            continue
        if follower.log_end_offset is None:
            return current
        candidate = min(candidate, follower.log_end_offset)
    return max(current, candidate)


def _awaited(follower: RemoteReplica, behaviour: Behaviour) -> bool:
    if follower.member:
        return True
    if not behaviour.has("high_watermark_counts_caught_up_outsiders"):
        return False
    only_eligible = behaviour.has("high_watermark_counts_eligible_only")
    return follower.caught_up and (follower.eligible or not only_eligible)
