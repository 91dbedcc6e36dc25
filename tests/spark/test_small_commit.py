"""Rows are put in others' place in a small table without Spark; any Delta engine reads the same."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError
from deltalake.transaction import AddAction
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from replication.evidence.importer import import_evidence
from replication.spark import answer_tables, contracts, small_commit
from replication.spark.delta_schemas import first_commit
from replication.spark.shard_fold import OUT_DDL, ShardFold, out_frame
from replication.spark.small_commit import (
    NotSmallError,
    SmallCommit,
    arrow_rows,
    parts_as_columns,
)
from replication.spark.tables import Store, Writer, completed

NEEDED: dict[str, Any] = {"string": "x", "bigint": 0, "boolean": True, "array<string>": []}
VERDICTS = contracts.tables()["verdicts"]
INCIDENTS = Path(__file__).parents[1] / "incidents"


def made(folder: Path, table: contracts.Table = VERDICTS) -> Path:
    (folder / "_delta_log").mkdir(parents=True)
    (folder / "_delta_log" / f"{0:020d}.json").write_text(first_commit(table, 100))
    return folder


def verdict(partition: int, said: str) -> dict[str, Any]:
    name = f"c/t/i/{partition}"
    needed = {c.name: NEEDED[c.type] for c in VERDICTS.told if not c.nullable}
    return {**needed, "topic_partition_id": name, **parts_as_columns(name), "verdict": said}


def put(folder: Path, number: int, rows: list[dict[str, Any]], *replaced: str) -> int:
    commit = SmallCommit(VERDICTS, arrow_rows(VERDICTS, rows), frozenset(replaced), ("app", number))
    return commit.save(str(folder))


def named(folder: Path, file: str) -> None:
    """Makes a file of one row one of the table's."""
    table, size = DeltaTable(folder), (folder / file).stat().st_size
    add = AddAction(file, size, {}, 1, True, json.dumps({"numRecords": 1}))
    table.create_write_transaction([add], "append", table.schema())


def test_a_commit_is_made_once_for_its_transaction(tmp_path: Path) -> None:
    folder = made(tmp_path)
    assert put(folder, 3, [verdict(0, "HOLDS")]) == 1
    assert put(folder, 3, [verdict(0, "VIOLATED")], "c/t/i/0") == 1
    assert put(folder, 2, [verdict(0, "VIOLATED")], "c/t/i/0") == 1
    assert said(folder) == [(0, "HOLDS")]


def test_a_commit_that_landed_and_failed_keeps_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, sound = made(tmp_path), SmallCommit._commit

    def lands_and_fails(commit: SmallCommit, table: DeltaTable, *given: Any) -> None:
        sound(commit, table, *given)
        raise CommitFailedError("the checkpoint after it")

    monkeypatch.setattr(SmallCommit, "_commit", lands_and_fails)
    assert put(folder, 0, [verdict(0, "HOLDS")]) == 1
    assert said(folder) == [(0, "HOLDS")]


def test_a_folder_that_takes_no_commit_ends_the_attempt(tmp_path: Path) -> None:
    folder = made(tmp_path)
    blocked = folder / "_delta_log" / f"{1:020d}.json"
    blocked.mkdir()
    with pytest.raises(CommitFailedError):
        put(folder, 0, [verdict(0, "HOLDS")])
    assert list(folder.glob("*.parquet")) == []


def said(folder: Path) -> list[tuple[int, str]]:
    rows = DeltaTable(folder).to_pyarrow_table().to_pylist()
    return sorted((row["partition"], row["verdict"]) for row in rows)


def test_rows_stand_in_the_place_of_those_of_their_topic_partitions(tmp_path: Path) -> None:
    folder = made(tmp_path)
    assert put(folder, 0, [verdict(0, "HOLDS"), verdict(1, "HOLDS")]) == 1
    assert put(folder, 1, [verdict(2, "HOLDS")]) == 2
    assert put(folder, 2, [verdict(1, "VIOLATED"), verdict(3, "HOLDS")], "c/t/i/1") == 3
    assert said(folder) == [(0, "HOLDS"), (1, "VIOLATED"), (2, "HOLDS"), (3, "HOLDS")]
    found = DeltaTable(folder)
    assert len(found.file_uris()) == 1
    assert found.transaction_version("app") == 2
    found.load_as_version(2)
    rows = found.to_pyarrow_table().to_pylist()
    assert sorted(row["partition"] for row in rows) == [0, 1, 2]
    assert put(folder, 3, [], "c/t/i/0", "c/t/i/1", "c/t/i/2", "c/t/i/3") == 4
    assert said(folder) == []
    assert DeltaTable(folder).file_uris() == []


def test_who_comes_second_looks_at_the_table_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = made(tmp_path)
    for partition in range(3):
        put(folder, partition, [verdict(partition, "HOLDS")])
    sound, tries = SmallCommit._commit, []

    def compacted_before(commit: SmallCommit, table: DeltaTable, *given: Any) -> None:
        if not tries:
            DeltaTable(folder).optimize.compact()
        tries.append(table.version())
        sound(commit, table, *given)

    monkeypatch.setattr(SmallCommit, "_commit", compacted_before)
    assert put(folder, 3, [verdict(1, "VIOLATED")], "c/t/i/1") == 5
    assert tries == [3, 4]
    assert said(folder) == [(0, "HOLDS"), (1, "VIOLATED"), (2, "HOLDS")]
    live = {Path(uri).name for uri in DeltaTable(folder).file_uris()}
    assert len(live) == 1
    # What the refused commit had written is no file of the table, and gone.
    assert len(list(folder.glob("*.parquet"))) == 3 + 1 + 1


def test_files_that_maintenance_takes_away_are_looked_up_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = made(tmp_path)
    for partition in range(3):
        put(folder, partition, [verdict(partition, "HOLDS")])
    sound, looks = small_commit.files_in, []

    def compacted_after(table: DeltaTable) -> Any:
        found = sound(table)
        if not looks:
            DeltaTable(folder).optimize.compact()
            for name in found or {}:
                (folder / name).unlink()
        looks.append(table.version())
        return found

    monkeypatch.setattr(small_commit, "files_in", compacted_after)
    put(folder, 3, [verdict(1, "VIOLATED")], "c/t/i/1")
    assert looks == [3, 4]
    assert said(folder) == [(0, "HOLDS"), (1, "VIOLATED"), (2, "HOLDS")]


def test_only_rows_of_the_query_give_way(tmp_path: Path) -> None:
    table = contracts.tables()["quarantine"]
    folder = made(tmp_path, table)

    def row(query: str, reason: str) -> dict[str, Any]:
        needed = {c.name: NEEDED[c.type] for c in table.told if not c.nullable}
        return {**needed, "topic_partition_id": "c/t/i/0", "query": query, "reason": reason}

    rows = arrow_rows(table, [row("fold", "old"), row("ingest", "kept")])
    SmallCommit(table, rows, frozenset(), ("app", 0)).save(str(folder))
    again = arrow_rows(table, [row("fold", "new")])
    SmallCommit(table, again, frozenset({"c/t/i/0"}), ("app", 1), "fold").save(str(folder))
    found = DeltaTable(folder).to_pyarrow_table().to_pylist()
    assert sorted(r["reason"] for r in found) == ["kept", "new"]
    assert {r["cluster_id"] for r in found} == {"c"}


def test_what_is_for_spark_is_refused_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = made(tmp_path)
    put(folder, 0, [verdict(0, "HOLDS"), verdict(1, "HOLDS")])
    with monkeypatch.context() as many:
        many.setattr(small_commit, "MOST_ROWS", 1)
        with pytest.raises(NotSmallError, match="more than 1 rows"):
            put(folder, 1, [verdict(1, "VIOLATED")], "c/t/i/1")
    for wrong in ({"partition": "one"}, {"partition": 1 << 70}, {"verdict": 7}, {"verdict": None}):
        with pytest.raises(NotSmallError):
            arrow_rows(VERDICTS, [verdict(0, "HOLDS") | wrong])
    with pytest.raises(NotSmallError):
        parts_as_columns("no topic partition")
    DeltaTable(folder).alter.set_table_properties({"delta.enableChangeDataFeed": "true"})
    with pytest.raises(NotSmallError, match="only Spark's Delta"):
        put(folder, 1, [verdict(1, "VIOLATED")], "c/t/i/1")
    assert len(list(folder.glob("*.parquet"))) == 1


def test_a_column_that_an_older_file_lacks_is_null(tmp_path: Path) -> None:
    folder = made(tmp_path)
    old = arrow_rows(VERDICTS, [verdict(0, "HOLDS")]).drop_columns(["reason"])
    pq.write_table(old, folder / "old.parquet")
    named(folder, "old.parquet")
    put(folder, 1, [verdict(1, "HOLDS")], "c/t/i/1")
    assert said(folder) == [(0, "HOLDS"), (1, "HOLDS")]


def test_a_column_of_an_owner_is_not_lost(tmp_path: Path) -> None:
    folder = made(tmp_path)
    theirs = arrow_rows(VERDICTS, [verdict(0, "HOLDS")]).append_column("ticket", [["T-1"]])
    pq.write_table(theirs, folder / "theirs.parquet")
    named(folder, "theirs.parquet")
    with pytest.raises(NotSmallError, match="ticket"):
        put(folder, 1, [verdict(1, "HOLDS")], "c/t/i/1")


@pytest.mark.spark
def test_the_rows_are_those_that_spark_would_have_made(spark: SparkSession, tmp_path: Path) -> None:
    outs = []
    for incident in ("unclean_election__4.1.1", "healthy_rolling_restart__4.3.0"):
        shard = ShardFold()
        for event in import_evidence([INCIDENTS / incident]).events():
            name = f"{event.cluster_id}/{event.topic}/{event.topic_id}/{event.partition}"
            shard.partition(name).fold_one(event)
        outs += list(shard.outcome())
    frame = spark.createDataFrame(out_frame(outs), OUT_DDL)
    outcome = answer_tables.outcome_of(frame)
    writer = Writer("first", 0, "fold", "token", "fold/id")
    store = Store(spark, tmp_path)
    store.create()
    written = set()
    for table in outcome.few:
        wanted = completed(table, answer_tables.rows_of(frame, table, writer, 0)).collect()
        assert answer_tables._put_few(store, outcome, table, writer, 0)
        found = store.newest(table).collect()
        assert in_order(found) == in_order(wanted)
        written |= {table} if found else set()
    assert written >= {"verdicts", "loss_ledger", "replica_states", "isr_and_leadership"}
    assert store.version("verdicts") == 1
    assert answer_tables._put_few(Store(spark, tmp_path), outcome, "verdicts", writer, 0)
    assert Store(spark, tmp_path).version("verdicts") == 1
    # In the place of rows that Spark has written, moments far from now among them.
    for table in ("verdicts", "replica_states", "isr_and_leadership"):
        told = answer_tables.rows_of(frame, table, writer, 0)
        if table == "isr_and_leadership":
            told = told.withColumn("observed_at", F.lit(32503679999999).cast("bigint"))
        wanted = completed(table, told)
        store.overwrite(table, told, writer, 1)
        name = outcome.few[table][0][0]
        again = [pair for pair in outcome.few[table] if pair[0] == name]
        only = replace(outcome, few={table: again}, replaced={table: [name]})
        assert answer_tables._put_few(store, only, table, writer, 2)
        others = wanted.filter(F.col("topic_partition_id") != name).collect()
        found = store.newest(table).filter(F.col("topic_partition_id") != name).collect()
        assert in_order(found) == in_order(others)
        assert len(others) > 0
        assert store.newest(table).count() == len(others) + len(again)


def in_order(rows: Any) -> list[str]:
    return sorted(
        json.dumps(row.asDict(recursive=True), default=str, sort_keys=True) for row in rows
    )
