"""A copy whose leader epochs contradict each other or the controllers' log: not of one moment.

No checksum covers leader epochs, and a file of another time lies among the others unseen. Which of
the two tells of the log is unknown, so the copy counts as unread from there on.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import pairwise

from replication.evidence.joining.copies import Copy
from replication.evidence.joining.places import Place
from replication.evidence.joining.registrations import Recorded
from replication.evidence.log_directories.log_directory import LEADER_EPOCHS
from replication.evidence.unreadable import Unreadable
from replication.protocol.ground import events as ev
from replication.protocol.ground.model import clipped
from replication.protocol.ground.versions import Behaviour, known_behaviour

Entries = tuple[tuple[int, int], ...]
_NO_END = 1 << 63


def doubted(
    copies: Iterable[Copy], described: ev.PartitionDescribed, leaderless: Set[int] = frozenset()
) -> Iterator[Unreadable]:
    """Takes from each copy what is contradicted; where that begins. leaderless: see there."""
    flags = known_behaviour(described.kafka_version, described.inter_broker_version)
    for copy in copies:
        entries = copy.directory.epoch_entries or ()
        if copy.read_at is not None or copy.directory.kind != "replica":
            continue
        within = min(_misfits(copy, entries, flags), default=_NO_END) if entries else _NO_END
        led_by_nobody = min(_of(copy, entries, leaderless), default=_NO_END)
        first = min(within, led_by_nobody)
        if first == _NO_END:
            continue
        copy.unread_from = first
        copy.spans = clipped(copy.spans, 0, first)
        yield Unreadable(
            str(copy.directory.path / LEADER_EPOCHS),
            "file",
            _RECORDS.format(first) if within == first else _CONTROLLERS.format(first),
        )


def still_shown(
    places: Mapping[str, list[Place]], copies: Sequence[Copy]
) -> dict[str, list[Place]]:
    """Of the places of what clients name those that a copy shows: none that counts as unread."""

    def is_shown(place: Place) -> bool:
        return any(
            (span.leader_epoch, span.content) == (place.leader_epoch, place.content)
            for copy in copies
            for span in clipped(copy.spans, place.offset, place.offset + 1)
        )

    return {name: [p for p in found if is_shown(p)] for name, found in places.items()}


_RECORDS = (
    "it contradicts the log's records at offset {}: one of the two is of another time, so the log "
    "counts as unread from there on"
)
_CONTROLLERS = (
    "it or the log's records name a leader epoch from offset {} on in which the controllers' log "
    "has no leader: one of them is of another time, so the log counts as unread from there on"
)


def leaderless(recorded: Iterable[Recorded]) -> Set[int]:
    """Leader epochs that the controllers' own records give to no leader.

    Each change of leader has an epoch of its own (PartitionChangeBuilder; Election in ZooKeeper
    mode), so no record is of such an epoch, and no file names it.
    """
    own = [r.fact for r in recorded if r.source.line is None]
    led = {fact.leader_epoch for fact in own if fact.leader is not None}
    return {fact.leader_epoch for fact in own if fact.leader is None} - led


def _of(copy: Copy, entries: Entries, epochs: Set[int]) -> Iterator[int]:
    """Where the file or the records name one of these epochs."""
    yield from (start for leader_epoch, start in entries if leader_epoch in epochs)
    yield from (span.first_offset for span in copy.spans if span.leader_epoch in epochs)


def _misfits(copy: Copy, entries: Entries, flags: Behaviour | None) -> Iterator[int]:
    """Offsets at which a record has another epoch than the file says (LeaderEpochFileCache).

    Up to 2.0.0 an epoch that falls leaves no trace in the file. One that rises is entered with its
    first record; the file of a broker that was not stopped may lag behind.
    """
    falls = flags is None or not flags.has("epoch_cached_at_election")
    ends = [start for _, start in entries[1:]] + [_NO_END]
    rises = all(a < b for a, b in pairwise(leader_epoch for leader_epoch, _ in entries))
    for (filed, start), end in zip(entries, ends, strict=True) if rises else ():
        for span in clipped(copy.spans, start, end) if start < end else ():
            if span.leader_epoch is None or span.leader_epoch == filed:
                continue
            lags = span.leader_epoch > entries[-1][0] and not copy.clean
            if not lags and (span.leader_epoch > filed or not falls):
                yield span.first_offset
