"""Where the command starts: an interruption while modules still load ends quietly, too."""

import gc
import os
import signal
from types import FrameType

INTERRUPTED = 130
# What is read stays until the end: to look for garbage as often as Python does costs a tenth.
GARBAGE_AFTER = 50_000


def _end(number: int, frame: FrameType | None) -> None:
    os._exit(INTERRUPTED)


# Before the rest is loaded, which takes a good part of a second.
_loaded = signal.signal(signal.SIGINT, _end)

from replication import cli  # noqa: E402


def main() -> int:
    """Runs one command; the exit status is that of the outward contract."""
    signal.signal(signal.SIGINT, _loaded)
    gc.set_threshold(GARBAGE_AFTER)
    try:
        return cli.main()
    except KeyboardInterrupt:
        return INTERRUPTED
