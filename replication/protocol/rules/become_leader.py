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
    led_before: int | None,
    behaviour: Behaviour,
) -> Leadership:
    """Decides a leader's epoch start, epoch cache, and whether it forgets its followers.

    led_before: the epoch that this broker led until now, None where it followed.

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
    return Leadership(
        log_end_offset, entries, _keeps_followers(led_before, leader_epoch, behaviour)
    )


def _keeps_followers(led_before: int | None, leader_epoch: int, behaviour: Behaviour) -> bool:
    """Partition.makeLeader forgets followers for a new leader only, since KAFKA-2721 (0.9).

    So a broker that missed the epochs of another leader keeps log ends that its followers may have
    cut since (leader_missed_an_epoch.txt). The remedies are in no release, but 0.8 did the second.
    """
    if led_before is None or not behaviour.has("leading_on_keeps_followers"):
        return False
    if behaviour.has("leader_forgets_followers_at_every_epoch"):
        return False
    missed = leader_epoch > led_before + 1
    return not (missed and behaviour.has("leader_forgets_followers_after_missed_epoch"))
