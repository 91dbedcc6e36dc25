"""The one line of a failed query that tells a user what happened."""

import re


def first_cause(error: BaseException) -> str:
    """Our own defect with its place where there is one, else Spark's first line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    for line in lines:
        found = re.search(r"(?:FoldDefectError|CorruptState|UnknownFormat): (.*)", line)
        if found:
            return found[0]
    return lines[0] if lines else repr(error)
