"""Whether the controller accepts an ISR that a leader proposes, and what counts meanwhile."""

from dataclasses import dataclass

from replication.protocol.ground.versions import Behaviour


@dataclass(frozen=True, slots=True)
class IsrProposal:
    """A leader's AlterPartition request. isr includes the leader."""

    sender: int
    leader_epoch: int
    partition_epoch: int
    isr: frozenset[int]
    recovering: bool = False


@dataclass(frozen=True, slots=True)
class Registered:
    """The partition as the controller has it, and which brokers may be in an ISR now."""

    leader: int | None
    leader_epoch: int
    partition_epoch: int
    assigned_replicas: frozenset[int]
    recovering: bool
    ineligible: frozenset[int] = frozenset()


def isr_commit(proposal: IsrProposal, registered: Registered, behaviour: Behaviour) -> str | None:
    """Decides the error of a proposal, None when the controller commits it.

    Shown by s13_isr_shrink.txt.

    Versions: up to 2.7-IV1 a conditional write on ZooKeeper's version, which fails only with
    INVALID_UPDATE_VERSION; from 2.7-IV2 AlterPartition (KIP-497) with these checks in this order;
    the recovering ones from 3.2-IV0 (KIP-704), ineligible members from 3.3-IV3 (KIP-841).
    Followed: the conditional write. Gave way to: nothing.
    Leaves unchanged: the leader, and the leader epoch except by election_kraft's shrink rule.
    Unknown: the order of checks before 3.3.
    """
    if not behaviour.has("maximal_isr"):
        stale = proposal.partition_epoch != registered.partition_epoch
        return "INVALID_UPDATE_VERSION" if stale else None
    if (
        proposal.leader_epoch > registered.leader_epoch
        or proposal.partition_epoch > registered.partition_epoch
    ):
        return "NOT_CONTROLLER"
    if proposal.leader_epoch < registered.leader_epoch:
        return "FENCED_LEADER_EPOCH"
    if proposal.sender != registered.leader:
        return "INVALID_REQUEST"
    if proposal.partition_epoch < registered.partition_epoch:
        return "INVALID_UPDATE_VERSION"
    if (
        not proposal.isr <= registered.assigned_replicas
        or registered.leader not in proposal.isr
        or (proposal.recovering and len(proposal.isr) > 1)
        or (proposal.recovering and not registered.recovering)
    ):
        return "INVALID_REQUEST"
    if proposal.isr & registered.ineligible and behaviour.has("isr_needs_unfenced_broker"):
        return "INELIGIBLE_REPLICA"
    return None


def maximal_isr(isr: frozenset[int], proposed: frozenset[int] | None) -> frozenset[int]:
    """The set a high watermark waits for while a change is in flight: old and new together.

    A proposed member counts at once and a proposed removal not before it is committed: whichever
    way the controller decides, every candidate holds what was committed (KIP-497).
    """
    return isr if proposed is None else isr | proposed


def keeps_pending(error: str) -> bool:
    """Whether a leader keeps counting the larger set after this error, until metadata arrives."""
    return error not in ("INELIGIBLE_REPLICA", "OPERATION_NOT_ATTEMPTED")
