"""Names of files and folders are their owners': a pattern or an escape elsewhere means nothing."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from replication.evidence.event_dumps import write_events
from replication.protocol.ground import wire
from tests.spark.event_rows import made_trace
from tests.spark.jobs_in_process import rows, run_stream

pytestmark = pytest.mark.spark


def test_names_with_a_meaning_in_addresses_and_patterns(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / "of Ünit [1] {a,b}"
    source = folder / "in"
    source.mkdir(parents=True)
    events = list(made_trace())
    half = len(events) // 2
    lines = "".join(wire.to_json(event) + "\n" for event in events[:half])
    (source / "1 50%20*?.jsonl").write_text(lines + "nonsense\n")
    # Named by what would match the pattern: it must not be read in the other's place.
    (source / "2.parquet").write_bytes(b"")
    write_events(source / "[2].parquet", events[half:])
    run_stream(spark, folder)
    assert len(rows(spark, folder / "tables", "replica_events")) == len(events)
    (refused,) = rows(spark, folder / "tables", "quarantine")
    assert refused["origin"] == str(source / "1 50%20*?.jsonl")
    assert refused["origin_line"] == half + 1
