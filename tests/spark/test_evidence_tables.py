"""An import's own tables: what `recover`, `groups` and `decide` tell of the same evidence."""

import io
import json
import shutil
import tarfile
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from replication.cli import main as laptop
from replication.spark import contracts, import_artifacts, views
from replication.spark.evidence_tables import Rows
from replication.spark.import_artifacts import ImportJob
from replication.spark.progress import Progress
from replication.spark.tables import Store, TablesError
from tests.changed_evidence import INCIDENTS
from tests.recovery.groups.test_groups import CAPTURED
from tests.spark.jobs_in_process import run_replay

pytestmark = pytest.mark.spark
LOST = INCIDENTS / "unclean_election__4.1.1"
TABLES = ("lost_records_keys", "affected_groups", "affected_transactions", "decisions")


def run_import(spark: SparkSession, evidence: Path, out: Path, *more: Any) -> str:
    said = io.StringIO()
    words = [evidence, "--out", out, "--tables", out.parent / "tables", *more]
    flags = import_artifacts.parser().parse_args([str(w) for w in words])
    import_artifacts.check(flags)
    ImportJob(spark, Progress(said)).run(flags)
    return said.getvalue()


def held(spark: SparkSession, tables: Path, table: str) -> list[dict[str, Any]]:
    """The rows of a table, in one order."""
    frame = Store(spark, tables).newest(table)
    return sorted((row.asDict(recursive=True) for row in frame.collect()), key=repr)


def told(rows: list[dict[str, Any]], names: list[str]) -> list[dict[str, Any]]:
    """Some columns of rows, in one order."""
    return sorted(({n: row[n] for n in names} for row in rows), key=repr)


def test_keys_groups_and_decisions_are_those_of_the_laptop(
    spark: SparkSession, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Beside the tables of a replay, of two incidents of different clusters; each once, however
    often it is imported."""
    with tarfile.open(CAPTURED) as packed:
        packed.extractall(folder / "captured", filter="data")
    said = run_import(spark, folder / "captured", folder / "in", "--incident", "may")
    assert "affected_groups: 8 rows" in said
    run_replay(spark, folder, "tables")
    run_import(spark, LOST, folder / "more")
    run_import(spark, folder / "captured", folder / "again", "--incident", "may")
    tables = folder / "tables"

    for evidence, incident in ((folder / "captured", "may"), (LOST, None)):
        back = folder / f"back-{incident}"
        laptop(["recover", str(evidence), "--out", str(back)])
        for table in TABLES[:3]:
            ours = [r for r in held(spark, tables, table) if r["incident"] == incident]
            names = [c.name for c in contracts.tables()[table].told]
            names = [n for n in names if n not in ("topic_partition_id", "incident")]
            laptops = pq.read_table(back / f"{table}.parquet").to_pylist()
            assert told(ours, names) == told(laptops, names)
        capsys.readouterr()
        laptop(["decide", str(evidence), "--format", "json"])
        decided = json.loads(capsys.readouterr().out)["partitions"]
        ours = [r for r in held(spark, tables, "decisions") if r["incident"] == incident]
        assert [
            (r["topic_partition_id"].split("/")[1], r["advice"], r["replica"], r["safe"],
             json.loads(r["candidates"]), [s["command"] for s in r["steps"]])
            for r in ours
        ] == [
            (p["topic"], p["advice"], p["replica"], p["safe"], p["candidates"],
             [s["command"] for s in p["steps"]])
            for p in decided
        ]  # fmt: skip
    assert len(held(spark, tables, "affected_groups")) == 8
    lost = held(spark, tables, "lost_records_keys")
    assert {r["incident"] for r in lost} == {"may", None}
    assert all(r["acknowledged_timestamp"] is not None for r in lost if r["acks"] is not None)
    opened = views.opened(spark, tables)
    opened.register()
    joined = spark.sql(
        "SELECT DISTINCT g.group FROM affected_groups g JOIN loss_ledger l "
        "ON g.topic_partition_id = l.topic_partition_id "
        "AND array_contains(g.finding_ids, l.finding_id)"
    )
    assert {row["group"] for row in joined.collect()} == {
        "classic-0", "classic-1", "consumer-2", "shared",
    }  # fmt: skip


def test_what_nobody_asks_for_is_not_written(spark: SparkSession, folder: Path) -> None:
    """A replay makes no table that it does not fill; a view over such tables is none of ours."""
    run_import(spark, LOST, folder / "in")
    run_replay(spark, folder)
    assert not any((folder / "replayed" / table).exists() for table in TABLES)
    assert views.opened(spark, folder / "replayed").run == "first"


def test_a_table_that_was_there_and_is_gone_is_not_made_anew(
    spark: SparkSession, folder: Path
) -> None:
    """It would hold this import's rows alone, and look like a whole one."""
    run_import(spark, LOST, folder / "in", "--incident", "may")
    tables = folder / "tables"
    for table in ("decisions", "affected_groups"):
        shutil.rmtree(tables / table)
        said = f"the tables? .*{table}.* gone, .*delete the folders? .*lost_records_keys.* too and"
        with pytest.raises(TablesError, match=said):
            run_import(spark, LOST, folder / f"june-{table}", "--incident", "june")
        assert not (tables / table).exists()
        assert not list((folder / f"june-{table}").glob("*"))
    for table in TABLES:
        shutil.rmtree(tables / table, ignore_errors=True)
    run_import(spark, LOST, folder / "again", "--incident", "may")
    assert held(spark, tables, "decisions")


def test_tables_that_a_crash_has_left_half_made_are_gone_on_with(
    spark: SparkSession, folder: Path
) -> None:
    store = Store(spark, folder / "tables")
    store.create(by_evidence=True)
    shutil.rmtree(folder / "tables" / "decisions")
    run_import(spark, LOST, folder / "in")
    assert held(spark, folder / "tables", "decisions")


def test_rows_that_are_only_counted_are_not_kept() -> None:
    rows = Rows(is_kept=False)
    rows.add({"value": b"x"})
    assert (rows.count, rows.rows) == (1, [])
