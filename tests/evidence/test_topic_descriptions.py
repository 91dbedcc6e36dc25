"""Output of kafka-topics --describe, as each version printed it."""

from pathlib import Path

import pytest

from replication.evidence.tools.topic_descriptions import (
    PartitionDescription,
    TopicDescription,
    is_topic_description,
    read_topic_descriptions,
)
from replication.evidence.unreadable import Unreadable

FROM_0_10 = (
    "Topic:t\tPartitionCount:1\tReplicationFactor:2\tConfigs:min.insync.replicas=1\n"
    "\tTopic: t\tPartition: 0\tLeader: none\tReplicas: 2,1\tIsr: 1\n"
)
FROM_4_1 = (
    "Topic: t\tTopicId: 4Uu25ilRQ3mamw4tl1E6PA\tPartitionCount: 1\tReplicationFactor: 3\t"
    "Configs: min.insync.replicas=2,cleanup.policy=compact,delete,retention.ms=5\n"
    "\tTopic: t\tPartition: 0\tLeader: 3\tReplicas: 1,2,3\tIsr: 3\tElr: 1,2\tLastKnownElr: \n"
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "text"


def described(file: Path, text: str) -> list[TopicDescription | PartitionDescription | Unreadable]:
    file.write_text(text)
    return list(read_topic_descriptions(file))


def test_0_10(file: Path) -> None:
    assert described(file, FROM_0_10) == [
        TopicDescription("t", None, 1, 2, {"min.insync.replicas": "1"}, None, str(file), 1),
        PartitionDescription("t", 0, None, (2, 1), (1,), None, None, None, str(file), 2),
    ]


def test_4_1(file: Path) -> None:
    configs = {
        "min.insync.replicas": "2",
        "cleanup.policy": "compact,delete",
        "retention.ms": "5",
    }
    topic_id = "4Uu25ilRQ3mamw4tl1E6PA"
    assert described(file, FROM_4_1) == [
        TopicDescription("t", topic_id, 1, 3, configs, None, str(file), 1),
        PartitionDescription("t", 0, 3, (1, 2, 3), (3,), (1, 2), (), None, str(file), 2),
    ]


def test_no_eligible_leader_replicas_known(file: Path) -> None:
    line = "\tTopic: t\tPartition: 0\tLeader: 3\tReplicas: 3\tIsr: 3\tElr: N/A\tLastKnownElr: N/A\n"
    (found,) = described(file, line)
    assert isinstance(found, PartitionDescription)
    assert (found.elr, found.last_known_elr) == (None, None)


def test_a_reassignment_and_a_deletion(file: Path) -> None:
    line = (
        "\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 3,1\tIsr: 1\tAdding Replicas: 3\t"
        "Removing Replicas: \tElr: \tLastKnownElr: \tMarkedForDeletion: true\n"
    )
    (found,) = described(file, line)
    assert isinstance(found, PartitionDescription)
    assert (found.adding, found.removing, found.marked_for_deletion) == ((3,), (), True)
    (topic,) = described(
        file, "Topic:t\tPartitionCount:1\tReplicationFactor:1\tConfigs:\tMarkedForDeletion:true\n"
    )
    assert isinstance(topic, TopicDescription)
    assert (topic.configs, topic.marked_for_deletion) == ({}, True)


def test_tabs_that_a_terminal_made_spaces(file: Path) -> None:
    with_spaces = FROM_4_1.replace("\t", "        ")
    assert described(file, with_spaces) == described(file, FROM_4_1)


def test_several_outputs_in_one_file(file: Path) -> None:
    text = f"# 1970-01-01T00:00:01Z\n{FROM_0_10}\n# a note\n# 1970-01-01T00:00:02Z\n{FROM_0_10}"
    times = [getattr(one, "at", None) for one in described(file, text)]
    assert times == [1000, 1000, 2000, 2000]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1,2\n", "no Isr"),
        ("\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1,x\tIsr: 1\n", "Replicas 1,x"),
        ("\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1,\tIsr: 1\n", "Replicas 1,"),
        ("\tTopic: t\tPartition: 0\tReplicas: 1\tIsr: 1\n", "Leader missing"),
        ("\tTopic: t\tPartition: -3\tLeader: 1\tReplicas: 1\tIsr: 1\n", "Partition -3"),
        ("\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1", "ends within this line"),
        ("Topic: t\tTopicId: short\tPartitionCount: 1\tConfigs: \n", "TopicId short"),
        ("Topic: t\tPartitionCount: 1\tReplicationFactor: 1\n", "it is cut"),
        ("Topic: t\tPartitionCount: 1\tReplicationFactor: 1\tConfigs: what\n", "no settings"),
        ("Topic: t\tTopic: u\tPartitionCount: 1\tConfigs: \n", "names Topic twice"),
        ("Error while executing topic command\n", "no line of kafka-topics"),
    ],
)
def test_a_line_that_cannot_be(file: Path, line: str, reason: str) -> None:
    found = described(file, FROM_0_10 + line)
    assert len(found) == 3
    last = found[2]
    assert isinstance(last, Unreadable)
    assert last.where == "line 3"
    assert reason in last.reason


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        (FROM_0_10, True),
        ("$ kafka-topics.sh --describe\nWARN deprecated\n\n" + FROM_4_1, True),
        (FROM_4_1.splitlines()[1], True),
        (FROM_4_1.replace("\t", "   "), True),
        ("", False),
        ("Topic: the weather\n", False),
        ("[2026-11-20 15:17:30,518] INFO Topic: t Partition: 0 (x)\n", False),
        ('{"topic": "t", "partition": 0}\n', False),
    ],
)
def test_a_file_is_known_by_its_content(file: Path, text: str, is_one: bool) -> None:
    file.write_text(text)
    assert is_topic_description(file) is is_one


def test_no_text_at_all(file: Path, tmp_path: Path) -> None:
    file.write_bytes(bytes(range(256)))
    assert not is_topic_description(file)
    assert isinstance(next(iter(read_topic_descriptions(file))), Unreadable)
    assert not is_topic_description(tmp_path / "none")
    assert isinstance(next(iter(read_topic_descriptions(tmp_path / "none"))), Unreadable)
