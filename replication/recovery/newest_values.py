"""Whether a compacted log has a newer record of a key: to produce the older one again undoes it."""

from collections.abc import Iterable

from replication.evidence.joining.copies import Copy
from replication.recovery import transactions as tx
from replication.recovery.candidates import Candidate, Reader
from replication.recovery.copies_at_hand import batches_of
from replication.recovery.ledger_rows import Ranges

Place = tuple[int, int]
"""Leader epoch (-1 where the format has none) and offset: later ones are newer."""


class Newest:
    """Where a log has the newest record of each of some keys. lost_from: the first offset that was
    lost; from there on the log has what was written since."""

    def __init__(self, keys: Iterable[str | None], copy: Copy, lost_from: int) -> None:
        self._lost_from = lost_from
        wanted, self._places = set(keys) - {None}, dict[str, Place]()
        reader = Reader([copy])
        everything = Ranges([(0, 1 << 62, None)])
        reader.markers = tx.markers_behind([copy], everything) if wanted else tx.Markers()
        for held in batches_of(0, copy) if wanted else ():
            records = [] if held.batch.is_control else reader.read([held])
            for one in () if isinstance(records, str) else records:
                key = one.record.key
                # The cleaner lets what was aborted replace nothing.
                if key is not None and key in wanted and one.transaction != tx.ABORTED:
                    place = _place(one)
                    self._places[key] = max(place, self._places.get(key, place))

    def is_newer_than(self, candidate: Candidate) -> bool:
        """Whether the log has a newer record of a candidate's key."""
        key = candidate.record.key
        place = None if key is None else self._places.get(key)
        own = _place(candidate)
        if place is None:
            return False
        return place > own or (own[0] < 0 and place[1] >= self._lost_from)


def _place(one: Candidate) -> Place:
    leader_epoch = one.batch.leader_epoch
    return (-1 if leader_epoch is None else leader_epoch, one.offset)
