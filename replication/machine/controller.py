"""What the controller does by itself or is told to: elect, fence, drain, reassign, recreate.

Commands raise Impossible, with a reason for people, when they cannot happen. What a change of the
registration brings about is registration's.
"""

from collections.abc import Iterable

from replication.machine.leader import after_isr_commit
from replication.machine.machine_state import (
    Controller,
    Impossible,
    World,
)
from replication.machine.registered import describe, registered
from replication.machine.registration import (
    commit_isr,
    decide,
    eligible_after,
    go_on_reassigning,
    kraft_change,
    notify,
    register,
    remember_eligible,
)
from replication.machine.replica import forget_replica
from replication.protocol.ground import events as ev
from replication.protocol.ground.versions import Behaviour
from replication.protocol.rules.election_zookeeper import (
    Election,
    election_zookeeper,
    isr_without_dead_broker,
)
from replication.protocol.rules.isr_commit import (
    IsrProposal,
    isr_commit,
    request_version,
)
from replication.protocol.rules.preferred_leader_imbalance import preferred_leader_imbalance


def elect(
    world: World,
    leader: int,
    *,
    leader_epoch: int | None = None,
    isr: Iterable[int] | None = None,
    deliver: Iterable[int] | None = None,
) -> None:
    """The controller registers this leader, whatever its rule would say, and tells brokers.

    isr: by default the present ISR's live members and the leader. deliver: who hears of it,
    by default every broker that runs and is not cut off.
    """
    c = world.controller
    broker = world.broker(leader)
    if not broker.running:
        raise Impossible(f"{world.name(leader)} is stopped")
    new_epoch = c.leader_epoch + 1 if leader_epoch is None else leader_epoch
    if new_epoch <= c.leader_epoch:
        raise Impossible(f"leader epoch {new_epoch} is not above {c.leader_epoch}")
    kind = "clean" if leader in c.isr else "unclean"
    if leader in c.eligible and kind == "unclean":
        kind = "eligible_leader_replica"
    if leader == c.leader:
        kind = "same_leader"
    members = [r for r in c.isr if r in c.active] if isr is None else list(isr)
    chosen = tuple(r for r in world.assigned_replicas if r in {*members, leader})
    c.active.add(leader)
    recovers = kind == "unclean" and world.behaviour.has("unclean_leader_is_recovering")
    remember_eligible(world, frozenset(c.isr), frozenset(chosen), new_leader=leader)
    if kind == "unclean":
        c.eligible = frozenset()
    register(world, Election(leader, chosen, kind, recovers), new_epoch, deliver)


def elect_by_rule(world: World, cause: str = "offline") -> None:
    """The controller elects by its own rule. cause: offline, preferred or unclean."""
    c = world.controller
    unclean = world.unclean_leader_election or cause == "unclean"
    if world.behaviour.controller == "kraft":
        how = "unclean" if unclean and cause != "preferred" else cause
        kraft_change(world, frozenset(c.isr), c.eligible, how)
        return
    recovers = world.behaviour.has("unclean_leader_is_recovering")
    election = election_zookeeper(
        "preferred" if cause == "preferred" else "offline",
        world.assigned_replicas,
        frozenset(c.isr),
        frozenset(c.active),
        unclean,
        leader=c.leader,
        recovers=recovers,
    )
    if election is not None and (election.leader, election.isr) != (c.leader, c.isr):
        register(world, election, c.leader_epoch + 1, None)


def fence(world: World, replica: int) -> None:
    """The controller counts a broker as dead: new leader, smaller ISR, by its rules."""
    c = world.controller
    c.active.discard(replica)
    isr = frozenset(c.isr)
    if world.behaviour.controller == "kraft":
        keeps = not world.behaviour.eligible_leader_replicas and isr == {replica}
        left = isr if keeps else isr - {replica}
        unclean = world.unclean_leader_election
        kraft_change(world, left, eligible_after(world, left), "unclean" if unclean else "online")
        return
    if c.leader == replica:
        elect_by_rule(world, "offline")
        return
    always = world.behaviour.has("last_isr_member_always_kept")
    left_isr = isr_without_dead_broker(
        c.isr, replica, world.unclean_leader_election, always_kept=always
    )
    if left_isr != c.isr:
        kind = "same_leader" if c.leader is not None else None
        register(world, Election(c.leader, left_isr, kind), c.leader_epoch + 1, None)


def unfence(world: World, replica: int) -> None:
    """The controller counts a broker as alive; a partition without a leader gets one."""
    c = world.controller
    c.active.add(replica)
    if c.leader is None:
        elect_by_rule(world, "offline")
    if world.behaviour.controller != "kraft" and replica in (world.reassigned_to or ()):
        go_on_reassigning(world, resumed=True)


def drain(world: World, replica: int) -> None:
    """A broker asks for its controlled shutdown: what it leads moves, and it leaves the ISR."""
    c = world.controller
    if world.behaviour.controller == "kraft" or c.leader != replica:
        fence(world, replica)
        return
    election = election_zookeeper(
        "controlled_shutdown",
        world.assigned_replicas,
        frozenset(c.isr),
        frozenset(c.active),
        world.unclean_leader_election,
        leader=c.leader,
        stopping=frozenset({replica}),
    )
    if election is None:
        world.note(f"{world.name(replica)} goes on leading: nobody else is in the ISR")
        return
    c.active.discard(replica)
    register(world, election, c.leader_epoch + 1, None)


def depose(world: World) -> None:
    """Another broker becomes the controller; brokers hear from it, and only from it, now on."""
    world.controller.controller_epoch += 1
    for broker in world.brokers.values():
        if broker.running and not broker.isolated:
            broker.controller_epoch = world.controller.controller_epoch


def rebalance(world: World, percentage: int = 10) -> None:
    """The controller's check of leader imbalance, for the head of this assignment."""
    name = "partition"
    preferred = world.assigned_replicas[0]
    leaders, assignments = {name: world.controller.leader}, {name: world.assigned_replicas}
    if preferred_leader_imbalance(leaders, assignments, preferred, percentage):
        elect_by_rule(world, "preferred")


def recreate(world: World) -> None:
    """The topic is deleted and created again under its name: another id, nothing in it.

    With ZooKeeper the deletion waits for every replica; KRaft goes ahead, and brokers that are
    away keep a directory with the old id.
    """
    c = world.controller
    hearing = [
        b for r in world.assigned_replicas if (b := world.broker(r)).running and not b.isolated
    ]
    if len(hearing) < len(world.assigned_replicas) and world.behaviour.controller != "kraft":
        raise Impossible("the deletion of a topic waits for its stopped replicas")
    if not hearing:
        raise Impossible("no broker is there to create the topic on")
    for broker in hearing:
        forget_replica(broker)
    if world.topic_id:
        world.topic_id = str(int(world.topic_id) + 1)
    world.first_step = len(world.steps)
    isr = tuple(b.replica for b in hearing)
    world.controller = Controller(
        isr[0], 0, 0, isr, active=set(isr), controller_epoch=c.controller_epoch
    )
    world.requests.clear()
    world.reassigned_to = world.reassigned_from = None
    world.registrations.clear()
    describe(world)
    for broker in hearing:
        world.emit(ev.ReplicaStarted(broker.replica, 0, 0, 0, True))
    notify(world, isr)


def reassign(world: World, target: Iterable[int], deliver: Iterable[int] | None = None) -> None:
    """The controller is told to move the partition to these replicas, in this order.

    deliver: who hears of it, by default every replica that runs and is not cut off.
    """
    world.reassigned_from = world.reassigned_from or world.assigned_replicas
    world.reassigned_to = tuple(target)
    go_on_reassigning(world, deliver)


def decide_isr(world: World, error: str | None = None) -> None:
    """The controller answers the proposal in flight; error: instead of what it would say."""
    leaders = [b for b in world.brokers.values() if b.proposed is not None and b.running]
    if not leaders:
        raise Impossible("no ISR change is in flight")
    for leader in leaders:
        decide(world, leader, error)


def ask_for_isr(
    world: World,
    replica: int,
    isr: Iterable[int],
    *,
    leader_epoch: int | None = None,
    partition_epoch: int | None = None,
    recovering: bool = False,
) -> None:
    """A broker's request for an ISR as it is (AlterPartition, or a conditional write).

    The epochs are those that the broker knows, unless said.
    """
    broker = world.broker(replica)
    if broker.role != "leader" and not broker.behaviour.has("maximal_isr"):
        raise Impossible(f"{world.name(replica)} does not lead: it writes no ISR")
    proposal = IsrProposal(
        replica,
        (broker.leader_epoch or 0) if leader_epoch is None else leader_epoch,
        (broker.partition_epoch or 0) if partition_epoch is None else partition_epoch,
        frozenset(isr),
        recovering,
        request_version(broker.behaviour),
    )
    decides = world.behaviour if broker.behaviour.has("maximal_isr") else broker.behaviour
    answer = isr_commit(proposal, registered(world, broker), decides)
    if answer is not None:
        world.note(f"the controller refuses the ISR of {world.name(replica)}: {answer}")
        return
    commit_isr(world, broker, proposal.isr, recovering)
    if broker.role == "leader":
        after_isr_commit(world, broker)


def upgrade_controller(world: World, behaviour: Behaviour) -> None:
    """The controller gets another release, or the cluster another metadata version."""
    world.behaviour = behaviour


def after_unclean_registration(world: World, replica: int) -> None:
    """A broker that lost its clean-shutdown mark leaves ISR and ELR; its leaderships move."""
    c = world.controller
    if replica not in c.isr and replica not in c.eligible:
        return
    gone = frozenset({replica})
    left = frozenset(c.isr) - gone
    eligible = eligible_after(world, left) - gone
    cause = "unclean" if world.unclean_leader_election else "online"
    kraft_change(world, left, eligible, cause, unclean=gone)
