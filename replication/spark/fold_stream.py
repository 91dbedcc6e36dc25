"""The second query: `replica_events` -> the answer tables, one state per shard of topic partitions.

The stream holds what waits behind a gap, drops duplicates and keeps the order of each trace. What
it cannot settle from its state alone (an event for a slot already folded: duplicate or conflict?
a gap that closes after too much had to be let go) is settled from `replica_events`: those
partitions are folded again as a batch, and the result comes back into the stream through the table
`_refolds`, its second source.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from replication.spark import answer_tables, contracts
from replication.spark.alerting import Alerting
from replication.spark.analyzer_version import analyzer_version
from replication.spark.answer_tables import LATE, Outcome
from replication.spark.fold_batch import fold_events
from replication.spark.ingest import marked, query_id, triggered
from replication.spark.progress import Progress
from replication.spark.runs import Run
from replication.spark.settings import Settings
from replication.spark.shard_fold import OUT_DDL, REFOLD, STATE, ShardFold, out_frame
from replication.spark.tables import REFOLDS, Store, Writer
from replication.spark.transport import TOPIC_PARTITION_ID, narrow

QUERY = "fold"
STATE_DDL = "shard binary"
ShardFunction = Callable[[tuple[int], Iterator[pd.DataFrame], GroupState], Iterator[pd.DataFrame]]


def _shard(shards: int) -> Any:
    """The fold's key. Spark's hash is a fixed function of the text: the same in every run."""
    return F.pmod(F.xxhash64("topic_partition_id"), F.lit(shards)).alias("state_shard")


@dataclass
class Fold:
    """The fold query of one run, over the events of one run of the ingest."""

    spark: SparkSession
    store: Store
    run: Run
    ingest_run: str
    settings: Settings
    progress: Progress
    refolds: int = 0
    alerting: Alerting | None = None

    def start(self) -> StreamingQuery:
        """Starts the query."""
        folded = (
            self._events()
            .groupBy("state_shard")
            .applyInPandasWithState(
                self.shard_function(), OUT_DDL, STATE_DDL, "append", GroupStateTimeout.NoTimeout
            )
        )
        writer = folded.writeStream.queryName(QUERY).foreachBatch(self.take).outputMode("append")
        writer = writer.option("checkpointLocation", self.run.spark_location)
        return triggered(writer, self.settings).start()

    def shard_function(self) -> ShardFunction:
        """What the operator calls with a shard's rows and state; holds nothing of this object."""
        limit = self.settings.held_limit

        def fold_shard(
            key: tuple[int], frames: Iterator[pd.DataFrame], state: GroupState
        ) -> Iterator[pd.DataFrame]:
            return folded_shard(frames, state, limit)

        return fold_shard

    def _events(self) -> DataFrame:
        limits = {
            "maxFilesPerTrigger": str(self.settings.fold_max_files_per_trigger),
            "maxBytesPerTrigger": str(self.settings.fold_max_bytes_per_trigger),
            # A DELETE of old events changes nothing that was folded.
            "skipChangeCommits": "true",
        }
        reader = self.spark.readStream.format("delta").options(**limits)
        events = reader.load(self.store.path("replica_events"))
        events = events.filter(F.col("run") == self.ingest_run)
        shards = self.settings.state_shards
        columns = narrow(events).select(
            "*", F.lit(None).cast("binary").alias("refolded"), _shard(shards)
        )
        again = self.spark.readStream.format("delta").load(self.store.path(REFOLDS))
        again = again.filter(F.col("run") == self.run.name)
        given = {
            name: F.lit(-1).cast(kind) if kind == "bigint" else F.lit(None).cast(kind)
            for name, kind in columns.dtypes
        }
        given |= {
            "topic_partition_id": F.col("topic_partition_id"),
            "ingest": F.col("ingest_micro_batch_id"),
            "refolded": F.col("state"),
            "state_shard": F.col("state_shard"),
        }
        return columns.unionByName(again.select(*[c.alias(n) for n, c in given.items()]))

    def take(self, frame: DataFrame, micro_batch_id: int) -> None:
        """Writes one micro-batch: refolds, changed tables, then its row of `_batches`."""
        started = time.monotonic()
        writer = self.run.writer(query_id(frame.sparkSession))
        frame.persist()
        try:
            # The whole frame runs here, once: Spark checks that every state store has committed.
            outcome = answer_tables.outcome_of(frame)
            self._refold(outcome, writer, micro_batch_id)
            threads = self.settings.write_threads
            afresh = micro_batch_id == 0 and self.run.number > 0
            answer_tables.write(self.store, outcome, writer, micro_batch_id, threads, afresh)
            if self.alerting is not None:
                self.alerting.take(outcome, micro_batch_id)
        finally:
            frame.unpersist()
        figures = outcome.figures
        figures["milliseconds"] = int((time.monotonic() - started) * 1000)
        self.store.finish(writer, micro_batch_id, figures)
        self.progress.report(QUERY, micro_batch_id, figures)

    def _refold(self, outcome: Outcome, writer: Writer, micro_batch_id: int) -> None:
        """Folds again what the stream cannot settle, and hands it over through `_refolds`."""
        asked = set(outcome.touched.get(REFOLD, []))
        if outcome.has(LATE):
            asked |= set(self._late_conflicts(outcome))
        if not asked:
            return
        self.refolds += len(asked)
        self.progress.say(f"folding {len(asked)} topic partitions again from replica_events")
        # Only finished micro-batches of the ingest: of one that is still being written, a part of
        # the rows could be missing here and then be taken for known when it comes by.
        newest = self.store.newest_batches()["ingest"]["micro_batch_id"]
        events = self._stored().filter(F.col("micro_batch_id") <= newest)
        keys = self.spark.createDataFrame(
            [(name,) for name in sorted(asked)], "topic_partition_id string"
        )
        chosen = events.withColumn("topic_partition_id", F.expr(TOPIC_PARTITION_ID)).join(
            F.broadcast(keys), "topic_partition_id", "left_semi"
        )
        again = fold_events(chosen, self.settings.held_limit, with_states=True)
        states = again.filter(F.col("out_table") == STATE).select(
            "topic_partition_id",
            _shard(self.settings.state_shards),
            F.lit(newest).cast("bigint").alias("ingest_micro_batch_id"),
            "state",
        )
        self._hand_over(states, writer, micro_batch_id)

    def _hand_over(self, states: DataFrame, writer: Writer, micro_batch_id: int) -> None:
        rows = marked(states, writer, micro_batch_id)
        ordered = rows.select(*[c.name for c in contracts.tables()[REFOLDS].columns])
        self.store.append(REFOLDS, ordered.coalesce(1), writer, micro_batch_id)

    def judge_anew(self) -> None:
        """Has every partition judged once more where another analyzer wrote last."""
        newest = self.store.newest_batches().get(QUERY)
        if newest is None or newest["analyzer_version"] == analyzer_version():
            return
        self.progress.say(
            f"{newest['analyzer_version'] or 'an older analyzer'} wrote last: this one "
            f"({analyzer_version()}) judges every topic partition anew"
        )
        self.refolds += 1
        writer = self.run.writer(f"{analyzer_version()}/{newest['micro_batch_id']}")
        shards = self.spark.range(self.settings.state_shards).select(
            F.lit("").alias("topic_partition_id"),
            F.col("id").alias("state_shard"),
            F.lit(-1).cast("bigint").alias("ingest_micro_batch_id"),
            F.lit(b"").alias("state"),
        )
        self._hand_over(shards, writer, 0)

    def _stored(self) -> DataFrame:
        return self.store.newest("replica_events").filter(F.col("run") == self.ingest_run)

    def _late_conflicts(self, outcome: Outcome) -> list[str]:
        """Topic partitions in which an event came for a slot that holds another content."""
        slots = "array<struct<sequence:bigint,event_id:string>>"
        late = (
            outcome.frame.filter(F.col("out_table") == LATE)
            .select("topic_partition_id", F.explode(F.from_json("rows", slots)).alias("slot"))
            .select("topic_partition_id", "slot.sequence", "slot.event_id")
        )
        # Literal bounds: Delta passes over files whose sequences lie outside of them.
        bounds = late.agg(F.min("sequence"), F.max("sequence")).collect()[0]
        near = self._stored().filter(F.col("sequence").between(bounds[0], bounds[1]))
        stored = near.select(
            F.expr(TOPIC_PARTITION_ID).alias("topic_partition_id"), "sequence",
            F.col("event_id").alias("stored_id"), "trace_generation", "trace_id",
        )  # fmt: skip
        own = stored.withColumnRenamed("stored_id", "event_id")
        keys = ["topic_partition_id", "sequence"]
        slot = [*keys, "trace_generation", "trace_id"]
        placed = late.join(own, [*keys, "event_id"]).select(*slot, "event_id").distinct()
        other = placed.join(stored, slot).filter(F.col("stored_id") != F.col("event_id"))
        found = other.select("topic_partition_id").distinct().collect()
        return sorted(row["topic_partition_id"] for row in found)


def folded_shard(
    frames: Iterator[pd.DataFrame], state: GroupState, limit: int
) -> Iterator[pd.DataFrame]:
    """Folds one shard's events of a micro-batch; its state goes from bytes to bytes."""
    shard = ShardFold.decode(state.get[0], limit) if state.exists else ShardFold(limit)
    parts = list(frames)
    frame = parts[0] if len(parts) == 1 else pd.concat(parts, ignore_index=True)
    again = frame["refolded"].notna()
    if again.any():
        for row in frame[again].sort_values("ingest").itertuples():
            if row.refolded:
                shard.adopt(str(row.topic_partition_id), bytes(row.refolded), int(row.ingest))
            else:
                shard.touch_all()
        frame = frame[~again].reset_index(drop=True)
    if len(frame):
        shard.take(frame)
    yield out_frame(shard.outcome())
    state.update((shard.encode(),))
