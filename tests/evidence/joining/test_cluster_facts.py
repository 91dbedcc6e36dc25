"""What broker logs tell of a cluster as a whole."""

from pathlib import Path

import pytest

from replication.evidence.broker_logs.broker_log import read_broker_log
from replication.evidence.broker_logs.line_families import FAMILIES
from replication.evidence.broker_logs.line_families.kinds import FATAL_KINDS
from replication.evidence.collecting.broker_text_log import read_log
from replication.evidence.joining.cluster_facts import facts_of
from replication.evidence.joining.ended_brokers import ended
from replication.evidence.joining.one_cluster import ClusterEvidence
from replication.evidence.metadata_log.history import BrokerChange
from replication.evidence.unreadable import Unreadable
from tests.evidence.joining.history import history
from tests.evidence.joining.lines import log, process


def cluster(version: str, **settings: str) -> ClusterEvidence:
    values = {name.replace("_", "."): value for name, value in settings.items()}
    facts = [process("kafka_version", version=version), process("settings", values=values)]
    return ClusterEvidence("c", logs=(log(3, *facts),))


ZOOKEEPER = cluster("2.8.2", zookeeper_connect="z:2181", inter_broker_protocol_version="2.7")


def test_release_controller_and_brokers_are_read_off_the_log() -> None:
    facts, notes = facts_of(ZOOKEEPER, None)
    assert (facts.kafka_versions, facts.controller, facts.brokers) == (["2.8.2"], "zookeeper", [3])
    assert (facts.inter_broker_version, notes) == ("2.7", [])


def test_a_release_that_is_told_is_judged_by_and_a_warning_says_so() -> None:
    facts, notes = facts_of(ZOOKEEPER, "1.1.1")
    assert (facts.kafka_versions, facts.inter_broker_version) == (["1.1.1"], None)
    assert len(notes) == 1
    assert "2.8.2" in notes[0]
    same, silent = facts_of(ZOOKEEPER, "2.8.2")
    assert (same.inter_broker_version, silent) == ("2.7", [])


def test_who_is_fenced_at_the_end_and_which_release_each_broker_ran_last() -> None:
    def change(kind: str, n: int, broker_epoch: int = 1, level: int | None = None) -> BrokerChange:
        return BrokerChange(n, kind, broker_epoch, None, 0, 0, metadata_version=level)

    told = history(
        brokers=(
            *(change("registered", n, level=21) for n in (1, 2, 3, 4, 5)),
            *(change("fenced", n) for n in (1, 2, 5)), change("registered", 2, 2, level=27),
            change("unfenced", 2, 2), change("controlled_shutdown", 3), change("unregistered", 3),
        )
    )  # fmt: skip
    starts = [process("kafka_version", at=n, version=v) for n, v in enumerate(("3.9.1", "4.1.1"))]
    again = log(5, *starts, process("broker_epoch_granted", broker_epoch=7))
    facts, _ = facts_of(ClusterEvidence("c", logs=(again,), history=told), None)
    assert facts.ended == {1, 3}
    assert facts.releases == {1: "3.9", 3: "3.9", 4: "3.9", 5: "4.1.1"}


@pytest.mark.parametrize(
    ("evidence", "controller", "brokers"),
    [
        (cluster("4.1.1", process_roles="[controller]"), "kraft", []),
        (cluster("4.1.1", process_roles="[broker, controller]"), "kraft", [3]),
        (cluster("4.1.1"), None, [3]),
        (ClusterEvidence("c", history=history()), "kraft", []),
    ],
)
def test_who_is_a_broker_and_what_controls_it(
    evidence: ClusterEvidence, controller: str | None, brokers: list[int]
) -> None:
    facts, _ = facts_of(evidence, None)
    assert (facts.controller, facts.brokers) == (controller, brokers)


FATAL_LINES = [
    (one.message, family.loggers[0], one.found[0].node)
    for family in FAMILIES
    if family.kind in FATAL_KINDS
    for one in family.examples
]


@pytest.mark.parametrize(("message", "logger", "node"), FATAL_LINES)
@pytest.mark.parametrize(
    ("later", "is_down"),
    [
        ("", 1),
        (
            "10:00:02,000] INFO [KafkaServer id={}] shut down completed (kafka.server.KafkaServer)",
            1,
        ),
        ("10:07:00,000] INFO Kafka version: 2.3.1 (kafka.common.utils.AppInfoParser)", 0),
    ],
)
def test_after_a_fatal_line_a_broker_is_down_until_it_starts(
    message: str, logger: str, node: int | None, later: str, is_down: int, tmp_path: Path
) -> None:
    """Every wording of every kind after which the process ends itself."""
    broker = 2 if node is None else node
    rows = [f"09:00:00,000] INFO [KafkaServer id={broker}] started (kafka.server.KafkaServer)"]
    rows += [f"10:00:00,000] FATAL {message} (kafka.server.{logger})", later.format(broker)]
    path = tmp_path / "server.log"
    path.write_text("".join(f"[2026-11-30 {row}\n" for row in rows if row))
    unread: list[Unreadable] = []
    log = read_log(path, read_broker_log(path), None, unread)
    assert unread == []
    assert ended(ClusterEvidence("c", logs=(log,))) == ({broker} if is_down else set())
