"""The command `recover`: what the ledger calls lost and a copy still holds, written to a folder."""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from replication import progress
from replication.evidence.importer import Import
from replication.evidence.joining.partition_evidence import PartitionEvidence
from replication.evidence.joining.partition_join import finished, identified
from replication.protocol.ground import events as ev
from replication.protocol.ground.events import Event
from replication.protocol.judgement.bounded import FoldedPartition, Identity
from replication.recovery.candidates import Reader
from replication.recovery.clients_told import ClientsTold
from replication.recovery.copies_at_hand import copies_at_hand, with_records
from replication.recovery.finding import (
    ABORTED,
    CONTROL,
    HELD_BACK,
    NOT_HAD,
    OUTCOMES,
    RECOVERED,
    WHY_HELD_BACK,
    Search,
)
from replication.recovery.folder import Table, prepared, unchanged_since, write_text
from replication.recovery.groups.affected_groups import GROUPS, group_names, read_groups
from replication.recovery.groups.affected_transactions import (
    TRANSACTIONS,
    affected_transactions,
)
from replication.recovery.ledger_rows import Ranges, Rows, rows_by_partition
from replication.recovery.moments import last_leader, log_of
from replication.recovery.rows_out import KEYS, RECORDS, key_rows, record_row
from replication.recovery.sightings import last_seen
from replication.reports.event_words import offset_range
from replication.reports.inventory_words import counted
from replication.reports.safe_text import plain

ALL_HAD, NOT_ALL_HAD = 0, 1
DECIDING = ("committed_records_survive", "acknowledged_records_survive")
MOST_RANGES = 20
WORDS = {
    RECOVERED: "recovered",
    HELD_BACK: "held back",
    NOT_HAD: "not had",
    CONTROL: "control records left out",
    ABORTED: "of aborted transactions left out",
}
NO_RECORDS = "event dumps hold no records; hand over the log directories themselves"


def arguments(command: argparse.ArgumentParser) -> None:
    """What `recover` takes besides the evidence."""
    command.add_argument(
        "--out",
        required=True,
        type=Path,
        metavar="FOLDER",
        help="a new or empty folder for the records, the keys, and what could not be had",
    )


@dataclass(slots=True)
class Recovery:
    """What came of it, counted by offsets of the ledger. missing: ranges that no copy gave.
    sources: the files that records are from."""

    partitions: list[dict[str, Any]] = field(default_factory=list)
    missing: list[dict[str, Any]] = field(default_factory=list)
    became: Counter[str] = field(default_factory=Counter)
    why_held_back: Counter[str] = field(default_factory=Counter)
    records: int = 0
    keys: int = 0
    groups: list[dict[str, Any]] = field(default_factory=list)
    transactions: int = 0
    notes: list[str] = field(default_factory=list)
    sources: set[Path] = field(default_factory=set)


def run(
    options: argparse.Namespace,
    imported: Import,
    folded: list[FoldedPartition],
    answer: dict[str, Any],
    began: int,
) -> int:
    """began: when reading the evidence did, ns since the Unix epoch.

    Exit status: 0 all that the ledger names was had, 1 not all of it (or not surely).

    Raises folder.NotUsable.
    """
    folder = prepared(options.out, options.paths)
    progress.doing("looking for the records")
    result = recover(imported, folded, answer, folder, began)
    print(summary_text(result, answer, folder), end="")
    for note in result.notes:
        print(f"note: {plain(note)}", file=sys.stderr)
    lacking = result.became[NOT_HAD] + result.became[HELD_BACK]
    return NOT_ALL_HAD if lacking else ALL_HAD


def recover(
    imported: Import,
    folded: list[FoldedPartition],
    answer: dict[str, Any],
    folder: Path,
    began: int,
) -> Recovery:
    """Writes what can be had to the folder, and tells what came of it.

    Raises NotUsable where evidence was changed since `began`; then nothing is written.
    """
    result = Recovery()
    at_hand = {(p.cluster_id, p.topic, p.topic_id, p.partition): p for p in imported.partitions}
    states = {f.identity: f for f in folded}
    wanted = rows_by_partition(answer)
    with (
        Table(folder, "records", RECORDS) as records,
        Table(folder, "lost_records_keys", KEYS) as keys,
        Table(folder, "affected_groups", GROUPS) as hurt,
        Table(folder, "affected_transactions", TRANSACTIONS) as transactions,
    ):
        for identity in progress.steps(list(wanted), "partitions searched"):
            rows, evidence = wanted[identity], at_hand.get(identity)
            events: list[Event] = []
            searched: set[str] = set()
            if evidence is None:
                for row in rows.all:
                    row.settle_rest(row.end, NOT_HAD, NO_RECORDS)
            else:
                events, searched = _search(
                    imported, evidence, rows, states[identity], records, keys, result
                )
            _take(result, identity, rows, events, searched)
        groups = read_groups(imported, folded, answer["losses"])
        result.groups = groups.affected
        for hurt_row in result.groups:
            hurt.add(hurt_row)
        told = affected_transactions(imported, folded, answer["losses"])
        result.transactions = len(told)
        for told_row in told:
            transactions.add(told_row)
        result.notes += dict.fromkeys(groups.notes)
        result.sources.update(groups.sources)
        unchanged_since(began, result.sources, imported.collection.unpacked.into)
        result.records, result.keys = records.count, keys.count
    lines = "".join(json.dumps(m, separators=(",", ":")) + "\n" for m in result.missing)
    write_text(folder / "not_recovered.jsonl", lines)
    write_text(folder / "summary.json", json.dumps(_summary(result), indent=1) + "\n")
    return result


def _search(
    imported: Import,
    evidence: PartitionEvidence,
    rows: Rows,
    folded: FoldedPartition,
    records: Table,
    keys: Table,
    result: Recovery,
) -> tuple[list[Event], set[str]]:
    """Writes one partition's records and keys; its events, and the copies that were searched."""
    partition = finished(evidence)
    events = list(identified(partition, imported.trace_id, imported.generation, imported.incident))
    told = ClientsTold(partition, rows)
    facts = [e.fact for e in events]
    search = Search(
        Reader(copies_at_hand(imported, partition)),
        rows,
        log_of(folded.state, last_leader(folded)) or [],
        Ranges(
            (f.first_offset, f.end_offset, f)
            for f in facts
            if isinstance(f, ev.RecordsAcknowledged | ev.RecordsConsumed)
        ),
    )
    had: set[tuple[int, int]] = set()
    for found in search.found():
        row, offset = found.row, found.candidate.offset
        of_it = told.of(row, offset, found.candidate)
        records.add(record_row(found, search, partition, of_it))
        result.why_held_back.update([found.held_back] if found.held_back else [])
        for key in key_rows(row, offset, partition, of_it, found):
            keys.add(key)
        had.add((id(row), offset))
        result.sources.update(place.path for place in found.candidate.places)
    for offset in told.offsets:
        for row in rows.touching(offset, offset + 1):
            if (id(row), offset) not in had and row.outcome_at(offset) == NOT_HAD:
                for key in key_rows(row, offset, partition, told.of(row, offset, None), None):
                    keys.add(key)
    result.notes += [partition.shown(note) for note in search.reader.notes]
    return events, {partition.shown(c.path) for c in with_records(search.copies)}


def _take(
    result: Recovery, identity: Identity, rows: Rows, events: list[Event], searched: set[str]
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
    result.partitions.append({**named, **{outcome: became[outcome] for outcome in OUTCOMES}})


def _summary(result: Recovery) -> dict[str, Any]:
    return {
        "offsets": {outcome: result.became[outcome] for outcome in OUTCOMES},
        "held_back": dict(sorted(result.why_held_back.items())),
        "records_written": result.records,
        "keys_written": result.keys,
        "groups_hurt": len(group_names(result.groups)),
        "transactions_hurt": result.transactions,
        "partitions": result.partitions,
        "notes": result.notes,
    }


def summary_text(result: Recovery, answer: dict[str, Any], folder: Path) -> str:
    """What came of it, for people."""
    return "".join(f"{plain(line)}\n" for line in _lines(result, answer, folder))


def _lines(result: Recovery, answer: dict[str, Any], folder: Path) -> Iterator[str]:
    became = result.became
    total = sum(became.values())
    if not total:
        yield "The loss ledger names no record that is not back: there is nothing to recover."
    else:
        whose = counted(total, "offset")
        yield f"{became[RECOVERED]} of {whose} that the loss ledger names are in {folder}."
    for p in result.partitions:
        told = ", ".join(f"{p[o]} {WORDS[o]}" for o in OUTCOMES if p[o])
        yield f"  {p['topic']}-{p['partition']}: {told}"
    for why, count in sorted(result.why_held_back.items()):
        yield f"Held back, {counted(count, 'record')} ({why}): {WHY_HELD_BACK[why]}."
    for missing in result.missing[:MOST_RANGES]:
        yield _not_had(missing)
    if len(result.missing) > MOST_RANGES:
        yield f"... and {len(result.missing) - MOST_RANGES} more ranges in not_recovered.jsonl"
    if result.groups:
        hurt = counted(len(group_names(result.groups)), "consumer group")
        yield f"Hurt: {hurt}; affected_groups.jsonl says how."
    if result.transactions:
        hurt = counted(result.transactions, "transaction")
        yield f"Hurt: {hurt}; affected_transactions.jsonl says how."
    unknown = sorted(
        {
            f"{v['topic']}-{v['partition']}"
            for v in answer["verdicts"]
            if v["verdict"] == "UNKNOWN" and v["invariant"] in DECIDING
        }
    )
    if unknown:
        more = f" and {len(unknown) - 5} more" if len(unknown) > 5 else ""
        yield (
            f"More may be lost than the ledger names in {', '.join(unknown[:5])}{more}: "
            "`diagnose` is UNKNOWN there and says what would settle it."
        )


def _not_had(missing: dict[str, Any]) -> str:
    where = f"{missing['topic']}-{missing['partition']}"
    seen = missing["last_seen"]
    told = f"; last seen: {seen[-1]['told']}" if seen else ""
    asked = offset_range(missing["first_offset"], missing["end_offset"])
    return f"Not had, {where} {asked}: {missing['why']}{told}"
