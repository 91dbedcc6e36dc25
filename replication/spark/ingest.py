"""The first query: delivered rows -> `replica_events`, and what does not fit -> `quarantine`."""

import time
from dataclasses import dataclass, field
from typing import Any, Protocol

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from replication.spark import event_frames, quarantine
from replication.spark.alerting import Alerting
from replication.spark.ending import Stop
from replication.spark.event_files import SLICE_DDL, Slice, still_readable
from replication.spark.kafka_source import KafkaSource, gone_in
from replication.spark.progress import Progress
from replication.spark.runs import Run
from replication.spark.settings import Settings
from replication.spark.tables import Store, Writer

QUERY = "ingest"


@dataclass
class Ingest:
    """The ingest query of one run. has_read_nothing: no micro-batch has been finished yet."""

    spark: SparkSession
    store: Store
    run: Run
    settings: Settings
    progress: Progress
    has_read_nothing: bool = True
    alerting: Alerting | None = None
    stop: Stop = field(default_factory=Stop)
    source: KafkaSource | str = ""

    def start(self, source: KafkaSource | str) -> StreamingQuery:
        """Starts the query. source: a Kafka topic, or the folder of the admitted slices' notes."""
        self.source = source
        frame = followed(self.spark, source, self.settings).drop("key")
        return begun(frame, QUERY, self)

    def take(self, frame: DataFrame, micro_batch_id: int) -> None:
        """Writes one micro-batch: its events, then its quarantine, then its row of `_batches`."""
        started = time.monotonic()
        self.store.check_there()
        session = frame.sparkSession
        writer = self.run.writer(query_id(session))
        slices: list[Slice] = []
        if "value" in frame.columns:
            slices = gone_in(self.spark, self.source, self.settings, self.run, micro_batch_id)
            of_topic = event_frames.of_kafka(frame)
            delivered: DataFrame | None = event_frames.of_incident(of_topic, writer.incident)
            figures = self._write_events(delivered, writer, micro_batch_id)
        else:
            slices = [Slice(**row.asDict()) for row in frame.collect()]
            try:
                delivered = event_frames.of_slices(session, slices, writer.incident)
                figures = self._write_events(delivered, writer, micro_batch_id)
            except Exception:
                # Some file is not what it was when it was admitted: the others are read again.
                checked = [still_readable(part) for part in slices]
                if checked == slices:
                    raise
                slices = checked
                delivered = event_frames.of_slices(session, slices, writer.incident)
                figures = self._write_events(delivered, writer, micro_batch_id)
        refusals = quarantine.of(delivered, slices, int(figures["quarantined"]), writer.incident)
        try:
            if refusals.rescued:
                rescued = marked(refusals.events(), writer, micro_batch_id)
                self.store.append("replica_events", rescued, writer, micro_batch_id, "rescued")
            quarantine.write(session, self.store, refusals, writer, micro_batch_id)
        finally:
            refusals.release()
        figures["rows_in"] += sum(s.rows for s in refusals.files)
        figures["quarantined"] = refusals.rows
        figures["applied"] = figures["rows_in"] - refusals.rows
        figures["rows/replica_events"] = figures["applied"]
        figures["rows/quarantine"] = refusals.entries
        figures["milliseconds"] = int((time.monotonic() - started) * 1000)
        self.store.finish(writer, micro_batch_id, figures)
        self.has_read_nothing = False
        if self.alerting is not None:
            self.alerting.progressed(QUERY, micro_batch_id, figures)
        self.progress.report(QUERY, micro_batch_id, figures, refusals.why)
        self.stop.between(QUERY)

    def _write_events(
        self, delivered: DataFrame | None, writer: Writer, micro_batch_id: int
    ) -> dict[str, Any]:
        """Writes the rows that fit and counts all in the same pass."""
        if delivered is None:
            return {"rows_in": 0, "quarantined": 0}
        repeated = self.has_read_nothing and self.store.is_written(
            "replica_events", writer, micro_batch_id
        )
        if repeated:
            # Delta skips a commit that is there, and then nothing is counted on the way.
            return event_frames.counted(delivered)
        seen = Observation()
        observed = delivered.observe(seen, *event_frames.counters())
        rows = marked(event_frames.events(observed), writer, micro_batch_id)
        self.store.append("replica_events", rows, writer, micro_batch_id)
        return dict(seen.get)


def followed(spark: SparkSession, source: KafkaSource | str, settings: Settings) -> DataFrame:
    """The records of a topic as they come (key, value, topic, partition, offset), or the slices of
    files that are admitted. source: that topic, or the folder of the slices' notes."""
    if not isinstance(source, KafkaSource):
        reader = spark.readStream.schema(SLICE_DDL).format("json")
        limit = settings.max_files_per_trigger
        return reader.option("maxFilesPerTrigger", limit).load(event_frames.as_one(source))
    options = {
        **source.options,
        "kafka.bootstrap.servers": source.bootstrap_servers,
        "subscribe": source.topic,
        "startingOffsets": settings.starting_offsets,
        "maxOffsetsPerTrigger": str(settings.max_offsets_per_trigger),
        "failOnDataLoss": str(settings.fail_on_data_loss).lower(),
    }
    frame = spark.readStream.format("kafka").options(**options).load()
    return frame.select("key", "value", "topic", "partition", "offset")


def marked(rows: DataFrame, writer: Writer, micro_batch_id: int) -> DataFrame:
    """Rows with the run and the micro-batch that write them, and its incident where it has one."""
    marks = {"run": F.lit(writer.run), "micro_batch_id": F.lit(micro_batch_id).cast("bigint")}
    if writer.incident is not None and "incident" in rows.columns:
        marks["incident"] = F.lit(writer.incident)
    return rows.withColumns(marks)


def query_id(session: SparkSession) -> str:
    """The id of the streaming query inside whose foreachBatch this is called."""
    found = session.sparkContext.getLocalProperty("sql.streaming.queryId")
    assert found is not None
    return found


class Query(Protocol):
    """What follows a frame, micro-batch by micro-batch."""

    run: Run
    settings: Settings

    def take(self, frame: DataFrame, micro_batch_id: int) -> None:
        """Takes one."""


def begun(frame: DataFrame, name: str, query: Query) -> StreamingQuery:
    """A query over a frame, with the trigger of its settings."""
    seconds = query.settings.interval_seconds
    writer = frame.writeStream.queryName(name).foreachBatch(query.take)
    writer = writer.option("checkpointLocation", query.run.spark_location)
    if seconds is None:
        return writer.trigger(availableNow=True).start()
    milliseconds = max(1, round(seconds * 1000))
    return writer.trigger(processingTime=f"{milliseconds} milliseconds").start()
