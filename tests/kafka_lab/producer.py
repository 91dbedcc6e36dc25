"""Producers whose every record has one known outcome, and the acknowledgement log they keep.

One request carries one batch; what is retried has one line for each attempt. A record's value
begins with its payload id, unique over the whole run; its key is the same, or one of a few.
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
from tests.kafka_lab.logs_on_disk import FILLER
from tests.kafka_lab.processes import JavaProcess

# Answers that are given before anything is appended. Others, also "not leader", may come after.
REFUSED = {3, 5, 10, 17, 19, 29, 45, 47, 59, 87}
DUPLICATE_SEQUENCE = 46
LOST_SEQUENCE = {"OUT_OF_ORDER_SEQUENCE_NUMBER", "INVALID_PRODUCER_EPOCH", "UNKNOWN_PRODUCER_ID"}
NAMES = {
    0: "NONE",
    3: "UNKNOWN_TOPIC_OR_PARTITION",
    5: "LEADER_NOT_AVAILABLE",
    6: "NOT_LEADER_OR_FOLLOWER",
    7: "REQUEST_TIMED_OUT",
    19: "NOT_ENOUGH_REPLICAS",
    20: "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
    45: "OUT_OF_ORDER_SEQUENCE_NUMBER",
    47: "INVALID_PRODUCER_EPOCH",
    56: "KAFKA_STORAGE_ERROR",
    59: "UNKNOWN_PRODUCER_ID",
}


@dataclass
class Outcome:
    """What became of one record; `offset` is the leader's answer."""

    payload_id: str
    status: str
    offset: int | None
    error: str | None = None


@dataclass(frozen=True)
class Identity:
    """What makes a batch of an idempotent producer known again."""

    producer_id: int
    producer_epoch: int
    sequence: int


@dataclass
class Batch:
    """Records that go out together, the same bytes at every attempt."""

    payload_ids: list[str]
    acks: str
    partition: int
    records: bytes
    identity: Identity | None = None
    topic_id: str | None = None


class AcknowledgementLog:
    """`acks.jsonl` of the evidence, and the source of payload ids.

    `whole` is the laboratory's own log. `names` is what the evidence's lines tell a record by:
    "payload_id", "sequence" (of idempotent producers), or "offset" alone.
    """

    def __init__(self, path: Path, whole: Path, names: str = "payload_id") -> None:
        self.journal = Journal(whole)
        self._shown = Journal(path)
        self._hidden = {
            "payload_id": set(),
            "sequence": {"payload_id"},
            "offset": {"payload_id", "producer_id", "producer_epoch", "sequence"},
        }[names]
        self._numbers = itertools.count()
        self._lock = threading.Lock()

    def write(self, **fields: object) -> None:
        fields = {"ts": utc_text(time.time()), **fields}
        self.journal.write(**fields)
        self._shown.write(
            **{name: value for name, value in fields.items() if name not in self._hidden}
        )

    def close(self) -> None:
        self.journal.close()
        self._shown.close()

    def new_ids(self, prefix: str, count: int) -> list[str]:
        with self._lock:
            return [f"{prefix}-{next(self._numbers):06d}" for _ in range(count)]


@dataclass
class Producer:
    """Sends to whoever leads, over one connection that it keeps; not for several threads.

    With `keys` so many keys are used in turn, and payload ids are found in values alone.
    """

    cluster: Cluster
    log: AcknowledgementLog
    client: str
    topic: str = "t"
    timeout_ms: int = 5_000
    value_bytes: int = 20
    keys: int | None = None
    idempotent: bool = False
    retries: int = 0
    transactional_id: str | None = None
    _connections: dict[int, wire.Connection] = field(default_factory=dict)
    _of_process: dict[int, JavaProcess] = field(default_factory=dict)
    _producer: tuple[int, int] | None = None
    _sequences: dict[int, int] = field(default_factory=dict)

    def send(
        self, count: int = 1, *, acks: str = "all", partition: int = 0, broker: int | None = None
    ) -> list[Outcome]:
        """One batch of `count` records; the outcome of each, also when nobody leads."""
        batch = self._batch(self.log.new_ids(f"p{partition}", count), acks, partition)
        for attempt in range(1 + self.retries):
            if attempt:
                time.sleep(0.5)
            outcomes = self._attempt(batch, broker)
            if outcomes[0].status in ("acked", "sent") or outcomes[0].error in LOST_SEQUENCE:
                break
        if self.idempotent and outcomes[0].status != "acked":
            # Whether it was appended is open: the next batch starts over under another id.
            self._producer = None
        return outcomes

    def _attempt(self, batch: Batch, broker: int | None) -> list[Outcome]:
        sent_at = time.time()
        state = self.cluster.state(self.topic, batch.partition)
        if state is not None:
            # Of the life of the topic that is written to; whose metadata lags names the former.
            batch.topic_id = state.topic_id
        to = broker if broker is not None else (None if state is None else state.leader)
        if to is None:
            outcomes = self._outcomes(batch, "failed", None, "no leader known")
        else:
            outcomes = self._exchange(to, batch)
        self._record(outcomes, batch, sent_at, to)
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

    def start(self, broker: int, payload_ids: list[str], acks: str, partition: int = 0) -> Batch:
        """Sends without waiting; `finish` takes the answers in order."""
        batch = self._batch(payload_ids, acks, partition)
        self._connection(broker).send(self._request(batch), answered=acks != "0")
        return batch

    def finish(self, broker: int, batch: Batch) -> None:
        sent_at = time.time()
        connection = self._connections.get(broker)
        if connection is None:
            outcomes = self._outcomes(batch, "unknown", None, "no answer: connection lost")
        else:
            outcomes = self._answer(connection, broker, batch)
        self._record(outcomes, batch, sent_at, broker)

    def again(self, batch: Batch, seconds: float = 60) -> None:
        """The same bytes to whoever leads, as an idempotent producer retries, until they are
        acknowledged."""
        end = time.monotonic() + seconds
        while self._attempt(batch, None)[0].status != "acked":
            if time.monotonic() > end:
                raise AssertionError(f"not acknowledged: {batch.payload_ids}")
            time.sleep(0.5)

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

    def _exchange(self, broker: int, batch: Batch) -> list[Outcome]:
        try:
            connection = self._connection(broker)
        except OSError as error:
            return self._outcomes(batch, "failed", None, f"not connected: {error}")
        try:
            connection.send(self._request(batch), answered=batch.acks != "0")
        except OSError as error:
            self._drop(broker)
            return self._outcomes(batch, "unknown", None, f"disconnected: {error}")
        return self._answer(connection, broker, batch)

    def _answer(self, connection: wire.Connection, broker: int, batch: Batch) -> list[Outcome]:
        if batch.acks == "0":
            return self._outcomes(batch, "sent", None, None)
        try:
            answer = connection.receive()
        except (OSError, struct.error) as error:
            self._drop(broker)
            return self._outcomes(batch, "unknown", None, f"no answer: {error}")
        told = answer.responses[0].partition_responses[0]
        if told.error_code == DUPLICATE_SEQUENCE:
            return self._outcomes(batch, "acked", None, None)
        if told.error_code:
            status = "failed" if told.error_code in REFUSED else "unknown"
            name = NAMES.get(told.error_code, f"error code {told.error_code}")
            return self._outcomes(batch, status, None, name)
        known = told.base_offset if told.base_offset >= 0 else None
        return self._outcomes(batch, "acked", known, None)

    def _outcomes(
        self, batch: Batch, status: str, base_offset: int | None, error: str | None
    ) -> list[Outcome]:
        return [
            Outcome(payload_id, status, None if base_offset is None else base_offset + index, error)
            for index, payload_id in enumerate(batch.payload_ids)
        ]

    def _batch(self, payload_ids: list[str], acks: str, partition: int) -> Batch:
        identity = self._identity(partition, len(payload_ids)) if self.idempotent else None
        records = MemoryRecordsBuilder(self.cluster.version.magic, 0, 1_000_000)
        now = int(time.time() * 1000)
        for payload_id in payload_ids:
            value = payload_id.encode().ljust(self.value_bytes, FILLER)
            records.append(timestamp=now, key=self._key(payload_id), value=value)
        if identity is not None:
            records.set_producer_state(
                identity.producer_id,
                identity.producer_epoch,
                identity.sequence,
                self.transactional_id is not None,
            )
        records.close()
        topic_id = self.cluster.topic_ids.get(self.topic)
        return Batch(payload_ids, acks, partition, bytes(records.buffer()), identity, topic_id)

    def _identity(self, partition: int, count: int) -> Identity | None:
        """The next sequence; None while no broker gives out a producer id."""
        if self._producer is None:
            self._producer = self._new_producer()
            self._sequences = {}
        if self._producer is None:
            return None
        sequence = self._sequences.get(partition, 0)
        self._sequences[partition] = sequence + count
        return Identity(*self._producer, sequence)

    def _new_producer(self) -> tuple[int, int] | None:
        for broker in self.cluster.answering():
            try:
                with self.cluster.connection(broker, self.client) as connection:
                    answer = connection.call(wire.producer_id_request())
            except OSError:
                continue
            if not answer.error_code:
                return answer.producer_id, answer.producer_epoch
        return None

    def _request(self, batch: Batch) -> object:
        return wire.produce_request(
            self.cluster.version,
            self.topic,
            batch.partition,
            batch.acks,
            batch.records,
            self.timeout_ms,
            self.transactional_id,
        )

    def _key(self, payload_id: str) -> bytes:
        if self.keys is None:
            return payload_id.encode()
        return b"k%d" % (int(payload_id.rpartition("-")[2]) % self.keys)

    def _record(
        self, outcomes: list[Outcome], batch: Batch, sent_at: float, broker: int | None
    ) -> None:
        for index, outcome in enumerate(outcomes):
            fields: dict[str, object] = {
                "sent_ts": utc_text(sent_at),
                "client": self.client,
                "topic": self.topic,
                "partition": batch.partition,
                "offset": outcome.offset,
                "payload_id": outcome.payload_id,
                "acks": batch.acks,
                "status": outcome.status,
                "broker": broker,
            }
            if batch.identity is not None:
                fields["producer_id"] = batch.identity.producer_id
                fields["producer_epoch"] = batch.identity.producer_epoch
                fields["sequence"] = batch.identity.sequence + index
            if batch.topic_id:
                fields["topic_id"] = batch.topic_id
            if outcome.error:
                fields["error"] = outcome.error
            self.log.write(**fields)


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
        idempotent: bool = False,
        retries: int = 0,
        keys: int | None = None,
    ) -> None:
        self._stop = threading.Event()
        self._threads = []
        self.errors: list[Exception] = []
        for number, how in enumerate(acks):
            producer = Producer(
                cluster,
                log,
                f"load-{number}",
                topic,
                timeout_ms=4000,
                value_bytes=value_bytes,
                idempotent=idempotent and how == "all",
                retries=retries,
                keys=keys,
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
