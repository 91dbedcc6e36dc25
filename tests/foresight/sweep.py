"""Random schedules of the machine against what `preflight` says cannot be lost.

A schedule does what the search does, and more of it: four records, lags and moves of leadership as
often as they come, answers to fetches that are lost or late, members that join the ISR again. The
failure comes as often as its kind says. Where a record is lost of a kind that the search said
cannot be, the schedule is printed.
`python -m tests.foresight.sweep SCHEDULES [FIRST_SEED]` asks every profile and kind of failure.
"""

import argparse
import random
import sys
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cache

from replication.foresight.failures import FAILURES, Failure
from replication.foresight.moves import Move, do, moves
from replication.foresight.search import Bound, Found, search
from replication.foresight.settings import Settings
from replication.foresight.worlds import KINDS, Left, Node, after, lost, start
from replication.machine.machine_state import Impossible
from replication.machine.states import logs_of

RECORDS, STEPS = 4, 30
PROFILES = (
    Settings("0.10.2.2", 3, 2, False, "zookeeper"),
    Settings("1.1.1", 3, 2, False, "zookeeper"),
    Settings("2.8.1", 3, 1, False, "zookeeper"),
    Settings("2.8.1", 3, 2, True, "zookeeper"),
    Settings("3.9.1", 3, 2, False, "kraft"),
    Settings("3.9.1", 2, 1, False, "kraft", flushed=True),
    Settings("4.1.0", 3, 2, False, "kraft", eligible=True),
    Settings("4.3.0", 3, 2, False, "kraft", eligible=True, racks=(0, 0, 1)),
)
WEIGHTS = {"produce": 6, "fetch": 10, "isr": 2, "start": 3, "fence": 3, "rejoin": 2}


@dataclass
class Score:
    """counts: what -> schedules. broken: the first few, in words."""

    counts: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)


def schedule(settings: Settings, failure: Failure, seed: int) -> tuple[set[str], list[Move]]:
    """The kinds of which a random schedule loses a record, and its commands."""
    chance = random.Random(seed)
    leader = chance.choice((1, 1, settings.replicas))
    node = start(settings, failure, RECORDS, leader)
    node = replace(node, left=node.left._replace(lags=4, preferred=2))
    told: list[Move] = [(f"leader {leader}",)]
    gone: set[str] = set()
    for _ in range(STEPS):
        possible = list(moves(node, settings, failure))
        if not possible:
            break
        weights = [WEIGHTS.get(move[0].split()[0], 1) for move, _ in possible]
        move, spends = chance.choices(possible, weights)[0]
        then = _act(node, move, spends, chance)
        if then is None:
            continue
        told.append(move)
        node = then
        gone |= set(lost(node))
    return gone, told


def _act(node: Node, move: Move, spends: str, chance: random.Random) -> Node | None:
    """The state after a move, in place: nobody comes back to the one before."""
    machine = node.machine
    machine.world.steps.clear()
    try:
        for line in move:
            if line.startswith("fetch") and chance.random() < 0.25:
                _fetch_otherwise(node, line, chance)
            else:
                do(machine, line)
    except Impossible:
        # The commands before it have happened.
        return replace(node, logs=logs_of(machine.world))
    left: Left = node.left
    if spends:
        left = left._replace(**{spends: getattr(left, spends) - 1})
    then = after(node, machine, left)
    if spends == "stops":
        name = move[-1].split()[1]
        who = frozenset(r for r, n in machine.world.names.items() if n == name)
        then = replace(then, stopped=then.stopped | who)
    return then


def _fetch_otherwise(node: Node, line: str, chance: random.Random) -> None:
    """An answer that is lost, or that comes late."""
    names = {name: r for r, name in node.world.names.items()}
    replica = names[line.split()[1]]
    if node.world.brokers[replica].in_flight is not None:
        node.machine.receive(replica)
    else:
        node.machine.fetch(replica, response=chance.choice(("lost", "delayed")))


@cache
def found_by_default(settings: Settings, failure: Failure) -> Found:
    """What the search finds within its usual bound."""
    return search(settings, failure, Bound())


def sweep(
    seeds: range, names: tuple[str, ...] = (), profiles: tuple[Settings, ...] = PROFILES
) -> Score:
    """Every profile and kind of failure, seeds schedules of each."""
    score = Score()
    for settings in profiles:
        for failure in FAILURES:
            if (failure.together == "rack" and not settings.racks) or (
                names and failure.name not in names
            ):
                continue
            found = found_by_default(settings, failure)
            cannot = set(KINDS) - set(found.lost)
            for seed in seeds:
                gone, told = schedule(settings, failure, seed)
                score.counts["schedules"] += 1
                score.counts["lost as foretold"] += bool(gone - cannot)
                if gone & cannot:
                    score.counts["BROKEN"] += 1
                    commands = "\n  ".join(" ; ".join(move) for move in told)
                    where = f"{settings} {failure.name} seed {seed}: {sorted(gone & cannot)}"
                    score.broken.append(f"{where}\n  {commands}")
    return score


def main() -> int:
    """Prints the counts and what was broken; exit status 1 if anything was."""
    parser = argparse.ArgumentParser()
    parser.add_argument("schedules", type=int, help="of each profile and kind of failure")
    parser.add_argument("first", type=int, nargs="?", default=0)
    parser.add_argument("--failure", default="")
    options = parser.parse_args()
    began = time.monotonic()
    names = tuple(n for n in options.failure.split(",") if n)
    score = sweep(range(options.first, options.first + options.schedules), names)
    for what, number in sorted(score.counts.items()):
        print(f"{number:9} {what}")
    for text in score.broken[:10]:
        print(text)
    print(f"{time.monotonic() - began:.0f} s")
    return int(bool(score.broken))


if __name__ == "__main__":
    sys.exit(main())
