"""A folder made before an election is produced after it: what the cluster has is not doubled."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from replication.cli import main
from replication.recovery import produce_command
from replication.recovery.already_there import OPEN, look, wanted_of
from replication.recovery.connecting import settings_of
from replication.recovery.rows_out import from_json
from tests.evidence.segment_bytes import Record, batch
from tests.recovery.lost_evidence import FIRST_LOST, lost_evidence, recover_rows, row
from tests.recovery.made_cluster import (
    Cluster,
    KafkaError,
    folder,
    library_of,
    produce,
    record,
    values,
)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    made = Cluster(partitions=1)
    monkeypatch.setattr(produce_command, "client", lambda _: library_of(made))
    return made


def of_log(number: int, **more: Any) -> Any:
    """The record of `record(number)` as the cluster's log has it."""
    made = {**record(number), **more}
    return ("t", 0, made["key"].encode(), made["value"].encode(), (), made["timestamp"])


def records(*numbers: int) -> list[dict[str, Any]]:
    return [record(n, partition=0) for n in numbers]


def plan(out: Path, capsys: pytest.CaptureFixture[str], *more: str) -> str:
    assert main(["recover", "--out", str(out), "--produce", "b:1", *more]) == 0
    return capsys.readouterr().out


def test_what_the_cluster_has_at_the_same_offset_is_not_produced(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Offsets 0 to 2 are there; at 3 is another value, at 4 another time; 5 is beyond the end."""
    cluster.log = [*map(of_log, range(3)), of_log(3, value="new"), of_log(4, timestamp=8)]
    there = list(cluster.log)
    out = folder(tmp_path / "o", *records(*range(6)))
    said = plan(out, capsys)
    assert "Already there, 3 records: the cluster has them" in said
    assert "To be produced: 3 records." in said
    assert "Not known" not in said
    assert cluster.log == there
    assert produce(out) == 0
    assert "Already there, 3 records" in capsys.readouterr().out
    assert [r[3] for r in cluster.log[5:]] == [b"v3", b"v4", b"v5"]
    said = plan(out, capsys)
    assert "An earlier call produced 6 of 6." in said
    assert "To be produced: 0 records." in said
    assert produce(out) == 0
    assert len(cluster.log) == 8


def test_another_topic_is_not_looked_at(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.log = [of_log(0)]
    out = folder(tmp_path / "o", *records(0))
    assert "Already there" not in plan(out, capsys, "--to-topic", "back")
    assert produce(out, "--to-topic", "back") == 0
    assert values(cluster)[b"v0"] == 2


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (
            {"base": 2},
            "Not known of 2 records whether the cluster has them already (t-0 begins at 2",
        ),
        ({"hidden": 1}, f"Not known of 1 record whether the cluster has them already ({OPEN})"),
        ({"answers_first": {"watermarks": [KafkaError(30)] * 2}}, "Not known of 3 records"),
        ({"answers_first": {"poll": [KafkaError(29)]}}, "(error 29): they are produced"),
    ],
)
def test_what_cannot_be_looked_up_is_said(
    more: dict[str, Any], words: str, cluster: Cluster, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    cluster.log = [of_log(n) for n in range(more.get("base", 0), 3)]
    for name, value in more.items():
        setattr(cluster, name, value)
    assert words in plan(folder(tmp_path / "o", *records(0, 1, 2)), capsys)


def test_a_long_way_between_records_is_not_read(cluster: Cluster) -> None:
    far = 12_000
    cluster.log = [of_log(0)] * far + [of_log(far)]
    wanted = wanted_of(enumerate(from_json(json.dumps(r)) for r in records(0, far)))
    reads = []
    library = library_of(cluster)
    cluster.not_ready = lambda name: reads.append(name)  # type: ignore[method-assign, assignment]
    assert look(library, {}, "g", wanted).there == {0, 1}
    assert len(reads) < 10


def test_a_folder_says_under_which_leader_its_records_are_missing(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lost = batch(FIRST_LOST, *(Record(b"v", key=b"k%d" % n) for n in range(4)))
    others = batch(FIRST_LOST, Record(b"new", key=b"n"), leader_epoch=1)
    evidence = lost_evidence(tmp_path / "evidence", lost, 7, others=others)
    out = tmp_path / "out"
    recover_rows(evidence, out, row(7))
    (told,) = json.loads((out / "summary.json").read_text())["partitions"]
    expected = {
        "leader": 2, "leader_epoch": None, "log_end_offset": 4, "parts_at": 3, "had_by": {"1": 4},
    }  # fmt: skip
    assert {name: told[name] for name in expected} == expected
    cluster.leader = 2
    assert "leads now" not in plan(out, capsys)
    cluster.leader = 1
    assert "t-0: the folder has what is missing if broker 2 leads; broker 1 leads now" in plan(
        out, capsys
    )
    (out / "summary.json").write_text("[]")
    assert "leads now" not in plan(out, capsys)


def test_the_command_says_who_would_have_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lost = batch(FIRST_LOST, *(Record(b"v", key=b"k%d" % n) for n in range(4)))
    others = batch(FIRST_LOST, Record(b"new", key=b"n"), leader_epoch=1)
    evidence = lost_evidence(tmp_path / "evidence", lost, 8, others=others)
    assert main(["recover", str(evidence), "--out", str(tmp_path / "out")]) == 1
    said = capsys.readouterr().out
    assert "These records are missing if broker 2 leads t-0.\n" in said
    assert "If broker 1 is elected, 3 of them are there" in said
    assert "After an election call recover again" in said
    [elected] = re.findall(r"who still has them: replication-analyzer (decide .*)", said)
    assert elected == f"decide {evidence} --elect 1"
    main(elected.split())
    plan_of_1 = capsys.readouterr().out
    assert "START 1, as you asked" in plan_of_1
    assert "broker 2 still has offset 3 and may lose that with its first fetch" in plan_of_1
    assert "give recover the directories as they were" in said


def test_settings_are_read_once_for_both(tmp_path: Path) -> None:
    (tmp_path / "client.properties").write_text("# ours\nsasl.username = me\n")
    given = settings_of(tmp_path / "client.properties", "--producer-config")
    assert given == (("sasl.username", "me"),)
