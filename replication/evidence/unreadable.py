"""The one value every reader of evidence answers in place of what it could not read."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A place in the evidence that could not be read, and why.

    `path` is the file as it was found. `where` is "byte 1234", "line 7" or "file" (all of it).
    `reason` is one sentence for the user; it names what was found rather than what was expected
    of the tool.
    """

    path: str
    where: str
    reason: str
