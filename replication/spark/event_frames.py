"""Events as they are delivered (lines, Parquet rows, Kafka records) -> typed columns, or refused.

The check that every row passes runs inside Spark and knows only yes or no. For the few rows that
fail it, protocol.wire has the last word and the words: so a row is refused here exactly when, and
for the reason that, the laptop tool refuses it.
"""

import io
import re
from collections.abc import Collection, Iterator, Sequence
from functools import cache, reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from replication.places import HadoopPath, place
from replication.protocol.ground import wire
from replication.protocol.ground.model import LAST_MOMENT
from replication.spark import contracts
from replication.spark.event_files import (
    GZIPPED,
    LINES,
    PARQUET,
    SLICE_DDL,
    Slice,
    lines_in,
    lines_of,
)

# A frame of delivered rows: the event's columns as one struct, and where the row was.
DELIVERED = ("event", "raw", "origin", "origin_offset")
INT32 = [
    c.name for c in contracts.event_columns() if c.type == "bigint" and c.name in wire.INT32_COLUMNS
]


def of_slices(
    spark: SparkSession, slices: Sequence[Slice], incident: str | None = None
) -> DataFrame | None:
    """The rows of slices of files, None where there are none (refused files have no rows).

    incident: the only one whose events are taken, None: any.
    """
    whole: list[Slice] = []
    parts: list[Slice] = []
    parquet: list[str] = []
    for part in slices:
        if part.format == PARQUET:
            parquet.append(part.path)
        elif part.format in (LINES, GZIPPED):
            (whole if _is_whole(part) else parts).append(part)
    frames = []
    if whole:
        frames.append(_whole_files(spark, [p.path for p in whole]))
        grown = [p for p in whole if not _is_whole(p)]
        if grown:
            # Spark lists sizes when the frame is made: what grew meanwhile is read to its bound.
            kept = [p for p in whole if p not in grown]
            frames = [_whole_files(spark, [p.path for p in kept])] if kept else []
            parts += grown
    if parts:
        frames.append(_parts(spark, parts))
    frames = [_parsed(frame) for frame in frames]
    if parquet:
        frames.append(_parquet(spark, parquet))
    return of_incident(reduce(DataFrame.unionByName, frames), incident) if frames else None


def of_incident(delivered: DataFrame, incident: str | None) -> DataFrame:
    """Delivered rows, of which those that name another incident do not fit; None: all may."""
    if incident is None:
        return delivered
    same = F.coalesce(F.col("event.incident"), F.lit("")).isin("", incident)
    return delivered.withColumn("fits", F.col("fits") & same)


def of_kafka(records: DataFrame) -> DataFrame:
    """The rows of a Kafka source's frame."""
    topic_partition = F.concat_ws("-", F.col("topic"), F.col("partition"))
    origin = F.concat(F.lit("kafka:"), topic_partition)
    lines = records.select(
        F.coalesce(F.col("value"), F.lit(b"")).alias("raw"),
        origin.alias("origin"),
        F.col("offset").alias("origin_offset"),
    )
    return _parsed(lines)


def _is_whole(part: Slice) -> bool:
    """Whether Spark's own reader reads exactly this slice: the whole of a file as it is now."""
    path = place(part.path)
    gzipped_name = path.suffix == ".gz"
    packed_name = path.suffix in (".bz2", ".deflate", ".lz4", ".snappy", ".zst", ".xz")
    fits = gzipped_name if part.format == GZIPPED else not (gzipped_name or packed_name)
    return fits and part.first_byte == 0 and path.stat().st_size == part.end_byte


def _whole_files(spark: SparkSession, paths: list[str]) -> DataFrame:
    reader = spark.read.format("text").option("lineSep", "\n")
    return reader.load([as_one(p) for p in paths]).select(
        F.col("value").cast("binary").alias("raw"),
        F.col("_metadata.file_path").alias("origin"),
        F.lit(None).cast("bigint").alias("origin_offset"),
    )


def _parts(spark: SparkSession, parts: list[Slice]) -> DataFrame:
    rows = [(p.path, p.format, p.first_byte, p.end_byte, "", "", 0) for p in parts]
    frame = spark.createDataFrame(rows, SLICE_DDL)
    if isinstance(place(parts[0].path), HadoopPath):
        frame = contents(spark, {p.path for p in parts}).join(F.broadcast(frame), "path")
    else:
        frame = frame.repartition(min(len(rows), 8))
    return frame.mapInArrow(_read_parts, "raw binary, origin string, origin_offset bigint")


def as_one(path: str) -> str:
    """A path as Spark's readers take it: what has a meaning in patterns has none in it."""
    named = path if isinstance(place(path), HadoopPath) else f"file:{path}"
    return re.sub(r"[\\{}\[\]*?]", r"\\\g<0>", named)


def contents(spark: SparkSession, paths: Collection[str]) -> DataFrame:
    """Whole files (path, content), read by the JVM: Python's workers know no Hadoop."""
    files = spark.read.format("binaryFile").load([as_one(p) for p in paths])
    return files.select("path", "content")


def _read_parts(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for part in batch.to_pylist():
            lines: list[bytes] = []
            for line in _lines_of(part):
                lines.append(line)
                if len(lines) >= 10_000:
                    yield _line_batch(lines, part["path"])
                    lines = []
            if lines:
                yield _line_batch(lines, part["path"])


def _lines_of(part: dict[str, Any]) -> Iterator[bytes]:
    """The lines of a slice, of its file's content where that is at hand."""
    if "content" in part:
        return lines_in(io.BytesIO(part["content"]), part["first_byte"], part["end_byte"])
    return lines_of(part["path"], part["first_byte"], part["end_byte"])


def _line_batch(lines: list[bytes], path: str) -> pa.RecordBatch:
    count = len(lines)
    return pa.RecordBatch.from_arrays(
        [
            pa.array(lines, pa.binary()),
            pa.array([place(path).as_uri()] * count, pa.string()),
            pa.nulls(count, pa.int64()),
        ],
        names=["raw", "origin", "origin_offset"],
    )


def _parsed(lines: DataFrame) -> DataFrame:
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": "_corrupt"}
    schema = f"{contracts.event_ddl()}, _corrupt string"
    text = F.col("raw").cast("string")
    event = F.from_json(text, schema, options).alias("event")
    return _judged(lines.select(event, *DELIVERED[1:]))


def _judged(rows: DataFrame) -> DataFrame:
    helpers, counted, fits = steps_to_fits()
    first = rows.selectExpr(*DELIVERED, *helpers)
    second = first.selectExpr("*", *counted)
    return second.selectExpr(*DELIVERED, f"{fits} AS fits")


def _parquet(spark: SparkSession, paths: list[str]) -> DataFrame:
    reader = spark.read.format("parquet").schema(contracts.event_ddl())
    frame = reader.load([as_one(p) for p in paths])
    names = ", ".join(c.name for c in contracts.event_columns())
    rows = frame.selectExpr(
        f"struct({names}, CAST(NULL AS STRING) AS _corrupt) AS event",
        "CAST(NULL AS BINARY) AS raw",
        "_metadata.file_path AS origin",
        "_metadata.row_index AS origin_offset",
    )
    return _judged(rows)


@cache
def steps_to_fits() -> tuple[tuple[str, ...], tuple[str, ...], str]:
    """SQL: two lists of helper columns, then whether a delivered row is an event; never null.

    Three steps, because Spark computes a column that is used often only once if it is a column.
    """
    facts = [c for c in contracts.event_columns() if c.required_for or c.optional_for]
    header = [c for c in contracts.event_columns() if c not in facts]
    bit = {c.name: 1 << place for place, c in enumerate(facts)}
    required, allowed = (_by_kind(masks) for masks in _masks(bit))
    helpers = (
        " | ".join(f"IF(event.{c.name} IS NULL, 0L, {bit[c.name]}L)" for c in facts) + " AS facts",
        " + ".join(f"IF(event.{c.name} IS NULL, 0, 1)" for c in header) + " AS headers",
        f"{required} AS required",
        f"{allowed} AS allowed",
        f"{TEXT} AS text",
    )
    inner = " + ".join(_inner_keys(c) for c in facts if c.type.startswith("array<struct<"))
    counted = (f"headers + bit_count(facts) + {inner} AS present", f"{KEYS} AS keys")
    numbers = ", ".join(f"event.{c.name}" for c in contracts.event_columns() if c.type == "bigint")
    int32 = ", ".join(f"event.{name}" for name in sorted(INT32))
    texts = " AND ".join(
        f"coalesce(is_valid_utf8(event.{c.name}) AND NOT contains(event.{c.name}, char(0)), true)"
        for c in contracts.event_columns()
        if c.type == "string"
    )
    checks = [
        "event._corrupt IS NULL",
        f"event.format_version = {wire.FORMAT_VERSION}",
        *[f"length(event.{text}) > 0" for text in ("event_id", "trace_id", "topic")],
        "event.partition IS NOT NULL AND event.sequence IS NOT NULL",
        f"least({numbers}) >= 0",
        f"greatest({int32}) <= {wire.MAX_INT32}",
        *[f"coalesce(event.{name} <= {LAST_MOMENT}, true)" for name in sorted(wire.MOMENTS)],
        "coalesce(event.grade, 'forensic') IN ('traced', 'forensic')",
        "(facts & required) = required AND (facts & ~allowed) = 0L",
        f"coalesce({INCIDENT}, true)",
        "NOT contains(event.topic, '/') AND NOT contains(coalesce(event.topic_id, ''), '/')",
        f"raw IS NULL OR ((present = keys OR present = keys - {NULLS}) AND {ENDS})",
        # Half a surrogate pair is no text, and Spark's parser makes a question mark of it; pandas
        # takes texts for equal that differ behind a NUL; bytes of a Parquet file that are no text
        # end the Python that they are handed to.
        f"raw IS NULL OR NOT ({' OR '.join(ESCAPED)})",
        *[_is_text(c.name) for c in contracts.event_columns() if c.type == "string"],
        f"raw IS NOT NULL OR ({texts})",
        *[_elements_fit(c.name, c.type) for c in facts if c.type.startswith("array<")],
    ]
    return helpers, counted, "coalesce(" + " AND ".join(f"({c})" for c in checks) + ", false)"


TEXT = "CAST(raw AS STRING)"
INCIDENT = "length(event.incident) <= 100 AND NOT event.incident RLIKE '[^A-Za-z0-9._-]'"
ESCAPED = [f"contains(text, '\\\\u{start}')" for start in ("d", "D", "0000")]
# Spark's parser takes the first JSON value of a line, and of that the columns that it knows, and is
# silent about the rest. So keys are counted: those of the text, less those that are null, against
# the columns that came out; and the text ends with the value. A text with a quote and a colon in it
# counts wrongly: then protocol.wire decides, as about everything that does not fit.
ENDS = "(text LIKE '%}' OR trim(TRAILING ' \\r\\t' FROM text) LIKE '%}') AND NOT text LIKE '%}}'"
KEYS = "(octet_length(raw) - octet_length(replace(text, '\":', ''))) DIV 2"
NULLS = (
    "((octet_length(raw) - octet_length(replace(text, '\":null', ''))) DIV 6"
    " + (octet_length(raw) - octet_length(replace(text, '\": null', ''))) DIV 7)"
)


def _is_text(name: str) -> str:
    """SQL: whether the line has a text there: Spark's parser makes one of a number, too."""
    begins = " OR ".join(f'contains(text, \'"{name}":{gap}"\')' for gap in ("", " "))
    return f"raw IS NULL OR event.{name} IS NULL OR {begins}"


def _inner_keys(column: contracts.Column) -> str:
    """SQL: how many keys inside an array of structs have a value."""
    inner = " + ".join(f"IF(e.{name} IS NULL, 0, 1)" for name in _field_names(column.type))
    counted = f"aggregate(event.{column.name}, 0, (n, e) -> n + {inner})"
    return f"IF(event.{column.name} IS NULL, 0, {counted})"


def _field_names(type_text: str) -> list[str]:
    """The field names of an array<struct<..>>."""
    return [part.split(":")[0] for part in type_text[len("array<struct<") : -2].split(",")]


def _masks(bit: dict[str, int]) -> tuple[dict[str, int], dict[str, int]]:
    required = dict.fromkeys(contracts.event_kinds(), 0)
    allowed = dict.fromkeys(contracts.event_kinds(), 0)
    for column in contracts.event_columns():
        for kind in column.required_for:
            required[kind] |= bit[column.name]
            allowed[kind] |= bit[column.name]
        for kind in column.optional_for:
            allowed[kind] |= bit[column.name]
    return required, allowed


def _by_kind(masks: dict[str, int]) -> str:
    """SQL: the mask of a row's kind; null for an unknown kind, so that no check passes."""
    cases = " ".join(f"WHEN '{kind}' THEN {mask}L" for kind, mask in masks.items())
    return f"(CASE event.kind {cases} END)"


def _elements_fit(name: str, type_text: str) -> str:
    """SQL: whether every element of an array is whole and in range; true for no array."""
    if type_text == "array<bigint>":
        most = wire.MAX_INT32 if name in wire.INT32_COLUMNS else wire.MAX_OFFSET
        fits = f"coalesce(e BETWEEN 0 AND {most}, false)"
        return f"event.{name} IS NULL OR forall(event.{name}, e -> {fits})"
    names = _field_names(type_text)
    optional = ("leader_epoch", "content") if "end_offset" in names else ()
    good = [f"coalesce(e.{n} >= 0, {str(n in optional).lower()})" for n in names]
    good.append(f"coalesce(e.leader_epoch <= {wire.MAX_INT32}, true)")
    if "end_offset" in names:
        good.append("coalesce(e.first_offset < e.end_offset, false)")
    return f"event.{name} IS NULL OR forall(event.{name}, e -> {' AND '.join(good)})"


def events(delivered: DataFrame) -> DataFrame:
    """The rows that fit, as columns of the event contract, absent words filled in."""
    filled = {"trace_generation": "0L", "cluster_id": "''", "topic_id": "''", "grade": "'forensic'"}
    given = {name: f"coalesce(event.{name}, {word})" for name, word in filled.items()}
    given["incident"] = "nullif(event.incident, '')"
    columns = [
        f"{given.get(c.name, f'event.{c.name}')} AS {c.name}" for c in contracts.event_columns()
    ]
    return delivered.filter("fits").selectExpr(*columns)


def counters() -> list[Column]:
    """What is counted of delivered rows in the pass that writes or folds them."""
    return [
        F.expr("count(1) AS rows_in"),
        F.expr("count_if(NOT fits) AS quarantined"),
        F.expr("max(IF(fits, event.observed_at, NULL)) AS newest_event_time"),
    ]


def counted(delivered: DataFrame) -> dict[str, Any]:
    """The same in a pass of its own."""
    return delivered.agg(*counters()).collect()[0].asDict()
