"""Writes what came out of the fold into the answer tables, only where rows changed."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from replication.spark import contracts
from replication.spark.shard_fold import FIGURES
from replication.spark.tables import REPLACED_BY_NAME, Store, Writer, named
from replication.spark.topic_partition_ids import PARTS

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
# Tables that the fold only appends to while what it told before still counts, and the SQL condition
# of the fold's own rows there.
APPENDED = {"isr_and_leadership": "true", "quarantine": "query = 'fold'"}
WRITTEN_BY_FOLD = {
    "quarantine": {
        "origin": "'replica_events'",
        "raw": "CAST(NULL AS STRING)",
        "origin_line": "CAST(NULL AS BIGINT)",
        "origin_offset": "CAST(NULL AS BIGINT)",
    }
}


@dataclass(frozen=True)
class Outcome:
    """What a persisted frame of the fold holds: which tables changed, and the sums of figures.

    replaced: by table the topic partitions that have rows there already; touched: all with rows
    in the frame.
    """

    frame: DataFrame
    tables: dict[str, int]
    replaced: dict[str, list[str]]
    touched: dict[str, list[str]]
    figures: dict[str, Any]

    def has(self, table: str) -> bool:
        """Whether there is a row for that table."""
        return self.tables.get(table, 0) > 0


def outcome_of(frame: DataFrame) -> Outcome:
    """Runs the whole frame once (it is to be persisted) and reads what is in it."""
    summary = frame.groupBy("out_table").agg(
        F.count(F.lit(1)).alias("pieces"),
        F.collect_set(F.when(F.col("replaces"), F.col("topic_partition_id"))).alias("replaced"),
        F.collect_set("topic_partition_id").alias("touched"),
        F.collect_list(F.when(F.col("out_table") == FIGURES, F.col("rows"))).alias("figures"),
    )
    rows = {row["out_table"]: row for row in summary.collect()}
    figures = _sums(rows.pop(FIGURES, None))
    return Outcome(
        frame,
        {name: row["pieces"] for name, row in rows.items()},
        {name: sorted(row["replaced"]) for name, row in rows.items()},
        {name: sorted(row["touched"]) for name, row in rows.items()},
        figures,
    )


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
        **WRITTEN_BY_FOLD.get(table, {}),
    }
    selected = [f"{given.get(c.name, f'row.{c.name}')} AS {c.name}" for c in columns]
    return (
        frame.filter(F.col("out_table") == table)
        .selectExpr("topic_partition_id", f"explode(from_json(rows, '{whole}')) AS row")
        .selectExpr(*selected)
    )


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
        rows = rows_of(outcome.frame, table, writer, micro_batch_id).coalesce(1)
        replaced, touched = outcome.replaced.get(table, []), outcome.touched.get(table, [])
        if table in APPENDED:
            own = APPENDED[table]
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


def _put_in_place(
    store: Store, table: str, rows: DataFrame, replaced: list[str], writer: Writer,
    micro_batch_id: int,
) -> None:  # fmt: skip
    """Replaces what the fold had appended of some topic partitions and now tells otherwise."""
    for first in range(0, len(replaced), REPLACED_BY_NAME):
        names = named(replaced[first : first + REPLACED_BY_NAME])
        condition = f"{APPENDED[table]} AND {names}"
        part = f"replaced/{first}"
        store.replace_where(table, rows.filter(names), condition, writer, micro_batch_id, part)
