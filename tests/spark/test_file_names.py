"""Names of files and folders are their owners': a pattern or an escape elsewhere means nothing."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from replication.spark.event_frames import as_one

pytestmark = pytest.mark.spark
# With each name that is a pattern a file that it would match.
NAMES = (
    "plain.jsonl", "1 50%20.jsonl", "[2].parquet", "2.parquet", "{a,b}.jsonl", "a.jsonl", "x*y",
    "xzy", "?", "!", "[!q]", "back\\slash", "\\*", "a,b", "x#y", "é ü", "+ & =",
)  # fmt: skip


def test_a_path_that_spark_is_given_means_that_file_alone(
    spark: SparkSession, tmp_path: Path
) -> None:
    """By the function with which Spark's readers and its file source look paths up."""
    folder = tmp_path / "of Ünit [1] {a,b}"
    folder.mkdir()
    for name in NAMES:
        (folder / name).touch()
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    configuration = jvm.org.apache.hadoop.conf.Configuration()
    for path in (folder, *(folder / name for name in NAMES)):
        given = jvm.org.apache.hadoop.fs.Path(as_one(str(path)))
        system = given.getFileSystem(configuration)
        spark_util = jvm.org.apache.spark.deploy.SparkHadoopUtil.get()
        found = spark_util.globPathIfNecessary(system, given)
        assert found.mkString("|") == f"file:{path}"
        assert system.exists(found.head())
