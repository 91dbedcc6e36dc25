"""Which clients' lines are of a record: by its name or its producer's sequence number; else by its
offset, by who answered, and by when."""

from collections.abc import Callable, Iterator, Sequence

from replication.evidence.clients.client_logs import Acknowledgement, Consumption
from replication.evidence.joining.partition_evidence import PartitionEvidence
from replication.evidence.joining.promised_records import led_by
from replication.recovery.candidates import Candidate

Line = Acknowledgement | Consumption
NAMED, PERHAPS, ANOTHERS = "named", "perhaps", "another's"
# By how much a record's own time and its client's lines may differ, ms.
_APART = 2_000


class WhoseLines:
    """The clients' lines of one partition. Several records may have been at an offset in turn."""

    def __init__(self, evidence: PartitionEvidence) -> None:
        self._evidence, self._led = evidence, led_by(evidence)
        self._at: dict[object, list[tuple[int, Line]]] = {}
        lines: list[Line] = [*evidence.acknowledgements, *evidence.consumptions]
        for number, line in enumerate(lines):
            for what in {line.offset, evidence.naming.name(line), _sequence(line)} - {None}:
                self._at.setdefault(what, []).append((number, line))

    def of(
        self, offset: int, candidate: Candidate | None, here: Sequence[Candidate]
    ) -> Iterator[tuple[Line, bool]]:
        """The lines that are of a record, or may be, and whether they name it. candidate: its
        bytes, None where no copy has them; here: all whose bytes copies have at the offset."""
        keys: list[object] = [offset]
        if candidate is not None:
            keys += [_own_sequence(candidate), *self._evidence.naming.names(candidate.record)]
        lines = dict(found for what in keys for found in self._at.get(what, ()))
        for _, line in sorted(lines.items()):
            told = PERHAPS if candidate is None else self.tells(line, candidate)
            may_be = line.offset == offset and told == PERHAPS
            if told == NAMED or (may_be and not self._is_of_others(line, candidate, here)):
                yield line, told == NAMED

    def is_of_none(
        self, offset: int, here: Sequence[Candidate], meant: Callable[[Line], bool]
    ) -> bool:
        """Whether one of the meant answers names the offset and is of none of these records."""
        told = [answer for answer in self._answers(offset) if meant(answer)]
        return any(all(self.tells(a, c) == ANOTHERS for c in here) for a in told)

    def are_of_others(self, candidate: Candidate) -> bool:
        """Whether every answer that names a record's offset is of another record."""
        told = self._answers(candidate.offset)
        return bool(told) and all(self.tells(a, candidate) == ANOTHERS for a in told)

    def _answers(self, offset: int) -> list[Acknowledgement]:
        lines = [line for _, line in self._at.get(offset, ())]
        return [x for x in lines if isinstance(x, Acknowledgement) and x.offset == offset]

    def tells(self, line: Line, candidate: Candidate) -> str:
        """Whether a line names a record, may be of it, or is another's."""
        named = self._evidence.naming.name(line)
        names = set(self._evidence.naming.names(candidate.record))
        if named is not None and names:
            return NAMED if named in names else ANOTHERS
        if isinstance(line, Consumption):
            return PERHAPS
        own, theirs = _own_sequence(candidate), _sequence(line)
        if own is not None and theirs is not None:
            return NAMED if own == theirs else ANOTHERS
        led = self._led.get(candidate.batch.leader_epoch or 0)
        if line.acks == "1" and line.broker is not None and led and line.broker not in led:
            return ANOTHERS
        made = candidate.record.timestamp
        late = None not in (made, line.ts) and (made or 0) > (line.ts or 0) + _APART
        return ANOTHERS if late and not candidate.record.by_broker else PERHAPS

    def _is_of_others(
        self, line: Line, candidate: Candidate | None, here: Sequence[Candidate]
    ) -> bool:
        """Whether a line is of another of the records that copies have at its offset: it names that
        one, or that one alone was made while its client sent it."""
        others = [c for c in here if c is not candidate and self.tells(line, c) != ANOTHERS]
        if any(self.tells(line, c) == NAMED for c in others):
            return True
        if candidate is None or not _fits(line, candidate):
            return any(_fits(line, c) for c in others)
        return False


def _sequence(line: Line) -> tuple[int | None, ...] | None:
    """By what an idempotent producer's line names its record."""
    if isinstance(line, Consumption):
        return None
    told = (line.producer_id, line.producer_epoch, line.sequence)
    return None if None in told else told


def _own_sequence(candidate: Candidate) -> tuple[int | None, ...] | None:
    told = (candidate.batch.producer_id, candidate.batch.producer_epoch, candidate.sequence)
    return None if None in told else told


def _fits(line: Line, candidate: Candidate) -> bool:
    """Whether a record was made while its client sent it, by its producer's clock."""
    made = candidate.record.timestamp
    sent = line.sent if isinstance(line, Acknowledgement) else None
    if made is None or line.ts is None or sent is None or candidate.record.by_broker:
        return False
    return sent - _APART <= made <= line.ts
