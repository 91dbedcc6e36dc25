"""Settings that a broker prints at its start, and those that change while it runs."""

import re
from collections.abc import Iterable

from replication.evidence.broker_logs.line_families.family import Found, LineFamily, example

# What the analysis asks a broker's configuration; everything else in the dump is left out.
_KEPT = frozenset(
    (
        "broker.id",
        "node.id",
        "process.roles",
        "log.dirs",
        "log.dir",
        "min.insync.replicas",
        "unclean.leader.election.enable",
        "inter.broker.protocol.version",
        "log.message.format.version",
        "replica.lag.time.max.ms",
        "replica.lag.max.messages",
        "log.cleanup.policy",
        "controlled.shutdown.enable",
        "default.replication.factor",
        "zookeeper.connect",
        "auto.leader.rebalance.enable",
        "leader.imbalance.per.broker.percentage",
    )
)
_KEPT_PREFIX = "eligible.leader.replicas"

# The dump: this in the first line of the message, then `\tname = value` lines.
DUMP_TITLE = "KafkaConfig values:"


def settings_of_dump(lines: Iterable[str]) -> dict[str, str]:
    """The kept settings of a `KafkaConfig values:` dump; values as printed (`null` is left out)."""
    values: dict[str, str] = {}
    for line in lines:
        name, equals, value = line.strip().partition(" = ")
        if not equals:
            # An empty value ends the line at the equals sign.
            name, equals, value = line.strip().partition(" =")
        kept = name in _KEPT or name.startswith(_KEPT_PREFIX)
        if equals and kept and value != "null":
            values[name] = value
    return values


_PAIR = re.compile(r"(?:^|, ?)([\w.-]+)(?: -> |=)((?:(?!, ?[\w.-]+(?: -> |=)).)*)")


def pairs(text: str) -> dict[str, str]:
    """`{a -> b, c -> d}` and `{a=b, c=d}` alike; values may hold commas."""
    bare = text.strip().removeprefix("Map(").removesuffix(")").strip("{}")
    return {match[1]: match[2].strip() for match in _PAIR.finditer(bare)}


def _changed(match: re.Match[str]) -> list[Found]:
    groups = match.groupdict()
    node = groups.get("node")
    fields = {"settings": pairs(groups["settings"])}
    return [Found(fields, None if node is None else int(node), groups.get("topic"))]


_TOPIC_CHANGED = LineFamily(
    kind="topic_settings_changed",
    versions="3.3 - 4.3 (KRaft)",
    loggers=("DynamicConfigPublisher",),
    words=("Updating",),
    trigger="Updating topic ",
    pattern=r"^\[DynamicConfigPublisher \w+ id=(?P<node>\d+)\] Updating topic (?P<topic>\S+) with new "
    r"configuration : (?P<settings>.*)$",
    convert=_changed,
    examples=(
        example(
            "[DynamicConfigPublisher broker id=1] Updating topic t with new configuration : "
            "min.insync.replicas -> 1,unclean.leader.election.enable -> true",
            node=1, topic="t",
            settings={"min.insync.replicas": "1", "unclean.leader.election.enable": "true"},
        ),
    ),
)  # fmt: skip

_CLUSTER_CHANGED = LineFamily(
    kind="cluster_settings_changed",
    versions="3.3 - 4.3 (KRaft)",
    loggers=("DynamicConfigPublisher",),
    words=("Updating",),
    trigger="Updating cluster configuration",
    pattern=r"^\[DynamicConfigPublisher \w+ id=(?P<node>\d+)\] Updating cluster configuration : "
    r"(?P<settings>.*)$",
    convert=_changed,
    examples=(
        example(
            "[DynamicConfigPublisher broker id=1] Updating cluster configuration : "
            "min.insync.replicas -> 1",
            node=1, settings={"min.insync.replicas": "1"},
        ),
    ),
)  # fmt: skip

_OVERRIDE = LineFamily(
    kind="topic_settings_changed",
    versions="0.10 - 3.9 (ZooKeeper)",
    loggers=("DynamicConfigManager", "ZkConfigManager"),
    words=("Processing",),
    trigger="entityPath: topics/",
    pattern=r"^Processing override for entityPath: topics/(?P<topic>\S+) with config: "
    r"(?P<settings>.*)$",
    convert=_changed,
    examples=(
        example(
            "Processing override for entityPath: topics/t with config: Map(min.insync.replicas -> "
            "2, cleanup.policy -> compact,delete)",
            topic="t", settings={"min.insync.replicas": "2", "cleanup.policy": "compact,delete"},
        ),
    ),
)  # fmt: skip

_BROKER = re.compile(r"[0-9]{1,9}")


def _dumped(dump: str) -> Found:
    """The settings, and the broker or controller whose they are."""
    values = settings_of_dump(dump.split("\n"))
    told = (values.get(name, "") for name in ("node.id", "broker.id"))
    nodes = [int(text) for text in told if _BROKER.fullmatch(text)]
    return Found({"values": values}, nodes[0] if nodes else None)


_DUMP = LineFamily(
    kind="settings",
    versions="0.10 - 4.3; the reader hands the whole dump over as one message",
    loggers=("KafkaConfig", "AbstractConfig"),
    words=("KafkaConfig",),
    trigger=DUMP_TITLE,
    pattern=r"(?s)^KafkaConfig values: *(?P<dump>.*)$",
    convert=lambda match: [_dumped(match["dump"])],
    examples=(
        example(
            "KafkaConfig values: \n\tadvertised.host.name = null\n\tbroker.id = 1\n"
            "\tlog.dirs = /var/lib/kafka/b1/data\n\tmin.insync.replicas = 1\n\tnode.id = null\n",
            node=1,
            values={
                "broker.id": "1", "log.dirs": "/var/lib/kafka/b1/data", "min.insync.replicas": "1",
            },
        ),
    ),
)  # fmt: skip

FAMILIES: tuple[LineFamily, ...] = (_TOPIC_CHANGED, _CLUSTER_CHANGED, _OVERRIDE, _DUMP)
