"""A row is appended without a Spark job; any Delta engine reads it, and its log without Spark."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from deltalake.transaction import AddAction
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from replication.spark import batch_rows as batch_rows_module
from replication.spark import contracts, tables
from replication.spark.batch_rows import batch_rows, few_rows
from replication.spark.cut import BATCHES
from replication.spark.delta_schemas import first_commit, named, quoted
from replication.spark.log_files import files_of, newest_version, opened
from replication.spark.small_commit import SmallCommit, arrow_rows
from replication.spark.spark_commit import SparkCommit
from replication.spark.tables import REFOLDS, Store, Writer

TABLE = contracts.tables()[BATCHES]


def row(number: int, **other: Any) -> dict[str, Any]:
    values: dict[str, Any] = {
        c.name: {"string": "x", "bigint": number}.get(c.type, {"verdicts": number})
        for c in TABLE.told
    }
    return values | other


def made(folder: Path) -> Path:
    (folder / "_delta_log").mkdir(parents=True)
    (folder / "_delta_log" / f"{0:020d}.json").write_text(first_commit(TABLE, 100))
    return folder


def saved(folder: Path, given: dict[str, Any], transaction: tuple[str, int] | None) -> int:
    rows = arrow_rows(TABLE, [given])
    return SmallCommit(TABLE, rows, frozenset(), transaction).save(str(folder))


def test_a_row_is_there_for_other_engines(tmp_path: Path) -> None:
    folder = made(tmp_path)
    assert saved(folder, row(7, table_rows=None), ("app", 3)) == 1
    assert saved(folder, row(8), None) == 2
    found = DeltaTable(folder)
    assert found.transaction_version("app") == 3
    rows = sorted(found.to_pyarrow_table().to_pylist(), key=lambda r: r["rows_in"])
    assert [r["rows_in"] for r in rows] == [7, 8]
    assert rows[0]["table_rows"] is None
    assert rows[0]["finished_timestamp"].timestamp() * 1000 == rows[0]["finished_at"] == 7
    assert rows[1]["table_versions"] == [("verdicts", 8)]


@pytest.mark.spark
def test_spark_reads_them_and_each_micro_batch_is_there_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "CHECKPOINT_EVERY", 4)
    store = Store(spark, tmp_path)
    store.create()
    writer = Writer("first", 0, "fold", "token", "fold/id")
    store.finish(writer, -1, {})
    for number in (0, 1, 2, 2, 3):
        store.finish(writer, number, {"rows_in": number, "rows/verdicts": 2})
    Store(spark, tmp_path).finish(writer, 3, {"rows_in": 99})
    found = store.newest(BATCHES).orderBy("micro_batch_id").collect()
    assert [(r.micro_batch_id, r.rows_in) for r in found] == [
        (-1, 0), (0, 0), (1, 1), (2, 2), (3, 3)
    ]  # fmt: skip
    assert found[-1].table_rows == {"verdicts": 2}
    # deltalake counts the versions from 1: every fourth is 3, 7, ..; Spark's Delta has 4, 8, ..
    checkpoints = (tmp_path / BATCHES / "_delta_log").glob("*.checkpoint.parquet")
    assert [path.name for path in checkpoints] == [f"{3:020d}.checkpoint.parquet"]
    assert in_order(batch_rows(tmp_path / BATCHES)) == in_order(by_spark(store))
    spark.sql(f"OPTIMIZE delta.`{tmp_path / BATCHES}`").collect()
    for number in range(4):
        (tmp_path / BATCHES / "_delta_log" / f"{number:020d}.json").unlink()
    store.finish(writer, 4, {"rows_in": 5})
    found = in_order(batch_rows(tmp_path / BATCHES))
    assert found == in_order(by_spark(store))
    assert store.newest_batches() == {"fold": found[-1]}
    assert store.sums("first", "fold")["rows_in"] == 11


def by_spark(store: Store) -> list[dict[str, Any]]:
    told = [c.name for c in TABLE.told if c.type != "timestamp"]
    return [r.asDict() for r in store.newest(BATCHES).select(*told).collect()]


def in_order(rows: list[dict[str, Any]] | None) -> list[dict[str, Any]]:
    assert rows is not None
    return sorted(rows, key=lambda row: row["micro_batch_id"])


@pytest.mark.spark
def test_a_small_table_is_read_without_spark_as_spark_reads_it(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(spark, tmp_path)
    store.create()
    writer = Writer("first", 0, "fold", "token", "fold/id")
    for number in (-1, 0, 1):
        store.finish(writer, number, {"rows/verdicts": 2})
    spark.sql(f"ALTER TABLE delta.`{store.path(BATCHES)}` ADD COLUMNS (ticket STRING)")
    # What Spark writes has moments of another kind, which are read to the microsecond.
    spark.sql(f"OPTIMIZE delta.`{store.path(BATCHES)}`").collect()
    for table, version in ((BATCHES, 5), (BATCHES, 2), (REFOLDS, 0)):
        ours = store.at_version(table, version)
        assert few_rows(tmp_path / table, version) is not None
        with monkeypatch.context() as large:
            large.setattr(batch_rows_module, "FEW_ROWS", -1)
            theirs = store.at_version(table, version)
        assert ours.dtypes == theirs.dtypes
        assert sorted(map(repr, ours.collect())) == sorted(map(repr, theirs.collect()))
    assert len(ours.collect()) == 0


@pytest.mark.spark
def test_rows_are_appended_once_however_often_it_is_tried(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(spark, tmp_path)
    store.create()
    writer = Writer("first", 0, "fold", "token", "fold/id")
    columns = ", ".join(f"{c.name} {c.type}" for c in contracts.tables()[REFOLDS].told)
    rows = spark.createDataFrame([("c/t/i/0", 3, -1, bytearray(b"x"), "first", 0)], columns)
    for number in (0, 1, 1):
        store.append(REFOLDS, rows, writer, number)
    store.append(REFOLDS, rows, writer, 1, "another part")
    Store(spark, tmp_path).append(REFOLDS, rows, writer, 1)
    sound = SparkCommit.save

    def lands_and_fails(commit: SparkCommit, path: str, fence: Any) -> None:
        sound(commit, path, fence)
        raise PySparkException("DELTA_CONCURRENT_APPEND")

    monkeypatch.setattr(SparkCommit, "save", lands_and_fails)
    store.append(REFOLDS, rows, writer, 2)
    written = store.newest(REFOLDS).select("cluster_id", "incident").collect()
    assert [tuple(row) for row in written] == [("c", None)] * 4
    assert DeltaTable(tmp_path / REFOLDS).transaction_version(f"fold/id/{REFOLDS}") == 2


@pytest.mark.spark
def test_a_table_altered_meanwhile_costs_no_micro_batch(
    spark: SparkSession, tmp_path: Path
) -> None:
    store = Store(spark, tmp_path / "tables")
    store.create()
    folder, altered = str(tmp_path / "tables" / REFOLDS), tmp_path / "altered"

    def rows(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if not altered.exists():
            altered.touch()
            told = {"delta.deletedFileRetentionDuration": "interval 400 hours"}
            DeltaTable(folder).alter.set_table_properties(told)
        yield from parts

    columns = ", ".join(f"{c.name} {c.type}" for c in contracts.tables()[REFOLDS].told)
    given = spark.createDataFrame([("c/t/i/0", 3, -1, bytearray(b"x"), "first", 0)], columns)
    writer = Writer("first", 0, "fold", "token", "fold/id")
    store.append(REFOLDS, given.mapInArrow(rows, given.schema), writer, 0)
    assert altered.exists()
    assert store.newest(REFOLDS).count() == 1


def added(path: str, rows: int) -> AddAction:
    return AddAction(path, 1, {}, 1, True, json.dumps({"numRecords": rows}))


def test_the_files_of_a_table_are_those_that_its_log_names(tmp_path: Path) -> None:
    table = made(tmp_path)
    assert files_of(table) == {}
    for mode, actions in (
        ("append", [added("a", 2), added("b", 1)]),
        ("append", [added("c", 3)]),
        ("overwrite", [added("d", 4)]),
    ):
        found = DeltaTable(table)
        found.create_write_transaction(actions, mode, found.schema())
    assert files_of(table) == files_of(table, 3) == {"d": 4}
    assert files_of(table, 2) == {"a": 2, "b": 1, "c": 3}
    assert newest_version(table) == 3
    DeltaTable(table).create_checkpoint()
    (table / "_delta_log" / f"{0:020d}.json").unlink()
    assert files_of(table) == {"d": 4}
    assert newest_version(table) == 3


def test_what_only_delta_in_spark_can_tell_is_left_to_it(tmp_path: Path) -> None:
    table = made(tmp_path)
    found = DeltaTable(table)
    found.create_write_transaction([added("a%20b", 1)], "append", found.schema())
    assert files_of(table) is None
    assert files_of(table, 0) == {}
    DeltaTable(table).alter.set_table_properties({"delta.enableChangeDataFeed": "true"})
    assert opened(table) is None
    (table / "_delta_log" / f"{1:020d}.json").unlink()
    assert files_of(table) is None


HOSTILE = (
    "'; DROP TABLE t; --",
    "\\' OR true --",
    "\\",
    "''",
    "`x`",
    "%",
    "$(id)",
    "\n--",
    "ä\u202e",
)


@pytest.mark.spark
def test_a_text_in_sql_is_that_text_and_no_more(spark: SparkSession) -> None:
    told = spark.sql("SELECT " + ", ".join(map(quoted, HOSTILE))).collect()
    assert [tuple(row) for row in told] == [HOSTILE]
    kept = spark.createDataFrame([(text,) for text in HOSTILE], "topic_partition_id string")
    for text in HOSTILE:
        assert kept.filter(named([text])).collect() == [(text,)]
