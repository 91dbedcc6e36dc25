"""Replicas of which a broker's log directory has nothing: its disk was replaced.

With KRaft a log directory is formatted before its broker starts, which gives it an id of its own in
`meta.properties`; from 3.7 on the controllers know the ids of a broker's directories. So one that
has its name alone, by an id that they do not know, is new: its broker comes back with nothing. By a
known id either the disk was emptied or nothing else was handed over: that is told in a note, and
nothing rests on it. (ZooKeeper's brokers write the name themselves: no id tells anything.)
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
    new = [d for d in directories if _has_its_name_alone(d) and _is_new(d, history)]
    for directory in new:
        for key in _replicas_of(directory, history):
            if not any(c.broker == directory.broker and not c.is_dump for c in copied.get(key, ())):
                yield key, _nothing(directory, key)


def names_alone(directories: Sequence[BrokerDirectory], history: MetadataHistory) -> Iterator[str]:
    """A note for each directory that may have been emptied, or of which only the name is here."""
    known = {d.broker for d in directories if not _has_its_name_alone(d)}
    for d in directories:
        bare = _has_its_name_alone(d) and d.broker not in known
        if bare and not _is_new(d, history) and any(_replicas_of(d, history)):
            yield (
                f"{d.directory.path}: of broker {d.broker}'s log directory only its name "
                "(meta.properties) is here: nothing is taken from that. Hand over the whole "
                "directory; if nothing else is in it on the disk either, its records are gone: "
                f"`replication-analyzer decide --away {d.broker}` plans without it"
            )


def _replicas_of(found: BrokerDirectory, history: MetadataHistory) -> Iterator[Key]:
    """What the controllers have on the directory's broker."""
    now: dict[tuple[str, int], PartitionRegistration] = {}
    for change in history.changes:
        now[change.after.topic_id, change.after.partition] = change.after
    for told in now.values():
        topic = history.topics.get(told.topic_id)
        if topic is not None and topic.deleted_at is None and found.broker in told.replicas:
            yield topic.name, told.topic_id, told.partition


def _has_its_name_alone(found: BrokerDirectory) -> bool:
    directory = found.directory
    others = directory.partitions or directory.named or directory.has_cluster_metadata
    return directory.meta is not None and not others and not directory.unreadable


def _is_new(found: BrokerDirectory, history: MetadataHistory) -> bool:
    """Whether it was formatted since its broker registered last, which has one log directory. Of
    several nobody knows in whose place a new one is."""
    told = [b.log_dirs for b in history.brokers if b.broker == found.broker and b.log_dirs]
    meta = found.directory.meta
    own = None if meta is None else meta.directory_id
    return bool(told) and len(told[-1]) == 1 and own is not None and own not in told[-1]


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
