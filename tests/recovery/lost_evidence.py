"""Evidence of a loss, written byte by byte: broker 1 had the records, broker 2 leads without.

Broker 1's log was copied; then broker 2, which had none of them, was elected and wrote others at
their offsets. Producers were told all of broker 1's.
"""

import json
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from replication.evidence.importer import import_evidence
from replication.protocol.judgement.bounded import fold_all
from replication.recovery.command import recover
from replication.recovery.folder import prepared
from replication.recovery.gathering import Recovery
from tests.evidence.segment_bytes import Record, batch

CLUSTER = "AAAAAAAAAAAAAAAAAAAAAA"
TOPIC_ID = "BBBBBBBBBBBBBBBBBBBBBA"
# What both brokers have from before: offsets 0 to 2.
BEFORE = batch(0, *(Record(b"before", key=b"before-%d" % n) for n in range(3)))
FIRST_LOST = 3


def partition(
    folder: Path, segment: bytes, entries: Sequence[tuple[int, int]], name: str = "t-0"
) -> Path:
    """A partition's folder with one segment and its leader epochs."""
    made = folder / name
    made.mkdir(parents=True, exist_ok=True)
    (made / f"{0:020d}.log").write_bytes(segment)
    lines = "".join(f"{leader_epoch} {start}\n" for leader_epoch, start in entries)
    (made / "leader-epoch-checkpoint").write_text(f"0\n{len(entries)}\n{lines}")
    (made / "partition.metadata").write_text(f"version: 0\ntopic_id: {TOPIC_ID}")
    return made


def log_directory(folder: Path, broker: int) -> Path:
    """The log directory of a broker that was stopped cleanly."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "meta.properties").write_text(
        f"version=1\nnode.id={broker}\ncluster.id={CLUSTER}\ndirectory.id=DDDDDDDDDDDDDDDDDDDDD{broker}\n"
    )
    (folder / ".kafka_cleanshutdown").write_text(json.dumps({"version": 0, "brokerEpoch": 9}))
    return folder


def acknowledged(offsets: Iterable[int | None], **more: Any) -> str:
    """A producer's log that tells offsets."""
    lines = []
    for offset in offsets:
        told = {
            "ts": "2026-01-01T00:00:00.000Z", "client": "p", "topic": "t", "partition": 0,
            "offset": offset, "acks": "all", "status": "acked", **more,
        }  # fmt: skip
        lines.append(json.dumps(told) + "\n")
    return "".join(lines)


def lost_evidence(
    folder: Path,
    lost: bytes,
    end: int,
    *,
    acks: str | None = None,
    others: bytes = b"",
    before: bytes = BEFORE,
) -> Path:
    """lost: broker 1's batches of leader epoch 0 from FIRST_LOST on, up to end (exclusive). others:
    what broker 2 has there."""
    partition(log_directory(folder / "broker-1", 1), before + lost, [(0, 0)])
    entries = [(0, 0), (1, FIRST_LOST)] if others else [(0, 0)]
    partition(log_directory(folder / "broker-2", 2), before + others, entries)
    told = acknowledged(range(FIRST_LOST, end)) if acks is None else acks
    (folder / "acks.jsonl").write_text(told)
    (folder / "describe.txt").write_text(
        f"Topic: t\tTopicId: {TOPIC_ID}\tPartitionCount: 1\tReplicationFactor: 2\tConfigs: "
        "min.insync.replicas=1,unclean.leader.election.enable=true,cleanup.policy=delete\n"
        "\tTopic: t\tPartition: 0\tLeader: 2\tReplicas: 1,2\tIsr: 2\n"
    )
    return folder


def row(end: int, first: int = FIRST_LOST, **more: Any) -> dict[str, Any]:
    """A row of the loss ledger: offsets [first, end) of leader epoch 0, acknowledged and lost."""
    return {
        "cluster_id": CLUSTER, "topic": "t", "topic_id": TOPIC_ID, "partition": 0,
        "first_offset": first, "end_offset": end, "leader_epoch": 0, "status": "lost",
        "tier": "acknowledged_by_isr", "finding_id": "f", "acknowledged_from": None,
        "acknowledged_until": None, "next_leader_epoch": 1, "cause": "unclean_election",
        "causes": [], **more,
    }  # fmt: skip


def recover_rows(evidence: Path, folder: Path, *rows: dict[str, Any]) -> Recovery:
    """`recover` of these rows, whatever a judge would say of the evidence."""
    began = time.time_ns()
    imported = import_evidence([evidence])
    folded = fold_all(imported.events())
    answer = {"losses": list(rows), "verdicts": []}
    return recover(imported, folded, answer, prepared(folder, [evidence]), began)


def lines_of(path: Path) -> list[dict[str, Any]]:
    """The rows of a file of JSON Lines."""
    return [json.loads(line) for line in path.read_text().splitlines()]
