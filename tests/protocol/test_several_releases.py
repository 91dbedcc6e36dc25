"""Brokers of one cluster may run several releases: each is held to the rules of its own."""

import shutil
from pathlib import Path

import pytest

from replication.evidence.importer import import_evidence
from replication.evidence.joining.partition_events import events_of
from replication.evidence.joining.partition_evidence import PartitionEvidence
from replication.protocol.ground import events as ev
from replication.protocol.judgement.judge import answer
from tests.evidence.joining.lines import line, process
from tests.protocol.judgement.told import told

INCIDENT = Path(__file__).parent.parent / "incidents" / "acks1_loss__3.9.1"


def upgraded(*brokers: int) -> list[ev.Fact]:
    """Broker 3 runs 0.10.2.2, these 1.1.1: the follower cuts where its leader's epoch began."""
    return [
        ev.PartitionDescribed((1, 2, 3), 1, True, "delete", "0.10.2.2", None, "zookeeper"),
        *(ev.CoverageDeclared("replica_trace", r, True) for r in (1, 2, 3)),
        *(
            ev.ReplicaStarted(r, 0, 0, 0, True, "1.1.1" if r in brokers else None)
            for r in (1, 2, 3)
        ),
        ev.LeadershipRecorded(1, 0, (1, 2, 3), 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        ev.BecameFollower(2, 0, 1, 0, 0),
        ev.LeaderAppended(1, 0, 10, 0),
        ev.FetchRequested(2, 1, 0),
        ev.FollowerAppended(2, 0, 10, 0),
        ev.FetchRequested(2, 1, 10),
        ev.LeaderAppended(1, 10, 12, 0),
        ev.LeadershipRecorded(2, 1, (1, 2, 3), 1, "clean"),
        ev.BecameLeader(2, 1, 10, 0),
        ev.BecameFollower(1, 1, 2, 12, 0),
        ev.Truncated(1, 10, 12, "leader_epoch"),
    ]


@pytest.mark.parametrize(("brokers", "violated"), [((1, 2), False), ((), True), ((2,), True)])
def test_a_broker_is_held_to_the_rules_of_its_own_release(
    brokers: tuple[int, ...], violated: bool
) -> None:
    judged = answer(told(upgraded(*brokers), "traced")).verdicts
    verdict = next(v for v in judged if v["invariant"] == "version_conformance")
    assert (verdict["verdict"] == "VIOLATED") is violated
    assert ("truncate_to_high_watermark" in verdict["reason"]) is violated


def test_each_life_of_a_process_has_the_version_that_it_prints() -> None:
    evidence = PartitionEvidence("", "t", "", 0, ev.PartitionDescribed((1,)))
    evidence.lines[1] = [
        line("log_loaded", number=1, log_end_offset=0),
        process("process_started", number=2),
        line("log_loaded", number=3, log_end_offset=0),
        process("kafka_version", number=4, version="2.8.2"),
        process("process_started", number=5),
        line("log_loaded", number=6, log_end_offset=0),
        process("kafka_version", number=7, version="3.9.1"),
    ]
    facts = [e.fact for e in events_of(evidence, "trace", 0)]
    starts = [f.kafka_version for f in facts if isinstance(f, ev.ReplicaStarted)]
    assert starts == [None, "2.8.2", "3.9.1"]


def versions_of(folder: Path) -> dict[int, set[str | None]]:
    """What the starts of each broker's replicas say that it runs."""
    found: dict[int, set[str | None]] = {}
    for event in import_evidence([folder]).events():
        if isinstance(event.fact, ev.ReplicaStarted):
            found.setdefault(event.fact.replica, set()).add(event.fact.kafka_version)
    return found


def test_a_rolling_upgrade_is_read_off_the_brokers_logs(tmp_path: Path) -> None:
    assert set.union(*versions_of(INCIDENT).values()) == {None}
    folder = tmp_path / "upgraded"
    shutil.copytree(INCIDENT, folder)
    for log in folder.rglob("server.log"):
        if "broker-2" in str(log):
            log.write_text(log.read_text().replace("Kafka version: 3.9.1", "Kafka version: 4.1.1"))
    found = versions_of(folder)
    assert found[1] == {"3.9.1"}
    assert found[2] == {"4.1.1"}
