"""One real Kafka broker that is its own controller, for the tests of the Kafka source."""

import os
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient, NewTopic

from tests.kafka_lab.processes import JavaProcess, accepts, free_ports, run_tool, wait_for
from tests.kafka_lab.versions import Version

KAFKA = Version("4.3.0")


@dataclass
class Broker:
    """One broker that is its own controller."""

    directory: Path
    process: JavaProcess
    address: str

    def restart(self) -> None:
        """The same broker again, over its directory, on its port."""
        port = int(self.address.rsplit(":", 1)[1])
        config = str(self.directory / "server.properties")
        self.process = JavaProcess(
            KAFKA.class_path, [], ["kafka.Kafka", config], self.directory / "console.txt"
        )
        wait_for("the broker's port", lambda: accepts(port), 120)


def properties(directory: Path, port: int, controller_port: int) -> str:
    """Its settings."""
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
    broker = Broker(directory, process, f"127.0.0.1:{port}")
    try:
        wait_for("the broker's port", lambda: accepts(port), 120)
        yield broker
    finally:
        broker.process.kill()


def make_topic(broker: Broker, name: str) -> None:
    """A topic of two partitions."""
    admin = KafkaAdminClient(bootstrap_servers=broker.address, request_timeout_ms=60_000)
    admin.create_topics([NewTopic(name, 2, 1)])
    admin.close()


def send(broker: Broker, topic: str, values: list[bytes | None]) -> None:
    """Sends values to both partitions in turns."""
    producer = KafkaProducer(bootstrap_servers=broker.address, acks="all")
    for number, value in enumerate(values):
        producer.send(topic, key=b"k", value=value, partition=number % 2).get(60)
    producer.close()
