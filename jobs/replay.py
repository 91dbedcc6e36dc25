"""spark-submit jobs/replay.py: folds a folder of event files at once; `--help` tells all."""

import sys

from replication.spark.failures import exit_status
from replication.spark.replay import main

if __name__ == "__main__":
    sys.exit(exit_status(main, sys.argv))
