"""Transactions that a loss left hanging, half known or half there: made logs of coordinators."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from replication.cli import main
from replication.evidence.importer import import_evidence
from replication.protocol.judgement.bounded import fold_all
from replication.recovery.groups.affected_transactions import affected_transactions
from replication.recovery.groups.transaction_state import STATUS
from replication.recovery.groups.transactions_in_logs import InLog
from tests.evidence.segment_bytes import CREATED, TRANSACTIONAL, Record, batch
from tests.recovery.groups.coordinator_bytes import beside, log, marker, record, with_leader
from tests.recovery.lost_evidence import FIRST_LOST, lost_evidence, partition, row

STATE = "__transaction_state"
SCHEMA = json.loads((Path(__file__).parents[3] / "docs" / "answer.schema.json").read_text())
BEFORE = batch(0, *(Record(b"before") for _ in range(3)))


def state(
    status: str, name: str = "x", producer: int = 7, epoch_of: int = 0, at: int = 1,
    partitions: tuple[tuple[str, int], ...] = (("t", 0),),
) -> Record:  # fmt: skip
    """A record of the transaction coordinator."""
    value = {
        "producerId": producer, "producerEpoch": epoch_of, "transactionTimeoutMs": 60_000,
        "transactionStatus": STATUS.index(status), "transactionLastUpdateTimestampMs": at,
        "transactionPartitions": [{"topic": t, "partitionIds": [n]} for t, n in partitions],
        "transactionStartTimestampMs": 1,
    }  # fmt: skip
    return record("TransactionLog", {"transactionalId": name}, value, 1)


def sent(offset: int, count: int = 2, producer: int = 7, leader_epoch: int = 0) -> bytes:
    """Records of a transaction."""
    records = [Record(b"v", key=b"k") for _ in range(count)]
    told = (producer, 0, 0)
    return batch(
        offset, *records, flags=TRANSACTIONAL, producer=told, leader_epoch=leader_epoch
    )  # fmt: skip


def evidence_of(
    folder: Path, coordinator: dict[int, bytes], *, lost: bytes, others: bytes, end: int
) -> Path:
    """t-0 as broker 1 had it (lost) and as broker 2 has it, who leads everything."""
    evidence = lost_evidence(folder, lost, end, others=others, acks="", before=BEFORE)
    beside(evidence, coordinator, STATE)
    return with_leader(evidence, 2, [STATE])


def found(evidence: Path, *losses: dict[str, Any]) -> list[dict[str, Any]]:
    imported = import_evidence([evidence])
    return affected_transactions(imported, fold_all(imported.events()), list(losses))


def told(rows: list[dict[str, Any]], *names: str) -> list[tuple[Any, ...]]:
    return [tuple(r[name] for name in names) for r in rows]


def test_an_open_transaction_hangs_unless_its_coordinator_is_to_end_it(tmp_path: Path) -> None:
    """One id in each state, each with an open transaction of its own."""
    names = {status: (f"id-{n}", 10 + n, 3 + 2 * n) for n, status in enumerate(STATUS)}
    known = log(
        *(state("ongoing", name, producer) for name, producer, _ in names.values()),
        *(state(status, name, producer, at=2) for status, (name, producer, _) in names.items()),
    )
    others = b"".join(sent(offset, producer=producer) for _, producer, offset in names.values())
    evidence = evidence_of(tmp_path, {1: known, 2: known}, lost=b"", others=others, end=19)
    rows = found(evidence)
    ended = ("empty", "complete_commit", "complete_abort", "dead")
    expected = [(*names[status][:2], status, names[status][2]) for status in ended]
    told_of = ("transactional_id", "producer_id", "coordinator_status", "first_offset")
    assert sorted(told(rows, *told_of)) == sorted(expected)
    names_of = ("kind", "topic", "partition", "records", "certain")
    assert set(told(rows, *names_of)) == {("hanging", "t", 0, 2, True)}
    assert all(r["end_offset"] == r["first_offset"] + 2 for r in rows)


def test_who_is_not_in_the_coordinators_log_hangs_perhaps(tmp_path: Path) -> None:
    """Neither the producer's id nor the partition is known there, or its epoch is newer."""
    known = log(state("ongoing", producer=8), state("ongoing", "y", partitions=(("u", 0),)))
    evidence = evidence_of(tmp_path, {1: known, 2: known}, lost=b"", others=sent(3), end=5)
    assert told(found(evidence), "transactional_id", "certain") == [("y", True)]
    other = log(state("ongoing", producer=8))
    evidence = evidence_of(tmp_path / "b", {1: other, 2: other}, lost=b"", others=sent(3), end=5)
    assert told(found(evidence), "transactional_id", "certain") == [(None, False)]


def test_of_running_brokers_a_transaction_hangs_once_it_is_overdue(tmp_path: Path) -> None:
    """Until then the coordinator's copy may just be newer than that of the partition."""

    def running(name: str, at: int) -> list[dict[str, Any]]:
        known = log(state("complete_commit"), state("empty", "other", producer=8, at=at))
        evidence = evidence_of(
            tmp_path / name, {1: known, 2: known}, lost=b"", others=sent(3), end=5
        )  # fmt: skip
        for mark in evidence.rglob(".kafka_cleanshutdown"):
            mark.unlink()
        return found(evidence)

    assert running("young", CREATED + 60_000) == []
    assert told(running("old", CREATED + 60_001), "kind", "certain") == [("hanging", False)]


def test_a_transaction_that_ended_does_not_hang(tmp_path: Path) -> None:
    known = log(state("complete_commit"))
    ended = sent(3) + marker(5, 7, commits=True)
    evidence = evidence_of(tmp_path, {1: known, 2: known}, lost=b"", others=ended, end=6)
    assert found(evidence) == []


def test_a_coordinator_that_goes_on_from_an_older_record(tmp_path: Path) -> None:
    older, newer = state("ongoing"), state("complete_commit", at=2)
    logs = {1: log(older, newer), 2: log(older)}
    evidence = evidence_of(tmp_path, logs, lost=b"", others=b"", end=3)
    rows = found(evidence)
    names = ("kind", "transactional_id", "coordinator_status", "lost_coordinator_status", "also_in")
    assert told(rows, *names) == [
        ("coordinator_forgot", "x", "ongoing", "complete_commit", ["t-0"])
    ]
    since = {1: log(older, newer), 2: log(older) + log(state("empty", epoch_of=1, at=3), first=1,
                                                       leader_epoch=1)}  # fmt: skip
    assert found(evidence_of(tmp_path / "b", since, lost=b"", others=b"", end=3)) == []
    gone = {1: log(newer), 2: b""}
    rows = found(evidence_of(tmp_path / "c", gone, lost=b"", others=b"", end=3))
    assert told(rows, *names)[0][:4] == ("coordinator_forgot", "x", None, "complete_commit")


def test_records_lost_in_one_partition_and_committed_in_another(tmp_path: Path) -> None:
    both = log(state("complete_commit", partitions=(("t", 0), ("u", 0))))
    lost = sent(3) + marker(5, 7, commits=True)
    evidence = evidence_of(tmp_path, {1: both, 2: both}, lost=lost, others=b"", end=6)
    for broker in (1, 2):
        partition(evidence / f"broker-{broker}", sent(0) + marker(2, 7, commits=True), [(0, 0)],
                  "u-0")  # fmt: skip
    with_leader(evidence, 2, ["u"])
    rows = found(evidence, row(6))
    names = ("kind", "topic", "first_offset", "end_offset", "also_in", "certain")
    assert told(rows, *names) == [("lost_in_part", "t", 3, 5, ["u-0"], False)]
    assert found(evidence, row(9, first=6)) == []


def test_transactions_of_one_producer_are_told_apart_by_their_times() -> None:
    def part(began: int | None, ended: int | None) -> InLog:
        return InLog(1, 0, 0, 1, 1, began, Path("x"), 0, "committed", ended)

    assert part(10, 20).is_at_one_time_with(part(15, 21))
    assert part(10, None).is_at_one_time_with(part(15, 21))
    assert not part(10, 20).is_at_one_time_with(part(21, 30))
    assert not part(21, 30).is_at_one_time_with(part(10, 20))
    assert not part(None, 30).is_at_one_time_with(part(10, 20))
    assert CREATED > 0


def test_answer_and_words_of_a_hanging_transaction(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A loss of acknowledged records, and a marker that went with them."""
    known = log(state("complete_commit", "\x1b[2Jx"))
    lost = batch(3, Record(b"v", key=b"k")) + sent(4) + marker(6, 7, commits=True)
    others = sent(3, leader_epoch=1)
    evidence = lost_evidence(tmp_path / "e", lost, FIRST_LOST + 1, others=others, before=BEFORE)
    with_leader(beside(evidence, {1: known, 2: known}, STATE), 2, [STATE])
    page = tmp_path / "page.html"
    assert main(["diagnose", str(evidence), "--format", "json", "--report", str(page)]) in (1, 3)
    answer = json.loads(capsys.readouterr().out)
    jsonschema.validate(answer, SCHEMA)
    kept = SCHEMA["properties"]["affected_transactions"]["items"]["properties"]
    rows = answer["affected_transactions"]
    assert [r.keys() for r in rows] == [kept.keys()]
    assert "Transactions that were hurt" in page.read_text()
    assert main(["diagnose", str(evidence)]) in (1, 3)
    assert "HURT  1 transaction:" in capsys.readouterr().out
    assert main(["groups", str(evidence)]) == 1
    said = capsys.readouterr().out
    assert "abort --topic t --partition 0 --start-offset 3 ends it" in said
    assert "\x1b" not in said
    out = tmp_path / "out"
    assert main(["recover", str(evidence), "--out", str(out)]) in (0, 1, 3)
    [line] = (out / "affected_transactions.jsonl").read_text().splitlines()
    assert json.loads(line)["kind"] == "hanging"
