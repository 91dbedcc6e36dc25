"""spark-submit jobs/stream.py: follows a folder or a Kafka topic of events; `--help` tells all."""

import sys

from replication.spark.failures import exit_status
from replication.spark.stream import main

if __name__ == "__main__":
    sys.exit(exit_status(main, sys.argv))
