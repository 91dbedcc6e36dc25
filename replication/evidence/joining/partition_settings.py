"""Which settings and which assignment a partition has, by everything but its brokers' own lines."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from replication.evidence.joining.lifetimes import Incarnations
from replication.evidence.joining.one_cluster import Key
from replication.evidence.joining.partition_join import SETTING_NAMES
from replication.evidence.joining.printed_settings import PrintedSettings
from replication.evidence.joining.settings_in_time import InForce, in_time
from replication.evidence.metadata_log.history import MetadataHistory
from replication.evidence.tools.topic_descriptions import PartitionDescription, TopicDescription
from replication.evidence.zookeeper.history import ZooKeeperHistory

NOTHING_PRINTED = PrintedSettings()


@dataclass(frozen=True, slots=True)
class ByKafkaTopics:
    """What kafka-topics printed of a partition: settings, assigned replicas, leader, when (ms)."""

    settings: dict[str, str] = field(default_factory=dict)
    replicas: tuple[int, ...] | None = None
    at: int | None = None
    leader: int | None = None


def settings_of(
    topic: str,
    of_brokers: dict[str, str],
    history: MetadataHistory | None,
    zookeeper: ZooKeeperHistory | None,
    printed: PrintedSettings = NOTHING_PRINTED,
) -> dict[str, str]:
    """The topic's settings, by Kafka's names: the brokers' defaults (of_brokers), over them what
    the controllers recorded for all brokers, over that what they recorded for the topic. Without
    the controllers' records, what brokers printed of changes stands for them."""
    values = _of_brokers(of_brokers)
    if history is None and zookeeper is None:
        for said in (printed.of_cluster, printed.of_topic):
            for name in SETTING_NAMES.keys() & said.keys():
                values.pop(name, None)
                if said[name] is not None:
                    values[name] = str(said[name])
        return values
    last = changes_of(topic, of_brokers, history, zookeeper)[-1].values
    return {name: value for name, value in last.items() if value is not None}


def changes_of(
    topic: str,
    of_brokers: dict[str, str],
    history: MetadataHistory | None,
    zookeeper: ZooKeeperHistory | None,
) -> list[InForce]:
    """The topic's settings as they were in force one after the other, by the controllers."""
    return in_time(SETTING_NAMES, topic, _of_brokers(of_brokers), history, zookeeper)


def _of_brokers(of_brokers: dict[str, str]) -> dict[str, str]:
    """The brokers' own values by the topic's names of the settings."""
    named = {n: "log.cleanup.policy" if n == "cleanup.policy" else n for n in SETTING_NAMES}
    return {n: of_brokers[theirs] for n, theirs in named.items() if theirs in of_brokers}


def described_partitions(
    descriptions: Iterable[TopicDescription | PartitionDescription], incarnations: Incarnations
) -> set[Key]:
    """The partitions that kafka-topics printed."""
    ids: dict[tuple[str, str], str] = {}
    keys: set[Key] = set()
    for item in descriptions:
        if isinstance(item, PartitionDescription):
            known = ids.get((item.path, item.topic)) or incarnations.at(item.topic, item.at)
            keys.add((item.topic, known, item.partition))
        elif item.topic_id:
            ids[item.path, item.topic] = item.topic_id
    return keys


def by_kafka_topics(
    key: Key,
    descriptions: Iterable[TopicDescription | PartitionDescription],
    incarnations: Incarnations,
) -> ByKafkaTopics:
    """What kafka-topics printed of the partition; of its assignment the newest output counts.

    A line that names no topic id is of the incarnation that the topic's own line names in the
    same output, else of the one that bore the name then.
    """
    topic, its_id, partition = key
    settings: dict[str, str] = {}
    ids: dict[tuple[str, int | None], str] = {}
    newest: tuple[int, str, int] | None = None
    result = ByKafkaTopics(settings)
    for item in descriptions:
        if item.topic != topic:
            continue
        if isinstance(item, TopicDescription) and item.topic_id:
            ids[item.path, item.at] = item.topic_id
        if (ids.get((item.path, item.at)) or incarnations.at(topic, item.at)) != its_id:
            continue
        if isinstance(item, TopicDescription):
            settings.update({k: v for k, v in item.configs.items() if k in SETTING_NAMES})
            continue
        place = (-1 if item.at is None else item.at, item.path, item.line)
        if item.partition == partition and (newest is None or place > newest):
            newest = place
            result = ByKafkaTopics(settings, item.replicas, item.at, item.leader)
    return result
