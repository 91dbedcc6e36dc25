"""One writer at a time: the newest has raised the fence in the logs, an older one is refused."""

import random
import shutil
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError
from pyspark.sql import SparkSession

from replication.places import HadoopPath
from replication.spark import contracts, taking_over
from replication.spark.cut import BATCHES
from replication.spark.delta_schemas import first_commit
from replication.spark.fence import Fence, TakenOverError, last_writer
from replication.spark.small_commit import SmallCommit, arrow_rows
from replication.spark.taking_over import take_over
from tests.spark.taken_over import KINDS, Trials
from tests.spark.test_hadoop_paths import store

TABLES = (BATCHES, "verdicts")
__all__ = ["store"]


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    """A folder of two empty tables."""
    for name in TABLES:
        log = tmp_path / name / "_delta_log"
        log.mkdir(parents=True)
        (log / f"{0:020d}.json").write_text(first_commit(contracts.tables()[name], 100))
    return tmp_path


def taken(tables: Path, run: str, query: str = "fold") -> Fence:
    """By deltalake alone."""
    return take_over(None, tables, TABLES, query, run)  # type: ignore[arg-type]


def commit(tables: Path, fence: Fence, table: str = "verdicts") -> int:
    told = contracts.tables()[table]
    return SmallCommit(told, arrow_rows(told, []), frozenset(), None).save(
        str(tables / table), fence
    )


def test_the_older_writer_is_refused_and_told_by_whom(tables: Path) -> None:
    older, other = taken(tables, "first"), taken(tables, "first", "ingest")
    assert commit(tables, older) == 3
    newer = taken(tables, "second")
    assert older.generation < newer.generation
    for table in TABLES:
        commit(tables, newer, table)
        commit(tables, other, table)
        told = r"run 'second' \(process \d+ on .*\) has taken over the fold tables"
        with pytest.raises(TakenOverError, match=told):
            commit(tables, older, table)
    assert last_writer(tables / BATCHES, "ingest").startswith("run 'first' (process ")


def test_a_writer_of_tables_that_were_made_anew_is_refused(tables: Path, tmp_path: Path) -> None:
    """The new log counts its commits and its writers from the beginning."""
    kept = tmp_path.parent / "kept"
    shutil.copytree(tables, kept)
    older = taken(tables, "first")
    commit(tables, older)
    for table in TABLES:
        shutil.rmtree(tables / table)
        shutil.copytree(kept / table, tables / table)
    newer = taken(tables, "second")
    for _ in range(3):
        commit(tables, newer)
        with pytest.raises(TakenOverError, match="run 'second'"):
            commit(tables, older)


def test_of_two_that_begin_at_once_one_is_the_newer(
    tables: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first table says which, though the other comes first to each table behind it."""
    sound, newer = taking_over._raised, list[Fence]()

    def between(spark: Any, table: Path, fence: Fence, is_first: bool) -> int:
        version = sound(spark, table, fence, is_first)
        if is_first and not newer:
            newer.append(Fence("fold", "none"))
            newer[0] = taken(tables, "second")
        return version

    monkeypatch.setattr(taking_over, "_raised", between)
    with pytest.raises(TakenOverError, match="run 'second'"):
        taken(tables, "first")
    for table in TABLES:
        commit(tables, newer[0], table)


@pytest.mark.parametrize("first", [True, False])
def test_who_comes_second_to_raise_it_looks_again(
    tables: Path, monkeypatch: pytest.MonkeyPatch, first: bool
) -> None:
    other, sound, left = taken(tables, "first", "ingest"), taking_over.properties, [first, True]

    def between(*given: Any) -> Any:
        if left.pop(0) if left else False:
            for table in TABLES:
                commit(tables, other, table)
        return sound(*given)

    monkeypatch.setattr(taking_over, "properties", between)
    fence = taken(tables, "second")
    for table in TABLES:
        assert DeltaTable(tables / table).transaction_version(fence.app) == fence.generation


def test_a_fence_that_was_raised_though_that_failed_is_its_writers(
    tables: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound, failed = taking_over._raised, list[str]()

    def lands_and_fails(spark: Any, table: Path, fence: Fence, is_first: bool) -> int:
        version = sound(spark, table, fence, is_first)
        if table.name not in failed:
            failed.append(table.name)
            raise CommitFailedError("the checkpoint after it")
        return version

    monkeypatch.setattr(taking_over, "_raised", lands_and_fails)
    fence = taken(tables, "first")
    assert failed == list(TABLES)
    for table in TABLES:
        commit(tables, fence, table)


def test_a_folder_that_takes_no_commit_ends_the_attempt(tables: Path) -> None:
    (tables / "verdicts" / "_delta_log" / f"{1:020d}.json").mkdir()
    with pytest.raises(CommitFailedError):
        taken(tables, "first")


def test_a_fence_is_seen_though_the_commit_that_raised_it_is_gone(tables: Path) -> None:
    """Maintenance takes commits away that a checkpoint of Delta's has taken over."""
    older, log = taken(tables, "first"), tables / "verdicts" / "_delta_log"
    for _ in range(3):
        commit(tables, older)
    commit(tables, taken(tables, "second"))
    DeltaTable(tables / "verdicts").create_checkpoint()
    *gone, last = sorted(log.glob("*.json"))
    for path in gone:
        path.unlink()
    with pytest.raises(TakenOverError, match="run 'second'"):
        commit(tables, older)
    last.unlink()
    with pytest.raises(TakenOverError, match="a process that the log does not name has taken over"):
        commit(tables, older)


def test_a_table_that_was_put_back_stops_its_writer(tables: Path) -> None:
    """As it was before this writer began, or made anew."""
    old = tables / "copy"
    shutil.copytree(tables / "verdicts", old)
    fence = taken(tables, "first")
    commit(tables, fence)
    shutil.rmtree(tables / "verdicts")
    shutil.copytree(old, tables / "verdicts")
    with pytest.raises(TakenOverError, match="put back or made anew"):
        commit(tables, fence)


def test_tables_of_an_older_version_go_on_and_its_writers_are_stopped(tables: Path) -> None:
    """They look at each commit whether this file names them."""
    lease = tables / "_lease" / "fold.json"
    lease.parent.mkdir()
    lease.write_text('{"holder": "x"}')
    fence = taken(tables, "first")
    assert not lease.exists()
    commit(tables, fence)


@pytest.fixture(scope="module")
def trials(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Trials:
    """Tables on a local disk."""
    made = Trials(spark, tmp_path_factory.mktemp("fence"), random.Random(7))
    made.prepare()
    return made


@pytest.mark.spark
@pytest.mark.parametrize("kind", KINDS)
def test_a_writer_that_stood_still_commits_nothing(trials: Trials, kind: str) -> None:
    for _ in range(3):
        trials.trial(kind)
    assert trials.stale == trials.wrong == []


@pytest.mark.spark
@pytest.mark.parametrize("kind", ["appended", "replaced"])
def test_nor_on_a_store_without_locks(spark: SparkSession, store: HadoopPath, kind: str) -> None:
    trials = Trials(spark, store, random.Random(3))
    trials.prepare()
    while not trials.seen["taken over"]:
        trials.trial(kind)
    assert trials.stale == trials.wrong == []
