"""Paths of Hadoop's file systems: by viewfs over a local disk, the jobs do the same."""

import io
import uuid
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from replication.evidence.event_dumps import read_events, write_events
from replication.evidence.importer import import_evidence
from replication.places import HadoopPath, matching, rename
from replication.protocol.ground import wire
from replication.protocol.ground.events import Event
from replication.spark import hadoop_files, import_artifacts, workers
from replication.spark.import_artifacts import ImportJob
from replication.spark.maintain import Kept, Maintenance
from replication.spark.progress import Progress
from replication.spark.tables import Store
from tests.changed_evidence import INCIDENTS
from tests.spark.event_rows import made_trace
from tests.spark.jobs_in_process import answers, rows, run_replay, run_stream

pytestmark = pytest.mark.spark
# Keeps the writers of several clusters apart, and comes in a jar of its own.
DYNAMODB = ("spark.delta.logStore.s3a.impl", "io.delta.storage.S3DynamoDBLogStore")


@pytest.fixture
def store(spark: SparkSession, tmp_path: Path) -> HadoopPath:
    """A folder of a Hadoop file system; /incidents beside it holds the kept incidents."""
    hadoop_files.bind(spark)
    (tmp_path / "store").mkdir()
    # A file system is made once for each authority.
    authority = f"t{uuid.uuid4().hex}"
    configuration = spark.sparkContext._jsc.hadoopConfiguration()
    for name, folder in (("store", tmp_path / "store"), ("incidents", INCIDENTS)):
        configuration.set(f"fs.viewfs.mounttable.{authority}.link./{name}", f"file:{folder}")
    return HadoopPath(f"viewfs://{authority}/store")


def test_files_are_as_pathlib_has_them(store: HadoopPath, tmp_path: Path) -> None:
    own = tmp_path / "store"
    odd = store / "a b#?%20{1}.json"
    odd.write_text("héllo\nwörld\n")
    assert (own / odd.name).read_text(encoding="utf-8") == odd.read_text() == "héllo\nwörld\n"
    assert odd.as_uri() == (own / odd.name).as_uri().replace(own.as_uri(), str(store))
    assert (odd.stat().st_size, odd.is_file(), odd.is_dir()) == (14, True, False)
    (store / "folder").mkdir()
    with pytest.raises(FileExistsError):
        (store / "folder").mkdir()
    target = store / "folder" / "x.json"
    target.write_text("old")
    rename(odd, target)
    assert (target.read_text(), odd.exists()) == ("héllo\nwörld\n", False)
    assert matching(store, "*/*.json") == [target]
    assert list((store / "missing").glob("*")) == []
    for missing in (store / "missing", target / "below"):
        assert not missing.exists()
        with pytest.raises(OSError, match=r"No such file|Not a directory"):
            missing.read_text()
    target.touch(1_000.5)
    assert (own / "folder" / "x.json").stat().st_mtime == target.stat().st_mtime == 1_000.5
    data = bytes(range(256)) * 9_000
    (store / "big").write_bytes(data)
    assert (store / "big").read_bytes() == data
    with (store / "big").open() as stream:
        stream.seek(2_000_003)
        assert stream.read(5) == data[2_000_003:2_000_008]
        stream.seek(-4, io.SEEK_END)
        assert stream.read() == data[-4:]
    with pytest.raises(OSError, match="not empty"):
        target.parent.rmdir()
    target.unlink()
    target.unlink(missing_ok=True)
    with pytest.raises(FileNotFoundError):
        target.unlink()


def test_a_commit_that_is_there_is_never_replaced(spark: SparkSession, store: HadoopPath) -> None:
    commit = store / "_delta_log" / f"{0:020d}.json"
    commit.parent.mkdir(parents=True)
    assert hadoop_files.put_by_delta(spark, commit, ['{"a":1}', '{"b":2}'])
    assert not hadoop_files.put_by_delta(spark, commit, ['{"c":3}'])
    assert commit.read_text() == '{"a":1}\n{"b":2}\n'


def test_what_cannot_be_used_is_said_before_the_first_commit(
    spark: SparkSession, store: HadoopPath
) -> None:
    assert hadoop_files.problem(spark, [store], [Path("/tmp")]) is None
    for place in ("nosuch://host/t", "hdfs://127.0.0.1:1/t"):
        assert place in str(hadoop_files.problem(spark, [], [HadoopPath(place)]))
    told = hadoop_files._not_safe(spark, HadoopPath("s3a://bucket/t"))
    assert "two writers of s3a:" in str(told)
    assert hadoop_files._not_safe(spark, HadoopPath("hdfs://host/t")) is None
    spark.conf.set(DYNAMODB[0], DYNAMODB[1])
    told = hadoop_files._not_safe(spark, HadoopPath("s3a://bucket/t"))
    spark.conf.unset(DYNAMODB[0])
    assert f"no class {DYNAMODB[1]} ({DYNAMODB[0]})" in str(told)
    assert workers._unseen(spark, store / "new", 2) is None
    assert not (store / "new").exists()


def given(root: Any, folder: Path) -> str:
    """Puts events into root/in: lines, of which two are none, and Parquet; the lines."""
    events = list(made_trace())
    half = len(events) // 2
    (root / "in").mkdir(parents=True)
    lines = "".join(wire.to_json(event) + "\n" for event in events[:half])
    (root / "in" / "1.jsonl").write_text(lines + 'nonsense\n{"cut')
    write_events(folder / "2.parquet", events[half:])
    (root / "in" / "{2}.parquet").write_bytes((folder / "2.parquet").read_bytes())
    return lines


def refusals(spark: SparkSession, root: Any, tables: str) -> list[dict[str, Any]]:
    """Rows of quarantine, their origins from the root on."""
    found = rows(spark, root / tables, "quarantine")
    for row in found:
        row["origin"] = row["origin"].replace(str(root), "")
    return found


def test_a_replay_writes_the_same_tables(
    spark: SparkSession, store: HadoopPath, tmp_path: Path
) -> None:
    told: list[Any] = []
    root: Any
    for root in (tmp_path / "near", store):
        given(root, tmp_path)
        run_replay(spark, root)
        told.append((answers(spark, root / "replayed"), refusals(spark, root, "replayed")))
    assert told[0] == told[1]
    assert {row["origin_line"] for row in told[1][1]} == {26, 27}
    assert Store(spark, store / "replayed").has_rows("loss_ledger")


@pytest.mark.sweep
def test_a_stream_writes_the_same_tables(
    spark: SparkSession, store: HadoopPath, tmp_path: Path
) -> None:
    """Files whole and grown; a round of maintenance."""
    told: list[Any] = []
    root: Any
    for root in (tmp_path / "near", store):
        lines = given(root, tmp_path)
        run_stream(spark, root)
        (root / "in" / "1.jsonl").write_text(lines + 'nonsense\n{"cut"}\nmore\n')
        run_stream(spark, root)
        rounds = Maintenance(spark, root / "tables", root / "checkpoint", Progress(io.StringIO()))
        rounds.run(Kept(0.0, 0.0), 1)
        told.append((answers(spark, root / "tables"), refusals(spark, root, "tables")))
    assert told[0] == told[1]
    assert {row["origin_line"] for row in told[1][1]} == {26, 27, 28}


def test_an_import_from_a_store_to_a_store_is_the_laptops(
    spark: SparkSession, store: HadoopPath, tmp_path: Path
) -> None:
    name = "not_loss_traps__4.3.0__topic_recreated"
    evidence, far = INCIDENTS / name, store.parent / "incidents" / name
    for ending in ("json", "parquet"):
        out = store / ending
        flags = import_artifacts.parser().parse_args(
            [str(evidence), "--out", str(tmp_path / "unused"), "--format", ending]
        )
        flags.paths, flags.out = [far], out
        ImportJob(spark, Progress(io.StringIO())).run(flags)
        assert sorted(path.suffix for path in out.iterdir()) == sorted(
            [f".{'jsonl' if ending == 'json' else ending}"] * len(list(out.iterdir()))
        )
        found = [e for p in (tmp_path / "store" / ending).glob("part-*") for e in read_events(p)]
        assert all(isinstance(event, Event) for event in found)
        texts = sorted(wire.to_json(e) for e in found if isinstance(e, Event))
        laptops = import_evidence([evidence]).events()
        named = sorted(wire.to_json(e).replace(str(evidence), str(far)) for e in laptops)
        assert texts == named
