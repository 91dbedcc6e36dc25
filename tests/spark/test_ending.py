"""A stream's end: between two micro-batches, and nothing is left for the JVM to call."""

import io
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from replication.evidence.event_dumps import write_events
from replication.spark import settings
from replication.spark.ending import Stop
from replication.spark.progress import Progress
from replication.spark.stream import StreamJob
from replication.spark.tables import Store
from tests.spark.event_rows import made_trace
from tests.spark.jobs_in_process import run_stream

pytestmark = pytest.mark.spark


@pytest.fixture
def handlers_as_before() -> Iterator[None]:
    kept = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in kept.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("handlers_as_before")
def test_a_job_that_has_ended_takes_its_hook_out_of_the_jvm(spark: SparkSession) -> None:
    taken = []
    stop = Stop()
    stop.listen(spark)
    take_away = stop.take_hook_away
    stop.take_hook_away = lambda: taken.append(take_away())
    stop.leave()
    assert taken == [True]
    assert take_away() is False


class AskedToEnd(io.StringIO):
    """Where a job says how it goes: when it says so of a micro-batch, it is asked to end."""

    def __init__(self, words: str, stop: Stop) -> None:
        super().__init__()
        self.words, self.stop = words, stop

    def write(self, text: str) -> int:
        self.stop.asked = self.stop.asked or self.words in text
        return super().write(text)


@pytest.mark.parametrize("query", ["ingest", "fold"])
def test_a_stream_that_is_asked_to_end_does_no_other_micro_batch(
    spark: SparkSession, folder: Path, query: str
) -> None:
    for number in range(3):
        write_events(folder / "in" / f"{number}.jsonl", made_trace(number, rounds=2))
    chosen = settings.load({"profile": "small-batches", "settle_seconds": "0"})
    stop = Stop()
    said = Progress(AskedToEnd(f"{query} micro-batch 0:", stop))
    job = StreamJob(spark, folder / "tables", folder / "checkpoint", chosen, said, stop)
    job.run(folder / "in", None)
    newest = Store(spark, folder / "tables").newest_batches()
    assert newest[query]["micro_batch_id"] == 0
    assert "90 rows = 90 applied" in run_stream(spark, folder, profile="small-batches")
