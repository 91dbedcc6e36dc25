"""SIGKILL after each commit of a micro-batch, and a restart: every table holds each batch once."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.kill_cycles import TARGETS, check

pytestmark = pytest.mark.spark


def test_killed_after_each_commit_of_a_micro_batch(spark: SparkSession, tmp_path: Path) -> None:
    assert len(TARGETS) <= 10
    assert check(spark, tmp_path, TARGETS) == []
