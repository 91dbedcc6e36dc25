"""The distributed import writes the events of the laptop's import, event by event."""

import argparse
import io
import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from replication.cli import main as laptop
from replication.evidence.collecting.collection import NoEvidence
from replication.evidence.event_dumps import read_events, write_events
from replication.evidence.importer import import_evidence
from replication.protocol.ground import wire
from replication.protocol.ground.events import Event
from replication.protocol.judgement.bounded import fold_all
from replication.spark import import_artifacts
from replication.spark.event_files import event_files
from replication.spark.failures import exit_status
from replication.spark.import_artifacts import ImportJob
from replication.spark.progress import Progress
from tests.changed_evidence import INCIDENTS, changed_copy, digests_for_directories
from tests.spark.jobs_in_process import run_replay

pytestmark = pytest.mark.spark
# ZooKeeper and KRaft; traces; two topic ids under one name; payloads and controllers' logs.
QUICK = (
    "unclean_election__4.1.1",
    "not_loss_traps__4.3.0__topic_recreated",
    "chaos__1.1.1__seed39__trace",
)
OTHERS = sorted(p.name for p in INCIDENTS.iterdir() if p.is_dir() and p.name not in QUICK)


def run_import(spark: SparkSession, *arguments: Any) -> str:
    """jobs/import_artifacts.py within the tests' session: what it said on stderr."""
    said = io.StringIO()
    flags = import_artifacts.parser().parse_args([str(a) for a in arguments])
    import_artifacts.check(flags)
    ImportJob(spark, Progress(said)).run(flags)
    return said.getvalue()


def events_below(folder: Path) -> list[str]:
    """Every event of the files a job would read, as text, in one order."""
    found = [e for path in event_files(folder) for e in read_events(path)]
    assert all(isinstance(e, Event) for e in found)
    return sorted(wire.to_json(e) for e in found if isinstance(e, Event))


def laptops(*evidence: Path) -> list[str]:
    return sorted(wire.to_json(e) for e in import_evidence(list(evidence)).events())


@pytest.mark.parametrize("incident", QUICK)
def test_events_are_those_of_the_laptop(spark: SparkSession, tmp_path: Path, incident: str) -> None:
    """Ids, sequences, sources and order of each partition are part of the event's text."""
    run_import(spark, INCIDENTS / incident, "--out", tmp_path / "out", "--format", "json")
    assert events_below(tmp_path / "out") == laptops(INCIDENTS / incident)


@pytest.mark.slow
def test_events_of_many_clusters_at_once(spark: SparkSession, tmp_path: Path) -> None:
    """All other incidents in one call: every cluster keeps its own release and brokers."""
    evidence = [INCIDENTS / incident for incident in OTHERS]
    run_import(spark, *evidence, "--out", tmp_path / "out", "--format", "json")
    found = events_below(tmp_path / "out")
    assert found == laptops(*evidence)
    assert len({json.loads(event)["cluster_id"] for event in found}) == len(OTHERS)


def test_parquet_and_digests(spark: SparkSession, tmp_path: Path) -> None:
    """Digests are read again by the workers when contents are told apart."""
    evidence = changed_copy(QUICK[0], digests_for_directories, tmp_path)
    run_import(spark, evidence, "--out", tmp_path / "out")
    assert {p.suffix for p in event_files(tmp_path / "out")} == {".parquet"}
    assert events_below(tmp_path / "out") == laptops(evidence)


@pytest.mark.slow
def test_replay_reads_what_was_written(spark: SparkSession, folder: Path) -> None:
    run_import(spark, INCIDENTS / QUICK[0], "--out", folder / "in")
    verdicts, _ = run_replay(spark, folder)
    expected: dict[tuple[str, str], int] = {}
    for part in fold_all(import_evidence([INCIDENTS / QUICK[0]]).events()):
        for row in part.answer.verdicts:
            key = (row["invariant"], row["verdict"])
            expected[key] = expected.get(key, 0) + 1
    assert verdicts == expected


def test_what_cannot_be_read_is_said_as_the_laptop_says_it(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A flipped record, and a file that is no evidence at all."""
    evidence = changed_copy(QUICK[0], damaged, tmp_path)
    said = run_import(spark, evidence, "--out", tmp_path / "out")
    assert laptop(["import", str(evidence), "--out", str(tmp_path / "one.jsonl")]) == 0
    told = [line for line in capsys.readouterr().err.splitlines() if line.startswith("unreadable")]
    assert told
    assert [line for line in said.splitlines() if line.startswith("unreadable")] == told


def damaged(evidence: Path) -> None:
    """One byte of a record's payload is another."""
    path = max(evidence.glob("*/disk-final/t-0/*.log"), key=lambda p: p.stat().st_size)
    content = bytearray(path.read_bytes())
    content[80] ^= 0xFF
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere", "--out", "out"], "nowhere: no such file or folder"),
        (["evidence", "--out", "full"], "not an empty folder"),
        (["evidence", "--out", "out", "--kafka", "11.0"], "--kafka: "),
    ],
)
def test_unusable_calls_are_refused_before_spark_starts(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evidence").mkdir()
    (tmp_path / "full").mkdir()
    write_events(tmp_path / "full" / "events.jsonl", [])
    assert exit_status(import_artifacts.main, ["import_artifacts.py", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_nothing_that_is_evidence(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "evidence").mkdir()
    (tmp_path / "evidence" / "notes.txt").write_text("nothing\n")
    with pytest.raises(NoEvidence, match="no evidence of a Kafka cluster"):
        run_import(spark, tmp_path / "evidence", "--out", tmp_path / "out")
    assert event_files(tmp_path / "out") == []
    flags = argparse.Namespace(
        kafka=None, paths=[tmp_path], out=tmp_path / "out", broker=None, time_zone=None,
        ack_fields=None, all_producers=False, clock_bound=None,
    )  # fmt: skip
    import_artifacts.check(flags)


def test_an_out_that_cannot_be_made_is_named_by_its_flag(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(
        OSError, match=f"^--out {tmp_path}/file/out: Not a directory; name a folder"
    ):
        run_import(spark, INCIDENTS / QUICK[0], "--out", tmp_path / "file" / "out")
