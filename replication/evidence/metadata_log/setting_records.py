"""Settings as the metadata log changes them, in its order."""

from collections.abc import Iterable
from typing import NamedTuple

from replication.evidence.metadata_log.history import ConfigChange
from replication.evidence.metadata_log.log_parts import PlacedRecord

_UNCLEAN = "unclean.leader.election.enable"
# ConfigRecord's resource types that matter here (ConfigResource.Type).
_OF_TOPIC, _OF_BROKER = 2, 4


class OneSetting(NamedTuple):
    """`name`: the topic, or the broker's id ("" for all brokers)."""

    of_topic: bool
    name: str
    change: ConfigChange


def setting(entry: PlacedRecord) -> OneSetting | None:
    """What a ConfigRecord sets; None where it is of something else than a topic or a broker."""
    values = entry.record.values
    if values["resource_type"] not in (_OF_TOPIC, _OF_BROKER):
        return None
    change = ConfigChange(entry.at, entry.offset, values["name"], values["value"])
    return OneSetting(values["resource_type"] == _OF_TOPIC, values["resource_name"], change)


def removed_with_topic(
    history: Iterable[ConfigChange], at: int, metadata_offset: int
) -> list[ConfigChange]:
    """The end of all settings that a removed topic had."""
    return [
        ConfigChange(at, metadata_offset, key, None)
        for key, value in _latest(history).items()
        if value is not None
    ]


def unclean_allowed(of_topic: Iterable[ConfigChange], of_cluster: Iterable[ConfigChange]) -> bool:
    """By the dynamic settings; a controller's own file is not in the metadata log."""
    said = _latest(of_topic).get(_UNCLEAN) or _latest(of_cluster).get(_UNCLEAN)
    return (said or "false").lower() == "true"


def _latest(history: Iterable[ConfigChange]) -> dict[str, str | None]:
    return {change.key: change.value for change in history}
