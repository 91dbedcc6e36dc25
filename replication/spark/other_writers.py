"""Commits of the tables that this tool has not made: they are told, with what takes them back.

Each commit of this tool that changes rows names the tool (`userMetadata`) or has a transaction id
which names the query and the table; its retention deletes events by their micro-batch. Whoever only
moves rows between files (OPTIMIZE) or changes a table's properties changes no answer, and may.
"""

import re
import shlex
from dataclasses import dataclass, replace
from typing import Any

from replication.places import Place
from replication.protocol.ground.model import moment
from replication.spark import contracts
from replication.spark.cut import WRITTEN_BY
from replication.spark.delta_schemas import MARK
from replication.spark.log_files import changes_rows, commits_after

# What maintenance deletes, as Delta writes down the condition.
RETENTION_DELETES = re.compile(r"\(micro_batch_id(?:#\w+)? <= \d+L?\)")
# Of other tables, older versions of this tool have marked nothing.
BY_QUERIES = frozenset(table for names in WRITTEN_BY.values() for table in names)
# The condition under which a new run replaces all rows of a table.
EVERY_ROW = re.compile(r"[\s()\[\]\"]*true([\s()]*AND[\s()]*true)*[\s()\[\]\"]*")


# What checks are written after the fact belongs to no micro-batch: readers see all of it.
RESULTS = "expectation_results"
# The word for a query in rows of `_batches` that say what maintenance has deleted.
RETENTION = "retention"
# Temporary views need no metastore; without this spark-sql leaves one where it starts.
SPARK_SQL = (
    "spark-sql --properties-file conf/spark-defaults.conf "
    "--conf spark.sql.catalogImplementation=in-memory"
)


@dataclass(frozen=True)
class OtherCommit:
    """One that this tool has not made. at: milliseconds since the Unix epoch; who: as far as Delta
    notes it; remedy: what to do, in words."""

    table: str
    version: int
    operation: str
    at: int | None
    who: str
    remedy: str = ""

    def __str__(self) -> str:
        """What it is, and what takes it back."""
        when = "" if self.at is None else f" of {moment(self.at)}"
        who = f" by {self.who}" if self.who else ""
        return (
            f"version {self.version} of {self.table} is {_article(self.operation)}{when}{who}: "
            f"somebody else has written there. {self.remedy}"
        )


def made_by_others(table: Place, since: int | None) -> tuple[list[OtherCommit], int]:
    """The commits after a version that this tool has not made and that change rows, oldest first,
    but for those that were taken back (RESTORE, or DELETE of what was added) or whose table a new
    run has replaced; and the newest version that was looked at.

    since: None for all commits that are there."""
    # A number for the files by which others have changed the table: of each such state, whose
    # commits are in it. Who goes back to a state takes back what came after it. What belongs to
    # no micro-batch may go with it: there the number is of all files.
    is_loose = _is_of_no_micro_batch(table.name)
    files, states = 0, {0: list[OtherCommit]()}
    version = last_own = -1 if since is None else since
    # Whoever asks since a version has written there, and marked it.
    is_marked = table.name in BY_QUERIES or since is not None
    for version, actions in commits_after(table, since):
        told: dict[str, Any] = next((a["commitInfo"] for a in actions if "commitInfo" in a), {})
        is_marked = is_marked or told.get("userMetadata") == MARK
        found = states[files]
        is_own = not is_marked or _is_own(table.name, told, actions)
        if not is_own or is_loose:
            for action in actions:
                for what in (action[name] for name in ("add", "remove") if name in action):
                    files ^= hash((what["path"], str(what.get("deletionVector"))))
        changes = any(map(changes_rows, actions))
        if is_own:
            last_own = version if changes else last_own
            # Whoever goes back to before what is ours takes that along.
            forgets = _replaces_all(told) or (is_loose and changes and not found)
            states = {files: []} if forgets else states
            states[files] = [] if forgets else found
        elif files not in states:
            states[files] = [*found, _commit(table.name, version, told)] if changes else found
    found = states[files]
    remedy = _remedy(table, found[0].version, last_own) if found else ""
    return [replace(commit, remedy=remedy) for commit in found], version


def _is_of_no_micro_batch(table: str) -> bool:
    return table == RESULTS or contracts.tables()[table].written == "evidence"


def _remedy(table: Place, first: int, last_own: int) -> str:
    """What makes a table as it was before the first of the commits of others. last_own: the newest
    version in which this tool has changed rows."""
    path = str(table.absolute()).replace("`", "``")
    restore = f"RESTORE TABLE delta.`{path}` TO VERSION AS OF {first - 1}"
    told = f"Take it back, in the checkout: {SPARK_SQL} -e {shlex.quote(restore)}"
    if table.name == RESULTS:
        return f"{told} (what the checks have written since goes with it)"
    if last_own < first:
        return told
    if _is_of_no_micro_batch(table.name):
        return f"{told} (what was imported since goes with it: import that evidence again)"
    return (
        "This tool has written there since, which RESTORE would take along: fold the events into "
        "new tables, by jobs/replay.py or jobs/stream.py with another --tables"
    )


def _commit(table: str, version: int, told: dict[str, Any]) -> OtherCommit:
    names = (told.get("userName"), told.get("engineInfo") or told.get("clientVersion"))
    operation = str(told.get("operation", "commit without a name"))
    who = " with ".join(str(name) for name in names if name)
    return OtherCommit(table, version, operation, told.get("timestamp"), who)


def _article(word: str) -> str:
    return f"{'an' if word[0] in 'AEIOU' else 'a'} {word}"


def _replaces_all(told: dict[str, Any]) -> bool:
    """Whether nothing is left of what the table held. deltalake calls its commits appends whatever
    they remove: the condition tells, and without one rows stay."""
    parameters, by_deltalake = told.get("operationParameters", {}), "clientVersion" in told
    condition = str(parameters.get("predicate", "" if by_deltalake else "true"))
    overwrites = by_deltalake or parameters.get("mode") == "Overwrite"
    return overwrites and EVERY_ROW.fullmatch(condition) is not None


def _is_own(table: str, told: dict[str, Any], actions: list[dict[str, Any]]) -> bool:
    apps = [str(a["txn"].get("appId", "")).split("/") for a in actions if "txn" in a]
    if told.get("userMetadata") == MARK or any(
        parts[0] in (*WRITTEN_BY, RETENTION) and table in parts for parts in apps
    ):
        return True
    condition = str(told.get("operationParameters", {}).get("predicate"))
    return (
        table == "replica_events"
        and told.get("operation") == "DELETE"
        and RETENTION_DELETES.search(condition) is not None
    )
