"""Views that last: in a schema of the catalog, where other sessions and BI tools find them."""

import argparse
import subprocess
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from replication import places
from replication.evidence.event_dumps import write_events
from replication.spark import contracts, hadoop_files, views
from replication.spark.tables import TablesError
from tests.spark import standalone
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
    # What an import writes by its evidence is not there where none has.
    assert set(names) == {t.name for t in contracts.tables().values() if t.written != "evidence"}
    another = spark.newSession()
    asked = "SELECT first_offset, first_acknowledged_at FROM {}lost_records"
    (lost,) = another.sql(asked.format("replication_tables.")).collect()
    assert [lost] == spark.sql(asked.format("")).collect()
    assert lost["first_offset"] == 15
    with pytest.raises(TablesError, match="is kept in memory and ends with it"):
        views._check_lasting(spark, "replication_tables")
    spark.sql("DROP SCHEMA replication_tables CASCADE")


def test_a_schema_of_the_catalog_is_the_folder_of_its_tables(
    spark: SparkSession, folder: Path
) -> None:
    hadoop_files.bind(spark)
    named = places.tables_folder("catalog:lake")
    for unknown in ("catalog:lake", "catalog:nowhere.lake"):
        with pytest.raises(FileNotFoundError, match="no such schema in Spark's catalog"):
            places.tables_folder(unknown).absolute()
    spark.sql(f"CREATE SCHEMA lake LOCATION '{folder}/of lake'")
    assert named.absolute() == folder / "of lake"
    spark.sql("DROP SCHEMA lake CASCADE")
    # Not of a source or a checkpoint, and no way out of a schema's name.
    for refused in ("catalog:a.b.c", "catalog:", "catalog:a/../b"):
        with pytest.raises(argparse.ArgumentTypeError):
            places.tables_folder(refused)
    with pytest.raises(argparse.ArgumentTypeError):
        places.folder("catalog:lake")


@pytest.mark.sweep
def test_a_metastore_of_hive_keeps_the_views_for_other_sessions(
    spark: SparkSession, folder: Path
) -> None:
    write_events(folder / "in" / "1.jsonl", made_trace())
    metastore = f"jdbc:derby:;databaseName={folder}/metastore;create=true"
    cluster = standalone.Cluster("local[1]", settings=(
        *standalone.QUICK, "spark.sql.catalogImplementation=hive",
        f"spark.hadoop.javax.jdo.option.ConnectionURL={metastore}",
        "spark.hadoop.datanucleus.schema.autoCreateAll=true",
        "spark.hadoop.hive.metastore.schema.verification=false",
        f"spark.sql.warehouse.dir={folder}/warehouse",
    ))  # fmt: skip
    tables = ("--tables", "catalog:kafka")
    replay = ("replay", cluster, "--source", folder / "in", *tables)
    refused = standalone.submitted(*replay)
    assert refused.returncode == 2, refused.stderr[-3000:]
    assert "kafka: no such schema in Spark's catalog" in refused.stdout
    sql = standalone.submit("create_views", cluster)[:-1]
    sql[0] = str(standalone.HOME / "bin" / "spark-sql")
    subprocess.run([*sql, "-e", "CREATE SCHEMA kafka"], cwd=standalone.ROOT,
                   env=standalone.environment(), capture_output=True, check=True)  # fmt: skip
    assert standalone.submitted(*replay).returncode == 1
    assert (folder / "warehouse" / "kafka.db" / "verdicts" / "_delta_log").is_dir()
    made = standalone.submitted("create_views", cluster, *tables, "--catalog", "kafka")
    assert made.returncode == 0, made.stderr[-3000:]
    assert "views in kafka: " in made.stdout
    asked = "SELECT first_offset, end_offset FROM kafka.lost_records"
    done = subprocess.run([*sql, "-e", asked], cwd=standalone.ROOT,
                          env=standalone.environment(), capture_output=True, text=True,
                          check=False)  # fmt: skip
    assert done.stdout.split("\n")[0] == "15\t18", done.stderr[-3000:]
