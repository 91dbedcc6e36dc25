"""Every copy of one topic partition that the evidence holds, and the batches in them.

Beside the copies that the verdicts rest on these are dumps that were passed over for them: what
`kafka-dump-log` printed of a log whose directory is here, too, may be of an earlier moment.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path

from replication.evidence.importer import Import
from replication.evidence.joining.copies import Copy
from replication.evidence.joining.partition_evidence import PartitionEvidence
from replication.evidence.log_directories.log_directory import (
    LogDirectory,
    PartitionDirectory,
    SegmentFile,
    read_log,
    segment_names,
)
from replication.evidence.log_directories.segments import RecordBatch
from replication.evidence.tools.dump_log import DumpedBatch, DumpedRecord
from replication.evidence.tools.dumped_logs import (
    DumpedDirectory,
    NotOneLog,
    SegmentDump,
    dumped_directory,
    dumped_items,
)
from replication.protocol.ground.wire import MAX_OFFSET

KIND_WORDS = {
    "replica": "log of the replica",
    "deleted": "directory renamed for deletion",
    "stray": "stray directory",
    "future": "directory that was being moved",
    "dump": "output of kafka-dump-log",
    "set_aside": "segment that the broker had replaced or was about to delete",
}
# Compaction and retention rename a segment so, and the file goes a minute later or with a start.
_SET_ASIDE = re.compile(r"(\d{20})\.log\.deleted")


@dataclass(frozen=True)
class SetAside(PartitionDirectory):
    """One segment of a replica's folder that is no longer part of its log."""


@dataclass(slots=True)
class Held:
    """One batch in one copy. printed: its records, where a dump shows it."""

    copy: int
    path: Path
    batch: RecordBatch
    printed: list[DumpedRecord] | None = field(default=None, repr=False)


def kind_of(copy: Copy) -> str:
    """What a copy is, in a word of KIND_WORDS."""
    if isinstance(copy.directory, SetAside):
        return "set_aside"
    return "dump" if copy.is_dump else copy.directory.kind


def copies_at_hand(imported: Import, partition: PartitionEvidence) -> list[Copy]:
    """The copies of a finished partition, what their brokers had set aside in the same folders, and
    the dumps of it that were passed over."""
    copies = [*partition.copies, *(aside for c in partition.copies for aside in _set_aside(c))]
    others = {
        p.topic_id
        for p in imported.partitions
        if (p.cluster_id, p.topic) == (partition.cluster_id, partition.topic)
    }
    if len(others) > 1:
        # Of which life of the topic a dump is, nothing tells.
        return copies
    used = {
        (s.path, s.lines.start)
        for c in copies
        if isinstance(c.directory, DumpedDirectory)
        for s in c.directory.dumped
    }
    for dump in imported.collection.dumps:
        for segment in dump.segments if dump.cluster_id == partition.cluster_id else ():
            of_it = (segment.topic, segment.partition) == (partition.topic, partition.partition)
            if of_it and (segment.path, segment.lines.start) not in used:
                copies += _of_dump(dump.broker, segment)
    return copies


def _set_aside(copy: Copy) -> Iterator[Copy]:
    """The segments that a copied folder has beside its log, each by itself: they overlap it."""
    own = copy.directory
    if not any(isinstance(segment, SegmentFile) for segment in own.segments):
        return
    names = sorted(p.name for p in own.path.iterdir() if p.is_file() and not p.is_symlink())
    for offset, name in segment_names(names, _SET_ASIDE):
        told = {f.name: getattr(own, f.name) for f in fields(PartitionDirectory)}
        segment = SegmentFile(offset, own.path / name, verify_crc=True)
        following = [s.base_offset for s in own.segments if s.base_offset > offset]
        end = min(following, default=own.log_end_offset or offset)
        unread = tuple(_unread(segment, max(end, offset)))
        directory = SetAside(**{**told, "segments": (segment,), "unread": unread})
        yield Copy(copy.broker, directory, copy.parent, clean=False)


def _unread(segment: SegmentFile, end: int) -> Iterator[tuple[int, int]]:
    """What cannot be read of a segment whose log goes on, or ends, at an offset."""
    found = read_log((segment,))
    for first, last in found.unread:
        yield first, end if last is None else last
    reached = found.end_offset or segment.base_offset
    told = bool(found.unread) and found.unread[-1][1] is None
    if not found.end_is_certain and not told and reached < end:
        yield reached, end


def _of_dump(broker: int, segment: SegmentDump) -> Iterator[Copy]:
    try:
        directory = dumped_directory([segment], set())
    except NotOneLog:
        return
    parent = LogDirectory(directory.path, None, None, (directory,), (), None)
    yield Copy(broker, directory, parent, clean=False)


def batches_of(index: int, copy: Copy) -> Iterator[Held]:
    """Every batch of a copy in offset order, with what a dump prints of its records."""
    if not isinstance(copy.directory, DumpedDirectory):
        for path, batch in copy.directory.iter_batches_with_path():
            yield Held(index, path, batch)
        return
    open_one: Held | None = None
    for path, item in dumped_items(copy.directory.dumped):
        if isinstance(item, DumpedBatch):
            if open_one is not None:
                yield open_one
            open_one = Held(index, path, item.batch, [])
        elif open_one is not None and open_one.printed is not None:
            open_one.printed.append(item)
    if open_one is not None:
        yield open_one


def files_of(copies: Iterable[Copy]) -> set[Path]:
    """The files that hold the copies' batches."""
    return {
        segment.path
        for copy in copies
        for segment in (
            copy.directory.dumped
            if isinstance(copy.directory, DumpedDirectory)
            else copy.directory.segments
        )
        if isinstance(segment, SegmentDump | SegmentFile)
    }


def with_records(copies: Iterable[Copy]) -> list[Copy]:
    """Those of which the records themselves are here: no digest, no dump without payloads."""
    return [
        copy
        for copy in copies
        if any(isinstance(segment, SegmentFile) for segment in copy.directory.segments)
        or (
            isinstance(copy.directory, DumpedDirectory)
            and any(segment.has_keys for segment in copy.directory.dumped)
        )
    ]


def unread_places(copies: Iterable[Copy]) -> list[tuple[int, int, str]]:
    """(first offset, end offset, whose log) of what could not be read of any copy, in order."""
    return sorted(
        (
            first,
            MAX_OFFSET if end is None else end,
            f"a place that cannot be read in broker {copy.broker}'s {KIND_WORDS[kind_of(copy)]}",
        )
        for copy in copies
        for first, end in copy.directory.unread
    )
