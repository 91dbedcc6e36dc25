"""Who was told of a lost record, and who was given it: clients' lines, record by record.

Of several lines that name one offset those are a record's that name it by its content (a payload
id, a producer's sequence number). A line that so names another record is not its; where neither is
shown, a single line is taken for the record's as far as the ledger's tier rests on it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from replication.evidence.clients.client_logs import Acknowledgement, Consumption
from replication.evidence.joining.partition_evidence import PartitionEvidence
from replication.evidence.joining.places import Place, sequence_key
from replication.protocol.ground.model import is_within
from replication.recovery.candidates import Candidate
from replication.recovery.finding import PROMISED
from replication.recovery.ledger_rows import Row, Rows


@dataclass(slots=True)
class ToldOf:
    """The lines that tell of one record; whether they surely do."""

    acknowledged: list[Acknowledgement] = field(default_factory=list)
    consumed: list[Consumption] = field(default_factory=list)
    is_certain: bool = True

    @property
    def acks(self) -> str | None:
        """The strongest promise that a producer was given: "all" or "1"."""
        told = {a.acks for a in self.acknowledged}
        return "all" if "all" in told else "1" if "1" in told else None


class ClientsTold:
    """The clients' lines of one partition that name an offset of the ledger."""

    def __init__(self, partition: PartitionEvidence, rows: Rows) -> None:
        self._partition = partition
        self._acknowledged: dict[int, list[Acknowledgement]] = {}
        self._consumed: dict[int, list[Consumption]] = {}
        for a in partition.acknowledgements:
            told = a.status == "acked" and a.acks != "0"
            if told and a.offset is not None and rows.touching(a.offset, a.offset + 1):
                self._acknowledged.setdefault(a.offset, []).append(a)
        for c in partition.consumptions:
            if rows.touching(c.offset, c.offset + 1):
                self._consumed.setdefault(c.offset, []).append(c)

    @property
    def offsets(self) -> list[int]:
        """Every offset that a producer was told and the ledger names, in order."""
        return sorted(self._acknowledged)

    def of(self, row: Row, offset: int, candidate: Candidate | None) -> ToldOf:
        """The lines of a row's record. candidate: its bytes, None where no copy has them."""
        acknowledged, named = self._sorted_out(
            self._acknowledged.get(offset, ()), row, offset, candidate
        )
        consumed, named_too = self._sorted_out(
            self._consumed.get(offset, ()), row, offset, candidate
        )
        tied = row.acknowledged is not None or row.tier in PROMISED
        certain = named or (len(acknowledged) <= 1 and tied)
        certain = certain or not acknowledged
        certain = certain and (named_too or len(consumed) <= 1 or row.tier == "consumed")
        return ToldOf(
            [a for a in acknowledged if isinstance(a, Acknowledgement)],
            [c for c in consumed if isinstance(c, Consumption)],
            certain,
        )

    def _sorted_out(
        self,
        lines: Iterable[Acknowledgement | Consumption],
        row: Row,
        offset: int,
        candidate: Candidate | None,
    ) -> tuple[list[Acknowledgement | Consumption], bool]:
        """The lines that may tell of the record; whether they name it."""
        named, others = [], []
        for line in lines:
            places = [p for key in self._keys(line) for p in self._places(key)]
            if not places:
                others.append(line)
            elif any(_is_at(p, row, offset, candidate) for p in places):
                named.append(line)
        if named:
            return named, True
        return [line for line in others if _may_be_told_of(line, row)], False

    def _places(self, key: str) -> list[Place]:
        return self._partition.contents.places.get(key, [])

    def _keys(self, line: Acknowledgement | Consumption) -> Iterator[str]:
        name = self._partition.naming.name(line)
        if name is not None:
            yield name
        if isinstance(line, Acknowledgement):
            named = (line.producer_id, line.producer_epoch, line.sequence)
            if None not in named:
                yield sequence_key(*(n for n in named if n is not None))


def _may_be_told_of(line: Acknowledgement | Consumption, row: Row) -> bool:
    """Whether a line was written when the producers of the row got their answers."""
    if isinstance(line, Consumption) or line.ts is None:
        return True
    if row.acknowledged is None:
        return row.tier in PROMISED
    return is_within(line.ts, row.acknowledged)


def _is_at(place: Place, row: Row, offset: int, candidate: Candidate | None) -> bool:
    """Whether what a line names is where the record was, and may be that record.

    A record that no copy gave is none of those in the copies."""
    if candidate is None or place.offset != offset:
        return False
    both = place.leader_epoch, candidate.batch.leader_epoch
    if None not in both and both[0] != both[1]:
        return False
    if row.leader_epoch is not None and place.leader_epoch != row.leader_epoch:
        return False
    return not candidate.contents or place.content in candidate.contents
