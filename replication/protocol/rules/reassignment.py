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
    before: Sequence[int] | None = None,
) -> Assignment:
    """Decides the replica set while a reassignment runs and when it ends.

    behaviour: the controller's. before: the replicas as the reassignment began; as they are, if it
    begins now.

    Shown by reassignment.txt.

    Versions: while it runs the target comes first and what leaves after it, so the target's head is
    the preferred leader at once. It ends when all the target is in the ISR; in KRaft before 3.8
    (KAFKA-15665) when what it adds is, and some of the target; so it is again from 4.3
    (KAFKA-19975) where no more leave than come. A mere reordering ends at once (with ZooKeeper from
    2.4, KIP-455).
    Followed: nothing. Gave way to: nothing. Removing a replica raises the leader epoch; a
    ZooKeeper controller raises it at the start and at the end as well.
    Leaves unchanged: the ISR, but for removed replicas, which leave it.
    Unknown: nothing.
    """
    leaving = [r for r in replicas if r not in target]
    original = frozenset(replicas if before is None else before)
    adding = frozenset(target) - original
    awaited = frozenset(target)
    kraft = behaviour.controller == "kraft"
    if kraft and not behaviour.has("reassignment_waits_for_whole_target"):
        awaited = adding if frozenset(target) & isr else awaited
    added_alone = behaviour.has("reassignment_waits_for_added_alone")
    if kraft and added_alone and adding and len(original) <= len(target):
        awaited = adding
    if (not leaving and not adding) or awaited <= isr:
        return Assignment(tuple(target), True, leader not in target)
    return Assignment((*target, *leaving), False, False)
