"""Maintenance beside a stream: fewer files, the same rows, versions in use stay readable."""

import io
import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from replication.evidence.event_dumps import write_events
from replication.spark import views
from replication.spark.maintain import Maintenance
from replication.spark.progress import Progress
from replication.spark.tables import Store, TablesError
from tests.spark.event_rows import made_trace
from tests.spark.jobs_in_process import answers, rows, run_replay, run_stream

pytestmark = pytest.mark.spark


def maintain(spark: SparkSession, folder: Path) -> str:
    """One round that keeps nothing which is not in use."""
    said = io.StringIO()
    round_ = Maintenance(spark, folder / "tables", folder / "checkpoint", Progress(said))
    round_.run(keep_hours=0.0, files=2)
    return said.getvalue()


def files_on_disk(folder: Path) -> int:
    return len(list((folder / "tables").glob("*/*.parquet")))


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
    before, on_disk = answers(spark, folder / "tables"), files_on_disk(folder)
    said = maintain(spark, folder)
    assert "replica_events: compacted" in said
    assert "4 notes of what was read joined into one" in said
    assert files_on_disk(folder) < on_disk
    assert answers(spark, folder / "tables") == before
    for path, version in re.findall(r"delta\.`([^`]+)` VERSION AS OF (\d+)", script):
        spark.read.format("delta").option("versionAsOf", version).load(path).count()
    for number, piece in enumerate(pieces[4:], start=4):
        write_events(folder / "in" / f"{number}.jsonl", piece)
    said = run_stream(spark, folder, profile="small-batches")
    assert f"in all: {sum(map(len, pieces))} rows = {sum(map(len, pieces))} applied" in said
    (folder / "tables" / "views.sql").unlink()
    maintain(spark, folder)
    assert store.files("replica_events") == 1
    run_replay(spark, folder)
    assert answers(spark, folder / "replayed") == answers(spark, folder / "tables")
    assert len(rows(spark, folder / "tables", "replica_events")) == sum(map(len, pieces))


def test_a_folder_without_tables_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(TablesError, match="no table _batches"):
        Maintenance(spark, tmp_path, None, Progress(io.StringIO())).run(0.0, 2)
