"""The consistent cut: which version of each table belongs together, as rows of `_batches` say.

Each query's newest row names the tables that this query writes. Two of them have more than one
writer, so a version may hold rows of a micro-batch that is not finished: readers leave those out.
A version that is named may have been compacted and vacuumed since: later commits that only move
rows between files hold the same ones, and are read instead.
"""

import json
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from replication.places import Place

# What each query's rows of `_batches` name. A bounded replay writes all of them.
WRITTEN_BY = {
    "live": ("quarantine",),
    "ingest": ("replica_events", "quarantine"),
    "fold": (
        "isr_and_leadership", "replica_states", "findings", "divergences", "loss_ledger",
        "at_risk", "verdicts", "quarantine", "_refolds",
    ),
}  # fmt: skip


class Cut(dict[str, int]):
    """Table -> version. through: query -> (run, newest finished micro-batch)."""

    through: dict[str, tuple[str, int]]

    def condition(self, table: str) -> str | None:
        """SQL: the rows of finished micro-batches, None where a version holds no others."""
        if table == "replica_events":
            wanted = [("ingest", "true")]
        elif table == "quarantine":
            wanted = [
                (query, f"query = '{query}'") for query in self.through if query in WRITTEN_BY
            ]
        else:
            return None
        parts = [
            f"NOT ({writer} AND run = '{run}' AND micro_batch_id > {newest})"
            for query, writer in wanted
            if query in self.through
            for run, newest in [self.through[query]]
        ]
        return " AND ".join(parts) or None


def cut_of(rows: Iterable[Any], folder: Place) -> Cut:
    """The cut that rows of `_batches` name; folder: of the tables."""
    newest = newest_of(rows)
    found = Cut()
    found.through = {q: (row["run"], row["micro_batch_id"]) for q, row in newest.items()}
    for row in newest.values():
        for table, version in row["table_versions"].items():
            found[table] = max(version, found.get(table, 0))
    for table, version in found.items():
        found[table] = rearranged(folder / table, version)
    return found


def newest_of(rows: Iterable[Any]) -> dict[str, Any]:
    """The newest row of `_batches` of each query."""
    newest: dict[str, Any] = {}
    for row in rows:
        known = newest.get(row["query"])
        place = (row["run_number"], row["micro_batch_id"])
        if known is None or place > (known["run_number"], known["micro_batch_id"]):
            newest[row["query"]] = row
    return newest


def rearranged(table: Place, version: int) -> int:
    """The newest version with the same rows: those after it only moved rows between files."""
    for after, actions in _commits_after(table, version):
        if any(_changes(action) for action in actions):
            break
        version = after
    return version


def foreign_since(table: Place, version: int, foreign: Collection[str]) -> str | None:
    """In words, a foreign commit after a version, unless a RESTORE has taken it back;
    with what to do."""
    first, what = None, ""
    for after, actions in _commits_after(table, version):
        told: dict[str, Any] = next((a["commitInfo"] for a in actions if "commitInfo" in a), {})
        if told.get("operation") not in foreign and not _is_others_overwrite(told, actions):
            continue
        to = str(told.get("operationParameters", {}).get("version"))
        if first is not None and to.isdigit() and version <= int(to) < first:
            first = None
        elif first is None:
            first, what = after, told["operation"]
    if first is None:
        return None
    return (
        f"version {first} of {table.name} is a {what}: somebody else has written there. Take it "
        f"back with RESTORE TABLE .. TO VERSION AS OF {first - 1}, or fold the events into new "
        "tables"
    )


def _is_others_overwrite(told: dict[str, Any], actions: list[dict[str, Any]]) -> bool:
    """Whether a commit puts rows in the place of others without the transaction id that each of
    this tool's writes has: as many rows as before are not the same rows."""
    mode = str(told.get("operationParameters", {}).get("mode"))
    changed = any(_changes(action) for action in actions)
    return changed and mode == "Overwrite" and not any("txn" in action for action in actions)


def _commits_after(table: Place, version: int) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """The versions after one, with the actions of their commits, as far as they can be read."""
    while True:
        version += 1
        commit = table / "_delta_log" / f"{version:020d}.json"
        try:
            lines = commit.read_text("utf-8").splitlines()
            yield version, [json.loads(line) for line in lines if line]
        except (OSError, ValueError):
            return


def _changes(action: dict[str, Any]) -> bool:
    """Whether an action of a Delta commit changes rows, or how they are to be read."""
    for name, what in action.items():
        if name in ("add", "remove", "cdc"):
            if what.get("dataChange", True):
                return True
        elif name not in ("commitInfo", "txn", "domainMetadata"):
            return True
    return False
