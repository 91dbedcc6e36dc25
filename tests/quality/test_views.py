"""The documented views, the page of questions, spark-sql, and another engine on the tables."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from pyspark.sql import SparkSession

from jobs import check_quality
from replication.paths import project_root
from replication.protocol.folding import fold
from replication.protocol.judgement.bounded import fold_all
from replication.quality import suites
from replication.spark import contracts, dialects, views
from replication.spark.other_writers import RESULTS, SPARK_SQL
from replication.spark.views import Opened
from tests.quality.conftest import EXPECTED, events_of, incident_of
from tests.spark.own_engine import made_by_recipe
from tests.spark.questions import in_one_form, questions
from tests.spark.test_duckdb import of_deltalake

pytestmark = pytest.mark.spark
TRACED = "unclean_election__4.1.1__trace"


@pytest.fixture(scope="module")
def registered(session: SparkSession, all_incidents: Path) -> Opened:
    found = views.opened(session, all_incidents)
    # Tests before these may have asked other suites: of this one the newest outcome is known.
    chosen = suites.load(project_root() / "conf" / "expectations", ("verdicts",))
    flags = check_quality.parser().parse_args(["--tables", str(all_incidents)])
    check_quality.check(session, flags, chosen)
    found.register(check_quality.KEPT_BELOW)
    return found


@pytest.fixture(scope="module")
def duck(registered: Opened) -> duckdb.DuckDBPyConnection:
    """DuckDB over the same folders, which delta-rs reads for it: as docs/engines.md says."""
    folder = Path(str(registered.store.folder))
    connection: duckdb.DuckDBPyConnection = made_by_recipe("connection", folder)
    return connection


@pytest.fixture(scope="module")
def deltalake(registered: Opened) -> QueryBuilder:
    """deltalake's own engine over the same folders."""
    return of_deltalake(Path(str(registered.store.folder)))


def test_every_view_has_the_columns_that_are_documented(
    session: SparkSession, registered: Opened
) -> None:
    for view in views.documented():
        documented = [(c.name, c.type) for c in contracts.tables()[view].columns]
        assert session.table(view).dtypes == documented, view


@pytest.mark.parametrize(("question", "sql"), list(questions()))
def test_every_question_has_one_answer_in_three_engines(
    session: SparkSession, duck: duckdb.DuckDBPyConnection, deltalake: QueryBuilder,
    question: str, sql: str,
) -> None:  # fmt: skip
    rows = [row.asDict(recursive=True) for row in session.sql(sql).collect()]
    found = duck.execute(sql)
    names = [column[0] for column in found.description]
    theirs = [dict(zip(names, row, strict=True)) for row in found.fetchall()]
    assert in_one_form(theirs) == in_one_form(rows)
    told = pa.table(deltalake.execute(dialects.for_engine(sql, "datafusion")).read_all())
    assert in_one_form(told.to_pylist()) == in_one_form(rows)
    nothing_to_tell = {
        "What would the next failure cost?": False,
        "What was refused on the way in, and why?": True,
    }
    assert bool(rows) is not nothing_to_tell.get(question, False)
    if question == "Which expectations failed or were not judged at the last check?":
        failed = {r["expectation"] for r in rows if r["suite"] == "verdicts"}
        assert {"no_committed_loss", "no_divergence"} < failed
        assert "verdicts_stand_once" not in failed


def test_lost_records_are_those_of_the_ground_truth(
    session: SparkSession, registered: Opened
) -> None:
    found: dict[str, list[int]] = {}
    for row in session.table("lost_records").collect():
        lost = range(row["first_offset"], row["end_offset"])
        found.setdefault(incident_of(row["cluster_id"]), []).extend(lost)
        assert row["summary"]
    wanted = {
        incident: sorted(
            o
            for expected in partitions.values()
            for o in [*expected.get("lost_all", []), *expected.get("lost_one", [])]
        )
        for incident, partitions in EXPECTED.items()
    }
    assert {i: sorted(o) for i, o in found.items()} == {i: o for i, o in wanted.items() if o}


def test_replica_at_shows_what_the_fold_holds_at_that_step(
    session: SparkSession, registered: Opened
) -> None:
    events = events_of(TRACED)
    first = events[0]
    name = f"{first.cluster_id}/{first.topic}/{first.topic_id}/{first.partition}"
    frame = session.table("replica_at").filter(f"topic_partition_id = '{name}'").collect()
    state = fold.new_state(first.cluster_id, first.topic, first.topic_id, first.partition)
    compared = 0
    for event in sorted(events, key=lambda e: e.sequence):
        fold.apply(state, event)
        replica = getattr(event.fact, "replica", None)
        if event.fact.kind not in ("leader_appended", "follower_appended", "truncated"):
            continue
        at = [
            r
            for r in frame
            if r["replica"] == replica
            and r["from_sequence"] <= event.sequence
            and (r["until_sequence"] is None or r["until_sequence"] > event.sequence)
        ]
        assert len(at) == 1
        assert at[0]["log_end_offset"] == state.replicas[replica].log.log_end_offset
        compared += 1
    assert compared > 20


def test_the_timeline_holds_every_step_of_every_proof(
    session: SparkSession, registered: Opened
) -> None:
    steps = {
        (f["finding_id"], step["event_id"])
        for f in registered.frame("findings").collect()
        for step in f["witness"]
    }
    told = {
        (finding, row["event_id"])
        for row in session.table("incident_timeline").collect()
        for finding in row["finding_ids"]
    }
    assert told == steps
    kip = session.sql(
        "SELECT what FROM incident_timeline WHERE kind = 'truncated' ORDER BY what"
    ).collect()
    assert all(" cuts its log" in row["what"] for row in kip)


def test_the_next_failure_names_what_would_destroy_the_last_copy(
    session: SparkSession, registered: Opened
) -> None:
    rows = session.table("next_failure").filter("risk = 'records_recoverable'").collect()
    found = {incident_of(r["cluster_id"]): (r["replicas"], r["destroyed_when"]) for r in rows}
    recoverable = {
        incident
        for incident, partitions in EXPECTED.items()
        for expected in partitions.values()
        if any(loss[4] == "recoverable" for loss in expected.get("losses", []))
    }
    assert set(found) == recoverable
    # The difference is settled: no truncation of 1.1 would end it.
    assert found["same_epoch_power_loss__1.1.1"] == ([2], "broker 2 loses this directory")


def test_the_table_of_dangers_is_that_of_the_answer(
    session: SparkSession, registered: Opened
) -> None:
    """Each danger once, those that have passed too, with the moments that the answer names."""
    columns = ("first_offset", "end_offset", "failure", "broker", "since", "until", "over")

    def said(rows: list[dict[str, Any]]) -> list[Any]:
        identity = ("cluster_id", "topic", "partition")
        return sorted((tuple(map(str, (r[c] for c in identity + columns)))) for r in rows)

    told = [
        danger
        for part in fold_all(e for incident in EXPECTED for e in events_of(incident))
        for danger in (*part.answer.at_risk, *part.answer.past_risks)
    ]
    found = [r.asDict(recursive=True) for r in registered.frame("at_risk").collect()]
    assert said(found) == said(told)
    assert any(r["over"] for r in found)
    assert session.table("next_failure").filter("risk = 'one_failure_away'").count() == len(
        [d for d in told if not d["over"]]
    )


def test_delta_rs_reads_the_same_rows(registered: Opened) -> None:
    for table in [*views.folded(), RESULTS]:
        path = registered.store.path(table)
        theirs = DeltaTable(path).to_pyarrow_table().to_pylist()
        ours = [r.asDict(recursive=True) for r in registered.store.newest(table).collect()]
        assert in_one_form(theirs) == in_one_form(ours)
        assert table in ("quarantine", "_refolds") or ours, table


def test_spark_sql_answers_over_the_script(
    session: SparkSession, registered: Opened, tmp_path: Path
) -> None:
    script = tmp_path / "views.sql"
    script.write_text(views.script(registered, follow=False))
    asked = "SELECT status, sum(records) FROM lost_records GROUP BY status ORDER BY status"
    command = [
        str(Path(sys.executable).parent / "spark-sql"), *SPARK_SQL.split()[1:],
        "--conf", "spark.driver.memory=1g", "--conf", f"spark.sql.warehouse.dir={tmp_path}",
        "-i", str(script), "-e", asked,
    ]  # fmt: skip
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(
        command, cwd=project_root(), env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    wanted = [f"{row[0]}\t{row[1]}" for row in session.sql(asked).collect()]
    assert len(wanted) == 2
    assert done.stdout.split("\n")[:2] == wanted
