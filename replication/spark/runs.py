"""Which run a query belongs to, and the refusal to mix runs: tables remember who writes them.

A run is one life of one Spark checkpoint location. Its name and a random token are in run.json
beside that location and in the first row that the run writes to `_batches`. A fresh location over
tables that another one has written would write every event again, so it is refused unless a new
run is asked for by name.
"""

import json
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from replication.places import Place, rename
from replication.spark import checkpoint_files
from replication.spark.cut import BATCHES, WRITTEN_BY
from replication.spark.fence import Fence, last_writer
from replication.spark.tables import START, Store, TablesError, Writer
from replication.spark.taking_over import take_over

# Where a run is noted, in its folder.
NOTE = "run.json"
# The query of a stream's answers, and of a replay.
FOLD = "fold"
# What a run without a checkpoint writes: all that a stream's queries write together.
BOUNDED = tuple(sorted({table for names in WRITTEN_BY.values() for table in names}))


@dataclass(frozen=True)
class Run:
    """One run of a query. spark_location: Spark's checkpoint location; number: its place among
    the runs of this query over these tables; incident: the one it is of, None: whichever its events
    name; again: what an earlier try of it has written, and not finished, has been taken away."""

    query: str
    name: str
    number: int
    token: str
    folder: Place
    fence: Fence | None = None
    incident: str | None = None
    again: bool = False

    @property
    def spark_location(self) -> str:
        """Where Spark keeps this query's offsets, commits and state."""
        return str(self.folder / "spark")

    def writer(self, query_id: str) -> Writer:
        """The writer of this run, given the id that Spark gave the query."""
        app = f"{self.query}/{query_id}"
        return Writer(
            self.name, self.number, self.query, self.token, app, self.fence, self.incident
        )

    def fenced(self, store: Store) -> "Run":
        """The same run, which may write from now on: whoever wrote before may not any more."""
        # A replay, which is of the same query, writes what the stream's queries write together.
        written = BOUNDED if self.query == FOLD else WRITTEN_BY[self.query]
        fence = take_over(store.spark, store.folder, (BATCHES, *written), self.query, self.name)
        return replace(self, fence=fence)


def enter(
    store: Store,
    checkpoint_dir: Place,
    query: str,
    new_run: str | None,
    fixed: Mapping[str, Any] | None = None,
    incident: str | None = None,
) -> Run:
    """The run that query goes on with, or the one that starts now, noted in the tables.

    fixed: settings that must stay what they were when the run started. Raises TablesError where
    tables and checkpoint do not belong together, or such a setting has changed.
    """
    folder = checkpoint_dir / query
    newest = _newest(store, query)
    noted = _noted(folder)
    fixed = {**(fixed or {}), "incident": incident}
    if noted is None:
        _check_own(store, folder, query, newest, new_run)
        return _started(store, folder, query, newest, new_run, fixed)
    for name, value in fixed.items():
        known = noted.get("fixed", {}).get(name)
        if known != value:
            raise TablesError(
                f"{name} is {known or 'not given'} for the life of {folder}, not "
                f"{value or 'without'}: leave it, or delete {folder} and start anew with "
                "--new-run NAME"
            )
    if newest is not None and newest["token"] != noted["token"]:
        raise TablesError(
            f"{folder} belongs to run {noted['run']!r}, but {store.folder} was last written by run "
            f"{newest['run']!r} of another checkpoint directory: use that one, or other tables"
        )
    _check_not_older(store, folder, START if newest is None else newest["micro_batch_id"])
    run = Run(query, noted["run"], noted["run_number"], noted["token"], folder, None, incident)
    if newest is None:
        run = run.fenced(store)
        store.finish(run.writer("start"), START, {})
        return run
    _check_tables(store, newest)
    if newest["micro_batch_id"] > START:
        _check_checkpoint(store, folder, newest["micro_batch_id"])
    else:
        checkpoint_files.clear_unbegun(folder / "spark")
    return run.fenced(store)


def check_known(store: Store, checkpoint_dir: Place, query: str, new_run: str | None) -> None:
    """Raises TablesError where another checkpoint directory than this one has written the tables,
    and no new run is asked for. Of all queries before the first of them is entered."""
    folder = checkpoint_dir / query
    if _noted(folder) is None:
        _check_own(store, folder, query, _newest(store, query), new_run)


def _check_own(store: Store, folder: Place, query: str, newest: Any, new_run: str | None) -> None:
    if newest is None or new_run is not None:
        return
    writer = last_writer(store.folder / BATCHES, query)
    raise TablesError(
        f"{store.folder} was written by run {newest['run']!r} of the {query} query, whose "
        f"checkpoint is not in {folder}: give that run's --checkpoint-dir, or start anew with "
        "--new-run NAME (the answer tables are then replaced, not added to, and the stream "
        f"that wrote them, {writer}, is stopped where it still runs)"
    )


def _newest(store: Store, query: str) -> Any:
    """The newest row of `_batches` of a query, None where there is none. Raises TablesError where
    others have changed that table: without its rows a run would start over what it has written.
    """
    others = store.changed_by_others((BATCHES,))
    if others:
        raise TablesError(f"{store.folder}: {others[0]}")
    return store.newest_batches().get(query)


def _check_tables(store: Store, newest: Any) -> None:
    """Raises TablesError where others have changed rows since a query's newest micro-batch, or
    files are missing or not as long as they were written."""
    for table, version in newest["table_versions"].items():
        store.look(table, version)
        store.check_files(table)


def _check_not_older(store: Store, folder: Place, newest: int) -> None:
    """Raises TablesError where a checkpoint location has finished micro-batches that the tables
    lack: they were put back without it."""
    commits = (folder / "spark" / "commits").glob("[0-9]*")
    finished = max((int(path.name) for path in commits if path.name.isdigit()), default=START)
    if finished > newest:
        raise TablesError(
            f"{store.folder} is older than {folder}, which has finished micro-batch {finished} "
            f"(the tables: {newest}): put tables and checkpoint directory of one moment back, "
            f"or delete {folder} wholly and ask for a new run with --new-run NAME"
        )


def _check_checkpoint(store: Store, folder: Place, newest: int) -> None:
    """Raises TablesError where a checkpoint location cannot go on from the tables' newest
    micro-batch: what it would run again is in the tables, under the same numbers, with other rows.
    """
    anew = f"delete {folder} wholly and ask for a new run with --new-run NAME"
    spark_location = folder / "spark"
    if not (spark_location / "metadata").is_file():
        raise TablesError(
            f"{spark_location} is gone, but {store.folder} has {newest + 1} micro-batches of it: "
            f"{anew}"
        )
    if not (spark_location / "offsets" / str(newest)).is_file():
        raise TablesError(
            f"{spark_location} is older than {store.folder}, which has its micro-batch {newest}: "
            f"restore the newer one, or the tables of its moment, too, or {anew}"
        )
    what = checkpoint_files.broken(spark_location)
    if what is not None:
        raise TablesError(f"{what}: restore it, or {anew}")
    committed = any((spark_location / "commits").glob("[0-9]*"))
    if folder.name == "fold" and committed and not (spark_location / "state").is_dir():
        raise TablesError(f"the state of {folder} is gone: {anew}")


def bounded(store: Store, query: str, new_run: str | None, incident: str | None = None) -> Run:
    """The run of a bounded job, which has no checkpoint: each one is a run of its own.

    One of an incident that the tables do not hold yet is called by the incident's name. One that
    has begun and not finished goes on from its beginning: what it has written is taken away. Raises
    TablesError where the tables hold the answers of another run and no new one is named.
    """
    newest = _newest(store, query)
    if is_unfinished(newest) and incident == newest["incident"]:
        own = incident if newest["run"] == incident else "first"
        if (new_run or own) == newest["run"]:
            run = Run(query, newest["run"], newest["run_number"], newest["token"], Path(), None,
                      incident, again=True).fenced(store)  # fmt: skip
            for table in BOUNDED:
                store.take_away(table, run.writer(uuid.uuid4().hex))
            return run
    if newest is not None and new_run is None:
        if is_unfinished(newest):
            raise TablesError(f"{store.folder}: {unfinished(newest)}")
        if incident is None or store.holds(incident):
            whose = "" if incident is None else f" of incident {incident}"
            raise TablesError(
                f"{store.folder} holds the answers{whose} of run {newest['run']!r}: replace them "
                "with --new-run NAME, give other tables, or name another --incident"
            )
        new_run = incident
    run = _named(store, Path(), query, newest, new_run, incident).fenced(store)
    store.finish(run.writer("start"), START, {}, BOUNDED)
    return run


def is_unfinished(newest: Any) -> bool:
    """Whether the newest row of `_batches` is of a replay that has begun and not finished. A
    stream's run names the tables of one query only, and goes on by its checkpoint."""
    return (
        newest is not None
        and newest["micro_batch_id"] == START
        and set(BOUNDED) <= set(newest["table_versions"])
    )


def unfinished(newest: Any) -> str:
    """What a replay has left that has begun and not finished, and what to do."""
    whose = "" if newest["incident"] is None else f" of incident {newest['incident']}"
    return (
        f"the replay {newest['run']!r}{whose} has begun and has not finished, so its answers are "
        "incomplete: unless it still runs, repeat its command, which replaces what it has written"
    )


def _named(
    store: Store, folder: Place, query: str, newest: Any, new_run: str | None, incident: str | None
) -> Run:
    name = new_run or "first"
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,100}", name):
        raise TablesError(f"--new-run {name!r}: letters, digits and ._- only, at most 100")
    if newest is not None and newest["run"] == name:
        raise TablesError(f"--new-run {name!r} is the name of the present run: choose another one")
    if newest is not None and store.knows_run(query, name):
        raise TablesError(f"--new-run {name!r} is the name of an earlier run: choose another one")
    if is_unfinished(newest) and incident not in (None, newest["incident"]):
        raise TablesError(f"{store.folder}: {unfinished(newest)}")
    number = 0 if newest is None else newest["run_number"] + 1
    return Run(query, name, number, uuid.uuid4().hex, folder, None, incident)


def _started(
    store: Store,
    folder: Place,
    query: str,
    newest: Any,
    new_run: str | None,
    fixed: dict[str, Any],
) -> Run:
    run = _named(store, folder, query, newest, new_run, fixed["incident"])
    folder.mkdir(parents=True, exist_ok=True)
    note = {"run": run.name, "run_number": run.number, "token": run.token, "fixed": fixed}
    partial = folder / f"{NOTE}.partial"
    partial.write_text(json.dumps(note), encoding="utf-8")
    rename(partial, folder / NOTE)
    run = run.fenced(store)
    store.finish(run.writer("start"), START, {})
    return run


def _noted(folder: Place) -> dict[str, Any] | None:
    path = folder / NOTE
    if not path.is_file():
        if folder.is_dir() and any(folder.iterdir()) and not (folder / f"{NOTE}.partial").exists():
            raise TablesError(f"{folder} is no checkpoint directory of this job: no run.json in it")
        return None
    try:
        noted = json.loads(path.read_text(encoding="utf-8"))
        if {"run", "run_number", "token"} <= set(noted):
            return dict(noted)
    except (OSError, ValueError):
        pass
    raise TablesError(f"{path} cannot be read as the note of a run: delete {folder} or restore it")
