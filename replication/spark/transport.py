"""Events on their way into the fold: few, mostly numeric columns, and Event objects out of them.

The kinds that make up nearly all of a trace (appends, fetches, high watermarks, acknowledgements)
travel as numbers: argument j of a kind is column a<j>, -1 where it was not observed. The other
kinds travel as JSON in `rest`. Codes of kinds are places in contracts.event_kinds().
"""

import json
from dataclasses import fields
from typing import Any

import numpy as np
import pandas as pd
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from replication.protocol import wire
from replication.protocol.events import FACT_TYPES, Event, Source
from replication.spark import contracts

NUMERIC_KINDS = (
    "leader_appended",
    "follower_appended",
    "fetch_requested",
    "fetch_answered",
    "high_watermark_advanced",
    "records_acknowledged",
    "records_consumed",
)
APPENDS = ("leader_appended", "follower_appended")
NUMBERS = 6
ABSENT = -1
DDL = (
    "topic_partition_id string, trace_generation bigint, trace_id string, sequence bigint, "
    "event_id string, kind bigint, observed_at bigint, traced boolean, source_path string, "
    "source_line bigint, source_byte_offset bigint, "
    + ", ".join(f"a{j} bigint" for j in range(NUMBERS))
    + ", word string, rest string, ingest bigint"
)
COLUMNS = tuple(part.strip().split(" ")[0] for part in DDL.split(","))


def _arguments(kind: str) -> tuple[list[str], str | None]:
    """(names of the numbers, name of the one text) of a numeric kind, in the dataclass's order."""
    types = wire.FIELD_TYPES[kind]
    names = [f.name for f in fields(FACT_TYPES[kind])]
    texts = [n for n in names if types[n][0] == "str"]
    return [n for n in names if n not in texts], texts[0] if texts else None


def topic_partition_id() -> Column:
    """cluster_id/topic/topic_id/partition."""
    return F.concat_ws("/", "cluster_id", "topic", "topic_id", F.col("partition").cast("string"))


def narrow(events: DataFrame) -> DataFrame:
    """The columns of DDL, from rows of replica_events."""
    kinds = contracts.event_kinds()
    kind = F.col("kind")
    numeric = {k: _arguments(k) for k in NUMERIC_KINDS}
    columns = [
        topic_partition_id().alias("topic_partition_id"),
        F.col("trace_generation"),
        F.col("trace_id"),
        F.col("sequence"),
        F.col("event_id"),
        (F.array_position(F.array(*[F.lit(k) for k in kinds]), kind) - 1).alias("kind"),
        _present("observed_at"),
        (F.col("grade") == "traced").alias("traced"),
        F.col("source_path"),
        _present("source_line"),
        _present("source_byte_offset"),
    ]
    for j in range(NUMBERS):
        value = F.lit(ABSENT).cast("bigint")
        for name in kinds:
            if name in numeric and j < len(numeric[name][0]):
                column = F.col(numeric[name][0][j])
                value = F.when(kind == name, F.coalesce(column, F.lit(ABSENT))).otherwise(value)
        columns.append(value.alias(f"a{j}"))
    word: Column = F.lit(None).cast("string")
    for name, (_, text) in numeric.items():
        if text is not None:
            word = F.when(kind == name, F.col(text)).otherwise(word)
    facts = [c.name for c in contracts.event_columns() if c.required_for or c.optional_for]
    rest = F.when(~kind.isin(*NUMERIC_KINDS), F.to_json(F.struct(*facts)))
    columns += [word.alias("word"), rest.alias("rest"), F.col("micro_batch_id").alias("ingest")]
    return events.select(*columns)


def _present(name: str) -> Column:
    return F.coalesce(F.col(name), F.lit(ABSENT)).cast("bigint").alias(name)


class Rows:
    """A frame of DDL columns as Python lists; event(i) builds the i-th Event."""

    def __init__(self, frame: pd.DataFrame) -> None:
        kinds = contracts.event_kinds()
        self.codes, names = pd.factorize(frame["topic_partition_id"])
        self.names = [str(n) for n in names]
        self.sequence: np.ndarray[Any, Any] = frame["sequence"].to_numpy()
        self.generation: np.ndarray[Any, Any] = frame["trace_generation"].to_numpy()
        trace_codes, traces = pd.factorize(frame["trace_id"])
        self.trace_codes = trace_codes
        self.traces = [str(t) for t in traces]
        self.ingest: np.ndarray[Any, Any] = frame["ingest"].to_numpy()
        observed = frame["observed_at"].to_numpy()
        self.newest_event_time = int(observed.max()) if len(observed) else ABSENT
        self.kinds = [kinds[k] for k in frame["kind"].tolist()]
        self.event_ids = frame["event_id"].tolist()
        self.observed = observed.tolist()
        self.traced = frame["traced"].tolist()
        self.paths = frame["source_path"].tolist()
        self.lines = frame["source_line"].tolist()
        self.byte_offsets = frame["source_byte_offset"].tolist()
        self.numbers = [frame[f"a{j}"].tolist() for j in range(NUMBERS)]
        self.words = frame["word"].tolist()
        self.rests = frame["rest"].tolist()

    def event(self, i: int, identity: tuple[str, str, str, int]) -> Event:
        """The i-th row as an Event of the topic partition of identity."""
        kind = self.kinds[i]
        arguments = ARGUMENTS.get(kind)
        if arguments is None:
            return self._event_of_json(i, kind, identity)
        names, word = arguments
        values: dict[str, Any] = {}
        for name, column in zip(names, self.numbers, strict=False):
            number = column[i]
            if number >= 0:
                values[name] = number
        if word is not None and self.words[i] is not None:
            values[word] = self.words[i]
        path = self.paths[i]
        source = None
        if path is not None:
            source = Source(path, _or_none(self.lines[i]), _or_none(self.byte_offsets[i]))
        return Event(
            self.event_ids[i], self.traces[self.trace_codes[i]], *identity,
            int(self.sequence[i]), FACT_TYPES[kind](**values), _or_none(self.observed[i]),
            "traced" if self.traced[i] else "forensic", source, int(self.generation[i]),
        )  # fmt: skip

    def _event_of_json(self, i: int, kind: str, identity: tuple[str, str, str, int]) -> Event:
        cluster_id, topic, topic_id, partition = identity
        row = json.loads(self.rests[i])
        row |= {
            "format_version": wire.FORMAT_VERSION,
            "event_id": self.event_ids[i],
            "trace_id": self.traces[self.trace_codes[i]],
            "trace_generation": int(self.generation[i]),
            "cluster_id": cluster_id,
            "topic": topic,
            "topic_id": topic_id,
            "partition": partition,
            "sequence": int(self.sequence[i]),
            "kind": kind,
            "observed_at": _or_none(self.observed[i]),
            "grade": "traced" if self.traced[i] else "forensic",
            "source_path": self.paths[i],
            "source_line": _or_none(self.lines[i]),
            "source_byte_offset": _or_none(self.byte_offsets[i]),
        }
        return wire.from_row(row)


def _or_none(number: int) -> int | None:
    return number if number >= 0 else None


ARGUMENTS = {kind: _arguments(kind) for kind in NUMERIC_KINDS}
