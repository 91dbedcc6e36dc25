"""What changes in a replica when it takes leadership."""

from dataclasses import dataclass

from replication.protocol.ground.leader_epoch_cache import EpochCache, assign
from replication.protocol.ground.versions import Behaviour


@dataclass(frozen=True, slots=True)
class Leadership:
    """A new leader's own values. keeps_followers: what it knew of their logs stays known."""

    leader_epoch_start_offset: int
    epoch_entries: EpochCache
    keeps_followers: bool


def become_leader(
    leader_epoch: int,
    log_end_offset: int,
    epoch_entries: EpochCache,
    led_before: bool,
    behaviour: Behaviour,
) -> Leadership:
    """Decides a leader's epoch start, epoch cache, and whether it forgets its followers.

    led_before: this broker led until now and only its epoch rose.

    Versions: the epoch is cached here from 2.0.1 (KAFKA-7415); from 0.11 to 2.0.0 only the first
    append caches it.
    Followed: caching at the first append. Gave way to: caching at election, because a leader that
    had written nothing answered 'undefined' and its follower cut to a stale high watermark
    (s08_epoch_not_cached.txt).
    Leaves unchanged: the log, which a leader never truncates; its high watermark, which may be
    below its predecessor's.
    Unknown: nothing.
    """
    entries = epoch_entries
    if behaviour.has("epoch_cached_at_election"):
        entries = assign(entries, leader_epoch, log_end_offset, behaviour)
    return Leadership(log_end_offset, entries, led_before)
