"""What the controllers themselves recorded of each partition, in KRaft's log or in ZooKeeper."""

from dataclasses import dataclass

from replication.evidence.joining.lifetimes import Incarnations
from replication.evidence.joining.one_cluster import INTERNAL, Key
from replication.evidence.joining.registrations import Recorded, from_metadata, from_zookeeper
from replication.evidence.metadata_log.history import MetadataHistory, PartitionChange
from replication.evidence.zookeeper.history import TopicLife, ZooKeeperHistory


@dataclass(frozen=True, slots=True)
class RecordedHistory:
    """One partition's registrations in order. is_whole: none is missing."""

    recorded: tuple[Recorded, ...] = ()
    is_whole: bool = False
    by_zookeeper: bool = False


def from_metadata_log(history: MetadataHistory) -> dict[Key, RecordedHistory]:
    """Each partition's history in a copy of the metadata log."""
    changes: dict[Key, list[PartitionChange]] = {}
    for change in history.changes:
        after = change.after
        if after.topic is not None:
            changes.setdefault((after.topic, after.topic_id, after.partition), []).append(change)
    is_whole = history.first_offset == 0 and history.damaged_from is None
    return {
        key: RecordedHistory(tuple(from_metadata(mine, history.path)), is_whole)
        for key, mine in changes.items()
    }


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
