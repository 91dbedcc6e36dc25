"""Incidents of one cluster stand side by side: in one run, and run after run."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from replication.evidence.event_dumps import write_events
from replication.protocol.ground import wire
from replication.protocol.ground.events import Event
from replication.spark import contracts, delta_schemas, views
from replication.spark.incident_page import answer_of, events_of, incident_of
from replication.spark.shard_fold import ShardFold
from replication.spark.tables import Store, TablesError
from replication.spark.topic_partition_ids import Parts, parts_of
from tests.spark.event_rows import frame_of, made_trace
from tests.spark.jobs_in_process import answers, rows, run_replay, run_stream

# The second incident of the same partition: one round less, so other offsets are lost.
FIRST, SECOND = made_trace(rounds=5), made_trace(rounds=4, trace_id="second")


def called(events: list[Event], incident: str) -> list[Event]:
    """The events under an incident's name."""
    return [replace(event, incident=incident) for event in events]


def lost(spark: SparkSession, tables: Path) -> dict[str | None, list[int]]:
    """First lost offsets by incident."""
    found: dict[str | None, list[int]] = {}
    for row in rows(spark, tables, "loss_ledger"):
        found.setdefault(row["incident"], []).append(row["first_offset"])
    return found


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("c/t/i/0", Parts("c", "t", "i", 0, "")),
        ("c/t/i/7@may", Parts("c", "t", "i", 7, "may")),
        ("a/b@c/t/i/7@may", Parts("a/b@c", "t", "i", 7, "may")),
        ("/t//0", Parts("", "t", "", 0, "")),
    ],
)
def test_a_topic_partition_id_is_taken_apart(name: str, parts: Parts) -> None:
    assert parts_of(name) == parts


def test_the_name_of_an_incident_is_no_part_of_what_was_observed() -> None:
    event = FIRST[0]
    row = wire.to_row(replace(event, incident="may"))
    assert row["incident"] == "may"
    assert wire.content_id(row) == event.event_id
    assert wire.from_row(row).incident == "may"
    assert "incident" not in wire.to_row(event)
    for bad in ("a/b", "a b", "x" * 101, "é", 3):
        with pytest.raises(wire.Misfit):
            wire.from_row({**row, "incident": bad})


def test_a_shard_keeps_incidents_of_one_partition_apart() -> None:
    shard = ShardFold()
    for incident, events in (("", FIRST), ("@may", SECOND)):
        frame = frame_of(events)
        frame["topic_partition_id"] += incident
        shard.take(frame)
    shard = ShardFold.decode(shard.encode())
    shard.touch_all()
    first = {
        out.topic_partition_id: out.rows[0]["first_offset"]
        for out in shard.outcome()
        if out.table == "loss_ledger"
    }
    assert first == {"cluster/t/id/0": 15, "cluster/t/id/0@may": 12}


@pytest.mark.spark
def test_a_stream_and_a_replay_tell_incidents_apart_alike(
    spark: SparkSession, folder: Path
) -> None:
    write_events(folder / "in" / "1.jsonl", called(FIRST, "april"))
    write_events(folder / "in" / "2.parquet", called(SECOND, "may"))
    run_stream(spark, folder)
    run_replay(spark, folder)
    assert lost(spark, folder / "tables") == {"april": [15], "may": [12]}
    assert answers(spark, folder / "tables") == answers(spark, folder / "replayed")
    for table in ("verdicts", "replica_states", "isr_and_leadership"):
        partitions = {(r["cluster_id"], r["partition"], r["incident"])
                      for r in rows(spark, folder / "tables", table)}  # fmt: skip
        assert partitions == {("cluster", 0, "april"), ("cluster", 0, "may")}
    found = views.opened(spark, folder / "tables")
    found.register()
    counted = spark.table("current_events").groupBy("incident").count().collect()
    assert {r["incident"]: r["count"] for r in counted} == {
        "april": len(FIRST), "may": len(SECOND),
    }  # fmt: skip
    with pytest.raises(TablesError, match=r"several incidents \(april, may\)"):
        incident_of(found, None)
    answer = answer_of(found, None, incident_of(found, "may"))
    assert [loss["first_offset"] for loss in answer["losses"]] == [12]
    (told,) = events_of(found, answer, "may").values()
    assert [e.event_id for e in told] == [e.event_id for e in SECOND]


@pytest.mark.spark
def test_a_replay_of_another_incident_leaves_the_first_one_as_it_is(
    spark: SparkSession, folder: Path
) -> None:
    def replay(events: list[Event], incident: str, new_run: str | None = None) -> None:
        for path in (folder / "in").iterdir():
            path.unlink()
        write_events(folder / "in" / "events.jsonl", events)
        run_replay(spark, folder, "tables", new_run, keep_events=True, incident=incident)

    replay(FIRST, "april")
    before = answers(spark, folder / "tables")
    replay(SECOND, "may")
    assert lost(spark, folder / "tables") == {"april": [15], "may": [12]}
    after = answers(spark, folder / "tables")
    for table, kept in before.items():
        assert [r for r in after[table] if r["incident"] == "april"] == kept
    with pytest.raises(TablesError, match="holds the answers of incident may"):
        replay(SECOND, "may")
    replay(FIRST, "may", "may-again")
    assert lost(spark, folder / "tables") == {"april": [15], "may": [15]}
    views.opened(spark, folder / "tables").register()
    told = spark.table("current_events").groupBy("incident").count().collect()
    assert {r["incident"]: r["count"] for r in told} == {"april": len(FIRST), "may": len(FIRST)}


@pytest.mark.spark
def test_an_event_of_another_incident_goes_to_quarantine(spark: SparkSession, folder: Path) -> None:
    strange = called(made_trace(partition=1), "june")
    write_events(folder / "in" / "1.jsonl", [*FIRST, *called(SECOND[:1], "may"), *strange])
    write_events(folder / "in" / "2.parquet", strange[:3])
    run_replay(spark, folder, "tables", incident="may")
    found = rows(spark, folder / "tables", "quarantine")
    of_june = [r for r in found if "this run is of 'may'" in r["reason"]]
    assert len(of_june) == len(strange) + 3
    assert {r["partition"] for r in rows(spark, folder / "tables", "verdicts")} == {0}


@pytest.mark.spark
def test_a_stream_keeps_the_incident_that_it_began_with(spark: SparkSession, folder: Path) -> None:
    write_events(folder / "in" / "1.jsonl", FIRST[:10])
    run_stream(spark, folder, incident="may")
    write_events(folder / "in" / "2.jsonl", FIRST[10:])
    with pytest.raises(TablesError, match="incident is may for the life of"):
        run_stream(spark, folder)
    run_stream(spark, folder, incident="may")
    assert lost(spark, folder / "tables") == {"may": [15]}


def tables_of_before(folder: Path) -> dict[str, list[str]]:
    """Empty tables without the columns that were added since; those columns."""
    added: dict[str, list[str]] = {}
    for table in contracts.tables().values():
        if not table.is_of_jobs:
            continue
        actions = [json.loads(line) for line in delta_schemas.first_commit(table, 100).splitlines()]
        meta: dict[str, Any] = actions[-1]["metaData"]
        schema = json.loads(meta["schemaString"])
        lacking = [f for f in schema["fields"] if _is_newer(f)]
        schema["fields"] = [f for f in schema["fields"] if f not in lacking]
        for field in schema["fields"]:
            if field["name"] == "failing_rows":
                inner = field["type"]["elementType"]
                inner["fields"] = [f for f in inner["fields"] if not _is_newer(f)]
                inner["fields"] = [f for f in inner["fields"] if f["name"] != "cluster_id"]
        meta["schemaString"] = json.dumps(schema)
        log = folder / "tables" / table.name / "_delta_log"
        log.mkdir(parents=True)
        (log / f"{0:020d}.json").write_text("".join(json.dumps(a) + "\n" for a in actions))
        added[table.name] = [f["name"] for f in lacking]
    return added


@pytest.fixture(scope="module")
def older(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, dict[str, list[str]]]:
    """Tables of an older version that a stream has gone on with; the columns that they lacked."""
    folder = tmp_path_factory.mktemp("older")
    (folder / "in").mkdir()
    lacking = tables_of_before(folder)
    write_events(folder / "in" / "1.jsonl", FIRST)
    run_stream(spark, folder)
    return folder, lacking


def _is_newer(field: dict[str, Any]) -> bool:
    newer = ("incident", "incidents", "cluster_ids", "lost_at", "observed_timestamp")
    return field["type"] == "timestamp" or field["name"] in newer


@pytest.mark.spark
def test_tables_of_an_older_version_get_the_new_columns(
    spark: SparkSession, older: tuple[Path, dict[str, list[str]]]
) -> None:
    folder, lacking = older
    run_replay(spark, folder)
    assert sum(map(len, lacking.values())) > 15
    assert answers(spark, folder / "tables") == answers(spark, folder / "replayed")
    views.opened(spark, folder / "tables").register()
    store = Store(spark, folder / "tables")
    for table, added in lacking.items():
        columns = dict(store.newest(table).dtypes)
        assert set(added) <= set(columns)
        assert columns == {c.name: c.type for c in contracts.tables()[table].columns}
        meanings = {c.name: c.meaning for c in contracts.tables()[table].columns}
        assert all(
            f.metadata["comment"] == meanings[f.name] for f in store.newest(table).schema.fields
        )


@pytest.mark.spark
def test_a_column_of_another_type_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    tables_of_before(tmp_path)
    first = tmp_path / "tables" / "verdicts" / "_delta_log" / f"{0:020d}.json"
    column = r"\"name\": \"partition\", \"type\": "
    text = first.read_text()
    assert column + r"\"long\"" in text
    first.write_text(text.replace(column + r"\"long\"", column + r"\"string\""))
    with pytest.raises(TablesError, match=r"verdicts has columns of other types .*partition"):
        Store(spark, tmp_path / "tables").create()


@pytest.mark.spark
def test_each_number_that_is_a_moment_has_its_timestamp(
    spark: SparkSession, older: tuple[Path, dict[str, list[str]]]
) -> None:
    folder, _ = older
    store = Store(spark, folder / "tables")
    (loss,) = (
        store.newest("loss_ledger")
        .selectExpr("lost_at", "unix_millis(lost_timestamp) AS at")
        .collect()
    )
    election = next(e for e in FIRST if getattr(e.fact, "election_kind", None) == "unclean")
    assert loss["at"] == election.observed_at
    assert loss["lost_at"].endswith("Z")
    for table, number in (("replica_events", "observed_at"), ("_batches", "finished_at")):
        name = number.replace("_at", "_timestamp")
        differing = store.newest(table).filter(f"NOT unix_millis({name}) <=> {number}")
        assert differing.isEmpty()
    views.opened(spark, folder / "tables").register()
    (row,) = spark.table("lost_records").collect()
    acknowledged = [
        e.observed_at for e in FIRST
        if e.fact.kind == "records_acknowledged" and e.fact.first_offset >= 15
    ]  # fmt: skip
    assert row["first_acknowledged_at"] == min(acknowledged)
    assert row["last_acknowledged_at"] == max(acknowledged)
    assert row["last_acknowledged_timestamp"] is not None
