"""The files of a Delta table as its log names them, without a Spark job.

Delta itself answers that with a job over the whole log (Snapshot.stateDF), which costs more than
reading a small table. Source: PROTOCOL.md (add, remove, checkpoints).
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from replication.evidence.event_dumps import NO_PARQUET
from replication.places import Place

RESTORE = (
    "restore the table's folder, or fold the events anew into new tables with an empty "
    "--checkpoint-dir"
)
COMMIT = re.compile(r"\d{20}\.json")
# What Store.create asks of writers; constraints, change data feeds, clustering ask for more.
WRITER_VERSION = 2
WHOLE_CHECKPOINT = re.compile(r"\d{20}\.checkpoint\.parquet")


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


def files_of(table: Place, version: int | None = None) -> dict[str, int | None] | None:
    """Path below the table -> number of rows (None: the log does not say), of the newest version or
    the one given. None where only Delta can tell: a checkpoint in parts, deletion vectors, a commit
    that is gone, a table that asks more of who writes it than appending and removing files, or one
    on a store."""
    found = _added(table, version)
    if found is None:
        return None
    rows = {path: json.loads(add.get("stats") or "{}") for path, add in found.items()}
    return {path: told.get("numRecords") for path, told in rows.items()}


def check_files(table: Place) -> None:
    """Looks whether all files of a table are there, as long as they were written.

    Raises DamagedError. Where only Delta can tell which they are nothing is looked at.
    """
    for name, add in (_added(table, None) or {}).items():
        try:
            size = (table / name).stat().st_size
        except FileNotFoundError:
            raise DamagedError(table / name, "is missing") from None
        if size != add["size"]:
            raise DamagedError(table / name, f"has {size} bytes, {add['size']} were written")


def _added(table: Place, version: int | None) -> dict[str, dict[str, Any]] | None:
    """Path below the table -> the action by which it became one of the table's."""
    if not isinstance(table, Path):
        return None
    log = table / "_delta_log"
    names = [path.name for path in log.iterdir()]
    through = [int(n[:20]) for n in names if COMMIT.fullmatch(n)]
    whole = [int(n[:20]) for n in names if WHOLE_CHECKPOINT.fullmatch(n)]
    newest = max(through, default=-1) if version is None else version
    start = max((v for v in whole if v <= newest), default=-1)
    if newest < 0 or not set(range(start + 1, newest + 1)) <= set(through):
        return None
    found: dict[str, dict[str, Any]] = {}
    try:
        actions = _of_checkpoint(log / f"{start:020d}.checkpoint.parquet") if start >= 0 else []
        for number in range(start + 1, newest + 1):
            # What a commit removes was there before it.
            actions += sorted(_of_commit(log / f"{number:020d}.json"), key=lambda a: "add" in a)
    except FileNotFoundError:
        return None
    for action in actions:
        if not _taken(found, action):
            return None
    return found


def _of_commit(path: Path) -> list[dict[str, Any]]:
    try:
        return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line]
    except ValueError as error:
        raise DamagedError(path, f"is damaged ({error})") from error


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


def _of_checkpoint(path: Path) -> list[dict[str, Any]]:
    with undamaged(path):
        rows = pq.read_table(path, columns=["add", "protocol"]).to_pylist()
    return [{name: value} for row in rows for name, value in row.items() if value is not None]


def _taken(found: dict[str, dict[str, Any]], action: dict[str, Any]) -> bool:
    """Takes an action in; False where it says what is not understood here."""
    if action.get("protocol", {}).get("minWriterVersion", 0) > WRITER_VERSION:
        return False
    if "remove" in action:
        found.pop(action["remove"]["path"], None)
    if "add" in action:
        add = action["add"]
        if add.get("deletionVector") or "%" in add["path"] or ":" in add["path"]:
            return False
        found[add["path"]] = add
    return True
