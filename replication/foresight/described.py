"""Reads what an operator can print of a cluster's settings, each file known by its content.

kafka-topics --describe, kafka-configs --describe [--all] of topics and brokers (both wordings),
server.properties, kafka-features describe, kafka-broker-api-versions, and a plain list of
`BROKER RACK`.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from replication.evidence.text_lines import text_lines
from replication.evidence.tools.topic_descriptions import (
    PartitionDescription,
    TopicDescription,
    is_topic_description,
    read_topic_descriptions,
)
from replication.evidence.unreadable import Unreadable

_HEADING = re.compile(
    r"^\s*(?:All|Dynamic) configs for (topic|broker) (\S+) are:"
    r"|^\s*(Default) configs for (?:brokers|broker) in the cluster are:"
)
_OLD_HEADING = re.compile(
    r"^\s*Configs for (topic|topics|broker|brokers)[: ]'?([^' ]+)'? are (.*)$"
)
_VALUE = re.compile(r"^\s+([a-z][a-z0-9.]*[a-z0-9])=(.*?)(?:\s+sensitive=(?:true|false|null).*)?$")
_PROPERTY = re.compile(r"^\s*([a-z][a-z0-9]*(?:\.[a-z0-9]+)+)\s*[=:]\s*(.*?)\s*$")
_FEATURE = re.compile(r"^\s*Feature:\s*(\S+)\s.*FinalizedVersionLevel:\s*(\S+)")
_API_VERSIONS = re.compile(r"\(id:\s*(\d+)\s+rack:\s*(\S+?)(?:\s+isFenced:\s*\S+)?\)")
_RACK = re.compile(r"^\s*(\d{1,9})\s*(?:[,;:=\t]|\s)\s*([^\s,;]+)\s*$")
_MEGABYTES = 1 << 20
_OTHERS = 20


@dataclass(slots=True)
class Described:
    """What was printed. topics, brokers: settings by name, of those that have some; of_all_brokers:
    the cluster's; static: server.properties by broker id, None where it names none. racks: by
    broker id. features: finalized levels. partitions: the assignments as last described.
    left_aside: files and lines that nothing was read of, with the reason."""

    topics: dict[str, dict[str, str]] = field(default_factory=dict)
    brokers: dict[int, dict[str, str]] = field(default_factory=dict)
    of_all_brokers: dict[str, str] = field(default_factory=dict)
    static: dict[int | None, dict[str, str]] = field(default_factory=dict)
    racks: dict[int, str] = field(default_factory=dict)
    features: dict[str, str] = field(default_factory=dict)
    partitions: dict[tuple[str, int], tuple[int, ...]] = field(default_factory=dict)
    left_aside: list[Unreadable] = field(default_factory=list)

    @property
    def kinds(self) -> list[str]:
        """What of it is there beside topics with their partitions, in words."""
        told = {
            "settings of brokers": self.brokers or self.of_all_brokers or self.static,
            "settings of topics": self.topics,
            "features": self.features,
            "racks": self.racks,
        }
        return [words for words, found in told.items() if found]

    @property
    def tells_release(self) -> bool:
        """Whether some setting or feature names the release that the brokers speak."""
        settings = [*self.static.values(), *self.brokers.values(), self.of_all_brokers]
        return "metadata.version" in self.features or any(
            "inter.broker.protocol.version" in values for values in settings
        )


def read(paths: Iterable[Path]) -> Described:
    """Everything that the files, and the files below folders, print."""
    found = Described()
    for path in _files(paths):
        if is_topic_description(path):
            _read_topics(path, found)
        else:
            _read_settings(path, found)
    return found


def _files(paths: Iterable[Path]) -> list[Path]:
    result: list[Path] = []
    for path in paths:
        below = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
        result += below
    return result


def _read_topics(path: Path, found: Described) -> None:
    for item in read_topic_descriptions(path):
        if isinstance(item, Unreadable):
            found.left_aside.append(item)
        elif isinstance(item, TopicDescription):
            found.topics.setdefault(item.topic, {}).update(item.configs)
        elif isinstance(item, PartitionDescription):
            removed = set(item.removing)
            kept = tuple(r for r in item.replicas if r not in removed)
            found.partitions[item.topic, item.partition] = kept


def _read_settings(path: Path, found: Described) -> None:
    """One file of settings, features or racks: what its lines are tells which."""
    current: dict[str, str] | None = None
    properties: dict[str, str] = {}
    racks: dict[int, str] = {}
    printed = others = 0
    for _, line in text_lines(path, _MEGABYTES):
        if isinstance(line, Unreadable):
            found.left_aside.append(line)
            return
        text = line.rstrip("\r\n")
        if not text.strip() or text.lstrip().startswith(("#", "!")):
            continue
        heading = _heading(text, found)
        if heading is not None:
            current, printed = heading, printed + 1
        elif current is not None and (value := _VALUE.match(text)):
            current[value[1]] = value[2]
        elif feature := _FEATURE.match(text):
            found.features[feature[1]], printed = feature[2], printed + 1
        elif nodes := _API_VERSIONS.findall(text):
            found.racks |= {int(n): rack for n, rack in nodes if rack != "null"}
            printed += 1
        elif rack := _RACK.match(text):
            racks[int(rack[1])] = rack[2]
        elif setting := _PROPERTY.match(text):
            properties[setting[1]] = setting[2]
        else:
            others += 1
        # A broker's log prints settings, too, among other lines.
        if not printed and others > _OTHERS:
            break
    if not printed and not others and properties and not racks:
        _keep_properties(properties, found)
    elif not printed and not others and racks and not properties:
        found.racks |= racks
    elif not printed:
        reason = (
            "this is no output of kafka-topics, kafka-configs or kafka-features, no "
            "server.properties and no list of `BROKER RACK`"
        )
        found.left_aside.append(Unreadable(str(path), "file", reason))


def _heading(text: str, found: Described) -> dict[str, str] | None:
    """The settings that the lines after a heading belong to; older tools print them in it."""
    if match := _HEADING.match(text):
        if match[3]:
            return found.of_all_brokers
        return _settings_of(match[1], match[2], found)
    if match := _OLD_HEADING.match(text):
        settings = _settings_of(match[1].rstrip("s"), match[2], found)
        for piece in match[3].split(","):
            name, equals, value = piece.strip().partition("=")
            if equals:
                settings[name] = value
        return settings
    return None


def _settings_of(kind: str, name: str, found: Described) -> dict[str, str]:
    if kind == "topic":
        return found.topics.setdefault(name, {})
    if name.isdecimal():
        return found.brokers.setdefault(int(name), {})
    return found.of_all_brokers


def _keep_properties(properties: dict[str, str], found: Described) -> None:
    number = properties.get("node.id", properties.get("broker.id", ""))
    broker = int(number) if number.isdecimal() else None
    found.static.setdefault(broker, {}).update(properties)
    if broker is not None and "broker.rack" in properties:
        found.racks[broker] = properties["broker.rack"]
