"""Files of the tables that are damaged, cut or gone are refused with the remedy, wherever it is."""

import io
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from replication.evidence.event_dumps import read_events, write_events
from replication.evidence.unreadable import Unreadable
from replication.spark import contracts, views
from replication.spark.batch_rows import batch_rows
from replication.spark.delta_schemas import first_commit
from replication.spark.event_files import REFUSED, next_slice, still_readable
from replication.spark.failures import failed
from replication.spark.log_files import DamagedError, check_files
from replication.spark.small_commit import NotSmallError, SmallCommit, arrow_rows
from replication.spark.tables import Store, TablesError
from replication.spark.whole_files import read_whole
from tests.spark.event_rows import made_trace
from tests.spark.jobs_in_process import run_stream

ROW: dict[str, Any] = {"reason_code": "not_an_event", "reason": "x" * 300, "rows": 7, "raw": "y",
                       "origin": "o", "query": "ingest", "run": "first",
                       "micro_batch_id": 0}  # fmt: skip


def begun(folder: Path, table: str) -> Path:
    log = folder / table / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020d}.json").write_text(first_commit(contracts.tables()[table], 100))
    return folder / table


def batches(folder: Path) -> Path:
    """A table of three rows as micro-batches end with."""
    table = contracts.tables()["_batches"]
    path = begun(folder, "_batches")
    for number in range(3):
        row = {c.name: 0 for c in table.told} | {
            "run": "first", "query": "fold", "token": "t" * 200, "micro_batch_id": number,
            "newest_event_time": None, "incident": None, "analyzer_version": "1",
            "table_versions": {"verdicts": number}, "table_rows": {}, "finished_at": 1,
        }  # fmt: skip
        rows = arrow_rows(table, [row])
        SmallCommit(table, rows, frozenset(), ("fold/1/_batches", number)).save(str(path))
    return path


def damaged(file: Path, chance: random.Random) -> str:
    """Changes one byte of a file, or cuts it."""
    data = bytearray(file.read_bytes())
    place = chance.randrange(len(data))
    if chance.random() < 0.8:
        data[place] ^= 1 << chance.randrange(8)
        what = f"byte {place} of {len(data)}"
    else:
        data = data[:place]
        what = f"cut to {place}"
    file.write_bytes(bytes(data))
    return what


@pytest.mark.parametrize("seed", range(80))
def test_no_byte_of_a_row_of_batches_changes_unnoticed(seed: int, tmp_path: Path) -> None:
    path = batches(tmp_path)
    wanted = batch_rows(path)
    assert wanted is not None
    assert len(wanted) == 3
    chance = random.Random(seed)
    what = damaged(chance.choice(sorted(path.glob("*.parquet"))), chance)
    _, refused = outcome(lambda: batch_rows(path))
    assert refused is not None, what
    said = io.StringIO()
    assert failed("stream.py", refused, said) == 2, what
    assert "restore the table's folder, or fold the events anew" in said.getvalue()


def outcome(work: Callable[[], Any]) -> tuple[Any, Exception | None]:
    """What comes of it, or the refusal."""
    try:
        return work(), None
    except (DamagedError, NotSmallError) as error:
        return None, error


@pytest.mark.parametrize("seed", [None, *range(80)])
def test_no_byte_of_a_small_table_changes_unnoticed(seed: int | None, tmp_path: Path) -> None:
    """Its next small commit takes over the rows that stay. Without checksums beside the files
    (None) a page's own tell."""
    table, path = contracts.tables()["quarantine"], begun(tmp_path, "quarantine")
    key = "c/t/id/0"
    row = ROW | {"topic_partition_id": key}
    SmallCommit(table, arrow_rows(table, [row]), frozenset(), ("fold/1/quarantine", 0)).save(
        str(path)
    )
    [file] = path.glob("*.parquet")
    if seed is None:
        for each in path.glob(".*.crc"):
            each.unlink()
        data = file.read_bytes()
        file.write_bytes(data.replace(key.encode(), b"d/t/id/0", 1))
        what = "a page"
    else:
        what = damaged(file, random.Random(seed))
    commit = SmallCommit(
        table, arrow_rows(table, []), frozenset(["other"]), ("fold/1/quarantine", 1)
    )
    _, refused = outcome(lambda: commit.save(str(path)))
    assert refused is not None, what
    assert str(file) in str(refused)


@pytest.mark.parametrize("seed", [None, *range(20)])
def test_what_nothing_reads_is_noticed_where_every_byte_is_read(
    seed: int | None, tmp_path: Path
) -> None:
    """Any byte; without checksums beside the files (None) those of what pages hold."""
    path, store = batches(tmp_path), Store(cast(Any, None), tmp_path)
    whole = [p for p in path.rglob("*") if p.is_file() and p.suffix != ".crc"]
    told = read_whole(store, contracts.tables())
    assert told == (len(whole), sum(p.stat().st_size for p in whole))
    file = sorted(path.glob("*.parquet"))[1]
    data = bytearray(file.read_bytes())
    if seed is None:
        for each in path.glob(".*.crc"):
            each.unlink()
        place = data.index(b"fold")
    else:
        place = random.Random(seed).randrange(len(data))
    data[place] ^= 1
    file.write_bytes(bytes(data))
    with pytest.raises(TablesError, match=r"is damaged .*restore the table's folder") as refused:
        read_whole(store, contracts.tables())
    assert str(file) in str(refused.value)


@pytest.mark.spark
def test_a_changed_byte_of_folded_events_is_told_with_file_and_remedy(
    spark: SparkSession, folder: Path
) -> None:
    """By a query that reads it, and by a look at every byte."""
    write_events(folder / "in" / "events.jsonl", made_trace(0))
    run_stream(spark, folder)
    store = Store(spark, folder / "tables")
    files, _ = read_whole(store, views.stored())
    assert files > 10
    for table in ("replica_events", "verdicts"):
        [file, *_] = sorted((folder / "tables" / table).glob("*.parquet"))
        data = bytearray(file.read_bytes())
        # In the footer: the length of the file's last statistics, or a column's name.
        data[-60] ^= 1
        file.write_bytes(bytes(data))
        with pytest.raises(TablesError, match=re.escape(str(file))):
            read_whole(store, [table])
        said = io.StringIO()
        with pytest.raises(Exception, match="hecksum") as failure:
            spark.read.format("delta").load(str(file.parent)).toPandas()
        assert failed("job", failure.value, said) == 2
        assert file.name in said.getvalue()
        assert "restore the table's folder" in said.getvalue()


@pytest.mark.parametrize("how", ["gone", "cut", "longer"])
def test_a_file_that_is_gone_or_of_another_length_is_noticed_at_the_start(
    how: str, tmp_path: Path
) -> None:
    """Though nothing reads it any more: its events are folded."""
    path = batches(tmp_path)
    check_files(path)
    file = sorted(path.glob("*.parquet"))[1]
    data = file.read_bytes()
    file.unlink()
    if how != "gone":
        file.write_bytes(data[:-1] if how == "cut" else data + b"x")
    with pytest.raises(DamagedError, match=r"restore the table's folder") as refused:
        check_files(path)
    assert str(file) in str(refused.value)


def test_a_commit_that_is_damaged_is_named(tmp_path: Path) -> None:
    path = batches(tmp_path)
    commit = path / "_delta_log" / f"{2:020d}.json"
    commit.write_text(commit.read_text()[:-40])
    with pytest.raises(DamagedError, match=f"{2:020d}.json is damaged"):
        batch_rows(path)


@pytest.mark.parametrize("seed", range(40))
def test_a_parquet_file_of_events_gives_its_events_or_is_refused_whole(
    seed: int, tmp_path: Path
) -> None:
    """By the stream as by the laptop tool; never other events."""
    path, good = tmp_path / "events.parquet", made_trace(0)
    write_events(path, good)
    what = damaged(path, random.Random(seed))
    part = next_slice(path, 0, settled=True)
    assert part is not None
    taken = still_readable(part).format != REFUSED if part.format != REFUSED else False
    found = list(read_events(path))
    if taken:
        assert found == good, what
    else:
        assert any(isinstance(each, Unreadable) for each in found), what
