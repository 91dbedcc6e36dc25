"""Every lost record that a copy holds, the keys to send again, and who was hurt: row by row."""

from collections import Counter
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from replication import progress
from replication.evidence.coordinator_records import GROUP_TOPIC
from replication.evidence.importer import Import
from replication.evidence.joining.copies import latest
from replication.evidence.joining.partition_evidence import PartitionEvidence
from replication.evidence.joining.partition_join import finished, identified
from replication.protocol.ground import events as ev
from replication.protocol.ground.events import Event
from replication.protocol.judgement.bounded import FoldedPartition, Identity
from replication.recovery.candidates import Reader
from replication.recovery.clients_told import ClientsTold
from replication.recovery.copies_at_hand import copies_at_hand, files_of, with_records
from replication.recovery.finding import NOT_HAD, OUTCOMES, Search
from replication.recovery.groups.affected_groups import read_groups
from replication.recovery.groups.affected_transactions import affected_transactions
from replication.recovery.ledger_rows import WITH_TOPIC, Ranges, Rows, rows_by_partition
from replication.recovery.moments import last_leader, log_of
from replication.recovery.newest_values import Newest
from replication.recovery.rows_out import key_rows, record_row
from replication.recovery.sightings import last_seen
from replication.recovery.unpromised import unpromised

# Under which leader the records are missing, and how many of those found each broker's log holds.
UNDER = ("leader", "leader_epoch", "log_end_offset", "parts_at", "had_by")
NO_RECORDS = "event dumps hold no records; hand over the log directories themselves"


class Sink(Protocol):
    """What takes rows, and counts them."""

    count: int

    def add(self, row: dict[str, Any]) -> None:
        """Takes one row."""


@dataclass(slots=True)
class Sinks:
    """Where rows go: those of RECORDS, KEYS, GROUPS and TRANSACTIONS; UNPROMISED if wanted."""

    records: Sink
    keys: Sink
    groups: Sink
    transactions: Sink
    unpromised: Sink | None = None


@dataclass(slots=True)
class Recovery:
    """What came of it, counted by offsets of the ledger; of_deleted: of these, those that are not
    the ledger's but went with a deleted topic. missing: ranges that no copy gave.
    without_key: (client, when it was told) of what no key is known of. unpromised: rows of
    UNPROMISED. sources: the files that records were looked for in."""

    partitions: list[dict[str, Any]] = field(default_factory=list)
    missing: list[dict[str, Any]] = field(default_factory=list)
    became: Counter[str] = field(default_factory=Counter)
    of_deleted: Counter[str] = field(default_factory=Counter)
    why_held_back: Counter[str] = field(default_factory=Counter)
    records: int = 0
    keys: int = 0
    without_key: list[tuple[str, str | None]] = field(default_factory=list)
    unpromised: list[dict[str, Any]] = field(default_factory=list)
    groups: list[dict[str, Any]] = field(default_factory=list)
    transactions: int = 0
    groups_are_known: bool = True
    notes: list[str] = field(default_factory=list)
    sources: set[Path] = field(default_factory=set)


def gather(
    imported: Import,
    folded: list[FoldedPartition],
    losses: list[dict[str, Any]],
    sinks: Sinks,
    deleted: Sequence[dict[str, Any]] = (),
) -> Recovery:
    """Fills the sinks, and tells what came of it. losses: the loss ledger; deleted: rows of records
    that went with their topics, if these are wanted."""
    result = Recovery()
    at_hand = {(p.cluster_id, p.topic, p.topic_id, p.partition): p for p in imported.partitions}
    states = {f.identity: f for f in folded}
    wanted = rows_by_partition([*losses, *deleted])
    for identity in progress.steps(list(wanted), "partitions searched"):
        rows, evidence = wanted[identity], at_hand.get(identity)
        events: list[Event] = []
        searched: set[str] = set()
        under: dict[str, Any] = dict.fromkeys(UNDER)
        if evidence is None:
            for row in rows.all:
                row.settle_rest(row.end, NOT_HAD, NO_RECORDS)
        else:
            folded_here = states[identity]
            events, searched, had_by = _search(imported, evidence, rows, folded_here, sinks, result)
            if not folded_here.state.settings.deleted:
                under = _under(folded_here, rows, had_by)
        _take(result, identity, rows, events, searched, under)
    groups = read_groups(imported, folded, losses)
    result.groups = groups.affected
    result.groups_are_known = bool(groups.logs)
    if losses and wanted and not groups.logs:
        result.notes.append(
            "which consumer groups were hurt is not known: "
            f"no copy of {GROUP_TOPIC} was handed over"
        )
    for hurt in result.groups:
        sinks.groups.add(hurt)
    for told in affected_transactions(imported, folded, losses):
        sinks.transactions.add(told)
    result.notes += dict.fromkeys(groups.notes)
    result.sources.update(groups.sources)
    result.records, result.keys = sinks.records.count, sinks.keys.count
    result.transactions = sinks.transactions.count
    return result


def _search(
    imported: Import,
    evidence: PartitionEvidence,
    rows: Rows,
    folded: FoldedPartition,
    sinks: Sinks,
    result: Recovery,
) -> tuple[list[Event], set[str], Counter[int]]:
    """Writes one partition's records and keys; its events, the copies that were searched, and how
    many of the records each broker's own log holds at the evidence's end."""
    partition = finished(evidence)
    events = list(identified(partition, imported.trace_id, imported.generation, imported.incident))
    told = ClientsTold(partition, rows)
    facts = [e.fact for e in events]
    leader, is_deleted = last_leader(folded), bool(folded.state.settings.deleted)

    def search_for(wanted: Rows) -> Search:
        return Search(
            Reader(copies_at_hand(imported, partition)),
            wanted,
            # Of a deleted topic no log counts: what its copies hold is gone.
            [] if is_deleted else log_of(folded.state, leader) or [],
            Ranges(
                (f.first_offset, f.end_offset, f)
                for f in facts
                if isinstance(f, ev.RecordsAcknowledged | ev.RecordsConsumed)
            ),
        )

    search = search_for(rows)
    led = None if leader is None else latest(partition.copies).get(leader)
    policy = folded.state.settings.cleanup_policy
    compacted = "compact" in (policy or "") and not is_deleted
    search.may_compact = compacted or policy is None
    if compacted and led is None:
        result.notes.append(
            f"{partition.topic}-{partition.partition} is compacted and its leader's log was not "
            "handed over: whether it has newer values of these keys is not known"
        )
    elif compacted and led is not None:
        keys = {f.candidate.record.key for f in search_for(deepcopy(rows)).found()}
        search.is_replaced = Newest(keys, led, min(r.first for r in rows.all)).is_newer_than
    had: set[tuple[int, int]] = set()
    had_by: Counter[int] = Counter()
    present = list(latest(partition.copies).values())
    for found in search.found():
        row, offset = found.row, found.candidate.offset
        of_it = told.of(row, offset, found.candidate)
        sinks.records.add(record_row(found, search, partition, of_it))
        result.why_held_back.update([found.held_back] if found.held_back else [])
        for key in key_rows(row, offset, partition, of_it, found):
            sinks.keys.add(key)
        had.add((id(row), offset))
        holding = (search.copies[place.copy] for place in found.candidate.places)
        had_by.update({c.broker for c in holding if any(c is p for p in present)})
    for offset in told.offsets:
        for row in rows.touching(offset, offset + 1):
            if (id(row), offset) not in had and row.outcome_at(offset) == NOT_HAD:
                for key in key_rows(row, offset, partition, told.of(row, offset, None), None):
                    sinks.keys.add(key)
                    if key["payload_id"] is None:
                        result.without_key.append((key["client"], key["acknowledged_at"]))
    if sinks.unpromised is not None and not is_deleted:
        log, state, may_compact = search.leader_spans, folded.state, search.may_compact
        for sent in unpromised(partition, led, log, rows, state, may_compact=may_compact):
            sinks.unpromised.add(sent)
            result.unpromised.append(sent)
    result.notes += [partition.shown(note) for note in search.reader.notes]
    result.sources |= files_of(search.copies)
    return events, {partition.shown(c.path) for c in with_records(search.copies)}, had_by


def _under(folded: FoldedPartition, rows: Rows, had_by: Counter[int]) -> dict[str, Any]:
    """The fields of UNDER: the leader at the evidence's end or the last one, its leader epoch (None
    where nobody saw its election), where its log ends, and from where on it lacks the records; by
    broker how many of them are there."""
    leader = last_leader(folded)
    if leader is None:
        return dict.fromkeys(UNDER)
    led = [e["leader_epoch"] for e in folded.answer.partition["elections"] if e["leader"] == leader]
    known = folded.state.replicas.get(leader)
    return {
        "leader": leader,
        "leader_epoch": led[-1] if led else None,
        "log_end_offset": None if known is None else known.log.log_end_offset,
        "parts_at": min((row.first for row in rows.all), default=None),
        "had_by": {str(b): n for b, n in sorted(had_by.items()) if b != leader},
    }


def _take(
    result: Recovery,
    identity: Identity,
    rows: Rows,
    events: list[Event],
    searched: set[str],
    under: dict[str, Any],
) -> None:
    """Counts what became of a partition's rows, and lists what was not had."""
    cluster_id, topic, topic_id, number = identity
    named = {
        "cluster_id": cluster_id or None,
        "topic": topic,
        "topic_id": topic_id or None,
        "partition": number,
    }
    became: Counter[str] = Counter()
    for row in rows.all:
        for first, end, outcome, why in row.became:
            became[outcome] += end - first
            if outcome != NOT_HAD:
                continue
            result.missing.append(
                {
                    **named,
                    "first_offset": first,
                    "end_offset": end,
                    "leader_epoch": row.leader_epoch,
                    "tier": row.tier,
                    "status": row.status,
                    "finding_id": row.finding_id,
                    "why": why,
                    "last_seen": last_seen(events, first, end, row.leader_epoch, searched),
                }
            )
    result.became.update(became)
    if any(row.status == WITH_TOPIC for row in rows.all):
        result.of_deleted.update(became)
    counts = {outcome: became[outcome] for outcome in OUTCOMES}
    result.partitions.append({**named, **counts, **under})
