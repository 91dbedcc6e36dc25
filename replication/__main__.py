"""`python -m replication COMMAND`: what the console script `replication-analyzer` does."""

import sys

from replication.entry import main

if __name__ == "__main__":
    sys.exit(main())
