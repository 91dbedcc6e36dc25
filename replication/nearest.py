"""What somebody may have meant who misspelt a name."""

import difflib
from collections.abc import Iterable


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """` (did you mean this?)`, or `` where no known name is near, and none or many begin so."""
    names = {name.lower(): name for name in known}
    found = [name for name in names if name.startswith(given.lower())]
    if len(found) not in (1, 2):
        found = difflib.get_close_matches(given.lower(), names, n=2, cutoff=0.7)
    return f" (did you mean {' or '.join(names[each] for each in found)}?)" if found else ""
