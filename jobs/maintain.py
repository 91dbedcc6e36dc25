"""spark-submit jobs/maintain.py: keeps the tables small beside a stream; `--help` tells all."""

import sys

from replication.spark.failures import exit_status
from replication.spark.maintain import main

if __name__ == "__main__":
    sys.exit(exit_status(main, sys.argv))
