"""Records of which a producer's own log should tell and does not: the log is not all here.

A log of acknowledgements that was cut where a line ends looks whole. But a producer that writes a
line for each attempt leaves no record without one. So lines are missing where a producer (by its
id, KIP-98) has records that lines name and others that no line names; and that producer may have
an acknowledgement of a record that no line names and that the leader's log lacks.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from replication.evidence.clients.client_logs import Acknowledgement
from replication.evidence.joining.places import Place
from replication.protocol.ground.model import Span, clipped

OF_THE_SAME = "the brokers' logs hold records of the same producers that no line tells of"


@dataclass(slots=True)
class Untold:
    """What lines tell of, by id, else by offset, and what was found of each producer.

    told_of, untold: producer ids with records that lines tell of, and with others.
    """

    ids: frozenset[str]
    offsets: frozenset[int]
    told_of: set[int] = field(default_factory=set)
    untold: set[int] = field(default_factory=set)

    def take(self, offset: int, names: Iterable[str], producer_id: int | None) -> None:
        """A record as some copy holds it."""
        if producer_id is not None:
            told = offset in self.offsets or any(name in self.ids for name in names)
            (self.told_of if told else self.untold).add(producer_id)

    def shows(
        self, places: Mapping[str, Sequence[Place]], leader: Sequence[Span], end: int | None
    ) -> str | None:
        """How it shows that lines are missing; None where nothing does.

        places: where the records are, by their names. leader: the log that counts, of a topic
        that is not compacted. end: where it ends, if that is known.
        """
        if self.told_of & self.untold:
            return OF_THE_SAME
        known = {place for name in self.ids for place in places.get(name, ())}
        lacking = [
            place.offset
            for found in places.values()
            for place in found
            if place not in known
            and place.offset not in self.offsets
            and _is_lacking(place, leader, end)
        ]
        if not lacking:
            return None
        return f"no line tells of the record at offset {min(lacking)} that the leader's log lacks"


def _is_lacking(place: Place, leader: Sequence[Span], end: int | None) -> bool:
    """Whether another record is there, or the log ends before it."""
    if end is not None and place.offset >= end:
        return True
    held = clipped(leader, place.offset, place.offset + 1)
    return any(s.content not in (None, place.content) for s in held)


def untold_by(lines: Iterable[Acknowledgement]) -> Untold | None:
    """To be held against a partition's records; None where a line names no record at all."""
    ids: set[str] = set()
    offsets: set[int] = set()
    for line in lines:
        if line.payload_id is not None:
            ids.add(line.payload_id)
        elif line.offset is not None:
            offsets.add(line.offset)
        else:
            return None
    return Untold(frozenset(ids), frozenset(offsets)) if ids else None
