"""From when on which settings were in force, where the controllers' own records tell it.

The metadata log and ZooKeeper's directory hold every change with its place. What a topic has of its
own counts over what all brokers were given, and that over the brokers' files; what is taken back
gives way to the next below.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from replication.evidence.metadata_log.history import MetadataHistory
from replication.evidence.zookeeper.history import ZooKeeperHistory


@dataclass(frozen=True, slots=True)
class InForce:
    """Settings by Kafka's names (None: not known) from a moment on. at: ms since the Unix epoch.

    metadata_offset: the place in the controllers' log, None with ZooKeeper and for the first.
    """

    values: dict[str, str | None] = field(default_factory=dict)
    at: int | None = None
    metadata_offset: int | None = None


@dataclass(frozen=True, slots=True)
class _Change:
    at: int | None
    metadata_offset: int | None
    of_topic: bool
    values: Mapping[str, str | None]
    whole: bool


def in_time(
    names: Iterable[str],
    topic: str,
    of_brokers: Mapping[str, str],
    history: MetadataHistory | None,
    zookeeper: ZooKeeperHistory | None,
) -> list[InForce]:
    """What was in force, oldest first; one entry where nothing changed.

    names: those that are asked for. of_brokers: the brokers' files, by the same names.
    """
    asked = tuple(names)
    own: dict[bool, dict[str, str | None]] = {False: {}, True: {}}
    result = [InForce({name: of_brokers.get(name) for name in asked})]
    for change in [*_recorded(topic, history), *_kept(topic, zookeeper)]:
        if change.whole:
            own[change.of_topic] = dict(change.values)
        else:
            own[change.of_topic].update(change.values)
        values: dict[str, str | None] = {}
        for name in asked:
            found = (own[True].get(name), own[False].get(name), of_brokers.get(name))
            values[name] = next((value for value in found if value is not None), None)
        if values != result[-1].values:
            result.append(InForce(values, change.at, change.metadata_offset))
    return result


def _recorded(topic: str, history: MetadataHistory | None) -> list[_Change]:
    """The changes in the metadata log, of all brokers' settings and of the topic's."""
    if history is None:
        return []
    changes = [
        _Change(c.at, c.metadata_offset, of_topic, {c.key: c.value}, False)
        for of_topic, configs in (
            (False, history.cluster_configs.get("", ())),
            (True, history.topic_configs.get(topic, ())),
        )
        for c in configs
    ]
    return sorted(changes, key=lambda c: c.metadata_offset or 0)


def _kept(topic: str, zookeeper: ZooKeeperHistory | None) -> list[_Change]:
    """The znodes of the settings as they were written; each holds all settings of its scope."""
    if zookeeper is None:
        return []
    return [
        _Change(kept.at, None, kept.scope == topic, kept.settings, True)
        for kept in zookeeper.settings_written
        if kept.scope in ("", topic)
    ]
