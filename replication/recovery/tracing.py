"""What became of single records: every place and moment that the evidence has of each.

A record is looked for by its key, its offset, its payload id, its producer id or the client that
was told of it. What is found is one story for each record: who holds it, who wrote, copied and cut
it, who was told of it and given it, what the loss ledger says, and what of it is not known.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from replication.evidence.clients.client_logs import Acknowledgement
from replication.evidence.importer import Import
from replication.evidence.joining.copies import Copy, latest, overlapping
from replication.evidence.joining.partition_evidence import PartitionEvidence
from replication.evidence.joining.partition_join import identified
from replication.evidence.log_directories.bytes_in_batches import BytesInBatches
from replication.evidence.log_directories.record_payloads import RecordIdentity
from replication.evidence.log_directories.segments import RecordBatch
from replication.protocol.folding import fold
from replication.protocol.ground.events import Event
from replication.protocol.ground.model import moment
from replication.protocol.judgement.bounded import FoldedPartition
from replication.protocol.judgement.lawful_removals import LOG_START, TOPIC_DELETED
from replication.recovery import transactions as tx
from replication.recovery.candidates import Candidate, Reader, add, alike
from replication.recovery.copies_at_hand import (
    Held,
    batches_of,
    copies_at_hand,
    files_of,
    kind_of,
)
from replication.recovery.ledger_rows import NOT_BACK, Ranges, may_be_lost
from replication.recovery.moments import Target, last_leader, log_of, tell
from replication.recovery.newest_values import Newest
from replication.recovery.rows_out import shown_record
from replication.recovery.sightings import tells
from replication.recovery.whose_lines import Line, WhoseLines

LOSS_FIELDS = ("status", "tier", "contract", "cause", "finding_id", "first_offset", "end_offset")
DECIDING = (
    "committed_records_survive", "acknowledged_records_survive", "consumed_records_survive",
)  # fmt: skip
# A record, its bytes (None where no copy has any), and the rows of the ledger that may be of it.
_Told = tuple[Target, Candidate | None, list[dict[str, Any]]]
# Of more the events are not told one by one.
MOST_WITH_MOMENTS = 200


@dataclass(frozen=True, slots=True)
class Asked:
    """Which records are meant: all that fit each of these that is not None.

    where: topic, partition and offset. client: of a line of a clients' log.
    """

    key: bytes | None = None
    where: tuple[str, int, int] | None = None
    payload_id: str | None = None
    producer_id: int | None = None
    client: str | None = None

    def by_lines(self) -> bool:
        """Whether clients' lines are asked for the offsets."""
        return self.payload_id is not None or self.client is not None

    def told(self, line: Line) -> bool:
        """Whether a client's line is of one of them."""
        return (self.payload_id is None or line.payload_id == self.payload_id) and (
            self.client is None or line.client == self.client
        )

    def may_hold(self, batch: RecordBatch, offsets: Ranges[int] | None) -> bool:
        """Whether one of them may be in a batch. offsets: where they are, if that is known."""
        if self.producer_id is not None and batch.producer_id != self.producer_id:
            return False
        return offsets is None or bool(offsets.touching(batch.base_offset, batch.end_offset))

    def is_one(self, record: RecordIdentity, offsets: Ranges[int] | None) -> bool:
        """Whether a record of such a batch is one of them."""
        if self.key is not None and record.key_bytes != self.key:
            return False
        return offsets is None or bool(offsets.touching(record.offset, record.offset + 1))


@dataclass(slots=True)
class Traced:
    """The stories of one topic partition. notes: what could not be read on the way. sources: the
    files that records were looked for in."""

    stories: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    sources: set[Path] = field(default_factory=set)


@dataclass(slots=True)
class _Partition:
    """One topic partition with all that is asked of it."""

    evidence: PartitionEvidence
    events: list[Event]
    folded: FoldedPartition
    reader: Reader
    losses: list[dict[str, Any]]
    unknown: list[dict[str, Any]]
    removed: list[dict[str, Any]]
    whose: WhoseLines
    newest: Newest | None = None


def traced(
    imported: Import, folded: list[FoldedPartition], answer: dict[str, Any], asked: Asked
) -> Iterator[Traced]:
    """The stories of the records that are asked for, partition by partition."""
    states = {f.identity: f for f in folded}
    for evidence in imported.partitions:
        with_key = None if asked.key is None else BytesInBatches(asked.key)
        name = (evidence.topic, evidence.partition)
        if asked.where is not None and asked.where[:2] != name:
            continue
        lines: list[Line] = [*evidence.acknowledgements, *evidence.consumptions]
        if asked.client is not None and not any(asked.told(line) for line in lines):
            continue
        copies = list(copies_at_hand(imported, evidence))
        if not _may_have(copies, asked, with_key):
            yield Traced(sources=files_of(copies))
            continue
        partition = imported.finished(evidence)
        identity = (evidence.cluster_id, evidence.topic, evidence.topic_id, evidence.partition)
        told = (imported.trace_id, imported.generation, imported.incident)
        yield _of_partition(
            _Partition(
                partition,
                list(identified(partition, *told)),
                states[identity],
                Reader(copies_at_hand(imported, partition)),
                _of(identity, answer["losses"]),
                [
                    v
                    for v in _of(identity, answer["verdicts"])
                    if v["verdict"] == "UNKNOWN" and v["invariant"] in DECIDING
                ],
                _of(identity, answer.get("removed", ())),
                WhoseLines(partition),
            ),
            asked,
            with_key,
        )


def _may_have(copies: list[Copy], asked: Asked, with_key: BytesInBatches | None) -> bool:
    """Whether the bytes of a key are anywhere in a partition: without them there is no story."""
    if with_key is None:
        return True
    streams = (_asked(index, copy, asked, None, with_key) for index, copy in enumerate(copies))
    return any(True for stream in streams for _ in stream)


def _of(identity: tuple[str, str, str, int], rows: Iterable[dict[str, Any]]) -> list[Any]:
    return [
        row
        for row in rows
        if identity
        == (row["cluster_id"] or "", row["topic"], row["topic_id"] or "", row["partition"])
    ]


def _of_partition(partition: _Partition, asked: Asked, with_key: BytesInBatches | None) -> Traced:
    evidence, offsets = partition.evidence, _offsets(partition, asked)
    found = _found(partition, asked, offsets, with_key)
    if any(c.batch.is_transactional for here in found.values() for c in here):
        wanted = Ranges((o, o + 1, o) for o in found)
        partition.reader.markers = tx.markers_behind(partition.reader.copies, wanted)
    result = Traced(sources=files_of(partition.reader.copies))
    with_bytes: dict[int, list[_Told]] = {}
    for offset in sorted(found):
        for candidate in found[offset]:
            partition.reader.look_for_outcome(candidate)
            known = (candidate.batch.leader_epoch, frozenset(candidate.contents), True)
            target = Target(offset, *known)
            with_bytes.setdefault(offset, []).append(
                (target, candidate, _losses(partition, target, candidate))
            )
    _look_for_newer(partition, [c for here in found.values() for c in here])
    records = [told for here in with_bytes.values() for told in here]
    for offset in () if offsets is None else offsets.all:
        records += _without_bytes(partition, offset, with_bytes.get(offset, ()), asked)
    result.notes = [evidence.shown(note) for note in partition.reader.notes]
    if len(records) <= MOST_WITH_MOMENTS:
        state = fold.new_state(*partition.folded.identity)
        tell([target for target, _, _ in records], partition.events, state)
    else:
        result.notes.append(
            f"{evidence.topic}-{evidence.partition}: {len(records)} records, "
            f"more than {MOST_WITH_MOMENTS}: their moments are left out; ask for fewer"
        )
    result.stories = [_story(partition, told, found.get(told[0].offset, ())) for told in records]
    return result


def _look_for_newer(partition: _Partition, candidates: list[Candidate]) -> None:
    """Of a compacted topic: whether the leader's log has newer records of their keys."""
    leader = last_leader(partition.folded)
    led = None if leader is None else latest(partition.evidence.copies).get(leader)
    if led is not None and _is_compacted(partition.folded):
        keys = {c.record.key for c in candidates}
        partition.newest = Newest(keys, led, min((c.offset for c in candidates), default=0))


def _is_compacted(folded: FoldedPartition) -> bool:
    return "compact" in (folded.state.settings.cleanup_policy or "")


def _offsets(partition: _Partition, asked: Asked) -> Ranges[int] | None:
    """At which offsets to look, None for all."""
    if asked.where is not None:
        found = {asked.where[2]}
    elif asked.by_lines():
        evidence = partition.evidence
        lines: list[Line] = [*evidence.acknowledgements, *evidence.consumptions]
        told = [line for line in lines if asked.told(line)]
        found = {line.offset for line in told if line.offset is not None}
        for name in {asked.payload_id, *map(evidence.naming.name, told)} - {None}:
            found |= {place.offset for place in evidence.contents.places.get(name or "", ())}
    else:
        return None
    return Ranges((o, o + 1, o) for o in found)


def _found(
    partition: _Partition,
    asked: Asked,
    offsets: Ranges[int] | None,
    with_key: BytesInBatches | None,
) -> dict[int, list[Candidate]]:
    """The records that are asked for, by offset, each once with all its places.

    Where clients' lines name those that they tell of, others at their offsets are not meant.
    """
    reader = partition.reader
    streams = (
        _asked(index, copy, asked, offsets, with_key) for index, copy in enumerate(reader.copies)
    )
    found: dict[int, list[Candidate]] = {}
    for cell in overlapping(streams):
        for equals in alike(cell):
            read = reader.read(equals, lambda r: asked.is_one(r, offsets))
            for candidate in [] if isinstance(read, str) else read:
                add(found.setdefault(candidate.offset, []), candidate)
    if not asked.by_lines():
        return found
    meant = {
        offset: [
            c
            for c in here
            if any(asked.told(line) for line, _ in partition.whose.of(offset, c, here))
        ]
        for offset, here in found.items()
    }
    return {offset: here for offset, here in meant.items() if here}


def _asked(
    index: int,
    copy: Copy,
    asked: Asked,
    offsets: Ranges[int] | None,
    with_key: BytesInBatches | None,
) -> Iterator[Held]:
    """The batches of a copy in which one of the records may be."""
    for held in batches_of(index, copy):
        if held.batch.is_control or not asked.may_hold(held.batch, offsets):
            continue
        packed = with_key is not None and held.printed is None
        if not packed or with_key is None or with_key.may_hold(held.path, held.batch):
            yield held


def _without_bytes(
    partition: _Partition, offset: int, here: Sequence[_Told], asked: Asked
) -> Iterator[_Told]:
    """The records of an offset whose bytes no copy has, here: beside these. The ledger names them,
    a client got an answer or, where copies have none, anything tells of the offset."""
    named = _losses(partition, Target(offset), None)
    if not here:
        if any(tells(e.fact, offset, offset + 1, None) for e in partition.events):
            yield Target(offset), None, named
        return
    told_already = [loss for _, _, losses in here for loss in losses]
    others = [x for x in named if x["status"] in NOT_BACK and x not in told_already]
    written_in = {x["leader_epoch"] for x in others}
    candidates = [c for _, c, _ in here if c is not None]
    is_told = partition.whose.is_of_none(offset, candidates, asked.told)
    if asked.where is None or not others or None in written_in:
        if is_told or (asked.where is not None and others):
            yield Target(offset), None, others
        return
    for known in sorted(written_in):
        yield Target(offset, known), None, [x for x in others if x["leader_epoch"] == known]


def _losses(
    partition: _Partition, target: Target, candidate: Candidate | None
) -> list[dict[str, Any]]:
    """The rows of the ledger that may be of a record."""
    found = [
        loss
        for loss in partition.losses
        if loss["first_offset"] <= target.offset < loss["end_offset"]
        and may_be_lost(loss, target.leader_epoch)
        and (
            loss["leader_epoch"] is not None
            or candidate is None
            or not partition.whose.are_of_others(candidate)
        )
    ]
    if not found or any(loss["status"] == "recovered" for loss in found):
        return found
    # Where the leader's log has the record, a row of its offset speaks of another.
    return [] if _at_leader(partition, target, candidate)["holds_it"] else found


def _story(partition: _Partition, told: _Told, here: Sequence[Candidate]) -> dict[str, Any]:
    """One record; here: all whose bytes copies have at the offset."""
    target, candidate, losses = told
    evidence, offset = partition.evidence, target.offset
    leader = _at_leader(partition, target, candidate)
    removed = next((r for r in partition.removed if is_removed_by(r, offset, leader)), None)
    return {
        "cluster_id": evidence.cluster_id or None,
        "topic": evidence.topic,
        "topic_id": evidence.topic_id or None,
        "partition": evidence.partition,
        "offset": offset,
        "leader_epoch": target.leader_epoch,
        "record": None if candidate is None else shown_record(candidate),
        "places": [] if candidate is None else list(_places(partition, candidate)),
        "clients": list(_lines(partition, offset, candidate, here)),
        "moments": target.moments,
        "leader": leader,
        "removed": None if losses else removed,
        "losses": [{name: loss[name] for name in LOSS_FIELDS} for loss in losses],
        "not_known": [
            {"invariant": v["invariant"], "reason": v["reason"], "settled_by": v["settled_by"]}
            for v in partition.unknown
        ],
    }


def is_removed_by(row: dict[str, Any], offset: int, leader: dict[str, Any]) -> bool:
    """Whether a row of `removed` is of a record that the leader's log does not have."""
    if row["why"] == TOPIC_DELETED:
        return True
    within = bool(row["first_offset"] <= offset < row["end_offset"])
    return within and (row["why"] == LOG_START or leader["has"] == "no record")


def _places(partition: _Partition, candidate: Candidate) -> Iterator[dict[str, Any]]:
    for place in candidate.places:
        copy = partition.reader.copies[place.copy]
        yield {
            "broker": copy.broker,
            "kind": kind_of(copy),
            "file": partition.evidence.shown(str(place.path)),
            "position": place.position,
            "newest_record_at": moment(copy.latest_timestamp),
        }


def _lines(
    partition: _Partition, offset: int, candidate: Candidate | None, here: Sequence[Candidate]
) -> Iterator[dict[str, Any]]:
    """Clients' lines of the record: of its offset, and of its name at any other."""
    evidence = partition.evidence
    for line, by_name in partition.whose.of(offset, candidate, here):
        told = (line.status, line.acks, line.error) if isinstance(line, Acknowledgement) else None
        what, acks, error = told or ("consumed", None, None)
        yield {
            "what": what,
            "client": line.client,
            "offset": line.offset,
            "acks": acks,
            "payload_id": line.payload_id,
            "at": moment(line.ts),
            "path": evidence.shown(line.path),
            "line": line.line,
            "names_it": by_name,
            "error": error,
        }


def _at_leader(
    partition: _Partition, target: Target, candidate: Candidate | None
) -> dict[str, Any]:
    """What the log of the (last) leader has at the offset at the evidence's end. has_newer: of a
    compacted topic, whether it has a newer record of its key; None where nothing tells."""
    leader = last_leader(partition.folded)
    spans = log_of(partition.folded.state, leader)
    if spans is None:
        not_known = dict.fromkeys(("holds_it", "has", "is_compacted", "has_newer"))
        return {"broker": leader, **not_known}
    here = [s for s in spans if s.first_offset <= target.offset < s.end_offset]
    has = f"a record of leader epoch {here[0].leader_epoch}" if here else "no record"
    newest = partition.newest
    return {
        "broker": leader,
        "holds_it": target.is_in(here),
        "has": has,
        "is_compacted": _is_compacted(partition.folded),
        "has_newer": newest.is_newer_than(candidate) if newest and candidate else None,
    }
