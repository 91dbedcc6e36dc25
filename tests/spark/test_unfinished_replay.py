"""A replay that was cut off between two commits is repeated by the same command, and until then
nobody reads what it has left as an answer."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from replication.evidence.event_dumps import write_events
from replication.spark import fold_stream, runs, views
from replication.spark.locks import FOLDER, CheckpointLock, LockedError
from replication.spark.tables import Store, TablesError
from tests.spark.event_rows import made_trace
from tests.spark.fault_bench import Tables, source, state_of
from tests.spark.faults import crash_at
from tests.spark.jobs_in_process import rows, run_replay

pytestmark = pytest.mark.spark
# The flags of replays whose first, or second, is cut off.
CALLS: dict[str, dict[str, Any]] = {
    "alone": {},
    "with its events": {"keep_events": True},
    "of an incident": {"incident": "may", "keep_events": True},
    "in the place of another": {"new_run": "second", "keep_events": True},
    "beside another incident": {"incident": "may"},
}


def delivered(spark: SparkSession, folder: Path, name: str) -> None:
    """The source, and what was replayed before the replay that is cut off."""
    (folder / "in").mkdir(parents=True, exist_ok=True)
    earlier = {"in the place of another": {}, "beside another incident": {"incident": "june"}}
    if name in earlier:
        write_events(folder / "in" / "0.jsonl", made_trace(2, rounds=2))
        run_replay(spark, folder, "tables", **earlier[name])
    for number, events in enumerate(source()):
        write_events(folder / "in" / f"{number}.jsonl", events)
    with (folder / "in" / "1.jsonl").open("a") as file:
        file.write("no event\n")


def cut_off(spark: SparkSession, folder: Path, commit: int, flags: dict[str, Any]) -> bool:
    """Whether a replay was cut off before its commit of that number, and not before at its end."""
    try:
        with crash_at(commit, after=False):
            run_replay(spark, folder, "tables", **flags)
    except Exception as error:
        if "CrashError" not in str(error) and "CrashError" not in repr(error):
            raise
        return True
    return False


def whole(spark: SparkSession, folder: Path, name: str) -> Tables:
    """The tables of a replay that nothing disturbs."""
    delivered(spark, folder, name)
    run_replay(spark, folder, "tables", **CALLS[name])
    return everything(spark, folder / "tables")


def everything(spark: SparkSession, tables: Path) -> Tables:
    """The rows of each table and view, of _batches only what was counted."""
    found = views.opened(spark, tables)
    session = spark.newSession()
    session.sql("SELECT 1").collect()
    views.Opened(Store(session, tables), found.cut, found.run, found.micro_batch_id).register()
    counted = "incident, run, rows_in, applied, duplicates, quarantined, held, superseded"
    totals = session.sql(f"SELECT {counted} FROM event_totals ORDER BY ALL").collect()
    rows_of = {**state_of(spark, tables), "event_totals": [row.asDict() for row in totals]}
    for row in rows_of["quarantine"]:
        row["origin"] = Path(row["origin"] or "").name
    return rows_of


def test_a_replay_cut_off_several_times_is_repeated(spark: SparkSession, tmp_path: Path) -> None:
    name = "with its events"
    wanted = whole(spark, tmp_path / "undisturbed", name)
    assert all(wanted[t] for t in ("verdicts", "quarantine", "loss_ledger", "replica_events"))
    folder = tmp_path / "cut"
    delivered(spark, folder, name)
    # The second has to take away what the first has left, and does not come to the end of that.
    for commit in (10, 3, 7):
        assert cut_off(spark, folder, commit, CALLS[name])
    with pytest.raises(TablesError, match="'first' has begun and has not finished"):
        views.opened(spark, folder / "tables")
    for table in ("verdicts", "loss_ledger", "quarantine", "replica_events"):
        assert rows(spark, folder / "tables", table) == [], table
    newest = Store(spark, folder / "tables").newest("_batches")
    assert newest.count() == 1
    newest.createOrReplaceTempView("_batches")
    assert spark.sql(views.documented()["event_totals"]).collect() == []
    spark.catalog.dropTempView("_batches")
    run_replay(spark, folder, "tables", **CALLS[name])
    assert everything(spark, folder / "tables") == wanted
    with pytest.raises(TablesError, match="holds the answers of run 'first'"):
        run_replay(spark, folder, "tables", **CALLS[name])


@pytest.mark.sweep
@pytest.mark.parametrize("name", CALLS)
def test_each_commit_of_each_call(spark: SparkSession, tmp_path: Path, name: str) -> None:
    """Each try is cut off one commit later, those too that take away what the one before left."""
    wanted = whole(spark, tmp_path / "undisturbed", name)
    folder, commit = tmp_path / "cut", 1
    delivered(spark, folder, name)
    while cut_off(spark, folder, commit, CALLS[name]):
        commit += 1
    assert commit > 9
    assert everything(spark, folder / "tables") == wanted


def test_over_an_unfinished_replay_only_what_replaces_it_is_taken(
    spark: SparkSession, folder: Path
) -> None:
    write_events(folder / "in" / "a.jsonl", made_trace())
    assert cut_off(spark, folder, 4, {"incident": "may"})
    unfinished = "the replay 'first' of incident may has begun and has not finished.* repeat"
    for others in ({"incident": "june"}, {"incident": "june", "new_run": "other"}, {}):
        with pytest.raises(TablesError, match=unfinished):
            run_replay(spark, folder, "tables", **others)
    run_replay(spark, folder, "tables", new_run="other")
    assert {row["run"] for row in everything(spark, folder / "tables")["event_totals"]} == {"other"}


def test_a_replay_that_is_at_work_is_not_repeated_beside_it(
    spark: SparkSession, folder: Path
) -> None:
    write_events(folder / "in" / "a.jsonl", made_trace())
    Store(spark, folder / "tables").create()
    at_work = CheckpointLock(folder / "tables" / FOLDER / "replay")
    at_work.take()
    with pytest.raises(LockedError, match="in use by another replay"):
        run_replay(spark, folder, "tables")
    at_work.release()
    run_replay(spark, folder, "tables")


def test_a_stream_that_has_only_begun_is_no_unfinished_replay(
    spark: SparkSession, folder: Path
) -> None:
    store = Store(spark, folder / "tables")
    store.create()
    runs.enter(store, folder / "checkpoint", fold_stream.QUERY, None)
    write_events(folder / "in" / "a.jsonl", made_trace())
    with pytest.raises(TablesError, match="holds the answers of run 'first'"):
        run_replay(spark, folder, "tables")
