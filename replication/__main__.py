"""`python -m replication COMMAND`: the same as the console script `replication-analyzer COMMAND`."""

import sys

from replication.cli import main

if __name__ == "__main__":
    sys.exit(main())
