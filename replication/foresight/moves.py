"""What can happen next in a small world: moves, each one or more commands of the scenario language.

Clients write, followers fetch or lag, the controller notices who is away and elects by its own
rules, brokers come back; and the failure happens, as often as its kind allows.
"""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace

from replication.foresight.failures import Failure
from replication.foresight.settings import Settings
from replication.foresight.worlds import Left, Node, after
from replication.machine.machine_state import Broker, Impossible, World
from replication.machine.partition_machine import PartitionMachine
from replication.machine.states import copied, valid_leader
from replication.protocol.rules.produce_admission import (
    effective_min_insync_replicas,
    produce_admission,
)

Move = tuple[str, ...]
Spent = tuple[Move, str]
"""A move, and which field of Left it takes one from ("" for none)."""


def moves(node: Node, settings: Settings, failure: Failure) -> Iterator[Spent]:
    """Every move that can be tried; some turn out to be impossible."""
    world, left = node.world, node.left
    for b in world.brokers.values():
        name = world.name(b.replica)
        if b.role == "leader" and b.running and left.records:
            yield (_produce(world, b),), "records"
        if b.role == "follower" and b.fetching and b.replica not in node.slow and _asks(world, b):
            yield (f"fetch {name}",), ""
        yield from _controller_and_return(node, b, name)
        if b.running and not b.isolated:
            yield from _failures_of_one(node, b, name, settings, failure)
    yield from _lags(node)
    if left.together:
        yield from _together(node, settings, failure)
    c = world.controller
    if c.leader is None and left.forced:
        yield ("elect cause=unclean",), "forced"
    if left.preferred and c.leader is not None and c.leader != world.assigned_replicas[0]:
        yield ("elect cause=preferred",), "preferred"


def _asks(world: World, follower: Broker) -> bool:
    """Whether its leader answers a follower's fetch."""
    leader = follower.leader
    return leader is not None and world.reachable(follower, world.brokers[leader])


def _produce(world: World, leader: Broker) -> str:
    """acks=all where the leader takes it: it writes what acks=1 writes, and promises more."""
    least = effective_min_insync_replicas(
        world.min_insync_replicas, len(world.assigned_replicas), leader.behaviour
    )
    acks = "1" if produce_admission("all", len(leader.isr), least) else "all"
    return f"produce {world.name(leader.replica)} r{len(world.contents)} acks={acks}"


def _controller_and_return(node: Node, b: Broker, name: str) -> Iterator[Spent]:
    active = b.replica in node.world.controller.active
    if (not b.running or b.isolated) and active:
        yield (f"fence {name}",), ""
    if not b.running:
        # Where all are stopped, nobody starts before.
        if not node.left.stops:
            yield (f"start {name}",), ""
    elif b.isolated:
        back = (f"rejoin {name}",) if active else (f"rejoin {name}", f"unfence {name}")
        yield (*back, f"deliver {name}"), ""


def _failures_of_one(
    node: Node, b: Broker, name: str, settings: Settings, failure: Failure
) -> Iterator[Spent]:
    left = node.left
    if left.crashes:
        for file in _checkpoints(b):
            yield (f"crash {name} kind=process{file}",), "crashes"
        if failure.clean:
            yield (f"drain {name}", f"stop {name}"), "crashes"
    if left.stops and b.replica not in node.stopped:
        yield (f"drain {name}", f"stop {name}"), "stops"
    if left.power:
        for end in _ends(b, settings):
            yield (f"crash {name} kind=power{end}",), "power"
    if left.disks:
        yield (f"crash {name} kind=disk",), "disks"
    if left.freezes:
        yield (f"isolate {name}",), "freezes"
    if left.deleted:
        yield (f"drain {name}", f"stop {name} directory=deleted"), "deleted"


def _checkpoints(b: Broker) -> list[str]:
    """What the file of high watermarks may say: as of old, or as of now."""
    if b.behaviour.truncation != "truncate_to_high_watermark":
        return [""]
    newer = b.high_watermark != b.checkpointed_high_watermark
    return ["", f" checkpoint={b.high_watermark}"] if newer else [""]


def _ends(b: Broker, settings: Settings) -> list[str]:
    """Up to where the disk may keep the log when the power fails."""
    end = b.log.log_end_offset
    if settings.flushed:
        return [f" to={end}"]
    return [f" to={kept}" for kept in range(b.log.log_start_offset, end + 1)]


def _lags(node: Node) -> Iterator[Spent]:
    """A member of the ISR that does not fetch what its leader has: the leader drops it.

    Where it has everything, one more record is written that it does not fetch.
    """
    leader = valid_leader(node.world)
    if leader is None or not node.left.lags or leader.isolated:
        return
    keeps = leader.behaviour.has("log_end_is_in_sync")
    for r in sorted(leader.isr - {leader.replica}):
        known = leader.followers[r].log_end_offset
        drop = f"isr remove={node.world.name(r)}"
        if keeps and known == leader.log.log_end_offset:
            yield (_produce(node.world, leader), drop), "lags"
        else:
            yield (drop,), "lags"


def _together(node: Node, settings: Settings, failure: Failure) -> Iterator[Spent]:
    """All brokers, or those of a rack, lose power at the same moment."""
    running = [b for b in node.world.brokers.values() if b.running and not b.isolated]
    groups = [running]
    if failure.together == "rack":
        racks = sorted(set(settings.racks))
        groups = [[b for b in running if settings.racks[b.replica - 1] == rack] for rack in racks]
    for group in groups:
        names = [node.world.name(b.replica) for b in group]
        for ends in itertools.product(*(_ends(b, settings) for b in group)):
            lines = [f"crash {n} kind=power{end}" for n, end in zip(names, ends, strict=True)]
            if lines:
                yield tuple(lines), "together"


def act(node: Node, move: Move, spends: str) -> Node | None:
    """The state after a move; None where it cannot happen."""
    machine = copied(node.machine)
    try:
        for line in move:
            do(machine, line)
    except Impossible:
        return None
    left: Left = node.left
    if spends:
        left = left._replace(**{spends: getattr(left, spends) - 1})
    then = after(node, machine, left)
    if spends in ("stops", "lags"):
        name = move[-1].split()[1].removeprefix("remove=")
        who = frozenset(r for r, n in machine.world.names.items() if n == name)
        if spends == "stops":
            return replace(then, stopped=then.stopped | who)
        return replace(then, slow=then.slow | who)
    return then


def do(machine: PartitionMachine, line: str) -> None:
    """One command of the moves above, by the machine. Impossible where it cannot happen."""
    machine.world.command = line
    verb, *rest = line.split()
    settings = dict(word.split("=", 1) for word in rest if "=" in word)
    names = {name: r for r, name in machine.world.names.items()}
    replica = names.get(rest[0], 0)
    _DOES[verb](machine, replica, rest, settings, names)


def _crash(
    machine: PartitionMachine, replica: int, rest: list[str], at: dict[str, str], _: dict[str, int]
) -> None:
    reason = {"process": "process_crash", "power": "power_loss", "disk": "disk_loss"}[at["kind"]]
    end, file = at.get("to"), at.get("checkpoint")
    machine.stop(
        replica,
        reason,
        surviving=None if end is None else int(end),
        high_watermark_checkpoint=None if file is None else int(file),
    )


_Does = Callable[[PartitionMachine, int, list[str], dict[str, str], dict[str, int]], object]
_DOES: dict[str, _Does] = {
    "produce": lambda m, r, rest, at, _: m.produce(rest[1], to=r, acks=at["acks"]),
    "fetch": lambda m, r, *_: m.fetch(r),
    "fence": lambda m, r, *_: m.fence(r),
    "unfence": lambda m, r, *_: m.unfence(r),
    "start": lambda m, r, *_: m.start(r),
    "isolate": lambda m, r, *_: m.isolate(r),
    "rejoin": lambda m, r, *_: m.isolate(r, False),
    "deliver": lambda m, r, *_: m.deliver([r]),
    "drain": lambda m, r, *_: m.drain(r),
    "stop": lambda m, r, _, at, __: m.stop(r, directory_deleted="directory" in at),
    "crash": _crash,
    "isr": lambda m, _, __, at, names: m.propose_isr([names[at["remove"]]]),
    "elect": lambda m, _, __, at, ___: m.elect_by_rule(at["cause"]),
}
