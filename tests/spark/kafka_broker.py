"""One real Kafka broker that is its own controller, for the tests of the Kafka source."""

import os
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kafka import KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic

from tests.kafka_lab.processes import JavaProcess, accepts, free_ports, run_tool, wait_for
from tests.kafka_lab.versions import Version

KAFKA = Version("4.3.0")
USER = "analyzer"
_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


@dataclass
class Broker:
    """One broker that is its own controller.

    secured: where it wants a login (SASL, PLAIN) of USER with this password.
    """

    directory: Path
    process: JavaProcess
    address: str
    secured: str
    password: str

    def restart(self) -> None:
        """The same broker again, over its directory, on its port."""
        port = int(self.address.rsplit(":", 1)[1])
        config = str(self.directory / "server.properties")
        self.process = JavaProcess(
            KAFKA.class_path, [], ["kafka.Kafka", config], self.directory / "console.txt"
        )
        wait_for("the broker's port", lambda: accepts(port), 120)


def login(password: str) -> str:
    """A client's setting `sasl.jaas.config`."""
    return f'{_LOGIN} username="{USER}" password="{password}";'


def properties(
    directory: Path, port: int, controller_port: int, secured_port: int, password: str
) -> str:
    """Its settings."""
    lines = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port},"
        f"SECURED://127.0.0.1:{secured_port}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port},SECURED://127.0.0.1:{secured_port}",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,"
        "SECURED:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.secured.plain.sasl.jaas.config": f'{_LOGIN} user_{USER}="{password}";',
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
    port, controller_port, secured_port = free_ports(3, seed=os.getpid())
    config, password = directory / "server.properties", uuid.uuid4().hex
    config.write_text(properties(directory, port, controller_port, secured_port, password))
    cluster_id = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=").replace("-", "A")
    run_tool(
        KAFKA.class_path,
        ["kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(config)],
    )
    process = JavaProcess(
        KAFKA.class_path, [], ["kafka.Kafka", str(config)], directory / "console.txt"
    )
    host = "127.0.0.1"
    broker = Broker(directory, process, f"{host}:{port}", f"{host}:{secured_port}", password)
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


def delete_topic(broker: Broker, name: str) -> None:
    """And waits until it is gone."""
    admin = KafkaAdminClient(bootstrap_servers=broker.address, request_timeout_ms=60_000)
    admin.delete_topics([name])
    wait_for("the topic's end", lambda: name not in admin.list_topics(), 60)
    admin.close()


def delete_messages(broker: Broker, topic: str, before: dict[int, int]) -> None:
    """Those of each partition below an offset."""
    admin = KafkaAdminClient(bootstrap_servers=broker.address, request_timeout_ms=60_000)
    admin.delete_records({TopicPartition(topic, number): at for number, at in before.items()})
    admin.close()


def send(broker: Broker, topic: str, values: list[bytes | None]) -> None:
    """Sends values to both partitions in turns."""
    producer = KafkaProducer(bootstrap_servers=broker.address, acks="all")
    for number, value in enumerate(values):
        producer.send(topic, key=b"k", value=value, partition=number % 2).get(60)
    producer.close()
