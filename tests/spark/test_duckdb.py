"""DuckDB and deltalake answer conf/questions.sql without Spark; beside it: tests/quality."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from deltalake import QueryBuilder, write_deltalake

from replication.protocol.ground import wire
from replication.protocol.ground.events import Event
from replication.spark import contracts, dialects, views
from replication.spark.shard_fold import ShardFold
from replication.spark.tables import TablesError
from replication.spark.topic_partition_ids import parts_of
from tests.spark.event_rows import frame_of, made_trace
from tests.spark.own_engine import made_by_recipe
from tests.spark.questions import QUESTIONS, in_one_form, questions


def arrow_type(text: str) -> pa.DataType:
    """Spark SQL's type text as Arrow's type."""
    outer, _, inner = text.partition("<")
    inner = inner[:-1]
    if outer == "array":
        return pa.list_(arrow_type(inner))
    if outer == "map":
        return pa.map_(*map(arrow_type, inner.split(",")))
    if outer == "struct":
        return pa.struct(
            [(n, arrow_type(t)) for n, t in (p.split(":", 1) for p in inner.split(","))]
        )
    return {
        "bigint": pa.int64(), "string": pa.string(), "boolean": pa.bool_(), "double": pa.float64(),
        "binary": pa.binary(), "timestamp": pa.timestamp("us", "UTC"),
    }[text]  # fmt: skip


Rows = dict[str, list[dict[str, Any]]]
Engines = tuple[duckdb.DuckDBPyConnection, QueryBuilder]


def in_arrow(rows: Rows) -> Iterator[tuple[str, pa.Table]]:
    """Each table that is stored, empty where there are no rows of it."""
    for table in contracts.tables().values():
        if table.written != "view":
            schema = pa.schema([(c.name, arrow_type(c.type)) for c in table.columns])
            yield table.name, pa.Table.from_pylist(rows.get(table.name, []), schema)


def connected(rows: Rows) -> duckdb.DuckDBPyConnection:
    """DuckDB with every table, and the views that create_views.py --text duckdb gives."""
    connection = duckdb.connect()
    for name, held in in_arrow(rows):
        connection.register(name, held)
    connection.execute(views.text("duckdb"))
    return connection


def of_deltalake(folder: Path) -> QueryBuilder:
    """deltalake over the tables of a folder, by docs/engines.md."""
    engine: QueryBuilder = made_by_recipe("engine", folder)
    return engine


def folded(events: list[Event], incident: str) -> Rows:
    """The tables' rows of one partition's events."""
    frame = frame_of(events)
    frame["topic_partition_id"] += f"@{incident}"
    shard = ShardFold()
    shard.take(frame)
    found: Rows = {"_batches": [
        {"run": "first", "run_number": 0, "query": "fold", "micro_batch_id": 0}
    ]}  # fmt: skip
    found["replica_events"] = [
        {**wire.to_row(e), "incident": incident, "run": "first", "micro_batch_id": 0}
        for e in events
    ]
    for out in shard.outcome():
        if out.table in contracts.tables():
            parts = parts_of(out.topic_partition_id)._asdict()
            found[out.table] = [
                {**parts, **row, "topic_partition_id": out.topic_partition_id, "run": "first",
                 "micro_batch_id": 0}
                for row in out.rows
            ]  # fmt: skip
    return found


def test_every_view_has_the_columns_that_are_documented() -> None:
    connection = connected({})
    for view in views.documented():
        found = connection.execute(f"SELECT * FROM {view}").description
        documented = [c.name for c in contracts.tables()[view].columns]
        assert [column[0] for column in found] == documented, view


@pytest.mark.parametrize(("question", "sql"), list(questions()))
def test_every_question_is_understood_and_names_cluster_and_incident(
    question: str, sql: str
) -> None:
    found = connected({}).execute(sql)
    names = {column[0] for column in found.description}
    of_runs = "FROM _batches" in sql or "FROM event_totals" in sql
    own = {"incident"} if of_runs else {"cluster_id", "incident"}
    assert own <= names or {"cluster_ids", "incidents"} <= names
    assert found.fetchall() == []


@pytest.fixture(scope="module")
def both(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[duckdb.DuckDBPyConnection, QueryBuilder]:
    """The two engines over the same rows."""
    folder, rows = tmp_path_factory.mktemp("tables"), folded(made_trace(), "may")
    for name, held in in_arrow(rows):
        write_deltalake(folder / name, held)
    return connected(rows), of_deltalake(folder)


def test_deltalakes_questions_are_those_of_the_page() -> None:
    asked = views.questions("datafusion").split("-- ? ")[1:]
    assert [q.split("\n")[0] for q in asked] == [question for question, _ in questions()]
    assert views.questions("duckdb") == QUESTIONS.read_text(encoding="utf-8")


@pytest.mark.parametrize(("question", "sql"), list(questions()))
def test_deltalake_gives_the_same_answer(both: Engines, question: str, sql: str) -> None:
    duck, engine = both
    told = pa.table(engine.execute(dialects.for_engine(sql, "datafusion")).read_all())
    found = duck.execute(sql)
    names = [column[0] for column in found.description]
    rows = [dict(zip(names, row, strict=True)) for row in found.fetchall()]
    assert in_one_form(told.to_pylist()) == in_one_form(rows), question


def test_what_was_lost_and_how_it_came() -> None:
    events = made_trace()
    connection = connected(folded(events, "may"))
    lost = connection.execute(
        "SELECT cluster_id, incident, first_offset, end_offset, surviving_replicas, "
        "first_acknowledged_at FROM lost_records"
    ).fetchall()
    told = next(e for e in events if getattr(e.fact, "first_offset", None) == 15
                and e.fact.kind == "records_acknowledged")  # fmt: skip
    assert lost == [("cluster", "may", 15, 18, [], told.observed_at)]
    ((leader, records, at),) = connection.execute(
        "SELECT leader, records_lost_in_partition, epoch_ms(u.at) FROM unclean_elections AS u"
    ).fetchall()
    elected = next(e for e in events if getattr(e.fact, "election_kind", None) == "unclean")
    assert (leader, records, at) == (2, 3, elected.observed_at)
    steps = connection.execute("SELECT what FROM incident_timeline ORDER BY sequence").fetchall()
    assert ("broker 1 cuts its log from 18 to 15 (diverging_epoch)",) in steps
    ends = connection.execute(
        "SELECT log_end_offset FROM replica_at WHERE replica = 1 AND until_sequence IS NULL"
    ).fetchall()
    assert ends == [(15,)]


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--text", "duckdb", "--tables", "t", "--follow"], "--tables and --follow: leave out"),
        (["--text", "spark", "--out", "f"], "--out: leave out beside --text"),
        (["--catalog", "s", "--tables", "t", "--out", "f"], "--out: leave out beside --catalog"),
        (["--questions", "--tables", "t"], "--questions goes with --text ENGINE"),
    ],
)
def test_flags_that_would_change_nothing_are_refused(flags: list[str], said: str) -> None:
    with pytest.raises(TablesError, match=said):
        views.main(flags)


def test_a_job_without_an_incident_is_one_row_of_event_totals_as_its_text_says() -> None:
    """Whichever incidents its events name; and a replay that has not finished has no row."""
    row = {"run": "first", "run_number": 0, "query": "fold", "micro_batch_id": 0, "incident": None,
           "table_versions": {"replica_events": 1}, "rows_in": 5, "applied": 5}  # fmt: skip
    begun = {**row, "run": "b", "run_number": 1, "incident": "b", "micro_batch_id": -1}
    of_a = {**row, "run": "a", "run_number": 2, "incident": "a", "rows_in": 3, "applied": 3}
    asked = "SELECT incident, run, rows_in FROM event_totals ORDER BY run"
    assert connected({"_batches": [row, begun, of_a]}).execute(asked).fetchall() == [
        ("a", "a", 3), (None, "first", 5),
    ]  # fmt: skip
    about = contracts.tables()["event_totals"].about
    assert "called with (--incident)" in about
    assert "A replay that has not finished has none" in about
