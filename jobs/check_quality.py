"""spark-submit jobs/check_quality.py: expectations over the tables; `--help` tells all."""

import argparse
import signal
import sys
import time
from datetime import UTC, datetime

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from replication.paths import project_root
from replication.quality import checks, suites
from replication.quality.command import parser
from replication.quality.great_expectations_suite import Judge, JudgeError
from replication.quality.suites import Suite, SuiteError
from replication.spark import expectation_results, session, views
from replication.spark.failures import first_cause
from replication.spark.fold_stream import QUERY
from replication.spark.session import SessionError
from replication.spark.stream import Stop
from replication.spark.tables import Store, TablesError

EXIT_UNUSABLE, EXIT_DEFECT = 2, 4
# Bytes: smaller tables are read once for all expectations.
KEPT_BELOW = 16_000_000
POLL_SECONDS = 1.0


def main(argv: list[str]) -> int:
    """Runs the job; returns the exit status."""
    flags = parser().parse_args(argv)
    try:
        folder = flags.expectations or project_root() / "conf" / "expectations"
        chosen = suites.load(folder, tuple(flags.suite))
        spark = session.start("replication-analyzer quality")
    except (SuiteError, SessionError) as error:
        return _refused(error, EXIT_UNUSABLE)
    try:
        if flags.every is None:
            return check(spark, flags, chosen)
        stop = Stop()
        signal.signal(signal.SIGTERM, stop.asked_by)
        signal.signal(signal.SIGINT, stop.asked_by)
        return follow(spark, flags, chosen, stop)
    except (TablesError, SuiteError) as error:
        return _refused(error, EXIT_UNUSABLE)
    except (PySparkException, JudgeError) as error:
        return _refused(first_cause(error), EXIT_DEFECT)
    finally:
        spark.stop()


def check(spark: SparkSession, flags: argparse.Namespace, chosen: list[Suite]) -> int:
    """Holds the tables against the suites, writes and says what came out; the exit status."""
    found = views.opened(spark, flags.tables.absolute())
    run = flags.run or datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    if flags.run and flags.every:
        run = f"{flags.run} {found.micro_batch_id}"
    judge = Judge(run, flags.data_docs)
    results = checks.run(spark, chosen, found.register(KEPT_BELOW), judge)
    checked = (found.run, found.micro_batch_id)
    rows = checks.result_rows(results, run, checked, time.time_ns() // 1_000_000)
    expectation_results.append(found.store, rows)
    print(checks.text(results))
    docs = judge.write_docs()
    if docs is not None:
        print(f"Data Docs: {docs}")
    return checks.exit_status(results)


def follow(spark: SparkSession, flags: argparse.Namespace, chosen: list[Suite], stop: Stop) -> int:
    """Checks now and after every flags.every micro-batches of the fold; the worst exit status."""
    store = Store(spark, flags.tables.absolute())
    worst, looked = 0, None
    while not stop.asked:
        newest = store.newest_batches().get(QUERY)
        place = None if newest is None else (newest["run_number"], newest["micro_batch_id"])
        if looked is None or place is None or _is_due(looked, place, flags.every):
            worst = max(worst, check(spark, flags, chosen))
            looked = place
        time.sleep(POLL_SECONDS)
    return worst


def _is_due(looked: tuple[int, int], place: tuple[int, int], every: int) -> bool:
    """Whether the fold is that many micro-batches further, or at work on another run."""
    return place[0] != looked[0] or place[1] - looked[1] >= every


def _refused(reason: object, status: int) -> int:
    print(f"check_quality.py: {reason}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
