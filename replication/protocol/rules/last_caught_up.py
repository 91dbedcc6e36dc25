"""When a follower last held everything its leader had: what ISR membership rests on."""

from dataclasses import dataclass

from replication.protocol.ground.versions import Behaviour


@dataclass(frozen=True, slots=True)
class FetchMemory:
    """What a leader remembers of one follower's fetches; times in ms on the leader's clock.

    leader_log_end_offset: the largest of its own that it remembers from earlier fetches, None
    before the first.
    """

    last_caught_up_ms: int
    last_fetch_ms: int = 0
    leader_log_end_offset: int | None = None


def last_caught_up(
    memory: FetchMemory, fetch_offset: int, log_end_offset: int, now_ms: int, behaviour: Behaviour
) -> FetchMemory:
    """Decides what the leader remembers after a fetch at fetch_offset.

    Shown by jira_4485_keeps_pace.txt.

    Versions: in 0.8 every fetch counts: only who stops fetching is stuck, and isr_shrink counts
    messages besides. Up to 0.10.1 only a fetch that reaches the log end; from 0.10.2 (KAFKA-4485)
    one that reaches the end of the previous fetch counts as of that fetch, so that a follower that
    keeps pace with a busy producer stays in sync.
    Followed: counting messages behind (0.8). Gave way to: nothing.
    Leaves unchanged: the ISR; isr_shrink and high_watermark_of_leader read this later.
    Unknown: nothing.
    """
    caught_up = memory.last_caught_up_ms
    remembered = memory.leader_log_end_offset
    if fetch_offset >= log_end_offset or not behaviour.has("isr_by_time_alone"):
        caught_up = max(caught_up, now_ms)
    elif (
        behaviour.has("caught_up_by_previous_fetch")
        and remembered is not None
        and fetch_offset >= remembered
    ):
        caught_up = max(caught_up, memory.last_fetch_ms)
    return FetchMemory(caught_up, now_ms, max(log_end_offset, remembered or 0))


def is_caught_up(last_caught_up_ms: int, now_ms: int, replica_lag_time_max_ms: int) -> bool:
    """Whether a replica counts as caught up for the leader's high watermark (see there).

    From 3.6 one whose log ends with the leader's counts however long ago that was seen: such a
    replica holds back no high watermark, so that makes no difference here.
    """
    return now_ms - last_caught_up_ms <= replica_lag_time_max_ms
