"""Views that last: in a schema of the catalog, where other sessions and BI tools find them."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from replication.evidence.event_dumps import write_events
from replication.spark import contracts, views
from replication.spark.tables import TablesError
from tests.spark.event_rows import made_trace
from tests.spark.jobs_in_process import run_replay

pytestmark = pytest.mark.spark


def test_views_of_a_catalog_outlast_the_session_that_made_them(
    spark: SparkSession, folder: Path
) -> None:
    write_events(folder / "in" / "1.jsonl", made_trace())
    run_replay(spark, folder, "tables", keep_events=True)
    found = views.opened(spark, folder / "tables")
    # As the job does: what does not fit shows in temporary views first.
    found.register()
    names = views.put_into_catalog(found, "replication_tables")
    assert set(names) == {t.name for t in contracts.tables().values()}
    another = spark.newSession()
    asked = "SELECT first_offset, first_acknowledged_at FROM {}lost_records"
    (lost,) = another.sql(asked.format("replication_tables.")).collect()
    assert [lost] == spark.sql(asked.format("")).collect()
    assert lost["first_offset"] == 15
    with pytest.raises(TablesError, match="is kept in memory and ends with it"):
        views._check_lasting(spark, "replication_tables")
    spark.sql("DROP SCHEMA replication_tables CASCADE")
