"""spark-submit jobs/create_views.py: the documented views for spark-sql; `--help` tells all."""

import sys

from replication.spark.failures import exit_status
from replication.spark.views import main

if __name__ == "__main__":
    sys.exit(exit_status(main, sys.argv))
