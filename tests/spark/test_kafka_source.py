"""The stream over a Kafka topic: a real broker of Kafka 4.3.0, records of every sort."""

import os
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import pytest
from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient, NewTopic
from pyspark.sql import SparkSession

from replication.protocol.ground import wire
from replication.protocol.ground.events import Event
from replication.spark import settings
from replication.spark.ending import Stop
from replication.spark.ingest import KafkaSource
from replication.spark.progress import Progress
from replication.spark.stream import StreamJob
from tests.kafka_lab.processes import JavaProcess, accepts, free_ports, run_tool, wait_for
from tests.kafka_lab.versions import Version
from tests.spark.event_rows import made_trace
from tests.spark.jobs_in_process import answers, rows, run_replay

pytestmark = [pytest.mark.spark, pytest.mark.kafka]
KAFKA = Version("4.3.0")


@dataclass
class Broker:
    """One broker that is its own controller."""

    directory: Path
    process: JavaProcess
    address: str


def properties(directory: Path, port: int, controller_port: int) -> str:
    lines = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "log.dirs": str(directory / "data"),
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "1",
        "log.cleaner.dedupe.buffer.size": "2097152",
        "group.initial.rebalance.delay.ms": "0",
        "auto.create.topics.enable": "false",
    }
    return "".join(f"{name}={value}\n" for name, value in lines.items())


@contextmanager
def started_broker(directory: Path) -> Iterator[Broker]:
    """A broker in this directory, until the block ends."""
    port, controller_port = free_ports(2, seed=os.getpid())
    config = directory / "server.properties"
    config.write_text(properties(directory, port, controller_port))
    cluster_id = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=").replace("-", "A")
    run_tool(
        KAFKA.class_path,
        ["kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(config)],
    )
    process = JavaProcess(
        KAFKA.class_path, [], ["kafka.Kafka", str(config)], directory / "console.txt"
    )
    try:
        wait_for("the broker's port", lambda: accepts(port), 120)
        yield Broker(directory, process, f"127.0.0.1:{port}")
    finally:
        process.kill()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with started_broker(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker


def make_topic(broker: Broker, name: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=broker.address, request_timeout_ms=60_000)
    admin.create_topics([NewTopic(name, 2, 1)])
    admin.close()


def send(broker: Broker, topic: str, values: list[bytes | None]) -> None:
    producer = KafkaProducer(bootstrap_servers=broker.address, acks="all")
    for number, value in enumerate(values):
        producer.send(topic, key=b"k", value=value, partition=number % 2).get(60)
    producer.close()


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
    (folder / "in" / "a.jsonl").write_bytes(b"".join(v + b"\n" for v in values if v and v[0] > 0))
    run_replay(spark, folder)
    assert answers(spark, folder / "tables") == answers(spark, folder / "replayed")
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
