"""A row is appended by a file and a commit of its own; any Delta engine reads it."""

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from replication.spark import contracts, tables
from replication.spark.delta_schemas import first_commit
from replication.spark.row_commit import RowCommit
from replication.spark.tables import BATCHES, Store, Writer

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
