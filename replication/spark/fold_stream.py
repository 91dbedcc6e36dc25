"""The second query: `replica_events` -> the answer tables, one state per shard of topic partitions.

The stream holds what waits behind a gap, drops duplicates and keeps the order of each trace. What
it cannot settle from its state alone (an event for a slot already folded: duplicate or conflict?
a gap that closes after too much had to be let go) is settled from `replica_events`: those
partitions are folded again as a batch, and the result comes back into the stream through the table
`_refolds`, its second source.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from replication.reports.inventory_words import counted
from replication.spark import answer_tables, contracts
from replication.spark.alerting import Alerting
from replication.spark.analyzer_version import analyzer_version
from replication.spark.answer_tables import LATE, Outcome
from replication.spark.ending import Stop
from replication.spark.fold_batch import fold_events
from replication.spark.ingest import begun, marked, query_id
from replication.spark.progress import Progress
from replication.spark.quarantine import MOST
from replication.spark.runs import Run
from replication.spark.settings import Settings
from replication.spark.shard_fold import (
    OUT_DDL,
    REFOLD,
    STATE,
    UNSETTLED,
    ShardFold,
    out_frame,
)
from replication.spark.tables import REFOLDS, Store, Writer
from replication.spark.topic_partition_ids import TOPIC_PARTITION_ID
from replication.spark.transport import narrow

QUERY = "fold"
STATE_DDL = "shard binary"
LATE_DDL = "array<struct<sequence:bigint,event_id:string,trace_generation:bigint,trace_id:string>>"
LOOKED_UP_BY_NAME = 1_000
# The property of Spark's jobs that tells the workers how many events a partition may hold.
HELD_PROPERTY = "replication.held_limit"
DELETED = (
    b"an event came for a place in the trace that was folded before, or closed a gap behind which "
    b"too much was held; the stored events that would settle it were deleted by maintain.py: the "
    b"answer stays as it was"
)
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
    held_in_state: int | None = None
    alerting: Alerting | None = None
    stop: Stop = field(default_factory=Stop)

    def start(self) -> StreamingQuery:
        """Starts the query."""
        return begun(self.folded(), QUERY, self)

    def folded(self) -> DataFrame:
        """What comes out of the stateful operator, in the frame of OUT_DDL."""
        return (
            self.events()
            .groupBy("state_shard")
            .applyInPandasWithState(
                self.shard_function(), OUT_DDL, STATE_DDL, "append", GroupStateTimeout.NoTimeout
            )
        )

    def shard_function(self) -> ShardFunction:
        """What the operator calls with a shard's rows and state; holds nothing of this object."""
        limit = self.settings.held_limit

        def fold_shard(
            key: tuple[int], frames: Iterator[pd.DataFrame], state: GroupState
        ) -> Iterator[pd.DataFrame]:
            context = TaskContext.get()
            told = context.getLocalProperty(HELD_PROPERTY) if context is not None else None
            return folded_shard(frames, state, limit if told is None else int(told))

        return fold_shard

    def events(self) -> DataFrame:
        """What goes in: stored events and what was folded again, each with its state shard."""
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
        self.store.check_there()
        writer = self.run.writer(query_id(frame.sparkSession))
        limit = self._held_limit()
        frame.sparkSession.sparkContext.setLocalProperty(HELD_PROPERTY, str(limit))
        frame.persist()
        try:
            # The whole frame runs here, once: Spark checks that every state store has committed.
            outcome = answer_tables.outcome_of(frame)
            self._refold(outcome, writer, micro_batch_id, limit)
            threads = self.settings.write_threads
            afresh = micro_batch_id == 0 and self.run.number > 0
            answer_tables.write(self.store, outcome, writer, micro_batch_id, threads, afresh)
            figures = outcome.figures
            self.held_in_state = self._held() + figures.get("held_in_state", 0)
            figures["milliseconds"] = int((time.monotonic() - started) * 1000)
            self.store.finish(writer, micro_batch_id, figures)
            if self.alerting is not None:
                self.alerting.take(outcome, micro_batch_id)
        finally:
            frame.unpersist()
        self.progress.report(QUERY, micro_batch_id, figures, outcome.why_refused()[:MOST])
        for note in outcome.notes():
            self.progress.say(f"note: {note}")
        self.stop.between(QUERY)

    def _held(self) -> int:
        """How many events the state holds behind gaps, in all partitions."""
        if self.held_in_state is None:
            self.held_in_state = self.store.sums(self.run.name, QUERY)["held_in_state"]
        return self.held_in_state

    def _held_limit(self) -> int:
        """How many events a partition may hold in this micro-batch: none where all of them hold too
        much together; what is let go then is read again when the gap has closed."""
        full = self._held() >= self.settings.held_total_limit
        return 0 if full else self.settings.held_limit

    def _refold(self, outcome: Outcome, writer: Writer, micro_batch_id: int, limit: int) -> None:
        """Folds again what the stream cannot settle, and hands it over through `_refolds`."""
        asked = set(outcome.touched.get(REFOLD, []))
        if outcome.has(LATE):
            asked |= set(self._late_conflicts(outcome))
        if not asked:
            return
        self.refolds += len(asked)
        self.progress.say(
            f"folding {counted(len(asked), 'topic partition')} again from replica_events"
        )
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
        trimmed = self._trimmed(chosen)
        if trimmed:
            chosen = chosen.filter(~F.col("topic_partition_id").isin(trimmed))
        again = fold_events(chosen, limit, with_states=True)
        states = again.filter(F.col("out_table") == STATE).select("topic_partition_id", "state")
        states = states.unionByName(self.spark.createDataFrame(
            [(name, bytearray(UNSETTLED + DELETED)) for name in trimmed],
            "topic_partition_id string, state binary",
        ))  # fmt: skip
        handed = states.select(
            "topic_partition_id",
            _shard(self.settings.state_shards),
            F.lit(newest).cast("bigint").alias("ingest_micro_batch_id"),
            "state",
        )
        self._hand_over(handed, writer, micro_batch_id)

    def _trimmed(self, chosen: DataFrame) -> list[str]:
        """Topic partitions of which maintenance has deleted the first events of the trace."""
        if self.store.retained_above(self.ingest_run) < 0:
            return []
        name, trace = "topic_partition_id", ["trace_generation", "trace_id"]
        firsts = chosen.groupBy(name, *trace).agg(F.min("sequence").alias("first"))
        newest = firsts.groupBy(name).agg(F.max_by("first", F.struct(*trace)).alias("first"))
        found = newest.filter("first > 0").select(name).collect()
        return sorted(row[name] for row in found)

    def _hand_over(self, states: DataFrame, writer: Writer, micro_batch_id: int) -> None:
        rows = marked(states, writer, micro_batch_id)
        ordered = rows.select(*[c.name for c in contracts.tables()[REFOLDS].told])
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
        told = self.store.newest("verdicts").filter(F.col("run") == self.run.name)
        shards = told.groupBy(_shard(self.settings.state_shards)).agg(
            F.min("topic_partition_id").alias("topic_partition_id"),
            F.lit(-1).cast("bigint").alias("ingest_micro_batch_id"),
            F.lit(b"").alias("state"),
        )
        self._hand_over(shards, writer, 0)

    def _stored(self) -> DataFrame:
        return self.store.newest("replica_events").filter(F.col("run") == self.ingest_run)

    def _late_conflicts(self, outcome: Outcome) -> list[str]:
        """Topic partitions in which an event came for a slot that holds another content, or whose
        content nothing stored tells any more."""
        slot = ["topic_partition_id", "sequence", "trace_generation", "trace_id"]
        late = (
            outcome.frame.filter(F.col("out_table") == LATE)
            .select("topic_partition_id", F.explode(F.from_json("rows", LATE_DDL)).alias("slot"))
            .select("topic_partition_id", "slot.*")
        )
        stored = self._near(late).select(
            F.expr(TOPIC_PARTITION_ID).alias("topic_partition_id"), *slot[1:],
            F.col("event_id").alias("stored_id"),
        )  # fmt: skip
        both = late.withColumn("late", F.count("*").over(Window.partitionBy(*slot))).distinct()
        met = stored.join(both, slot).groupBy(*slot).agg(
            F.max(F.col("stored_id") != F.col("event_id")).alias("differs"),
            (F.count("*") <= F.max("late")).alias("alone"),
        )  # fmt: skip
        # Where only what came late is left of a slot, retention has deleted what it may repeat.
        deleted = self.store.retained_above(self.ingest_run) >= 0
        asked = met.filter(F.col("differs") | (F.col("alone") & F.lit(deleted)))
        found = asked.select("topic_partition_id").distinct().collect()
        return sorted(row["topic_partition_id"] for row in found)

    def _near(self, late: DataFrame) -> DataFrame:
        """Stored events among which those in the late ones' places are.

        Literal values: Delta passes over files, and Parquet over pages, that have none of them.
        """
        sequence = F.col("sequence")
        places = late.agg(
            F.min(sequence).alias("first"), F.max(sequence).alias("last"),
            F.collect_set(sequence).alias("sequences"),
            F.collect_set(F.element_at(F.split("topic_partition_id", "/"), -3)).alias("topics"),
        ).collect()[0]  # fmt: skip
        near = self._stored().filter(sequence.between(places["first"], places["last"]))
        for name, values in (("sequence", places["sequences"]), ("topic", places["topics"])):
            if len(values) <= LOOKED_UP_BY_NAME:
                near = near.filter(F.col(name).isin(values))
        return near


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
