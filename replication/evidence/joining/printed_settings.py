"""Settings that were changed while the brokers ran, by the lines in which they say so.

Such a line holds all settings that a topic (or the cluster) has of its own from then on. Where the
lines differ in one over time, which value was in force when is not told here: it is not known.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from replication.evidence.broker_logs.broker_log import LogLineFact
from replication.evidence.collecting.broker_text_log import BrokerLog
from replication.evidence.joining.lifetimes import Incarnations

_KINDS = frozenset(("topic_settings_changed", "cluster_settings_changed"))


@dataclass(frozen=True, slots=True)
class PrintedSettings:
    """By Kafka's names; None: it was changed. of_cluster: of all brokers, of_topic: over that."""

    of_cluster: dict[str, str | None] = field(default_factory=dict)
    of_topic: dict[str, str | None] = field(default_factory=dict)


def settings_lines(logs: Iterable[BrokerLog]) -> list[LogLineFact]:
    """The lines of all brokers that print changed settings."""
    return [fact for log in logs for fact in log.processes if fact.kind in _KINDS]


def printed_settings(
    facts: Iterable[LogLineFact], topic: str, topic_id: str, incarnations: Incarnations
) -> PrintedSettings:
    """What such lines print of one incarnation of a topic, and of the cluster."""
    facts = list(facts)
    of_topic = (
        fact
        for fact in facts
        if fact.kind == "topic_settings_changed"
        and fact.topic == topic
        and incarnations.at(topic, fact.at) == topic_id
    )
    of_cluster = (fact for fact in facts if fact.kind == "cluster_settings_changed")
    return PrintedSettings(_agreed(of_cluster), _agreed(of_topic))


def _agreed(facts: Iterable[LogLineFact]) -> dict[str, str | None]:
    """Every setting that some line names, with its value where all lines agree."""
    printed = [dict(fact.fields["settings"]) for fact in facts]
    names = {name for settings in printed for name in settings}
    result: dict[str, str | None] = {}
    for name in names:
        values = {settings.get(name) for settings in printed}
        result[name] = values.pop() if len(values) == 1 else None
    return result
