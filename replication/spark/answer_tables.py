"""Writes what came out of the fold into the answer tables, only where rows changed."""

import json
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from replication.reports.inventory_words import of_first_partitions
from replication.spark import contracts
from replication.spark.delta_schemas import named, quoted
from replication.spark.partition_fold import SEVERAL_IMPORTS
from replication.spark.shard_fold import FIGURES
from replication.spark.small_commit import NotSmallError, parts_as_columns
from replication.spark.tables import REPLACED_BY_NAME, Store, Writer
from replication.spark.topic_partition_ids import PARTS, parts_of

# The order of commits where one thread writes; what others point to comes first.
ORDER = (
    "isr_and_leadership",
    "replica_states",
    "findings",
    "divergences",
    "loss_ledger",
    "at_risk",
    "verdicts",
    "quarantine",
)
LATE = "_late"
# The rows of a table come to the driver where they are no more text than this.
FEW_CHARACTERS = 4 << 20
# Tables that the fold only appends to while what it told before still counts, and the query whose
# rows there are the fold's own; "": all are.
APPENDED = {"isr_and_leadership": "", "quarantine": "fold"}
WRITTEN_BY_FOLD: dict[str, dict[str, str | None]] = {
    "quarantine": {
        "origin": "replica_events", "raw": None, "origin_line": None, "origin_offset": None,
    }
}  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """What a persisted frame of the fold holds: which tables changed, and the sums of figures.

    replaced: by table the topic partitions that have rows there already; touched: all with rows
    in the frame. few: the rows themselves of the tables that have few, by table, as the fold gave
    them: (topic_partition_id, columns by name).
    """

    frame: DataFrame
    tables: dict[str, int]
    replaced: dict[str, list[str]]
    touched: dict[str, list[str]]
    figures: dict[str, Any]
    few: dict[str, list[tuple[str, dict[str, Any]]]] = field(default_factory=dict)

    def has(self, table: str) -> bool:
        """Whether there is a row for that table."""
        return self.tables.get(table, 0) > 0

    def rows(self, table: str) -> dict[str, list[dict[str, Any]]]:
        """The rows of a table by topic partition, [] where the earlier ones are gone."""
        told = self.few.get(table)
        if told is None:
            told = _rows(self.frame, [table])[table]
        found: dict[str, list[dict[str, Any]]] = {n: [] for n in self.touched.get(table, [])}
        for name, row in told:
            found[name].append(row)
        return found

    def why_refused(self) -> list[tuple[str, int]]:
        """The reason codes of refused events, and of how many, the most frequent first; [] where
        few are not known or there are none."""
        told = self.few.get("quarantine", [])
        codes = Counter(row["reason_code"] for _, row in told if row["rows"])
        return codes.most_common()

    def notes(self) -> list[str]:
        """What is said of partitions that are folded, and of which not all counts."""
        told = sorted(
            (parts_of(name), row["reason"])
            for name, row in self.few.get("quarantine", [])
            if row["reason_code"] == SEVERAL_IMPORTS
        )
        named = ((f"{of.topic}-{of.partition}", reason) for of, reason in told)
        return list(of_first_partitions(named))


def outcome_of(frame: DataFrame) -> Outcome:
    """Runs the whole frame once (it is to be persisted) and reads what is in it."""
    summary = frame.groupBy("out_table").agg(
        F.count(F.lit(1)).alias("pieces"),
        F.collect_set(F.when(F.col("replaces"), F.col("topic_partition_id"))).alias("replaced"),
        F.collect_set("topic_partition_id").alias("touched"),
        F.collect_list(F.when(F.col("out_table") == FIGURES, F.col("rows"))).alias("figures"),
        F.sum(F.length("rows")).alias("characters"),
    )
    rows = {row["out_table"]: row for row in summary.collect()}
    figures = _sums(rows.pop(FIGURES, None))
    return Outcome(
        frame,
        {name: row["pieces"] for name, row in rows.items()},
        {name: sorted(row["replaced"]) for name, row in rows.items()},
        {name: sorted(row["touched"]) for name, row in rows.items()},
        figures,
        _rows(frame, [t for t in ORDER if t in rows and rows[t]["characters"] <= FEW_CHARACTERS]),
    )


def _rows(frame: DataFrame, names: list[str]) -> dict[str, list[tuple[str, dict[str, Any]]]]:
    """The rows of these tables: (topic_partition_id, columns by name)."""
    few: dict[str, list[tuple[str, dict[str, Any]]]] = {name: [] for name in names}
    if not names:
        return few
    pieces = frame.filter(F.col("out_table").isin(names))
    for table, topic_partition_id, text in pieces.select(
        "out_table", "topic_partition_id", "rows"
    ).collect():
        few[table] += [(topic_partition_id, row) for row in json.loads(text)]
    return few


def _sums(row: Row | None) -> dict[str, Any]:
    sums: dict[str, Any] = {"rows_in": 0, "newest_event_time": None}
    for text in row["figures"] if row is not None else []:
        for figures in json.loads(text):
            newest = figures.pop("newest_event_time")
            if newest is not None:
                sums["newest_event_time"] = max(newest, sums["newest_event_time"] or newest)
            for name, value in figures.items():
                sums[name] = sums.get(name, 0) + value
    return sums


def rows_of(frame: DataFrame, table: str, writer: Writer, micro_batch_id: int) -> DataFrame:
    """The rows for one table, typed as its schema says."""
    columns = contracts.tables()[table].told
    whole = f"array<struct<{','.join(f'{c.name}:{c.type}' for c in columns)}>>"
    given = {
        "topic_partition_id": "topic_partition_id",
        **PARTS,
        "run": f"'{writer.run}'",
        "query": f"'{writer.query}'",
        "micro_batch_id": f"{micro_batch_id}L",
    }
    fixed = WRITTEN_BY_FOLD.get(table, {})
    types = {c.name: c.type for c in columns}
    for name, value in fixed.items():
        given[name] = f"CAST({'NULL' if value is None else quoted(value)} AS {types[name]})"
    selected = [f"{given.get(c.name, f'row.{c.name}')} AS {c.name}" for c in columns]
    return (
        frame.filter(F.col("out_table") == table)
        .selectExpr("topic_partition_id", f"explode(from_json(rows, '{whole}')) AS row")
        .selectExpr(*selected)
    )


def verdicts_of(outcome: Outcome, writer: Writer) -> tuple[dict[tuple[str, str], int], list[str]]:
    """(invariant, verdict) -> how many topic partitions; the assumptions that any of them takes."""
    few = outcome.few.get("verdicts")
    if few is not None:
        taken = {name for _, row in few for name in row["assuming"] or ()}
        return dict(Counter((row["invariant"], row["verdict"]) for _, row in few)), sorted(taken)
    rows = rows_of(outcome.frame, "verdicts", writer, 0)
    counted = rows.groupBy("invariant", "verdict").agg(
        F.count("*").alias("count"), F.flatten(F.collect_set("assuming")).alias("assuming")
    ).collect()  # fmt: skip
    taken = {name for row in counted for name in row["assuming"]}
    return {(row["invariant"], row["verdict"]): row["count"] for row in counted}, sorted(taken)


def write(
    store: Store,
    outcome: Outcome,
    writer: Writer,
    micro_batch_id: int,
    threads: int,
    afresh: bool,
) -> None:
    """Writes every table that has rows.

    afresh: the first micro-batch of a run, whose rows replace those of an earlier run: all of them,
    or those of its incident.
    """
    tasks: list[Callable[[], None]] = []
    for table in ORDER:
        if outcome.has(table) or (afresh and store.has_rows(table)):
            tasks.append(_task(store, outcome, table, writer, micro_batch_id, afresh))
    if threads == 1:
        for task in tasks:
            task()
        return
    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(task) for task in tasks]:
            done.result()


def _task(
    store: Store,
    outcome: Outcome,
    table: str,
    writer: Writer,
    micro_batch_id: int,
    afresh: bool,
) -> Callable[[], None]:
    def task() -> None:
        if not afresh and _put_few(store, outcome, table, writer, micro_batch_id):
            return
        rows = rows_of(outcome.frame, table, writer, micro_batch_id).coalesce(1)
        replaced, touched = outcome.replaced.get(table, []), outcome.touched.get(table, [])
        if table in APPENDED:
            own = _own(table)
            if afresh:
                condition = f"{own} AND {writer.replaced}"
                store.replace_where(table, rows, condition, writer, micro_batch_id)
                return
            _put_in_place(store, table, rows, replaced, writer, micro_batch_id)
            new = rows.filter(~F.col("topic_partition_id").isin(replaced)) if replaced else rows
            if len(touched) > len(replaced):
                store.append(table, new, writer, micro_batch_id)
        elif afresh and writer.incident is not None:
            store.replace_where(table, rows, writer.replaced, writer, micro_batch_id)
        elif afresh:
            store.overwrite(table, rows, writer, micro_batch_id)
        else:
            store.replace(table, rows, replaced, touched, writer, micro_batch_id)

    return task


def _own(table: str) -> str:
    """SQL: the fold's own rows of a table of APPENDED."""
    return f"query = {quoted(APPENDED[table])}" if APPENDED[table] else "true"


def _put_few(
    store: Store, outcome: Outcome, table: str, writer: Writer, micro_batch_id: int
) -> bool:
    """Puts the rows of a table that has few in place; False where they are for Spark."""
    if table not in outcome.few:
        return False
    given = {"run": writer.run, "query": writer.query, "micro_batch_id": micro_batch_id}
    try:
        rows = [
            {**row, "topic_partition_id": name, **parts_as_columns(name), **given,
             **WRITTEN_BY_FOLD.get(table, {})}
            for name, row in outcome.few[table]
        ]  # fmt: skip
    except NotSmallError:
        return False
    replaced = outcome.replaced.get(table, [])
    own = APPENDED.get(table, "")
    return store.put_small(table, rows, replaced, writer, micro_batch_id, own)


def _put_in_place(
    store: Store, table: str, rows: DataFrame, replaced: list[str], writer: Writer,
    micro_batch_id: int,
) -> None:  # fmt: skip
    """Replaces what the fold had appended of some topic partitions and now tells otherwise."""
    for first in range(0, len(replaced), REPLACED_BY_NAME):
        names = named(replaced[first : first + REPLACED_BY_NAME])
        condition = f"{_own(table)} AND {names}"
        part = f"replaced/{first}"
        store.replace_where(table, rows.filter(names), condition, writer, micro_batch_id, part)
