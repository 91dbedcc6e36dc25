"""Replicas of which a broker's log directory has nothing left: a disk that was formatted anew.

With KRaft a log directory has a name, in `meta.properties`, before anything else is in it, and a
broker that ran in it leaves checkpoints there at once. So one that has its name alone, and that the
controllers count replicas in, is empty: its broker comes back with nothing of them. (ZooKeeper's
brokers write the name themselves: there an emptied directory is no evidence of anything.)
"""

from collections.abc import Iterator, Mapping, Sequence

from replication.evidence.collecting.collection import BrokerDirectory
from replication.evidence.joining.copies import Copy
from replication.evidence.joining.one_cluster import Key
from replication.evidence.log_directories.log_directory import NothingLeft
from replication.evidence.metadata_log.history import MetadataHistory, PartitionRegistration


def emptied_replicas(
    directories: Sequence[BrokerDirectory],
    history: MetadataHistory,
    copied: Mapping[Key, Sequence[Copy]],
) -> Iterator[tuple[Key, Copy]]:
    """The empty copies. copied: all others; where there is one of a replica, that one counts."""
    bare = [d for d in directories if _has_its_name_alone(d)]
    now: dict[tuple[str, int], PartitionRegistration] = {}
    for change in history.changes if bare else ():
        now[change.after.topic_id, change.after.partition] = change.after
    for directory in bare:
        several = _log_directories(history, directory.broker) > 1
        for told in now.values():
            topic = history.topics.get(told.topic_id)
            if topic is None or topic.deleted_at is not None:
                continue
            key = (topic.name, told.topic_id, told.partition)
            if not _is_in(told, directory, several=several):
                continue
            if any(c.broker == directory.broker and not c.is_dump for c in copied.get(key, ())):
                continue
            yield key, _nothing(directory, key)


def _has_its_name_alone(found: BrokerDirectory) -> bool:
    directory = found.directory
    others = directory.partitions or directory.named or directory.has_cluster_metadata
    return directory.meta is not None and not others and not directory.unreadable


def _log_directories(history: MetadataHistory, broker: int) -> int:
    """How many a broker said that it has, the last time; 0 before 3.7, where it can have one."""
    told = [len(b.log_dirs) for b in history.brokers if b.broker == broker if b.log_dirs]
    return told[-1] if told else 0


def _is_in(told: PartitionRegistration, found: BrokerDirectory, *, several: bool) -> bool:
    """Whether the controllers have the broker's replica in this directory."""
    if found.broker not in told.replicas:
        return False
    if not several:
        return True
    place, meta = told.replicas.index(found.broker), found.directory.meta
    assigned = told.directories[place : place + 1]
    return meta is not None and assigned == (meta.directory_id,)


def _nothing(found: BrokerDirectory, key: Key) -> Copy:
    topic, topic_id, partition = key
    empty = NothingLeft(
        path=found.directory.path / f"{topic}-{partition}",
        topic=topic,
        partition=partition,
        kind="replica",
        topic_id=topic_id,
        log_start_offset=0,
        first_batch_offset=None,
        log_end_offset=0,
        end_is_certain=True,
        batch_count=0,
        spans=(),
        epoch_entries=None,
        high_watermark=None,
        recovery_point=None,
        last_snapshot_offset=None,
        max_timestamp=None,
        unreadable=(),
        segments=(),
    )
    return Copy(found.broker, empty, found.directory, clean=False)
