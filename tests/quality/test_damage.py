"""Damaged tables are caught by name, unusable ones are refused, and limits are limits."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import DataFrame, SparkSession

from jobs import check_quality
from replication.evidence.event_dumps import write_events
from replication.evidence.importer import import_evidence
from replication.paths import project_root
from replication.quality import checks, suites
from replication.quality.checks import Result
from replication.quality.great_expectations_suite import Judge
from replication.quality.suites import NOTHING_ASSUMED, Expectation, Suite, SuiteError
from replication.spark import contracts, evidence_tables, views
from replication.spark.cut import BATCHES
from replication.spark.tables import Store, TablesError, completed
from tests.quality.conftest import INCIDENTS, events_of
from tests.spark.event_rows import identified, made_trace, other_content
from tests.spark.jobs_in_process import run_replay

pytestmark = pytest.mark.spark
SUITES = suites.load(project_root() / "conf" / "expectations")
Change = Callable[[list[dict[str, Any]]], list[dict[str, Any]]]


def failing(
    session: SparkSession, tables: Path, chosen: list[Suite] | None = None
) -> dict[str, Result]:
    """suite.expectation -> what it came to, of those that fail. One of the healthy
    incidents takes something for granted, whatever is damaged."""
    names = views.opened(session, tables).register(check_quality.KEPT_BELOW)
    judged = checks.run(session, chosen or SUITES, names, Judge("damage"))
    return {
        f"{r.suite}.{r.expectation.name}": r
        for r in judged
        if r.failing and r.expectation.name != NOTHING_ASSUMED
    }


def copied(session: SparkSession, tables: Path, target: Path, changes: dict[str, Change]) -> Path:
    """A copy of a folder of tables in which some tables hold other rows at the readers' cut."""
    found = views.opened(session, tables)
    shutil.copytree(tables, target, ignore=shutil.ignore_patterns(*changes))
    for table, change in changes.items():
        rows = [row.asDict(recursive=True) for row in found.frame(table).collect()]
        columns = contracts.tables()[table]
        values = [tuple(row[c.name] for c in columns.told) for row in change(rows)]
        frame = completed(table, session.createDataFrame(values, columns.ddl)).coalesce(1)
        for _ in range(found.cut[table] + 1):
            frame.write.format("delta").mode("overwrite").save(str(target / table))
    return target


def overlapping(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One log's spans overlap, and another replica stands twice."""
    rows.sort(key=lambda r: (r["topic_partition_id"], r["replica"]))
    end = rows[0]["log_end_offset"]
    rows[0]["spans"] = [
        {"leader_epoch": 0, "first_offset": 0, "end_offset": 9},
        {"leader_epoch": 1, "first_offset": 7, "end_offset": end},
    ]
    return [*rows, dict(rows[-1])]


def unproven(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A ledger row whose finding is nowhere, and its cause neither."""
    row: dict[str, Any] = dict.fromkeys(c.name for c in contracts.tables()["loss_ledger"].columns)
    row |= {
        "topic_partition_id": "c/t/i/0", "cluster_id": "c", "topic": "t", "topic_id": "i",
        "partition": 0, "first_offset": 5, "end_offset": 8, "end_offset_bound": "exact",
        "records": 3, "tier": "committed", "contract": "broken", "status": "lost",
        "surviving_copies": [], "cause": "unknown", "contributing": [],
        "finding_id": "none-such", "run": "first", "micro_batch_id": 0,
    }  # fmt: skip
    return [*rows, row]


def with_a_hole(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Micro-batch 2 of the fold is missing between 1 and 3."""
    last = max((r for r in rows if r["query"] == "fold"), key=lambda r: int(r["micro_batch_id"]))
    nothing = dict.fromkeys(("rows_in", "applied", "duplicates", "held", "findings"), 0)
    return [*rows, {**last, **nothing, "micro_batch_id": last["micro_batch_id"] + 2}]


def without_an_event(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row of replica_events is gone."""
    return rows[1:]


def without_a_verdict(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One invariant of one partition was not judged."""
    return [r for r in rows if r is not rows[0]]


def test_each_damage_is_caught_by_name_and_nothing_else_fails(
    session: SparkSession, healthy: Path, tmp_path: Path
) -> None:
    damaged = copied(
        session, healthy, tmp_path / "damaged",
        {
            "replica_states": overlapping, "loss_ledger": unproven, BATCHES: with_a_hole,
            "replica_events": without_an_event, "verdicts": without_a_verdict,
        },
    )  # fmt: skip
    found = failing(session, damaged)
    assert found.pop("_batches.nobody_else_has_written").failing >= 5
    assert set(found) == {
        "replica_states.spans_tile", "replica_states.replicas_stand_once",
        "loss_ledger.ledger_rows_have_findings", "loss_ledger.causes_are_known",
        "_batches.micro_batches_are_complete",
        "_batches.ingested_rows_add_up", "verdicts.every_invariant_is_judged",
    }  # fmt: skip
    assert {r.failing for r in found.values()} == {1}
    spans = found["replica_states.spans_tile"].rows[0]
    first = (
        views.opened(session, healthy)
        .frame("replica_states")
        .orderBy("topic_partition_id", "replica")
    )
    whose = first.collect()[0]
    assert spans["topic_partition_id"] == whose["topic_partition_id"]
    assert spans["replicas"] == [whose["replica"]]
    assert '"first_offset":7' in spans["detail"]
    ledger = found["loss_ledger.ledger_rows_have_findings"].rows[0]
    assert (ledger["topic"], ledger["partition"]) == ("t", 0)
    assert (ledger["first_offset"], ledger["end_offset"]) == (5, 8)
    assert ledger["finding_id"] == "none-such"
    hole = found["_batches.micro_batches_are_complete"].rows[0]["detail"]
    assert hole == "run first of fold: after micro-batch 1 comes 3"
    assert found["replica_states.replicas_stand_once"].rows[0]["detail"].startswith("2 rows: ")


def test_what_somebody_else_has_committed_fails_the_check_whichever_suite_is_asked(
    session: SparkSession, healthy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = tmp_path / "tables"
    shutil.copytree(healthy, tables)

    def sql(text: str) -> None:
        session.sql(re.sub(r"\{(\w+)\}", lambda m: f"delta.`{tables}/{m[1]}`", text))

    def checked() -> tuple[int, str]:
        flags = check_quality.parser().parse_args(["--tables", str(tables), "--suite", "findings"])
        chosen = suites.load(project_root() / "conf" / "expectations", tuple(flags.suite))
        status = check_quality.check(session, flags, chosen)
        return status, capsys.readouterr().out

    for table in ("verdicts", "isr_and_leadership", "_batches"):
        sql(f"OPTIMIZE {{{table}}}")
    sql("VACUUM {verdicts}")
    # What the checks write is theirs, the first time and later.
    for _ in range(2):
        assert checked()[0] == 0
    ledger = contracts.tables()["loss_ledger"]
    values = [tuple(row[c.name] for c in ledger.told) for row in unproven([])]
    too_many = completed("loss_ledger", session.createDataFrame(values, ledger.ddl))
    too_many.write.format("delta").mode("append").save(str(tables / "loss_ledger"))
    sql("UPDATE {verdicts} SET reason = 'x'")
    sql("DELETE FROM {replica_states} WHERE replica = 1")
    no_name = "(SELECT '' AS n) AS b ON a.expectation <> b.n"
    sql(f"MERGE INTO {{expectation_results}} AS a USING {no_name} WHEN MATCHED THEN DELETE")
    sql("INSERT INTO {_batches} SELECT * FROM {_batches} LIMIT 1")
    status, said = checked()
    assert status == 1
    assert said.startswith("FAILED  critical  _batches.nobody_else_has_written: 5 rows\n")
    commit = re.compile(r"- version \d+ of (\w+) is an? (\w+) of 2\S+ by Apache-Spark/\S+ Delta-")
    listed = commit.findall(said)
    assert sorted(listed) == [
        ("_batches", "WRITE"), ("expectation_results", "MERGE"), ("loss_ledger", "WRITE"),
        ("replica_states", "DELETE"), ("verdicts", "UPDATE"),
    ]  # fmt: skip


def one_row_more(table: DeltaTable) -> None:
    row = table.to_pyarrow_table().slice(0, 1)
    write_deltalake(table, row, mode="append")


def all_rows_changed(table: DeltaTable) -> None:
    name = table.schema().fields[0].name
    table.update({name: f'"{name}"'})


def no_row_left(table: DeltaTable) -> None:
    table.delete()


def test_the_printed_command_takes_back_what_somebody_else_has_committed(
    session: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a table of each kind, with rows added, changed and deleted: the fold's, the ingest's, that
    of the micro-batches, of an import and of the checks."""
    (tmp_path / "in").mkdir()
    write_events(tmp_path / "in" / "e.jsonl", events_of("unclean_election__4.1.1"))
    tables = tmp_path / "it's `here`"
    run_replay(session, tmp_path, tables.name, keep_events=True)
    store = Store(session, tables)
    imported = import_evidence([INCIDENTS / "unclean_election__4.1.1"])
    evidence_tables.write(store, imported, evidence_tables.told_by(imported, time.time_ns()))

    def checked() -> str:
        flags = check_quality.parser().parse_args(["--tables", str(tables), "--suite", "findings"])
        chosen = suites.load(project_root() / "conf" / "expectations", tuple(flags.suite))
        check_quality.check(session, flags, chosen)
        return capsys.readouterr().out

    def commands() -> dict[str, str]:
        told = Store(session, tables).changed_by_others()
        return {
            c.table: c.remedy.partition("Take it back, in the checkout: ")[2].split(" (what")[0]
            for c in told
        }

    assert "nobody_else" not in checked()
    there = {"verdicts", "replica_events", "_batches", "decisions", "expectation_results"}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "SPARK_LOCAL_IP": "127.0.0.1"}
    for table in there:
        # Each alone, by the same command: tests/spark/test_other_writers.py.
        for change in (one_row_more, all_rows_changed, no_row_left):
            change(DeltaTable(tables / table))
    assert set(commands()) == there
    with pytest.raises(TablesError, match=r"is empty: version .* of _batches is a WRITE"):
        checked()
    session.sql(shlex.split(commands()["_batches"])[-1])
    # What the checks write themselves does not come between.
    assert "nobody_else_has_written: 12 rows" in checked()
    for table, command in commands().items():
        if table == "verdicts":
            subprocess.run(command, shell=True, cwd=project_root(), env=environment, check=True)
        else:
            session.sql(shlex.split(command)[-1])
    assert commands() == {}
    held = {t for t in there if DeltaTable(tables / t).to_pyarrow_table().num_rows}
    assert held == there
    assert "nobody_else" not in checked()


def test_bad_evidence_is_seen_as_such(session: SparkSession, folder: Path) -> None:
    whole, gap = made_trace(0), made_trace(1)
    clash = [whole[20], other_content(whole[20])]
    late = [replace(e, observed_at=(e.observed_at or 0) + 60_000) for e in gap[:1]]
    given = [*whole, clash[1], *[identified(e) for e in late], *gap[1:10], *gap[11:]]
    write_events(folder / "in" / "a.jsonl", given)
    with (folder / "in" / "a.jsonl").open("a") as dump:
        dump.write("no event at all\n")
    run_replay(session, folder, "tables", keep_events=True)
    names = views.opened(session, folder / "tables").register(check_quality.KEPT_BELOW)
    judged = checks.run(session, SUITES, names, Judge("evidence"))
    found = {r.expectation.name: r for r in judged if r.failing}
    assert {n for n, r in found.items() if r.expectation.family == "integrity"} == set()
    assert {n for n, r in found.items() if r.expectation.family == "evidence"} == {
        "no_sequence_conflicts", "quarantined_share", "no_event_is_held", "no_trace_gaps",
        "unknown_share", "clock_skew", suites.DECIDED,
    }  # fmt: skip
    assert found["clock_skew"].observed_value > 50_000
    assert found["no_event_is_held"].observed_value > 1
    assert 0.001 < found["quarantined_share"].observed_value < 0.1


def states(rows: list[dict[str, Any]], session: SparkSession) -> DataFrame:
    """Rows of replica_states, with defaults for what a test does not speak of."""
    columns = contracts.tables()["replica_states"]
    default: dict[str, Any] = {
        "cluster_id": "c", "topic": "t", "topic_id": "i", "log_start_offset": 0,
        "log_end_offset": 10, "spans": [], "truncations": [], "run": "r", "micro_batch_id": 0,
        "assigned_replicas": [1, 2], "isr": [1, 2], "leader": 1, "leader_epoch": 0,
        "min_insync_replicas": 1,
    }  # fmt: skip
    values = []
    for row in rows:
        whole = default | {"topic_partition_id": f"c/t/i/{row['partition']}"} | row
        values.append(tuple(whole.get(c.name) for c in columns.told))
    return completed("replica_states", session.createDataFrame(values, columns.ddl))


def test_limits_allow_what_they_say_and_list_what_is_above(session: SparkSession) -> None:
    rows = []
    for partition in range(20):
        leader = 2 if partition < 3 else 1
        rows += [
            {"partition": partition, "replica": 1, "leader": leader},
            {"partition": partition, "replica": 2, "leader": leader},
        ]
    rows[0] |= {"log_end_offset": 20_000}
    rows[1] |= {"log_end_offset": 50_000}
    rows[10] |= {"log_end_offset": 10_010}
    rows[12] |= {"min_insync_replicas": 3}
    rows[13] |= {"min_insync_replicas": 3}
    rows[14] |= {"min_insync_replicas": 3, "stopped": True}
    rows[15] |= {"min_insync_replicas": 3}
    states(rows, session).createOrReplaceTempView("made_states")
    suite = next(s for s in SUITES if s.table == "replica_states")
    judged = checks.run(session, [suite], {"replica_states": "made_states"}, Judge("limits"))
    found = {r.expectation.name: r for r in judged}
    assert {n for n, r in found.items() if r.failing} == {
        "leader_imbalance", "follower_lag", "isr_at_or_above_min_isr",
    }  # fmt: skip
    lag = found["follower_lag"]
    assert (lag.failing, lag.observed_value) == (1, 30_000)
    assert [(r["partition"], r["first_offset"], r["end_offset"]) for r in lag.rows] == [
        (0, 20_000, 50_000)
    ]
    imbalance = found["leader_imbalance"]
    assert imbalance.rows[0]["replicas"] == [1]
    assert imbalance.observed_value == pytest.approx(100 * 3 / 19)
    below = found["isr_at_or_above_min_isr"]
    assert (below.failing, below.allowed) == (1, 1)
    assert below.rows[0]["partition"] == 6


def test_a_suite_that_does_not_fit_its_tables_is_told(session: SparkSession) -> None:
    states([], session).createOrReplaceTempView("made_states")
    wrong = Suite("replica_states", "x", (
        Expectation("e", "health", "info", "m", "rows", where="no_such_column = 1"),
    ))  # fmt: skip
    (refused,) = checks.run(session, [wrong], {"replica_states": "made_states"}, Judge("wrong"))
    assert "no column no_such_column" in refused.rows[0]["detail"]
    elsewhere = Suite("replica_states", "x", (
        Expectation("e", "health", "info", "m", "query", sql="SELECT 1 FROM {nowhere}"),
    ))  # fmt: skip
    with pytest.raises(SuiteError, match="asks for nowhere"):
        checks.run(session, [elsewhere], {"replica_states": "made_states"}, Judge("wrong"))


def test_missing_empty_and_older_tables_are_refused_in_one_line(
    session: SparkSession, healthy: Path, tmp_path: Path
) -> None:
    with pytest.raises(TablesError, match="is no folder"):
        views.opened(session, tmp_path / "nowhere")
    (tmp_path / "bare").mkdir()
    with pytest.raises(TablesError, match="has no table _batches, _refolds, at_risk, divergences"):
        views.opened(session, tmp_path / "bare")
    Store(session, tmp_path / "empty").create()
    with pytest.raises(TablesError, match="nothing has been folded into it yet"):
        views.opened(session, tmp_path / "empty")
    lost = tmp_path / "lost"
    shutil.copytree(healthy, lost, ignore=shutil.ignore_patterns("verdicts"))
    with pytest.raises(TablesError, match="has no table verdicts"):
        views.opened(session, lost)
    older = tmp_path / "older"
    shutil.copytree(healthy, older, ignore=shutil.ignore_patterns("divergences"))
    version = views.opened(session, healthy).cut["divergences"]
    of_0_1 = "topic_partition_id string, first_offset bigint"
    frame = session.createDataFrame([("t-0", 0)], of_0_1)
    for _ in range(version + 1):
        frame.write.format("delta").mode("overwrite").save(str(older / "divergences"))
    with pytest.raises(TablesError, match=r"divergences has no column cluster_id: .* older"):
        views.opened(session, older)


def test_what_a_stream_writes_meanwhile_is_left_for_the_next_look(
    session: SparkSession, healthy: Path, tmp_path: Path
) -> None:
    growing = tmp_path / "growing"
    shutil.copytree(healthy, growing)
    # The next micro-batch has written its verdicts, and not yet its row of _batches.
    more = session.read.format("delta").load(str(growing / "verdicts"))
    more.write.format("delta").mode("append").save(str(growing / "verdicts"))
    assert session.read.format("delta").load(str(growing / "verdicts")).count() == 44
    chosen = [s for s in SUITES if s.table == "verdicts"]
    assert failing(session, growing, chosen) == {}
