"""Lines of clients that lie in the evidence twice: a log and a saved copy of it, older or cut."""

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

from replication.evidence.clients.client_logs import Acknowledgement, Consumption

Line = TypeVar("Line", Acknowledgement, Consumption)


def told_once(lines: Iterable[Line]) -> tuple[Line, ...]:
    """The lines without those that an earlier file has word for word, of a record at an offset.

    Equal lines of one file stay: so a client wrote them. lines: file by file."""
    every = tuple(lines)
    if len({line.path for line in every}) < 2:
        return every
    first_in: dict[Line, str] = {}
    return tuple(
        line
        for line in every
        if line.offset is None
        or first_in.setdefault(replace(line, path="", line=0), line.path) == line.path
    )
