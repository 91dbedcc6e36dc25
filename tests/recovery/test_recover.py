"""Where lost records are looked for, which of several is the lost one, and what is refused."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from replication.cli import main
from replication.evidence.log_directories import record_payloads
from replication.recovery import gathering
from replication.recovery.command import summary_text, worse
from replication.recovery.finding import COMPACTED, NO_COPY, NOT_IN_BATCH, OTHERS
from replication.recovery.folder import NotUsable
from tests.changed_evidence import each_incident
from tests.evidence.segment_bytes import TRANSACTIONAL, Record, batch
from tests.recovery.lost_evidence import (
    BEFORE,
    FIRST_LOST,
    acknowledged,
    lines_of,
    log_directory,
    lost_evidence,
    partition,
    recover_rows,
    row,
)
from tests.recovery.test_matrix import marker

INCIDENTS = Path(__file__).parents[1] / "incidents"
ASIDE = "t-0.0123456789abcdef0123456789abcdef-"


def two(prefix: bytes = b"v", leader_epoch: int = 0, first: int = FIRST_LOST) -> bytes:
    records = (Record(prefix + b"%d" % n, key=b"k%d" % n) for n in range(2))
    return batch(first, *records, leader_epoch=leader_epoch)


def had(folder: Path) -> list[tuple[int, str, str | None]]:
    rows = lines_of(folder / "records.jsonl")
    return [(r["offset"], r["value"], r["held_back"]) for r in rows]


def not_had(folder: Path) -> list[tuple[int, int, str]]:
    rows = lines_of(folder / "not_recovered.jsonl")
    return [(r["first_offset"], r["end_offset"], r["why"]) for r in rows]


@pytest.mark.parametrize("kind", ["replica", "delete", "stray", "future"])
def test_every_directory_is_looked_into(kind: str, tmp_path: Path) -> None:
    evidence, out = lost_evidence(tmp_path / "e", b"", FIRST_LOST), tmp_path / "out"
    name = "t-0" if kind == "replica" else ASIDE + kind
    older = log_directory(tmp_path / "e" / "older", 1)
    partition(older, BEFORE + two(), [(0, 0)], name)
    recover_rows(evidence, out, row(5))
    assert had(out) == [(3, "v0", None), (4, "v1", None)]
    told = {"replica": "replica", "delete": "deleted"}.get(kind, kind)
    rows = lines_of(out / "records.jsonl")
    assert {(r["source_kind"], r["source_broker"], r["copies"]) for r in rows} == {(told, 1, 1)}
    assert rows[0]["source_file"].endswith(f"older/{name}/{0:020d}.log")
    assert rows[0]["source_position"] == len(BEFORE)


def dump(*records: str, leader_epoch: int = 0, count: int = 2) -> str:
    return (
        f"Dumping /data/t-0/{FIRST_LOST:020d}.log\nLog starting offset: {FIRST_LOST}\n"
        f"baseOffset: {FIRST_LOST} lastOffset: {FIRST_LOST + count - 1} count: {count} "
        "baseSequence: -1 lastSequence: -1 producerId: -1 producerEpoch: -1 "
        f"partitionLeaderEpoch: {leader_epoch} isTransactional: false isControl: false "
        "deleteHorizonMs: OptionalLong.empty position: 0 CreateTime: 5 size: 90 magic: 2 "
        "compresscodec: none crc: 7 isvalid: true\n" + "".join(records)
    )


def printed(offset: int, value: str | None, size: int | None = None, headers: str = "") -> str:
    told = -1 if value is None else len(value.encode()) if size is None else size
    payload = "" if value is None else f" payload: {value}"
    return (
        f"| offset: {offset} CreateTime: 1700000000000 keySize: 1 valueSize: {told} sequence: -1 "
        f"headerKeys: [{headers}] key: k{payload}\n"
    )


@pytest.mark.parametrize(
    ("value", "size", "headers", "held_back"),
    [
        ("plain", None, "", None),
        ("two\nlines\n\nand | offset: x", None, "", None),
        ("Starting offset: 3\nmore", None, "", None),
        (None, None, "", None),
        ("", None, "", None),
        ("größe", None, "", None),
        ("gr\ufffd\ufffdsse", 7, "", "incomplete"),
        ("gr?sse", 6, "", "incomplete"),
        ("cut", 5, "", "incomplete"),
        ("plain", None, "trace-id", "incomplete"),
    ],
)
def test_a_dump_gives_the_records_whose_bytes_it_shows(
    value: str | None, size: int | None, headers: str, held_back: str | None, tmp_path: Path
) -> None:
    """Beside the directory of the same broker, from which it was cut by then."""
    evidence, out = lost_evidence(tmp_path / "e", b"", FIRST_LOST), tmp_path / "out"
    (evidence / "broker-1" / "dump.txt").write_text(
        dump(printed(3, value, size, headers), printed(4, "last")) + "\nMismatches in :x\n"
    )
    recover_rows(evidence, out, row(5))
    assert had(out) == [(3, value, held_back), (4, "last", None)]
    assert {r["source_kind"] for r in lines_of(out / "records.jsonl")} == {"dump"}


def test_a_dump_without_payloads_gives_none(tmp_path: Path) -> None:
    evidence, out = lost_evidence(tmp_path / "e", b"", FIRST_LOST), tmp_path / "out"
    (evidence / "broker-1" / "dump.txt").write_text(dump())
    recover_rows(evidence, out, row(5))
    assert (had(out), not_had(out)) == (
        [],
        [(3, 5, "a dump without --print-data-log shows no record's bytes")],
    )


def test_a_record_that_was_consumed_keeps_its_acks(tmp_path: Path) -> None:
    """Of all lost records, not the first few: the tier names the strongest promise alone."""
    lost = batch(FIRST_LOST, *(Record(b"v%d" % n, key=b"k%d" % n) for n in range(40)))
    end = FIRST_LOST + 40
    told = acknowledged(range(3, 23)) + acknowledged(range(23, end), acks="1", client="q")
    evidence, out = lost_evidence(tmp_path / "e", lost, end, acks=told), tmp_path / "out"
    line = {"ts": "2026-01-01T00:00:01.000Z", "client": "c", "topic": "t", "partition": 0}
    given = (json.dumps({**line, "offset": offset}) + "\n" for offset in range(3, end))
    (evidence / "consumed.jsonl").write_text("".join(given))
    recover_rows(evidence, out, row(end, tier="consumed"))
    keys = lines_of(out / "lost_records_keys.jsonl")
    assert [(k["client"], k["key"], k["offset"], k["acks"]) for k in keys] == [
        ("p" if n < 20 else "q", f"k{n}", 3 + n, "all" if n < 20 else "1") for n in range(40)
    ]
    assert {(k["tier"], k["consumed_by"], k["acknowledged_at"]) for k in keys} == {
        ("consumed", "c", "2026-01-01T00:00:00.000Z")
    }


def test_what_the_leader_has_in_the_same_epoch_is_not_what_was_lost(tmp_path: Path) -> None:
    """A leader that lost its tail wrote on in its epoch: two records of one offset and epoch."""
    evidence = lost_evidence(tmp_path / "e", two(b"lost"), 5, others=two(b"present"))
    recover_rows(evidence, tmp_path / "out", row(5))
    assert had(tmp_path / "out") == [(3, "lost0", None), (4, "lost1", None)]


def test_of_several_that_may_be_the_lost_one_all_are_held_back(tmp_path: Path) -> None:
    evidence, out = lost_evidence(tmp_path / "e", two(b"one"), 5), tmp_path / "out"
    partition(log_directory(evidence / "older", 3), BEFORE + two(b"two"), [(0, 0)])
    result = recover_rows(evidence, out, row(5))
    held = "one_of_several"
    assert had(out) == [(3, "one0", held), (3, "two0", held), (4, "one1", held), (4, "two1", held)]
    assert (result.became["held_back"], result.why_held_back[held]) == (2, 4)
    assert not any(r["certain"] for r in lines_of(out / "lost_records_keys.jsonl"))


def test_the_record_that_a_client_names_is_the_lost_one(tmp_path: Path) -> None:
    told = "".join(acknowledged([3 + n], payload_id=f"two{n}") for n in range(2))
    evidence = lost_evidence(tmp_path / "e", two(b"one"), 5, acks=told)
    partition(log_directory(evidence / "older", 3), BEFORE + two(b"two"), [(0, 0)])
    recover_rows(evidence, tmp_path / "out", row(5))
    assert had(tmp_path / "out") == [(3, "two0", None), (4, "two1", None)]


def test_copies_of_one_record_are_one_however_they_are_batched(tmp_path: Path) -> None:
    evidence, out = lost_evidence(tmp_path / "e", two(), 5), tmp_path / "out"
    singly = b"".join(batch(3 + n, Record(b"v%d" % n, key=b"k%d" % n)) for n in range(2))
    partition(log_directory(evidence / "older", 3), BEFORE + singly, [(0, 0)])
    recover_rows(evidence, out, row(5))
    assert had(out) == [(3, "v0", None), (4, "v1", None)]
    assert {r["copies"] for r in lines_of(out / "records.jsonl")} == {2}


def test_records_of_other_epochs_and_offsets_stay_out(tmp_path: Path) -> None:
    evidence = lost_evidence(tmp_path / "e", two() + two(b"w", 1, 5), 9)
    rows = row(5, first=4), row(9, first=6, leader_epoch=1)
    result = recover_rows(evidence, tmp_path / "out", *rows)
    asked = "Without a key, 2 lost records: the acknowledgement log names no keys; ask client p"
    assert asked in summary_text(result, {"verdicts": [], "partitions": []}, tmp_path)
    assert had(tmp_path / "out") == [(4, "v1", None), (6, "w1", None)]
    assert not_had(tmp_path / "out") == [(7, 9, NO_COPY)]


def test_a_row_past_every_offset_takes_no_time(tmp_path: Path) -> None:
    evidence = lost_evidence(tmp_path / "e", two(), 5)
    result = recover_rows(evidence, tmp_path / "out", row(1 << 62))
    assert (result.became["recovered"], result.became["not_had"]) == (2, (1 << 62) - 5)


def test_a_damaged_batch_is_said_and_another_copy_helps(tmp_path: Path) -> None:
    broken = bytearray(two())
    broken[-3] ^= 1
    evidence = lost_evidence(tmp_path / "e", bytes(broken) + two(b"w", first=5), 7)
    recover_rows(evidence, tmp_path / "alone", row(7))
    assert had(tmp_path / "alone") == [(5, "w0", None), (6, "w1", None)]
    [(first, end, why)] = not_had(tmp_path / "alone")
    assert (first, end) == (3, 5)
    assert "cannot be read" in why
    partition(log_directory(evidence / "older", 3), BEFORE + two(), [(0, 0)])
    recover_rows(evidence, tmp_path / "both", row(7))
    assert [h[0] for h in had(tmp_path / "both")] == [3, 4, 5, 6]


@pytest.mark.parametrize("shorter", [False, True])
def test_evidence_that_changes_while_it_is_read_is_refused(
    shorter: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other records in the lost ones' place, which fit their own check sums; or none any more."""
    evidence, out = lost_evidence(tmp_path / "e", two() + two(b"w", first=5), 7), tmp_path / "out"
    segment = evidence / "broker-1" / "t-0" / f"{0:020d}.log"
    joined = gathering.finished

    def changed(partition: Any) -> Any:
        result = joined(partition)
        segment.write_bytes(BEFORE + two(b"x") + (b"" if shorter else two(b"y", first=5)))
        return result

    monkeypatch.setattr(gathering, "finished", changed)
    with pytest.raises(NotUsable, match="changed while it was read"):
        recover_rows(evidence, out, row(7))
    assert list(out.iterdir()) == []


def test_a_batch_that_memory_does_not_hold_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_payloads, "LARGEST_BATCH", 1000)
    large = batch(FIRST_LOST, Record(b"x" * 2000))
    evidence, out = lost_evidence(tmp_path / "e", large + two(first=4), 6), tmp_path / "out"
    recover_rows(evidence, out, row(6))
    assert [h[0] for h in had(out)] == [4, 5]
    [(first, end, why)] = not_had(out)
    assert (first, end) == (3, 4)
    assert "was not unpacked" in why


@pytest.mark.parametrize("out", ["", "inside", "inside/deeper"])
def test_the_evidence_is_not_written_to(
    out: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evidence = lost_evidence(tmp_path / "e", two(), 5)
    before = sorted(evidence.rglob("*"))
    assert main(["recover", str(evidence), "--out", str(evidence / out)]) == 2
    assert "Name a folder elsewhere" in capsys.readouterr().err
    assert main(["recover", str(evidence), "--out", str(tmp_path)]) == 2
    assert sorted(evidence.rglob("*")) == before


def test_a_folder_that_is_not_empty_or_cannot_be_made_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evidence = lost_evidence(tmp_path / "e", two(), 5)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("x")
    assert main(["recover", str(evidence), "--out", str(tmp_path / "full")]) == 2
    assert main(["recover", str(evidence), "--out", str(tmp_path / "full" / "mine")]) == 2
    os.symlink(evidence, tmp_path / "link")
    assert main(["recover", str(evidence), "--out", str(tmp_path / "link")]) == 2
    assert capsys.readouterr().err.count("recover: --out") == 3
    assert (tmp_path / "full" / "mine").read_text() == "x"


def test_a_folder_of_a_call_that_found_nothing_is_taken_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call = ["recover", str(INCIDENTS / "healthy_rolling_restart__4.3.0"), "--out", str(tmp_path)]
    assert main(call) == main(call) == 0
    assert capsys.readouterr().out.count("there is nothing to recover") == 2
    (tmp_path / "mine").write_text("x")
    assert main(call) == 2
    assert (tmp_path / "mine").read_text() == "x"


HOSTILE = "../../x\x1b[31m"


def test_a_hostile_topic_leads_nowhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Directories cannot have such a name; a clients' log and a dump can."""
    evidence = lost_evidence(tmp_path / "a" / "b" / "e", two(), 5)
    told = json.loads(acknowledged([7]))
    with (evidence / "acks.jsonl").open("a") as stream:
        stream.write(json.dumps({**told, "topic": HOSTILE, "client": "\x1b]0;c\x07"}) + "\n")
    (evidence / "dump.txt").write_text(dump(printed(3, "x")).replace("/data/t-0", "/../../x-0"))
    out = tmp_path / "a" / "b" / "out"
    status = main(["recover", str(evidence), "--out", str(out), "--kafka", "4.1.1"])
    assert status in (0, 1, 3)
    recover_rows(evidence, tmp_path / "a" / "b" / "two", row(9, topic=HOSTILE, topic_id=None))
    said = capsys.readouterr()
    assert "\x1b" not in said.out + said.err
    written = {p.name for p in out.iterdir()}
    assert written == {
        "records.jsonl", "records.parquet", "lost_records_keys.jsonl", "lost_records_keys.parquet",
        "not_recovered.jsonl", "summary.json", "affected_groups.jsonl", "affected_groups.parquet",
        "affected_transactions.jsonl", "affected_transactions.parquet",
        "sent_never_promised.jsonl", "sent_never_promised.parquet",
    }  # fmt: skip
    assert {p.name for p in tmp_path.iterdir()} == {"a"}
    assert {p.name for p in (tmp_path / "a").iterdir()} == {"b"}
    for path in tmp_path.rglob("*.json*"):
        if path.parent.name in ("out", "two"):
            assert b"\x1b" not in path.read_bytes()


def test_a_captured_loss_comes_back_whole(tmp_path: Path) -> None:
    """The unclean election of a real cluster: what clients were told and nobody has any more."""
    evidence, out = INCIDENTS / "unclean_election__4.1.1", tmp_path / "out"
    assert main(["recover", str(evidence), "--out", str(out)]) == 0
    acked = {a["payload_id"]: a for a in lines_of(evidence / "acks.jsonl")}
    expected = [(o, f"p0-{o:06d}", json.dumps({"id": f"p0-{o:06d}"})) for o in range(20, 30)]
    rows = lines_of(out / "records.jsonl")
    assert [(r["offset"], r["key"], r["value"]) for r in rows] == expected
    assert {r["acks"] for r in rows} == {"all"}
    keys = lines_of(out / "lost_records_keys.jsonl")
    assert [(k["payload_id"], k["client"], k["acks"], k["certain"]) for k in keys] == [
        (key, acked[key]["client"], "all", True) for _, key, _ in expected
    ]
    summary = json.loads((out / "summary.json").read_text())
    assert summary["groups_hurt"] is None
    assert any("which consumer groups were hurt is not known" in n for n in summary["notes"])


def test_what_went_with_a_deleted_topic_is_taken_where_it_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the clients' log of the first life, against the bytes in its folders."""
    evidence = INCIDENTS / "not_loss_traps__4.3.0__topic_recreated"
    assert main(["recover", str(evidence), "--out", str(tmp_path / "without")]) == 0
    assert "--deleted-topics takes them" in capsys.readouterr().out
    assert lines_of(tmp_path / "without" / "records.jsonl") == []
    out = tmp_path / "out"
    assert main(["recover", str(evidence), "--out", str(out), "--deleted-topics"]) == 0
    old = "vtpakRnaS-GLWtebB6vJfw"
    acked = [a for a in lines_of(evidence / "acks.jsonl") if a["topic_id"] == old]
    rows = lines_of(out / "records.jsonl")
    assert [(r["offset"], r["key"]) for r in rows] == [
        (a["offset"], a["payload_id"]) for a in acked
    ]
    told = {(r["topic_id"], r["tier"], r["status"], r["held_back"]) for r in rows}
    assert told == {(old, "acknowledged_by_isr", "topic_deleted", None)}
    summary = json.loads((out / "summary.json").read_text())
    assert summary["deleted_topics"]["recovered"] == summary["offsets"]["recovered"] == len(acked)
    assert "These records are missing if" not in capsys.readouterr().out


@pytest.mark.parametrize("incident", each_incident(("same_epoch_power_loss__1.1.1",)))
def test_of_every_capture_the_acknowledged_records_come_back_or_are_nowhere(
    incident: str, tmp_path: Path
) -> None:
    """What producers were told is held against the bytes of all files: no record that they hold
    is missing, none has another's bytes."""
    evidence, out = INCIDENTS / incident, tmp_path / "out"
    assert main(["recover", str(evidence), "--out", str(out)]) in (0, 1)
    files = [p.read_bytes() for p in evidence.rglob("*.log") if p.stem.isdigit()]
    records = {
        (r["topic"], r["partition"], r["offset"]): r for r in lines_of(out / "records.jsonl")
    }
    for key in lines_of(out / "lost_records_keys.jsonl"):
        if key["payload_id"] is None or not key["certain"]:
            continue
        name = key["payload_id"].encode()
        if key["became"] == "not_had":
            assert not any(name in content for content in files), key
        else:
            record = records[key["topic"], key["partition"], key["offset"]]
            assert (record["key"], record["leader_epoch"]) == (
                key["payload_id"],
                key["leader_epoch"] if key["leader_epoch"] is not None else record["leader_epoch"],
            )


def test_what_a_later_leader_wrote_is_not_what_its_election_lost(tmp_path: Path) -> None:
    """Nothing tells the leader epoch of what was lost, but that it was lost by an election."""
    later = batch(FIRST_LOST, Record(b"later0"), Record(b"later1"), leader_epoch=1)
    evidence, out = lost_evidence(tmp_path / "e", later, 5), tmp_path / "out"
    recover_rows(evidence, out, row(5, leader_epoch=None, next_leader_epoch=1))
    assert had(out) == []


def test_a_segment_that_the_broker_set_aside_is_read(tmp_path: Path) -> None:
    evidence, out = lost_evidence(tmp_path / "e", b"", 5), tmp_path / "out"
    (evidence / "broker-1/t-0/00000000000000000003.log.deleted").write_bytes(two(b"lost"))
    recover_rows(evidence, out, row(5))
    assert had(out) == [(3, "lost0", None), (4, "lost1", None)]
    assert {r["source_kind"] for r in lines_of(out / "records.jsonl")} == {"set_aside"}


def test_of_answers_at_one_offset_that_of_the_ledgers_time_is_the_records(tmp_path: Path) -> None:
    times = ("2026-01-01T00:00:00.000Z", "2026-01-01T00:00:09.000Z")
    acks = "".join(acknowledged([3], ts=ts, client=f"at {ts[17:19]}") for ts in times)
    evidence, out = lost_evidence(tmp_path / "e", two(b"lost"), 5, acks=acks), tmp_path / "out"
    when = {"acknowledged_from": times[0], "acknowledged_until": times[0]}
    recover_rows(evidence, out, row(4, leader_epoch=None, tier="committed", **when))
    keys = lines_of(out / "lost_records_keys.jsonl")
    assert [(k["client"], k["certain"]) for k in keys] == [("at 00", True)]


@pytest.mark.parametrize("damage", ["flipped", "torn"])
def test_a_damaged_segment_that_the_broker_set_aside_is_no_missing_copy(
    tmp_path: Path, damage: str
) -> None:
    aside = bytearray(batch(3, Record(b"a")) + batch(4, Record(b"b")))
    aside[-1] ^= damage == "flipped"
    evidence, out = lost_evidence(tmp_path / "e", b"", 5), tmp_path / "out"
    folder = evidence / "broker-1/t-0"
    (folder / f"{3:020d}.log.deleted").write_bytes(aside[: -1 if damage == "torn" else None])
    (folder / f"{5:020d}.log").write_bytes(batch(5, Record(b"c")))
    recover_rows(evidence, out, row(5))
    ((first, end, why),) = not_had(out)
    assert (first, end) == (4, 5)
    assert "cannot be read in broker 1's segment" in why


def test_the_marker_of_what_was_set_aside_is_in_the_log_beside_it(tmp_path: Path) -> None:
    for written_in, held_back in ((0, None), (1, "open_transaction")):
        told = {"flags": TRANSACTIONAL, "producer": (77, 0, 0), "leader_epoch": written_in}
        evidence, out = (
            lost_evidence(tmp_path / f"e{written_in}", marker(5, 77, 1), 4),
            tmp_path / str(written_in),
        )
        aside = evidence / f"broker-1/t-0/{3:020d}.log.deleted"
        aside.write_bytes(batch(3, Record(b"a", key=b"a"), **told))
        recover_rows(evidence, out, row(4, leader_epoch=written_in))
        assert had(out) == [(3, "a", held_back)]


@pytest.mark.parametrize("policy", ["compact", "compact,delete", "delete", "aborted compact"])
def test_of_a_compacted_topic_what_a_newer_record_replaced_is_held_back(
    tmp_path: Path, policy: str
) -> None:
    aborted, _, policy = policy.rpartition(" ")
    told = {"flags": TRANSACTIONAL, "producer": (77, 0, 0)} if aborted else {}
    records = Record(b"newer", key=b"k0"), Record(b"behind a gap", offset=3)
    newer = batch(FIRST_LOST, *records, leader_epoch=1, **told)
    newer += marker(7, 77, 0, 1) if aborted else b""
    evidence = lost_evidence(tmp_path / "e", two(b"lost"), 5, others=newer)
    described = evidence / "describe.txt"
    described.write_text(described.read_text().replace("policy=delete", f"policy={policy}"))
    in_gap = row(6, first=5), row(6, first=5, leader_epoch=1)
    recover_rows(evidence, tmp_path / "out", row(5), *in_gap)
    gone = COMPACTED if "compact" in policy else NOT_IN_BATCH
    assert not_had(tmp_path / "out") == [(5, 6, OTHERS), (5, 6, gone)]
    why = "newer_value" if "compact" in policy and not aborted else None
    assert had(tmp_path / "out") == [(3, "lost0", why), (4, "lost1", None)]


@pytest.mark.parametrize(
    ("recovered", "produced", "found"), [(3, 0, 3), (3, 1, 1), (1, 0, 1), (0, 1, 1), (1, 5, 5)]
)
def test_what_is_not_there_comes_before_what_is_not_decided(
    recovered: int, produced: int, found: int
) -> None:
    assert worse(recovered, produced) == found
