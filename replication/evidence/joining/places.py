"""Where records stand that clients name."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """Where a payload stands: offset, leader epoch and content."""

    offset: int
    leader_epoch: int | None
    content: int
