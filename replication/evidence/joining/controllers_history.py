"""What the controllers themselves recorded of each partition, in KRaft's log or in ZooKeeper."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from replication.evidence.joining.lifetimes import Incarnations
from replication.evidence.joining.one_cluster import INTERNAL, Key
from replication.evidence.joining.registrations import Recorded, from_metadata, from_zookeeper
from replication.evidence.metadata_log.history import (
    BrokerChange,
    MetadataHistory,
    PartitionChange,
    PartitionRegistration,
)
from replication.evidence.zookeeper.history import TopicLife, ZooKeeperHistory

# Ids that name no directory: not assigned, lost, of a broker that migrates (DirectoryId).
NO_DIRECTORY = {f"AAAAAAAAAAAAAAAAAAAAA{last}" for last in "AQg"}


@dataclass(frozen=True, slots=True)
class RecordedHistory:
    """One partition's registrations in order. is_whole: none is missing. in_another_directory:
    brokers whose replica was given another directory while it was in sync, and when, in words."""

    recorded: tuple[Recorded, ...] = ()
    is_whole: bool = False
    by_zookeeper: bool = False
    in_another_directory: Mapping[int, str] = field(default_factory=dict)


def from_metadata_log(history: MetadataHistory) -> dict[Key, RecordedHistory]:
    """Each partition's history in a copy of the metadata log."""
    changes: dict[Key, list[PartitionChange]] = {}
    for change in history.changes:
        after = change.after
        if after.topic is not None:
            changes.setdefault((after.topic, after.topic_id, after.partition), []).append(change)
    is_whole = history.first_offset == 0 and history.damaged_from is None
    return {
        key: RecordedHistory(
            tuple(from_metadata(mine, history.path)),
            is_whole,
            in_another_directory=_in_another_directory(mine, history),
        )
        for key, mine in changes.items()
    }


def _in_another_directory(
    changes: Iterable[PartitionChange], history: MetadataHistory
) -> dict[int, str]:
    """Replicas that the controllers' log gives another directory while they are in the ISR, or
    eligible: a disk that was replaced. A replica that its broker moves has both directories."""
    found: dict[int, str] = {}
    for change in changes:
        before, after = change.before, change.after
        if before is None or after.directories == before.directories:
            continue
        had, has = _directories(before), _directories(after)
        for broker in sorted({*before.isr, *before.elr} & had.keys() & has.keys()):
            both = {had[broker], has[broker]}
            if len(both) < 2 or both & NO_DIRECTORY:
                continue
            if not both <= _registered(history.brokers, broker, change.metadata_offset):
                found[broker] = f"{history.path} at offset {change.metadata_offset}"
    return found


def _directories(registration: PartitionRegistration) -> dict[int, str]:
    """Each replica's directory, from 3.7 on."""
    return dict(zip(registration.replicas, registration.directories, strict=False))


def _registered(brokers: Iterable[BrokerChange], broker: int, until: int) -> set[str]:
    """The directories with which a broker last registered up to a metadata offset."""
    registered = [
        change
        for change in brokers
        if (change.broker, change.kind) == (broker, "registered") and change.metadata_offset < until
    ]
    return set(registered[-1].log_dirs) if registered else set()


def from_znodes(
    zookeeper: ZooKeeperHistory, incarnations: Incarnations
) -> tuple[dict[Key, RecordedHistory], list[str]]:
    """Each partition's history in ZooKeeper, and notes; of a name created anew without topic ids,
    the last life's."""
    notes: list[str] = []
    result: dict[Key, RecordedHistory] = {}
    lives: dict[tuple[str, str], list[TopicLife]] = {}
    for life in zookeeper.topics:
        lives.setdefault((life.topic, life.topic_id or ""), []).append(life)
    for (topic, topic_id), found in lives.items():
        last = found[-1]
        if len(found) > 1:
            notes.append(
                f"{topic}: ZooKeeper had {len(found)} topics of this name one after the other, "
                "without ids; only the last one's history is used"
            )
        if topic in INTERNAL:
            continue
        known = topic_id or incarnations.at(topic, None)
        for number, states in last.states.items():
            result[topic, known, number] = RecordedHistory(
                tuple(from_zookeeper(states, last.replicas.get(number))),
                last.is_whole(number) and len(found) == 1,
                by_zookeeper=True,
            )
    return result, notes
