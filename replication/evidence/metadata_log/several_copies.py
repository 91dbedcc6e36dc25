"""One history out of several copies of one cluster's metadata log."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from replication.evidence.metadata_log.history import ConfigChange, MetadataHistory
from replication.evidence.unreadable import Unreadable


def are_of_two_lives(a: MetadataHistory, b: MetadataHistory) -> bool:
    """Whether two copies under one cluster id are of different logs: formatted anew in between.

    Copies of one log share its records where both have it. These have something to tell of the same
    metadata offsets, and yet no broker's process, no topic and no election of a controller is in
    both.
    """
    first = max(a.first_offset, b.first_offset)
    end = min(a.known_end_offset, b.known_end_offset)
    if not all(any(first <= o < end for o in _told_offsets(copy)) for copy in (a, b)):
        return False
    return not any(mine & theirs for mine, theirs in zip(_known(a), _known(b), strict=True))


def _told_offsets(copy: MetadataHistory) -> Iterator[int]:
    yield from (change.metadata_offset for change in copy.controllers)
    yield from (change.metadata_offset for change in copy.brokers)
    yield from (change.metadata_offset for change in copy.changes)


def _known(copy: MetadataHistory) -> tuple[set[Any], set[Any], set[Any]]:
    """Topics, broker processes and controllers that no other log has."""
    processes = {(b.broker, b.incarnation) for b in copy.brokers if b.incarnation is not None}
    controllers = {(c.metadata_offset, c.controller, c.at) for c in copy.controllers}
    return set(copy.topics), processes, controllers


def longest_history(histories: Iterable[MetadataHistory]) -> MetadataHistory:
    """One history from several copies of one cluster's metadata log (at least one; ValueError).

    Copies are prefixes of one another except for tails that the quorum never accepted. Raft
    decides: two logs with the same leader epoch at an offset are equal up to it, and of two that
    differ the one with the higher last epoch counts, then the longer. A copy that is damaged counts
    up to its damage. The losing tails are reported in `unreadable`. Where the winner begins with a
    snapshot and another copy still has what was before, the two are joined.
    """
    copies = sorted(histories, key=lambda copy: copy.path)
    if not copies:
        raise ValueError("no copy of the metadata log was given")
    best = max(copies, key=_up_to_dateness)
    unreadable = [one for copy in copies for one in copy.unreadable]
    agreeing = [best]
    for copy in copies:
        if copy is best:
            continue
        offset = _first_difference(best, copy)
        if offset is None:
            agreeing.append(copy)
            continue
        reason = (
            f"from metadata offset {offset} on this copy differs from {best.path}, which the quorum"
            " went on with: its own records from there on do not count"
        )
        unreadable.append(Unreadable(copy.path, "file", reason))
    joined = _with_earlier_part(best, agreeing)
    committed = [copy.committed_end_offset or 0 for copy in agreeing]
    committed.append(_held_by_majority(best, agreeing))
    return replace(
        joined,
        committed_end_offset=min(max(committed), best.end_offset) or None,
        unknown_since=_unknown_since(best, agreeing),
        unreadable=tuple(dict.fromkeys(unreadable)),
    )


def _unknown_since(best: MetadataHistory, agreeing: Iterable[MetadataHistory]) -> int | None:
    """From where on none of the copies tells what some of them had."""
    later = [copy.unknown_since for copy in agreeing if copy.unknown_since is not None]
    known = best.end_offset if best.unknown_since is None else best.unknown_since
    return min((offset for offset in later if offset >= known), default=None)


def _up_to_dateness(copy: MetadataHistory) -> tuple[int, int, int, int]:
    end = copy.known_end_offset
    last_epoch = _epoch_at(copy, end - 1)
    return (-1 if last_epoch is None else last_epoch, end, copy.end_offset, -copy.first_offset)


def _epoch_at(copy: MetadataHistory, offset: int) -> int | None:
    """The leader epoch under which the record at `offset` was written; None outside this log."""
    if offset >= copy.end_offset:
        return None
    below = [leader_epoch for leader_epoch, start in copy.epoch_starts if start <= offset]
    return below[-1] if below else None


def _first_difference(best: MetadataHistory, copy: MetadataHistory) -> int | None:
    """The first offset both hold under different leader epochs."""
    starts = {start for one in (best, copy) for _, start in one.epoch_starts}
    for offset in sorted(starts):
        ours, theirs = _epoch_at(best, offset), _epoch_at(copy, offset)
        if ours is not None and theirs is not None and ours != theirs:
            return offset
    return None


def _held_by_majority(best: MetadataHistory, copies: list[MetadataHistory]) -> int:
    """Up to where a majority of the voters holds the log, in the newest epoch's part of it; or 0.

    Only records of the newest epoch are committed by being held by a majority (Raft, 5.4.2); with
    one of them everything below is.
    """
    ends: dict[int, int] = {}
    for copy in copies:
        if copy.node_id in best.voters and copy.node_id is not None:
            ends[copy.node_id] = max(ends.get(copy.node_id, 0), copy.known_end_offset)
    needed = len(best.voters) // 2 + 1
    if len(ends) < needed or not best.epoch_starts:
        return 0
    held = sorted(ends.values(), reverse=True)[needed - 1]
    return held if held > best.epoch_starts[-1][1] else 0


def _with_earlier_part(best: MetadataHistory, agreeing: list[MetadataHistory]) -> MetadataHistory:
    """`best` with what a copy from before its snapshot adds."""
    start = best.first_offset
    earlier = [
        copy
        for copy in agreeing
        if copy.first_offset < start <= copy.known_end_offset and copy.damaged_from is None
    ]
    if not earlier:
        return best
    first = min(earlier, key=lambda copy: copy.first_offset)

    def spliced(old: Iterable[Any], new: Iterable[Any]) -> tuple[Any, ...]:
        # What a snapshot tells counts for the offset before its end: the older copy has it for
        # real.
        return (
            *(one for one in old if one.metadata_offset < start),
            *(one for one in new if one.metadata_offset >= start),
        )

    def spliced_configs(
        old: dict[str, tuple[ConfigChange, ...]], new: dict[str, tuple[ConfigChange, ...]]
    ) -> dict[str, tuple[ConfigChange, ...]]:
        return {name: spliced(old.get(name, ()), new.get(name, ())) for name in {**old, **new}}

    epochs = dict((*best.epoch_starts, *first.epoch_starts))
    topics = dict(first.topics)
    for topic_id, topic in best.topics.items():
        known = topics.get(topic_id, topic)
        topics[topic_id] = topic._replace(created_at=topic.created_at or known.created_at)
    return replace(
        best,
        topics=topics,
        topic_configs=spliced_configs(first.topic_configs, best.topic_configs),
        cluster_configs=spliced_configs(first.cluster_configs, best.cluster_configs),
        changes=spliced(first.changes, best.changes),
        brokers=spliced(first.brokers, best.brokers),
        controllers=spliced(first.controllers, best.controllers),
        first_offset=first.first_offset,
        epoch_starts=tuple(sorted(epochs.items())),
    )
