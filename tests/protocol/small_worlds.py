"""Every schedule of small worlds, per generation: which promise can be broken, and how.

Breadth first, so a counterexample is a shortest one. Clean worlds have no unclean election and lose
no storage; lossy ones lose some on fewer than min.insync.replicas members, which only eligible
leader replicas promise to survive; the rest is beyond any promise.
`python -m tests.protocol.small_worlds [--write]` prints the outcome and the number of states behind
each "cannot"; exit status 1 where a release breaks another promise than in the counterexamples that
are kept as scenarios, or one less; --write keeps them anew. A world too large to end says up to how
many commands it is complete.
"""

import argparse
import itertools
import multiprocessing
import os
import re
import sys
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path

from replication.machine.scenario import run_scenario
from tests.protocol.stories import NAMES
from tests.protocol.world_promises import PROMISES, Promise
from tests.protocol.world_states import (
    Limits,
    Node,
    act,
    commands,
    controller_of,
    key,
    start,
)

GENERATIONS = (
    "0.10.2.2", "1.1.1", "2.0.0", "2.0.1", "2.1.0", "2.4.1", "2.6.1", "2.8.0", "2.8.1", "3.5.1",
    "3.7.0", "4.1.0",
)  # fmt: skip
KEPT = Path(__file__).parent.parent / "scenarios" / "small_worlds"
CLEAN = (
    Limits("no stops", records=3, elections=3, stops=0),
    Limits("fast fail-over", records=2, elections=4, stops=0),
    Limits("process stops", elections=2),
    Limits("record deletion", elections=1, stops=0, deletions=1),
    Limits("shrinking isr", elections=2, stops=0, shrinks=1, min_insync=2),
    Limits("three replicas", replicas=3, records=3, stops=0, most_states=1_000_000),
    Limits("three replicas, four elections", replicas=3, records=1, elections=4, stops=0,
           most_states=1_000_000),
    Limits("three replicas, one stop", replicas=3, records=2, elections=1,
           most_states=1_000_000),
    Limits("three replicas, stop and shrink", replicas=3, records=3, shrinks=1,
           most_states=15_000),
)  # fmt: skip
LOSSY = (
    Limits("one power loss", elections=2, shrinks=1, lossy=True, by_rule=True, min_insync=2),
    Limits("three replicas, one power loss", replicas=3, records=3, shrinks=1, lossy=True,
           by_rule=True, min_insync=2, most_states=15_000),
)  # fmt: skip
BEYOND = (
    Limits("unclean elections", elections=3, stops=0, unclean=True),
    Limits("power loss at min insync 1", elections=1, lossy=True),
    Limits(
        "three replicas, all of it",
        replicas=3,
        records=3,
        unclean=True,
        lossy=True,
        most_states=15_000,
    ),
)
WORLDS = CLEAN + LOSSY + BEYOND
SORTS = {"clean": CLEAN, "lossy": LOSSY, "beyond": BEYOND}


@dataclass
class Outcome:
    """What an exploration found: states, and a shortest way to break each promise.

    depth: every schedule of so many commands was looked at, None where that is every schedule.
    """

    states: int
    depth: int | None
    broken: dict[str, list[str]] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def complete(self) -> bool:
        return self.depth is None


def explore(version: str, limits: Limits) -> Outcome:
    """Breadth first over every schedule, up to the world's number of states."""
    began = time.process_time()
    first = start(version, limits)
    at = key(first)
    came: dict[bytes, tuple[bytes, str] | None] = {at: None}
    waiting = deque([(first, at, 0)])
    broken: dict[str, list[str]] = {}
    depth = None
    while waiting and depth is None:
        node, at, length = waiting.popleft()
        for line in commands(node, limits):
            after = act(node, line)
            if after is None:
                continue
            there = key(after)
            known = there in came
            if not known:
                if len(came) >= limits.most_states:
                    depth = length
                    break
                came[there] = (at, line)
                waiting.append((after, there, length + 1))
            for promise in PROMISES:
                if promise.name not in broken and not _kept(promise, node, after, known):
                    broken[promise.name] = [*_way(came, at), line]
    return Outcome(len(came), depth, broken, time.process_time() - began)


def _kept(promise: Promise, before: Node, after: Node, known: bool) -> bool:
    if promise.step is not None:
        return promise.step(before, after)
    assert promise.state is not None
    return known or promise.state(after)


def _way(came: dict[bytes, tuple[bytes, str] | None], at: bytes) -> list[str]:
    """The commands from the first state to this one, by way of states that were met first."""
    lines = []
    step = came[at]
    while step is not None:
        at, line = step
        lines.append(line)
        step = came[at]
    return lines[::-1]


def as_scenario(version: str, limits: Limits, promise: str, lines: list[str]) -> str:
    """A counterexample as scenario text, with what the machine makes of it."""
    names = NAMES[: limits.replicas]
    rows = [f"{n}{'*' if n == 'A' else ' '} e0  |" for n in names]
    judged = promise in JUDGED
    text = "\n".join([
        f"# {promise}: a shortest schedule that breaks it in {version} ({limits.name}).",
        f"given isr={','.join(names)} kafka={version} controller={controller_of(version)} "
        f"unclean={'yes' if limits.unclean else 'no'} min_insync_replicas={limits.min_insync}",
        *rows, "----", "ok", "", *lines, "----", "",
        *(["check", "----", ""] if judged else []),
    ])  # fmt: skip
    return run_scenario(text)[1]


JUDGED = ("committed_records_survive", "acknowledged_records_survive", "replicas_converge")
Outcomes = dict[tuple[str, str], Outcome]


def _explored(pair: tuple[str, Limits]) -> tuple[str, str, Outcome]:
    version, limits = pair
    return version, limits.name, explore(version, limits)


def outcomes(versions: list[str], worlds: tuple[Limits, ...], processes: int) -> Outcomes:
    """Every world under every release; progress goes to standard error."""
    pairs = [(v, w) for v in versions for w in worlds]
    found: Outcomes = {}
    with multiprocessing.Pool(processes) as pool:
        for version, name, outcome in pool.imap_unordered(_explored, pairs):
            found[version, name] = outcome
            print(f"{len(found)} of {len(pairs)}: {version} {name}", file=sys.stderr, flush=True)
    return found


def broken_by(found: Outcomes, version: str, worlds: tuple[Limits, ...]) -> dict[str, str]:
    """Promise -> the first of the worlds that breaks it under a release."""
    result: dict[str, str] = {}
    for world in worlds:
        outcome = found.get((version, world.name))
        for name in outcome.broken if outcome else ():
            result.setdefault(name, world.name)
    return result


def table(found: Outcomes, versions: list[str], sort: str) -> None:
    """Prints which promises can be broken."""
    broken = {v: broken_by(found, v, SORTS[sort]) for v in versions}
    print(f"{'':36}" + "".join(f"{v:>10}" for v in versions))
    for promise in PROMISES:
        cells = "".join(f"{'broken' if promise.name in broken[v] else '-':>10}" for v in versions)
        print(f"{promise.row:4}{promise.name:32}{cells}")


def states(found: Outcomes, versions: list[str], worlds: tuple[Limits, ...]) -> None:
    """Prints how much was explored: all of it, or every schedule of so many commands."""
    for world in worlds:
        cells = ""
        for version in versions:
            outcome = found[version, world.name]
            depth = "" if outcome.complete else f"<{outcome.depth}"
            cells += f"{f'{outcome.states}{depth}':>10}"
        print(f"{world.name:36}{cells}")


def kept(sort: str, version: str) -> list[tuple[str, str, list[str]]]:
    """(promise, world, commands) of every counterexample that is kept."""
    path = KEPT / f"{sort}_{version}.txt"
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    found = []
    for story in re.split(r"^# ", text, flags=re.MULTILINE)[1:]:
        title, _, rest = story.partition("\n")
        match = re.fullmatch(r"(\w+): a shortest schedule .* in \S+ \((.*)\)\.", title)
        assert match, title
        commands = rest.split("ok\n\n", 1)[1].split("\n----", 1)[0].splitlines()
        found.append((match[1], match[2], commands))
    return found


def main() -> int:
    """Prints the tables; exit status 1 where what is broken is not what is kept."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--version", default=None, help="only this release")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    options = parser.parse_args()
    versions = list(GENERATIONS) if options.version is None else [options.version]
    found = outcomes(versions, WORLDS, options.processes)
    for sort in SORTS:
        print(f"\n{sort} worlds")
        table(found, versions, sort)
    print("\nStates explored; n<d: every schedule of d commands, not all longer ones")
    states(found, versions, WORLDS)
    print(f"\n{sum(o.seconds for o in found.values()):.0f} CPU s")
    others = 0
    for version, sort in itertools.product(versions, SORTS):
        before = {promise for promise, _, _ in kept(sort, version)}
        for promise in sorted(before ^ broken_by(found, version, SORTS[sort]).keys()):
            print(f"OTHERWISE: {promise} by {version} in {sort} worlds")
            others += 1
        if options.write:
            _write(found, version, sort)
    return int(others > 0)


def _write(found: Outcomes, version: str, sort: str) -> None:
    """One file a release and sort of worlds, every counterexample a story of its own."""
    stories, worlds = [], SORTS[sort]
    for promise, name in broken_by(found, version, worlds).items():
        world = next(w for w in worlds if w.name == name)
        lines = found[version, name].broken[promise]
        stories.append(as_scenario(version, world, promise, lines))
    KEPT.mkdir(exist_ok=True)
    path = KEPT / f"{sort}_{version}.txt"
    if stories:
        path.write_text("\n".join(stories), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
