"""Reads what `digest.py --to-stdout` printed beside running brokers: the newest state of each.

Lines may come in any order, twice, from several files and several directories; of each replica the
newest line counts. What they make is a LogDirectory like that of a digest, with less in it: a log's
end and its leader epochs, no record batches. Bytes of a controller's metadata log are put together
again as files.
"""

import base64
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from os import SEEK_END
from pathlib import Path
from typing import Any, BinaryIO

from replication.evidence.digest import CLUSTER_METADATA, LINES_NAME, LINES_VERSION, RawBatch
from replication.evidence.log_directories.digest_line_shape import known_part, refusal
from replication.evidence.log_directories.log_directory import (
    LogDirectory,
    PartitionDirectory,
    Segment,
    Span,
    parse_directory_name,
    readable_or_none,
)
from replication.evidence.log_directories.segments import RecordBatch
from replication.evidence.log_directories.small_files import (
    MetaProperties,
    parse_clean_shutdown,
    parse_meta_properties,
)
from replication.evidence.opening import READ_ERRORS, open_unpacked
from replication.evidence.text_lines import text_lines
from replication.evidence.unreadable import Unreadable

BEGINS = f'{{"{LINES_NAME}"'
LONGEST_LINE = 1 << 20
Line = dict[str, Any]


@dataclass(frozen=True, slots=True)
class SeenSegment:
    """Stands for all segments of a log whose batches nobody printed."""

    base_offset: int
    path: Path

    def scan(self) -> Iterator[RawBatch]:
        """No batch was printed."""
        yield from ()


@dataclass(frozen=True)
class SeenDirectory(PartitionDirectory):
    """One replica as a line tells of it. told_at, read_at: when it was so for the first and for the
    last time, in milliseconds by the clock of its broker; line_at: since when its checkpoints said
    what they do, where the log had ended there for longer. grown: where it ended
    before, as (when it was first seen to, log end), the newest last. down_at: since when, as far as
    was seen, no broker has been there that could change it; None while one may be."""

    told_at: int = 0
    line_at: int = 0
    read_at: int = 0
    grown: tuple[tuple[int, int], ...] = ()
    down_at: int | None = None

    def until(self, last_line: int) -> "SeenDirectory":
        """As of when its broker was first seen to be down: what was read later was so by then.

        last_line: the broker's last line before it was read. It ran once more, between two rounds,
        where that is later.
        """
        if self.down_at is None:
            return self
        read_at = max(self.down_at, last_line)
        if read_at >= self.read_at:
            return self
        told_at, line_at = min(self.told_at, read_at), min(self.line_at, read_at)
        return replace(self, told_at=told_at, line_at=line_at, read_at=read_at)

    def as_seen(self, at: int, end: int) -> "SeenDirectory":
        """The same log when it ended earlier; what its checkpoints said then nobody told."""
        entries = self.epoch_entries
        return replace(
            self,
            log_end_offset=end,
            spans=tuple((e, first, min(last, end)) for e, first, last in self.spans if first < end),
            epoch_entries=None if entries is None else tuple(e for e in entries if e[1] < end),
            high_watermark=None,
            recovery_point=None,
            told_at=at,
            line_at=at,
            read_at=at,
            grown=(),
            down_at=None,
        )

    def emptied(self, topic_id: str) -> "SeenDirectory":
        """Nothing, of another topic of the name: this one's log lies where its would."""
        return replace(
            self,
            topic_id=topic_id,
            log_start_offset=0,
            log_end_offset=0,
            spans=(),
            epoch_entries=None,
            high_watermark=None,
            recovery_point=None,
            told_at=self.read_at,
            line_at=self.read_at,
            grown=(),
        )

    def iter_batches_with_path(self) -> Iterator[tuple[Path, RecordBatch]]:
        """Nothing: only spans are known."""
        yield from ()


@dataclass(slots=True)
class _Told:
    """The newest lines about one log directory of one machine. meta: its meta.properties, as they
    were when it had any. gone: of replicas that are no longer there, the line that told so."""

    name: str
    newest: Line | None = None
    meta: str | None = None
    partitions: dict[str, Line] = field(default_factory=dict)
    gone: dict[str, Line] = field(default_factory=dict)
    errors: dict[str, Line] = field(default_factory=dict)
    files: Line | None = None
    pieces: dict[tuple[str, int], Line] = field(default_factory=dict)
    path: Path = Path()


def is_digest_lines(path: Path) -> bool:
    """Whether the file begins with such a line."""
    try:
        with open_unpacked(path) as stream:
            return stream.read(len(BEGINS)).decode("utf-8", "replace") == BEGINS
    except READ_ERRORS:
        return False


def is_digest_line(text: str) -> bool:
    """Whether a line is one of a digest."""
    return text.startswith(BEGINS)


def read_digest_lines(path: Path) -> Iterator[Line | Unreadable]:
    """The lines of a file, each with `path`; what is none, and why."""
    for number, text in text_lines(path, LONGEST_LINE):
        if isinstance(text, Unreadable):
            yield text
        elif text.strip():
            line = checked(text)
            if isinstance(line, str):
                yield Unreadable(str(path), f"line {number}", line)
            else:
                yield {**line, "path": str(path)}


def checked(text: str) -> Line | str:
    """The line as an object; why it is none of a digest."""
    if len(text) > LONGEST_LINE:
        return f"longer than {LONGEST_LINE} bytes"
    try:
        line = json.loads(text)
    except (ValueError, RecursionError):
        return "no whole JSON object"
    return checked_object(line)


def checked_object(line: Any) -> Line | str:
    """As `checked`, of what a line's JSON says."""
    if not isinstance(line, dict) or line.get(LINES_NAME) != LINES_VERSION:
        return f"no line of {LINES_NAME} {LINES_VERSION}"
    return refusal(line) or known_part(line)


def order_of(line: Line) -> tuple[int, int]:
    """Lines of one directory in the order they were printed."""
    return (line["started"], line["n"])


def subject_of(line: Line) -> tuple[str, str, str, int]:
    """What a line speaks of: of two that speak of the same the newer counts. Whose an emptied
    directory had been, an older line tells."""
    what = "partition" if line["what"] == "gone" else line["what"]
    name = str(line.get("name", ""))
    if what == "directory":
        name = "" if line.get("meta") else "emptied"
    return (line["directory"], what, name, line.get("at_byte", 0) if what == "metadata" else 0)


def directories_of(lines: Iterable[Line], workplace: Path) -> list[LogDirectory]:
    """The log directories that the lines tell of.

    Lines of one directory of one broker belong together, whichever files they are in: it is known
    by its meta.properties. workplace: where files of metadata logs are put together.
    """
    ordered = sorted(lines, key=order_of)
    whose: dict[tuple[str, str], str] = {}
    for line in ordered:
        if line["what"] == "directory" and line.get("meta"):
            whose[line["path"], line["directory"]] = line["meta"]
    told: dict[tuple[str, str], _Told] = {}
    for line in ordered:
        place = (line["path"], line["directory"])
        key: tuple[str, str] = (whose.get(place) or line["path"], line["directory"])
        _take(told.setdefault(key, _Told(line["directory"])), line)
    every = [each for _, each in sorted(told.items(), key=lambda item: item[0])]
    for each in every:
        _leave_behind(each)
    return [
        _log_directory(each, _emptied(each, every), workplace / f"digest-lines-{number}")
        for number, each in enumerate(every)
    ]


def _take(told: _Told, line: Line) -> None:
    """A newer line about the directory."""
    what, name = line["what"], str(line.get("name", ""))
    told.path = Path(str(line.get("path", "")))
    if what == "directory":
        told.newest, told.meta = line, line.get("meta") or told.meta
        told.errors.pop("", None)
    elif what == "partition":
        told.partitions[name] = line
        told.gone.pop(name, None)
        told.errors.pop(name, None)
    elif what == "gone":
        told.partitions.pop(name, None)
        told.gone[name] = line
    elif what == "error":
        told.errors[name] = line
    elif what == "metadata_files":
        told.files = line
    elif what == "metadata":
        told.pieces[name, line["at_byte"]] = line


def _leave_behind(told: _Told) -> None:
    """Takes what an older process told for gone where the newest has told all that is there now."""
    newest = told.newest or {}
    started = newest.get("started")
    older = [name for name, line in told.partitions.items() if line["started"] != started]
    if newest.get("partitions") == len(told.partitions) - len(older):
        for name in older:
            seen = {"at": started, "topic_id": told.partitions.pop(name)["topic_id"]}
            told.gone[name] = {**seen, "emptied": newest.get("broker_runs") is False}


def _emptied(told: _Told, every: list[_Told]) -> dict[str, Line]:
    """Of the replicas that are gone those that no broker took away and that lie in no other of its
    directories: the lines that told so. What a running broker deletes, its own lines tell."""
    newest, meta = told.newest or {}, _meta_of(told)
    without = newest.get("broker_runs") is False or not newest.get("meta")
    found = {n: line for n, line in told.gone.items() if line.get("emptied", without)}
    if not found or meta is None:
        return {}
    own = [each for each in every if _is_same_broker(meta, _meta_of(each))]
    there = {parse_directory_name(name)[:2] for each in own for name in each.partitions}
    seen = min((each.newest or {}).get("at", 0) for each in own)
    return {
        name: line
        for name, line in found.items()
        if line["at"] <= seen and parse_directory_name(name)[:2] not in there
    }


def _meta_of(told: _Told) -> MetaProperties | None:
    meta = parse_meta_properties(told.meta or "", told.name)
    return None if isinstance(meta, Unreadable) or meta.broker_id is None else meta


def _is_same_broker(one: MetaProperties, other: MetaProperties | None) -> bool:
    """Unless they name two clusters: not every release names one."""
    alike = other is not None and one.broker_id == other.broker_id
    clusters = {one.cluster_id, other.cluster_id if other is not None else None}
    return alike and (None in clusters or len(clusters) == 1)


def _log_directory(told: _Told, emptied: dict[str, Line], folder: Path) -> LogDirectory:
    path = told.path
    unreadable = [
        Unreadable(str(path), "file", f"{told.name}/{name}: {line['reason']}")
        for name, line in sorted(told.errors.items())
    ]
    newest = told.newest or {}
    where = f"{path} ({told.name})"
    meta, clean = told.meta, newest.get("clean_shutdown")
    down_since = _down_since(newest)
    partitions = []
    for name, line in sorted(told.partitions.items()):
        try:
            # A later process would have printed it again.
            alike = newest.get("started") == line["started"]
            read_at = max(line["at"], newest.get("at", 0) if alike else 0)
            there = _partition(path / name, line, read_at, runs=clean is None)
            if down_since is not None and alike:
                grew = (int(at) for at, _ in line.get("grown") or ())
                there = replace(there, down_at=max(down_since, *grew, 0))
            partitions.append(there)
        except (KeyError, TypeError, ValueError) as error:
            unreadable.append(Unreadable(str(path), "file", f"its line about {name}: {error!r}"))
    partitions += [_nothing_left(path / name, line, newest) for name, line in emptied.items()]
    restored = _restored(told, folder, unreadable)
    return LogDirectory(
        path=path,
        meta=readable_or_none(parse_meta_properties(meta, where) if meta else None, unreadable),
        clean_shutdown=readable_or_none(
            parse_clean_shutdown(clean, where) if clean is not None else None, unreadable
        ),
        partitions=tuple(partitions),
        unreadable=tuple(unreadable),
        has_cluster_metadata=restored,
        crashed=clean is None and newest.get("broker_runs") is False,
    )


def _partition(path: Path, line: Line, read_at: int, *, runs: bool) -> SeenDirectory:
    topic, partition, kind = parse_directory_name(path.name)
    start, end = int(line["log_start_offset"]), int(line["log_end_offset"])
    entries = line["leader_epochs"]
    pairs = None if entries is None else tuple((int(e), int(first)) for e, first in entries)
    high_watermark = line["high_watermark"]
    if high_watermark is not None and runs:
        # Read one after the other beside a broker that may have cut the log in between.
        high_watermark = min(int(high_watermark), end)
    whole: Segment = SeenSegment(start, path)
    grown = tuple((int(at), int(to)) for at, to in line.get("grown") or ())
    since = [at for at, to in grown if to == end and at <= line["at"]]
    return SeenDirectory(
        path=path,
        topic=topic,
        partition=partition,
        kind=kind,
        topic_id=line["topic_id"],
        log_start_offset=start,
        first_batch_offset=None,
        log_end_offset=max(end, start),
        end_is_certain=True,
        batch_count=0,
        spans=tuple(_spans(pairs or (), start, end)),
        epoch_entries=pairs,
        high_watermark=high_watermark,
        recovery_point=line["recovery_point"],
        last_snapshot_offset=None,
        max_timestamp=None,
        unreadable=(),
        segments=(whole,),
        told_at=min(since, default=line["at"]),
        line_at=line["at"],
        read_at=read_at,
        grown=tuple(sorted((at, to) for at, to in grown if start < to < end and at < line["at"])),
    )


def _down_since(newest: Line) -> int | None:
    """Since when no broker was seen to run there; older digests do not tell."""
    since = newest.get("down_since")
    return since if type(since) is int and newest.get("broker_runs") is False else None


def _nothing_left(path: Path, line: Line, newest: Line) -> SeenDirectory:
    """A replica of which somebody took away all that there was."""
    empty = {"log_start_offset": 0, "log_end_offset": 0, "leader_epochs": None}
    empty |= {"high_watermark": None, "recovery_point": None, "topic_id": line.get("topic_id")}
    read_at, down_since = max(line["at"], newest.get("at", 0)), _down_since(newest)
    seen = _partition(path, {**empty, "at": line["at"]}, read_at, runs=True)
    return seen if down_since is None else replace(seen, down_at=max(line["at"], down_since))


def _spans(entries: Iterable[tuple[int, int]], start: int, end: int) -> Iterator[Span]:
    """The log by its epoch cache: each leader epoch's records, and those below the first entry."""
    borders = [(None, start), *entries]
    for index, (leader_epoch, first) in enumerate(borders):
        following = borders[index + 1][1] if index + 1 < len(borders) else end
        first, following = max(first, start), min(following, end)
        if first < following:
            yield (leader_epoch, first, following)


def _restored(told: _Told, folder: Path, unreadable: list[Unreadable]) -> Path | None:
    """The files of the metadata log as far as they were printed; None where there are none."""
    if not told.pieces:
        return None
    target = folder / CLUSTER_METADATA
    target.mkdir(parents=True, exist_ok=True)
    there = None if told.files is None else set(told.files["names"])
    files: dict[str, list[Line]] = {}
    for (name, _), line in sorted(told.pieces.items()):
        if there is None or name in there:
            files.setdefault(name, []).append(line)
    for name, pieces in files.items():
        size = max(pieces, key=order_of)["size"]
        with (target / name).open("wb") as stream:
            where = _put_together(stream, pieces, size)
        if where is not None:
            told_of = f"{told.name}/{CLUSTER_METADATA}/{name}: {where}"
            unreadable.append(Unreadable(str(told.path), "file", told_of))
    return target


def _put_together(stream: BinaryIO, pieces: list[Line], size: int) -> str | None:
    """Writes the pieces of a file in their order; what is missing, if that is too much.

    What did not come is zeros, and never more than what came: so a line makes no file that is
    larger than all lines together. Nor is a file longer than its last piece."""
    came = sum(len(line["base64"]) for line in pieces)
    for line in pieces:
        end = stream.seek(0, SEEK_END)
        came -= max(0, line["at_byte"] - end)
        if came < 0:
            return f"most of it did not come: it was read up to byte {end}"
        stream.seek(line["at_byte"])
        stream.write(base64.b64decode(line["base64"]))
    if stream.seek(0, SEEK_END) > size:
        stream.truncate(size)
    return None
