"""The runs: what `preflight` says of six profiles on a release, as commands to be carried out."""

import itertools
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace

from replication.foresight.drawing import told
from replication.foresight.failures import BY_NAME, FAILURES, Failure
from replication.foresight.moves import do
from replication.foresight.search import Bound, Found, search
from replication.foresight.settings import Settings
from replication.foresight.worlds import KINDS, start
from replication.machine.machine_state import World
from replication.machine.partition_machine import PartitionMachine
from replication.machine.states import copied
from replication.protocol.ground.events import RecordsAcknowledged
from tests.kafka_lab.versions import Version

RELEASES = {"1.1.1": "zookeeper", "2.8.2": "zookeeper", "4.3.0": "kraft"}
Searched = dict[tuple[Settings, str], Found]
FAULTS = ("crash", "drain", "isolate")
# Where no settings lose anything by a kind of failure: whose commands are taken for it, the first
# that lose such a record, and what takes the place of their faults.
INSTEAD = {
    "one_broker": "crash {} kind=process",
    "two_brokers": "crash {} kind=process",
    "frozen_broker": "isolate {}",
    "wrong_start_order": "stop {}",
    "power_of_one": "crash {} kind=power to=0",
    "power_of_all": "crash {} kind=power to=0",
    "one_rack": "crash {} kind=power to=0",
}
TAKEN = {1: ("power_of_one", "one_disk", "unclean_forced"), 2: ("power_of_all",)}


def profiles(release: str) -> dict[str, Settings]:
    """The six, by name; with eligible leader replicas where the release has them by default."""
    controller = RELEASES.get(release, "kraft" if Version(release).kraft else "zookeeper")
    plain = Settings(release, 3, 2, False, controller, eligible=Version(release).at_least(4, 1))
    return {
        "min ISR 2": plain,
        "min ISR 1": replace(plain, min_insync_replicas=1),
        "min ISR 2, unclean": replace(plain, unclean=True),
        "2 replicas, min ISR 1": replace(plain, replicas=2, min_insync_replicas=1),
        "min ISR 2, two of three in a rack": replace(plain, racks=(0, 0, 1)),
        "min ISR 2, flushed": replace(plain, flushed=True),
    }


@dataclass(eq=False)
class Run:
    """Commands to be carried out under settings. at: the leader at first; kinds: of records that
    are lost by them (CAN), or must not be (CANNOT, is_attack); cells: profile, failure and kind."""

    settings: Settings
    lines: tuple[str, ...]
    at: int
    is_attack: bool
    cells: list[tuple[str, str, str]] = field(default_factory=list)
    machines: list[PartitionMachine] = field(default_factory=list)
    answered: list[set[str]] = field(default_factory=list)

    @property
    def kinds(self) -> list[str]:
        return [kind for kind in KINDS if any(cell[2] == kind for cell in self.cells)]


def runs_of(release: str, only: Collection[str] = ()) -> tuple[list[Run], dict[str, int]]:
    """Every run of a release, and how many cells are CAN, CANNOT and not found. only: profiles."""
    asked = {name: s for name, s in profiles(release).items() if not only or name in only}
    found = _searched(asked.values())
    # What loses records without eligible leader replicas is tried with them.
    sources = found | _searched(
        replace(s, kafka_version="3.9.1", eligible=False) for s in asked.values() if s.eligible
    )
    runs: dict[object, Run] = {}
    counts = {"CAN": 0, "CANNOT": 0, "not found": 0}
    for name, settings in asked.items():
        for failure, kind in itertools.product((f.name for f in FAILURES), KINDS):
            one = found.get((settings, failure))
            if one is None:
                continue
            if kind in one.lost:
                says, run = "CAN", _as_printed(settings, failure, one, kind)
            elif one.steps is None:
                says, run = "CANNOT", _attack(settings, sources, failure, kind)
            else:
                counts["not found"] += 1
                continue
            counts[says] += 1
            key = (run.settings, run.lines, run.is_attack)
            runs.setdefault(key, run).cells.append((name, failure, kind))
    # Each history once, before those that differ in settings alone.
    firsts = {run.lines: run for run in reversed(runs.values())}.values()
    return sorted(runs.values(), key=lambda run: run not in firsts), counts


def _searched(profiles: Iterable[Settings]) -> Searched:
    return {
        (settings, failure.name): search(settings, failure, Bound())
        for settings in profiles
        for failure in FAILURES
        if failure.together != "rack" or settings.racks
    }


def _as_printed(settings: Settings, failure: str, found: Found, kind: str) -> Run:
    history, settings = found.lost[kind], settings.without_racks()
    moves = told(settings, BY_NAME[failure], history, kind)
    lines = tuple(line for move in moves for line in move if not line.startswith("consume"))
    run = Run(settings, lines, history.leader, False)
    run.machines = [start(settings, BY_NAME[failure], 9, history.leader).machine]
    run.answered = [set()]
    for line in lines:
        then = copied(run.machines[-1])
        do(then, line)
        facts = [s.fact for s in then.world.steps if isinstance(s.fact, RecordsAcknowledged)]
        names = {then.world.contents[f.content] for f in facts if f.content is not None}
        run.machines.append(then)
        run.answered.append(run.answered[-1] | names)
    return run


def _attack(settings: Settings, sources: Searched, failure: str, kind: str) -> Run:
    """What loses such a record by this failure under other settings, as like these as can be; where
    nothing does, what loses it by another failure, whose faults are replaced by this one's."""
    kind_of = BY_NAME[failure]
    of_many = kind_of.together or kind_of.crashes > 1 or kind_of.stops
    failures = (failure, *TAKEN[2 if of_many else 1], *TAKEN[1])
    settings = settings.without_racks()
    for as_like, source in itertools.product((True, False), failures):
        for (then, name), one in sources.items():
            like = (then.replicas, then.min_insync_replicas if as_like else 0)
            wanted = (settings.replicas, settings.min_insync_replicas if as_like else 0)
            if name != source or kind not in one.lost or like != wanted:
                continue
            run = _as_printed(then, source, one, kind)
            if source != failure:
                run = replace(run, lines=_with_faults(run.lines, kind_of))
            return replace(run, settings=settings, is_attack=True, cells=[])
    raise AssertionError(f"no history loses {kind}: {settings}, {failure}")


def _with_faults(lines: tuple[str, ...], failure: Failure) -> tuple[str, ...]:
    """The same commands with this failure for theirs; who does not crash is not started."""
    fault, changed = INSTEAD[failure.name], []
    crashes = failure.crashes or len(lines)
    for line in lines:
        verb, name, *_ = line.split()
        if verb in ("crash", "isolate"):
            crashes -= 1
            changed += [fault.format(name)] if crashes >= 0 else []
        elif verb == "start" and fault.startswith("isolate"):
            changed.append(f"rejoin {name}")
        else:
            changed.append(line)
    return tuple(changed)


def labels(world: World, replica: int) -> list[str]:
    """The records of a replica's log in a world, by their names."""
    spans = world.brokers[replica].log.spans
    return [
        world.contents[s.content or 0] for s in spans for _ in range(s.first_offset, s.end_offset)
    ]
