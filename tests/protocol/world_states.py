"""States of a small world, and every command that can happen next in one.

A state is what every broker and the controller know, what was promised so far, and what is left to
spend. States that differ only in the names of replicas or records are one. Time stands still.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from replication.machine.machine_state import Broker, World
from replication.machine.partition_machine import Given, PartitionMachine
from replication.machine.scenario_text import parse_command
from replication.machine.states import (
    Logs,
    Record,
    copied,
    identity,
    logs_of,
    number,
    valid_leader,
)
from replication.protocol.ground.events import RecordsAcknowledged
from replication.protocol.ground.versions import behaviour, with_remedy
from tests.protocol.stories import NAMES, begun

# Does commands on whichever machine it is given.
TELLER = begun("given isr=A,B,C kafka=2.8.1")


@dataclass(frozen=True)
class Limits:
    """How large a world is, and what may happen in it.

    shrinks: members that a leader may drop from its ISR. lossy: a stop may lose the log's end.
    by_rule: only the controller's own rules elect, else any member of the ISR may be elected.
    lost_responses: whether an answer to a fetch may be lost. controller: "" for what controller_of
    says. remedy: one that no release holds. most_states: what is explored at most; the outcome says
    whether that was all.
    """

    name: str
    replicas: int = 2
    records: int = 2
    elections: int = 2
    stops: int = 1
    shrinks: int = 0
    deletions: int = 0
    unclean: bool = False
    lossy: bool = False
    by_rule: bool = False
    min_insync: int = 1
    lost_responses: bool = True
    controller: str = ""
    remedy: str = ""
    most_states: int = 40_000


class Left(NamedTuple):
    """What is left to spend."""

    records: int
    elections: int
    stops: int
    shrinks: int
    deletions: int


@dataclass(frozen=True, slots=True)
class Node:
    """A state. logs: offset -> (leader epoch, content) by replica. committed, acknowledged and
    read: the records promised so far."""

    machine: PartitionMachine
    logs: Logs
    committed: frozenset[Record]
    acknowledged: frozenset[Record]
    read: frozenset[Record]
    left: Left

    @property
    def has_eligible_replicas(self) -> bool:
        """Whether the controller keeps eligible leader replicas."""
        return self.machine.world.behaviour.eligible_leader_replicas


def start(version: str, limits: Limits) -> Node:
    """The first state: empty logs, A leads epoch 0, all are in the ISR."""
    rows = [Given(n + 1, (), 0, 0, 0, n == 0) for n in range(limits.replicas)]
    lives_by = behaviour(version, controller=limits.controller or controller_of(version))
    machine = PartitionMachine(
        with_remedy(lives_by, limits.remedy) if limits.remedy else lives_by,
        rows,
        [r.replica for r in rows],
        min_insync_replicas=limits.min_insync,
        unclean_leader_election=limits.unclean,
        names={n + 1: NAMES[n] for n in range(limits.replicas)},
    )
    left = Left(limits.records, limits.elections, limits.stops, limits.shrinks, limits.deletions)
    nothing: frozenset[Record] = frozenset()
    return Node(machine, logs_of(machine.world), nothing, nothing, nothing, left)


def controller_of(version: str) -> str:
    """KRaft from 3.7 on."""
    return "kraft" if tuple(int(n) for n in version.split(".")) >= (3, 7) else "zookeeper"


def key(node: Node) -> bytes:
    """A state's identity, by what is promised and what is left to spend besides."""
    promised = (node.committed, node.acknowledged, node.read)
    return identity(node.machine.world, node.logs, promised, tuple(node.left))


def commands(node: Node, limits: Limits) -> Iterator[str]:
    """Every command that can happen next, as scenario text."""
    world, c, left = node.machine.world, node.machine.world.controller, node.left
    for b in world.brokers.values():
        name = world.name(b.replica)
        if b.role == "leader" and left.records:
            yield f"produce {name} r{len(world.contents)} acks=all"
        if b.role == "follower" and b.leader is not None and b.fetching:
            yield f"fetch {name}"
            if limits.lost_responses:
                yield f"fetch {name} response=lost"
        if b.running and b.partition_epoch != c.partition_epoch:
            yield f"deliver {name}"
        if not b.running:
            yield f"start {name}"
            if limits.by_rule and left.elections and b.replica in c.active:
                yield f"fence {name}"
        elif left.stops:
            yield from _stops(name, b, limits)
        if left.elections and not limits.by_rule:
            yield from _elections(name, b, world, limits)
    if left.elections and limits.by_rule:
        yield "elect cause=preferred"
    leader = valid_leader(world)
    if leader is not None and left.shrinks:
        for r in sorted(leader.isr - {leader.replica}):
            yield f"isr remove={world.name(r)}"
    if leader is not None and left.deletions and leader.high_watermark:
        yield "delete_records"


def _stops(name: str, b: Broker, limits: Limits) -> Iterator[str]:
    files = [""]
    if b.high_watermark != b.checkpointed_high_watermark:
        files.append(f" checkpoint={b.high_watermark}")
    for file in files:
        yield f"restart {name} kind=process{file}"
        if limits.lossy:
            for end in range(b.log.log_start_offset, b.log.log_end_offset):
                yield f"crash {name} kind=power to={end}{file}"
    yield f"stop {name}"


def _elections(name: str, b: Broker, world: World, limits: Limits) -> Iterator[str]:
    members = world.controller.isr
    if not b.running or not (limits.unclean or b.replica in members):
        return
    others = [world.name(r) for r in members if r != b.replica and world.brokers[r].running]
    isr = ",".join([name, *others])
    yield f"elect {name} isr={isr}"
    yield f"elect {name} isr={isr} deliver={name}"
    if limits.unclean and others:
        yield f"elect {name} isr={name} deliver={name}"


def act(node: Node, line: str) -> Node | None:
    """The state after a command; None where it cannot happen."""
    machine = copied(node.machine)
    before = machine.world.controller.leader_epoch
    TELLER.machine, TELLER.told = machine, []
    said = TELLER.tell(parse_command(line, 1))
    if any(note.startswith("cannot: ") for note in said):
        return None
    left, verb = node.left, line.split()[0]
    elected = machine.world.controller.leader_epoch - before
    return after_step(
        node,
        machine,
        Left(
            left.records - (verb == "produce"),
            max(0, left.elections - elected),
            left.stops - (verb in ("restart", "stop", "crash")),
            left.shrinks - (verb == "isr"),
            left.deletions - (verb == "delete_records"),
        ),
    )


def after_step(node: Node, machine: PartitionMachine, left: Left) -> Node:
    """The state that a machine has reached, with what it has promised by now."""
    world = machine.world
    logs = logs_of(world)
    committed, read = node.committed, node.read
    leader = valid_leader(world)
    if leader is not None:
        below = _below_high_watermark(leader, logs)
        committed, read = committed | below, read | below
        if world.behaviour.has("consumers_may_fetch_from_followers"):
            for r in world.controller.isr:
                if world.brokers[r].role == "follower":
                    read |= _below_high_watermark(world.brokers[r], logs)
    told = frozenset(
        (o, -1 if f.leader_epoch is None else f.leader_epoch, number(f.content))
        for f in (step.fact for step in world.steps)
        if isinstance(f, RecordsAcknowledged)
        for o in range(f.first_offset, f.end_offset)
    )
    return Node(machine, logs, committed, node.acknowledged | told, read, left)


def _below_high_watermark(b: Broker, logs: Logs) -> set[Record]:
    mark = b.high_watermark
    return {(o, e, x) for o, (e, x) in logs[b.replica].items() if o < mark}
