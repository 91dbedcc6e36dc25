"""Where the records are that clients name."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """Where a payload is: offset, leader epoch and content."""

    offset: int
    leader_epoch: int | None
    content: int
