"""spark-submit jobs/check_quality.py: expectations over the tables; `--help` tells all."""

import sys
import time
from datetime import UTC, datetime

from pyspark.errors import PySparkException

from replication.paths import project_root
from replication.quality import checks, suites
from replication.quality.command import parser
from replication.quality.great_expectations_suite import Judge, JudgeError
from replication.quality.suites import SuiteError
from replication.spark import expectation_results, session, views
from replication.spark.failures import first_cause
from replication.spark.session import SessionError
from replication.spark.tables import TablesError

EXIT_UNUSABLE, EXIT_DEFECT = 2, 4


def main(argv: list[str]) -> int:
    """Runs the job; returns the exit status."""
    flags = parser().parse_args(argv)
    run = flags.run or datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    try:
        folder = flags.expectations or project_root() / "conf" / "expectations"
        chosen = suites.load(folder, tuple(flags.suite))
        spark = session.start("replication-analyzer quality")
    except (SuiteError, SessionError) as error:
        print(f"check_quality.py: {error}", file=sys.stderr)
        return EXIT_UNUSABLE
    try:
        found = views.opened(spark, flags.tables.absolute())
        judge = Judge(run, flags.data_docs)
        results = checks.run(spark, chosen, found.register(), judge)
        checked = (found.run, found.micro_batch_id)
        rows = checks.result_rows(results, run, checked, time.time_ns() // 1_000_000)
        expectation_results.append(found.store, rows)
        print(checks.text(results))
        docs = judge.write_docs()
        if docs is not None:
            print(f"Data Docs: {docs}")
        return checks.exit_status(results)
    except (TablesError, SuiteError) as error:
        print(f"check_quality.py: {error}", file=sys.stderr)
        return EXIT_UNUSABLE
    except (PySparkException, JudgeError) as error:
        print(f"check_quality.py: {first_cause(error)}", file=sys.stderr)
        return EXIT_DEFECT
    finally:
        spark.stop()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
