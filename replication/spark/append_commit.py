"""Appends rows to a Delta table in one commit with its transaction id, which is not looked up.

Delta's own idempotent writes (txnAppId, txnVersion) look their id up at each write, and only a
Spark job over the table's whole log answers that (Snapshot.setTransactions): a third of what a
small micro-batch costs. Who knows that a commit is new says so.
"""

import time
from dataclasses import dataclass

from pyspark.sql import DataFrame


@dataclass(frozen=True)
class AppendCommit:
    """Rows for a table, and the transaction (appId, version) that says that they are there."""

    rows: DataFrame
    transaction: tuple[str, int]

    def save(self, path: str) -> None:
        """Commits them as Delta's streaming sink would (DeltaSink.addBatch)."""
        session = self.rows.sparkSession
        jvm = session.sparkContext._jvm
        assert jvm is not None
        delta, option = jvm.org.apache.spark.sql.delta, jvm.scala.Option
        log = delta.DeltaLog.forTable(session._jsparkSession, path)
        commit = log.startTransaction(option.empty(), option.empty())
        files = commit.writeFiles(self.rows._jdf)
        app, version = self.transaction
        named = delta.actions.SetTransaction(app, version, option.apply(int(time.time() * 1000)))
        append = jvm.org.apache.spark.sql.streaming.OutputMode.Append()
        what = delta.DeltaOperations.StreamingUpdate
        commit.commit(
            getattr(files, "$colon$plus")(named), what(append, app, version, option.empty())
        )
