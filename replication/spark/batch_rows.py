"""The rows of `_batches`, read without a Spark job: a job asks for them ten times."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from replication.places import Place
from replication.spark import contracts
from replication.spark.log_files import DamagedError, files_of, undamaged
from replication.spark.row_commit import TYPES

# Maintenance may delete a file between the look at the log and its reading.
TRIES = 3
CHECKED = ds.ParquetFileFormat(
    default_fragment_scan_options=ds.ParquetFragmentScanOptions(page_checksum_verification=True)
)


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
            rows: list[dict[str, Any]] = []
            with undamaged(table):
                if paths:
                    rows = ds.dataset(paths, schema=schema, format=CHECKED).to_table().to_pylist()
        except FileNotFoundError:
            continue
        for row in rows:
            absent = [c.name for c in columns if not c.nullable and row[c.name] is None]
            if absent:
                raise DamagedError(table, f"is damaged (a row without {absent[0]})")
            row |= {name: None if row[name] is None else dict(row[name]) for name in maps}
        return rows
    return None
