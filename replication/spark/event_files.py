"""Which parts of which files of a source folder are to be read: whole lines, whole files, once.

A file is known by its content (Parquet, gzip, text), not by its name. Of a file that still grows
the whole lines are taken now and the rest later. What has been taken is noted in a folder of small
JSON files, one slice each; that folder is the ingest query's file source, so Spark's own
checkpoint decides which slice has been read.
"""

import gzip
import json
import os
import time
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from replication.spark import contracts

LINES, GZIPPED, PARQUET, REFUSED = "lines", "gzipped", "parquet", "refused"
GZIP_MAGIC, PARQUET_MAGIC = b"\x1f\x8b", b"PAR1"
PROBE_BYTES = 65_536
# Names that other tools give to what is not finished or not data.
SKIPPED_STARTS = (".", "_")
SKIPPED_ENDS = (".tmp", ".partial", ".inprogress", ".crc")


class SourceError(RuntimeError):
    """The source folder cannot be read at all; the text says why."""


@dataclass(frozen=True)
class Slice:
    """Bytes [first_byte, end_byte) of a file. format: lines, gzipped, parquet or refused.

    A refused file is quarantined whole: reason_code, reason, and rows, the lines or rows in it.
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


def event_files(folder: Path) -> list[Path]:
    """The files of a source folder at any depth, sorted by path.

    Raises SourceError where the folder is missing or no folder.
    """
    if not folder.is_dir():
        what = "is a file, not a folder" if folder.exists() else "does not exist"
        raise SourceError(f"source folder {folder} {what}")
    found = []
    for parent, folders, names in os.walk(folder):
        folders[:] = [f for f in folders if not f.startswith(SKIPPED_STARTS)]
        for name in names:
            if not name.startswith(SKIPPED_STARTS) and not name.endswith(SKIPPED_ENDS):
                found.append(Path(parent) / name)
    return sorted(p for p in found if p.is_file())


def next_slice(path: Path, taken: int, settled: bool) -> Slice | None:
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
                return _gzip_slice(path, size, settled) if taken == 0 else None
            if b"\0" in head and taken == 0:
                rows = sum(1 for _ in lines_of(str(path), 0, size))
                reason = "neither text nor Parquet nor gzip: it has NUL bytes"
                return _refused(path, size, "unreadable_file", reason, rows)
            end = size if settled else _end_of_lines(file, taken, size)
    except OSError as error:
        if not settled:
            return None
        return _refused(path, taken + 1, "unreadable_file", f"cannot be read: {error}", 0)
    return Slice(str(path), LINES, taken, end) if end > taken else None


def still_readable(part: Slice) -> Slice:
    """The slice, or a refusal of its file: it is gone, or Parquet with broken pages."""
    path = Path(part.path)
    rows = 0
    if part.format == REFUSED:
        return part
    try:
        if path.stat().st_size < part.end_byte:
            reason = f"it was cut to {path.stat().st_size} bytes before it was read"
            return _refused(path, part.end_byte, "unreadable_file", reason, 0)
        if part.format == PARQUET:
            with pq.ParquetFile(path) as file:
                rows = file.metadata.num_rows
                for _ in file.iter_batches(batch_size=10_000):
                    pass
    except (OSError, pa.ArrowException) as error:
        reason = f"it cannot be read: {str(error).splitlines()[0]}"
        return _refused(path, part.end_byte, "unreadable_file", reason, rows)
    return part


def _refused(path: Path, size: int, code: str, reason: str, rows: int) -> Slice:
    return Slice(str(path), REFUSED, 0, size, code, reason, rows)


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


def _gzip_slice(path: Path, size: int, settled: bool) -> Slice | None:
    """A gzip file is taken when it is whole: reading it through is the only way to know."""
    rows = 0
    try:
        for _ in lines_of(str(path), 0, size):
            rows += 1
    except (OSError, EOFError, zlib.error) as error:
        if not settled:
            return None
        reason = f"a broken gzip file: {error}; {rows} whole lines before the break"
        return _refused(path, size, "unreadable_file", reason, max(rows, 1))
    return Slice(str(path), GZIPPED, 0, size)


def _parquet_slice(path: Path, size: int, settled: bool) -> Slice | None:
    try:
        footer = pq.ParquetFile(path)
    except (OSError, pa.ArrowException) as error:
        if not settled:
            return None
        reason = f"no readable Parquet footer: {str(error).splitlines()[0]}"
        return _refused(path, size, "unreadable_file", reason, 1)
    with footer:
        problem = _foreign(footer.schema_arrow)
        if problem:
            return _refused(path, size, "foreign_schema", problem, footer.metadata.num_rows)
    return Slice(str(path), PARQUET, 0, size)


def _foreign(schema: pa.Schema) -> str | None:
    """Why a Parquet file's columns are not those of the event contract, None where they are."""
    for column in contracts.event_columns():
        place = schema.get_field_index(column.name)
        if place < 0:
            if not column.nullable and column.name not in OPTIONAL_HEADER:
                return f"column {column.name} is missing"
            continue
        problem = _type_problem(schema.field(place).type, column.type)
        if problem:
            return f"column {column.name} {problem}"
    known = {c.name for c in contracts.event_columns()}
    foreign = [name for name in schema.names if name not in known]
    return f"column {foreign[0]} is none of the event contract" if foreign else None


OPTIONAL_HEADER = ("trace_generation", "cluster_id", "topic_id", "grade")


def _type_problem(found: pa.DataType, wanted: str) -> str | None:
    if wanted.startswith("array<struct<"):
        if not pa.types.is_list(found) and not pa.types.is_large_list(found):
            return f"is {found}, not {wanted}"
        item = found.value_type
        fields = dict(f.split(":") for f in wanted[len("array<struct<") : -2].split(","))
        if not pa.types.is_struct(item):
            return f"is {found}, not {wanted}"
        names = {item.field(i).name: item.field(i).type for i in range(item.num_fields)}
        wrong = [n for n, t in names.items() if n not in fields or _type_problem(t, fields[n])]
        return f"is {found}, not {wanted}" if wrong else None
    if wanted.startswith("array<"):
        is_list = pa.types.is_list(found) or pa.types.is_large_list(found)
        if is_list and not _type_problem(found.value_type, wanted[len("array<") : -1]):
            return None
        return f"is {found}, not {wanted}"
    fits = {"bigint": pa.types.is_int64, "string": _is_text, "boolean": pa.types.is_boolean}[wanted]
    return None if fits(found) else f"is {found}, not {wanted}"


def _is_text(found: pa.DataType) -> bool:
    return bool(pa.types.is_string(found) or pa.types.is_large_string(found))


def lines_of(path: str, first_byte: int, end_byte: int) -> Iterator[bytes]:
    """The lines of a slice without their newline, gzip unpacked; the last may lack its newline.

    Raises OSError, EOFError or zlib.error where the file is gone or broken.
    """
    with open(path, "rb") as file:
        if first_byte == 0 and file.read(2) == GZIP_MAGIC:
            file.seek(0)
            with gzip.GzipFile(fileobj=file) as unpacked:
                for line in unpacked:
                    yield line.removesuffix(b"\n")
            return
        file.seek(first_byte)
        left = end_byte - first_byte
        while left > 0:
            line = file.readline(left)
            if not line:
                return
            left -= len(line)
            yield line.removesuffix(b"\n")


@dataclass
class Admission:
    """Looks at the source folder and notes what can be read, one note a slice.

    notes: the folder of notes. settle_seconds: how long an unfinished end must stand still.
    """

    source: Path
    notes: Path
    settle_seconds: float

    def __post_init__(self) -> None:
        self.notes.mkdir(parents=True, exist_ok=True)
        self._taken: dict[str, int] = {}
        self._next = 0
        self._newest = 0.0
        for note in sorted(self.notes.glob("*.json")):
            known = json.loads(note.read_text(encoding="utf-8"))
            self._taken[known["path"]] = max(known["end_byte"], self._taken.get(known["path"], 0))
            self._next = int(note.stem) + 1
            self._newest = max(self._newest, note.stat().st_mtime)

    def admit(self) -> int:
        """Notes whatever has come since the last look; returns how many slices.

        Raises SourceError where the source folder is gone.
        """
        noted = 0
        for path in event_files(self.source):
            taken = self._taken.get(str(path), 0)
            part = next_slice(path, taken, self._is_settled(path))
            if part is not None:
                self._note(part)
                noted += 1
        return noted

    def waiting(self) -> list[str]:
        """Files with an end that is not read yet, because it may still grow; in words."""
        result = []
        for path in event_files(self.source):
            left = path.stat().st_size - self._taken.get(str(path), 0)
            if left > 0:
                result.append(f"{path}: {left} bytes after its last whole line")
        return result

    def _is_settled(self, path: Path) -> bool:
        try:
            return time.time() - path.stat().st_mtime >= self.settle_seconds
        except OSError:
            return False

    def _note(self, part: Slice) -> None:
        path = self.notes / f"{self._next:012d}.json"
        partial = path.with_suffix(".partial")
        partial.write_text(json.dumps(asdict(part)) + "\n", encoding="utf-8")
        # Spark takes files by time of change: one a millisecond keeps the order of admission.
        self._newest = max(time.time(), self._newest + 0.002)
        os.utime(partial, (self._newest, self._newest))
        os.replace(partial, path)
        self._taken[part.path] = part.end_byte
        self._next += 1
