"""Settings by the lines in which brokers say that they changed."""

from replication.evidence.broker_logs.broker_log import LogLineFact
from replication.evidence.collecting.broker_text_log import BrokerLog
from replication.evidence.joining.lifetimes import Incarnations
from replication.evidence.joining.partition_settings import settings_of
from replication.evidence.joining.printed_settings import (
    PrintedSettings,
    printed_settings,
    settings_lines,
)
from tests.evidence.joining.history import history
from tests.evidence.joining.lines import log, process

NAME, UNCLEAN = "min.insync.replicas", "unclean.leader.election.enable"


def topic_has(at: int, topic: str = "t", **settings: str) -> LogLineFact:
    fact = process("topic_settings_changed", at, settings={k.replace("_", "."): v
                   for k, v in settings.items()})  # fmt: skip
    return fact._replace(topic=topic)


def logs(*facts: LogLineFact) -> list[BrokerLog]:
    one = log(1)
    one.processes = list(facts)
    return [one]


def printed(*facts: LogLineFact, lives: Incarnations | None = None) -> PrintedSettings:
    return printed_settings(settings_lines(logs(*facts)), "t", "", lives or Incarnations())


def test_what_all_lines_agree_in_is_known_and_what_changed_is_not() -> None:
    found = printed(
        topic_has(1, min_insync_replicas="2", retention_ms="5"),
        topic_has(2, min_insync_replicas="2", retention_ms="9"),
        topic_has(3, topic="u", min_insync_replicas="1"),
    )
    assert found == PrintedSettings({}, {NAME: "2", "retention.ms": None})


def test_a_setting_that_was_taken_back_was_changed() -> None:
    found = printed(topic_has(1, min_insync_replicas="2"), topic_has(2))
    assert found.of_topic == {NAME: None}


def test_a_topic_that_bore_the_name_before_had_settings_of_its_own() -> None:
    lives = Incarnations({"t": [("old", None, 5), ("", 5, None)]})
    found = printed(
        topic_has(1, min_insync_replicas="1"), topic_has(9, min_insync_replicas="2"), lives=lives
    )
    assert found.of_topic == {NAME: "2"}


def test_over_the_brokers_file_the_clusters_then_the_topics_and_nothing_where_it_changed() -> None:
    of_cluster = process("cluster_settings_changed", settings={NAME: "2", UNCLEAN: "true"})
    said = printed(of_cluster, topic_has(1, min_insync_replicas="3"))
    assert settings_of("t", {NAME: "1"}, None, None, said) == {NAME: "3", UNCLEAN: "true"}
    changed = printed(topic_has(1, min_insync_replicas="3"), topic_has(2, min_insync_replicas="1"))
    assert settings_of("t", {NAME: "1"}, None, None, changed) == {}
    # What the controllers recorded is whole: lines add nothing to it.
    assert settings_of("t", {NAME: "1"}, history(), None, said) == {NAME: "1"}
