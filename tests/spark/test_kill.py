"""SIGKILL after commits of a micro-batch, and a restart: every table holds each batch once."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.kill_cycles import TARGETS, check

pytestmark = pytest.mark.spark


# Each kill is a start of the job: the other tables are killed after by `python -m
# tests.spark.kill_cycles`.
AIMED = [("ingest", "replica_events"), ("fold", "replica_states"), ("fold", "_batches")]


@pytest.mark.parametrize(
    ("targets", "ended"),
    [pytest.param(AIMED[1:2], 0, id="one"), pytest.param(AIMED, 1, marks=pytest.mark.sweep)],
)
def test_killed_after_commits_of_a_micro_batch(
    spark: SparkSession, tmp_path: Path, targets: list[tuple[str, str]], ended: int
) -> None:
    assert set(targets) <= set(TARGETS)
    assert check(spark, tmp_path, targets, ended) == []
