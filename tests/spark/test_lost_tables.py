"""A table whose folder is gone is refused before anything is made in its place, whichever it is."""

import io
import json
import re
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from replication.evidence.event_dumps import write_events
from replication.spark import settings
from replication.spark.cut import BATCHES
from replication.spark.ending import Stop
from replication.spark.failures import failed
from replication.spark.log_files import version_there
from replication.spark.lost_tables import OF_QUERIES
from replication.spark.progress import Progress
from replication.spark.runs import Run
from replication.spark.stream import StreamJob
from replication.spark.tables import Store, TablesError, Writer
from tests.spark.event_rows import made_trace
from tests.spark.jobs_in_process import answers, run_replay, run_stream

SET = (*OF_QUERIES, BATCHES)
FILE = {"path": "x", "partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": True}
WRITTEN = {"add": FILE}
WRITERS = [Writer("first", 0, query, "token", f"{query}/id") for query in ("ingest", "fold")]


def made(folder: Path) -> Store:
    """The tables of a stream whose queries have finished a micro-batch each; without Spark."""
    store = Store(cast(Any, None), folder)
    store.create()
    for writer in WRITERS:
        store.finish(writer, -1, {})
    for table in OF_QUERIES:
        (folder / table / "_delta_log" / f"{1:020d}.json").write_text(json.dumps(WRITTEN))
        store._versions.pop(table, None)
    for writer in WRITERS:
        store.finish(writer, 0, {"rows_in": 1})
    return store


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


@pytest.mark.parametrize("table", SET)
def test_a_table_that_is_gone_is_not_made_anew(table: str, tmp_path: Path) -> None:
    """Neither at the next start nor by the stream that runs on."""
    running = made(tmp_path)
    running.check_there()
    Store(cast(Any, None), tmp_path).create()
    shutil.rmtree(tmp_path / table)
    before = files(tmp_path)
    said = rf"{table} is gone.*: restore the table's folder, or fold the events anew"
    with pytest.raises(TablesError, match=said):
        Store(cast(Any, None), tmp_path).create()
    with pytest.raises(TablesError, match=f"the table {table} is gone"):
        running.check_there()
    assert files(tmp_path) == before


@pytest.mark.parametrize("table", OF_QUERIES)
def test_a_table_that_was_made_anew_is_not_taken_for_the_old_one(
    table: str, tmp_path: Path
) -> None:
    """As an older version of this tool did it."""
    running, log = made(tmp_path), tmp_path / table / "_delta_log"
    shutil.move(log / f"{0:020d}.json", tmp_path / "first")
    shutil.rmtree(tmp_path / table)
    log.mkdir(parents=True)
    shutil.move(tmp_path / "first", log / f"{0:020d}.json")
    for look in (Store(cast(Any, None), tmp_path).create, running.check_there):
        with pytest.raises(TablesError, match=rf"{table} is at version 0 \(of 1\): made anew"):
            look()


def test_without_its_rows_of_batches_a_folder_is_refused(tmp_path: Path) -> None:
    made(tmp_path)
    shutil.rmtree(tmp_path / BATCHES)
    (tmp_path / "other").mkdir()
    Store(cast(Any, None), tmp_path / "other").create()
    shutil.move(tmp_path / "other" / BATCHES, tmp_path / BATCHES)
    with pytest.raises(TablesError, match="_batches is empty, though 10 other tables"):
        Store(cast(Any, None), tmp_path).create()


def test_what_a_crash_or_an_older_version_has_left_is_gone_on_with(tmp_path: Path) -> None:
    """Tables that were being made, or taken over for a run that has noted nothing; a set that lacks
    a table which no row of `_batches` names."""
    Store(cast(Any, None), tmp_path).create()
    for table in ("verdicts", BATCHES):
        shutil.rmtree(tmp_path / table)
        Store(cast(Any, None), tmp_path).create()
    generations = [0]
    for _ in range(2):
        store = Store(cast(Any, None), tmp_path)
        store.create()
        fence = Run("fold", "first", 0, "token", tmp_path).fenced(store).fence
        assert fence is not None
        assert fence.generation > generations[-1]
        generations.append(fence.generation)
    made(tmp_path)
    shutil.rmtree(tmp_path / "expectation_results")
    Store(cast(Any, None), tmp_path).create()
    assert (tmp_path / "expectation_results" / "_delta_log").is_dir()


@contextmanager
def away(path: Path) -> Iterator[None]:
    kept = path.with_name(f"{path.name}.kept")
    path.rename(kept)
    try:
        yield
    finally:
        kept.rename(path)


@pytest.mark.spark
def test_a_stream_refuses_each_table_that_is_gone_and_goes_on_when_it_is_back(
    spark: SparkSession, folder: Path
) -> None:
    events = made_trace(0)
    write_events(folder / "in" / "0.jsonl", events[:30])
    run_stream(spark, folder)
    write_events(folder / "in" / "1.jsonl", events[30:])
    for table in SET:
        with away(folder / "tables" / table):
            before = files(folder / "tables")
            with pytest.raises(TablesError, match=f"{table} is gone") as refused:
                run_stream(spark, folder)
            said = io.StringIO()
            assert failed("stream.py", refused.value, said) == 2
            assert len(said.getvalue().splitlines()) == 1
            assert files(folder / "tables") == before
    with away(folder / "tables"), pytest.raises(TablesError, match="holds no micro-batch, but"):
        run_stream(spark, folder)
    run_stream(spark, folder)
    run_replay(spark, folder)
    assert answers(spark, folder / "tables") == answers(spark, folder / "replayed")


@pytest.mark.spark
@pytest.mark.parametrize("table", ["loss_ledger", "replica_events", BATCHES])
def test_a_table_that_vanishes_under_a_running_stream_ends_it(
    spark: SparkSession, folder: Path, table: str
) -> None:
    """At the next micro-batch, which writes nothing."""
    events = made_trace(0)
    write_events(folder / "in" / "0.jsonl", events[:30])
    said, failures = io.StringIO(), list[Exception]()
    chosen = settings.load({"trigger": "500 ms", "poll_seconds": "0.2", "settle_seconds": "0"})
    job = StreamJob(spark, folder / "tables", folder / "checkpoint", chosen, Progress(said), Stop())

    def follow() -> None:
        try:
            job.run(folder / "in", None)
        except Exception as error:
            failures.append(error)

    running = threading.Thread(target=follow)
    running.start()
    while "fold micro-batch 0" not in said.getvalue():
        assert running.is_alive()
        running.join(0.2)
    shutil.rmtree(folder / "tables" / table)
    write_events(folder / "in" / "1.jsonl", events[30:])
    running.join(120)
    for query in spark.streams.active:  # Ended with the session, where the job has its own.
        query.stop()
    assert len(failures) == 1
    out = io.StringIO()
    assert failed("stream.py", failures[0], out) == 2
    assert re.fullmatch(rf"stream\.py: .*the table {table} is gone, .*\n", out.getvalue())
    assert not (folder / "tables" / table).exists()


def test_a_table_that_a_full_disk_left_without_a_commit_is_made(tmp_path: Path) -> None:
    (tmp_path / "_batches" / "_delta_log").mkdir(parents=True)
    store = Store(cast(Any, None), tmp_path)
    assert store.batches() == []
    store.create()
    assert version_there(tmp_path / "_batches") == 0
