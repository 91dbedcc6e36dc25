"""Whose word on a setting or an assignment counts."""

from replication.evidence.joining.lifetimes import Incarnations
from replication.evidence.joining.partition_settings import by_kafka_topics, settings_of
from replication.evidence.metadata_log.history import ConfigChange
from replication.evidence.tools.topic_descriptions import PartitionDescription, TopicDescription
from replication.evidence.zookeeper.history import SettingsWritten, ZooKeeperHistory
from tests.evidence.joining.history import history

NAME = "min.insync.replicas"


def test_the_topics_own_setting_is_over_the_clusters_and_that_over_the_brokers() -> None:
    def change(value: str) -> tuple[ConfigChange, ...]:
        return (ConfigChange(1, 1, NAME, value), ConfigChange(1, 1, "retention.ms", "5"))

    brokers = {NAME: "1", "log.cleanup.policy": "delete", "num.io.threads": "8"}
    of_cluster = {"cluster_configs": {"": change("2")}}
    of_topic = {**of_cluster, "topic_configs": {"t": change("3"), "u": change("9")}}
    assert settings_of("t", brokers, None, None) == {NAME: "1", "cleanup.policy": "delete"}
    assert settings_of("t", brokers, history(**of_cluster), None)[NAME] == "2"
    assert settings_of("t", brokers, history(**of_topic), None)[NAME] == "3"
    own = SettingsWritten("t", 2, {NAME: "5", "retention.ms": "5"})
    znodes = ZooKeeperHistory(settings_written=[SettingsWritten("", 1, {NAME: "4"}), own])
    assert settings_of("t", {}, None, znodes) == {NAME: "5"}


def topic(topic_id: str | None, at: int | None, **configs: str) -> TopicDescription:
    return TopicDescription("t", topic_id, 1, 2, configs, at, f"{at}.txt", 1)


def partition(at: int | None, *replicas: int) -> PartitionDescription:
    return PartitionDescription("t", 0, 1, replicas, replicas, None, None, at, f"{at}.txt", 2)


def test_the_newest_output_counts_and_one_without_a_time_least() -> None:
    told = [partition(9, 1, 3), partition(5, 1, 2), partition(None, 4, 5)]
    found = by_kafka_topics(("t", "", 0), told, Incarnations())
    assert (found.replicas, found.at) == ((1, 3), 9)
    assert by_kafka_topics(("t", "", 1), told, Incarnations()).replicas is None


def test_a_line_is_of_the_incarnation_that_its_output_names() -> None:
    two = Incarnations({"t": [("a", None, 20), ("b", 20, None)]})
    told = [topic("a", 50, **{NAME: "2"}), partition(50, 1, 2), partition(30, 3, 4)]
    first = by_kafka_topics(("t", "a", 0), told, two)
    assert (first.settings, first.replicas) == ({NAME: "2"}, (1, 2))
    second = by_kafka_topics(("t", "b", 0), told, two)
    assert (second.settings, second.replicas) == ({}, (3, 4))
