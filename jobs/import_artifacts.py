"""spark-submit jobs/import_artifacts.py: evidence to event files; `--help` tells all."""

import sys

from replication.spark.import_artifacts import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
