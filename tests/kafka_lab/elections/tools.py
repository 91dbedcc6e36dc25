"""Kafka's command line tools by the names that a distribution gives them, from the broker jars."""

import zipfile
from functools import cache
from pathlib import Path

from replication.paths import kafka_broker_jars
from tests.kafka_lab.node_settings import JVM_OPTIONS
from tests.kafka_lab.processes import java
from tests.kafka_lab.versions import Version

# By script: the class that it starts, where it was in later releases first; and what it says first.
CLASSES: dict[str, tuple[tuple[str, ...], str]] = {
    "kafka-topics.sh": (("org.apache.kafka.tools.TopicCommand", "kafka.admin.TopicCommand"), ""),
    "kafka-configs.sh": (
        ("org.apache.kafka.tools.ConfigCommand", "kafka.admin.ConfigCommand"),
        "",
    ),
    "kafka-leader-election.sh": (
        ("org.apache.kafka.tools.LeaderElectionCommand", "kafka.admin.LeaderElectionCommand"),
        "",
    ),
    "kafka-preferred-replica-election.sh": (
        ("kafka.admin.PreferredReplicaLeaderElectionCommand",),
        "",
    ),
    "kafka-reassign-partitions.sh": (
        (
            "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
            "kafka.admin.ReassignPartitionsCommand",
        ),
        "",
    ),
    "kafka-dump-log.sh": (
        ("org.apache.kafka.tools.DumpLogSegments", "kafka.tools.DumpLogSegments"),
        "",
    ),
    "kafka-broker-api-versions.sh": (
        (
            "org.apache.kafka.tools.BrokerApiVersionsCommand",
            "kafka.admin.BrokerApiVersionsCommand",
        ),
        "",
    ),
    "kafka-metadata-quorum.sh": (
        ("org.apache.kafka.tools.MetadataQuorumCommand", "kafka.admin.MetadataQuorumCommand"),
        "",
    ),
    "zookeeper-shell.sh": (
        (
            "org.apache.zookeeper.ZooKeeperMainWithTlsSupportForKafka",
            "org.apache.zookeeper.ZooKeeperMain",
        ),
        "-server",
    ),
}


@cache
def _classes(version: Version) -> frozenset[str]:
    """Every class that the release's jars have."""
    found: set[str] = set()
    for jar in kafka_broker_jars(version.name):
        with zipfile.ZipFile(jar) as opened:
            found |= {name[:-6].replace("/", ".") for name in opened.namelist() if ".class" in name}
    return frozenset(found)


def write_tools(version: Version, directory: Path) -> Path:
    """A folder with those of the scripts that the release has; it goes first in PATH."""
    directory.mkdir(parents=True, exist_ok=True)
    here = _classes(version)
    options = " ".join(JVM_OPTIONS)
    start = f'exec {java()} {options} -cp "{version.class_path}"'
    scripts = {"kafka-run-class.sh": f'{start} "$@"'}
    for name, (classes, first) in CLASSES.items():
        known = next((one for one in classes if one in here), None)
        if known is not None:
            scripts[name] = f'{start} {known} {first} "$@"'
    for name, text in scripts.items():
        path = directory / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
    return directory
