"""Writes outcomes of the quality checks into their table."""

from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql import functions as F

from replication.spark import contracts
from replication.spark.tables import RESULTS, Store, TablesError, completed


def append(store: Store, rows: Iterable[Mapping[str, Any]]) -> None:
    """Appends rows, each with every column of the table's schema, in one commit.

    Raises TablesError where the table cannot be written, or holds that run already.
    """
    store.create()
    table = contracts.tables()[RESULTS]
    values = [tuple(row[c.name] for c in table.told) for row in rows]
    runs = sorted({row[0] for row in values})
    if not store.newest(RESULTS).filter(F.col("run").isin(runs)).isEmpty():
        raise TablesError(
            f"{store.path(RESULTS)} holds run {runs[0]!r} already: give another --run"
        )
    frame = store.spark.createDataFrame(values, table.ddl).coalesce(1)
    completed(RESULTS, frame).write.format("delta").mode("append").save(store.path(RESULTS))
