"""Runs the jobs inside the tests' session, and reads what they wrote as plain Python."""

import io
import os
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pyspark.sql import SparkSession

from replication import paths
from replication.spark import contracts, settings
from replication.spark.alerting import Alerting
from replication.spark.ending import Stop
from replication.spark.kafka_source import KafkaSource
from replication.spark.live import ShippedSource
from replication.spark.progress import Progress
from replication.spark.replay import ReplayJob, slices_of
from replication.spark.stream import StreamJob
from replication.spark.tables import Store

# What differs between two runs of the same input: who wrote a row, in which micro-batch.
RUN_COLUMNS = ("run", "micro_batch_id")
ANSWERS = (
    "verdicts", "loss_ledger", "divergences", "findings", "replica_states", "at_risk",
)  # fmt: skip


# Short runs: the first compiler of the JVM is enough, and a small heap, most of it for what soon
# goes. Place for all compiled code and all classes from the start: by default they are swept.
JAVA_OPTIONS = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xmn700m "
    "-XX:ReservedCodeCacheSize=240m -XX:MetaspaceSize=400m"
)


def shipped_settings() -> dict[str, str]:
    """conf/spark-defaults.conf, with its relative paths made absolute."""
    root = paths.project_root()
    found = {}
    for line in (root / "conf" / "spark-defaults.conf").read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            name, value = line.split(None, 1)
            found[name] = value.strip()
    found["spark.jars"] = ",".join(str(jar) for jar in paths.spark_jars())
    options = found.get("spark.driver.extraJavaOptions", "").replace("=conf/", f"={root}/conf/")
    options = options.replace("=.jars/", f"={root}/.jars/")
    found["spark.driver.extraJavaOptions"] = f"{options} {JAVA_OPTIONS}"
    found["spark.driver.memory"] = "1500m"
    # A few rows a query: compiling code for them would cost more than running it.
    found["spark.sql.codegen.wholeStage"] = "false"
    found["spark.sql.codegen.factoryMode"] = "NO_CODEGEN"
    return found


def start_session(
    warehouse: Path, settings: Mapping[str, str] = MappingProxyType({})
) -> SparkSession:
    """A session as the jobs have it. settings: of Spark's, beside or in the place of those."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.appName("tests")
    for name, value in {**shipped_settings(), **settings}.items():
        builder = builder.config(name, value)
    session = builder.config("spark.sql.warehouse.dir", str(warehouse)).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def run_stream(
    spark: SparkSession, folder: Path, new_run: str | None = None,
    source: ShippedSource | KafkaSource | None = None, alerting: Alerting | None = None,
    incident: str | None = None, **flags: Any,
) -> str:  # fmt: skip
    """jobs/stream.py over folder/in into folder/tables; returns what it said."""
    said = io.StringIO()
    job = StreamJob(
        spark, folder / "tables", folder / "checkpoint",
        settings.load({"write_threads": "1", "settle_seconds": "0", **flags}),
        Progress(said), Stop(), alerting, incident,
    )  # fmt: skip
    job.run(source or folder / "in", new_run)
    return said.getvalue()


def run_replay(
    spark: SparkSession, folder: Path, tables: str = "replayed", new_run: str | None = None,
    keep_events: bool = False, incident: str | None = None,
) -> tuple[dict[tuple[str, str], int], str]:  # fmt: skip
    """jobs/replay.py over folder/in into folder/<tables>: the verdicts' counts, what it said."""
    said = io.StringIO()
    job = ReplayJob(spark, folder / tables, settings.load({}), Progress(said), incident)
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


def waited_for(reached: Callable[[], bool], running: "Future[None]") -> None:
    """Waits until it is so; fails with what the job failed with."""
    deadline = time.monotonic() + 600
    while not reached():
        assert time.monotonic() < deadline
        if running.done():
            running.result()
        time.sleep(0.2)
