"""What the jobs are measured against: spark-submit benchmarks/yardsticks.py pass|count ...

pass: reads, validates and writes the events to Delta, once, and does no more.
count: jobs/stream.py with a fold that only counts the events of each shard.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
from pyspark.sql.streaming.state import GroupState

from replication.spark import ingest, runs, session, settings, stream
from replication.spark.event_files import Admission
from replication.spark.fold_stream import Fold, ShardFunction
from replication.spark.ingest import Ingest
from replication.spark.partition_fold import COUNTS, Out
from replication.spark.progress import Progress
from replication.spark.shard_fold import FIGURES, out_frame
from replication.spark.tables import Store


def counted(
    key: tuple[int], frames: Iterator[pd.DataFrame], state: GroupState
) -> Iterator[pd.DataFrame]:
    """How many events came, ever; said in the words of the fold."""
    rows = sum(len(frame) for frame in frames)
    before = int.from_bytes(state.get[0], "big") if state.exists else 0
    state.update(((before + rows).to_bytes(8, "big"),))
    figures = dict.fromkeys(COUNTS, 0) | {"applied": rows, "rows_in": rows, "ignored": 0}
    yield out_frame([Out(FIGURES, "", [{**figures, "newest_event_time": None}])])


class CountingFold(Fold):
    """The fold query, counting."""

    def shard_function(self) -> ShardFunction:
        """What counts a shard's rows."""
        return counted


def pass_through(argv: list[str]) -> int:
    """The ingest alone."""
    flags = stream.parser().parse_args(argv)
    spark = session.start("pass-through")
    store = Store(spark, flags.tables.absolute())
    store.create()
    run = runs.enter(store, flags.checkpoint_dir.absolute(), ingest.QUERY, None)
    chosen = settings.load(vars(flags))
    notes = str(run.folder / "admitted")
    Admission(Path(flags.source).absolute(), Path(notes), chosen.settle_seconds).admit()
    query = Ingest(spark, store, run, chosen, Progress()).start(notes)
    query.awaitTermination()
    spark.stop()
    return 0


if __name__ == "__main__":
    if sys.argv[1] == "pass":
        sys.exit(pass_through(sys.argv[2:]))
    stream.Fold = CountingFold  # type: ignore[attr-defined]
    sys.exit(stream.main(sys.argv[2:]))
