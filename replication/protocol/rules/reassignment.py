"""When a reassignment of replicas is complete."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Assignment:
    """The replica set in force. needs_election: the leader is not among the target replicas."""

    replicas: tuple[int, ...]
    complete: bool
    needs_election: bool


def reassignment(
    replicas: Sequence[int], target: Sequence[int], isr: frozenset[int], leader: int | None
) -> Assignment:
    """Decides the replica set while a reassignment runs and when it ends.

    Shown by reassignment.txt.

    Versions: ZooKeeper and KRaft alike (KIP-455 from 2.4): old and new replicas together until
    every target replica is in the ISR, then the target alone.
    Followed: nothing. Gave way to: nothing. Removing a replica raises the leader epoch.
    Leaves unchanged: the ISR, but for removed replicas, which leave it.
    Unknown: nothing.
    """
    if set(target) <= isr:
        return Assignment(tuple(target), True, leader not in target)
    adding = tuple(r for r in target if r not in replicas)
    return Assignment((*replicas, *adding), False, False)
