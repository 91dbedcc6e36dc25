"""The rows of `_batches`, read without a Spark job: a job asks for them ten times."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from replication.places import Place
from replication.spark import contracts
from replication.spark.log_files import files_of
from replication.spark.row_commit import TYPES

# Maintenance may delete a file between the look at the log and its reading.
TRIES = 3


def batch_rows(table: Place) -> list[dict[str, Any]] | None:
    """Every row, without the timestamps that are made of others; None where only Delta can tell
    which files hold them, or they lie on a store."""
    if not isinstance(table, Path):
        return None
    columns = [c for c in contracts.tables()["_batches"].told if c.type != "timestamp"]
    schema = pa.schema([(c.name, TYPES[c.type]) for c in columns])
    maps = [c.name for c in columns if c.type.startswith("map")]
    for _ in range(TRIES):
        files = files_of(table)
        if files is None:
            return None
        try:
            # A column that an older file lacks is null.
            paths = [str(table / name) for name in files]
            rows: list[dict[str, Any]] = (
                ds.dataset(paths, schema=schema, format="parquet").to_table().to_pylist()
                if paths
                else []
            )
        except FileNotFoundError:
            continue
        for row in rows:
            row |= {name: None if row[name] is None else dict(row[name]) for name in maps}
        return rows
    return None
