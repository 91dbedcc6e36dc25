"""Delivered rows that do not fit: protocol.wire has the last word, the words, and says where.

The last word is spoken row by row as rows stream by. What is refused is told line by line, unless a
file or a Kafka partition brings very many such lines: then one entry stands for all of them.
"""

import hashlib
import io
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlparse

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from replication.evidence.event_dumps import TOLD_ONE_BY_ONE
from replication.places import HadoopPath, place
from replication.protocol.ground import wire
from replication.spark.event_files import GZIPPED, LINES, Slice, lines_in, lines_of
from replication.spark.event_frames import contents

EXPLAINED_DDL = (
    "event_row string, reason string, raw string, identity binary, origin string, "
    "origin_offset bigint"
)
TOLD_DDL = (
    "reason string, raw string, rows bigint, origin string, origin_line bigint, "
    "origin_offset bigint"
)
RAW_LIMIT = 10_000
Ranges = dict[str, list[tuple[int, int]]]
Entry = tuple[str, str, str | None, int, str, int | None, int | None]


def explained(delivered: DataFrame, incident: str | None = None) -> DataFrame:
    """The rows that do not fit, as EXPLAINED_DDL: the reason in words, the raw text.

    event_row is set, and reason is null, where protocol.wire takes the row after all: then it is
    the event as JSON (a row without an event_id, whose identity only wire can derive). identity: of
    the whole raw line.
    """
    raw = F.coalesce(F.col("raw"), F.to_json(F.col("event")).cast("binary"))
    bad = delivered.filter("NOT fits").select(raw.alias("raw"), "origin", "origin_offset")

    def explain(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for frame in frames:
            told = [
                _explained(bytes(raw), str(origin), offset, incident)
                for raw, origin, offset in frame.itertuples(index=False)
            ]
            yield pd.DataFrame(told, columns=_names(EXPLAINED_DDL))

    return bad.mapInPandas(explain, EXPLAINED_DDL)


def told(lines: DataFrame, counts: Mapping[str, int], slices: Sequence[Slice]) -> DataFrame:
    """Entries of the quarantine, as TOLD_DDL, for explained rows that are no events.

    counts: how many of them each origin has. slices: of the files that lines come from.
    """
    many = sorted(origin for origin, rows in counts.items() if rows > TOLD_ONE_BY_ONE)
    refused = lines.filter("event_row IS NULL")
    summed_up = F.col("origin").isin(many)
    first = F.min(F.struct("reason", "raw"))
    together = refused.filter(summed_up).groupBy("origin").agg(
        F.count("*").alias("rows"), first.alias("first")
    ).select(
        F.concat(F.col("rows"), F.lit(" lines that are no events, one of them: "),
                 F.col("first.reason")).alias("reason"),
        F.col("first.raw").alias("raw"), "rows", "origin",
        F.lit(None).cast("bigint").alias("origin_line"),
        F.lit(None).cast("bigint").alias("origin_offset"),
    )  # fmt: skip
    return _numbered(refused.filter(~summed_up), counts, slices).unionByName(together)


def entries_of(counts: Mapping[str, int]) -> int:
    """How many entries `told` makes of them."""
    return sum(1 if rows > TOLD_ONE_BY_ONE else rows for rows in counts.values())


@dataclass
class Entries:
    """What is refused line by line on the driver: (reason code, reason, raw, rows, origin, line,
    offset) each, and one for all lines of an origin that brings very many."""

    by_origin: dict[str, list[Entry]] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, entry: Entry) -> None:
        """Takes one in; of too many only the first is kept."""
        origin = entry[4]
        self.counts[origin] += 1
        kept = self.by_origin.setdefault(origin, [])
        if self.counts[origin] <= TOLD_ONE_BY_ONE:
            kept.append(entry)
        else:
            del kept[1:]

    def told(self) -> list[Entry]:
        """Entries of the quarantine."""
        found = []
        for origin, kept in self.by_origin.items():
            if self.counts[origin] == len(kept):
                found += kept
                continue
            code, reason, raw, *_ = kept[0]
            many = f"{self.counts[origin]} lines that are no events, the first: {reason}"
            found.append((code, many, raw, self.counts[origin], origin, None, None))
        return found


def _numbered(lines: DataFrame, counts: Mapping[str, int], slices: Sequence[Slice]) -> DataFrame:
    """Each with its line, where it is one of a file."""
    ranges: Ranges = {}
    for part in slices:
        if part.format in (LINES, GZIPPED):
            ranges.setdefault(part.path, []).append((part.first_byte, part.end_byte))

    def number(rows: pd.DataFrame) -> pd.DataFrame:
        return _with_numbers(rows, ranges)

    def number_beside(rows: pd.DataFrame, files: pd.DataFrame) -> pd.DataFrame:
        content = bytes(files["content"].iloc[0]) if len(files) else None
        return _with_numbers(rows, ranges, content)

    stored = [o for o in sorted(counts) if o in ranges and isinstance(place(o), HadoopPath)]
    if not stored:
        return lines.groupBy("origin").applyInPandas(number, TOLD_DDL)
    # Python's workers know no Hadoop: the JVM reads whole files for them.
    files = contents(lines.sparkSession, stored).withColumnRenamed("path", "origin")
    both = lines.groupBy("origin").cogroup(files.groupBy("origin"))
    return both.applyInPandas(number_beside, TOLD_DDL)


def _names(ddl: str) -> list[str]:
    return [part.strip().split(" ")[0] for part in ddl.split(",")]


def _explained(
    data: bytes, origin: str, offset: Any, incident: str | None
) -> tuple[str | None, str | None, str, bytes, str, int | None]:
    """A row as EXPLAINED_DDL."""
    event_row, reason = _last_word(data, incident)
    stood = None if pd.isna(offset) else int(offset)
    return event_row, reason, raw_text(data), _identity(data), path_of(origin), stood


def _identity(line: bytes) -> bytes:
    return hashlib.blake2b(line, digest_size=16).digest()


def _with_numbers(rows: pd.DataFrame, ranges: Ranges, content: bytes | None = None) -> pd.DataFrame:
    """The rows of one origin as TOLD_DDL. content: of that file, where it is at hand."""
    result: list[tuple[Any, ...]] = []
    if len(rows):
        path = str(rows["origin"].iloc[0])
        lines: dict[bytes, list[int]] = {}
        if path in ranges:

            def between(first: int, end: int) -> Iterator[bytes]:
                if content is not None:
                    return lines_in(io.BytesIO(content), first, end)
                return lines_of(path, first, end)

            wanted = Counter(bytes(identity) for identity in rows["identity"])
            lines = _line_numbers(between, ranges[path], wanted)
        for row in rows.itertuples(index=False):
            numbers = lines.get(bytes(row.identity))
            line = numbers.pop(0) if numbers else None
            stood = None if pd.isna(row.origin_offset) else int(row.origin_offset)
            result.append((row.reason, row.raw, 1, path, line, stood))
    return pd.DataFrame(result, columns=_names(TOLD_DDL))


def path_of(origin: str) -> str:
    """The path of a file, of its address; other origins as they are."""
    if origin.startswith("file:"):
        return unquote(urlparse(origin).path)
    return unquote(origin) if isinstance(place(origin), HadoopPath) else origin


def _line_numbers(
    between: Callable[[int, int], Iterator[bytes]],
    ranges: list[tuple[int, int]],
    wanted: Counter[bytes],
) -> dict[bytes, list[int]]:
    """Identity of a raw line -> the numbers, from 1, of the lines of the ranges that are such."""
    found: dict[bytes, list[int]] = {}
    first = min(r[0] for r in ranges)
    number = sum(1 for _ in between(0, first)) if first else 0
    for line in between(first, max(r[1] for r in ranges)):
        number += 1
        identity = _identity(line)
        if identity in wanted:
            found.setdefault(identity, []).append(number)
    return found


def raw_text(data: bytes) -> str:
    """What was delivered, as the quarantine keeps it: no reader of tables takes a NUL for text."""
    return data.decode("utf-8", errors="replace")[:RAW_LIMIT].replace("\0", "\ufffd")


def _last_word(data: bytes, incident: str | None) -> tuple[str | None, str | None]:
    """(event as JSON, None) where wire takes the line, else (None, why not)."""
    if not data.strip():
        return None, "an empty line"
    if b"\0" in data:
        return None, f"no text: a NUL at byte {data.index(0)}"
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        return None, f"no UTF-8 text: {error.reason} at byte {error.start}"
    try:
        row = json.loads(text)
        if isinstance(row, dict):
            row.pop("_corrupt", None)
        event = wire.from_json(json.dumps(row))
    except (wire.Misfit, ValueError, RecursionError) as error:
        reason = str(error)
        return None, reason if isinstance(error, wire.Misfit) else f"no JSON: {reason}"
    if incident is not None and event.incident not in ("", incident):
        return None, f"of incident {event.incident!r}: this run is of {incident!r}"
    return wire.to_json(event), None
