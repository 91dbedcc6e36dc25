"""The tables of what only the evidence tells, no event: the keys to send again, the consumer groups
and transactions that a loss hurt, and which replica is to lead now.

An import that is told to (--tables) writes them, each in one commit, in the place of what an
earlier one has written of the same incident and clusters. They lie beside the tables of a replay or
a stream and belong to no micro-batch of theirs: each is read as it is.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from replication.decisions.answer import due
from replication.evidence.importer import Import
from replication.protocol.judgement.bounded import FoldedPartition, fold_all
from replication.recovery.folder import unchanged_since
from replication.recovery.gathering import Sinks, gather
from replication.spark import contracts
from replication.spark.delta_schemas import MARK, quoted
from replication.spark.lost_tables import lost_evidence
from replication.spark.small_commit import schema_of
from replication.spark.tables import Store, TablesError, completed
from replication.spark.topic_partition_ids import topic_partition_id

ROWS_AT_ONCE = 50_000


@dataclass(slots=True)
class Rows:
    """Rows of one table. is_kept: False where they are only counted."""

    is_kept: bool = True
    count: int = 0
    rows: list[dict[str, Any]] = field(default_factory=list)

    def add(self, row: dict[str, Any]) -> None:
        """Takes one row."""
        self.count += 1
        if self.is_kept:
            self.rows.append(row)


def told_by(imported: Import, began: int) -> dict[str, list[dict[str, Any]]]:
    """Judges the evidence, and gives the rows by table. Raises NotUsable where a file that rows are
    from was changed since `began` (ns since the Unix epoch)."""
    folded = [
        one
        for index in range(len(imported.partitions))
        for one in fold_all(imported.events_of(index))
    ]
    folded.sort(key=lambda f: f.identity)
    losses = [x for f in folded for x in f.answer.losses]
    keys, groups, transactions = Rows(), Rows(), Rows()
    sinks = Sinks(Rows(is_kept=False), keys, groups, transactions)
    found = gather(imported, folded, losses, sinks)
    unchanged_since(began, found.sources, imported.collection.unpacked.into)
    return {
        "lost_records_keys": keys.rows,
        "affected_groups": groups.rows,
        "affected_transactions": transactions.rows,
        "decisions": list(_decisions(folded)),
    }


def _decisions(folded: list[FoldedPartition]) -> Iterable[dict[str, Any]]:
    for row in due([f.state for f in folded if f.defect is None]):
        yield {**row, "candidates": json.dumps(row["candidates"], sort_keys=True)}


def check_there(store: Store) -> None:
    """Raises TablesError where one of the tables was there and is gone: made anew, it would look
    like a whole one and lack every other incident."""
    names = [t.name for t in contracts.tables().values() if t.written == "evidence"]
    problem = lost_evidence(store.folder, names)
    if problem is not None:
        raise TablesError(problem)


def write(store: Store, imported: Import, told: dict[str, list[dict[str, Any]]]) -> None:
    """Writes the rows of each table. Raises TablesError where one of the tables is gone, or of
    other columns."""
    check_there(store)
    store.create(by_evidence=True)
    clusters = sorted({p.cluster_id for p in imported.partitions})
    named = ", ".join(quoted(cluster) for cluster in clusters)
    incident = quoted(imported.incident) if imported.incident else "NULL"
    replaced = f"incident <=> {incident} AND coalesce(cluster_id, '') IN ({named})"
    for name, rows in told.items():
        table = contracts.tables()[name]
        shown = [_row(row, table, imported.incident) for row in rows]
        schema = pa.schema([schema_of(name).field(c.name) for c in table.told])
        parts = [
            pa.Table.from_pylist(shown[first : first + ROWS_AT_ONCE], schema=schema)
            for first in range(0, len(shown), ROWS_AT_ONCE)
        ]
        whole = pa.concat_tables(parts) if parts else schema.empty_table()
        frame = store.spark.createDataFrame(whole, schema=table.ddl).coalesce(1)
        written = completed(name, frame).write.format("delta").option("replaceWhere", replaced)
        written.option("userMetadata", MARK).mode("overwrite").save(store.path(name))


def _row(row: dict[str, Any], table: contracts.Table, incident: str) -> dict[str, Any]:
    """A row with the table's columns."""
    parts = (row["cluster_id"] or "", row["topic"], row["topic_id"] or "", row["partition"])
    named = None if row["topic"] is None else topic_partition_id(*parts, incident)
    whole = {**row, "topic_partition_id": named, "incident": incident or None}
    return {c.name: whole[c.name] for c in table.told}
