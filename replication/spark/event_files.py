"""Which parts of which files of a source folder are to be read: whole lines, whole files, once.

A file is known by its content (Parquet, gzip, text), not by its name. Of a file that still grows
the whole lines (of a gzip file the whole members) are taken now and the rest later. A file that was
cut or rewritten after it had been read is read anew: events that it repeats are duplicates. So is a
packed file that was refused, or one that could not be opened, once it is another one. What
has been taken is noted in a folder of small JSON files, one slice each; that folder is the ingest
query's file source, so Spark's own checkpoint decides which slice has been read.
"""

import gzip
import json
import os
import time
import uuid
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from replication import places
from replication.evidence.event_dumps import (
    LONGEST_LINE,
    NO_PARQUET,
    arrow_schema,
    most_unpacked,
    out_of_bounds,
)
from replication.evidence.text_lines import MANY_LINES
from replication.places import HadoopPath, Place, Status
from replication.spark import contracts
from replication.spark.line_bounds import Bounds, pieces_of

LINES, GZIPPED, PARQUET, REFUSED = "lines", "gzipped", "parquet", "refused"
GZIP_MAGIC, PARQUET_MAGIC = b"\x1f\x8b", b"PAR1"
PROBE_BYTES = 65_536
# A look at all files of a source folder that takes so many CPU seconds is followed by a pause of
# so many times as long: 20,000 files are then looked at every ten seconds.
LONG_LOOK, PAUSE = 0.02, 20
# Notes of long ago, joined. Spark's file source passes over names that begin so.
PRUNED = "_joined"
# By so many of its first and last bytes a file is known again.
SEEN_BYTES = 4_096
# Names that other tools give to what is not finished or not data.
SKIPPED_STARTS = (".", "_")
SKIPPED_ENDS = (".tmp", ".partial", ".inprogress", ".crc")


class SourceError(RuntimeError):
    """The source folder cannot be read at all; the text says why."""


@dataclass(frozen=True)
class Slice:
    """Bytes [first_byte, end_byte) of a file. format: lines, gzipped, parquet or refused.

    A refused file is quarantined whole: reason_code, reason, and rows, the lines or rows in it;
    Of a Parquet file that is read rows are known, too.
    """

    path: str
    format: str
    first_byte: int
    end_byte: int
    reason_code: str = ""
    reason: str = ""
    rows: int = 0


SLICE_DDL = (
    "path string, format string, first_byte bigint, end_byte bigint, "
    "reason_code string, reason string, rows bigint"
)


def event_files(folder: Place) -> list[Place]:
    """The files of a source folder at any depth, sorted by path.

    Raises SourceError where the folder is missing or no folder.
    """
    if not folder.is_dir():
        what = "is a file, not a folder" if folder.exists() else "does not exist"
        raise SourceError(f"source folder {folder} {what}")
    return _in_order(path for path, _ in _found(folder))


def _in_order(paths: Iterable[str]) -> list[Place]:
    """Part by part, as pathlib has it."""
    return [places.place(path) for path in sorted(paths, key=lambda path: path.split("/"))]


def _found(folder: Place) -> Iterator[tuple[str, os.stat_result | Status]]:
    """The files below a folder that count, each with what one look at it tells."""
    return _walk_store(folder) if isinstance(folder, HadoopPath) else _walk(str(folder))


def _walk_store(folder: HadoopPath) -> Iterator[tuple[str, Status]]:
    for path, status in folder.listed():
        if path.name.startswith(SKIPPED_STARTS):
            continue
        if status.is_folder:
            yield from _walk_store(path)
        elif not path.name.endswith(SKIPPED_ENDS):
            yield str(path), status


def _walk(folder: str) -> Iterator[tuple[str, os.stat_result]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(SKIPPED_STARTS):
                continue
            try:
                if entry.is_dir(follow_symlinks=False):
                    yield from _walk(entry.path)
                elif entry.is_file() and not entry.name.endswith(SKIPPED_ENDS):
                    yield entry.path, entry.stat()
            except FileNotFoundError:
                continue  # It went away while the folder was read.


def next_slice(path: Place, taken: int, settled: bool) -> Slice | None:
    """What can be read of a file of which bytes below taken have been read; None: nothing yet.

    settled: the file has not changed for long enough to take an unfinished end for its end.
    """
    try:
        size = path.stat().st_size
        if size <= taken:
            return None
        with path.open("rb") as file:
            head = file.read(PROBE_BYTES)
            if head.startswith(PARQUET_MAGIC):
                return _parquet_slice(path, size, settled) if taken == 0 else None
            if head.startswith(GZIP_MAGIC):
                return _gzip_slice(path, taken, size, settled)
            if taken == 0 and _is_no_text(head):
                file.seek(0)
                rows = _lines_counted(pieces_of(file))
                reason = "neither text nor Parquet nor gzip: it has NUL bytes"
                return _refused(path, size, "unreadable_file", reason, rows)
            end = size if settled else _end_of_lines(file, taken, size)
            reason = _out_of_bounds(file, taken, end)
            if reason:
                file.seek(taken)
                rows = _lines_counted(pieces_of(file, end - taken))
                return _refused(path, end, "unreadable_file", reason, rows)
    except OSError as error:
        if not settled:
            return None
        return _refused(path, taken + 1, "unreadable_file", f"cannot be read: {error}", 0)
    return Slice(str(path), LINES, taken, end) if end > taken else None


def _is_no_text(head: bytes) -> bool:
    """Whether a file that begins so has no lines worth reading: it has NUL bytes, and no line that
    could be an event. In a file that has such lines a NUL costs its own line alone."""
    return b"\0" in head and not any(
        line.startswith(b"{") and b"\0" not in line for line in head.split(b"\n")
    )


def still_readable(part: Slice) -> Slice:
    """The slice, or a refusal of its file: it is gone, or Parquet with broken pages."""
    path = places.place(part.path)
    rows = 0
    if part.format == REFUSED:
        return part
    try:
        if path.stat().st_size < part.end_byte:
            reason = f"it was cut to {path.stat().st_size} bytes before it was read"
            return _refused(path, part.end_byte, "unreadable_file", reason, 0)
        if part.format == PARQUET:
            with pq.ParquetFile(_for_arrow(path), page_checksum_verification=True) as file:
                rows = file.metadata.num_rows
                problem = out_of_bounds(_for_arrow(path), part.end_byte)
                if problem:
                    return _refused(path, part.end_byte, "unreadable_file", problem, rows)
                for _ in file.iter_batches(batch_size=10_000):
                    pass
    except NO_PARQUET as error:
        reason = f"it cannot be read: {str(error).splitlines()[0]}"
        return _refused(path, part.end_byte, "unreadable_file", reason, rows)
    return part


def _refused(path: Place, size: int, code: str, reason: str, rows: int) -> Slice:
    return Slice(str(path), REFUSED, 0, size, code, reason, rows)


def _lines_counted(pieces: Iterable[bytes]) -> int:
    """How many lines there are, the last one with or without its end."""
    ends, last = 0, b"\n"
    for last in pieces:
        ends += last.count(b"\n")
    return ends + (not last.endswith(b"\n"))


def _end_of_lines(file: "object", taken: int, size: int) -> int:
    """The end of the last whole line in bytes [taken, size); taken where there is none."""
    position = size
    while position > taken:
        first = max(taken, position - PROBE_BYTES)
        file.seek(first)  # type: ignore[attr-defined]
        found = file.read(position - first).rfind(b"\n")  # type: ignore[attr-defined]
        if found >= 0:
            return int(first + found + 1)
        position = first
    return taken


def _out_of_bounds(file: BinaryIO, first: int, end: int) -> str:
    """Why lines in bytes [first, end) cannot be read one by one; "" where they can."""
    found = Bounds(first)
    if end - first > min(LONGEST_LINE, MANY_LINES):
        file.seek(first)
        found.look(pieces_of(file, end - first))
    return found.problem


def _gzip_slice(path: Place, taken: int, size: int, settled: bool) -> Slice | None:
    """What has come to a gzip file is taken when it is whole members: reading it through is the
    only way to know."""
    bounds = Bounds(most_bytes=most_unpacked(size - taken))
    try:
        with path.open("rb") as file:
            file.seek(taken)
            if file.read(2) != GZIP_MAGIC:
                raise OSError("what was appended to it is no gzip member")
            file.seek(taken)
            part: Any = _Part(file, size - taken)
            with gzip.GzipFile(fileobj=part) as unpacked:
                bounds.look(pieces_of(unpacked))
    except (OSError, EOFError, zlib.error) as error:
        if not settled:
            return None
        lines = f"{bounds.lines} whole lines before the break"
        reason = f"a broken gzip file: {error}; {lines}; each later state of the file is read"
        return _refused(path, size, "unreadable_file", reason, max(bounds.lines, 1))
    if bounds.problem:
        return _refused(path, size, "unreadable_file", bounds.problem, max(bounds.lines, 1))
    return Slice(str(path), GZIPPED, taken, size)


def _for_arrow(path: Place) -> Any:
    """What pyarrow opens: a path of this machine by itself."""
    return path if isinstance(path, Path) else path.open("rb")


def _parquet_slice(path: Place, size: int, settled: bool) -> Slice | None:
    try:
        with pq.ParquetFile(_for_arrow(path)) as footer:
            problem, rows = _foreign(footer.schema_arrow), footer.metadata.num_rows
    except NO_PARQUET as error:
        if not settled:
            return None
        what = str(error).splitlines()[0]
        reason = f"no readable Parquet footer: {what}; each later state of the file is read"
        return _refused(path, size, "unreadable_file", reason, 1)
    if problem:
        return _refused(path, size, "foreign_schema", problem, rows)
    return Slice(str(path), PARQUET, 0, size, rows=rows)


def _foreign(schema: pa.Schema) -> str | None:
    """Why a Parquet file's columns are not those of the event contract, None where they are."""
    wanted = arrow_schema()
    for column in contracts.event_columns():
        place = schema.get_field_index(column.name)
        if place < 0:
            if not column.nullable and column.name not in OPTIONAL_HEADER:
                return f"column {column.name} is missing"
            continue
        found = schema.field(place).type
        if not _fits(found, wanted.field(column.name).type):
            return f"column {column.name} is {found}, not {column.type}"
    known = {c.name for c in contracts.event_columns()}
    foreign = [name for name in schema.names if name not in known]
    return f"column {foreign[0]} is none of the event contract" if foreign else None


OPTIONAL_HEADER = ("trace_generation", "cluster_id", "topic_id", "grade")


def _fits(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether a column of a type is read as one of another: in Arrow's large forms, with fewer
    fields of its structs, or in another order of them."""
    if pa.types.is_list(found) or pa.types.is_large_list(found):
        return pa.types.is_list(wanted) and _fits(found.value_type, wanted.value_type)
    if pa.types.is_struct(found) and pa.types.is_struct(wanted):
        inner = {field.name: field.type for field in wanted}
        return all(f.name in inner and _fits(f.type, inner[f.name]) for f in found)
    return bool(found == wanted or (pa.types.is_large_string(found) and wanted == pa.string()))


def lines_of(path: str, first_byte: int, end_byte: int) -> Iterator[bytes]:
    """The lines of a slice without their newline, gzip unpacked; the last may lack its newline.

    Raises OSError, EOFError or zlib.error where the file is gone or broken.
    """
    with places.place(path).open("rb") as file:
        yield from lines_in(file, first_byte, end_byte)


def lines_in(file: BinaryIO, first_byte: int, end_byte: int) -> Iterator[bytes]:
    """As lines_of, of an open file."""
    file.seek(first_byte)
    is_gzip = file.read(2) == GZIP_MAGIC
    file.seek(first_byte)
    if is_gzip:
        part: Any = _Part(file, end_byte - first_byte)
        with gzip.GzipFile(fileobj=part) as unpacked:
            while line := unpacked.readline(LONGEST_LINE + 1):
                line = line.removesuffix(b"\n")
                if len(line) > LONGEST_LINE:
                    raise OSError(f"a line of more than {LONGEST_LINE} bytes")
                yield line
        return
    left = end_byte - first_byte
    while left > 0:
        line = file.readline(left)
        if not line:
            return
        left -= len(line)
        yield line.removesuffix(b"\n")


class _Part:
    """The next so many bytes of a file, as a file: what comes after them is not there yet."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file, self._left = file, size

    def read(self, size: int = -1) -> bytes:
        """As a file's read."""
        wanted = self._left if size < 0 else min(size, self._left)
        data = self._file.read(wanted)
        self._left -= len(data)
        return data


@dataclass(frozen=True)
class Taken:
    """How far a file has been read, and by what to tell that it is still the same file.

    stamp: its size, time of change and inode when it was looked at. head, tail: checksums of the
    first bytes, and of the last ones before end_byte; None where they were not noted. whole: where
    the last line began that had no end; None where all lines were whole. again: from which byte a
    file that was refused is read when it is another one; None where it was not refused, or where
    only what comes to it is read.
    """

    end_byte: int
    stamp: tuple[int, int, int] = (0, 0, 0)
    head: int | None = None
    tail: int | None = None
    whole: int | None = None
    again: int | None = None

    def next_byte(self, size: int) -> int:
        """Where a file of that size is read on: a line whose end has come is read as one."""
        if self.again is not None:
            return self.again
        return self.end_byte if self.whole is None or size <= self.end_byte else self.whole


def number_of(note: Place) -> int:
    """A note's place in the order of admission."""
    return int(note.stem.split("-")[0])


def _checksums(path: Place, end_byte: int) -> tuple[int, int]:
    """Of the first bytes of a file and of the last ones before end_byte."""
    with path.open("rb") as file:
        head = zlib.crc32(file.read(min(SEEN_BYTES, end_byte)))
        file.seek(max(0, end_byte - SEEN_BYTES))
        return head, zlib.crc32(file.read(min(SEEN_BYTES, end_byte)))


def _unfinished(part: Slice) -> int | None:
    """Where the last line of a slice of lines begins, if it has no end."""
    with places.place(part.path).open("rb") as file:
        end = _end_of_lines(file, part.first_byte, part.end_byte)
    return end if end < part.end_byte else None


def _stamp(path: Place) -> tuple[int, int, int]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns, found.st_ino


@dataclass
class Admission:
    """Looks at the source folder and notes what can be read, one note a slice.

    notes: the folder of notes. settle_seconds: how long an unfinished end must stand still. say:
    where it tells of files that are not what they were.
    """

    source: Place
    notes: Place
    settle_seconds: float
    say: Callable[[str], None] = field(default=lambda text: None)

    def __post_init__(self) -> None:
        self.notes.mkdir(parents=True, exist_ok=True)
        self._taken: dict[str, Taken] = {}
        self._next = 0
        self._newest = 0.0
        self._next_look = 0.0
        for known, number, changed in self._noted():
            stamp = tuple(known.get("stamp", (0, 0, 0)))
            self._taken[known["path"]] = Taken(
                known["end_byte"], stamp, known.get("head"), known.get("tail"),
                known.get("whole"), known.get("again"),
            )  # fmt: skip
            self._next = max(self._next, number + 1)
            self._newest = max(self._newest, changed)

    def _noted(self) -> Iterator[tuple[dict[str, Any], int, float]]:
        """Every note, its number and its time of change; first those that maintenance joined."""
        joined = self.notes / PRUNED
        if joined.is_file():
            for line in joined.read_text(encoding="utf-8").splitlines():
                known = json.loads(line)
                yield known, known["number"], known.get("changed", 0.0)
        for note in places.matching(self.notes, "*.json"):
            try:
                known = json.loads(note.read_text(encoding="utf-8"))
            except ValueError:
                raise SourceError(
                    f"{note} is no whole note of what was read: delete it, then its file is read "
                    "anew, and what it repeats are duplicates"
                ) from None
            yield known, number_of(note), note.stat().st_mtime

    def admit(self) -> int:
        """Notes whatever has come since the last look; returns how many slices.

        Where the folder has so many files that looking at them takes long, it looks less often.
        Raises SourceError where the source folder is gone.
        """
        if time.monotonic() < self._next_look:
            return 0
        noted = 0
        started = time.thread_time()
        changed = self._changed()
        spent = time.thread_time() - started
        if spent > LONG_LOOK:
            self._next_look = time.monotonic() + PAUSE * spent
        for path in changed:
            first_byte = self._taken_of(path)
            part = next_slice(path, first_byte, self._is_settled(path))
            if part is not None and not self._is_refused_already(part):
                self._note(part, first_byte)
                noted += 1
        return noted

    def _changed(self) -> list[Place]:
        """The files that are not, wholly read, what they were when they were read; by path."""
        if not self.source.is_dir():
            return event_files(self.source)
        changed = []
        for path, found in _found(self.source):
            known = self._taken.get(path)
            stamp = (found.st_size, found.st_mtime_ns, found.st_ino)
            if known is None or known.stamp != stamp or known.end_byte < found.st_size:
                changed.append(path)
        return _in_order(changed)

    def _taken_of(self, path: Place) -> int:
        """Below which byte a file has been read: 0 again where it is not the file that was read."""
        known = self._taken.get(str(path))
        if known is None:
            return 0
        try:
            stamp = _stamp(path)
            if stamp == known.stamp:
                return known.next_byte(stamp[0])
            if known.again == 0:
                self._taken[str(path)] = replace(known, stamp=stamp)
                return 0
            shrunk = stamp[0] < known.end_byte
            seen = (known.head, known.tail)
            if not shrunk and seen in ((None, None), _checksums(path, known.end_byte)):
                self._taken[str(path)] = replace(known, stamp=stamp)
                return known.next_byte(stamp[0])
        except OSError:
            return known.end_byte
        how = f"cut to {stamp[0]} bytes" if shrunk else "rewritten"
        self.say(f"{path} was {how} after {known.end_byte} bytes had been read: read anew")
        return 0

    def _is_refused_already(self, part: Slice) -> bool:
        """Whether a file that was refused is refused once more, with nothing come to it."""
        known = self._taken.get(part.path)
        if known is None or known.again is None or part.format != REFUSED:
            return False
        return known.end_byte == part.end_byte

    def waiting(self) -> list[str]:
        """Files with an end that is not read yet, because it may still grow; in words."""
        result = []
        for path in event_files(self.source):
            left = path.stat().st_size - self._taken.get(str(path), Taken(0)).end_byte
            if left > 0:
                result.append(f"{path}: {left} bytes after its last whole line")
        return result

    def _is_settled(self, path: Place) -> bool:
        try:
            return time.time() - path.stat().st_mtime >= self.settle_seconds
        except OSError:
            return False

    def _note(self, part: Slice, first_byte: int) -> None:
        # Never a name that was there before: Spark passes over what it has seen.
        path = self.notes / f"{self._next:012d}-{uuid.uuid4().hex[:8]}.json"
        # Spark's file source reads whatever name begins with neither . nor _.
        partial = path.with_name(f".{path.stem}.partial")
        taken = self._seen(part, first_byte)
        seen = {name: getattr(taken, name) for name in ("stamp", "head", "tail", "whole", "again")}
        partial.write_text(json.dumps(asdict(part) | seen) + "\n", encoding="utf-8")
        # Spark takes files by time of change: one a millisecond keeps the order of admission.
        self._newest = max(time.time(), self._newest + 0.002)
        if isinstance(partial, HadoopPath):
            partial.touch(self._newest)
        else:
            os.utime(partial, (self._newest, self._newest))
        places.rename(partial, path)
        self._taken[part.path] = taken
        self._next += 1

    def _seen(self, part: Slice, first_byte: int) -> Taken:
        path = places.place(part.path)
        again = first_byte if part.format == REFUSED else None
        try:
            known = Taken(part.end_byte, _stamp(path), *_checksums(path, part.end_byte))
            if again is not None and _is_packed(path):
                return replace(known, again=again)
            return replace(known, whole=_unfinished(part)) if part.format == LINES else known
        except OSError:
            return Taken(part.end_byte, again=again)


def _is_packed(path: Place) -> bool:
    """Whether a file's content is known as a whole only: gzip or Parquet."""
    with path.open("rb") as file:
        return file.read(4).startswith((GZIP_MAGIC, PARQUET_MAGIC))
