"""The files of a Delta table as its log names them, read by the library deltalake without Spark.

Delta in Spark answers that with a job over the whole log, which costs more than reading a small
table.
"""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from replication.evidence.event_dumps import NO_PARQUET
from replication.places import Place
from replication.spark import checksums

RESTORE = (
    "restore the table's folder, or fold the events anew into new tables with an empty "
    "--checkpoint-dir"
)
COMMIT = re.compile(r"\d{20}\.json")
# Spark writes moments as INT96, which are nanoseconds, and end in 2262, where nothing is said.
CHECKED = ds.ParquetFileFormat(
    coerce_int96_timestamp_unit="us",
    default_fragment_scan_options=ds.ParquetFragmentScanOptions(page_checksum_verification=True),
)
# What Store.create asks of writers; constraints, change data feeds, clustering ask for more.
WRITER_VERSION = 2


class DamagedError(RuntimeError):
    """A file of the tables is not as it was written; the text says which, and what to do."""

    def __init__(self, path: Place, what: str) -> None:
        super().__init__(f"{path} {what}: {RESTORE}")


@contextmanager
def undamaged(path: Place) -> Iterator[None]:
    """Reading a file of the tables: what Arrow says of one that is damaged is said with a remedy.

    Raises DamagedError; FileNotFoundError where the file is gone.
    """
    try:
        yield
    except FileNotFoundError:
        raise
    except NO_PARQUET as error:
        if getattr(error, "errno", None) in (None, 0):
            raise DamagedError(path, f"is damaged ({str(error).splitlines()[0]})") from error
        raise


def check_bytes(path: Place) -> None:
    """Holds every byte of a file against the checksums beside it, where there are some.

    Raises DamagedError; FileNotFoundError where the file is gone.
    """
    problem = checksums.problem(path) if isinstance(path, Path) else None
    if problem is not None:
        raise DamagedError(path, f"is damaged ({problem})")


def rows_of(files: Sequence[Place], schema: pa.Schema) -> pa.Table:
    """The rows of Parquet files with a table's columns; one that an older file lacks is null.

    Raises DamagedError; FileNotFoundError where a file is gone.
    """
    if not files:
        return schema.empty_table()
    for path in files:
        check_bytes(path)
    with undamaged(files[0] if len(files) == 1 else files[0].parent):
        return ds.dataset([str(path) for path in files], schema=schema, format=CHECKED).to_table()


def newest_version(table: Place) -> int:
    """The newest version of a table, as its log's file names tell. Raises DamagedError where there
    is none."""
    version = version_there(table)
    if version < 0:
        raise DamagedError(table / "_delta_log", "holds no commit")
    return version


def version_there(table: Place) -> int:
    """The same; -1 where there is no commit, or no such folder."""
    log = table / "_delta_log"
    return max((int(path.name[:20]) for path in log.glob(f"{'[0-9]' * 20}*")), default=-1)


def opened(table: Place, version: int | None = None) -> DeltaTable | None:
    """A table for reading its log, and for commits without Spark. None where that is for Spark's
    Delta: on a store, where the table asks more of who writes it than appending and removing files
    (deletion vectors, change data), or where a commit is gone.

    version: None for the newest. Raises DamagedError.
    """
    if not isinstance(table, Path):
        return None
    try:
        found = DeltaTable(table, version=version)
    except DeltaError as error:
        if "(os error " in str(error):
            raise
        _check_commits(table)
        if "found gap" in str(error):
            return None
        raise DamagedError(table, f"is damaged ({str(error).splitlines()[0]})") from error
    return found if found.protocol().min_writer_version <= WRITER_VERSION else None


def _check_commits(table: Path) -> None:
    """Raises DamagedError where a commit is no list of actions."""
    for path in sorted((table / "_delta_log").glob("*.json")):
        try:
            for line in path.read_text("utf-8").splitlines():
                json.loads(line or "{}")
        except ValueError as error:
            raise DamagedError(path, f"is damaged ({error})") from error


def files_of(table: Place, version: int | None = None) -> dict[str, int | None] | None:
    """Path below the table -> number of rows (None: the log does not say), of the newest version or
    the one given. None where only Spark's Delta can tell."""
    found = opened(table, version)
    return None if found is None else files_in(found)


def files_in(table: DeltaTable) -> dict[str, int | None] | None:
    """The same of a table that is open."""
    rows = {str(add["path"]): add["num_records"] for add in added(table)}
    return None if any("%" in path or ":" in path for path in rows) else rows


def check_files(table: Place) -> None:
    """Looks whether all files of a table are there, as long as they were written.

    Raises DamagedError. Where only Spark's Delta can tell which they are nothing is looked at.
    """
    found = opened(table)
    for add in [] if found is None else added(found):
        path = table / str(add["path"])
        try:
            size = path.stat().st_size
        except FileNotFoundError:
            raise DamagedError(path, "is missing") from None
        if size != add["size_bytes"]:
            raise DamagedError(path, f"has {size} bytes, {add['size_bytes']} were written")


def added(table: DeltaTable) -> list[dict[str, Any]]:
    """Path, size_bytes and num_records of each file of a table that is open."""
    columns = ["path", "size_bytes", "num_records"]
    found = pa.table(table.get_add_actions())
    return found.select([name for name in columns if name in found.column_names]).to_pylist()


def commits_after(table: Place, version: int | None) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """The versions after one (None: all that are there), with the actions of their commits, as far
    as they can be read."""
    log = table / "_delta_log"
    if version is None:
        there = (int(path.name[:20]) for path in log.glob("*.json") if COMMIT.fullmatch(path.name))
        version = min(there, default=0) - 1
    while True:
        version += 1
        try:
            lines = (log / f"{version:020d}.json").read_text("utf-8").splitlines()
            yield version, [json.loads(line) for line in lines if line]
        except (OSError, ValueError):
            return


def changes_rows(action: dict[str, Any]) -> bool:
    """Whether an action of a Delta commit changes rows, not only in which file they are."""
    files = (what for name, what in action.items() if name in ("add", "remove", "cdc"))
    return any(what.get("dataChange", True) for what in files)
