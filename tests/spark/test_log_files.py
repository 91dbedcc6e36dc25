"""A row is appended by a file and a commit of its own; any Delta engine reads it."""

import errno
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from replication.spark import contracts, tables
from replication.spark.append_commit import AppendCommit
from replication.spark.batch_rows import batch_rows
from replication.spark.delta_schemas import first_commit, named, quoted
from replication.spark.log_files import files_of
from replication.spark.row_commit import RowCommit
from replication.spark.tables import BATCHES, REFOLDS, Store, Writer

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


def test_a_row_is_there_for_other_engines_and_takes_no_other_commits_place(tmp_path: Path) -> None:
    folder = made(tmp_path)
    assert RowCommit(TABLE, row(7, table_rows=None), ("app", 3)).save(str(folder)) == 1
    taken = folder / "_delta_log" / f"{2:020d}.json"
    before = DeltaTable(folder).version()
    os.link(folder / "_delta_log" / f"{1:020d}.json", taken)
    assert before == 1
    taken.unlink()
    taken.write_text(json.dumps({"commitInfo": {"operation": "OPTIMIZE"}}) + "\n")
    assert RowCommit(TABLE, row(8)).save(str(folder)) == 3
    found = DeltaTable(folder)
    assert found.transaction_version("app") == 3
    rows = sorted(found.to_pyarrow_table().to_pylist(), key=lambda r: r["rows_in"])
    assert [r["rows_in"] for r in rows] == [7, 8]
    assert rows[0]["table_rows"] is None
    assert rows[0]["finished_timestamp"].timestamp() * 1000 == rows[0]["finished_at"] == 7
    assert rows[1]["table_versions"] == [("verdicts", 8)]
    assert [p.name for p in (folder / "_delta_log").iterdir() if p.name.startswith(".")] == []


def test_without_hard_links_it_is_renamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = made(tmp_path)

    def link(*_: Any) -> None:
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr("os.link", link)
    assert RowCommit(TABLE, row(1)).save(str(folder)) == 1
    assert DeltaTable(folder).version() == 1


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
    assert list((tmp_path / BATCHES / "_delta_log").glob("*4.checkpoint.parquet"))
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
    sound = AppendCommit.save

    def lands_and_fails(commit: AppendCommit, path: str) -> None:
        sound(commit, path)
        raise PySparkException("DELTA_CONCURRENT_APPEND")

    monkeypatch.setattr(AppendCommit, "save", lands_and_fails)
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


def commit(table: Path, number: int, *actions: dict[str, Any]) -> None:
    (table / "_delta_log").mkdir(exist_ok=True)
    text = "".join(json.dumps(action) + "\n" for action in actions)
    (table / "_delta_log" / f"{number:020d}.json").write_text(text)


def add(path: str, **other: Any) -> dict[str, Any]:
    return {"add": {"path": path, **other}}


def test_the_files_of_a_table_are_those_that_its_log_names(tmp_path: Path) -> None:
    assert files_of(made(tmp_path / "empty")) == {}
    commit(tmp_path, 0, add("a", stats='{"numRecords": 2}'), add("b"))
    commit(tmp_path, 1, add("c", stats='{"numRecords": 3}'), {"remove": {"path": "a"}})
    commit(tmp_path, 2, {"commitInfo": {}}, add("b"), {"remove": {"path": "b"}})
    assert files_of(tmp_path) == files_of(tmp_path, 1) == {"b": None, "c": 3}
    assert files_of(tmp_path, 0) == {"a": 2, "b": None}


@pytest.mark.parametrize("other", [{"deletionVector": {"cardinality": 1}}, {"path": "a%20b"}])
def test_what_only_delta_can_tell_is_left_to_it(tmp_path: Path, other: dict[str, Any]) -> None:
    commit(tmp_path, 0, add("a"))
    commit(tmp_path, 1, {"add": {"path": "b", **other}})
    assert files_of(tmp_path) is None
    assert files_of(tmp_path, 0) == {"a": None}
    (tmp_path / "_delta_log" / f"{0:020d}.json").unlink()
    assert files_of(tmp_path) is None


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
