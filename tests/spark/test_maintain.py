"""Maintenance beside a stream: fewer files, the same rows, versions in use stay readable."""

import fcntl
import io
import json
import os
import re
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from replication.evidence.event_dumps import write_events
from replication.spark import contracts, views
from replication.spark.delta_schemas import FILTERED, STATISTICS, first_commit
from replication.spark.maintain import Kept, Maintenance, _forget_gone, summed_up
from replication.spark.progress import Progress
from replication.spark.tables import ADDED_UP, Store, TablesError
from tests.spark.event_rows import made_trace, other_content
from tests.spark.jobs_in_process import answers, rows, run_replay, run_stream

FILE_SIZE = "spark.databricks.delta.optimize.maxFileSize"


def aged(spark: SparkSession, tables: Path, hours: float) -> None:
    """Makes all that the tables hold so much older: files, and the moments of their removal."""
    milliseconds = round(hours * 3_600_000)
    for path in tables.glob("*/_delta_log/.*.crc"):
        path.unlink()
    for path in [path for path in tables.glob("*/**/*") if path.is_file()]:
        before = path.stat().st_mtime - hours * 3_600
        if path.suffix == ".json" and path.parent.name == "_delta_log":
            text = re.sub(
                r'"deletionTimestamp": ?(\d+)',
                lambda found: f'"deletionTimestamp":{int(found[1]) - milliseconds}',
                path.read_text("utf-8"),
            )
            path.write_text(text, encoding="utf-8")
        os.utime(path, (before, before))
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # type: ignore[union-attr]


def leave_verdicts(tables: Path) -> None:
    """Takes the other answers away: each table costs a round of maintenance some seconds."""
    for table in tables.iterdir():
        if table.name not in ("_batches", "verdicts"):
            shutil.rmtree(table)


NOTHING = Kept(0.0)


def maintain(spark: SparkSession, folder: Path, kept: Kept = NOTHING) -> str:
    """One round that keeps nothing which is not in use."""
    said = io.StringIO()
    round_ = Maintenance(spark, folder / "tables", folder / "checkpoint", Progress(said))
    round_.run(kept, 2)
    return said.getvalue()


def on_disk(folder: Path, table: str) -> set[str]:
    """The names of a table's files, whether a version names them or not."""
    return {path.name for path in (folder / "tables" / table).glob("*.parquet")}


@pytest.mark.spark
@pytest.mark.sweep
def test_maintenance_keeps_what_is_in_use_and_the_stream_goes_on(
    spark: SparkSession, folder: Path
) -> None:
    """Two partitions in turns: each micro-batch replaces answers of one of them."""
    events = [made_trace(0), made_trace(1)]
    pieces = [events[n % 2][n // 2 * 15 : n // 2 * 15 + 15] for n in range(6)]
    for number, piece in enumerate(pieces[:4]):
        write_events(folder / "in" / f"{number}.jsonl", piece)
    run_stream(spark, folder, profile="small-batches")
    store = Store(spark, folder / "tables")
    # What a replacement leaves empty is no file any more: each of two partitions has one at most.
    assert store.files("verdicts") <= 2
    script = views.script(views.opened(spark, folder / "tables"), follow=False)
    (folder / "tables" / "views.sql").write_text(script)
    aged(spark, folder / "tables", 3.0)
    before = answers(spark, folder / "tables")
    # Micro-batches have replaced files here; where an answer stays as it is none is replaced.
    assert store.files("replica_states") < len(on_disk(folder, "replica_states"))
    written = on_disk(folder, "_batches")
    said = maintain(spark, folder)
    assert "replica_events: compacted" in said
    assert "ingest: 4 notes of what was read joined into one" in said
    assert len(on_disk(folder, "replica_states")) == store.files("replica_states")
    # What compaction has put aside is needed: by the script, and by readers of the last hour.
    assert store.files("_batches") == 1
    assert on_disk(folder, "_batches") > written
    assert answers(spark, folder / "tables") == before
    for path, version in re.findall(r"delta\.`([^`]+)` VERSION AS OF (\d+)", script):
        spark.read.format("delta").option("versionAsOf", version).load(path).count()
    for number, piece in enumerate(pieces[4:], start=4):
        write_events(folder / "in" / f"{number}.jsonl", piece)
    said = run_stream(spark, folder, profile="small-batches")
    assert f"in all: {sum(map(len, pieces))} rows = {sum(map(len, pieces))} applied" in said
    (folder / "tables" / "views.sql").unlink()
    aged(spark, folder / "tables", 3.4)
    maintain(spark, folder)
    assert store.files("replica_events") == 1
    assert not on_disk(folder, "_batches") & written
    run_replay(spark, folder)
    assert answers(spark, folder / "replayed") == answers(spark, folder / "tables")
    assert len(rows(spark, folder / "tables", "replica_events")) == sum(map(len, pieces))


@pytest.mark.spark
@pytest.mark.sweep
def test_what_is_older_than_the_retention_goes_and_is_counted(
    spark: SparkSession, folder: Path
) -> None:
    """Events, rows of _batches, commits. What comes late then cannot be settled, and that is said;
    a partition with a gap keeps its events."""
    events, gapped = made_trace(0), made_trace(1)
    pieces = [events[:20], gapped[:10] + gapped[11:], events[20:30]]
    for number, piece in enumerate(pieces):
        write_events(folder / "in" / f"{number}.jsonl", piece)
    run_stream(spark, folder, profile="small-batches")
    before = answers(spark, folder / "tables")
    round_ = Maintenance(spark, folder / "tables", folder / "checkpoint", Progress(io.StringIO()))
    round_.run(Kept(0.0, 0.0, 0.0), 2)
    assert answers(spark, folder / "tables") == before
    kept = Store(spark, folder / "tables").newest("replica_events").select("partition").collect()
    assert [row["partition"] for row in kept] == [1] * (len(gapped) - 1)
    batches = rows(spark, folder / "tables", "_batches")
    assert sorted((r["query"], r["first_micro_batch_id"]) for r in batches) == [
        ("fold", -1), ("fold", 2), ("ingest", -1), ("ingest", 2), ("retention", 2)
    ]  # fmt: skip
    late = [other_content(events[8]), *events[30:], gapped[10]]
    write_events(folder / "in" / "3.jsonl", late)
    said = run_stream(spark, folder, profile="small-batches")
    total = len(events) + len(gapped)
    assert f"in all: {total + 1} rows = {total} applied + 1 duplicates" in said
    [refused] = rows(spark, folder / "tables", "quarantine")
    assert (refused["reason_code"], refused["rows"]) == ("cannot_be_settled", 0)
    write_events(folder / "in" / "3.jsonl", [*events[30:], gapped[10]])
    run_replay(spark, folder)
    assert answers(spark, folder / "replayed") == answers(spark, folder / "tables")


@pytest.mark.spark
def test_no_file_goes_before_its_time_nor_before_the_commit_it_waits_for(
    spark: SparkSession, folder: Path
) -> None:
    """Delta takes hours to the nearest whole one; a file that no version names may wait for its
    commit."""
    write_events(folder / "in" / "1.jsonl", made_trace(0))
    run_replay(spark, folder)
    ages = {"waiting": 0.0, "kept": 80.0, "gone": 130.0}
    leave_verdicts(folder / "replayed")
    verdicts = folder / "replayed" / "verdicts"
    stray = {name: verdicts / f"part-{name}.parquet" for name in ages}
    for name, path in stray.items():
        path.write_bytes(b"")
        os.utime(path, (time.time() - ages[name] * 60,) * 2)
    store = Store(spark, folder / "replayed")
    newest, said = store.version("verdicts"), io.StringIO()
    round_ = Maintenance(spark, folder / "replayed", None, Progress(said))
    round_.run(Kept(1.4), 100)
    assert "and what was written into them with them: restore the table's folder" in said.getvalue()
    assert (
        "verdicts: files that no version of the last 2 hours needs are deleted" in said.getvalue()
    )
    assert (
        Store(spark, folder / "replayed").version("verdicts") == newest == store.cut()["verdicts"]
    )
    assert {name for name, path in stray.items() if path.exists()} == {"waiting", "kept"}
    round_.run(Kept(0.0), 100)
    assert {name for name, path in stray.items() if path.exists()} == {"waiting"}


@pytest.mark.spark
def test_a_quiet_table_is_read_and_kept_however_old_its_version_is(
    spark: SparkSession, folder: Path
) -> None:
    """Delta refuses versions older than it remembers removed files, but for the newest: here a
    newer one stands that the readers' cut does not name."""
    write_events(folder / "in" / "1.jsonl", made_trace(0))
    run_replay(spark, folder)
    tables, said = folder / "replayed", io.StringIO()
    leave_verdicts(tables)
    before = rows(spark, tables, "verdicts")
    round_ = Maintenance(spark, tables, None, Progress(said))
    store = Store(spark, tables)
    spark.sql(f"DELETE FROM delta.`{tables / 'verdicts'}`")
    for hours in (130, 30, 300):
        aged(spark, tables, hours)
        round_.run(Kept(168.0), 100)
        assert rows(spark, tables, "verdicts") == before
    assert store.remembers_hours("verdicts") == 161 + 24 + 168
    assert (
        "verdicts: none of its files goes: a version in use was replaced 460 hours"
        in said.getvalue()
    )
    assert store.remembers_hours("_batches") == 168


@pytest.mark.spark
def test_a_query_by_topic_partition_passes_over_the_files_of_others(
    spark: SparkSession, folder: Path
) -> None:
    """As delivered each file holds all partitions; clustered, a partition is in few of them. Tables
    made without statistics get them by the next job that writes."""
    write_events(folder / "in" / "1.jsonl", [e for n in range(8) for e in made_trace(n)])
    store = Store(spark, folder / "replayed")
    make_without_statistics(folder / "replayed" / "replica_events")
    run_replay(spark, folder, keep_events=True)
    run_replay(spark, folder, keep_events=True, new_run="again")
    assert store.statistics("replica_events") == ",".join(FILTERED)
    sought = store.newest("replica_events").filter("topic = 't' AND partition = 3")
    before = sought.inputFiles()
    assert len(before) == store.files("replica_events") == 2
    spark.conf.set(FILE_SIZE, 12_000)
    round_ = Maintenance(spark, folder / "replayed", None, Progress(io.StringIO()))
    round_._compact(store, "replica_events")
    spark.conf.set(FILE_SIZE, 64 << 20)
    assert store.files("replica_events") >= 4
    again = store.newest("replica_events").filter("topic = 't' AND partition = 3")
    assert len(again.inputFiles()) <= store.files("replica_events") / 2
    assert sorted(again.collect()) == sorted(sought.collect())
    assert not store.newest("replica_events").filter("cluster_id = 'another'").inputFiles()


def make_without_statistics(table: Path) -> None:
    """An empty table as older versions made it."""
    actions = [
        json.loads(line) for line in first_commit(contracts.tables()[table.name], 100).splitlines()
    ]
    meta = actions[-1]["metaData"]
    meta["configuration"][STATISTICS] = "sequence,micro_batch_id"
    (table / "_delta_log").mkdir(parents=True)
    text = "".join(json.dumps(action) + "\n" for action in actions)
    (table / "_delta_log" / f"{0:020d}.json").write_text(text)


@pytest.mark.spark
def test_a_commit_that_the_stream_s_forestalls_is_made_while_those_wait(
    spark: SparkSession, folder: Path
) -> None:
    """By Delta itself: a transaction that has read the table, and an append before it commits."""
    path = str(folder / "tables" / "t")
    spark.range(1).write.format("delta").save(path)
    delta, option = spark._jvm.org.apache.spark.sql.delta, spark._jvm.scala.Option  # type: ignore[union-attr]
    log = delta.DeltaLog.forTable(spark._jsparkSession, path)
    (folder / "tables" / "_lease").mkdir()
    forestalled = []

    def work() -> None:
        commit = log.startTransaction(option.empty(), option.empty())
        commit.readWholeTable()
        try:
            with (folder / "tables" / "_lease" / "lock").open("a") as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            spark.range(1).write.format("delta").mode("append").save(path)
        except BlockingIOError:
            return
        forestalled.append(1)
        files = commit.writeFiles(spark.range(1)._jdf)
        mode = spark._jvm.org.apache.spark.sql.streaming.OutputMode.Append()  # type: ignore[union-attr]
        what = delta.DeltaOperations.StreamingUpdate
        commit.commit(files, what(mode, "t", 0, option.empty()))

    round_ = Maintenance(spark, folder / "tables", None, Progress(io.StringIO()))
    assert round_.committed(work)
    assert forestalled == [1]
    forestalled.clear()
    elsewhere = Maintenance(spark, folder, None, Progress(io.StringIO()))
    assert not elsewhere.committed(work)
    assert forestalled == [1, 1]


def test_commits_that_a_checkpoint_has_taken_over_lose_their_checksums_at_once(
    tmp_path: Path,
) -> None:
    log = tmp_path / "verdicts" / "_delta_log"
    log.mkdir(parents=True)
    commits = [f"{version:020}.json" for version in range(4)]
    checksums = [f".{name}.crc" for name in commits] + [f"{v:020}.crc" for v in range(4)]
    for name in (*commits, *checksums, f"{2:020}.checkpoint.parquet", "_last_checkpoint"):
        (log / name).write_text("")
    round_ = Maintenance(None, tmp_path, None, Progress(io.StringIO()))  # type: ignore[arg-type]
    round_._drop_commits("verdicts", None, 0.0)
    left = {path.name for path in log.iterdir()}
    assert left >= {*commits, f"{2:020}.checkpoint.parquet", "_last_checkpoint"}
    assert left & set(checksums) == {n for n in checksums if int(n.strip(".")[:20]) >= 2}
    round_._drop_commits("verdicts", None, time.time() + 60)
    assert {n for n in commits if (log / n).exists()} == set(commits[2:])


def test_spark_s_log_of_seen_files_forgets_notes_that_are_gone(tmp_path: Path) -> None:
    notes, seen = tmp_path / "admitted", tmp_path / "0"
    notes.mkdir()
    seen.mkdir()
    entry = '{{"path":"file:///x/admitted/{0:012}.json","timestamp":1,"batchId":{0}}}'
    for newest in (9, 19):
        lines = ["v1", *(entry.format(n) for n in range(newest + 1))]
        (seen / f"{newest}.compact").write_text("\n".join(lines))
    for number in (18, 20):
        (notes / f"{number:012}.json").write_text("{}")
    (seen / ".19.compact.crc").write_text("of what was there")
    _forget_gone(seen, notes)
    assert (seen / "19.compact").read_text() == "v1\n" + entry.format(18)
    assert sorted(path.name for path in seen.iterdir()) == ["19.compact", "9.compact"]
    _forget_gone(tmp_path / "admitted", notes)


def test_summed_up_rows_stand_for_all_of_them() -> None:
    def row(number: int, **other: Any) -> dict[str, Any]:
        counts = dict.fromkeys((*ADDED_UP, "milliseconds"), 1)
        return {**counts, "micro_batch_id": number, "first_micro_batch_id": None,
                "table_rows": {"verdicts": number}, "newest_event_time": None,
                "finished_at": None, **other}  # fmt: skip

    rows_ = [row(3, newest_event_time=9), row(4, table_rows=None), row(5, finished_at=7)]
    total = summed_up(rows_)
    assert total["first_micro_batch_id"] == 3
    assert total["micro_batch_id"] == 5
    assert total["rows_in"] == total["held_in_state"] == 3
    assert total["table_rows"] == {"verdicts": 8}
    assert (total["newest_event_time"], total["finished_at"]) == (9, 7)
    assert summed_up([total, row(6)])["first_micro_batch_id"] == 3


@pytest.mark.spark
def test_a_folder_without_tables_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(TablesError, match="no table _batches"):
        Maintenance(spark, tmp_path, None, Progress(io.StringIO())).run(Kept(0.0), 2)
