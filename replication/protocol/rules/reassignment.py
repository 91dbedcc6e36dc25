"""When a reassignment of replicas is complete."""

from collections.abc import Sequence
from dataclasses import dataclass

from replication.protocol.ground.versions import Behaviour


@dataclass(frozen=True, slots=True)
class Assignment:
    """The replica set in force. needs_election: the leader is not among the target replicas."""

    replicas: tuple[int, ...]
    complete: bool
    needs_election: bool


def reassignment(
    replicas: Sequence[int],
    target: Sequence[int],
    isr: frozenset[int],
    leader: int | None,
    behaviour: Behaviour,
) -> Assignment:
    """Decides the replica set while a reassignment runs and when it ends.

    behaviour: the controller's.

    Shown by reassignment.txt.

    Versions: while it runs the target comes first and what leaves after it, so the target's head is
    the preferred leader at once. It ends when all the target is in the ISR; in KRaft before 3.8
    (KAFKA-15665) when what it adds is, and some of the target. A mere reordering ends at once
    (with ZooKeeper from 2.4, KIP-455).
    Followed: nothing. Gave way to: nothing. Removing a replica raises the leader epoch; a
    ZooKeeper controller raises it at the start and at the end as well.
    Leaves unchanged: the ISR, but for removed replicas, which leave it.
    Unknown: nothing.
    """
    leaving = [r for r in replicas if r not in target]
    adding = frozenset(target) - frozenset(replicas)
    awaited = frozenset(target)
    kraft = behaviour.controller == "kraft"
    if kraft and not behaviour.has("reassignment_waits_for_whole_target"):
        awaited = adding if frozenset(target) & isr else awaited
    if (not leaving and not adding) or awaited <= isr:
        return Assignment(tuple(target), True, leader not in target)
    return Assignment((*target, *leaving), False, False)
