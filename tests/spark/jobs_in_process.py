"""Runs the jobs inside the tests' session, and reads what they wrote as plain Python."""

import io
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from replication.protocol import wire
from replication.protocol.events import Event
from replication.spark import contracts, settings
from replication.spark.progress import Progress
from replication.spark.replay import ReplayJob, slices_of
from replication.spark.stream import Stop, StreamJob
from replication.spark.tables import Store

# What differs between two runs of the same input: who wrote a row, in which micro-batch.
RUN_COLUMNS = ("run", "micro_batch_id")
ANSWERS = ("verdicts", "loss_ledger", "divergences", "findings", "replica_states")


def write_events(path: Path, events: list[Event]) -> None:
    """An event dump of JSON lines."""
    path.write_text("".join(wire.to_json(e) + "\n" for e in events), encoding="utf-8")


def run_stream(spark: SparkSession, folder: Path, new_run: str | None = None, **flags: Any) -> str:
    """jobs/stream.py over folder/in into folder/tables; returns what it said."""
    said = io.StringIO()
    job = StreamJob(
        spark, folder / "tables", folder / "checkpoint",
        settings.load({"write_threads": "1", "settle_seconds": "0", **flags}),
        Progress(said), Stop(),
    )  # fmt: skip
    job.run(folder / "in", new_run)
    return said.getvalue()


def run_replay(
    spark: SparkSession, folder: Path, tables: str = "replayed", new_run: str | None = None,
    keep_events: bool = False,
) -> tuple[dict[tuple[str, str], int], str]:  # fmt: skip
    """jobs/replay.py over folder/in into folder/<tables>: the verdicts' counts, what it said."""
    said = io.StringIO()
    job = ReplayJob(spark, folder / tables, settings.load({}), Progress(said))
    verdicts = job.run(slices_of(folder / "in"), new_run, keep_events)
    return verdicts, said.getvalue()


def rows(spark: SparkSession, tables: Path, table: str) -> list[dict[str, Any]]:
    """The rows of a table at the readers' cut, without who wrote them, in one order."""
    columns = [c.name for c in contracts.tables()[table].columns if c.name not in RUN_COLUMNS]
    frame = Store(spark, tables).at_cut(table).select(*columns)
    return sorted((row.asDict(recursive=True) for row in frame.collect()), key=repr)


def answers(spark: SparkSession, tables: Path) -> dict[str, list[dict[str, Any]]]:
    """The rows of every answer table."""
    return {table: rows(spark, tables, table) for table in ANSWERS}
