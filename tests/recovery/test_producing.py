"""Produced records, each once across restarts: a cluster in memory, cut off at every call."""

from contextlib import suppress
from pathlib import Path

import pytest

from replication.cli import main
from replication.recovery import produce_command, producing
from tests.recovery.lost_evidence import lines_of
from tests.recovery.made_cluster import (
    TOTAL,
    Cluster,
    KafkaError,
    Killed,
    folder,
    library_of,
    produce,
    record,
    values,
)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    made = Cluster()
    library = library_of(made)
    monkeypatch.setattr(produce_command, "client", lambda _: library)
    monkeypatch.setattr(producing, "RECORDS_IN_BATCH", 5)
    monkeypatch.setattr(producing, "_PAUSE", 0.0)
    return made


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


def test_a_dry_run_names_each_offset_and_reaches_no_cluster(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def nobody(wanted_by: str) -> None:
        raise AssertionError(wanted_by)

    monkeypatch.setattr(produce_command, "client", nobody)
    out = folder(tmp_path / "o", record(0), record(2), record(4))
    before = sorted(out.iterdir())
    assert produce(out, "--dry-run") == 0
    shown = capsys.readouterr().out
    assert "  t-0: offset 0\n" in shown
    assert "--dry-run reaches no cluster" in shown
    assert sorted(out.iterdir()) == before


def test_a_folder_that_is_of_no_use_is_refused_before_anything_is_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("replication.cli._read", lambda _: pytest.fail("the evidence was read"))
    evidence = tmp_path / "evidence"
    evidence.mkdir()
    assert main(["recover", str(evidence), "--out", str(evidence / "back")]) == 2
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes").touch()
    assert main(["recover", str(evidence), "--out", str(tmp_path / "full")]) == 2
    assert "is not empty; name a new folder" in capsys.readouterr().err


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
