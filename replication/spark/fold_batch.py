"""The fold without a state store: sorted, in one pass; for replays and for folding again."""

from collections.abc import Iterator

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from replication.spark.shard_fold import OUT_DDL, fold_sorted
from replication.spark.transport import narrow


def fold_events(events: DataFrame, limit: int, with_states: bool = False) -> DataFrame:
    """Rows of replica_events -> what comes out of the fold, in the frame of OUT_DDL.

    limit: how many events may be held behind a gap. with_states: the encoded states too.
    """

    def run(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        return fold_sorted(frames, limit, with_states)

    ordered = (
        narrow(events)
        .repartition("topic_partition_id")
        .sortWithinPartitions(
            "topic_partition_id", F.desc("trace_generation"), F.desc("trace_id"), "sequence"
        )
    )
    return ordered.mapInPandas(run, OUT_DDL)
