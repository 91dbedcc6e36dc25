"""Those who follow changes: Delta's change data feed, switched on by its owners, and without it."""

import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from replication.evidence.event_dumps import write_events
from replication.spark import views
from replication.spark.tables import Store
from tests.spark.event_rows import made_trace
from tests.spark.jobs_in_process import run_stream

pytestmark = pytest.mark.spark
# Who wrote a row is no part of what it says.
SAID = "topic_partition_id, first_offset, end_offset, status"


def test_a_loss_shows_as_a_change_with_and_without_the_feed(
    spark: SparkSession, folder: Path
) -> None:
    events = made_trace()
    elected = next(n for n, e in enumerate(events) if e.fact.kind == "leadership_recorded"
                   and e.fact.election_kind == "unclean")  # fmt: skip
    write_events(folder / "in" / "1.jsonl", events[:elected])
    run_stream(spark, folder)
    store = Store(spark, folder / "tables")
    path = store.path("loss_ledger")
    spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES (delta.enableChangeDataFeed = true)")
    before = Store(spark, folder / "tables").version("loss_ledger")
    moment = int(time.time() * 1000)
    write_events(folder / "in" / "2.jsonl", events[elected:])
    run_stream(spark, folder)
    after = views.opened(spark, folder / "tables").cut["loss_ledger"]
    assert after > before
    fed = spark.sql(
        f"SELECT _change_type, {SAID} FROM table_changes('delta.`{path}`', {before + 1}, {after})"
    ).collect()
    assert [row["_change_type"] for row in fed] == ["insert"]
    plain = spark.sql(
        f"SELECT {SAID} FROM delta.`{path}` VERSION AS OF {after} "
        f"EXCEPT SELECT {SAID} FROM delta.`{path}` VERSION AS OF {before}"
    ).collect()
    assert [tuple(row) for row in plain] == [tuple(row)[1:] for row in fed]
    assert plain[0]["first_offset"] == 15
    # As docs/tables.md asks what is told since a moment: the version that _batches named then.
    store.newest("_batches").createOrReplaceTempView("_batches")
    [then] = spark.sql(
        "SELECT max_by(table_versions['loss_ledger'], finished_at) AS n FROM _batches "
        f"WHERE query = 'fold' AND finished_at < {moment}"
    ).collect()
    since = spark.sql(
        f"SELECT {SAID} FROM delta.`{path}` EXCEPT "
        f"SELECT {SAID} FROM delta.`{path}` VERSION AS OF {then['n']}"
    ).collect()
    assert since == plain
