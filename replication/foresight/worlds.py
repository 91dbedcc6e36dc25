"""States of a small world under a topic's settings: what was promised so far, and what is lost."""

from dataclasses import dataclass
from typing import NamedTuple

from replication.foresight.failures import Failure
from replication.foresight.settings import Settings
from replication.machine.machine_state import World
from replication.machine.partition_machine import Given, PartitionMachine
from replication.machine.states import Logs, Record, identity, logs_of, number, valid_leader
from replication.protocol.ground.events import RecordsAcknowledged

# Kinds of records, the strongest promise first. An answer at acks=1 is none that Kafka keeps.
ACKS_ALL, READ, COMMITTED, ACKS_1 = "acks_all", "read", "committed", "acks_1"
KINDS = (ACKS_ALL, READ, COMMITTED, ACKS_1)
PROMISED = KINDS[:3]
NOTHING: frozenset[Record] = frozenset()


class Left(NamedTuple):
    """What may still happen in a world."""

    records: int
    lags: int
    crashes: int
    stops: int
    power: int
    together: int
    disks: int
    freezes: int
    forced: int
    deleted: int
    preferred: int

    @property
    def failures_and_stops(self) -> int:
        """How much of the failure may still come; a forced election only follows one."""
        failures = self.crashes + self.power + self.together + self.disks + self.freezes
        return failures + self.deleted + self.stops


@dataclass(frozen=True, slots=True)
class Node:
    """A state. promised: the records of each kind so far, in the order of KINDS. stopped: the
    brokers that were stopped cleanly once, which happens to none twice. slow: those that lag, and
    fetch nothing until another replica leads: what they would get before, they got before they
    lagged in another history."""

    machine: PartitionMachine
    logs: Logs
    promised: tuple[frozenset[Record], ...]
    left: Left
    stopped: frozenset[int] = frozenset()
    slow: frozenset[int] = frozenset()

    @property
    def world(self) -> World:
        """The machine's world."""
        return self.machine.world


def names_of(replicas: int) -> list[str]:
    """What the replicas are called, in the order of the assignment."""
    return [chr(ord("A") + n) for n in range(replicas)]


def start(settings: Settings, failure: Failure, records: int, leader: int) -> Node:
    """The first state: empty logs, this replica leads epoch 0, all are in the ISR.

    Where another one than the preferred replica leads, its leadership may be moved back once, and
    nobody lags.
    """
    names = names_of(settings.replicas)
    rows = [Given(n, (), 0, 0, 0, n == leader) for n in range(1, settings.replicas + 1)]
    machine = PartitionMachine(
        settings.behaviour,
        rows,
        [r.replica for r in rows],
        min_insync_replicas=settings.min_insync_replicas,
        unclean_leader_election=settings.unclean,
        names=dict(enumerate(names, 1)),
    )
    left = Left(
        records,
        failure.lags(settings.replicas) if leader == 1 else 0,
        failure.crashes,
        min(failure.stops, settings.replicas),
        failure.power,
        int(bool(failure.together)),
        failure.disks,
        failure.freezes,
        failure.forced,
        failure.deleted,
        int(leader != 1),
    )
    return Node(machine, logs_of(machine.world), (NOTHING,) * len(KINDS), left)


def after(node: Node, machine: PartitionMachine, left: Left) -> Node:
    """The state that a machine has reached, with what it has promised by now.

    Whatever a leader appended counts as answered at acks=1: the same history with such a producer
    answers it then.
    """
    world = machine.world
    logs = logs_of(world)
    acks_all, read, committed, acks_1 = node.promised
    leader = valid_leader(world)
    for b in world.brokers.values():
        if b.role != "leader" or not b.running:
            continue
        log = logs[b.replica]
        below = frozenset((o, e, x) for o, (e, x) in log.items() if o < b.high_watermark)
        read |= below
        if b is leader:
            committed |= below
        acks_1 |= frozenset((o, e, x) for o, (e, x) in log.items() if e in (-1, b.leader_epoch))
    for step in world.steps:
        fact = step.fact
        if isinstance(fact, RecordsAcknowledged) and fact.acks == "all":
            acks_all |= {
                (o, number(fact.leader_epoch), number(fact.content))
                for o in range(fact.first_offset, fact.end_offset)
            }
    promised = (acks_all, read, committed, acks_1)
    same_leader = world.controller.leader == node.world.controller.leader
    return Node(
        machine, logs, promised, left, node.stopped, node.slow if same_leader else frozenset()
    )


def lost(node: Node) -> list[str]:
    """The kinds of which the leader that the controller names lacks a record."""
    leader = valid_leader(node.world)
    if leader is None:
        return []
    log = node.logs[leader.replica]
    return [
        kind
        for kind, records in zip(KINDS, node.promised, strict=True)
        if any(log.get(o) != (e, x) for o, e, x in records)
    ]


def key(node: Node, undecided: frozenset[str]) -> bytes:
    """A state's identity; of kinds that are decided nothing has to be remembered.

    Replicas keep their names: an election goes by the order of the assignment.
    """
    kept = tuple(
        records if kind in undecided else NOTHING
        for kind, records in zip(KINDS, node.promised, strict=True)
    )
    places = {r: r for r in node.world.brokers}
    left = (tuple(node.left), tuple(sorted(node.stopped)), tuple(sorted(node.slow)))
    return identity(node.world, node.logs, kept, left, places)
