"""Reads a digest: the same LogDirectory that the directory itself would have given.

What is missing is the records: a digest holds headers, so keys and contents cannot be had from it.
"""

import base64
import json
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from replication.evidence.digest import (
    CLUSTER_METADATA,
    FORMAT_NAME,
    FORMAT_VERSION,
    SEGMENT_NAME,
    SWAP_NAME,
    RawBatch,
    RawUnreadable,
    unpack_batches,
)
from replication.evidence.log_directories.log_directory import (
    CLEAN_SHUTDOWN,
    HIGH_WATERMARKS,
    LEADER_EPOCHS,
    LOG_STARTS,
    META_PROPERTIES,
    PARTITION_METADATA,
    RECOVERY_POINTS,
    DirectoryCheckpoints,
    LogDirectory,
    PartitionDirectory,
    PartitionFiles,
    Segment,
    parse_directory_name,
    readable_or_none,
    segment_names,
    summarize_partition,
)
from replication.evidence.log_directories.small_files import (
    decode_text,
    parse_clean_shutdown,
    parse_leader_epoch_checkpoint,
    parse_meta_properties,
    parse_offset_checkpoint,
    parse_partition_metadata,
)
from replication.evidence.unreadable import Unreadable

GZIP_MAGIC = b"\x1f\x8b\x08"
GZIP_MEMBER = 31
CHUNK = 64 << 10
UNPACKED_CHUNK = 1 << 20
# The longest lawful line is a checkpoint file of 16 MB in base64; a longer one is damage.
LONGEST_LINE = 32 << 20
BATCHES_LINE = b'{"batches":'

Value = TypeVar("Value")
Line = dict[str, Any]


class DamagedDigest(Exception):
    """The digest is cut or was changed; `member_at` is where the gzip member begins that shows it.
    Never leaves this file."""

    def __init__(self, reason: str, member_at: int) -> None:
        super().__init__(reason)
        self.member_at = member_at


# What a line that was changed can raise while it is taken apart.
DAMAGE = (DamagedDigest, ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError)


@dataclass(frozen=True, slots=True)
class DigestSegment:
    """A segment in a digest: `member_at` is where its gzip member begins in the digest file."""

    base_offset: int
    path: Path
    digest: Path
    member_at: int

    def scan(self) -> Iterator[RawBatch | RawUnreadable]:
        """Its batches, from the digest file, with bounded memory."""
        try:
            for _, line in _lines(self.digest, self.member_at):
                if line is None:
                    return
                yield from _segment_items(json.loads(line))
        except (OSError, *DAMAGE) as error:
            yield "file", f"its part of the digest is damaged: {error}"


@dataclass(frozen=True, slots=True)
class MissingSegment:
    """A segment that the directory had and that the digest does not tell of."""

    base_offset: int
    path: Path
    reason: str

    def scan(self) -> Iterator[RawBatch | RawUnreadable]:
        """Nothing but the reason."""
        yield "file", self.reason


@dataclass
class _Partition:
    """One partition's part of the digest, without its batches."""

    name: str
    names: list[str]
    texts: dict[str, str | Unreadable] = field(default_factory=dict)
    members: dict[str, int] = field(default_factory=dict)
    captured: list[int] = field(default_factory=list)


@dataclass
class _Contents:
    """What the first pass over a digest finds: everything but the batches."""

    path: Path
    texts: dict[str, str | Unreadable] = field(default_factory=dict)
    partitions: list[_Partition] = field(default_factory=list)
    unreadable: list[Unreadable] = field(default_factory=list)
    has_cluster_metadata: bool = False
    is_digest: bool = False
    is_complete: bool = False


def is_digest(path: Path) -> bool:
    """Whether the file begins as a digest does, whatever its name."""
    try:
        with path.open("rb") as stream:
            head = stream.read(4096)
        begin = zlib.decompressobj(GZIP_MEMBER).decompress(head, 512)
    except (OSError, zlib.error):
        return False
    return f'"digest":"{FORMAT_NAME}"'.encode() in begin


def read_digest(path: Path) -> LogDirectory:
    """What a digest says of the log directory it was made of.

    Equal to `read_log_directory` of that directory at that moment, apart from paths (they lead into
    the digest file) and `captured_between`, which only a digest knows. `has_cluster_metadata` leads
    into the digest too: `restore_cluster_metadata` writes those files out for their reader. A cut
    or damaged digest answers what is whole before the damage, and an Unreadable. Nothing is
    raised."""
    contents = _Contents(path)
    member_at = 0
    # gzip's check sum is at a member's end: until then nothing of the member can be trusted.
    unproven: list[Line] = []
    try:
        for member_at, line in _lines(path, 0):
            if line is None:
                for proven in unproven:
                    _collect(contents, member_at, proven)
                unproven = []
            elif b'"piece_of":' in line:
                contents.has_cluster_metadata = True
            elif not line.startswith(BATCHES_LINE):
                unproven.append(json.loads(line))
        if not contents.is_complete:
            raise DamagedDigest("its last line is missing", path.stat().st_size)
    except (OSError, *DAMAGE) as error:
        if isinstance(error, DamagedDigest):
            member_at = error.member_at
        reason = f"the digest is cut or damaged, the rest of it was not read: {error}"
        contents.unreadable.append(Unreadable(str(path), f"byte {member_at}", reason))
    return _log_directory(contents)


def restore_cluster_metadata(digest: Path, into: Path) -> Path | None:
    """Writes the controllers' log kept in `digest` to a directory below `into`, which must exist,
    and answers that directory; None when the digest has none. A damaged digest gives what is
    before the damage. Raises OSError when `into` cannot be written."""
    target = into / CLUSTER_METADATA
    try:
        for _, text in _lines(digest, 0):
            if text is None or b'"piece_of":' not in text:
                continue
            line = json.loads(text)
            folder, _, name = str(line["piece_of"]).partition("/")
            if folder != CLUSTER_METADATA or not name or "/" in name or name.startswith("."):
                continue
            target.mkdir(exist_ok=True)
            with (target / name).open("ab" if line["at"] else "wb") as stream:
                if stream.tell() != line["at"]:
                    raise ValueError("a piece that does not follow the one before it")
                stream.write(base64.b64decode(line["base64"], validate=True))
    except DAMAGE:
        # read_digest tells the user of the damage; what is before it is still worth having.
        return target if target.is_dir() else None
    return target if target.is_dir() else None


def _collect(contents: _Contents, member_at: int, line: Line) -> None:
    """Takes in one line of any kind but batches."""
    partition = contents.partitions[-1] if contents.partitions else None
    if "digest" in line:
        _check_version(line)
        contents.is_digest = True
    elif not contents.is_digest:
        raise ValueError("it does not begin as a digest does")
    elif "partition_directory" in line:
        name = str(line["partition_directory"])
        parse_directory_name(name)
        names = [str(other) for other in line["names"]]
        partition = _Partition(name, names)
        contents.partitions.append(partition)
    elif "segment" in line and partition is not None:
        partition.members[_last_name(line["segment"])] = member_at
    elif "file" in line:
        _texts(contents, line["file"])[_last_name(line["file"])] = _text_of(contents.path, line)
    elif "failed" in line:
        lost = Unreadable(str(contents.path / line["failed"]), "file", str(line["reason"]))
        _texts(contents, line["failed"])[_last_name(line["failed"])] = lost
    elif "note" in line:
        contents.unreadable.append(Unreadable(str(contents.path), "file", str(line["note"])))
    elif "end" in line:
        contents.is_complete = True
    if partition is not None:
        partition.captured.extend(int(moment) for moment in line.get("captured_ms", []))


def _texts(contents: _Contents, name: str) -> dict[str, str | Unreadable]:
    """Where a small file belongs: to the log directory, or to the partition whose lines are
    being read."""
    folder, _, rest = name.partition("/")
    if not rest:
        return contents.texts
    if contents.partitions and contents.partitions[-1].name == folder:
        return contents.partitions[-1].texts
    return {}


def _text_of(digest: Path, line: Line) -> str | Unreadable:
    if "text" in line:
        content = str(line["text"]).encode("ascii")
    else:
        content = base64.b64decode(line["base64"], validate=True)
    return decode_text(content, str(digest / line["file"]))


def _last_name(name: str) -> str:
    return name.rpartition("/")[2]


def _check_version(line: Line) -> None:
    if line["digest"] != FORMAT_NAME or line["format_version"] != FORMAT_VERSION:
        found = f"{line['digest']} version {line['format_version']}"
        raise ValueError(f"it is {found}, known is {FORMAT_NAME} version {FORMAT_VERSION}")


def _log_directory(contents: _Contents) -> LogDirectory:
    path = contents.path
    unreadable = contents.unreadable
    checkpoints = DirectoryCheckpoints(
        *(
            _parsed(contents.texts, name, parse_offset_checkpoint, path, unreadable) or {}
            for name in (HIGH_WATERMARKS, RECOVERY_POINTS, LOG_STARTS)
        )
    )
    return LogDirectory(
        path=path,
        meta=_parsed(contents.texts, META_PROPERTIES, parse_meta_properties, path, unreadable),
        clean_shutdown=_parsed(
            contents.texts, CLEAN_SHUTDOWN, parse_clean_shutdown, path, unreadable
        ),
        partitions=tuple(
            _partition_directory(path, partition, checkpoints) for partition in contents.partitions
        ),
        unreadable=tuple(unreadable),
        has_cluster_metadata=path / CLUSTER_METADATA if contents.has_cluster_metadata else None,
    )


def _partition_directory(
    digest: Path, partition: _Partition, checkpoints: DirectoryCheckpoints
) -> PartitionDirectory:
    path = digest / partition.name
    unreadable: list[Unreadable] = []
    files = PartitionFiles(
        path=path,
        names=tuple(partition.names),
        epoch_entries=_parsed(
            partition.texts, LEADER_EPOCHS, parse_leader_epoch_checkpoint, path, unreadable
        ),
        topic_id=_parsed(
            partition.texts, PARTITION_METADATA, parse_partition_metadata, path, unreadable
        ),
        segments=_segments(digest, partition, SEGMENT_NAME),
        swaps=_segments(digest, partition, SWAP_NAME),
    )
    summary = summarize_partition(files, checkpoints, unreadable)
    if not partition.captured:
        return summary
    return replace(summary, captured_between=(min(partition.captured), max(partition.captured)))


def _segments(digest: Path, partition: _Partition, pattern: re.Pattern[str]) -> tuple[Segment, ...]:
    return tuple(
        _segment(digest, digest / partition.name / name, base_offset, partition.members.get(name))
        for base_offset, name in segment_names(partition.names, pattern)
    )


def _segment(digest: Path, path: Path, base_offset: int, member_at: int | None) -> Segment:
    if member_at is None:
        return MissingSegment(base_offset, path, "the digest does not tell of it")
    return DigestSegment(base_offset, path, digest, member_at)


def _parsed(
    texts: dict[str, str | Unreadable],
    name: str,
    parse: Callable[[str, str], Value | Unreadable],
    folder: Path,
    unreadable: list[Unreadable],
) -> Value | None:
    """One small file's value; None, and noted, when it cannot be read; None when it is not
    there."""
    text = texts.get(name)
    if isinstance(text, str):
        return readable_or_none(parse(text, str(folder / name)), unreadable)
    return readable_or_none(text, unreadable)


def _segment_items(line: Line) -> Iterator[RawBatch | RawUnreadable]:
    if "batches" in line:
        yield from unpack_batches(line["batches"])
    elif "unreadable" in line:
        where, reason = line["unreadable"]
        yield str(where), str(reason)
    elif "failed" in line:
        yield "file", str(line["reason"])


def _lines(path: Path, start: int) -> Iterator[tuple[int, bytes | None]]:
    """(where its gzip member begins, the line) for each line from the member at `start` on; None in
    a line's place at the end of each member, when its check sum was right. Raises DamagedDigest
    where the file is no gzip, is cut, or fails a check sum."""
    with path.open("rb") as stream:
        stream.seek(start)
        packed = stream.read(CHUNK)
        position = start + len(packed)
        while packed:
            member_at = position - len(packed)
            unpacker = zlib.decompressobj(GZIP_MEMBER)
            unfinished = b""
            while not unpacker.eof:
                if not packed:
                    raise DamagedDigest("it was cut", member_at)
                unpacked = _unpack(unpacker, packed, member_at)
                *lines, unfinished = (unfinished + unpacked).split(b"\n")
                for line in lines:
                    yield member_at, line
                if len(unfinished) > LONGEST_LINE:
                    raise DamagedDigest("a line of more than 32 MB", member_at)
                packed = unpacker.unconsumed_tail
                if not packed and not unpacker.eof:
                    packed = stream.read(CHUNK)
                    position += len(packed)
            yield member_at, None
            packed = unpacker.unused_data
            if not packed:
                packed = stream.read(CHUNK)
                position += len(packed)


def _unpack(unpacker: Any, packed: bytes, member_at: int) -> bytes:
    try:
        unpacked: bytes = unpacker.decompress(packed, UNPACKED_CHUNK)
    except zlib.error as error:
        raise DamagedDigest(str(error), member_at) from None
    return unpacked
