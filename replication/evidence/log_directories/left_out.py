"""What a copy of a log directory left out, by what it has: *.log files are often ignored."""

from replication.evidence.log_directories.log_directory import LogDirectory


def left_out(directory: LogDirectory) -> list[str]:
    """A note for each kind of thing that a broker keeps there and the copy has not."""
    replicas = [p for p in directory.partitions if p.kind == "replica"]
    bare = [p for p in replicas if not p.segments and not p.unreadable]
    notes = []
    if bare:
        notes.append(
            f"{directory.path}: {len(bare)} of its {len(replicas)} partition folders "
            "hold no segment: the copy left *.log files out, as many a .gitignore "
            "does. Without segments nobody knows what these logs hold"
        )
    folders = {(p.topic, p.partition) for p in directory.partitions}
    missing = sorted(directory.named - folders)
    if missing:
        topic, partition = missing[0]
        first = f"{topic}-{partition}" + (f" and {len(missing) - 1} more" if missing[1:] else "")
        notes.append(
            f"{directory.path}: its checkpoints name {first}, but no such folder is here: copy the "
            "partitions' folders too"
        )
    return notes
