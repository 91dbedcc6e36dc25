"""spark-submit jobs/check_quality.py: expectations over the tables; `--help` tells all."""

import argparse
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
from replication.spark.session import SessionError
from replication.spark.tables import TablesError

EXIT_UNUSABLE, EXIT_DEFECT = 2, 4
# Bytes: smaller tables are read once for all expectations.
KEPT_BELOW = 16_000_000


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
        return check(spark, flags, chosen)
    except (TablesError, SuiteError) as error:
        return _refused(error, EXIT_UNUSABLE)
    except (PySparkException, JudgeError) as error:
        return _refused(first_cause(error), EXIT_DEFECT)
    finally:
        spark.stop()


def check(spark: SparkSession, flags: argparse.Namespace, chosen: list[Suite]) -> int:
    """Holds the tables against the suites, writes and says what came out; the exit status."""
    run = flags.run or datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    found = views.opened(spark, flags.tables.absolute())
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


def _refused(reason: object, status: int) -> int:
    print(f"check_quality.py: {reason}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
