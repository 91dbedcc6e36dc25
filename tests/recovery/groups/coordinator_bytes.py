"""Records of the coordinators' topics, and their logs beside evidence of a loss."""

import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.evidence.messages.writing import kept, message
from tests.evidence.segment_bytes import CONTROL, TRANSACTIONAL, Record, batch
from tests.recovery.lost_evidence import partition

OFFSETS = "__consumer_offsets"
AT = 1_767_225_600_000


def record(
    kind: str, key: dict[str, Any], value: dict[str, Any] | None, version: int = 0
) -> Record:
    """A coordinator's record. value: None for a tombstone."""
    layout = kept(f"{kind}Key")
    name = struct.pack(">h", layout["apiKey"]) + message(f"{kind}Key", 0, key)
    if value is None:
        return Record(None, key=name)
    content = struct.pack(">h", version) + message(f"{kind}Value", version, value)
    return Record(content, key=name)


def commit(
    offset: int | None,
    leader_epoch: int | None = 0,
    group: str = "g",
    topic: str = "t",
    number: int = 0,
) -> Record:
    """A committed offset; offset None: it was deleted. leader_epoch None: of an old coordinator."""
    key = {"group": group, "topic": topic, "partition": number}
    if offset is None:
        return record("OffsetCommit", key, None)
    told = {"offset": offset, "metadata": "", "commitTimestamp": AT, "expireTimestamp": AT}
    if leader_epoch is None:
        return record("OffsetCommit", key, told, 1)
    return record("OffsetCommit", key, {**told, "leaderEpoch": leader_epoch}, 3)


def log(*records: Record, first: int = 0, leader_epoch: int = 0) -> bytes:
    """Each record in a batch of its own."""
    return b"".join(
        batch(first + n, one, leader_epoch=leader_epoch) for n, one in enumerate(records)
    )


def in_transaction(offset: int, one: Record, producer: int) -> bytes:
    """A batch of a transaction."""
    return batch(offset, one, flags=TRANSACTIONAL, producer=(producer, 0, 0))


def marker(offset: int, producer: int, *, commits: bool, leader_epoch: int = 0) -> bytes:
    """The end of a transaction."""
    one = Record(b"\0\0\0\0\0\0", key=struct.pack(">hh", 0, int(commits)))
    told = (producer, 0, -1)
    return batch(
        offset, one, flags=CONTROL | TRANSACTIONAL, producer=told, leader_epoch=leader_epoch
    )


def beside(
    evidence: Path, logs: dict[int, bytes], topic: str = OFFSETS, topic_id: str = "O" * 21 + "A"
) -> Path:
    """The coordinator's log in the log directories of brokers."""
    for broker, segment in logs.items():
        made = partition(evidence / f"broker-{broker}", segment, [(0, 0)], f"{topic}-0")
        (made / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}")
    return evidence


def with_leader(evidence: Path, leader: int, topics: Iterable[str] = (OFFSETS,)) -> Path:
    """kafka-topics names who leads them."""
    with (evidence / "describe.txt").open("a") as stream:
        for topic in topics:
            stream.write(
                f"Topic: {topic}\tPartitionCount: 1\tReplicationFactor: 2\tConfigs: "
                "min.insync.replicas=1,cleanup.policy=compact\n"
                f"\tTopic: {topic}\tPartition: 0\tLeader: {leader}\tReplicas: 1,2\tIsr: {leader}\n"
            )
    return evidence
