"""Writes outcomes of the quality checks into their table."""

from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql import functions as F

from replication.spark import contracts
from replication.spark.other_writers import RESULTS
from replication.spark.tables import Store, TablesError


def append(store: Store, rows: Iterable[Mapping[str, Any]]) -> None:
    """Appends rows, each with every column of the table's schema, in one commit.

    Raises TablesError where the table cannot be written, or holds that run already.
    """
    store.create()
    values = [{c.name: row[c.name] for c in contracts.tables()[RESULTS].told} for row in rows]
    runs = sorted({row["run"] for row in values})
    known = store.at_version(RESULTS, store.version(RESULTS))
    if not known.filter(F.col("run").isin(runs)).isEmpty():
        raise TablesError(
            f"{store.path(RESULTS)} holds run {runs[0]!r} already: give another --run"
        )
    store.append_rows(RESULTS, values)
