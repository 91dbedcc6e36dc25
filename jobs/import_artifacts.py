"""spark-submit jobs/import_artifacts.py: evidence to event files; `--help` tells all."""

import sys

from replication.spark.failures import exit_status
from replication.spark.import_artifacts import main

if __name__ == "__main__":
    sys.exit(exit_status(main, sys.argv))
