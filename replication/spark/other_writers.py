"""Commits of the tables that this tool has not made: they are told, with how to take them back.

Each commit of this tool that changes rows has a transaction id which names the query and the table;
its retention deletes events by their micro-batch. Whoever only moves rows between files (OPTIMIZE)
or changes a table's properties changes no answer, and may do so.
"""

import re
from typing import Any

from replication.places import Place
from replication.spark.cut import WRITTEN_BY
from replication.spark.log_files import changes_rows, commits_after

# What maintenance deletes, as Delta writes down the condition.
RETENTION_DELETES = re.compile(r"\(micro_batch_id(?:#\w+)? <= \d+L?\)")


def made_by_others(table: Place, since: int | None) -> tuple[str | None, int]:
    """In words, the first commit after a version that this tool has not made, unless a RESTORE has
    taken it back, with what to do; and the newest version that was looked at.

    since: None for all commits that are there."""
    first, what, version = None, "", -1 if since is None else since
    for version, actions in commits_after(table, since):
        told: dict[str, Any] = next((a["commitInfo"] for a in actions if "commitInfo" in a), {})
        if not any(map(changes_rows, actions)) or _is_own(table.name, told, actions):
            continue
        to = str(told.get("operationParameters", {}).get("version"))
        if first is not None and to.isdigit() and (since or 0) <= int(to) < first:
            first = None
        elif first is None:
            first, what = version, str(told.get("operation", "commit without a name"))
    if first is None:
        return None, version
    return (
        f"version {first} of {table.name} is a {what}: somebody else has written there. Take it "
        f"back with RESTORE TABLE .. TO VERSION AS OF {first - 1}, or fold the events into new "
        "tables"
    ), version


def _is_own(table: str, told: dict[str, Any], actions: list[dict[str, Any]]) -> bool:
    apps = [str(a["txn"].get("appId", "")).split("/") for a in actions if "txn" in a]
    if any(parts[0] in WRITTEN_BY and table in parts for parts in apps):
        return True
    condition = str(told.get("operationParameters", {}).get("predicate"))
    return (
        table == "replica_events"
        and told.get("operation") == "DELETE"
        and RETENTION_DELETES.search(condition) is not None
    )
