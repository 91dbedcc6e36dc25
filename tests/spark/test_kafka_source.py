"""The stream over a Kafka topic: a real broker of Kafka 4.3.0, records of every sort."""

from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from replication.protocol.ground import wire
from replication.protocol.ground.events import Event
from replication.spark import settings
from replication.spark.ending import Stop
from replication.spark.ingest import KafkaSource
from replication.spark.progress import Progress
from replication.spark.stream import StreamJob
from tests.spark.event_rows import made_trace
from tests.spark.jobs_in_process import rows
from tests.spark.kafka_broker import Broker, make_topic, send, started_broker
from tests.spark.test_stream import ANSWERED, laptop, same_rows

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with started_broker(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker


def stream(spark: SparkSession, folder: Path, broker: Broker, topic: str) -> str:
    said = StringIO()
    chosen = settings.load({"max_offsets_per_trigger": "40", "write_threads": "1"})
    job = StreamJob(spark, folder / "tables", folder / "checkpoint", chosen, Progress(said), Stop())
    job.run(KafkaSource(broker.address, topic), None)
    return said.getvalue()


def test_records_of_a_topic_fold_as_the_same_lines_of_a_file(
    spark: SparkSession, folder: Path, broker: Broker
) -> None:
    """Two partitions, so that events come out of order; junk and a null value between."""
    events: list[Event] = made_trace(0)
    values: list[bytes | None] = [wire.to_json(event).encode() for event in events]
    values[10:10] = [b"\x00\xff junk", None]
    make_topic(broker, "events")
    send(broker, "events", values[:25])
    stream(spark, folder, broker, "events")
    send(broker, "events", values[25:])
    said = stream(spark, folder, broker, "events")
    for table in ANSWERED:
        same_rows(rows(spark, folder / "tables", table), laptop(events, table))
    assert (
        f"in all: {len(values)} rows = {len(events)} applied + 0 duplicates + 2 quarantined + "
        "0 held" in said
    )
    found = rows(spark, folder / "tables", "quarantine")
    assert {(r["origin"], r["origin_offset"]) for r in found} == {
        ("kafka:events-0", 5),
        ("kafka:events-1", 5),
    }
    assert all(r["reason"] for r in found)
