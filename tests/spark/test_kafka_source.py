"""The stream over a Kafka topic: a real broker of Kafka 4.3.0, records of every sort."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from benchmarks.process_tree import descendants
from replication.paths import project_root
from replication.protocol.ground import wire
from replication.protocol.ground.events import Event
from replication.spark import settings
from replication.spark.demo import JAVA_OPTIONS, PROPERTIES
from replication.spark.ending import Stop
from replication.spark.ingest import KafkaSource
from replication.spark.progress import Progress
from replication.spark.stream import StreamJob
from tests.spark.event_rows import made_trace
from tests.spark.jobs_in_process import rows
from tests.spark.kafka_broker import Broker, login, make_topic, send, started_broker
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


def command_lines(root: int) -> set[bytes]:
    """Those of a process and of all below it."""
    found = set()
    for pid in descendants(root) | {root}:
        try:
            found.add(Path(f"/proc/{pid}/cmdline").read_bytes())
        except OSError:
            continue
    return found


def test_a_secured_topic_is_read_and_its_password_is_nowhere_to_be_seen(
    spark: SparkSession, folder: Path, broker: Broker
) -> None:
    """By spark-submit, the password from the environment: it is in no command line, no line that
    the job prints and no file that it leaves."""
    events: list[Event] = made_trace(0)
    make_topic(broker, "secured")
    send(broker, "secured", [wire.to_json(event).encode() for event in events])
    options = folder / "client.properties"
    options.write_text(
        "kafka.security.protocol=SASL_PLAINTEXT\nkafka.sasl.mechanism=PLAIN\n"
        f"kafka.sasl.jaas.config={login('${BROKER_PASSWORD}')}\n"
    )
    command = [
        str(Path(sys.executable).with_name("spark-submit")), "--properties-file", PROPERTIES,
        "--conf", JAVA_OPTIONS, "jobs/stream.py", "--source", "kafka", "--topic", "secured",
        "--bootstrap-servers", broker.secured, "--kafka-options", str(options),
        "--tables", str(folder / "tables"), "--checkpoint-dir", str(folder / "checkpoint"),
    ]  # fmt: skip
    secret = broker.password
    seen = set[bytes]()
    with (folder / "said.txt").open("wb") as said:
        job = subprocess.Popen(
            command, cwd=project_root(), stdout=said, stderr=said,
            env={**os.environ, "PYSPARK_PYTHON": sys.executable, "BROKER_PASSWORD": secret},
        )  # fmt: skip
        while job.poll() is None:
            seen |= command_lines(job.pid)
            time.sleep(0.1)
    text = (folder / "said.txt").read_text()
    assert job.returncode == 0, text
    for table in ANSWERED:
        same_rows(rows(spark, folder / "tables", table), laptop(events, table))
    assert any(b"--kafka-options" in line for line in seen)
    assert any(b"pyspark.daemon" in line for line in seen)
    assert not [line for line in seen if secret.encode() in line]
    left = (path for path in folder.rglob("*") if path.is_file())
    assert not [path for path in left if secret.encode() in path.read_bytes()]
