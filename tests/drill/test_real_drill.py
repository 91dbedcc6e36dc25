"""One drill on a real cluster whose loss is planted, and a Java client that is killed."""

import sys
from pathlib import Path

import pytest

from replication.drill.cluster import NoDrill
from replication.drill.java_tap import build, main
from replication.paths import kafka_broker_jars
from tests.kafka_lab.client_kills import java_command, killed
from tests.kafka_lab.cluster import Cluster, Plan
from tests.kafka_lab.drills import LOSSES, run
from tests.kafka_lab.versions import Version

KAFKA = "4.3.0"


@pytest.mark.kafka
def test_a_planted_loss_is_found_and_a_killed_java_client_invents_nothing(tmp_path: Path) -> None:
    (kind,) = (kind for kind in LOSSES if kind.name == "both_lose_power")
    (outcome,) = run([kind], Version(KAFKA), tmp_path / "drills")
    assert (outcome.wrong, outcome.status) == (None, 1)
    assert outcome.lost
    jar, acks = tmp_path / "tap.jar", tmp_path / "acks"
    build(next(j for j in kafka_broker_jars(KAFKA) if j.name.startswith("kafka-clients")), jar)
    with Cluster(Plan(Version(KAFKA), brokers=(1,)), tmp_path / "cluster") as cluster:
        cluster.create_topic("k", {0: [1]})
        acks.mkdir()
        command = java_command(f"127.0.0.1:{cluster.external[1]}", acks, "k", 1000, jar)
        found = killed(command, acks, cluster.data(1)[0] / "k-0", 0.7)
    assert (found.invented, found.torn) == (0, 0)
    assert found.noted > 100
    assert found.missing_seconds < 1


def test_what_the_jar_needs_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("replication.drill.java_tap.shutil.which", lambda name: name)
    monkeypatch.setattr(sys, "argv", ["java_tap", str(tmp_path / "none.jar"), "out.jar"])
    assert main() == 2
    assert "none.jar: no such file; expected the jar kafka-clients" in capsys.readouterr().err
    monkeypatch.setattr("replication.drill.java_tap.shutil.which", lambda name: None)
    with pytest.raises(NoDrill, match="no javac in PATH"):
        build(tmp_path / "none.jar", tmp_path / "out.jar")
