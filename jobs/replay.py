"""spark-submit jobs/replay.py: folds a folder of event files at once; `--help` tells all."""

import sys

from replication.spark.replay import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
