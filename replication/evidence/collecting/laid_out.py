"""Names of files that hold one kind of line each, as shipped lines are laid out.

What lines come is for whoever ships to say. So a file of shipped lines is read as what it was laid
out for, never as what some of its lines look like: no line makes the others unreadable.
"""

from collections.abc import Iterable
from pathlib import Path

DIGEST = "digest.lines"
UNFINISHED = ".trial"
# No name of a shipped log has this sign in it.
SIGN = "~"
OBJECTS, ACKNOWLEDGED, CONSUMED = "json", "acknowledged", "consumed"


def named_for(log: str, kind: str) -> str:
    """The name of a log for its lines of one kind."""
    return f"{log}{SIGN}{kind}"


def kind_of(path: Path) -> str:
    """For which kind of lines a file was laid out; "" for lines of a log as they are."""
    if path.name == DIGEST:
        return DIGEST
    found = path.name.rpartition(SIGN)[2].split(".")[0] if SIGN in path.name else ""
    return found if found in (OBJECTS, ACKNOWLEDGED, CONSUMED) else ""


def files(roots: Iterable[Path]) -> list[Path]:
    """All files at or below the roots but those whose writing was broken off."""
    every = (path for root in roots for path in root.rglob("*") if path.is_file())
    return sorted(p for p in every if not p.name.startswith(".") and p.suffix != UNFINISHED)
