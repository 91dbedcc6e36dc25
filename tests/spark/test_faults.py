"""A short form of `make faults`: crashes at commits, what is refused, and what is let go."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.fault_bench import undisturbed
from tests.spark.faults import few_crashes, refusals, too_much_held, work

pytestmark = pytest.mark.spark


@pytest.mark.sweep
def test_crashes_and_refusals_leave_the_tables_of_an_undisturbed_run(
    spark: SparkSession, tmp_path: Path
) -> None:
    wanted = undisturbed(spark, tmp_path / "undisturbed")
    assert all(wanted[t] for t in ("verdicts", "quarantine", "isr_and_leadership", "loss_ledger"))
    for fault in (few_crashes, refusals, too_much_held):
        assert work(spark, tmp_path, fault.__name__, fault, 0, wanted) == []
