"""Which followers a leader drops from the ISR for lagging."""

from collections.abc import Mapping
from dataclasses import dataclass

from replication.protocol.ground.versions import Behaviour


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a follower in the ISR has come; log_end_offset None until its first fetch."""

    log_end_offset: int | None
    last_caught_up_ms: int


def isr_shrink(
    followers: Mapping[int, Progress],
    log_end_offset: int,
    now_ms: int,
    replica_lag_time_max_ms: int,
    replica_lag_max_messages: int | None,
    behaviour: Behaviour,
) -> frozenset[int]:
    """Decides which ISR members (the leader is not among followers) have fallen out of sync.

    A leader asks this every half of replica.lag.time.max.ms, so removal happens between 1.0 and
    1.5 times the limit.

    Shown by lag_by_messages.txt.

    Versions: 0.8 by time, or by messages behind once it has fetched (0.8.0 spares a follower at
    the log end, which is not told apart here); from 0.9 (KIP-16) by time alone. A follower at the
    leader's log end stays from 2.1 (KAFKA-7152); before, it left when it fetched no more.
    Followed: nothing. Gave way to: nothing.
    Leaves unchanged: the ISR itself, until isr_commit says so; the leader epoch (in KRaft below
    3.6-IV0 the controller raises it: election_kraft).
    Unknown: nothing.
    """
    removed = set()
    for replica, progress in followers.items():
        end = progress.log_end_offset
        behind = 0 if end is None else log_end_offset - end
        late = now_ms - progress.last_caught_up_ms > replica_lag_time_max_ms
        if behaviour.has("isr_by_time_alone"):
            safe = end == log_end_offset
            out = late and not (safe and behaviour.has("log_end_is_in_sync"))
        else:
            limit = replica_lag_max_messages
            out = late or (limit is not None and behind > limit)
        if out:
            removed.add(replica)
    return frozenset(removed)
