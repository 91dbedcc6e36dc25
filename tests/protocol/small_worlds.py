"""Every schedule of a small world, per generation: which invariant can be broken, and how.

A world has a few replicas, records, elections and stops; a state is what every broker and the
controller know, with followers that are told apart only by name merged. Breadth first, so a
counterexample is a shortest one. `python -m tests.protocol.small_worlds [--write]` prints the
table with the number of states explored; --write keeps the counterexamples as scenarios.
"""

import argparse
import itertools
import sys
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from replication.protocol.machine_state import Broker, Impossible, World
from replication.protocol.partition_machine import Given, PartitionMachine
from replication.protocol.replica_log import ReplicaLog
from replication.protocol.scenario import run_scenario
from replication.protocol.versions import behaviour

KEPT = Path(__file__).parent.parent / "scenarios" / "small_worlds"
GENERATIONS = ("0.10.2.2", "1.1.1", "2.0.0", "2.0.1", "2.1.0", "2.8.0", "2.8.1", "3.7.0", "4.1.0")
NAMES = "ABC"
Record = tuple[int, int | None, int | None]
Key = tuple[object, ...]


@dataclass(frozen=True)
class Limits:
    """How large a world is. kraft from 3.7 on; lossy: stops may lose the last record."""

    name: str
    replicas: int = 2
    records: int = 2
    elections: int = 2
    stops: int = 1
    unclean: bool = False
    lossy: bool = False
    min_insync: int = 1


WORLDS = (
    Limits("no stops", records=3, elections=3, stops=0),
    Limits("process stops"),
    Limits("three replicas", replicas=3, records=1, stops=0),
    Limits("unclean elections", unclean=True, stops=0),
    Limits("power loss", lossy=True, elections=1),
)


@dataclass(frozen=True)
class Node:
    """A state: its machine, what was committed so far, and what is left to spend."""

    machine: PartitionMachine
    committed: frozenset[Record]
    records: int
    elections: int
    stops: int


def start(version: str, limits: Limits) -> Node:
    """The first state: empty logs, A leads epoch 0, all are in the ISR."""
    kraft = version >= "3.7" and not version.startswith("0.")
    b = behaviour(version, controller="kraft" if kraft else "zookeeper")
    rows = [Given(n + 1, (), 0, 0, 0, n == 0) for n in range(limits.replicas)]
    names = {n + 1: NAMES[n] for n in range(limits.replicas)}
    machine = PartitionMachine(
        b,
        rows,
        [r.replica for r in rows],
        min_insync_replicas=limits.min_insync,
        unclean_leader_election=limits.unclean,
        names=names,
    )
    return Node(machine, frozenset(), limits.records, limits.elections, limits.stops)


def copied(machine: PartitionMachine) -> PartitionMachine:
    """An independent copy, without the facts emitted so far."""
    old = machine.world
    c = replace(old.controller, active=set(old.controller.active))
    world = World(
        old.behaviour,
        old.assigned_replicas,
        old.min_insync_replicas,
        old.unclean_leader_election,
        old.names,
        {r: _copied_broker(b) for r, b in old.brokers.items()},
        c,
        list(old.contents),
    )
    new = object.__new__(PartitionMachine)
    new.world = world
    return new


def _copied_broker(b: Broker) -> Broker:
    return replace(
        b,
        log=ReplicaLog(b.log.log_start_offset, b.log.log_end_offset, list(b.log.spans)),
        followers={r: replace(f) for r, f in b.followers.items()},
        pending=list(b.pending),
    )


def key(node: Node) -> Key:
    """A state's identity: the least over renamings of all replicas but the first."""
    replicas = node.machine.world.assigned_replicas
    return min(
        (_renamed(node, dict(zip(replicas, (replicas[0], *rest), strict=True)))
         for rest in itertools.permutations(replicas[1:])),
    )  # fmt: skip


def _renamed(node: Node, to: dict[int, int]) -> Key:
    world, c = node.machine.world, node.machine.world.controller
    brokers = sorted(
        (
            to[b.replica], tuple(b.log.spans), b.high_watermark, b.checkpointed_high_watermark,
            b.epoch_entries, b.running, b.clean, b.role, to.get(b.leader or 0), b.leader_epoch,
            b.partition_epoch == c.partition_epoch, b.truncated_for and b.truncated_for[1],
            b.truncated_for and to[b.truncated_for[0]], b.truncating, b.fetching,
            b.leader_epoch_start_offset, sorted(to[r] for r in b.isr),
            sorted((to[r], f.log_end_offset, f.memory.last_caught_up_ms > 0)
                   for r, f in b.followers.items()),
        )
        for b in world.brokers.values()
    )  # fmt: skip
    controller = (
        to.get(c.leader or 0), c.leader_epoch, sorted(to[r] for r in c.isr),
        sorted(to[r] for r in c.eligible), sorted(to[r] for r in c.active),
        to.get(c.last_known_leader or 0),
    )  # fmt: skip
    spent = (node.records, node.elections, node.stops)
    return (repr(brokers), repr(controller), repr(sorted(node.committed, key=repr)), spent)


def commands(node: Node, limits: Limits) -> Iterator[str]:
    """Every command that can happen next, as scenario text."""
    world, c = node.machine.world, node.machine.world.controller
    for b in world.brokers.values():
        name = world.name(b.replica)
        if b.role == "leader" and node.records:
            yield f"produce {name} r{len(world.contents)}"
        if b.role == "follower" and b.leader is not None and b.fetching:
            yield f"fetch {name}"
            yield f"fetch {name} response=lost"
        behind = b.running and b.partition_epoch != c.partition_epoch
        if behind:
            yield f"deliver {name}"
        if b.running and node.stops:
            yield f"restart {name} kind=process"
            yield f"stop {name}"
            if limits.lossy and b.log.log_end_offset:
                yield f"crash {name} kind=power to={b.log.log_end_offset - 1}"
        if not b.running:
            yield f"start {name}"
        if node.elections and b.running and (limits.unclean or b.replica in c.isr):
            others = [world.name(r) for r in c.isr if r != b.replica and world.brokers[r].running]
            isr = ",".join([name, *others])
            yield f"elect {name} isr={isr}"
            yield f"elect {name} isr={isr} deliver={name}"
            if limits.unclean and others:
                yield f"elect {name} isr={name} deliver={name}"


def act(node: Node, line: str) -> Node | None:
    """The state after a command; None where it cannot happen."""
    machine = copied(node.machine)
    verb, *arguments = line.split()
    names = {v: k for k, v in machine.world.names.items()}
    replica = names[arguments[0]]
    settings = dict(a.split("=", 1) for a in arguments if "=" in a)
    machine.world.command = line
    try:
        if verb == "produce":
            machine.produce(arguments[1], to=replica)
        elif verb == "fetch":
            machine.fetch(replica, response=settings.get("response", "ok"))
        elif verb == "deliver":
            machine.deliver([replica])
        elif verb == "restart":
            machine.stop(replica, "process_crash")
            machine.start(replica)
        elif verb == "stop":
            machine.stop(replica)
        elif verb == "crash":
            machine.stop(replica, "power_loss", surviving=int(settings["to"]))
        elif verb == "start":
            machine.start(replica)
        else:
            hears = (
                [names[n] for n in settings["deliver"].split(",")]
                if "deliver" in settings
                else None
            )
            isr = [names[n] for n in settings["isr"].split(",")]
            machine.elect(replica, isr=isr, deliver=hears)
    except Impossible:
        return None
    return Node(
        machine,
        node.committed | _newly_committed(machine.world),
        node.records - (verb == "produce"),
        node.elections - (verb == "elect"),
        node.stops - (verb in ("restart", "stop", "crash")),
    )


def _records(b: Broker) -> set[Record]:
    return {
        (o, s.leader_epoch, s.content)
        for s in b.log.spans
        for o in range(s.first_offset, s.end_offset)
    }


def _newly_committed(world: World) -> frozenset[Record]:
    """What lies below the high watermark of the leader that the controller names."""
    leader = _valid_leader(world)
    if leader is None:
        return frozenset()
    return frozenset(r for r in _records(leader) if r[0] < leader.high_watermark)


def _valid_leader(world: World) -> Broker | None:
    c = world.controller
    if c.leader is None:
        return None
    b = world.brokers[c.leader]
    return b if b.role == "leader" and b.leader_epoch == c.leader_epoch else None


def committed_records_survive(before: Node, after: Node) -> bool:
    leader = _valid_leader(after.machine.world)
    return leader is None or after.committed <= _records(leader)


def log_matching(before: Node, after: Node) -> bool:
    """Once every broker runs, hears and has fetched all, no two logs differ anywhere."""
    world = after.machine.world
    if not _differ(world):
        return True
    machine = copied(after.machine)
    leader = machine.world.controller.leader
    if leader is None or not machine.world.brokers[leader].running:
        return True
    for b in machine.world.brokers.values():
        if not b.running:
            machine.start(b.replica)
    machine.deliver(machine.world.assigned_replicas)
    for _ in range(4):
        for b in machine.world.brokers.values():
            if b.role == "follower" and b.running:
                machine.fetch(b.replica)
    return not _differ(machine.world)


def _differ(world: World) -> bool:
    logs = [{r[0]: r for r in _records(b)} for b in world.brokers.values()]
    return any(
        a[o] != b[o] for a, b in itertools.combinations(logs, 2) for o in a.keys() & b.keys()
    )


def high_watermark_within_log(before: Node, after: Node) -> bool:
    return all(
        b.high_watermark <= b.log.log_end_offset
        for b in after.machine.world.brokers.values()
        if b.running
    )


def leader_high_watermark_monotonic(before: Node, after: Node) -> bool:
    for b in after.machine.world.brokers.values():
        old = before.machine.world.brokers[b.replica]
        same = b.role == old.role == "leader" and b.leader_epoch == old.leader_epoch
        same = same and b.broker_epoch == old.broker_epoch  # a restart begins a new leadership
        if same and b.high_watermark < old.high_watermark:
            return False
    return True


def epochs_rise_along_a_log(before: Node, after: Node) -> bool:
    return all(
        (s.leader_epoch or 0) <= (t.leader_epoch or 0)
        for b in after.machine.world.brokers.values()
        for s, t in itertools.pairwise(b.log.spans)
    )


def truncation_spares_committed(before: Node, after: Node) -> bool:
    """A follower that runs on, or restarts with all it had, cuts nothing that was committed."""
    for b in after.machine.world.brokers.values():
        old = before.machine.world.brokers[b.replica]
        if b.running and old.running and (_records(old) - _records(b)) & before.committed:
            return False
    return True


INVARIANTS = (
    committed_records_survive,
    log_matching,
    truncation_spares_committed,
    epochs_rise_along_a_log,
    high_watermark_within_log,
    leader_high_watermark_monotonic,
)


@dataclass
class Outcome:
    """What a whole exploration found: states, and the shortest way to break each invariant."""

    states: int
    complete: bool
    broken: dict[str, list[str]]


def explore(version: str, limits: Limits, most_states: int = 120_000) -> Outcome:
    """Breadth first over every schedule."""
    first = start(version, limits)
    ways: dict[Key, list[str]] = {key(first): []}
    queue = deque([(first, key(first))])
    broken: dict[str, list[str]] = {}
    while queue:
        node, at = queue.popleft()
        for line in commands(node, limits):
            after = act(node, line)
            if after is None:
                continue
            for invariant in INVARIANTS:
                if invariant.__name__ not in broken and not invariant(node, after):
                    broken[invariant.__name__] = [*ways[at], line]
            there = key(after)
            if there not in ways:
                if len(ways) >= most_states:
                    return Outcome(len(ways), False, broken)
                ways[there] = [*ways[at], line]
                queue.append((after, there))
    return Outcome(len(ways), True, broken)


def as_scenario(version: str, limits: Limits, invariant: str, lines: list[str]) -> str:
    """A counterexample as a scenario file, with what the machine makes of it."""
    controller = start(version, limits).machine.world.behaviour.controller
    names = NAMES[: limits.replicas]
    rows = [f"{n}{'*' if n == 'A' else ' '} e0  |" for n in names]
    judged = invariant in ("committed_records_survive", "log_matching")
    text = "\n".join([
        f"# {invariant} can be broken in {version}: a shortest schedule ({limits.name}).",
        f"given isr={','.join(names)} kafka={version} controller={controller} "
        f"unclean={'yes' if limits.unclean else 'no'} min_insync_replicas={limits.min_insync}",
        *rows, "----", "ok", "", *lines, "----", "",
        *(["check", "----", ""] if judged else []),
    ])  # fmt: skip
    return run_scenario(text)[1]


def main() -> int:
    """Prints the table; with --write keeps counterexamples as scenario files."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--world", type=int, default=None, help="only the world of this number")
    parser.add_argument("--version", default=None, help="only this release")
    options = parser.parse_args()
    worlds = WORLDS if options.world is None else [WORLDS[options.world]]
    versions = GENERATIONS if options.version is None else [options.version]
    for limits in worlds:
        print(
            f"\n{limits.name}: {limits.records} records, {limits.elections} elections, "
            f"{limits.stops} stops"
        )
        for version in versions:
            began = time.monotonic()
            outcome = explore(version, limits)
            names = ", ".join(sorted(outcome.broken)) or "nothing"
            whole = "" if outcome.complete else "+"
            print(
                f"  {version:9} {outcome.states:6}{whole} states  can break: {names} "
                f"({time.monotonic() - began:.0f} s)",
                flush=True,
            )
            if options.write:
                _write(version, limits, outcome)
    return 0


def _write(version: str, limits: Limits, outcome: Outcome) -> None:
    KEPT.mkdir(exist_ok=True)
    world = limits.name.replace(" ", "_")
    for invariant, lines in outcome.broken.items():
        if list(KEPT.glob(f"{invariant}__{version}__*.txt")):
            continue  # One counterexample an invariant and release is enough.
        path = KEPT / f"{invariant}__{version}__{world}.txt"
        path.write_text(as_scenario(version, limits, invariant, lines), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
