"""Event dumps: JSON Lines (plain or gzipped) and Parquet, read row by row and written."""

import gzip
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from replication.evidence.opening import LARGEST_RATIO, READ_ERRORS, open_unpacked
from replication.evidence.unreadable import Unreadable
from replication.protocol.ground import wire
from replication.protocol.ground.events import Event

PARQUET_MAGIC = b"PAR1"
ROWS_PER_GROUP = 50_000
# The longest event is a copy of a log of many spans; one of 32 MB has half a million.
LONGEST_LINE = 32 << 20
UNPACKED_AT_LEAST = 16 << 20
# So many places of one file or topic that hold no event are told one by one: a file that is none of
# events, put among them, has millions.
TOLD_ONE_BY_ONE = 10_000
# What Arrow says of a damaged file, whose names may be no text either.
NO_PARQUET = (OSError, UnicodeDecodeError, pa.ArrowException)
_SPAN = pa.struct(
    [(name, pa.int64()) for name in ("first_offset", "end_offset", "leader_epoch", "content")]
)
_EPOCH_ENTRY = pa.struct([(name, pa.int64()) for name in ("leader_epoch", "start_offset")])
_ARROW_TYPES = {
    "int": pa.int64(),
    "str": pa.string(),
    "bool": pa.bool_(),
    "ints": pa.list_(pa.int64()),
    "spans": pa.list_(_SPAN),
    "epoch_entries": pa.list_(_EPOCH_ENTRY),
}
_HEADER_TEXT = frozenset(
    (
        "event_id", "trace_id", "cluster_id", "incident", "topic", "topic_id", "kind", "grade",
        "source_path",
    )
)  # fmt: skip


@dataclass(slots=True)
class Misfits:
    """What holds no event in event dumps: of each dump the first TOLD_ONE_BY_ONE places, and how
    many more there are. rows: how many there are in all."""

    rows: int = 0
    _told: list[Unreadable] = field(default_factory=list)
    _of: Counter[str] = field(default_factory=Counter)
    _last: dict[str, Unreadable] = field(default_factory=dict)

    def add(self, misfit: Unreadable) -> None:
        """Takes one; those of a dump come in its order."""
        self.rows += 1
        self._of[misfit.path] += 1
        if self._of[misfit.path] <= TOLD_ONE_BY_ONE:
            self._told.append(misfit)
        else:
            self._last[misfit.path] = misfit

    def places(self) -> list[Unreadable]:
        """The places; of each dump that has more, one for all of these at last."""
        more = {path: self._of[path] - TOLD_ONE_BY_ONE for path in self._last}
        return [
            *self._told,
            *(
                replace(last, reason=f"{more[path]} more hold no event; of this one: {last.reason}")
                for path, last in self._last.items()
            ),
        ]


def arrow_schema() -> pa.Schema:
    """The event contract as an Arrow schema; every whole number is 64 bits."""
    columns = [(n, pa.string() if n in _HEADER_TEXT else pa.int64()) for n in wire.HEADER]
    words = {n: w for types in wire.FIELD_TYPES.values() for n, (w, _) in types.items()}
    columns += [(name, _ARROW_TYPES[words[name]]) for name in wire.FACT_COLUMNS]
    return pa.schema(columns)


def read_events(path: Path) -> Iterator[Event | Unreadable]:
    """The events of a dump; what is no event of the contract is Unreadable with its line or row."""
    try:
        with path.open("rb") as stream:
            head = stream.read(4)
        if head == PARQUET_MAGIC:
            yield from _read_parquet(path)
        else:
            yield from _read_lines(path)
    except (*READ_ERRORS, *NO_PARQUET) as error:
        yield Unreadable(str(path), "file", f"cannot be read: {error}")


def _read_lines(path: Path) -> Iterator[Event | Unreadable]:
    with open_unpacked(path) as stream:
        for number, line in enumerate(_bounded(stream), start=1):
            if line is None:
                reason = f"this line is longer than {LONGEST_LINE} bytes"
                yield Unreadable(str(path), f"line {number}", reason)
                continue
            if not line.strip():
                continue
            try:
                yield wire.from_json(line.decode("utf-8", "replace"))
            except wire.Misfit as error:
                whole = line.endswith(b"\n")
                reason = str(error) if whole else f"the file breaks off within this line: {error}"
                yield Unreadable(str(path), f"line {number}", reason)


def _bounded(stream: BinaryIO) -> Iterator[bytes | None]:
    """The lines of a file, None for one that is too long to be held in memory."""
    while line := stream.readline(LONGEST_LINE + 1):
        if len(line) <= LONGEST_LINE:
            yield line
            continue
        yield None
        while line and not line.endswith(b"\n"):
            line = stream.readline(LONGEST_LINE)


def most_unpacked(packed_bytes: int) -> int:
    """To how many bytes a packed file of that size may unpack."""
    return max(UNPACKED_AT_LEAST, LARGEST_RATIO * packed_bytes)


def out_of_bounds(source: Any, packed_bytes: int) -> str:
    """Why a Parquet file of that many bytes is not read row by row: its pages, its lists or its
    texts, each as often as rows name it, unpack to too much; "" where they do not. No text is held
    more than once.

    source: what pyarrow opens. Raises what pyarrow does of a damaged file.
    """
    most = most_unpacked(packed_bytes)
    problem = f"it unpacks to more than {most} bytes"
    with pq.ParquetFile(source) as file:
        schema, footer = file.schema_arrow, file.metadata
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    columns = [g.column(number) for g in groups for number in range(g.num_columns)]
    pages = sum(column.total_uncompressed_size for column in columns)
    listed = sum(
        8 * max(group.column(number).num_values - group.num_rows, 0)
        for group in groups
        for number in range(group.num_columns)
    )
    if pages + listed > most:
        return problem
    texts = [
        f.name for f in schema if pa.types.is_string(f.type) or pa.types.is_large_string(f.type)
    ]
    with pq.ParquetFile(source, read_dictionary=texts) as file:
        size = 0
        for batch in file.iter_batches(ROWS_PER_GROUP, columns=texts):
            for column in batch.columns:
                size += (
                    pc.sum(pc.binary_length(column.dictionary).take(column.indices)).as_py() or 0
                )
            if size > most:
                return problem
    return ""


def _read_parquet(path: Path) -> Iterator[Event | Unreadable]:
    problem = out_of_bounds(path, path.stat().st_size)
    if problem:
        yield Unreadable(str(path), "file", problem)
        return
    file = pq.ParquetFile(path, page_checksum_verification=True)
    wanted = arrow_schema()
    for column in file.schema_arrow:
        index = wanted.get_field_index(column.name)
        if index < 0 or column.type != wanted.field(index).type:
            yield Unreadable(
                str(path),
                "file",
                f"column {column.name} of type {column.type} is not of the contract",
            )
            return
    number = 0
    for batch in file.iter_batches(ROWS_PER_GROUP):
        for row in batch.to_pylist():
            number += 1
            try:
                yield wire.from_row({k: v for k, v in row.items() if v is not None})
            except wire.Misfit as error:
                yield Unreadable(str(path), f"row {number}", str(error))


def write_events(path: Path, events: Iterable[Event]) -> int:
    """Writes a dump, Parquet or gzip by the name's ending, else JSON Lines; how many events. The
    folder is made where it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        return _write_parquet(path, events)
    count = 0
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "wt", encoding="utf-8") as stream:
        for event in events:
            stream.write(wire.to_json(event) + "\n")
            count += 1
    return count


def _write_parquet(path: Path, events: Iterable[Event]) -> int:
    schema = arrow_schema()
    count = 0
    with pq.ParquetWriter(path, schema, compression="zstd", write_page_checksum=True) as writer:
        rows: list[dict[str, Any]] = []
        for event in events:
            rows.append(wire.to_row(event))
            count += 1
            if len(rows) >= ROWS_PER_GROUP:
                writer.write_table(pa.Table.from_pylist(rows, schema=schema))
                rows = []
        writer.write_table(pa.Table.from_pylist(rows, schema=schema))
    return count


def is_event_dump(path: Path) -> bool:
    """Whether the file holds events of ours: JSON Lines (or .gz), or Parquet with our columns."""
    try:
        with path.open("rb") as stream:
            head = stream.read(4)
        if head == PARQUET_MAGIC:
            return "format_version" in pq.read_schema(path).names
        with open_unpacked(path) as stream:
            row = json.loads(stream.readline(1 << 20))
    except (*READ_ERRORS, ValueError, RecursionError, pa.ArrowException):
        return False
    return isinstance(row, dict) and "format_version" in row and "kind" in row
