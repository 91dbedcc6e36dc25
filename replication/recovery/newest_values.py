"""Whether a compacted log has a newer record of a key: to produce the older one again undoes it."""

from collections.abc import Iterable

from replication.evidence.joining.copies import Copy
from replication.evidence.log_directories.record_payloads import read_record_identities
from replication.evidence.unreadable import Unreadable
from replication.recovery.candidates import Candidate
from replication.recovery.copies_at_hand import batches_of

Place = tuple[int, int]
"""Leader epoch (-1 where the format has none) and offset: later ones are newer."""


class Newest:
    """Where a log has the newest record of each of some keys."""

    def __init__(self, keys: Iterable[bytes | None], copy: Copy) -> None:
        wanted, self._places = set(keys) - {None}, dict[bytes, Place]()
        for held in batches_of(0, copy) if wanted else ():
            if held.printed is not None or held.batch.is_control:
                continue
            records = read_record_identities(held.path, held.batch)
            for record in () if isinstance(records, Unreadable) else records:
                key = record.key_bytes
                if key is not None and key in wanted:
                    place = _place(held.batch.leader_epoch, record.offset)
                    self._places[key] = max(place, self._places.get(key, place))

    def is_newer_than(self, candidate: Candidate) -> bool:
        """Whether the log has a newer record of a candidate's key."""
        key = candidate.record.key_bytes
        place = None if key is None else self._places.get(key)
        own = _place(candidate.batch.leader_epoch, candidate.offset)
        return place is not None and place > own


def _place(leader_epoch: int | None, offset: int) -> Place:
    return (-1 if leader_epoch is None else leader_epoch, offset)
