"""The rows of `_batches` and of other small tables, read without a Spark job."""

from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from replication.places import Place
from replication.spark import contracts
from replication.spark.log_files import DamagedError, added, files_in, files_of, opened, rows_of
from replication.spark.small_commit import schema_of

# Maintenance may delete a file between the look at the log and its reading.
TRIES = 3
# More rows, or more bytes, are for Spark.
FEW_ROWS, FEW_BYTES = 20_000, 4 << 20


def batch_rows(table: Place, version: int | None = None) -> list[dict[str, Any]] | None:
    """Every row, without the timestamps that are made of others; None where only Delta can tell
    which files hold them, or they lie on a store."""
    if not isinstance(table, Path):
        return None
    columns = [c for c in contracts.tables()["_batches"].told if c.type != "timestamp"]
    schema = pa.schema([schema_of("_batches").field(c.name) for c in columns])
    maps = [c.name for c in columns if c.type.startswith("map")]
    for _ in range(TRIES):
        files = files_of(table, version)
        if files is None:
            return None
        try:
            rows = rows_of([table / name for name in files], schema).to_pylist()
        except FileNotFoundError:
            continue
        for row in rows:
            absent = [c.name for c in columns if not c.nullable and row[c.name] is None]
            if absent:
                raise DamagedError(table, f"is damaged (a row without {absent[0]})")
            row |= {name: None if row[name] is None else dict(row[name]) for name in maps}
        return rows
    return None


def has_few_rows(table: Place, version: int) -> bool:
    """Whether `few_rows` would read that version, as its log tells. Raises DamagedError."""
    found = opened(table, version)
    return found is not None and _few(found) is not None


def _few(table: DeltaTable) -> dict[str, int | None] | None:
    """The files of a small table; None where it is not small, or only Spark's Delta can tell."""
    files = files_in(table)
    if files is None or sum(FEW_ROWS + 1 if n is None else n for n in files.values()) > FEW_ROWS:
        return None
    return files if sum(add["size_bytes"] for add in added(table)) <= FEW_BYTES else None


def few_rows(table: Place, version: int) -> pa.Table | None:
    """Every row of a version of a small table, with all of its columns; None where it is not small,
    or only Spark's Delta can read it. Raises DamagedError."""
    found = opened(table, version)
    files = None if found is None else _few(found)
    if found is None or files is None:
        return None
    schema = pa.schema(found.schema().to_arrow())
    try:
        return rows_of([table / name for name in files], schema)
    except FileNotFoundError:
        return None
