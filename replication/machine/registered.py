"""The partition's registration, as leaders ask for it and as it is recorded.

A leader with ZooKeeper writes it itself; else registration.py does, for the controller.
"""

from dataclasses import replace

from replication.machine.machine_state import Broker, Impossible, World
from replication.protocol.ground import events as ev
from replication.protocol.rules.isr_commit import (
    IsrProposal,
    Registered,
    request_version,
)

COVERED = ("controller_history", "broker_log", "acknowledgements", "consumptions", "payloads")


def proposal_of(leader: Broker, isr: frozenset[int]) -> IsrProposal:
    """A leader's proposal as the controller receives it."""
    epochs = (leader.leader_epoch or 0, leader.partition_epoch or 0)
    return IsrProposal(leader.replica, *epochs, isr, version=request_version(leader.behaviour))


def registered(world: World, leader: Broker) -> Registered:
    """The registration as a proposal is held against it.

    A proposal names the broker epochs that its leader saw in fetches (KIP-903): a broker that has
    registered anew since may have lost what it had then.
    """
    c = world.controller
    restarted = {
        r
        for r, f in leader.followers.items()
        if f.broker_epoch not in (None, world.broker(r).broker_epoch)
    }
    return Registered(
        c.leader,
        c.leader_epoch,
        c.partition_epoch,
        frozenset(world.assigned_replicas),
        c.recovering,
        frozenset(world.assigned_replicas) - frozenset(c.active),
        frozenset(restarted),
    )


def record_isr(
    world: World, leader: Broker, isr: frozenset[int], *, recovering: bool = False
) -> None:
    """The controller has committed a leader's ISR without raising the leader epoch."""
    c = world.controller
    c.isr = tuple(r for r in world.assigned_replicas if r in isr)
    c.partition_epoch += 1
    c.recovering = recovering
    leader.isr = isr
    leader.proposed = None
    leader.partition_epoch = c.partition_epoch
    world.emit(leadership_fact(world, None))
    remember_registration(world)


def remember_registration(world: World) -> None:
    """Keeps the registration as it is now: a notification of it may come late."""
    c = world.controller
    world.registrations.append(replace(c, active=set(c.active)))


def leadership_fact(world: World, kind: str | None) -> ev.LeadershipRecorded:
    """The present registration as a fact."""
    c = world.controller
    last_known = None if c.last_known_leader is None else (c.last_known_leader,)
    return ev.LeadershipRecorded(
        c.leader,
        c.leader_epoch,
        c.isr,
        c.partition_epoch,
        kind,
        world.assigned_replicas,
        tuple(sorted(c.eligible)) or None,
        last_known,
        c.recovering or None,
    )


def leading_broker(world: World) -> Broker:
    """The registered leader, once it leads; Impossible otherwise."""
    leader = world.controller.leader
    if leader is None:
        raise Impossible("the partition has no leader")
    broker = world.broker(leader)
    if broker.role != "leader":
        raise Impossible(f"{world.name(leader)} does not lead yet")
    return broker


def describe(world: World) -> None:
    """Says what the partition is, what is observed of it, and which broker leads it first."""
    world.emit(
        ev.PartitionDescribed(
            world.assigned_replicas,
            world.min_insync_replicas,
            world.unclean_leader_election,
            world.cleanup_policy,
            world.behaviour.kafka_version,
            world.behaviour.inter_broker_version,
            world.behaviour.controller,
        )
    )
    for subject in COVERED:
        world.emit(ev.CoverageDeclared(subject, None, True))
    for replica in world.brokers:
        world.emit(ev.CoverageDeclared("replica_trace", replica, True))
    world.emit(leadership_fact(world, None if world.controller.leader is None else "initial"))
    remember_registration(world)
