"""Reads many files at once where that pays: `map` over several processes of this machine."""

import os
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from multiprocessing import active_children
from pathlib import Path
from typing import Any

from replication.evidence.collecting.collection import Spread

# Each process takes some 50 MB, and disks serve few readers well.
MOST = 4
# Below that the start of processes takes longer than it saves.
WORTH_IT = 64 << 20


@contextmanager
def spread_over(paths: Iterable[Path], processes: int | None) -> Iterator[Spread]:
    """What `collect` reads with. processes: as many as asked for; None: as the machine and the size
    of the evidence suggest."""
    if processes is None:
        large = _is_large(paths)
        processes = min(MOST, len(os.sched_getaffinity(0))) if large else 1
    if processes <= 1:
        yield map
        return
    # An interruption is the first process's to tell of; the others just end.
    quiet = partial(signal.signal, signal.SIGINT, signal.SIG_IGN)
    with ProcessPoolExecutor(processes, initializer=quiet) as pool:
        try:
            yield partial(_in_order, pool)
        except KeyboardInterrupt:
            # Else the end of the pool waits for the files that are being read.
            for child in active_children():
                child.terminate()
            raise


def _in_order(
    pool: Executor, function: Callable[[Any], Any], items: Iterable[Any]
) -> Iterator[Any]:
    """As `Executor.map`, which cancels on an interruption what the pool then fails to end."""
    futures = [pool.submit(function, item) for item in items]
    for future in futures:
        yield future.result()


def _is_large(paths: Iterable[Path]) -> bool:
    total = 0
    for root in paths:
        for path in [root] if root.is_file() else root.rglob("*"):
            try:
                total += path.stat().st_size
            except OSError:
                continue
            if total > WORTH_IT:
                return True
    return False
