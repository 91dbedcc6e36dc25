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

    def order(self) -> tuple[str, str, int, str, str]:
        """What to sort by: the file, then bytes and lines by their number."""
        kind, _, number = self.where.partition(" ")
        place = int(number) if number.isdecimal() and number.isascii() else -1
        return self.path, kind, place, self.where, self.reason
