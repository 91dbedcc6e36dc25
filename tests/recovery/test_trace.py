"""What became of single records: every place, told beside what the captures' files hold."""

import json
import shutil
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from replication.cli import main
from replication.evidence.log_directories.record_payloads import read_record_identities
from replication.evidence.log_directories.segments import RecordBatch, read_batches
from replication.protocol.ground.model import moment
from replication.recovery import trace_command, tracing
from tests.evidence.segment_bytes import CREATED, Record, batch
from tests.recovery.lost_evidence import FIRST_LOST, acknowledged, lines_of, lost_evidence

INCIDENTS = Path(__file__).parents[1] / "incidents"
CAPTURED = (
    "unclean_election__4.1.1", "same_epoch_power_loss__1.1.1", "acks1_loss__3.9.1",
    "unclean_election__2.8.2", "kip101_scenario_1__0.10.2.2__loss_only",
)  # fmt: skip


def trace(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> list[dict[str, Any]]:
    assert main(["trace", *words, "--format", "json"]) == status
    records: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["records"]
    return records


def held(evidence: Path) -> dict[tuple[str, int], set[tuple[str, int]]]:
    """(key, offset) -> (file, byte) of each batch that has it, read without what is tested."""
    found: dict[tuple[str, int], set[tuple[str, int]]] = defaultdict(set)
    for path in evidence.glob("broker-*/*/t-*/*.log"):
        for item in read_batches(path):
            records = read_record_identities(path, item) if isinstance(item, RecordBatch) else []
            for record in records if isinstance(records, list) else []:
                assert isinstance(item, RecordBatch)
                found[record.key or "", record.offset].add((str(path), item.position))
    return found


@pytest.mark.parametrize("incident", CAPTURED)
def test_every_record_of_a_capture_is_where_its_files_hold_it(
    incident: str, capsys: pytest.CaptureFixture[str]
) -> None:
    evidence = INCIDENTS / incident
    clients = {a["client"] for a in lines_of(evidence / "acks.jsonl")}
    traced = [r for c in sorted(clients) for r in trace(capsys, str(evidence), "--client", c)]
    expected = held(evidence)
    told = {
        (r["record"]["key"], r["offset"]): {(p["file"], p["position"]) for p in r["places"]}
        for r in traced
        if r["record"] is not None
    }
    assert len(told) > 10
    assert {k: expected[k] for k in told} == told
    leader = f"broker-{traced[0]['leader']['broker']}/disk-final"
    final = {k for k, places in expected.items() if any(leader in p for p, _ in places)}
    for record in traced:
        if record["record"] is None:
            continue
        name = (record["record"]["key"], record["offset"])
        lost = {x["status"] for x in record["losses"]}
        assert record["leader"]["holds_it"] is (name in final), name
        assert bool(lost) is (name not in final), name
        assert lost <= {"lost", "recoverable"}


def test_the_story_of_a_lost_record(capsys: pytest.CaptureFixture[str]) -> None:
    evidence = str(INCIDENTS / "unclean_election__4.1.1")
    assert main(["trace", evidence, "p0-000023"]) == 0
    lines = capsys.readouterr().out.splitlines()
    told = [line.split("  [")[0] for line in lines if line.startswith("  2026")]
    assert lines[0].startswith("t-0 offset 23, leader epoch 0: LOST, acknowledged with acks=all")
    assert [line.split("Z  ")[1].split(",")[0] for line in told] == [
        "p1 was told that it is written (acks=all)",
        "Broker 1: its log directory",
        "Broker 1 loads its log after an unclean stop (log end 30).",
        "Broker 1: its checkpoint file shows a high watermark of at least 30.",
        "Broker 1 follows broker 2 in leader epoch 2 (log end 30",
        "Broker 1 cuts its log from 30 to 20",
    ]
    by_id = trace(capsys, evidence, "--payload-id", "p0-000023")
    assert by_id == trace(capsys, evidence, "--key", "p0-000023")
    both = trace(capsys, evidence, "--offset", "t-0:23")
    assert [r["leader_epoch"] for r in both] == [0, 2], "the lost one first"
    assert both[:1] == by_id
    assert [m["what"] for m in both[1]["moments"]] == ["acknowledged", "held", "held", "held"]


def test_a_producers_records_and_binary_keys(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lost = batch(3, Record(b"v", key=b"\xff\x00"), Record(None, key=b"k"), producer=(7, 0, 5))
    evidence = lost_evidence(tmp_path / "e", lost, 5)
    found = trace(capsys, str(evidence), "--producer-id", "7")
    assert [(r["offset"], r["record"]["sequence"]) for r in found] == [(3, 5), (4, 6)]
    assert found[0]["record"]["key"] is None
    assert found[0]["record"]["key_base64"] == "/wA="
    assert trace(capsys, str(evidence), "nobody", status=1) == []


def test_many_records_are_told_without_their_moments(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracing, "MOST_WITH_MOMENTS", 3)
    lost = batch(3, *(Record(b"v", key=b"k") for _ in range(4)))
    evidence = lost_evidence(tmp_path / "e", lost, 7)
    assert main(["trace", str(evidence), "k", "--format", "json"]) == 0
    said = capsys.readouterr()
    assert all(r["moments"] == [] for r in json.loads(said.out)["records"])
    assert "their moments are left out" in said.err
    assert main(["trace", str(evidence), "k"]) == 0
    assert "4 records:" in capsys.readouterr().out


def test_of_many_records_the_lost_are_told_first(capsys: pytest.CaptureFixture[str]) -> None:
    evidence = str(INCIDENTS / "unclean_election__4.1.1")
    assert main(["trace", evidence, "--client", "p1"]) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[0] == "40 records:"
    assert ["LOST" in line for line in told[1:]] == [True] * 10 + [False] * 11


def test_a_client_whose_lines_name_no_record_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    acks = acknowledged([None, None], acks="0", status="sent", client="c")
    evidence = lost_evidence(tmp_path, batch(3, Record(b"v", key=b"k3")), 4, acks=acks)
    assert main(["trace", str(evidence), "--client", "c"]) == 1
    told = capsys.readouterr().out
    assert "2 lines of c, and none names an offset" in told
    assert "Ask c for the keys" in told
    assert "hand over" not in told, "the log directories are here"


@pytest.mark.parametrize(
    "words", [[], ["--offset", "t-0"], ["--offset", "t:1"], ["--offset", "t-0:x"]]
)
def test_a_call_that_names_no_record_is_refused(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["trace", str(INCIDENTS / "unclean_election__4.1.1"), *words]) == 2
    assert capsys.readouterr().err.startswith("replication-analyzer trace: ")


RETENTION, ANEW = (f"not_loss_traps__4.3.0__{of}" for of in ("retention", "topic_recreated"))


@pytest.mark.parametrize(
    ("incident", "words", "status", "said"),
    [
        (RETENTION, ["p0-000000"], 0,
         "removed by retention (time: retention.ms=4000) from 2026-11-20T15:23:05.774Z to "
         "2026-11-20T15:23:14.770Z, 8 times; the log begins at 40"),
        (RETENTION, ["--offset", "s-0:3"], 0, "removed by retention (size: retention.bytes=1200)"),
        (ANEW, ["p0-000000"], 0,
         "its topic (id vtpakRnaS-GLWtebB6vJfw) was deleted at 2026-11-20T15:24:39.868Z and "
         "created again (id sZtIScbXSGqFqaFl-eH1GQ); no loss by Kafka's rules"),
        (ANEW, ["p0-000020"], 0, "in the leader's log"),
        (ANEW, ["--offset", "t-7:3"], 1, "No t-7 in this evidence; known: t-0."),
        (RETENTION, ["--offset", "t-0:999"], 1, "ends at 45 on broker "),
    ],
)  # fmt: skip
def test_what_was_removed_by_kafkas_rules_is_said_and_what_never_was(
    incident: str, words: list[str], status: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["trace", str(INCIDENTS / incident), *words]) == status
    out = capsys.readouterr().out
    assert said in out.splitlines()[0]
    assert "not known" not in out.splitlines()[0]
    # Many lines of one cause are one, and a folder that waits to be deleted is no broken disk.
    assert sum("removes everything" in line for line in out.splitlines()) <= 2
    assert "failed" not in out


@pytest.mark.parametrize(
    ("key", "cut", "status"), [("k3", False, 2), ("k3", True, 2), ("no", True, 1)]
)
def test_evidence_that_changes_while_it_is_read_is_refused_or_said(
    key: str,
    cut: bool,
    status: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After the judgement, before the record's bytes are looked up again; another copy has it."""
    lost = batch(3, Record(b"v", key=b"k3"))
    evidence = lost_evidence(tmp_path / "e", lost, 4, others=lost)
    segment = evidence / "broker-1" / "t-0" / f"{0:020d}.log"
    judged = trace_command.progress.doing

    def changed(what: str) -> None:
        if what == "looking for the record":
            segment.write_bytes(segment.read_bytes()[: -len(lost) if cut else None])
        judged(what)

    monkeypatch.setattr(trace_command.progress, "doing", changed)
    assert main(["trace", str(evidence), "--key", key]) == status
    assert "changed while it was read" in capsys.readouterr().err


def test_escapes_in_records_do_not_reach_a_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lost = batch(3, Record(b"\x1b[2Jv", key=b"\x1b]0;k\x07", headers=[(b"\x1b[31m", b"\x9b")]))
    evidence = lost_evidence(tmp_path / "e", lost, 4)
    for more in ([], ["--format", "json"]):
        assert main(["trace", str(evidence), "--key", "\x1b]0;k\x07", *more]) == 0
        said = capsys.readouterr()
        assert not {"\x1b", "\x07", "\x9b"} & set(said.out + said.err)


def test_a_loss_that_nobody_was_told_of_is_told_beside_the_record_that_took_its_offset(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evidence = tmp_path / "evidence"
    shutil.copytree(INCIDENTS / "unclean_election__4.1.1", evidence)
    (evidence / "acks.jsonl").unlink()
    for copy in evidence.glob("*/disk-before-restart"):
        shutil.rmtree(copy)
    page = tmp_path / "page.html"
    assert main(["trace", str(evidence), "--offset", "t-0:20"]) == 0
    told = capsys.readouterr().out.splitlines()
    assert [line.split(", committed")[0] for line in told if line.startswith("t-0 offset")] == [
        "t-0 offset 20, leader epoch 0: LOST",
        "t-0 offset 20, leader epoch 2: in the leader's log (broker 2)",
    ]
    # What may be of either is said once, at the end.
    assert [n for n, line in enumerate(told) if trace_command.UNSURE in line] == [len(told) - 1]
    assert any(" (?)  [" in line for line in told)
    assert main(["diagnose", str(evidence), "--report", str(page)]) == 1
    section = page.read_text().partition('<section id="records">')[2]
    assert "<summary>t-0 offset 20, leader epoch 0: LOST" in section


@pytest.mark.parametrize("how", [["{}"], ["--payload-id", "{}"]])
def test_a_lost_record_that_no_copy_has_is_not_the_one_that_took_its_offset(
    how: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evidence = tmp_path / "evidence"
    shutil.copytree(INCIDENTS / "unclean_election__4.1.1", evidence)
    for copy in evidence.glob("*/disk-before-restart"):
        shutil.rmtree(copy)
    at_20 = {r["record"]["key"] if r["record"] else None: r for r in _at_20(capsys, evidence)}
    asked = [word.format("p0-000020") for word in how]
    lost = trace(capsys, str(evidence), *asked)
    assert [(r["offset"], r["record"], r["places"]) for r in lost] == [(20, None, [])]
    assert [loss["status"] for loss in lost[0]["losses"]] == ["lost"]
    # By the offset both are told, and the loss is not the other one's.
    assert at_20.keys() == {None, "p0-000030"}
    assert at_20["p0-000030"]["losses"] == []
    assert at_20[None]["losses"] == lost[0]["losses"]


def _at_20(capsys: pytest.CaptureFixture[str], evidence: Path) -> list[dict[str, Any]]:
    return trace(capsys, str(evidence), "--offset", "t-0:20")


def test_an_answer_is_of_the_record_that_was_made_while_its_client_sent_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = batch(FIRST_LOST, Record(b"one", key=b"k", timestamp=CREATED))
    second = batch(
        FIRST_LOST, Record(b"two", key=b"k", timestamp=CREATED + 9_000), leader_epoch=1
    ) + batch(4, Record(b"three", key=b"k", timestamp=CREATED + 9_500), leader_epoch=1)
    acks = "".join(
        acknowledged([FIRST_LOST], ts=moment(at + 30), sent_ts=moment(at - 5), client=f"c{at}")
        for at in (CREATED, CREATED + 9_000)
    )
    evidence = lost_evidence(tmp_path, first, 4, others=second, acks=acks)
    described = evidence / "describe.txt"
    described.write_text(described.read_text().replace("policy=delete", "policy=compact"))
    traced = trace(capsys, str(evidence), "--offset", f"t-0:{FIRST_LOST}")
    told = {r["record"]["value"]: [c["client"] for c in r["clients"]] for r in traced}
    assert told == {"one": [f"c{CREATED}"], "two": [f"c{CREATED + 9_000}"]}
    (evidence / "acks.jsonl").unlink()
    one, two = trace(capsys, str(evidence), "--offset", f"t-0:{FIRST_LOST}")[-2:]
    assert (one["leader"]["has_newer"], two["leader"]["holds_it"]) == (True, True)
    assert "a newer record of its key; the ledger names no loss" in trace_command.headline(one)


@pytest.mark.parametrize("incident", CAPTURED)
def test_over_a_dump_of_events_no_record_is_looked_for(
    incident: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dump = str(tmp_path / "events.jsonl")
    assert main(["import", str(INCIDENTS / incident), "--out", dump]) == 0
    capsys.readouterr()
    main(["diagnose", dump])
    assert "replication-analyzer trace" not in capsys.readouterr().out
    assert main(["trace", dump, "--offset", "t-0:1"]) == 1
    assert capsys.readouterr().out.startswith("A dump of events holds no records")
