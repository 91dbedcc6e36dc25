"""Whom a KRaft controller elects, and which changes raise the leader epoch."""

from collections.abc import Sequence

from replication.protocol.ground.versions import Behaviour
from replication.protocol.rules.election_zookeeper import Election


def election_kraft(
    cause: str,
    assigned_replicas: Sequence[int],
    isr: frozenset[int],
    active: frozenset[int],
    behaviour: Behaviour,
    *,
    leader: int | None = None,
    eligible: frozenset[int] = frozenset(),
    last_known_leader: int | None = None,
) -> Election:
    """Decides leader, kind and the ISR that follows.

    cause: online (the default), preferred, or unclean (allowed by the topic or asked for). active:
    unfenced and not in controlled shutdown. eligible: the ELR. isr: the target ISR. A result with
    the present leader and no kind is "nothing changes".

    Shown by elections_kraft.txt.

    Versions: KRaft, from 2.8; ELR from 4.0-IV1; recovering from 3.2-IV0.
    Followed: election_zookeeper: here the present leader stays if it may. Gave way to: nothing.
    Leaves unchanged: the logs. Without ELR the ISR never becomes empty: the last member stays with
    no leader.
    Unknown: whether 4.0.1 has KAFKA-19522: 4.0.0 elects a last known leader that is fenced.
    """

    def valid(replica: int) -> bool:
        return replica in active and (replica in isr or (not isr and replica in eligible))

    ordered_isr = tuple(r for r in assigned_replicas if r in isr)
    if cause == "preferred" and assigned_replicas and valid(assigned_replicas[0]):
        chosen = assigned_replicas[0]
        if chosen != leader:
            return Election(chosen, ordered_isr or (chosen,), "preferred")
    if leader is not None and valid(leader):
        return Election(leader, ordered_isr or (leader,), None)
    for replica in assigned_replicas:
        if valid(replica):
            kind = "clean" if replica in isr else "eligible_leader_replica"
            return Election(replica, ordered_isr or (replica,), kind)
    recovers = behaviour.has("unclean_leader_is_recovering")
    if (
        behaviour.eligible_leader_replicas
        and not isr
        and not eligible
        and last_known_leader is not None
        and (last_known_leader in active or not behaviour.has("last_known_leader_must_be_active"))
    ):
        return Election(last_known_leader, (last_known_leader,), "last_known_leader", recovers)
    if cause == "unclean":
        for replica in assigned_replicas:
            if replica in active:
                return Election(replica, (replica,), "unclean", recovers)
    return Election(None, ordered_isr, None)


def raises_leader_epoch(
    *,
    leader_changed: bool,
    isr_shrank: bool,
    behaviour: Behaviour,
    replica_removed: bool = False,
    unclean: bool = False,
) -> bool:
    """Whether a KRaft registration change raises the leader epoch, not just the partition epoch.

    An ISR shrink does so below metadata version 3.6-IV0, an unclean recovery always.
    """
    if leader_changed or replica_removed or unclean:
        return True
    return isr_shrank and not behaviour.has("isr_shrink_keeps_leader_epoch")
