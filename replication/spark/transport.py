"""Events on their way into the fold: few, mostly numeric columns, and Event objects out of them.

The kinds that make up nearly all of a trace (appends, fetches, high watermarks, acknowledgements)
travel as numbers: argument j of a kind is column a<j>, -1 where it was not observed. The other
kinds travel as JSON in `rest`. Codes of kinds are places in contracts.event_kinds().
"""

import json
from dataclasses import fields
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame

from replication.protocol.ground import wire
from replication.protocol.ground.events import FACT_TYPES, Event, Fact, Source
from replication.spark import contracts
from replication.spark.topic_partition_ids import TOPIC_PARTITION_ID

NUMERIC_KINDS = (
    "leader_appended",
    "follower_appended",
    "fetch_requested",
    "fetch_answered",
    "high_watermark_advanced",
    "records_acknowledged",
    "records_consumed",
)
Array = np.ndarray[Any, Any]
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


ARGUMENTS = {kind: _arguments(kind) for kind in NUMERIC_KINDS}


def narrow(events: DataFrame) -> DataFrame:
    """The columns of DDL, from rows of replica_events."""
    return events.selectExpr(*_narrow_columns())


@cache
def _narrow_columns() -> tuple[str, ...]:
    kinds = contracts.event_kinds()
    codes = " ".join(f"WHEN '{kind}' THEN {code}L" for code, kind in enumerate(kinds))
    columns = [
        f"{TOPIC_PARTITION_ID} AS topic_partition_id",
        "trace_generation",
        "trace_id",
        "sequence",
        "event_id",
        f"CASE kind {codes} END AS kind",
        f"coalesce(observed_at, {ABSENT}L) AS observed_at",
        "grade = 'traced' AS traced",
        "source_path",
        f"coalesce(source_line, {ABSENT}L) AS source_line",
        f"coalesce(source_byte_offset, {ABSENT}L) AS source_byte_offset",
    ]
    for j in range(NUMBERS):
        cases = "".join(
            f" WHEN '{kind}' THEN coalesce({names[j]}, {ABSENT}L)"
            for kind, (names, _) in ARGUMENTS.items()
            if j < len(names)
        )
        columns.append(f"CASE kind{cases} ELSE {ABSENT}L END AS a{j}")
    words = "".join(f" WHEN '{k}' THEN {word}" for k, (_, word) in ARGUMENTS.items() if word)
    facts = ", ".join(c.name for c in contracts.event_columns() if c.required_for or c.optional_for)
    numeric = ", ".join(f"'{kind}'" for kind in NUMERIC_KINDS)
    columns += [
        f"CASE kind{words} END AS word",
        f"IF(kind IN ({numeric}), CAST(NULL AS STRING), to_json(struct({facts}))) AS rest",
        "micro_batch_id AS ingest",
    ]
    return tuple(columns)


class Rows:
    """A frame of DDL columns as arrays; event(i) builds the i-th Event."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self.codes, names = pd.factorize(frame["topic_partition_id"])
        self.names = [str(n) for n in names]
        self.sequence: Array = frame["sequence"].to_numpy()
        self.generation: Array = frame["trace_generation"].to_numpy()
        self.trace_codes, traces = pd.factorize(frame["trace_id"])
        self.traces = [str(t) for t in traces]
        self.ingest: Array = frame["ingest"].to_numpy()
        self.observed: Array = frame["observed_at"].to_numpy()
        self.newest_event_time = int(self.observed.max()) if len(frame) else ABSENT
        self.kinds: Array = frame["kind"].to_numpy()
        self.traced: Array = frame["traced"].to_numpy()
        self.words: Array = frame["word"].to_numpy()
        self.numbers: list[Array] = [frame[f"a{j}"].to_numpy() for j in range(NUMBERS)]
        self.event_ids: Array = frame["event_id"].to_numpy()
        self.paths: Array = frame["source_path"].to_numpy()
        self.lines: Array = frame["source_line"].to_numpy()
        self.byte_offsets: Array = frame["source_byte_offset"].to_numpy()
        self.rests: Array = frame["rest"].to_numpy()

    @property
    def step_columns(self) -> list[Array]:
        """What a step of protocol.steady takes: kind, traced, word, then the numbers."""
        return [self.kinds, self.traced, self.words, *self.numbers]

    def event(self, i: int, identity: tuple[str, str, str, int]) -> Event:
        """The i-th row as an Event of the topic partition of identity."""
        kind = contracts.event_kinds()[self.kinds[i]]
        path = self.paths[i]
        source = None
        if path is not None:
            source = Source(path, _or_none(self.lines, i), _or_none(self.byte_offsets, i))
        return Event(
            self.event_ids[i], self.traces[self.trace_codes[i]], *identity,
            self.sequence.item(i), self._fact(i, kind), _or_none(self.observed, i),
            "traced" if self.traced[i] else "forensic", source, self.generation.item(i),
        )  # fmt: skip

    def _fact(self, i: int, kind: str) -> Fact:
        """What happened: by its numbers, or from the JSON of the other columns."""
        arguments = ARGUMENTS.get(kind)
        if arguments is None:
            return wire.fact_of(kind, json.loads(self.rests[i]))
        names, word = arguments
        values: dict[str, Any] = {}
        for name, column in zip(names, self.numbers, strict=False):
            number = column.item(i)
            if number >= 0:
                values[name] = number
        if word is not None and self.words[i] is not None:
            values[word] = self.words[i]
        made: Fact = FACT_TYPES[kind](**values)
        return made


def _or_none(column: Array, i: int) -> int | None:
    number: int = column.item(i)
    return number if number >= 0 else None
