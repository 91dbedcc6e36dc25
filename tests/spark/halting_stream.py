"""jobs/stream.py, which stops (SIGSTOP) the moment a query has committed to a table.

Commits of a micro-batch follow each other within milliseconds: who watches the tables from outside
would come too late. HALT_AFTER names the query and the table, as fold/verdicts.
"""

import os
import runpy
import signal
import threading
from typing import Any

from replication.spark.tables import Store, Writer

HALT_AFTER = "HALT_AFTER"


def halting() -> None:
    """Has the process stop after each commit of a micro-batch that HALT_AFTER names."""
    aimed = tuple(os.environ[HALT_AFTER].split("/"))
    sound = Store._save

    def save(store: Store, written: Any, table: str, writer: Writer) -> None:
        sound(store, written, table, writer)
        # The row with which a run begins is of no micro-batch.
        begins = getattr(written, "transaction", "some") is None
        if (writer.query, table) == aimed and not begins:
            # To this very thread: another would have to run first to stop the process, and on a
            # busy machine this one would commit the next table meanwhile.
            signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)

    Store._save = save  # type: ignore[method-assign]


if __name__ == "__main__":
    halting()
    runpy.run_path("jobs/stream.py", run_name="__main__")
