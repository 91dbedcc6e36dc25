"""No event stops the pipeline: every kind by extreme values of its fields, in every host alike."""

import json
from collections import defaultdict
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from replication.protocol.ground import wire
from tests.spark import poison
from tests.spark.event_rows import made_trace
from tests.spark.jobs_in_process import rows, run_replay
from tests.spark.poison import by_spark, cases, delivered, hosts, laptop

# Of all cases every so many-th: the command runs the whole sweep.
STEP = 577
SPARK_STEP = 29


@pytest.mark.slow
def test_no_value_of_any_field_stops_a_host_or_makes_two_of_them_differ() -> None:
    """Late events for a slot are left out: they are settled from the stored events."""
    seen = 0
    for case, lines in cases((13,), STEP):
        events = delivered(lines)
        expected = laptop(events)
        for host in hosts(events):
            assert host == expected, case.name
        seen += 1
    assert seen > 10


def test_a_high_watermark_that_falls_is_noted_wherever_a_micro_batch_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = "high_watermark_advanced.high_watermark='2147483647' at 13"
    [lines] = [lines for case, lines in cases((4, 13, 26), 20) if case.name == name]
    events = delivered(lines)
    for size in (3, 11, 15):
        monkeypatch.setattr(poison, "AT_ONCE", size)
        assert hosts(events) == [laptop(events)] * 2, size


def test_what_is_out_of_range_is_refused_and_what_is_not_is_taken() -> None:
    refused, taken = defaultdict(set), defaultdict(set)
    for case, _ in cases((13,)):
        try:
            wire.from_row(case.row)
            taken[case.field].add(repr(case.value))
        except wire.Misfit:
            refused[case.field].add(repr(case.value))
    assert refused["observed_at"] >= {"253402300800000", "1790000000000000"}
    assert taken["observed_at"] >= {"0", "1790000000", "253402300799999"}
    assert refused["leader_epoch"] >= {str(1 << 31), "-1"}
    assert taken["leader_epoch"] >= {str((1 << 31) - 1), "0"}
    assert taken["end_offset"] >= {str((1 << 63) - 1)}
    assert refused["topic"] >= {repr("\ud800"), repr("a/b"), repr(""), "7"}
    assert refused["cluster_id"] >= {repr("\ud800"), repr("\x00"), "7"}


@pytest.mark.spark
def test_the_moment_of_a_refused_event_is_not_the_newest(spark: SparkSession, folder: Path) -> None:
    """It may be one that no timestamp holds."""
    lines = [wire.to_json(event) for event in made_trace(0)]
    refused = {**json.loads(lines[-1]), "event_id": "far", "observed_at": (1 << 63) - 1}
    text = "\n".join([*lines, json.dumps(refused)])
    (folder / "in" / "far.jsonl").write_text(text + "\n")
    run_replay(spark, folder, keep_events=True)
    newest = max(json.loads(line)["observed_at"] for line in lines)
    assert {r["newest_event_time"] for r in rows(spark, folder / "replayed", "_batches")} <= {
        newest, None,
    }  # fmt: skip
    assert len(rows(spark, folder / "replayed", "quarantine")) == 1


@pytest.mark.sweep
@pytest.mark.spark
def test_poison_through_spark_stops_nothing_and_changes_no_other_partition(
    spark: SparkSession, folder: Path
) -> None:
    total, differing = by_spark(spark, folder, cases(step=SPARK_STEP))
    assert total > 300
    assert not differing
