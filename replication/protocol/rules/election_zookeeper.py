"""Whom a ZooKeeper-mode controller elects."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Election:
    """A controller's answer. leader None: the partition is offline.

    kind: the outward words (clean, preferred, unclean, eligible_leader_replica, last_known_leader,
    same_leader), None without a leader. isr: in assignment order.
    """

    leader: int | None
    isr: tuple[int, ...]
    kind: str | None
    recovering: bool = False


def election_zookeeper(
    cause: str,
    assigned_replicas: Sequence[int],
    isr: frozenset[int],
    live: frozenset[int],
    unclean_leader_election: bool,
    *,
    leader: int | None = None,
    stopping: frozenset[int] = frozenset(),
    target_replicas: Sequence[int] = (),
    recovers: bool = False,
) -> Election | None:
    """Decides a new leader and ISR; None when the present leader stays, as it does while it lives
    unless the cause is another than offline.

    cause: offline, preferred, reassignment, controlled_shutdown. stopping: brokers in controlled
    shutdown. recovers: an unclean leader is marked recovering (3.2-IV0, KIP-704).

    Versions: up to 3.9. Every election raises the leader epoch by one.
    Followed: nothing. Gave way to: election_kraft. An unclean election takes the first live
    replica in assignment order, not the longest log (s09_unclean_election.txt).
    Leaves unchanged: the logs; a preferred election that is not possible changes nothing.
    Unknown: nothing.
    """
    if cause == "offline" and leader is not None and leader in live:
        return None
    order = list(target_replicas) if cause == "reassignment" else list(assigned_replicas)
    usable = [r for r in order if r in live and r in isr and r not in stopping]
    if cause == "preferred":
        head = assigned_replicas[0]
        if head not in usable or head == leader:
            return None
        usable = [head]
    live_isr = tuple(r for r in assigned_replicas if r in isr and r in live and r not in stopping)
    if usable:
        kind = "preferred" if cause == "preferred" else "clean"
        new_isr = live_isr if cause in ("offline", "controlled_shutdown") else _ordered(order, isr)
        return Election(usable[0], new_isr, kind)
    if cause != "offline":
        return None
    candidates = [r for r in assigned_replicas if r in live]
    if unclean_leader_election and candidates:
        return Election(candidates[0], (candidates[0],), "unclean", recovers)
    return Election(None, _ordered(assigned_replicas, isr), None)


def _ordered(replicas: Sequence[int], members: frozenset[int]) -> tuple[int, ...]:
    return tuple(r for r in replicas if r in members)


def isr_without_dead_broker(
    isr: tuple[int, ...], broker: int, unclean_leader_election: bool, *, always_kept: bool
) -> tuple[int, ...]:
    """The ISR after a broker died: the last member is kept.

    always_kept: from 1.1 (KAFKA-5083, KAFKA-5642) whatever the setting; before, only with unclean
    election disabled, and a clean candidate was forgotten otherwise.
    """
    if len(isr) == 1 and (always_kept or not unclean_leader_election):
        return isr
    return tuple(r for r in isr if r != broker)
