"""A writer that begins raises the fence in every table of its query; older writers are refused."""

import time
from collections.abc import Sequence

from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError
from pyspark.sql import SparkSession

from replication.places import Place
from replication.spark.failures import OF_DELTA, is_conflict
from replication.spark.fence import Fence
from replication.spark.locks import FOLDER, commits_locked
from replication.spark.log_files import newest_version, opened
from replication.spark.small_commit import properties
from replication.spark.spark_commit import SparkTransaction

# So often is the fence of a table raised where other commits come first each time.
TRIES = 20


def take_over(
    spark: SparkSession, folder: Place, tables: Sequence[str], query: str, run: str
) -> Fence:
    """The right to write for a run of a query from now on: whoever wrote before may not any more.

    tables: those of the query, in one order for all writers: which of two that begin at once is the
    newer one the first table decides. Raises TakenOverError where a newer one begins meanwhile.
    """
    fence = Fence(query, run)
    lease = folder / FOLDER / f"{query}.json"
    lease.parent.mkdir(exist_ok=True)
    if lease.exists():
        # By this file a writer of an older version knows, at each commit, that it may write.
        with commits_locked(folder, alone=True):
            lease.unlink(missing_ok=True)
    known = [_generation(spark, folder / table, fence.app) for table in tables[1:]]
    # By the clock: no writer of tables that were since made anew, or put back, had this one.
    fence.generation = max(time.time_ns() // 1_000_000, 1 + max(known, default=0))
    for table in tables:
        _raise(spark, folder / table, fence, is_first=table == tables[0])
    return fence


def _generation(spark: SparkSession, table: Place, app: str) -> int:
    """That of a table's newest writer; 0: it has had none."""
    return _log(spark, table).transaction_version(app) or 0


def _log(spark: SparkSession, table: Place) -> DeltaTable | SparkTransaction:
    """A table at its newest version, which the next commit rests on."""
    found = opened(table)
    return SparkTransaction(spark, str(table)) if found is None else found


def _raise(spark: SparkSession, table: Place, fence: Fence, *, is_first: bool) -> None:
    """Raises the fence of a table. On the first one the generation becomes one that no other writer
    has. Raises TakenOverError."""
    for attempt in range(TRIES):
        before = newest_version(table)
        try:
            fence.raised(table, _raised(spark, table, fence, is_first))
            return
        except (CommitFailedError, *OF_DELTA) as error:
            came_second = is_conflict(error) or newest_version(table) > before
            if attempt == TRIES - 1 or not came_second:
                raise
    raise AssertionError


def _raised(spark: SparkSession, table: Place, fence: Fence, is_first: bool) -> int:
    """Makes the commit; the version that has it."""
    log = _log(spark, table)
    known = log.transaction_version(fence.app) or 0
    if is_first:
        fence.generation = max(fence.generation, known + 1)
    elif known > fence.generation:
        raise fence.taken_over(table)
    elif known == fence.generation:
        # An earlier try of this process, whose commit landed though it seemed to fail.
        return log.version if isinstance(log, SparkTransaction) else log.version()
    transaction = (fence.app, fence.generation)
    if isinstance(log, SparkTransaction):
        return log.commit(None, transaction, None, fence)
    told = properties(transaction, fence)
    log.create_write_transaction([], "append", log.schema(), commit_properties=told)
    return log.version() + 1
