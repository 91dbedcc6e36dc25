"""How a job fails: the one line that tells a user what happened, and the exit status."""

import re
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

EXIT_UNUSABLE, EXIT_DEFECT = 2, 4


def exit_status(main: Callable[[list[str]], int], command: Sequence[str]) -> int:
    """What a job ends with: its own status, or that of what it did not see coming.

    Python itself would end with 1, which says that something is violated. command: as sys.argv.
    """
    job = Path(command[0]).name
    try:
        return main(list(command[1:]))
    except OSError as error:
        print(f"{job}: {error}", file=sys.stderr)
        return EXIT_UNUSABLE
    except Exception:
        traceback.print_exc()
        print(f"{job}: a defect of this tool; the lines above say where", file=sys.stderr)
        return EXIT_DEFECT


def first_cause(error: BaseException) -> str:
    """Our own defect with its place where there is one, else Spark's first line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    for line in lines:
        found = re.search(r"(?:FoldDefectError|CorruptState|UnknownFormat): (.*)", line)
        if found:
            return found[0]
    return lines[0] if lines else repr(error)
