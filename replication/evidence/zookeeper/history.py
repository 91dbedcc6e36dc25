"""From the steps of ZooKeeper's files to the history of each partition's leader and ISR.

Snapshots and logs of one or of all servers of an ensemble are told apart by nothing: what they say
of one transaction is the same, so they are put together by transaction and read in that order.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from replication.evidence.zookeeper.files import KAFKAS, LogEnd, ZnodeChange


@dataclass(frozen=True, slots=True)
class PartitionStateChange:
    """A partition's state znode took this content. `version` is its own (zkVersion), the partition
    epoch; `created`: this is the znode's first state. `byte_offset`: None from a snapshot."""

    topic: str
    partition: int
    version: int
    leader: int | None
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int | None
    zxid: int
    at: int
    file: str
    byte_offset: int | None


@dataclass(frozen=True, slots=True)
class TopicLife:
    """One life of a topic's name, from its creation to its deletion (zxid and ms; None where not
    seen). `topic_id` is None before Kafka 2.8. `replicas`: by partition, the last assignment."""

    topic: str
    topic_id: str | None
    created_zxid: int | None
    created_at: int | None
    deleted_at: int | None
    replicas: dict[int, tuple[int, ...]]
    states: dict[int, tuple[PartitionStateChange, ...]]

    def is_whole(self, partition: int) -> bool:
        """Whether every state the partition ever had is here: versions without a gap from 0 on."""
        versions = [s.version for s in self.states.get(partition, ())]
        return bool(versions) and versions == list(range(versions[-1] + 1))


@dataclass(frozen=True, slots=True)
class SettingsWritten:
    """All settings of a topic, or of all brokers (scope ""), from a moment on."""

    scope: str
    at: int | None
    settings: dict[str, str]


@dataclass(slots=True)
class ZooKeeperHistory:
    """What is known of one cluster. `settings`: by topic, "" for the brokers' defaults, name to
    value; `settings_written`: each time that they were, in order. `brokers`: those that ever
    registered. `controller_epoch`: the last one, which counts the controllers' elections.
    `torn`: a log whose later transactions cannot be read; None where there is none."""

    cluster_id: str | None = None
    topics: list[TopicLife] = field(default_factory=list)
    settings: dict[str, dict[str, str]] = field(default_factory=dict)
    settings_written: list[SettingsWritten] = field(default_factory=list)
    files: tuple[str, ...] = ()
    brokers: set[int] = field(default_factory=set)
    controller_epoch: int | None = None
    torn: str | None = None


def histories(read: Iterable[ZnodeChange | LogEnd]) -> list[ZooKeeperHistory]:
    """One history per chroot that holds a cluster; what was read of several files in any order."""
    told = list(read)
    steps = [one for one in told if isinstance(one, ZnodeChange)]
    torn = _torn([one for one in told if isinstance(one, LogEnd)], steps)
    changes: dict[tuple[int, str, int | None], ZnodeChange] = {}
    for step in steps:
        key = (step.zxid, step.path, step.version)
        # A log says where; a snapshot has the same and no place.
        if key not in changes or changes[key].byte_offset is None:
            changes[key] = step
    by_root: dict[str, list[ZnodeChange]] = {}
    for change in changes.values():
        found = KAFKAS.match(change.path)
        if found:
            by_root.setdefault(found["root"], []).append(change)
    result = []
    for _, mine in sorted(by_root.items()):
        builder = _Builder()
        for step in sorted(mine, key=lambda s: s.zxid):
            builder.take(step)
        history = builder.done()
        history.files = tuple(sorted({c.file for c in mine}))
        history.torn = torn
        if history.topics:
            result.append(history)
    return result


def _torn(ends: list[LogEnd], steps: list[ZnodeChange]) -> str | None:
    """The log that breaks off where no other file goes on."""
    reached = max((z for z in (*(e.zxid for e in ends), *(s.zxid for s in steps)) if z), default=0)
    torn = [e.file for e in ends if e.is_torn and (e.zxid is None or e.zxid >= reached)]
    return min(torn, default=None)


@dataclass(slots=True)
class _Life:
    created_zxid: int | None = None
    created_at: int | None = None
    topic_id: str | None = None
    replicas: dict[int, tuple[int, ...]] = field(default_factory=dict)
    states: dict[int, dict[int, PartitionStateChange]] = field(default_factory=dict)


class _Builder:
    def __init__(self) -> None:
        self.history = ZooKeeperHistory()
        self.lives: dict[str, _Life] = {}

    def take(self, step: ZnodeChange) -> None:
        found = KAFKAS.match(step.path)
        if found is None:
            return
        if found["topic"] is not None and found["partition"] is None:
            self._topic(found["topic"], step)
        elif found["topic"] is not None:
            self._state(found["topic"], int(found["partition"]), step)
        elif found["cluster"] is not None:
            told = _json(step.data).get("id")
            self.history.cluster_id = told if isinstance(told, str) else self.history.cluster_id
        elif found["broker"] is not None:
            self.history.brokers.add(int(found["broker"]))
        elif found["controller"] is not None:
            text = (step.data or b"").decode("ascii", "replace")
            if text.isdecimal():
                self.history.controller_epoch = int(text)
        elif found["kind"] is not None:
            self._setting("" if found["kind"] == "brokers" else found["name"], found["name"], step)

    def _topic(self, topic: str, step: ZnodeChange) -> None:
        if step.data is None:
            self._end(topic, step.at)
            return
        content = _json(step.data)
        if step.version == 0 and step.byte_offset is not None and topic in self.lives:
            known = self.lives[topic]
            if known.created_zxid is not None and known.created_zxid != step.zxid:
                # Its deletion was not seen: the name begins anew.
                self._end(topic, None)
        life = self.lives.setdefault(topic, _Life())
        if step.version == 0 and step.byte_offset is not None:
            life.created_zxid, life.created_at = step.zxid, step.at
        life.topic_id = content.get("topic_id") or life.topic_id
        for number, replicas in (content.get("partitions") or {}).items():
            if number.isdecimal() and isinstance(replicas, list):
                life.replicas[int(number)] = tuple(r for r in replicas if isinstance(r, int))

    def _state(self, topic: str, partition: int, step: ZnodeChange) -> None:
        if step.data is None or step.version is None:
            return
        content = _json(step.data)
        leader, leader_epoch = content.get("leader"), content.get("leader_epoch")
        isr = content.get("isr")
        if not isinstance(leader, int) or not isinstance(leader_epoch, int):
            return
        controller_epoch = content.get("controller_epoch")
        states = self.lives.setdefault(topic, _Life()).states.setdefault(partition, {})
        if step.version == 0 and states and step.byte_offset is not None:
            states.clear()
        states[step.version] = PartitionStateChange(
            topic=topic,
            partition=partition,
            version=step.version,
            leader=None if leader < 0 else leader,
            leader_epoch=leader_epoch,
            isr=tuple(r for r in isr if isinstance(r, int)) if isinstance(isr, list) else (),
            controller_epoch=controller_epoch if isinstance(controller_epoch, int) else None,
            zxid=step.zxid,
            at=step.at,
            file=step.file,
            byte_offset=step.byte_offset,
        )

    def _setting(self, scope: str, name: str, step: ZnodeChange) -> None:
        if not scope and name != "<default>":
            return
        content = _json(step.data).get("config")
        values = content if isinstance(content, dict) else {}
        settings = {k: v for k, v in values.items() if isinstance(v, str)}
        self.history.settings[scope] = settings
        self.history.settings_written.append(SettingsWritten(scope, step.at, settings))

    def _end(self, topic: str, at: int | None) -> None:
        life = self.lives.pop(topic, None)
        if life is not None:
            self.history.topics.append(_told(topic, life, at))
        self.history.settings.pop(topic, None)
        self.history.settings_written.append(SettingsWritten(topic, at, {}))

    def done(self) -> ZooKeeperHistory:
        for topic, life in sorted(self.lives.items()):
            self.history.topics.append(_told(topic, life, None))
        return self.history


def _told(topic: str, life: _Life, deleted_at: int | None) -> TopicLife:
    states = {p: tuple(known[v] for v in sorted(known)) for p, known in life.states.items()}
    return TopicLife(
        topic, life.topic_id, life.created_zxid, life.created_at, deleted_at, life.replicas, states
    )


def _json(data: bytes | None) -> dict[str, Any]:
    try:
        found = json.loads(data or b"{}")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
