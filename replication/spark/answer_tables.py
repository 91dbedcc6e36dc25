"""Writes what came out of the fold into the answer tables, only where rows changed."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from replication.spark import contracts
from replication.spark.shard_fold import FIGURES, REFOLD
from replication.spark.tables import Store, Writer

# The order of commits where one thread writes; what others point to comes first.
ORDER = (
    "isr_and_leadership",
    "replica_states",
    "findings",
    "divergences",
    "loss_ledger",
    "verdicts",
    "quarantine",
)
LATE = "_late"
WRITTEN_BY_FOLD = {
    "quarantine": {
        "rows": "1L",
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
    columns = contracts.tables()[table].columns
    whole = f"array<struct<{','.join(f'{c.name}:{c.type}' for c in columns)}>>"
    given = {
        "topic_partition_id": "topic_partition_id",
        "cluster_id": f"nullif({CLUSTER_ID}, '')",
        "topic": "element_at(split(topic_partition_id, '/'), -3)",
        "topic_id": "nullif(element_at(split(topic_partition_id, '/'), -2), '')",
        "partition": "CAST(element_at(split(topic_partition_id, '/'), -1) AS BIGINT)",
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


CLUSTER_ID = (
    "array_join(slice(split(topic_partition_id, '/'), 1, "
    "size(split(topic_partition_id, '/')) - 3), '/')"
)


def write(
    store: Store,
    outcome: Outcome,
    writer: Writer,
    micro_batch_id: int,
    threads: int,
    afresh: bool,
) -> None:
    """Writes every table that has rows, each in one commit.

    afresh: the first micro-batch of a run, whose answers replace those of an earlier run wholly.
    """
    known = contracts.tables()
    tasks: list[Callable[[], None]] = []
    for table in ORDER:
        current = known[table].written == "current"
        if not outcome.has(table) and not (afresh and current and store.has_rows(table)):
            continue
        tasks.append(_task(store, outcome, table, writer, micro_batch_id, afresh and current))
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
        if afresh:
            store.overwrite(table, rows, writer, micro_batch_id)
        elif contracts.tables()[table].written == "current":
            replaced, touched = outcome.replaced[table], outcome.touched[table]
            store.replace(table, rows, replaced, touched, writer, micro_batch_id)
        else:
            store.append(table, rows, writer, micro_batch_id)

    return task


def refolds_asked(outcome: Outcome) -> dict[str, int]:
    """topic_partition_id -> next sequence, of the partitions that ask to be folded again."""
    asked: dict[str, int] = {}
    if outcome.has(REFOLD):
        for row in outcome.frame.filter(F.col("out_table") == REFOLD).collect():
            asked[row["topic_partition_id"]] = json.loads(row["rows"])[0]["next_sequence"]
    return asked
