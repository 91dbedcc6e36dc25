"""Reads the partition states that Kafka prints inside many lines.

One reader for all renderings: `PartitionState(..)` of LeaderAndIsr and UpdateMetadata requests,
`(Leader:2,ISR:2,1,LeaderEpoch:0,..)` of controllers, `PartitionRegistration(..)` of KRaft,
`LeaderAndIsr(..)`, and the JSON of controllers up to 0.11.
"""

import re

from replication.evidence.broker_logs.line_families.family import (
    Fields,
    Found,
    found_by_groups,
    read_field,
)

_LIST = r"(?:List|Vector|ArrayBuffer|Set|HashSet)?"
_NUMBERS = r"\[?([\d, ]*)\]?"
_PATTERNS: dict[str, tuple[re.Pattern[str], ...]] = {
    "leader": (re.compile(r'(?:\bleader=|\(Leader:|"leader":)(-?\d+)'),),
    "leader_epoch": (re.compile(r'(?:\bleaderEpoch=|\bLeaderEpoch:|"leader_epoch":)(-?\d+)'),),
    "isr": (
        re.compile(
            r"\bisrWithBrokerEpoch=" + _LIST + r"[(\[]((?:BrokerState\([^)]*\)(?:, )?)*)[\])]"
        ),
        re.compile(r"\bisr=" + _LIST + r"[(\[]([\d, ]*)[\])]"),
        re.compile(r"\bisr=([\d,]*)(?=, )"),
        re.compile(r"\bISR:([\d,]*?)(?=,[A-Z]|\)|$)"),
        re.compile(r'"isr":\[([\d, ]*)\]'),
    ),
    "partition_epoch": (
        re.compile(r"\b(?:zkVersion=|partitionEpoch=|ZkVersion:|PartitionEpoch:)(-?\d+)"),
    ),
    "controller_epoch": (re.compile(r"\b(?:controllerEpoch=|ControllerEpoch:)(-?\d+)"),),
    "replicas": (
        re.compile(r"\breplicas=" + _NUMBERS),
        re.compile(r"\bAllReplicas:([\d,]*)"),
    ),
    "adding": (re.compile(r"\baddingReplicas=" + _NUMBERS),),
    "removing": (re.compile(r"\bremovingReplicas=" + _NUMBERS),),
    "elr": (re.compile(r"\belr=" + _NUMBERS),),
    "last_known_elr": (re.compile(r"\blastKnownElr=" + _NUMBERS),),
    "is_new": (re.compile(r"\bisNew=(\w+)"),),
}
_RECOVERING = re.compile(r"(?:leaderRecoveryState=|LeaderRecoveryState:)(\w+)")
_NAMED = re.compile(r"topicName='([^']*)', partitionIndex=(\d+)")


def partition_state(text: str) -> Fields:
    """The fields that `text` prints, named as in the vocabulary; `recovering` where the release
    prints a leader recovery state (0 and 1 are the wire's RECOVERED and RECOVERING).
    """
    fields: Fields = {}
    for name, patterns in _PATTERNS.items():
        for pattern in patterns:
            match = pattern.search(text)
            if match:
                fields[name] = read_field(name, match[1])
                break
    recovering = _RECOVERING.search(text)
    if recovering:
        fields["recovering"] = recovering[1] in ("1", "RECOVERING")
    # KRaft brokers fill the ZooKeeper controller's epoch with -1.
    if fields.get("controller_epoch", 0) is None:
        del fields["controller_epoch"]
    return fields


def named_partition(text: str) -> tuple[str, int] | None:
    """Topic and partition where the state itself names them (requests since 2.4)."""
    match = _NAMED.search(text)
    return (match[1], int(match[2])) if match else None


def found_with_state(match: re.Match[str]) -> list[Found]:
    """What a line's groups give, the state in its group `state` read into fields."""
    found = found_by_groups(match)
    state = found.fields.pop("state", "")
    named = named_partition(state)
    topic, partition = (found.topic, found.partition) if named is None else named
    return [Found({**partition_state(state), **found.fields}, found.node, topic, partition)]
