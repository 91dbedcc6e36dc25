"""Spark's own files of a checkpoint: written without processes, and named where one is broken."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from replication.places import HadoopPath
from replication.spark.checkpoint_files import (
    ON_THIS_DISK,
    broken,
    clear_unbegun,
    written_without_processes,
)
from replication.spark.event_files import SourceError
from replication.spark.hadoop_files import CHECKPOINTS
from replication.spark.kafka_source import read_to

FILES = {
    "metadata": '{"id":"5"}',
    "offsets/8": "junk that nobody reads any more",
    "offsets/9": 'v1\n{"batchWatermarkMs":0}\n{"logOffset":9}\n-',
    "offsets/10": 'v1\n{"batchWatermarkMs":0}\n{"reservoirVersion":4}\n-',
    "commits/9": "junk",
    "commits/10": 'v1\n{"nextBatchWatermarkMs":0}',
    "state/0/_metadata/metadata": 'v1\n{"stateStoreInfo":[]}',
    "state/0/0/_metadata/schema": "\0\2v2\0\0\0\1\0\2{}\0\0\0\1\0\2{}",
    "sources/1/0": '\0v1\n{"events":{"0":0}}',
    "sources/0/0": 'v1\n{"path":"a","timestamp":1,"batchId":0}',
    "sources/0/9.compact": "v1",
    "sources/0/10": 'v1\n{"path":"a","timestamp":1,"batchId":10}',
}


def written(location: Path) -> Path:
    for name, text in FILES.items():
        (location / name).parent.mkdir(parents=True, exist_ok=True)
        (location / name).write_text(text)
    return location


@pytest.mark.parametrize(
    "name",
    [
        "metadata",
        "offsets/9",
        "offsets/10",
        "commits/10",
        "state/0/_metadata/metadata",
        "state/0/0/_metadata/schema",
        "sources/0/9.compact",
        "sources/0/10",
        "sources/1/0",
    ],
)
def test_what_spark_would_read_and_is_not_whole_is_named(tmp_path: Path, name: str) -> None:
    path = written(tmp_path) / name
    assert broken(tmp_path) is None
    whole = path.read_bytes()
    for data in (b"", whole[: len(whole) // 2] if len(whole) > 4 else b"\0"):
        path.write_bytes(data)
        assert broken(tmp_path) == f"{path} is cut or empty"


@pytest.mark.parametrize(
    ("gone", "newest"),
    [("offsets/9", None), ("sources/0/11", "sources/0/12"), ("sources/1/0", "sources/1/1")],
)
def test_what_spark_would_read_and_is_not_there_is_named(
    tmp_path: Path, gone: str, newest: str | None
) -> None:
    path = written(tmp_path) / gone
    path.unlink(missing_ok=True)
    if newest is not None:
        (tmp_path / newest).write_text("v1")
    assert broken(tmp_path) == f"{path} is gone"


@pytest.mark.spark
def test_only_a_checkpoint_on_this_disk_is_written_by_the_file_system(
    spark: SparkSession, tmp_path: Path
) -> None:
    newer = tmp_path / "fold" / "spark" / "offsets" / "1"
    newer.parent.mkdir(parents=True)
    newer.write_text("v1")
    newer.with_name(".1.crc").write_bytes(b"of what stood there before a kill")
    try:
        written_without_processes(spark, tmp_path)
        assert spark.conf.get(CHECKPOINTS) == ON_THIS_DISK
        assert list(newer.parent.iterdir()) == [newer]
        written_without_processes(spark, HadoopPath("hdfs://there/checkpoint"))
        assert spark.conf.get(CHECKPOINTS, "") == ""
        spark.conf.set(CHECKPOINTS, "what --conf names")
        written_without_processes(spark, tmp_path)
        assert spark.conf.get(CHECKPOINTS) == "what --conf names"
    finally:
        spark.conf.unset(CHECKPOINTS)


@pytest.mark.parametrize(
    ("last", "topic", "found"),
    [
        ('{"events":{"0":7,"1":9}}', "events", {0: 7, 1: 9}),
        ('{"events":{"0":7,"1":9}}', "other", "--topic other: .* has read topic events: "),
        ('{"events":{"0":7,"1":9}}', None, "--source: .* has read topic events: "),
        ('{"logOffset":4}', None, {}),
        ('{"logOffset":4}', "events", "--topic events: .* has read files of a folder: "),
        ('{"logOffset":{"0":7}}', "logOffset", {0: 7}),
        ('{"events":{"0":7,"1', "events", {}),
        ('{"batchWatermarkMs":0,"conf":{"a":"1"}}', "events", {}),
        ("-", "events", {}),
        ("", "events", {}),
    ],
)
def test_how_far_a_checkpoint_has_read_which_source_and_a_cut_file_is_left_to_others(
    tmp_path: Path, last: str, topic: str | None, found: dict[int, int] | str
) -> None:
    (tmp_path / "commits").mkdir()
    (tmp_path / "commits" / "3").touch()
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "3").write_text(f'v1\n{{"batchWatermarkMs":0}}\n{last}')
    (tmp_path / "offsets" / "4").write_text('v1\n{}\n{"events":{"0":99}}')
    if isinstance(found, str):
        with pytest.raises(SourceError, match=found):
            read_to(tmp_path, topic)
    else:
        assert read_to(tmp_path, topic) == found


def test_what_a_full_disk_left_of_the_first_offsets_does_not_end_the_next_start(
    tmp_path: Path,
) -> None:
    """Spark begins a query only where the folder of its offsets is empty."""
    offsets = tmp_path / "offsets"
    offsets.mkdir()
    for name in (".0.6f1c.tmp", "..0.6f1c.tmp.crc"):
        (offsets / name).write_bytes(b"")
    clear_unbegun(tmp_path)
    assert list(offsets.iterdir()) == []
    for name in ("0", ".1.6f1c.tmp"):
        (offsets / name).write_text("v1")
    clear_unbegun(tmp_path)
    assert sorted(path.name for path in offsets.iterdir()) == [".1.6f1c.tmp", "0"]
    clear_unbegun(tmp_path / "there is none")
