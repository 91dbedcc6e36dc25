"""Puts rows into a small Delta table, in the place of others, without a Spark job.

A micro-batch changes some rows of a few small tables: Spark would plan, run and commit three or
four jobs for each (its transaction id, the files concerned, what stays in them, the new ones).
Here what stays and what is new become one Parquet file with checksums, and the library deltalake
commits it (docs/decisions/delta_without_sinks.md). It never takes the place of a commit
that is there: who comes second looks at the table again.
"""

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError
from deltalake.transaction import AddAction, RemoveAction
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from replication.spark import checksums, contracts
from replication.spark.delta_schemas import MARK, json_type
from replication.spark.fence import Fence
from replication.spark.log_files import (
    check_bytes,
    files_in,
    files_of,
    newest_version,
    opened,
    rows_of,
    undamaged,
)
from replication.spark.topic_partition_ids import PARTS, parts_of

# Of more rows than this, Spark's own way costs less than reading and writing them all.
MOST_ROWS = 50_000
# So often is a commit tried where others come first each time.
COMMIT_TRIES = 20
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


class NotSmallError(Exception):
    """The table, or a row, is for Spark: it is large, or Arrow has no such value."""


@dataclass(frozen=True)
class SmallCommit:
    """Rows for a table, the topic partitions whose rows they replace, the transaction.

    rows: all columns of the table (arrow_rows). of_query: only rows of this query give way; "": of
    any.
    """

    table: contracts.Table
    rows: pa.Table
    replaced: frozenset[str]
    transaction: tuple[str, int] | None
    of_query: str = ""

    def save(self, path: str, fence: Fence | None = None) -> int:
        """Commits them as the next version of the table there, once for its transaction; returns
        that version.

        Raises NotSmallError before anything is written, TakenOverError where a newer writer has
        raised the fence.
        """
        folder = Path(path)
        for attempt in range(COMMIT_TRIES):
            found = opened(folder)
            if found is None:
                raise NotSmallError(f"{self.table.name}: only Spark's Delta can write it")
            if fence is not None:
                fence.check(folder, found.version(), partial(found.transaction_version, fence.app))
            if self.transaction is not None and is_made(found, self.transaction):
                return found.version()
            # Maintenance may have put others in the files' place, somebody else come first.
            is_last = attempt == COMMIT_TRIES - 1
            try:
                added = self._added(folder, found)
            except FileNotFoundError:
                if is_last or newest_version(folder) == found.version():
                    raise
                continue
            try:
                self._commit(found, added, fence)
                return found.version() + 1
            except CommitFailedError:
                known = files_of(folder)
                for name in [str(add.path) for add in added]:
                    # It may have been made, and only what comes after it have failed.
                    if known is not None and name not in known:
                        (folder / name).unlink(missing_ok=True)
                        checksums.beside(folder / name).unlink(missing_ok=True)
                if is_last or newest_version(folder) == found.version():
                    raise
        raise AssertionError

    def _commit(
        self, table: DeltaTable, added: list[AddAction | RemoveAction], fence: Fence | None
    ) -> None:
        """Raises CommitFailedError where the next version is there already."""
        told = properties(self.transaction, fence)
        mode = "overwrite" if self.replaced else "append"
        table.create_write_transaction(added, mode, table.schema(), commit_properties=told)

    def _added(self, folder: Path, table: DeltaTable) -> list[AddAction | RemoveAction]:
        """Writes the file that is new; nothing where no row is."""
        rows = self.rows
        if self.replaced:
            files = files_in(table)
            if files is None:
                raise NotSmallError(f"{self.table.name}: only Spark's Delta can tell its files")
            rows = pa.concat_tables([self._kept(folder, files), rows])
        if not rows.num_rows:
            return []
        path = folder / f"part-00000-{uuid.uuid4()}-c000.snappy.parquet"
        pq.write_table(rows, path, write_page_checksum=True)
        checksums.write(path)
        found = path.stat()
        stats = json.dumps({"numRecords": rows.num_rows})
        at = found.st_mtime_ns // 1_000_000
        return [AddAction(path.name, found.st_size, {}, at, True, stats)]

    def _kept(self, folder: Path, files: Mapping[str, int | None]) -> pa.Table:
        """The rows that stay."""
        if sum(MOST_ROWS + 1 if n is None else n for n in files.values()) > MOST_ROWS:
            raise NotSmallError(f"{self.table.name} has more than {MOST_ROWS:,} rows")
        schema = schema_of(self.table.name)
        kept = pa.concat_tables([schema.empty_table(), *(_read(folder / n, schema) for n in files)])
        gone = pc.is_in(kept["topic_partition_id"], pa.array(sorted(self.replaced), pa.string()))
        if self.of_query:
            gone = pc.and_(gone, pc.fill_null(pc.equal(kept["query"], self.of_query), False))
        return kept.filter(pc.invert(gone))


def properties(
    transaction: tuple[str, int] | None, fence: Fence | None, **told: object
) -> CommitProperties:
    """Of a commit of this tool: made as exactly the next version, or not at all. told: what its
    commitInfo says besides."""
    # Tried again by the library, a commit that replaces files whose rows OPTIMIZE has moved
    # meanwhile would leave those twice, and one of an older writer would get past the fence.
    return CommitProperties(
        max_commit_retries=0,
        custom_metadata={"userMetadata": MARK, "tags": fence.tags if fence else {}, **told},
        app_transactions=[Transaction(*transaction)] if transaction else None,
    )


def _read(path: Path, schema: pa.Schema) -> pa.Table:
    """The rows of a file. Raises NotSmallError where it has a column of its owner's, or one whose
    name is damaged: either would be lost."""
    check_bytes(path)
    with undamaged(path):
        others = set(pq.read_schema(path).names) - set(schema.names)
    if others:
        raise NotSmallError(f"columns that are not ours: {', '.join(sorted(others))}")
    return rows_of([path], schema)


def is_made(table: DeltaTable, transaction: tuple[str, int]) -> bool:
    """Whether a table has the commit of a transaction, or a later one of the same appId."""
    app, version = transaction
    made = table.transaction_version(app)
    return made is not None and made >= version


def arrow_rows(table: contracts.Table, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Rows as the table has them, from their told columns; those that are made of others are made.

    Raises NotSmallError where Arrow has no such value.
    """
    made = [_with_made(table, row) for row in rows]
    try:
        found = pa.Table.from_pylist(made, schema_of(table.name))
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        raise NotSmallError(f"{table.name}: {error}") from error
    for column in table.columns:
        if not column.nullable and found[column.name].null_count:
            raise NotSmallError(f"{table.name}: {column.name} is null")
    return found


def parts_as_columns(topic_partition_id: str | None) -> dict[str, Any]:
    """What the columns of PARTS hold for a topic partition."""
    if topic_partition_id is None:
        return dict.fromkeys(PARTS)
    try:
        parts = parts_of(topic_partition_id)._asdict()
    except ValueError as error:
        raise NotSmallError(f"{topic_partition_id} is no topic partition") from error
    return {name: None if parts[name] == "" else parts[name] for name in PARTS}


def _with_made(table: contracts.Table, row: Mapping[str, Any]) -> dict[str, Any]:
    made = {name: list(v.items()) if isinstance(v, dict) else v for name, v in row.items()}
    for column in table.columns:
        if column.of and column.type == "timestamp":
            made[column.name] = _microseconds(row.get(column.of))
        elif column.of:
            made[column.name] = parts_as_columns(row.get(column.of))[column.name]
    return made


def _microseconds(moment: int | str | None) -> int | None:
    """Of milliseconds since the Unix epoch, or ISO 8601 with a zone."""
    if moment is None or isinstance(moment, int):
        return None if moment is None else moment * 1000
    try:
        at = datetime.fromisoformat(moment)
    except ValueError as error:
        raise NotSmallError(f"{moment} is no moment") from error
    if at.tzinfo is None:
        raise NotSmallError(f"{moment} names no zone")
    return (at - EPOCH) // MICROSECOND


@cache
def schema_of(table: str) -> pa.Schema:
    """A table's columns as Arrow has them."""
    fields = [
        {"name": c.name, "type": json.loads(json_type(c.type)), "nullable": True, "metadata": {}}
        for c in contracts.tables()[table].columns
    ]
    columns = StructType.fromJson({"type": "struct", "fields": fields})
    return to_arrow_schema(columns, timezone="UTC")
