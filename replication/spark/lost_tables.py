"""Tables that were there and are not any more: refused, before anything is made in their place.

A table that is made anew, empty, would take what comes from now on and look like a whole one. Which
tables there are, and how far each was written, the rows of `_batches` name.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from replication.places import Place
from replication.reports.inventory_words import counted
from replication.spark.cut import BATCHES, WRITTEN_BY, newest_of
from replication.spark.log_files import RESTORE, changes_rows, commits_after, version_there

OF_QUERIES = tuple(sorted({table for names in WRITTEN_BY.values() for table in names}))


def named_by(batches: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Table -> the highest version that the newest rows of `_batches` name."""
    found: dict[str, int] = {}
    for row in newest_of(batches).values():
        for table, version in row["table_versions"].items():
            found[table] = max(version, found.get(table, 0))
    return found


def lost(folder: Place, named: Mapping[str, int]) -> str | None:
    """In words, which tables of a folder are not as far as they are named, and what to do; None
    where all are."""
    there = {
        table: version_there(folder / table)
        for table, version in sorted(named.items())
        if not (folder / table / "_delta_log" / f"{version:020d}.json").is_file()
    }
    gone = [table for table, version in there.items() if version < 0]
    if gone:
        return (
            f"{folder}: {_these(gone)} gone, and what was written into {_it(gone)} with "
            f"{_it(gone)}: {RESTORE}"
        )
    older = [table for table, version in there.items() if version < named[table]]
    if older:
        told = ", ".join(f"{t} is at version {there[t]} (of {named[t]})" for t in older)
        return (
            f"{folder}: {told}: made anew after {_it(older)} had been lost, or put back from an "
            f"older copy: {RESTORE}"
        )
    return None


def without_batches(folder: Place) -> str | None:
    """In words, that tables hold what no row of `_batches` tells of; None where they hold nothing.
    To be asked where that table is gone, or empty."""
    written = [table for table in OF_QUERIES if _was_written(folder / table)]
    if not written:
        return None
    what = "gone" if version_there(folder / BATCHES) < 0 else "empty"
    return (
        f"{folder}: {_these([BATCHES])} {what}, though {counted(len(written), 'other table')} "
        f"({written[-1]}, ..) hold rows, and it tells up to where: {RESTORE}"
    )


def _was_written(table: Place) -> bool:
    """Whether a commit to a table has changed rows. Of one that is gone that is taken for granted:
    the log of a table that holds nothing is short."""
    last = 0
    for version, actions in commits_after(table, 0):
        if any(map(changes_rows, actions)):
            return True
        last = version
    return last < version_there(table)


def lost_evidence(folder: Place, tables: Collection[str]) -> str | None:
    """In words, which of the tables that an import writes are gone, and what to do; None where none
    is. All are made before the first is written, so where one holds a commit, all were there."""
    there = {table: version_there(folder / table) for table in sorted(tables)}
    gone = [table for table, version in there.items() if version < 0]
    written = [table for table, version in there.items() if version > 0]
    if not gone or not written:
        return None
    return (
        f"{folder}: {_these(gone)} gone, and what imports have written into {_it(gone)} with "
        f"{_it(gone)}: restore the folder of each, or delete the {_folders(written)} "
        f"{_and(written) if len(written) > 1 else written[0]} too and import every incident anew"
    )


def _folders(tables: list[str]) -> str:
    return "folder" if len(tables) == 1 else "folders"


def without_tables(folder: Place, checkpoint_dir: Place) -> str | None:
    """In words, that a checkpoint directory has micro-batches and the tables have none; None where
    it has none either. To be asked where no row of `_batches` is there."""
    for query in WRITTEN_BY:
        offsets = checkpoint_dir / query / "spark" / "offsets"
        if any(_names(offsets)):
            return (
                f"{folder} holds no micro-batch, but {checkpoint_dir / query} has read on into "
                "tables: give those tables, restore them, or fold the events anew with an empty "
                "--checkpoint-dir"
            )
    return None


def _names(folder: Place) -> list[Any]:
    return list(folder.glob("[0-9]*")) if folder.is_dir() else []


def _these(tables: list[str]) -> str:
    return f"the table {tables[0]} is" if len(tables) == 1 else f"the tables {_and(tables)} are"


def _and(names: list[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _it(tables: list[str]) -> str:
    return "it" if len(tables) == 1 else "them"
