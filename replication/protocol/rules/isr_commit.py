"""Whether the controller accepts an ISR that a leader proposes, and what counts meanwhile."""

from dataclasses import dataclass

from replication.protocol.ground.versions import Behaviour


@dataclass(frozen=True, slots=True)
class IsrProposal:
    """A leader's AlterPartition request. isr includes the leader. version: see request_version."""

    sender: int
    leader_epoch: int
    partition_epoch: int
    isr: frozenset[int]
    recovering: bool = False
    version: int = 3


@dataclass(frozen=True, slots=True)
class Registered:
    """The partition as the controller has it, and which brokers may be in an ISR now.

    ineligible: fenced, stopping or dead. restarted: brokers that have registered anew since the
    sender heard from them.
    """

    leader: int | None
    leader_epoch: int
    partition_epoch: int
    assigned_replicas: frozenset[int]
    recovering: bool
    ineligible: frozenset[int] = frozenset()
    restarted: frozenset[int] = frozenset()


def isr_commit(proposal: IsrProposal, registered: Registered, behaviour: Behaviour) -> str | None:
    """Decides the error of a proposal, None when the controller commits it.

    behaviour: the controller's; the leader's release shows in the request's version.

    Shown by s13_isr_shrink.txt, isr_proposals.txt and isr_requests_of_older_leaders.txt.

    Versions: up to 2.7-IV1 a conditional write on ZooKeeper's version, which fails only with
    INVALID_UPDATE_VERSION; from 2.7-IV2 AlterPartition (KIP-497) with these checks in this order;
    the recovering ones from 3.2-IV0 (KIP-704). From 3.3, at any metadata version, ineligible
    members (KIP-841) and NOT_CONTROLLER for epochs ahead of the controller's (KAFKA-14154), which
    before differed like any other. A ZooKeeper controller asks neither for the sender nor whether
    the ISR fits the assignment.
    Followed: the conditional write. Gave way to: nothing.
    Leaves unchanged: the leader, and the leader epoch except by election_kraft's shrink rule.
    Unknown: nothing. (2.8, where KRaft was a preview, asks for the sender before the epochs.)
    """
    if not behaviour.has("maximal_isr"):
        stale = proposal.partition_epoch != registered.partition_epoch
        return "INVALID_UPDATE_VERSION" if stale else None
    ahead = (
        proposal.leader_epoch > registered.leader_epoch
        or proposal.partition_epoch > registered.partition_epoch
    )
    if ahead and behaviour.has("isr_request_ahead_is_not_controller"):
        return "NOT_CONTROLLER"
    kraft = behaviour.controller == "kraft"
    if proposal.leader_epoch < registered.leader_epoch or (
        kraft and proposal.leader_epoch != registered.leader_epoch
    ):
        return "FENCED_LEADER_EPOCH"
    if kraft and proposal.sender != registered.leader:
        return "INVALID_REQUEST"
    if proposal.partition_epoch != registered.partition_epoch:
        return "INVALID_UPDATE_VERSION"
    if kraft and not _fits_assignment(proposal, registered):
        return "INVALID_REQUEST"
    if proposal.recovering and (len(proposal.isr) > 1 or not registered.recovering):
        return "INVALID_REQUEST"
    return _ineligible(proposal, registered, behaviour)


def _fits_assignment(proposal: IsrProposal, registered: Registered) -> bool:
    return proposal.isr <= registered.assigned_replicas and registered.leader in proposal.isr


def _ineligible(proposal: IsrProposal, registered: Registered, behaviour: Behaviour) -> str | None:
    if not behaviour.has("isr_needs_unfenced_broker"):
        return None
    unfit = registered.ineligible
    if behaviour.controller == "kraft" and proposal.version >= 3:
        unfit |= registered.restarted
    if not proposal.isr & unfit:
        return None
    return "INELIGIBLE_REPLICA" if proposal.version >= 2 else "OPERATION_NOT_ATTEMPTED"


def request_version(leader: Behaviour) -> int:
    """The version of AlterPartition that a leader asks with.

    1 says whether it is recovering (3.2), 2 names the topic's id (3.3, where the cluster speaks
    2.8), 3 the broker epoch of every member (3.5).
    """
    if leader.has("ineligible_replica_has_error"):
        return 3 if leader.has("isr_needs_broker_epoch") else 2
    return 1 if leader.has("unclean_leader_is_recovering") else 0


def commit_raises_high_watermark(behaviour: Behaviour) -> bool:
    """Whether a leader asks for its high watermark when its ISR change is committed.

    A write to ZooKeeper is done at once, and it always asked after that. An AlterPartition is
    answered later: before 3.1 (KAFKA-13091) the next append or fetch moved the high watermark.
    """
    waits = behaviour.has("maximal_isr")
    return not waits or behaviour.has("isr_commit_raises_high_watermark")


def maximal_isr(isr: frozenset[int], proposed: frozenset[int] | None) -> frozenset[int]:
    """The set a high watermark waits for while a change is in flight: old and new together.

    A proposed member counts at once and a proposed removal not before it is committed: whichever
    way the controller decides, every candidate holds what was committed (KIP-497).
    """
    return isr if proposed is None else isr | proposed


def keeps_pending(error: str) -> bool:
    """Whether a leader keeps counting the larger set after this error, until metadata arrives."""
    return error not in ("INELIGIBLE_REPLICA", "OPERATION_NOT_ATTEMPTED")
