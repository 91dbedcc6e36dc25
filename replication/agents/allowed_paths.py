"""Which paths a client of the server may name: those below one folder, links followed."""

from pathlib import Path

MOST_NAMED = 20


class NotAllowed(ValueError):
    """The path is not below the folder, or not there; the text says which and what to do."""


def below(root: Path, text: str) -> Path:
    """The path, relative to root, of what is really there: no link and no `..` leads out of root.

    root: resolved already. Raises NotAllowed.
    """
    if "\0" in text or not text:
        raise NotAllowed("an empty path, or one with a NUL: name a file or folder below the root")
    if ".." in Path(text).parts:
        raise NotAllowed(f"{text}: `..` is refused: name a path below the root, from there on")
    try:
        real = (root / text).resolve(strict=True)
    except (OSError, RuntimeError):
        raise NotAllowed(
            f"{text}: no such file or folder below the root{_what_is_there(root)}"
        ) from None
    if real != root and root not in real.parents:
        raise NotAllowed(f"{text}: leads out of the root, which was given by --root: refused")
    return real.relative_to(root)


def _what_is_there(root: Path) -> str:
    names = sorted(entry.name for entry in root.iterdir())
    shown = ", ".join(names[:MOST_NAMED]) or "nothing"
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"; there are: {shown}{more}"
