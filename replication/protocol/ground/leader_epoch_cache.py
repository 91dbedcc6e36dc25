"""A replica's leader epoch cache: which epoch starts where, and the questions asked of it.

A cache is a tuple of EpochEntry in ascending order; each operation returns a new one. Source:
LeaderEpochFileCache; docs/protocol.md 2. An epoch without records is normal, and
compaction moves start offsets, so caches of two replicas are never compared for equality.
"""

from bisect import bisect_right
from itertools import takewhile

from replication.protocol.ground.model import EpochEndOffset, EpochEntry
from replication.protocol.ground.versions import Behaviour

EpochCache = tuple[EpochEntry, ...]


def assign(
    entries: EpochCache, leader_epoch: int, start_offset: int, behaviour: Behaviour
) -> EpochCache:
    """The cache after a batch or a leadership of leader_epoch starts at start_offset.

    From 2.0.1 trailing entries of a later or equal epoch, or starting at or past start_offset,
    give way (so an epoch without records vanishes when the next starts at its offset). Before,
    an entry that does not rise in epoch, or falls in offset, is ignored: an epoch going backwards
    in a log leaves no trace, and two entries may share a start offset.
    """
    last = entries[-1] if entries else None
    if last and last.leader_epoch == leader_epoch and last.start_offset <= start_offset:
        return entries
    entry = EpochEntry(leader_epoch, start_offset)
    if not behaviour.has("epoch_cached_at_election"):
        rises = not last or (leader_epoch > last.leader_epoch and start_offset >= last.start_offset)
        return (*entries, entry) if rises else entries
    kept = len(entries)
    while kept and (
        entries[kept - 1].leader_epoch >= leader_epoch
        or entries[kept - 1].start_offset >= start_offset
    ):
        kept -= 1
    return (*entries[:kept], entry)


def latest_epoch(entries: EpochCache) -> int | None:
    """The last cached epoch, None for an empty cache."""
    return entries[-1].leader_epoch if entries else None


def truncate_from_end(entries: EpochCache, end_offset: int) -> EpochCache:
    """Drops entries that start at or past end_offset."""
    kept = len(entries)
    while kept and entries[kept - 1].start_offset >= end_offset:
        kept -= 1
    return entries[:kept]


def truncate_from_start(entries: EpochCache, log_start_offset: int) -> EpochCache:
    """Moves the epoch that covers log_start_offset there and drops those before it.

    Entries that start there stay: up to 2.0.0 there may be two.
    """
    dropped = list(takewhile(lambda e: e.start_offset < log_start_offset, entries))
    kept = entries[len(dropped) :]
    if not dropped or (kept and kept[0].start_offset == log_start_offset):
        return kept
    return (EpochEntry(dropped[-1].leader_epoch, log_start_offset), *kept)


def end_offset_for_epoch(
    entries: EpochCache, requested: int | None, log_end_offset: int, behaviour: Behaviour
) -> EpochEndOffset:
    """Where the requested epoch ends in this log, and the largest epoch up to it that is in it.

    Both are None when undefined. The columns of docs/protocol.md 2 differ: no epoch on
    either side (KAFKA-6857: then the end offset alone is known), an epoch before the cache (2.0.1),
    and the epoch in the answer (KIP-279: `as_asked` takes it out for a request that has no place
    for it). An epoch above every cached one is undefined.
    """
    if requested is None:
        if entries or behaviour.has("undefined_epoch_has_no_end"):
            return EpochEndOffset(None, None)
        return EpochEndOffset(None, log_end_offset)
    if not entries or requested > entries[-1].leader_epoch:
        return EpochEndOffset(None, None)
    if requested == entries[-1].leader_epoch:
        return EpochEndOffset(requested, log_end_offset)
    if requested < entries[0].leader_epoch:
        if not behaviour.has("epoch_before_cache_has_end"):
            return EpochEndOffset(None, None)
        return EpochEndOffset(requested, entries[0].start_offset)
    at = bisect_right(entries, requested, key=_leader_epoch)
    return EpochEndOffset(entries[at - 1].leader_epoch, entries[at].start_offset)


def _leader_epoch(entry: EpochEntry) -> int:
    return entry.leader_epoch


def as_asked(answer: EpochEndOffset, asks: Behaviour) -> EpochEndOffset:
    """The answer as it reaches who asked: before 2.0, or speaking below 2.0-IV0, without an epoch.

    The request's version decides, whatever its leader speaks.
    """
    if asks.has("epoch_end_offset_names_epoch"):
        return answer
    return EpochEndOffset(None, answer.end_offset)
