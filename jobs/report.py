"""spark-submit jobs/report.py: one offline page about what the tables say; `--help` tells all."""

import sys

from replication.spark.failures import exit_status
from replication.spark.incident_page import main

if __name__ == "__main__":
    sys.exit(exit_status(main, sys.argv))
