"""A copy whose epoch file contradicts its records: the two are not of one moment.

No checksum covers leader epochs, and a file of another time lies among the others unseen. Which of
the two tells of the log is unknown, so the copy counts as unread from there on.
"""

from collections.abc import Iterable, Iterator
from itertools import pairwise

from replication.evidence.joining.copies import Copy
from replication.evidence.log_directories.log_directory import LEADER_EPOCHS
from replication.evidence.unreadable import Unreadable
from replication.protocol.ground import events as ev
from replication.protocol.ground.model import clipped
from replication.protocol.ground.versions import Behaviour, known_behaviour

Entries = tuple[tuple[int, int], ...]
_NO_END = 1 << 63


def doubted(copies: Iterable[Copy], described: ev.PartitionDescribed) -> Iterator[Unreadable]:
    """Takes from each copy what its epoch file contradicts; where that begins."""
    flags = known_behaviour(described.kafka_version, described.inter_broker_version)
    for copy in copies:
        entries = copy.directory.epoch_entries
        if not entries or copy.read_at is not None or copy.directory.kind != "replica":
            continue
        first = min(_misfits(copy, entries, flags), default=None)
        if first is None:
            continue
        copy.unread_from = first
        copy.spans = clipped(copy.spans, 0, first)
        yield Unreadable(
            str(copy.directory.path / LEADER_EPOCHS),
            "file",
            f"it contradicts the log's records at offset {first}: one of the two is of another "
            "time, so the log counts as unread from there on",
        )


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
