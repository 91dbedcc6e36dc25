"""What a copy of a log directory left out, by what it has: *.log files are often ignored."""

from collections.abc import Set

from replication.evidence.log_directories.log_directory import LogDirectory


def without_segments(directory: LogDirectory) -> list[str]:
    """A note where the partitions' folders are there, and their segments are not."""
    replicas = [p for p in directory.partitions if p.kind == "replica"]
    bare = [p for p in replicas if not p.segments and not p.unreadable]
    if not bare:
        return []
    return [
        f"{directory.path}: {len(bare)} of its {len(replicas)} partition folders "
        "hold no segment: the copy left *.log files out, as many a .gitignore "
        "does. Without segments nobody knows what these logs hold"
    ]


def without_folders(
    directory: LogDirectory, deleted: Set[tuple[str, int]] = frozenset()
) -> list[str]:
    """A note where its checkpoints name partitions whose folders are not there. deleted: those of
    which the broker's lines say that it deleted the folder itself: a checkpoint of before names
    them still."""
    folders = {(p.topic, p.partition) for p in directory.partitions}
    missing = sorted(directory.named - folders - deleted)
    if not missing:
        return []
    topic, partition = missing[0]
    first = f"{topic}-{partition}" + (f" and {len(missing) - 1} more" if missing[1:] else "")
    return [
        f"{directory.path}: its checkpoints name {first}, but no such folder is here: copy the "
        "partitions' folders too"
    ]
