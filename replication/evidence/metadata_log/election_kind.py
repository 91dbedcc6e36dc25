"""How a leader came to lead: one answer for the metadata log, ZooKeeper's states and log lines."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Before:
    """The partition's state just before an election. elr, last_known_elr: empty without KIP-966.
    adding: what a reassignment adds, where that is told."""

    leader: int | None
    isr: Sequence[int]
    elr: Sequence[int] = ()
    last_known_elr: Sequence[int] = ()
    adding: Sequence[int] = ()


def election_kind(
    leader: int,
    before: Before,
    *,
    isr: Sequence[int] = (),
    marked_unclean: bool = False,
    is_preferred: bool = False,
    unclean_allowed: bool = False,
    adding: Sequence[int] = (),
) -> str:
    """clean, preferred, unclean, eligible_leader_replica, last_known_leader or same_leader.

    isr: as the election's own record makes it. marked_unclean: that record or line says so.
    is_preferred: the head of the assignment took over from a leader that could have gone on
    leading. unclean_allowed: by settings that are known. adding: what is still to be added then.

    A record says it only in part: RECOVERING is written when it changes, so a second unclean
    election in a row carries no mark. What decides is where the leader came from. A member of the
    old ISR is a clean election; of the old ELR, with no mark just set, an election from the ELR: of
    an ISR that still had members they all went in this very record
    (PartitionChangeBuilder.isValidNewLeader asks the ISR as it will be, and its ELR members come
    before any unclean choice). The controller then tries the last known leader, without asking
    whether unclean elections are allowed (PartitionChangeBuilder.electAnyLeader; only with ELR on,
    ISR and ELR empty and one member in lastKnownElr). The rest is unclean, but where the ISR has
    others beside the leader: then the old leader's word took it in, and the same record ended a
    reassignment (PartitionReassignmentReplicas.maybeCompleteReassignment). A leader that is
    elected uncleanly is alone in the ISR. So may be one whom a reassignment added: it ends only
    with all that it adds in the ISR, which then elects.
    """
    if leader == before.leader:
        return "same_leader"
    if leader in before.isr and not marked_unclean:
        return "preferred" if is_preferred else "clean"
    if leader in before.elr and not marked_unclean:
        return "eligible_leader_replica"
    added = leader in before.adding and leader not in adding
    if (len(isr) > 1 or added) and leader in isr and not marked_unclean:
        return "preferred" if is_preferred else "clean"
    # An ELR that still had members lost them in this very record.
    elr_is_empty = not before.elr or not unclean_allowed
    if tuple(before.last_known_elr) == (leader,) and not before.isr and elr_is_empty:
        return "last_known_leader"
    return "unclean"
