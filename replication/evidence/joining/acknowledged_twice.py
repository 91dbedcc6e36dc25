"""Offsets at which several records were acknowledged: all but one of these are gone.

One offset has two records only one after the other: a later leader, or the same one without
the end of its log, wrote there anew. So no log has to show the lost ones.
"""

from collections.abc import Iterable, Mapping

from replication.evidence.clients.client_logs import Acknowledgement
from replication.evidence.joining.partition_evidence import PartitionEvidence

_Line = tuple[str, int]
# After these lines a log goes on from the offset that they name.
_ENDS = {"log_loaded": "log_end_offset", "truncated": "to_offset"}


def replaced(
    evidence: PartitionEvidence,
    acked: Iterable[Acknowledgement],
    unseen: Iterable[Acknowledgement],
    seen_there: Iterable[Acknowledgement],
    wrote: Mapping[int, set[int]],
) -> set[_Line]:
    """(path, line) of unseen acknowledgements whose record is gone, whichever of them is still
    there.

    unseen: those of acked whose record no copy shows; seen_there: whose record is there now;
    wrote: offset -> the leaders when the present record was written. Of records at one offset those
    that another broker answered for, then those that were promised least, count as the lost ones.
    Empty where offsets below every one that can have been written anew are told twice as well, or
    none shows what the log means by an offset: one below them, or a record that is where it
    was told.
    """
    since = _written_anew_from(evidence)
    stands = {a.offset for a in seen_there}
    by_offset = _by_offset(unseen)
    gone = {
        offset: _least_first(records.values(), wrote.get(offset, set()))[
            : None if offset in stands else -1
        ]
        for offset, records in by_offset.items()
    }
    told = _by_offset(acked)
    twice = [offset for offset, records in told.items() if len(records) > 1]
    if since is None or not twice or since > min(twice):
        return set()
    if min(told) >= since and not stands:
        return set()
    return {(a.path, a.line) for lost in gone.values() for a in lost}


def told_twice(acked: Iterable[Acknowledgement]) -> dict[int, list[Acknowledgement]]:
    """Of each offset at which several records were acknowledged the first line of each of them."""
    told = _by_offset(acked)
    return {offset: list(each.values()) for offset, each in told.items() if len(each) > 1}


def _by_offset(acked: Iterable[Acknowledgement]) -> dict[int, dict[object, Acknowledgement]]:
    """What was acknowledged at each offset, the first line of each record."""
    found: dict[int, dict[object, Acknowledgement]] = {}
    for a in acked:
        if a.offset is not None:
            found.setdefault(a.offset, {}).setdefault(record_of(a), a)
    return found


def record_of(a: Acknowledgement) -> object:
    """What tells a record from another: its id, its sequence, or when its client was told."""
    if a.payload_id is not None:
        return a.payload_id
    if a.producer_id is not None and a.sequence is not None:
        return (a.producer_id, a.producer_epoch, a.sequence)
    return (a.client, a.ts, a.acks)


def _least_first(records: Iterable[Acknowledgement], wrote: set[int]) -> list[Acknowledgement]:
    """Records at one offset; last the one that is there now, if any is. wrote: the leaders of its
    epoch."""
    return sorted(records, key=lambda a: (a.broker in wrote, *_least_promised(a)))


def _least_promised(a: Acknowledgement) -> tuple[bool, int, str, int]:
    return (a.acks == "all", a.ts or 0, a.path, a.line)


def _written_anew_from(evidence: PartitionEvidence) -> int | None:
    """The lowest offset from which a leader can have written anew; None where no line says so."""
    found: list[int | None] = []
    for copy in evidence.copies:
        starts = [*(copy.directory.epoch_entries or ()), *((s[2], s[0]) for s in copy.spans)]
        found += [offset for leader_epoch, offset in starts if leader_epoch]
    for lines in evidence.lines.values():
        led = [f for f in lines if f.kind == "became_leader" and f.fields.get("leader_epoch")]
        found += [f.fields.get("log_end_offset") for f in led]
        found += [f.fields.get(_ENDS[f.kind]) for f in lines if f.kind in _ENDS]
    return min((offset for offset in found if offset), default=None)
