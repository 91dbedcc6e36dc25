"""Producers whose every record has one known outcome, and the acknowledgement log they keep.

One request carries one batch; nothing is retried behind the caller's back. The key of a record is
its payload id, unique over the whole run.
"""

import itertools
import struct
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from kafka.record import MemoryRecordsBuilder

from tests.kafka_lab import wire
from tests.kafka_lab.cluster import Cluster
from tests.kafka_lab.journal import Journal, utc_text
from tests.kafka_lab.processes import JavaProcess

# Answers that are given before anything is appended. Others, also "not leader", may come after.
REFUSED = {3, 5, 10, 17, 19, 29, 45, 47, 87}
NAMES = {
    0: "NONE",
    3: "UNKNOWN_TOPIC_OR_PARTITION",
    5: "LEADER_NOT_AVAILABLE",
    6: "NOT_LEADER_OR_FOLLOWER",
    7: "REQUEST_TIMED_OUT",
    19: "NOT_ENOUGH_REPLICAS",
    20: "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
    56: "KAFKA_STORAGE_ERROR",
}


@dataclass
class Outcome:
    """What became of one record; `offset` is the leader's answer."""

    payload_id: str
    status: str
    offset: int | None
    error: str | None = None


class AcknowledgementLog:
    """`acks.jsonl` of the evidence, and the source of payload ids."""

    def __init__(self, path: Path) -> None:
        self.journal = Journal(path)
        self._numbers = itertools.count()
        self._lock = threading.Lock()

    def new_ids(self, prefix: str, count: int) -> list[str]:
        with self._lock:
            return [f"{prefix}-{next(self._numbers):06d}" for _ in range(count)]


@dataclass
class Producer:
    """Sends to whoever leads, over one connection that it keeps; not for several threads.

    With `keys` so many keys are used in turn, and the acknowledgements carry no payload id.
    """

    cluster: Cluster
    log: AcknowledgementLog
    client: str
    topic: str = "t"
    timeout_ms: int = 5_000
    value_bytes: int = 20
    keys: int | None = None
    _connections: dict[int, wire.Connection] = field(default_factory=dict)
    _of_process: dict[int, JavaProcess] = field(default_factory=dict)

    def send(
        self, count: int = 1, *, acks: str = "all", partition: int = 0, broker: int | None = None
    ) -> list[Outcome]:
        """One batch of `count` records; the outcome of each, also when nobody leads."""
        payload_ids = self.log.new_ids(f"p{partition}", count)
        sent_at = time.time()
        to = broker if broker is not None else self.cluster.leader(self.topic, partition)
        if to is None:
            outcomes = self._outcomes(payload_ids, "failed", None, "no leader known")
        else:
            outcomes = self._exchange(to, payload_ids, acks, partition)
        self._record(outcomes, acks, partition, sent_at, to)
        return outcomes

    def send_many(self, batches: int, count: int = 1, **how: object) -> list[Outcome]:
        return [
            outcome
            for _ in range(batches)
            for outcome in self.send(count, **how)  # type: ignore[arg-type]
        ]

    def must(self, batches: int, count: int = 1, **how: object) -> list[Outcome]:
        """As `send_many`, where a record that is not acknowledged spoils the experiment."""
        outcomes = self.send_many(batches, count, **how)
        bad = [outcome for outcome in outcomes if outcome.status != "acked"]
        if bad:
            raise AssertionError(f"not acknowledged: {bad[:3]}")
        return outcomes

    def start(self, broker: int, payload_ids: list[str], acks: str, partition: int = 0) -> None:
        """Sends without waiting; `finish` takes the answers in order."""
        connection = self._connection(broker)
        connection.send(self._request(payload_ids, acks, partition), answered=acks != "0")

    def finish(self, broker: int, payload_ids: list[str], acks: str, partition: int = 0) -> None:
        sent_at = time.time()
        outcomes = self._answer(self._connection(broker), broker, payload_ids, acks)
        self._record(outcomes, acks, partition, sent_at, broker)

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def _connection(self, broker: int) -> wire.Connection:
        process = self.cluster.processes[broker]
        if self._of_process.get(broker) is not process:
            # A connection to an earlier process of this broker is broken, but does not know it.
            self._drop(broker)
        if broker not in self._connections:
            self._of_process[broker] = process
            seconds = self.timeout_ms / 1000 + 3
            self._connections[broker] = self.cluster.connection(broker, self.client, seconds)
        return self._connections[broker]

    def _drop(self, broker: int) -> None:
        connection = self._connections.pop(broker, None)
        if connection is not None:
            connection.close()

    def _exchange(
        self, broker: int, payload_ids: list[str], acks: str, partition: int
    ) -> list[Outcome]:
        try:
            connection = self._connection(broker)
        except OSError as error:
            return self._outcomes(payload_ids, "failed", None, f"not connected: {error}")
        try:
            request = self._request(payload_ids, acks, partition)
            connection.send(request, answered=acks != "0")
        except OSError as error:
            self._drop(broker)
            return self._outcomes(payload_ids, "unknown", None, f"disconnected: {error}")
        return self._answer(connection, broker, payload_ids, acks)

    def _answer(
        self, connection: wire.Connection, broker: int, payload_ids: list[str], acks: str
    ) -> list[Outcome]:
        if acks == "0":
            return self._outcomes(payload_ids, "sent", None, None)
        try:
            answer = connection.receive()
        except (OSError, struct.error) as error:
            self._drop(broker)
            return self._outcomes(payload_ids, "unknown", None, f"no answer: {error}")
        told = answer.responses[0].partition_responses[0]
        if told.error_code:
            status = "failed" if told.error_code in REFUSED else "unknown"
            name = NAMES.get(told.error_code, f"error code {told.error_code}")
            return self._outcomes(payload_ids, status, None, name)
        return self._outcomes(payload_ids, "acked", told.base_offset, None)

    def _outcomes(
        self, payload_ids: list[str], status: str, base_offset: int | None, error: str | None
    ) -> list[Outcome]:
        return [
            Outcome(payload_id, status, None if base_offset is None else base_offset + index, error)
            for index, payload_id in enumerate(payload_ids)
        ]

    def _request(self, payload_ids: list[str], acks: str, partition: int) -> object:
        records = MemoryRecordsBuilder(self.cluster.version.magic, 0, 1_000_000)
        now = int(time.time() * 1000)
        for payload_id in payload_ids:
            value = payload_id.encode().ljust(self.value_bytes, b".")
            records.append(timestamp=now, key=self._key(payload_id), value=value)
        records.close()
        return wire.produce_request(
            self.cluster.version,
            self.topic,
            partition,
            acks,
            bytes(records.buffer()),
            self.timeout_ms,
        )

    def _key(self, payload_id: str) -> bytes:
        if self.keys is None:
            return payload_id.encode()
        return b"k%d" % (int(payload_id.rpartition("-")[2]) % self.keys)

    def _record(
        self, outcomes: list[Outcome], acks: str, partition: int, sent_at: float, broker: int | None
    ) -> None:
        for outcome in outcomes:
            fields = {
                "sent_ts": utc_text(sent_at),
                "client": self.client,
                "topic": self.topic,
                "partition": partition,
                "offset": outcome.offset,
                "payload_id": outcome.payload_id,
                "acks": acks,
                "status": outcome.status,
                "broker": broker,
            }
            if self.keys is not None:
                del fields["payload_id"]
            topic_id = self.cluster.topic_ids.get(self.topic)
            if topic_id:
                fields["topic_id"] = topic_id
            if outcome.error:
                fields["error"] = outcome.error
            self.log.journal.write(**fields)


class Load:
    """Producers in threads of their own, until `stop`."""

    def __init__(
        self,
        cluster: Cluster,
        log: AcknowledgementLog,
        acks: list[str],
        *,
        topic: str = "t",
        partitions: tuple[int, ...] = (0,),
        pause: float = 0.3,
        batch: int = 1,
        value_bytes: int = 20,
    ) -> None:
        self._stop = threading.Event()
        self._threads = []
        self.errors: list[Exception] = []
        for number, how in enumerate(acks):
            producer = Producer(
                cluster, log, f"load-{number}", topic, timeout_ms=4000, value_bytes=value_bytes
            )
            thread = threading.Thread(
                target=self._run, args=(producer, how, partitions, pause, batch), daemon=True
            )
            self._threads.append(thread)
            thread.start()

    def _run(
        self, producer: Producer, acks: str, partitions: tuple[int, ...], pause: float, batch: int
    ) -> None:
        try:
            for partition in itertools.cycle(partitions):
                if self._stop.wait(pause):
                    break
                producer.send(batch, acks=acks, partition=partition)
        except Exception as error:
            # Told to whoever stops the load: a thread of its own cannot fail the experiment.
            self.errors.append(error)
        finally:
            producer.close()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(timeout=30)
        if self.errors:
            raise self.errors[0]
