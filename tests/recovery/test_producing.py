"""Produced records, each once across restarts: a cluster in memory, cut off at every call."""

import json
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from replication.cli import main
from replication.recovery import produce_command, producing
from tests.recovery.lost_evidence import lines_of

TOTAL = 23


class Killed(BaseException):
    """The program is no more."""


class KafkaException(Exception):
    """As the library's."""


class KafkaError(Exception):
    """As the library's: a code, and whether the same call may be made again."""

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
    that come before its answer."""

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
    def __init__(self, headers: list[tuple[str, bytes]]) -> None:
        self._headers = headers

    def headers(self) -> list[tuple[str, bytes]]:
        return self._headers


class Producer:
    def __init__(self, cluster: Cluster, settings: dict[str, Any]) -> None:
        self.cluster, self.name = cluster, settings.get("transactional.id")
        self.waiting: list[Any] = []
        self.offsets: dict[tuple[str, str, int], int] = {}

    def list_topics(self, topic: str, _: float) -> Any:
        found = SimpleNamespace(
            error=None, partitions=dict.fromkeys(range(self.cluster.partitions))
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


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    made = Cluster()
    library = SimpleNamespace(
        Producer=lambda settings: Producer(made, settings),
        Consumer=lambda settings: Consumer(made, settings),
        TopicPartition=TopicPartition,
        KafkaException=KafkaException,
        KafkaError=KafkaError,
    )
    monkeypatch.setattr(produce_command, "client", lambda: library)
    monkeypatch.setattr(producing, "RECORDS_IN_BATCH", 5)
    monkeypatch.setattr(producing, "_PAUSE", 0.0)
    return made


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


ALL = {b"v%d" % n: 1 for n in range(TOTAL)}


def test_what_goes_out(cluster: Cluster, tmp_path: Path) -> None:
    out = folder(tmp_path / "o", record(0), record(2, value=None, key=None, key_base64="/wA="))
    assert produce(out, "--to-topic", "back") == 0
    assert cluster.log == [
        ("back", 0, b"k0", b"v0", (("h", b"\xff"), ("recovered-from", b"t-0@0#4")), 9),
        ("back", -1, b"\xff\0", None, (("h", b"\xff"), ("recovered-from", b"t-2@2#4")), 9),
    ]
    assert produce(out, "--to-topic", "back") == 0
    assert len(cluster.log) == 2


@pytest.mark.parametrize("more", [(), ("--no-transactions",)])
def test_killed_at_every_call_and_started_again(
    more: tuple[str, ...], cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With transactions each record is there once. Without, twice at most, those of one batch."""
    out = folder(tmp_path / "whole", *(record(n) for n in range(TOTAL)))
    assert produce(out, *more) == 0
    calls = cluster.calls
    assert values(cluster) == ALL
    assert calls >= 12
    for kill_at in range(calls + 1):
        cluster.__init__(kill_at=kill_at)  # type: ignore[misc]
        out = folder(tmp_path / str(kill_at), *(record(n) for n in range(TOTAL)))
        with suppress(Killed):
            produce(out, *more)
        cluster.kill_at = -1
        assert produce(out, *more) == 0
        found = values(cluster)
        assert found.keys() == ALL.keys(), kill_at
        assert sum(found.values()) <= TOTAL + (5 if more else 0), kill_at
        assert max(found.values()) <= (2 if more else 1), kill_at
    said = capsys.readouterr().out
    assert ("at least once" if more else "each record once") in said


def test_killed_again_and_again(cluster: Cluster, tmp_path: Path) -> None:
    out = folder(tmp_path / "o", *(record(n) for n in range(TOTAL)))
    for _ in range(50):
        cluster.kill_at = cluster.calls + 15
        try:
            if produce(out) == 0:
                break
        except Killed:
            continue
    assert values(cluster) == ALL


def test_a_record_that_the_cluster_refuses_is_named_and_nothing_of_its_batch_is_there(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = folder(tmp_path / "o", *(record(n) for n in range(TOTAL)))
    cluster.refuses = (b"v7",)
    assert produce(out) == 5
    assert "t-1@7#4: MSG_SIZE_TOO_LARGE" in capsys.readouterr().err
    assert sorted(values(cluster)) == sorted(b"v%d" % n for n in range(5))
    cluster.refuses = ()
    assert produce(out) == 0
    assert values(cluster) == ALL


def test_what_is_held_back_stays_so_until_it_is_asked_for(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    held = record(1, held_back="open_transaction"), record(2, held_back="one_of_several")
    unsendable = record(3, headers=[{"name": None, "name_base64": "/w==", "value": None}])
    out = folder(tmp_path / "o", record(0), *held, unsendable)
    assert produce(out) == 1
    assert values(cluster) == {b"v0": 1}
    assert "--also open_transaction takes them" in capsys.readouterr().out
    assert produce(out, "--also", "open_transaction") == 2
    assert "another choice of records" in capsys.readouterr().err
    (out / "produced.json").unlink()
    assert produce(out, "--also", "open_transaction", "--also", "one_of_several") == 1
    assert set(values(cluster)) == {b"v0", b"v1", b"v2"}


def test_nothing_is_produced_without_being_asked(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = folder(tmp_path / "o", record(0))
    assert main(["recover", "--out", str(out), "--produce", "b:1"]) == 0
    assert cluster.log == []
    said = capsys.readouterr().out
    assert "topic t: 1 record" in said
    assert "the oldest 1970-01-01T00:00:00.009Z" in said
    assert "Nothing was produced" in said


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--to-topic", "missing"), "make it first"),
        (("--producer-config", "nowhere"), "--producer-config nowhere"),
    ],
)
def test_what_cannot_be_done_is_said(
    more: tuple[str, ...], words: str, cluster: Cluster, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    assert produce(folder(tmp_path / "o", record(0)), *more) == 2
    assert words in capsys.readouterr().err
    assert cluster.log == []


def test_a_cluster_without_transactions_is_not_taken_for_one_with(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.has_transactions = False
    out = folder(tmp_path / "o", record(0))
    assert produce(out) == 5
    assert "--no-transactions" in capsys.readouterr().err
    assert produce(out, "--no-transactions") == 0
    assert values(cluster) == {b"v0": 1}


def test_what_has_begun_in_transactions_goes_on_so(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = folder(tmp_path / "o", *(record(n) for n in range(TOTAL)))
    cluster.kill_at = 20
    with pytest.raises(Killed):
        produce(out)
    cluster.kill_at = -1
    assert produce(out, "--no-transactions") == 2
    assert "go on without --no-transactions" in capsys.readouterr().err


@pytest.mark.parametrize("more", [(), ("--yes",), ("--to-topic", "x")])
def test_a_call_without_evidence_or_cluster_is_refused(
    more: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["recover", "--out", str(tmp_path / "o"), *more]) == 2
    assert "recover: " in capsys.readouterr().err
    assert main(["recover", "--out", str(tmp_path / "o"), "--produce", "b:1"]) == 2
    assert "recover PATH --out FOLDER" in capsys.readouterr().err


def test_lines_that_are_no_records_are_refused(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = folder(tmp_path / "o", record(0))
    with (out / "records.jsonl").open("a") as stream:
        stream.write("{}\n")
    assert produce(out) == 2
    assert "line 2" in capsys.readouterr().err
    assert lines_of(out / "records.jsonl")[1] == {}


NOT_YET = (
    KafkaError(KafkaError.NOT_COORDINATOR),
    KafkaError(KafkaError.COORDINATOR_LOAD_IN_PROGRESS),
    KafkaError(KafkaError.COORDINATOR_NOT_AVAILABLE),
    KafkaError(KafkaError._WAIT_COORD),
    KafkaError(KafkaError.TIMED_OUT, may_retry=True),
)
CALLS = (
    "init_transactions", "committed", "committed, of the partition",
    "send_offsets_to_transaction", "commit_transaction",
)  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
def test_a_coordinator_that_is_not_ready_is_asked_again(
    tmp_path: Path, cluster: Cluster, call: str
) -> None:
    """A new cluster's coordinators are chosen and loaded while the first records go out."""
    cluster.answers_first[call] = list(NOT_YET)
    out = folder(tmp_path / "out", *(record(number) for number in range(TOTAL)))
    assert produce(out) == 0
    assert not cluster.answers_first[call]
    assert values(cluster) == ALL


@pytest.mark.parametrize("call", CALLS)
def test_a_coordinator_that_refuses_is_not_asked_again(
    tmp_path: Path, cluster: Cluster, call: str
) -> None:
    refusal = KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED)
    cluster.answers_first[call] = [refusal, *NOT_YET]
    out = folder(tmp_path / "out", *(record(number) for number in range(TOTAL)))
    assert produce(out) != 0
    assert len(cluster.answers_first[call]) == len(NOT_YET)
