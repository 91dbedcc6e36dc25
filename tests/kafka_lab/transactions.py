"""A transactional producer and a load of transactions, some of them aborted.

A record of an aborted transaction is written and acknowledged like any other: what replicas must
keep does not depend on how its transaction ended.
"""

import random
import threading
from dataclasses import dataclass, field

from tests.kafka_lab import wire
from tests.kafka_lab.producer import Producer

ABORT_CHANCE = 0.3
# The client's name in the acknowledgements.
TRANSACTIONS = "transactions"


@dataclass
class TransactionalProducer(Producer):
    """`begin`, `send` at acks=all, `end`; after any failure the next `begin` starts over."""

    transactional_id: str | None = "lab-transactions"
    idempotent: bool = True
    _taken_in: set[int] = field(default_factory=set)

    @property
    def ready(self) -> bool:
        return self._producer is not None

    def begin(self) -> bool:
        """Whether there is a producer id to go on with."""
        self._taken_in = set()
        if self._producer is None:
            self._producer = self._new_producer()
            self._sequences = {}
        return self.ready

    def take_in(self, partition: int) -> bool:
        """Adds a partition to the transaction, as must be done before the first record to it."""
        if partition in self._taken_in or self._producer is None:
            return self.ready
        request = wire.add_partition_request(self._named(), self._producer, self.topic, partition)
        answer = self._ask_coordinator(request)
        codes = (
            [0]
            if answer is None
            else [
                told.partition_error_code
                for topic in answer.results_by_topic_v3_and_below
                for told in topic.results_by_partition
            ]
        )
        if answer is None or any(codes):
            self._producer = None
            return False
        self._taken_in.add(partition)
        return True

    def end(self, *, commit: bool) -> None:
        if self._producer is None:
            return
        request = wire.end_transaction_request(self._named(), self._producer, commit=commit)
        answer = self._ask_coordinator(request)
        if answer is None or answer.error_code:
            self._producer = None

    def _named(self) -> str:
        assert self.transactional_id is not None
        return self.transactional_id

    def _new_producer(self) -> tuple[int, int] | None:
        answer = self._ask_coordinator(wire.producer_id_request(self.transactional_id))
        if answer is None or answer.error_code:
            return None
        return answer.producer_id, answer.producer_epoch

    def _ask_coordinator(self, request: object) -> object | None:
        """None where no coordinator answers."""
        for broker in self.cluster.answering():
            try:
                with self.cluster.connection(broker, self.client, timeout=4.0) as connection:
                    found = connection.call(wire.coordinator_request(self._named()))
                if found.error_code or found.node_id not in self.cluster.answering():
                    continue
                to = found.node_id
                with self.cluster.connection(to, self.client, timeout=4.0) as connection:
                    return connection.call(request)
            except OSError:
                continue
        return None


class TransactionalLoad:
    """Transactions of one to four batches in a thread of their own, until `stop`."""

    def __init__(
        self, producer: TransactionalProducer, partitions: tuple[int, ...], seed: int, pause: float
    ) -> None:
        self._producer = producer
        self._partitions = partitions
        self._chance = random.Random(seed)
        self._pause = pause
        self._stop = threading.Event()
        self.errors: list[Exception] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(timeout=30)
        if self.errors:
            raise self.errors[0]

    def _run(self) -> None:
        try:
            while not self._stop.wait(self._pause):
                self._one_transaction()
        except Exception as error:
            # Told to whoever stops the load: a thread of its own cannot fail the experiment.
            self.errors.append(error)
        finally:
            self._producer.close()

    def _one_transaction(self) -> None:
        if not self._producer.begin():
            return
        for _ in range(self._chance.choice((1, 2, 4))):
            partition = self._chance.choice(self._partitions)
            if not self._producer.take_in(partition):
                return
            self._producer.send(self._chance.choice((1, 2)), acks="all", partition=partition)
            if not self._producer.ready or self._stop.wait(self._pause):
                break
        self._producer.end(commit=self._chance.random() > ABORT_CHANCE)
