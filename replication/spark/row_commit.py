"""Appends one row to a Delta table without a Spark job: a Parquet file, and a commit that names it.

Each micro-batch ends with a row of `_batches`: planning, running and committing a job for that one
row would be a good part of what a small micro-batch costs. Commits are Delta's own (PROTOCOL.md:
add, txn, commitInfo), and never take the place of one that is there.
"""

import errno
import io
import json
import os
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from replication import places
from replication.places import Place
from replication.spark import contracts

# What a file system says that has no hard links.
NO_LINKS = (errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP)
TYPES = {
    "string": pa.string(),
    "bigint": pa.int64(),
    "map<string,bigint>": pa.map_(pa.string(), pa.int64()),
    "timestamp": pa.timestamp("us", tz="UTC"),
}


@dataclass(frozen=True)
class RowCommit:
    """A row for a table of string, bigint and map<string,bigint>. transaction: (appId, version).

    A timestamp is made of the column of milliseconds that `of` names. put: as `put`, for the
    file system that the table lies on.
    """

    table: contracts.Table
    row: Mapping[str, Any]
    transaction: tuple[str, int] | None = None
    put: Callable[[Any, list[dict[str, Any]]], bool] = lambda commit, actions: put(commit, actions)

    def save(self, path: str) -> int:
        """Commits it as the next version of the table there; returns that version."""
        folder = places.place(path)
        actions = [self._added(folder)]
        if self.transaction is not None:
            app, version = self.transaction
            named = {"appId": app, "version": version, "lastUpdated": milliseconds_now()}
            actions.insert(0, {"txn": named})
        log = folder / "_delta_log"
        number = newest_version(log) + 1
        while not self.put(log / f"{number:020d}.json", [commit_info(number - 1), *actions]):
            number += 1
        return number

    def _added(self, folder: Place) -> dict[str, Any]:
        """Writes the row's file; returns the action that makes it one of the table's."""
        schema = pa.schema([(c.name, TYPES[c.type]) for c in self.table.columns])
        values = {name: _listed(value) for name, value in self.row.items()}
        for column in self.table.columns:
            if column.of:
                milliseconds = self.row[column.of]
                values[column.name] = None if milliseconds is None else milliseconds * 1000
        name = f"part-00000-{uuid.uuid4()}-c000.snappy.parquet"
        file = io.BytesIO()
        pq.write_table(pa.Table.from_pylist([values], schema), file, write_page_checksum=True)
        (folder / name).write_bytes(file.getvalue())
        return added(folder, name, 1)


def _listed(value: Any) -> Any:
    return list(value.items()) if isinstance(value, dict) else value


def added(folder: Place, name: str, rows: int) -> dict[str, Any]:
    """The action that makes a file in a table's folder one of the table's."""
    return {"add": {"path": name, "partitionValues": {}, "size": (folder / name).stat().st_size,
                    "modificationTime": milliseconds_now(), "dataChange": True,
                    "stats": json.dumps({"numRecords": rows})}}  # fmt: skip


def milliseconds_now() -> int:
    """Since the Unix epoch."""
    return int(time.time() * 1000)


def newest_version(log: Place) -> int:
    """The newest version of a table, as its log's file names tell."""
    return max(int(path.name[:20]) for path in log.glob(f"{'[0-9]' * 20}*"))


def commit_info(read_version: int, *, replaces: bool = False) -> dict[str, Any]:
    """Says what a commit does. replaces: whether rows give way."""
    return {"commitInfo": {
        "timestamp": milliseconds_now(), "operation": "WRITE", "readVersion": read_version,
        "operationParameters": {
            "mode": "Overwrite" if replaces else "Append", "partitionBy": "[]",
        },
        "isolationLevel": "Serializable", "isBlindAppend": not replaces,
    }}  # fmt: skip


def put(commit: Path, actions: list[dict[str, Any]]) -> bool:
    """Writes a commit whole; False where that version is there already."""
    partial = commit.with_name(f".{commit.name}.{uuid.uuid4().hex}.tmp")
    partial.write_text("".join(json.dumps(action) + "\n" for action in actions), encoding="utf-8")
    try:
        os.link(partial, commit)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in NO_LINKS or commit.exists():
            raise
        os.rename(partial, commit)
    finally:
        partial.unlink(missing_ok=True)
    return True
