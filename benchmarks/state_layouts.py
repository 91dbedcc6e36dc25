"""Where the fold's state is best kept: blobs of fine or coarse shards, or a map under their key.

The same stored events are folded by the real fold, once with each layout: first all topic
partitions have news, then a few of them, again and again. A line each: CPU seconds of this
process's tree, and the bytes that the newest micro-batch added to the state stores.

    .venv/bin/python -m benchmarks.state_layouts [--partitions 2000] [--active 20] [--shards 16 ..]
"""

import argparse
import io
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from benchmarks.month import cpu_of
from benchmarks.streaming import state_of_last
from benchmarks.traffic import Partition, write
from replication.spark import event_frames, runs, settings
from replication.spark.event_files import event_files, next_slice
from replication.spark.fold_stream import QUERY, Fold
from replication.spark.ingest import marked
from replication.spark.progress import Progress
from replication.spark.shard_fold import OUT_DDL, ShardFold, out_frame
from replication.spark.tables import Store, Writer
from tests.spark.jobs_in_process import start_session

ROUNDS = 4
MAP = "map"
INGEST_RUN = "benchmark"


class MappedShard(StatefulProcessor):
    """A shard whose topic partitions are entries of a MapState: only active ones are read."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Spark hands over where the state lies."""
        self._states = handle.getMapState("partitions", "name string", "state binary")

    def handleInputRows(
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: Any,
    ) -> Iterator[pd.DataFrame]:
        """Folds the shard's events of a micro-batch."""
        frame = pd.concat(list(rows), ignore_index=True)
        shard = ShardFold()
        for name in frame["topic_partition_id"].unique():
            known = self._states.getValue((name,))
            if known is not None:
                shard.blobs[name] = bytes(known[0])
        shard.take(frame)
        yield out_frame(shard.outcome())
        for name, part in shard.live.items():
            self._states.updateValue((name,), (part.encode(),))

    def close(self) -> None:
        """Nothing is open."""


class MappedFold(Fold):
    """The fold with a map under the shard key."""

    def folded(self) -> DataFrame:
        """The rows that come out."""
        grouped = self.events().groupBy("state_shard")
        return grouped.transformWithStateInPandas(MappedShard(), OUT_DDL, "Append", "None")


def store_events(store: Store, folder: Path, number: int) -> None:
    """Stores the events of a folder's files as one micro-batch of the ingest would."""
    slices = [part for path in event_files(folder) if (part := next_slice(path, 0, settled=True))]
    delivered = event_frames.of_slices(store.spark, slices)
    assert delivered is not None
    writer = Writer(INGEST_RUN, 0, "ingest", "", "ingest/benchmark")
    rows = marked(event_frames.events(delivered), writer, number)
    store.append("replica_events", rows, writer, number)


def one(spark: SparkSession, base: Path, layout: str, few: list[Partition], known: int) -> None:
    """Folds the stored events with one layout, then those of few partitions some times."""
    work = base / layout
    shutil.copytree(base / "stored", work)
    shards = {} if layout == MAP else {"state_shards": layout}
    chosen = settings.load({"fold_max_files_per_trigger": "1", **shards})
    store, out = Store(spark, work / "tables"), Progress(io.StringIO())
    run = runs.enter(store, work / "checkpoint", QUERY, None)
    folding = (MappedFold if layout == MAP else Fold)(spark, store, run, INGEST_RUN, chosen, out)
    costs, sizes = [], []
    for number in range(1 + ROUNDS):
        if number:
            write(work / f"more-{number}", few, len(few) * 9, 1)
            store_events(store, work / f"more-{number}", number)
        before = cpu_of(os.getpid())
        folding.start().awaitTermination()
        costs.append(cpu_of(os.getpid()) - before)
        sizes.append(state_of_last(work))
    print(
        f"{layout:>5} {'' if layout == MAP else 'shards'}: all {known} active "
        f"{costs[0]:6.2f} CPU s and {sizes[0]:9,} state bytes, "
        f"{len(few)} active {min(costs[1:]):6.2f} CPU s and {sizes[-1]:9,} state bytes", flush=True,
    )  # fmt: skip
    shutil.rmtree(work)


def main(argv: list[str]) -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--partitions", type=int, default=2_000)
    parser.add_argument("--active", type=int, default=20)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--layouts", nargs="*", default=["16", "128", "512", "2000", MAP])
    flags = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as name:
        base = Path(name)
        spark = start_session(base / "warehouse")
        partitions = [Partition(i) for i in range(flags.partitions)]
        write(base / "in", partitions, flags.events, 1)
        few = partitions[:: flags.partitions // flags.active]
        store = Store(spark, base / "stored" / "tables")
        store.create()
        store_events(store, base / "in", 0)
        for layout in flags.layouts:
            one(spark, base, layout, [_copied(p) for p in few], flags.partitions)
        spark.stop()
    return 0


def _copied(partition: Partition) -> Partition:
    copy = Partition(partition.number)
    copy.__dict__.update(partition.__dict__)
    return copy


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
