"""The consistent cut: which version of each table belongs together, as rows of `_batches` say.

Each query's newest row names the tables that this query writes. A run that has begun, and finished
no micro-batch yet, replaces nothing until it has: what the run before wrote is read until then. Two
tables have more than one writer, so a version may hold rows of a micro-batch that is not finished:
readers leave those out. A version that is named may have been compacted and vacuumed since: later
commits that only move rows between files hold the same ones, and are read instead.
"""

from collections.abc import Collection, Iterable
from typing import Any

from replication.places import Place
from replication.spark.log_files import changes_rows, commits_after

BATCHES = "_batches"
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
    """Table -> version. through: query -> (run, newest finished micro-batch). begun: query -> the
    run that has begun since, and has finished no micro-batch."""

    through: dict[str, tuple[str, int]]
    begun: dict[str, str]

    def condition(self, table: str) -> str | None:
        """SQL: the rows of finished micro-batches, None where a version holds no others."""
        newer = [f"NOT (query = '{query}' AND run = '{run}')" for query, run in self.begun.items()]
        if table == BATCHES:
            return " AND ".join(newer) or None
        if table == "replica_events":
            wanted, newer = [("ingest", "true")], []
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
        return " AND ".join([*parts, *newer]) or None


def cut_of(rows: Iterable[Any], folder: Place) -> Cut:
    """The cut that rows of `_batches` name; folder: of the tables."""
    every = list(rows)
    begun = _begun(every)
    newest = newest_of(row for row in every if begun.get(row["query"]) != row["run"])
    found = Cut()
    found.begun = begun
    found.through = {q: (row["run"], row["micro_batch_id"]) for q, row in newest.items()}
    for row in newest.values():
        for table, version in row["table_versions"].items():
            found[table] = max(version, found.get(table, 0))
    for table, version in found.items():
        found[table] = rearranged(folder / table, version)
    return found


def _begun(rows: Collection[Any]) -> dict[str, str]:
    """Query -> its newest run, where that has finished no micro-batch and one before it has."""
    finished = newest_of(row for row in rows if row["micro_batch_id"] >= 0)
    return {
        query: row["run"]
        for query, row in newest_of(rows).items()
        if row["micro_batch_id"] < 0 and query in finished
        and finished[query]["run"] != row["run"]
    }  # fmt: skip


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
    for after, actions in commits_after(table, version):
        if any(_changes(action) for action in actions):
            break
        version = after
    return version


def _changes(action: dict[str, Any]) -> bool:
    """Whether an action of a Delta commit changes rows, or how they are to be read."""
    known = ("add", "remove", "cdc", "commitInfo", "txn", "domainMetadata")
    return changes_rows(action) or any(name not in known for name in action)
