"""A cluster in memory, and the library that speaks to it: cut off at every call."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from replication.cli import main

TOTAL = 23


class Killed(BaseException):
    """The program is no more."""


class KafkaException(Exception):
    """As the library's."""


class KafkaError(Exception):
    """As the library's: a code, and whether the same call may be made again."""

    _PARTITION_EOF = -191
    NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE = 16, 14, 15
    _WAIT_COORD, GROUP_AUTHORIZATION_FAILED, TIMED_OUT = -164, 30, -185

    def __init__(self, code: int, *, may_retry: bool = False) -> None:
        self._code, self._may_retry = code, may_retry

    def code(self) -> int:
        return self._code

    def retriable(self) -> bool:
        return self._may_retry

    def str(self) -> str:
        return f"error {self._code}"


@dataclass
class Cluster:
    """What a cluster keeps. kill_at: the call, counted, before (even) or behind (odd) which the
    client is killed. refuses: values that are not taken. answers_first: by call, the errors
    that come before its answer. base: the offset of the first record of each partition. hidden:
    how many records at the end of each partition are of an open transaction."""

    partitions: int = 2
    log: list[tuple[str, int, bytes | None, bytes | None, Any, int | None]] = field(
        default_factory=list
    )
    open_ones: dict[str, list[Any]] = field(default_factory=dict)
    noted: dict[tuple[str, str, int], int] = field(default_factory=dict)
    calls: int = 0
    kill_at: int = -1
    refuses: tuple[bytes, ...] = ()
    has_transactions: bool = True
    answers_first: dict[str, list[KafkaError]] = field(default_factory=dict)
    base: int = 0
    hidden: int = 0
    leader: int = 1

    def not_ready(self, name: str) -> KafkaError | None:
        """What the call of this name is answered instead of being done; None: it is done."""
        waiting = self.answers_first.get(name)
        return waiting.pop(0) if waiting else None

    def refuse(self, name: str) -> None:
        error = self.not_ready(name)
        if error is not None:
            raise KafkaException(error)

    def call(self, effect: Callable[[], Any]) -> Any:
        if self.calls == self.kill_at:
            raise Killed
        self.calls += 1
        result = effect()
        if self.calls == self.kill_at:
            raise Killed
        self.calls += 1
        return result


class TopicPartition:
    def __init__(self, topic: str, partition: int, offset: int = -1001) -> None:
        self.topic, self.partition, self.offset = topic, partition, offset
        self.error: KafkaError | None = None


class Message:
    def __init__(
        self, headers: list[tuple[str, bytes]], row: Any = None, offset: int = 0, error: Any = None
    ) -> None:
        self._headers, self._row, self._offset, self._error = headers, row, offset, error

    def error(self) -> Any:
        return self._error

    def offset(self) -> int:
        return self._offset

    def key(self) -> bytes | None:
        key: bytes | None = self._row[2]
        return key

    def value(self) -> bytes | None:
        value: bytes | None = self._row[3]
        return value

    def timestamp(self) -> tuple[int, int]:
        return (0, -1) if self._row[5] is None else (1, self._row[5])

    def headers(self) -> list[tuple[str, bytes]]:
        return self._headers


class Producer:
    def __init__(self, cluster: Cluster, settings: dict[str, Any]) -> None:
        self.cluster, self.name = cluster, settings.get("transactional.id")
        self.waiting: list[Any] = []
        self.offsets: dict[tuple[str, str, int], int] = {}

    def list_topics(self, topic: str, _: float) -> Any:
        one = SimpleNamespace(leader=self.cluster.leader)
        found = SimpleNamespace(
            error=None, partitions=dict.fromkeys(range(self.cluster.partitions), one)
        )
        if topic == "missing":
            found = SimpleNamespace(error="unknown topic", partitions={})
        return self.cluster.call(lambda: SimpleNamespace(topics={topic: found}))

    def init_transactions(self, _: float) -> None:
        if not self.cluster.has_transactions:
            raise KafkaException(KafkaError(KafkaError.TIMED_OUT))
        self.cluster.refuse("init_transactions")
        self.cluster.call(lambda: self.cluster.open_ones.pop(str(self.name), None))

    def begin_transaction(self) -> None:
        self.cluster.call(lambda: self.cluster.open_ones.setdefault(str(self.name), []))

    def produce(
        self, topic: str, value: bytes | None, key: bytes | None, *, on_delivery: Any,
        headers: Any, partition: int = -1, timestamp: int | None = None,
    ) -> None:  # fmt: skip
        row = (topic, partition, key, value, tuple(headers), timestamp)
        self.waiting.append((row, on_delivery))

    def poll(self, _: float) -> None:
        pass

    def flush(self, _: float) -> int:
        def effect() -> None:
            for row, delivered in self.waiting:
                if row[3] in self.cluster.refuses:
                    delivered("MSG_SIZE_TOO_LARGE", Message(list(row[4])))
                elif self.name is None:
                    self.cluster.log.append(row)
                else:
                    self.cluster.open_ones[self.name].append(row)
            self.waiting = []

        self.cluster.call(effect)
        return 0

    def abort_transaction(self, _: float) -> None:
        self.cluster.call(lambda: self.cluster.open_ones.pop(str(self.name)))

    def send_offsets_to_transaction(
        self, offsets: list[TopicPartition], group: str, _: float
    ) -> None:
        self.cluster.refuse("send_offsets_to_transaction")
        noted = {(group, o.topic, o.partition): o.offset for o in offsets}
        self.cluster.call(lambda: self.offsets.update(noted))

    def commit_transaction(self, _: float) -> None:
        self.cluster.refuse("commit_transaction")

        def effect() -> None:
            self.cluster.log += self.cluster.open_ones.pop(str(self.name))
            self.cluster.noted.update(self.offsets)

        self.cluster.call(effect)


class Consumer:
    def __init__(self, cluster: Cluster, settings: dict[str, Any]) -> None:
        self.cluster, self.group = cluster, settings["group.id"]
        self.is_visible = settings.get("isolation.level") == "read_committed"
        self.at = TopicPartition("", 0)

    def _rows(self, at: TopicPartition) -> list[Any]:
        return [row for row in self.cluster.log if row[:2] == (at.topic, at.partition)]

    def get_watermark_offsets(self, at: TopicPartition, _: float) -> tuple[int, int]:
        self.cluster.refuse("watermarks")
        base, end = self.cluster.base, self.cluster.base + len(self._rows(at))
        return base, max(base, end - self.cluster.hidden) if self.is_visible else end

    def assign(self, asked: list[TopicPartition]) -> None:
        (self.at,) = asked

    def poll(self, _: float) -> Message | None:
        found = self.cluster.not_ready("poll")
        if found is not None:
            return Message([], error=found)
        place = self.at.offset - self.cluster.base
        rows = self._rows(self.at)
        if place >= len(rows) - self.cluster.hidden:
            return Message([], error=KafkaError(KafkaError._PARTITION_EOF))
        self.at.offset += 1
        return Message([], rows[place], self.at.offset - 1)

    def committed(self, asked: list[TopicPartition], _: float) -> list[TopicPartition]:
        def noted(one: TopicPartition) -> TopicPartition:
            offset = self.cluster.noted.get((self.group, one.topic, one.partition), -1001)
            return TopicPartition(one.topic, one.partition, offset)

        self.cluster.refuse("committed")
        found: list[TopicPartition] = self.cluster.call(lambda: [noted(one) for one in asked])
        found[0].error = self.cluster.not_ready("committed, of the partition")
        return found

    def consumer_group_metadata(self) -> str:
        return str(self.group)

    def close(self) -> None:
        pass


def library_of(cluster: Cluster) -> Any:
    """What stands for the library, with one cluster behind it."""
    return SimpleNamespace(
        Producer=lambda settings: Producer(cluster, settings),
        Consumer=lambda settings: Consumer(cluster, settings),
        TopicPartition=TopicPartition,
        KafkaException=KafkaException,
        KafkaError=KafkaError,
    )


def record(number: int, **more: Any) -> dict[str, Any]:
    return {
        "cluster_id": "c", "topic": "t", "topic_id": None, "partition": number % 3,
        "offset": number, "leader_epoch": 4, "key": f"k{number}", "value": f"v{number}",
        "headers": [{"name": "h", "value": None, "value_base64": "/w=="}], "timestamp": 9,
        "held_back": None, **more,
    }  # fmt: skip


def folder(path: Path, *records: dict[str, Any]) -> Path:
    path.mkdir()
    (path / "records.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
    return path


def produce(path: Path, *more: str) -> int:
    return main(["recover", "--out", str(path), "--produce", "b:1", "--yes", *more])


def values(cluster: Cluster) -> Counter[bytes | None]:
    return Counter(row[3] for row in cluster.log)
