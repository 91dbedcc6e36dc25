"""`python -m replication COMMAND`: what the console script `replication-analyzer` does."""

import sys

from replication.cli import main

if __name__ == "__main__":
    sys.exit(main())
