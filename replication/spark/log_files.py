"""The files of a Delta table as its log names them, without a Spark job.

Delta itself answers that with a job over the whole log (Snapshot.stateDF), which costs more than
reading a small table. Source: PROTOCOL.md (add, remove, checkpoints).
"""

import json
import re
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from replication.places import Place

COMMIT = re.compile(r"\d{20}\.json")
# What Store.create asks of writers; constraints, change data feeds, clustering ask for more.
WRITER_VERSION = 2
WHOLE_CHECKPOINT = re.compile(r"\d{20}\.checkpoint\.parquet")


def files_of(table: Place, version: int | None = None) -> dict[str, int | None] | None:
    """Path below the table -> number of rows (None: the log does not say), of the newest version or
    the one given. None where only Delta can tell: a checkpoint in parts, deletion vectors, a commit
    that is gone, a table that asks more of who writes it than appending and removing files, or one
    on a store."""
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
    found: dict[str, int | None] = {}
    try:
        actions = _of_checkpoint(log / f"{start:020d}.checkpoint.parquet") if start >= 0 else []
        for number in range(start + 1, newest + 1):
            lines = (log / f"{number:020d}.json").read_text("utf-8").splitlines()
            # What a commit removes was there before it.
            actions += sorted(
                (json.loads(line) for line in lines if line), key=lambda a: "add" in a
            )
    except FileNotFoundError:
        return None
    for action in actions:
        if not _taken(found, action):
            return None
    return found


def _of_checkpoint(path: Path) -> list[dict[str, Any]]:
    rows = pq.read_table(path, columns=["add", "protocol"]).to_pylist()
    return [{name: value} for row in rows for name, value in row.items() if value is not None]


def _taken(found: dict[str, int | None], action: dict[str, Any]) -> bool:
    """Takes an action in; False where it says what is not understood here."""
    if action.get("protocol", {}).get("minWriterVersion", 0) > WRITER_VERSION:
        return False
    if "remove" in action:
        found.pop(action["remove"]["path"], None)
    if "add" in action:
        add = action["add"]
        if add.get("deletionVector") or "%" in add["path"] or ":" in add["path"]:
            return False
        found[add["path"]] = json.loads(add.get("stats") or "{}").get("numRecords")
    return True
