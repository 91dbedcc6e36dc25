"""How a registration changes, and how brokers hear of it.

One change calls for the next: a leader that hears of it proposes an ISR, the controller answers, a
reassignment completes. So all of it is in one file.
"""

from collections.abc import Iterable

from replication.machine.follower import follow, truncate_in_rounds
from replication.machine.leader import after_isr_commit, lead
from replication.machine.machine_state import (
    Broker,
    Impossible,
    World,
)
from replication.machine.registered import (
    leadership_fact,
    proposal_of,
    record_isr,
    registered,
    remember_registration,
)
from replication.machine.replica import forget_replica, stop_replica
from replication.protocol.ground import events as ev
from replication.protocol.rules.controller_fencing import controller_fencing
from replication.protocol.rules.election_kraft import election_kraft, raises_leader_epoch
from replication.protocol.rules.election_zookeeper import (
    Election,
    election_zookeeper,
)
from replication.protocol.rules.eligible_leader_replicas import eligible_leader_replicas
from replication.protocol.rules.isr_commit import (
    isr_commit,
    keeps_pending,
)
from replication.protocol.rules.produce_admission import effective_min_insync_replicas
from replication.protocol.rules.reassignment import Assignment, reassignment
from replication.protocol.rules.topic_identity import topic_identity


def notify(world: World, replicas: Iterable[int], late: int = 0) -> None:
    """Brokers learn the registration: the leader first, then its followers.

    late: so many changes ago it was as they hear it now. A notification may be overtaken, and
    a broker that reads the metadata log lags behind its end.
    """
    c = world.controller
    if late:
        if late >= len(world.registrations):
            raise Impossible(f"there were only {len(world.registrations) - 1} changes")
        c = world.registrations[-1 - late]
    hearing = [world.broker(r) for r in replicas]
    hearing.sort(key=lambda b: b.replica != c.leader)
    for broker in hearing:
        if not broker.running or broker.isolated:
            continue
        _is_of_this_topic(world, broker)
        answer = controller_fencing(
            c.controller_epoch,
            broker.controller_epoch,
            c.leader_epoch,
            broker.leader_epoch,
            c.partition_epoch,
            broker.partition_epoch or 0,
        )
        broker.controller_epoch = max(broker.controller_epoch, c.controller_epoch)
        if answer != "apply":
            if late or answer != "repeated":
                world.note(f"{world.name(broker.replica)} ignores the notification: {answer}")
            continue
        if broker.replica == c.leader:
            lead(world, broker, c)
        else:
            follow(world, broker, c)
    for broker in hearing:
        if broker.truncating:
            truncate_in_rounds(world, broker)
    settle(world)


def _is_of_this_topic(world: World, broker: Broker) -> None:
    """A broker holds its directory's topic id against the registered one (KIP-516)."""
    if topic_identity(broker.topic_id, world.topic_id) == "different":
        forget_replica(broker)
        world.note(
            f"{world.name(broker.replica)} sets its log aside: "
            "its topic id is of an earlier incarnation"
        )
        world.emit(ev.ReplicaStarted(broker.replica, 0, 0, 0, True))
    broker.topic_id = broker.topic_id or world.topic_id


def settle(world: World) -> None:
    """Unless told to wait, the controller answers ISR proposals as they come."""
    if world.isr_changes_wait:
        return
    for leader in list(world.brokers.values()):
        if leader.proposed is None or leader.isolated or leader.role != "leader":
            continue
        if leader.replica != world.controller.leader:
            continue
        decide(world, leader, None)


def decide(world: World, leader: Broker, error: str | None) -> None:
    proposed = leader.proposed
    if proposed is None:
        return
    answer = error or isr_commit(
        proposal_of(leader, proposed), registered(world, leader), world.behaviour
    )
    if answer is not None:
        world.note(f"the controller refuses the ISR of {world.name(leader.replica)}: {answer}")
        if not keeps_pending(answer):
            leader.proposed = None
        return
    commit_isr(world, leader, proposed)
    if leader.role == "leader":
        after_isr_commit(world, leader)


def commit_isr(
    world: World, leader: Broker, proposed: frozenset[int], recovering: bool = False
) -> None:
    c = world.controller
    shrank = not proposed >= leader.isr
    if world.behaviour.controller == "kraft":
        if go_on_reassigning(world, isr=proposed):
            c.recovering = recovering
            return
        remember_eligible(world, frozenset(c.isr), proposed)
        if raises_leader_epoch(leader_changed=False, isr_shrank=shrank, behaviour=world.behaviour):
            isr = tuple(r for r in world.assigned_replicas if r in proposed)
            c.recovering = recovering
            register(world, Election(c.leader, isr, "same_leader"), c.leader_epoch + 1, None)
            return
    record_isr(world, leader, proposed, recovering=recovering)
    if world.behaviour.controller != "kraft":
        go_on_reassigning(world)


def go_on_reassigning(
    world: World,
    deliver: Iterable[int] | None = None,
    isr: frozenset[int] | None = None,
    *,
    resumed: bool = False,
) -> bool:
    """Old and new replicas together, until the reassignment is complete.

    isr: as it is to be, by default as it is. resumed: a ZooKeeper controller begins it again when a
    broker of the target comes back. Returns whether anything was registered.
    """
    c = world.controller
    kraft = world.behaviour.controller == "kraft"
    if world.reassigned_to is None or (c.leader is None and not kraft):
        return False
    members = frozenset(c.isr) if isr is None else isr
    then = reassignment(
        world.assigned_replicas,
        world.reassigned_to,
        members,
        c.leader,
        world.behaviour,
        world.reassigned_from,
    )
    if not then.complete and then.replicas == world.assigned_replicas and not resumed:
        return False
    left = frozenset(world.assigned_replicas) - frozenset(then.replicas)
    if then.complete:
        world.reassigned_to = world.reassigned_from = None
    if kraft:
        before, world.assigned_replicas = world.assigned_replicas, then.replicas
        members -= left
        kraft_change(
            world,
            members,
            eligible_after(world, members),
            "online",
            deliver=deliver,
            replicas_before=before,
        )
    elif then.complete:
        _complete_with_zookeeper(world, then, left, deliver)
    else:
        world.assigned_replicas = then.replicas
        register(world, Election(c.leader, c.isr, "same_leader"), c.leader_epoch + 1, deliver)
    for replica in sorted(left):
        stop_replica(world, world.broker(replica))
    return True


def _complete_with_zookeeper(
    world: World, then: Assignment, left: frozenset[int], deliver: Iterable[int] | None
) -> None:
    """The leader epoch rises for the new replicas, and again for each that leaves the ISR."""
    c = world.controller
    election: Election | None = Election(c.leader, c.isr, "same_leader")
    if then.needs_election or c.leader not in c.active:
        election = election_zookeeper(
            "reassignment",
            world.assigned_replicas,
            frozenset(c.isr),
            frozenset(c.active),
            world.unclean_leader_election,
            leader=c.leader,
            target_replicas=then.replicas,
        )
    leaving = sorted(left & frozenset(c.isr))
    if not leaving:
        world.assigned_replicas = then.replicas
    if election is not None:
        chosen = Election(election.leader, c.isr, election.kind)
        register(world, chosen, c.leader_epoch + 1, deliver)
    world.assigned_replicas = then.replicas
    for replica in leaving:
        isr = tuple(r for r in c.isr if r != replica)
        register(world, Election(c.leader, isr, "same_leader"), c.leader_epoch + 1, deliver)


def _min_insync(world: World) -> int:
    return effective_min_insync_replicas(
        world.min_insync_replicas, len(world.assigned_replicas), world.behaviour
    )


def eligible_after(world: World, isr: frozenset[int]) -> frozenset[int]:
    """The ELR that goes with a smaller ISR, before anyone is elected."""
    c = world.controller
    if not world.behaviour.eligible_leader_replicas:
        return frozenset()
    return eligible_leader_replicas(frozenset(c.isr), isr, c.eligible, _min_insync(world)).replicas


def remember_eligible(
    world: World,
    old_isr: frozenset[int],
    new_isr: frozenset[int],
    *,
    new_leader: int | None = None,
    unclean: frozenset[int] = frozenset(),
) -> None:
    c = world.controller
    if not world.behaviour.eligible_leader_replicas:
        return
    known = eligible_leader_replicas(
        old_isr,
        new_isr,
        c.eligible,
        _min_insync(world),
        unclean_shutdown=unclean,
        old_leader=c.leader,
        new_leader=new_leader,
        last_known_leader=c.last_known_leader,
    )
    c.eligible, c.last_known_leader = known.replicas, known.last_known_leader


def kraft_change(
    world: World,
    isr: frozenset[int],
    eligible: frozenset[int],
    cause: str,
    *,
    unclean: frozenset[int] = frozenset(),
    deliver: Iterable[int] | None = None,
    replicas_before: tuple[int, ...] = (),
) -> None:
    """One registration change in KRaft: elects, remembers the ELR, raises what must rise.

    replicas_before: the replica set, where this change alters it.
    """
    c = world.controller
    election = election_kraft(
        cause,
        world.assigned_replicas,
        isr,
        frozenset(c.active) - unclean,
        world.behaviour,
        leader=c.leader,
        eligible=eligible,
        last_known_leader=c.last_known_leader,
    )
    old, new = frozenset(c.isr), frozenset(election.isr)
    changed = election.kind is not None or election.leader != c.leader
    unclean_election = election.kind in ev.UNCLEAN_KINDS
    raised = raises_leader_epoch(
        leader_changed=changed,
        isr_shrank=not new >= old,
        behaviour=world.behaviour,
        replica_removed=not set(replicas_before) <= set(world.assigned_replicas),
        unclean=unclean_election,
    )
    before = (c.isr, c.eligible, c.last_known_leader)
    remember_eligible(world, old, new, new_leader=election.leader, unclean=unclean)
    if unclean_election:
        c.eligible, c.last_known_leader = frozenset(), None
    same_replicas = replicas_before in ((), world.assigned_replicas)
    after = (election.isr, c.eligible, c.last_known_leader)
    if not raised and same_replicas and before == after:
        return
    if not changed and raised:
        kind: str | None = "same_leader"
    else:
        kind = election.kind if raised else None
    final = Election(election.leader, election.isr, kind, election.recovering)
    register(world, final, c.leader_epoch + int(raised), deliver)


def register(
    world: World, election: Election, leader_epoch: int, deliver: Iterable[int] | None
) -> None:
    c = world.controller
    changed = election.leader != c.leader
    order = world.assigned_replicas
    isr = sorted(election.isr, key=lambda r: order.index(r) if r in order else len(order))
    c.leader, c.isr, c.leader_epoch = election.leader, tuple(isr), leader_epoch
    c.recovering = c.recovering or election.recovering
    c.partition_epoch += 1
    world.emit(leadership_fact(world, election.kind))
    remember_registration(world)
    if changed and election.leader is None:
        world.note("the partition is offline")
    elif changed and not world.command.startswith("elect "):
        name = world.name(election.leader)
        world.note(f"{name} is elected ({election.kind}), leader epoch {leader_epoch}")
    notify(world, world.assigned_replicas if deliver is None else deliver)
