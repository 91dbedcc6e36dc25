"""Which replicas' logs are here: log directories, and dumps where the directory itself is not."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from replication.evidence.broker_logs.broker_log import LogLineFact
from replication.evidence.collecting.collection import BrokerDirectory
from replication.evidence.joining.copies import Copy
from replication.evidence.joining.lifetimes import Incarnations
from replication.evidence.joining.lives_of_directories import lives_of_directories
from replication.evidence.joining.one_cluster import INTERNAL, ClusterEvidence, Key
from replication.evidence.log_directories.digest_lines import SeenDirectory
from replication.evidence.log_directories.log_directory import LogDirectory, PartitionDirectory
from replication.evidence.metadata_log.history import MetadataHistory
from replication.evidence.tools.dumped_logs import NotOneLog, SegmentDump, dumped_directory
from replication.evidence.tools.log_dirs import LogDirectorySize
from replication.evidence.unreadable import Unreadable

_CREATED_ANEW = (
    "the topic was created anew, and nobody can tell to which of its lives "
    "this belongs: hand over the log directory or a digest of it"
)
# What lines call an offset that their broker's log had reached.
_REACHED = ("log_end_offset", "high_watermark", "to_high_watermark", "fetch_offset")
Lines = Mapping[Key, Iterable[Iterable[LogLineFact]]]
_ReplicaOfBroker = tuple[int, str, int]


def copied_directories(
    directories: Iterable[BrokerDirectory], incarnations: Incarnations
) -> tuple[dict[Key, list[Copy]], list[Unreadable]]:
    """Every partition's copied directories; those of which nothing tells the incarnation."""
    result: dict[Key, list[Copy]] = {}
    unreadable: list[Unreadable] = []
    copied = _with_metadata_beside(list(directories))
    lives = lives_of_directories(copied, incarnations)
    makers = [(d, _maker_of_copies(d)) for d in copied]
    for d, made in makers:
        for p in d.directory.partitions:
            if p.topic in INTERNAL:
                continue
            topic_id = lives[p.path]
            if topic_id is None:
                unreadable.append(
                    Unreadable(
                        str(p.path),
                        "file",
                        "no readable partition.metadata, and the topic was created anew: nobody "
                        "can tell to which of its lives this directory belongs",
                    )
                )
            else:
                result.setdefault((p.topic, topic_id, p.partition), []).append(made(p))
    for d, made in makers:
        for p in d.directory.partitions:
            topic_id = lives[p.path]
            if topic_id is not None and isinstance(p, SeenDirectory) and p.kind == "replica":
                for later in _begun_since(p, topic_id, incarnations):
                    own = result.setdefault((p.topic, later, p.partition), [])
                    if all(c.broker != d.broker or c.directory.kind != "replica" for c in own):
                        own.append(made(p.emptied(later)))
    left_out = {
        (d.broker, *name)
        for d in copied
        for name in d.directory.named - {(p.topic, p.partition) for p in d.directory.partitions}
    }
    for (topic, _, partition), copies in result.items():
        for copy in copies:
            copy.named_elsewhere = (copy.broker, topic, partition) in left_out
    return result, unreadable


def leave_out_checkpoints_of_earlier_lives(
    copies: Mapping[Key, list[Copy]], lines: Mapping[int, Lines], incarnations: Incarnations
) -> None:
    """Takes from copies what their checkpoints say of an earlier topic of the same name.

    They name a partition by its topic's name (OffsetCheckpointFile); where they could not be
    written since, as of a directory that failed, they are of the topic that was deleted. So may be
    an offset above the log's end, where the broker's log of that topic had reached it.
    """
    for (topic, topic_id, number), found in copies.items():
        ids = [life[0] for life in incarnations.of(topic)]
        earlier = ids[: ids.index(topic_id)] if topic_id in ids else []
        for copy in found if earlier else ():
            directory, end = copy.directory, copy.directory.log_end_offset or 0
            told = (directory.high_watermark, directory.recovery_point)
            if max(offset or 0 for offset in told) <= end:
                continue
            before = (lines.get(copy.broker, {}).get((topic, i, number), ()) for i in earlier)
            reached = max((_reached(mine) for mine in before), default=0)
            own = [None if end < (offset or 0) <= reached else offset for offset in told]
            copy.directory = replace(directory, high_watermark=own[0], recovery_point=own[1])


def _reached(lines: Iterable[Iterable[LogLineFact]]) -> int:
    """How far a broker's log had reached by its lines."""
    told = (fact.fields.get(name) for mine in lines for fact in mine for name in _REACHED)
    return max((offset for offset in told if isinstance(offset, int)), default=0)


def _with_metadata_beside(copied: list[BrokerDirectory]) -> list[BrokerDirectory]:
    """Log directories of one broker that lie beside each other were copied at one time: the
    controllers' log, which is in one of them, tells of all when that was."""
    together: dict[tuple[str, int, Path], list[BrokerDirectory]] = {}
    for each in copied:
        key = (each.cluster_id, each.broker, each.directory.path.parent)
        together.setdefault(key, []).append(each)
    shared: dict[Path, MetadataHistory] = {}
    for group in together.values():
        ids = {g.directory.meta.directory_id for g in group if g.directory.meta is not None}
        logs = [g.metadata for g in group if g.metadata is not None]
        # One without its id may be another copy of the same directory.
        if len(logs) == 1 and len(ids - {None}) == len(group) > 1:
            shared.update((g.directory.path, logs[0]) for g in group)
    return [replace(c, metadata=shared.get(c.directory.path, c.metadata)) for c in copied]


def _begun_since(seen: SeenDirectory, topic_id: str, incarnations: Incarnations) -> list[str]:
    """The topics of the name that had been created when a log of an earlier one was seen where
    theirs would be: its broker has had nothing of them by then."""
    known = incarnations.of(seen.topic)
    if seen.topic in incarnations.undated or topic_id not in (i for i, _, _ in known):
        return []
    later = known[[i for i, _, _ in known].index(topic_id) + 1 :]
    return [i for i, created, _ in later if created is not None and created <= seen.read_at]


def dumped_copies(
    cluster: ClusterEvidence, incarnations: Incarnations, copied: Mapping[Key, Sequence[Copy]]
) -> tuple[dict[Key, list[Copy]], list[str]]:
    """What kafka-dump-log printed of logs that are not among the copied ones, and notes.

    A partition of which no dump could be used is named as well, without any.
    """
    sizes: dict[_ReplicaOfBroker, set[int]] = {}
    for listed in cluster.log_dirs:
        if isinstance(listed, LogDirectorySize):
            replica = (listed.broker, listed.topic, listed.partition)
            sizes.setdefault(replica, set()).update([] if listed.is_future else [listed.size])
    found: dict[_ReplicaOfBroker, list[SegmentDump]] = {}
    for dump in cluster.dumps:
        for segment in dump.segments:
            replica = (dump.broker, segment.topic, segment.partition)
            found.setdefault(replica, []).append(segment)
    result: dict[Key, list[Copy]] = {}
    notes: list[str] = []
    for replica, segments in sorted(found.items()):
        broker, topic, number = replica
        if topic in INTERNAL:
            continue
        used: Copy | str = _CREATED_ANEW
        if len(incarnations.of(topic)) < 2:
            key = (topic, incarnations.at(topic, None), number)
            own = [c for c in copied.get(key, ()) if c.broker == broker]
            used = _dumped(broker, segments, sizes.get(replica, set()), own)
            result.setdefault(key, []).extend([used] if isinstance(used, Copy) else [])
        notes += _said_of_dump(used, replica, segments)
    return result, notes


def _dumped(
    broker: int, segments: list[SegmentDump], sizes: set[int], own: list[Copy]
) -> Copy | str:
    """One replica's dumped log as a copy; why not, where it cannot be. own: copies of it."""
    if any(c.directory.kind == "replica" and c.directory.segments for c in own):
        return "it is not needed, the log directory itself is here"
    try:
        directory = dumped_directory(segments, sizes)
    except NotOneLog as error:
        return f"{error}: hand over the log directory or a digest of it"
    return Copy(
        broker,
        directory,
        LogDirectory(directory.path, None, None, (directory,), (), None),
        clean=False,
        latest_timestamp=directory.max_timestamp,
        latest_epoch=directory.latest_epoch,
    )


def _said_of_dump(
    used: Copy | str, replica: _ReplicaOfBroker, segments: list[SegmentDump]
) -> list[str]:
    """A note on a dump that was not used, or that may not show all of the log."""
    broker, topic, number = replica
    if isinstance(used, str):
        path = min(str(s.path) for s in segments)
        return [f"{path}: the dump of {topic}-{number} of broker {broker} was not used: {used}"]
    if not used.is_part:
        return []
    directory = used.directory
    shown = f"{directory.log_start_offset}..{(directory.log_end_offset or 0) - 1}"
    return [
        f"{directory.path}: the dump of {topic}-{number} of broker {broker} shows offsets "
        f"{shown}; whether its log goes on cannot be told from it (kafka-log-dirs "
        "--describe would tell its size)"
    ]


def registrations(history: MetadataHistory | None, broker: int) -> int | None:
    """How often a broker had registered by the end of a copy of the controllers' log.

    One with unreadable places may have reached further than can be seen.
    """
    if history is None or history.first_offset > 0 or history.unreadable:
        return None
    return sum(1 for b in history.brokers if b.broker == broker and b.kind == "registered")


def _maker_of_copies(found: BrokerDirectory) -> Callable[[PartitionDirectory], Copy]:
    """Makes the copy of each replica of a directory; what is the directory's is asked once."""
    directory = found.directory
    clean = directory.clean_shutdown
    metadata = found.metadata
    epochs = [e for p in directory.partitions for e, _ in (p.epoch_entries or ())]
    epochs += [s[0] for p in directory.partitions for s in p.spans if s[0] is not None]
    times = [p.max_timestamp for p in directory.partitions if p.max_timestamp is not None]
    return partial(
        Copy,
        found.broker,
        parent=directory,
        clean=clean is not None,
        broker_epoch=clean.broker_epoch if clean is not None else None,
        metadata_end=None if metadata is None or metadata.unreadable else metadata.end_offset,
        registrations=registrations(metadata, found.broker),
        latest_timestamp=max(times, default=None),
        latest_epoch=max(epochs, default=-1),
    )
