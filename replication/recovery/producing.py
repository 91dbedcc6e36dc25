"""Produces recovered records to a cluster, each once across restarts where the cluster can.

Inside transactions each batch goes out together with a note of how far it came: an offset that a
consumer group of this run's own commits, so that both are there or neither is. Where the cluster
has no transactions the note is a file, written behind each batch; then a batch that was under way
when the program was stopped goes out again.
"""

import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from replication.evidence.coordinator_records import TOPICS
from replication.recovery.already_there import LOOK_SECONDS, Looked, look, wanted_of
from replication.recovery.connecting import said
from replication.recovery.folder import NotUsable
from replication.recovery.rows_out import from_json
from replication.reports.inventory_words import counted

RECORDS_IN_BATCH, BYTES_IN_BATCH = 500, 16 << 20
HEADER = "recovered-from"
# How the group, and the transactional id, that keep a run's progress are named.
PROGRESS_GROUP = re.compile("recovered-[0-9a-f]{16}")
IN_TRANSACTIONS, BY_FILE = "transactions", "progress file"
GUARANTEES = {
    IN_TRANSACTIONS: "each record once, however often this is stopped and started again "
    "(consumers have to read with isolation.level=read_committed)",
    BY_FILE: "each record at least once: what was under way when this was stopped goes out again",
}
# What makes a record the same one, wherever it was found.
_OF_A_RECORD = (
    "cluster_id", "topic", "topic_id", "partition", "offset", "leader_epoch", "key", "value",
    "headers", "timestamp",
)  # fmt: skip
_SECONDS = 60.0
_PAUSE = 0.2
_NOT_READY = (
    "NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "_WAIT_COORD",
)  # fmt: skip
_PROGRESS = "produced.json"


class Refused(ValueError):
    """The cluster did not take a record, or cannot be reached; the text says which and why."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where to. topic: for all records, None: each to its own. settings: the client's."""

    bootstrap: str
    topic: str | None = None
    settings: tuple[tuple[str, str], ...] = ()
    also: frozenset[str] = frozenset()
    with_transactions: bool = True

    def name_of(self, record: dict[str, Any]) -> str:
        """The topic that a record goes to."""
        return self.topic or str(record["topic"])


@dataclass(slots=True)
class Plan:
    """What is to be produced: how many records to which topic; what is left out, and why.

    oldest: the earliest of their timestamps, ms; None without one.

    identity: the same for the same records, choice and topic, at any time and place.
    """

    counts: dict[str, int] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)
    identity: str = ""
    total: int = 0
    oldest: int | None = None


def chosen(lines: Path, target: Target) -> Iterator[dict[str, Any] | str]:
    """The records to produce in their order; for each that is not, why, as text."""
    with lines.open(encoding="utf-8") as stream:
        for number, line in enumerate(stream, 1):
            try:
                record = from_json(line)
            except ValueError as error:
                raise NotUsable(f"{lines} line {number}: {error}") from None
            held_back = record.get("held_back")
            if record["topic"] in TOPICS:
                yield "of a topic of Kafka's coordinators, which no client writes to"
            elif held_back is not None and held_back not in target.also:
                yield str(held_back)
            elif any(not _is_text(name) for name, _ in record["headers"]):
                yield "a header's name is no UTF-8, which no client sends"
            else:
                yield record


def _is_text(name: bytes) -> bool:
    try:
        name.decode()
    except UnicodeDecodeError:
        return False
    return True


def planned(lines: Path, target: Target) -> Plan:
    """What `produce` would do."""
    plan = Plan()
    if not lines.is_file():
        raise NotUsable(f"{lines}: not there; `recover PATH --out FOLDER` writes it")
    digest = hashlib.sha256(repr((target.topic, sorted(target.also))).encode())
    for item in chosen(lines, target):
        if isinstance(item, str):
            plan.left_out[item] = plan.left_out.get(item, 0) + 1
            continue
        name = target.name_of(item)
        plan.counts[name] = plan.counts.get(name, 0) + 1
        plan.total += 1
        at = item.get("timestamp")
        if at is not None:
            plan.oldest = at if plan.oldest is None else min(plan.oldest, at)
        digest.update(repr([item.get(field) for field in _OF_A_RECORD]).encode())
    plan.identity = f"recovered-{digest.hexdigest()[:16]}"
    return plan


@dataclass(slots=True)
class Producing:
    """One run. guarantee: IN_TRANSACTIONS or BY_FILE. done: how many records of the plan, in their
    order, are in the cluster. `peek` and `begin` find out. there: the numbers of those behind them
    that the cluster has at their own offsets, once `look` found out. leaders: of today."""

    kafka: Any
    target: Target
    plan: Plan
    folder: Path
    guarantee: str = ""
    done: int = 0
    there: frozenset[int] = frozenset()
    leaders: dict[tuple[str, int], int] = field(default_factory=dict)
    _producer: Any = None
    _group: Any = None
    _partitions: dict[str, int] = field(default_factory=dict)

    def peek(self) -> None:
        """Finds out how far an earlier run came, and leaves it so. Raises Refused, NotUsable."""
        noted = self._guaranteed()
        try:
            self._look_at_topics(LOOK_SECONDS)
            if self.guarantee == BY_FILE:
                self.done = 0 if noted is None else int(noted["done"])
                return
            group = self._of_progress()
            try:
                self.done = max(group.committed([self._note()], LOOK_SECONDS)[0].offset, 0)
            finally:
                group.close()
        except self.kafka.KafkaException as error:
            raise Refused(f"{self.target.bootstrap}: {said(error)}") from None

    def look(self, records: Iterable[dict[str, Any]]) -> Looked:
        """Which of the plan's records, these, the cluster has already where they are from.

        Those that an earlier run produced are not asked for, nor what goes to another topic."""
        own = (
            (number, record)
            for number, record in enumerate(records)
            if number >= self.done
            and self.target.name_of(record) == record["topic"]
            and record["partition"] < self._partitions[record["topic"]]
        )
        looked = look(self.kafka, self._connection(), self.plan.identity, wanted_of(own))
        self.there = frozenset(looked.there)
        return looked

    def begin(self) -> None:
        """Connects, and finds out how far an earlier run came. Raises Refused, NotUsable."""
        noted = self._guaranteed()
        try:
            self._look_at_topics(_SECONDS)
            if self.guarantee == IN_TRANSACTIONS:
                self._begin_in_transactions(is_first=noted is None)
            else:
                self._producer = self.kafka.Producer(self._settings())
                self.done = 0 if noted is None else int(noted["done"])
        except self.kafka.KafkaException as error:
            raise Refused(f"{self.target.bootstrap}: {said(error)}") from None

    def _guaranteed(self) -> dict[str, Any] | None:
        """What an earlier run noted in the folder, and so which guarantee holds."""
        noted = self._noted()
        wanted = IN_TRANSACTIONS if self.target.with_transactions else BY_FILE
        self.guarantee = wanted if noted is None else noted["guarantee"]
        if self.guarantee != wanted and noted is not None and not self.target.with_transactions:
            raise NotUsable(
                f"{self.folder / _PROGRESS}: an earlier run went on in {self.guarantee}, and its "
                "progress is noted there: go on without --no-transactions"
            )
        return noted

    def _of_progress(self) -> Any:
        return self.kafka.Consumer(
            {**self._connection(), "group.id": self.plan.identity, "enable.auto.commit": False}
        )

    def _begin_in_transactions(self, *, is_first: bool) -> None:
        settings = {**self._settings(), "transactional.id": self.plan.identity}
        self._producer = self.kafka.Producer(settings)
        try:
            self._answered(lambda: self._producer.init_transactions(_SECONDS))
        except self.kafka.KafkaException as error:
            raise Refused(
                f"{self.target.bootstrap}: transactions cannot be had ({said(error)}); with "
                f"--no-transactions: {GUARANTEES[BY_FILE]}"
            ) from None
        self._group = self._of_progress()
        try:
            noted = self._answered(lambda: self._group.committed([self._note()], _SECONDS)[0])
        except self.kafka.KafkaException as error:
            raise Refused(
                f"{self.target.bootstrap}: the progress, which is kept as an offset of a consumer "
                f"group, cannot be read ({said(error)}). Has every partition of "
                "__consumer_offsets a leader? kafka-topics.sh --describe --unavailable-partitions "
                f"tells. With --no-transactions none is needed: {GUARANTEES[BY_FILE]}"
            ) from None
        self.done = max(noted.offset, 0)
        if is_first:
            self._write_note()

    def _answered(self, call: Callable[[], Any]) -> Any:
        """What the cluster answers: asked again for a minute while it is only not ready.

        A coordinator that moves, loads its partition or is not chosen yet is not ready, and so is
        whatever the library calls retriable. Raises KafkaException.
        """
        for_now = {getattr(self.kafka.KafkaError, name) for name in _NOT_READY}
        until = time.monotonic() + _SECONDS
        while True:
            try:
                found = call()
                error = getattr(found, "error", None)
                if error is None:
                    return found
            except self.kafka.KafkaException as raised:
                error = raised.args[0]
            is_ready = error.code() not in for_now and not error.retriable()
            if is_ready or time.monotonic() > until:
                raise self.kafka.KafkaException(error)
            time.sleep(_PAUSE)

    def _note(self, done: int | None = None) -> Any:
        """The topic partition under which the group notes its progress."""
        topic = min(self.plan.counts)
        return self.kafka.TopicPartition(topic, 0, *(() if done is None else (done,)))

    def _look_at_topics(self, seconds: float) -> None:
        self._producer = self.kafka.Producer(self._connection())
        for topic in self.plan.counts:
            found = self._producer.list_topics(topic, seconds).topics[topic]
            if found.error is not None or not found.partitions:
                raise NotUsable(
                    f"{self.target.bootstrap}: topic {topic}: {found.error or 'not there'}; "
                    "make it first, with the partitions that its keys need"
                )
            self._partitions[topic] = len(found.partitions)
            leaders = {(topic, n): of.leader for n, of in found.partitions.items()}
            self.leaders |= {at: leader for at, leader in leaders.items() if leader >= 0}

    def _connection(self) -> dict[str, Any]:
        # What the library would log of a cluster that it cannot reach, the call says once.
        quiet = {"log_level": "0"}
        return quiet | dict(self.target.settings) | {"bootstrap.servers": self.target.bootstrap}

    def _settings(self) -> dict[str, Any]:
        # A record as large as the broker takes: what is too large for it, it says.
        return {
            "message.max.bytes": 1_000_000_000,
            "linger.ms": 5,
            **self._connection(),
            "enable.idempotence": True,
            "acks": "all",
        }

    def run(self, records: Iterable[dict[str, Any]]) -> Iterator[int]:
        """Produces what is not there yet, batch by batch; how many are there after each.
        Those of `there` count, and are not produced."""
        for batch in _batches(records, self.done):
            try:
                self._send(batch)
            except self.kafka.KafkaException as error:
                raise Refused(f"{self.target.bootstrap}: {said(error)}") from None
            yield self.done

    def _send(self, batch: Sequence[dict[str, Any]]) -> None:
        refused: list[str] = []

        def delivered(error: Any, message: Any) -> None:
            if error is not None:
                origin = dict(message.headers() or ()).get(HEADER, b"?").decode("utf-8", "replace")
                refused.append(f"{origin}: {error}")

        in_transaction = self.guarantee == IN_TRANSACTIONS
        if in_transaction:
            self._producer.begin_transaction()
        for number, record in enumerate(batch, self.done):
            if number not in self.there:
                self._produce(record, delivered)
        left = self._producer.flush(_SECONDS)
        if left or refused:
            if in_transaction:
                self._producer.abort_transaction(_SECONDS)
            unanswered = f"{counted(left, 'record')} without an answer after {_SECONDS:.0f} s"
            told = refused[0] if refused else unanswered
            raise Refused(f"{self.target.bootstrap}: {told}")
        done = self.done + len(batch)
        if in_transaction:
            group = self._group.consumer_group_metadata()
            note = [self._note(done)]
            producer = self._producer
            self._answered(lambda: producer.send_offsets_to_transaction(note, group, _SECONDS))
            self._answered(lambda: producer.commit_transaction(_SECONDS))
            self.done = done
        else:
            self.done = done
            self._write_note()

    def _produce(self, record: dict[str, Any], delivered: Any) -> None:
        topic = self.target.name_of(record)
        settings: dict[str, Any] = {}
        if record["partition"] < self._partitions[topic]:
            settings["partition"] = record["partition"]
        if record.get("timestamp") is not None:
            settings["timestamp"] = record["timestamp"]
        while True:
            try:
                self._producer.produce(
                    topic,
                    record["value"],
                    record["key"],
                    on_delivery=delivered,
                    headers=_headers(record),
                    **settings,
                )
                break
            except BufferError:
                self._producer.poll(0.5)
        self._producer.poll(0)

    def _noted(self) -> dict[str, Any] | None:
        path = self.folder / _PROGRESS
        if not path.exists():
            return None
        try:
            noted: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            if noted["identity"] == self.plan.identity and noted["guarantee"] in GUARANTEES:
                return noted
        except (OSError, ValueError, KeyError, TypeError):
            pass
        raise NotUsable(
            f"{path}: it notes the progress of another choice of records or another "
            "topic. Delete it if those are to be produced as well"
        )

    def _write_note(self) -> None:
        path = self.folder / _PROGRESS
        noted = {"identity": self.plan.identity, "guarantee": self.guarantee, "done": self.done}
        partial = path.with_name(f"{path.name}.partial")
        with partial.open("w", encoding="utf-8") as stream:
            stream.write(json.dumps(noted) + "\n")
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(partial, path)

    def close(self) -> None:
        """Ends the connections."""
        if self._group is not None:
            self._group.close()


def _headers(record: dict[str, Any]) -> list[tuple[str, bytes | None]]:
    leader_epoch = record.get("leader_epoch")
    shown = "" if leader_epoch is None else f"#{leader_epoch}"
    origin = f"{record['topic']}-{record['partition']}@{record['offset']}{shown}"
    own = [(name.decode(), value) for name, value in record["headers"]]
    return [*own, (HEADER, origin.encode())]


def _batches(records: Iterable[dict[str, Any]], done: int) -> Iterator[list[dict[str, Any]]]:
    """The records behind those that are done, in batches of limited size."""
    batch: list[dict[str, Any]] = []
    size = 0
    for number, record in enumerate(records):
        if number < done:
            continue
        batch.append(record)
        size += len(record["value"] or b"") + len(record["key"] or b"")
        if len(batch) >= RECORDS_IN_BATCH or size >= BYTES_IN_BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
