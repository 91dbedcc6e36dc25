"""Which replicas kafka-log-dirs lists, and what it says of directories."""

from collections.abc import Iterable, Mapping, Sequence

from replication.evidence.joining.copies import Copy
from replication.evidence.joining.lifetimes import Incarnations
from replication.evidence.joining.one_cluster import Key
from replication.evidence.tools.log_dirs import LogDirectoryError, LogDirectorySize


def listed_replicas(
    log_dirs: Iterable[LogDirectorySize | LogDirectoryError],
    incarnations: Incarnations,
    partitions: Mapping[Key, Sequence[Copy]],
) -> tuple[dict[Key, set[int]], list[str]]:
    """The brokers that have a replica of each of the partitions, and notes.

    partitions: those that other evidence names, with the copies at hand. Of a topic that was
    created anew the output does not say which incarnation it lists.
    """
    result: dict[Key, set[int]] = {}
    notes: list[str] = []
    for listed in log_dirs:
        if isinstance(listed, LogDirectoryError) or listed.is_future:
            notes.append(_said_of_directory(listed))
            continue
        key = (listed.topic, incarnations.at(listed.topic, None), listed.partition)
        if key in partitions and len(incarnations.of(listed.topic)) < 2:
            result.setdefault(key, set()).add(listed.broker)
    for key, copies in partitions.items():
        for broker in sorted(result.get(key, set()) - {c.broker for c in copies}):
            notes.append(
                f"{key[0]}-{key[2]}: kafka-log-dirs lists a replica on broker {broker}, "
                "but neither its log directory nor a dump of it was handed over"
            )
    return result, notes


def _said_of_directory(listed: LogDirectorySize | LogDirectoryError) -> str:
    """Of a directory that could not be read, or of a log that was still being moved."""
    if isinstance(listed, LogDirectoryError):
        return (
            f"{listed.path}: broker {listed.broker} could not describe its log directory "
            f"{listed.directory} ({listed.error}): the replicas in it are offline, and "
            "kafka-log-dirs does not name them"
        )
    behind = "offset" if listed.offset_lag == 1 else "offsets"
    lag = "" if listed.offset_lag is None else f", {listed.offset_lag} {behind} behind"
    return (
        f"{listed.path}: broker {listed.broker} was moving {listed.topic}-{listed.partition} to "
        f"{listed.directory}{lag}: the log there is not yet its replica's"
    )
