"""What broker logs tell of a cluster as a whole."""

import pytest

from replication.evidence.joining.cluster_facts import facts_of
from replication.evidence.joining.one_cluster import ClusterEvidence
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
