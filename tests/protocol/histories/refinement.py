"""Random schedules of the machine: is what really happened always among the admitted histories.

Each schedule is told as a whole trace, as a trace with facts taken out of it, and as what default
log levels and directories tell, less one or two kinds of artefact. Under strict nothing is assumed:
there the true end of every offset must be admitted, so no decided verdict can be wrong. By default
it may be excluded only where an assumption that was made is false in the story.
`python -m tests.protocol.histories.refinement N [SEED] [--rests N]` prints the counts.
"""

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from replication.machine.machine_state import World
from replication.machine.scenario_check import fold_steps
from replication.protocol.ground.topic_partition import State
from replication.protocol.histories.ask import Histories
from replication.protocol.histories.stretches import Admitted, Stretch
from tests.protocol.default_evidence import Story, evidence, folded, left_by, withholdings
from tests.protocol.histories.true_ends import TrueStory, is_admitted
from tests.protocol.missing_evidence import Facts, removals, silently_without, without
from tests.protocol.schedules import schedule_story


@dataclass
class Score:
    """counts: (strict or default, what) -> runs of offsets. failures: the first few, in words."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def add(self, asked: str, outcome: str, where: str) -> None:
        """One run of offsets; anything but an admitted end is told."""
        self.counts[asked, outcome] += 1
        if outcome in ("contradicted", "EXCLUDED"):
            self.failures.append(f"{asked} {outcome}: {where}")


def rests(world: World, chance: random.Random, count: int) -> Iterator[tuple[str, State]]:
    """The whole trace, then count rests of it of each kind, each with its name."""
    yield "whole trace", fold_steps(world)
    facts: Facts = tuple(step.fact for step in world.steps)
    gone = list(removals(facts, chance))
    for places in chance.sample(gone, min(count, len(gone))):
        yield f"trace declared without {sorted(places)}", folded(without(facts, places), "traced")
    for places in chance.sample(gone, min(count, len(gone))):
        yield f"trace without {sorted(places)}", folded(silently_without(facts, places), "traced")
    story: Story = left_by(world, chance, as_on_disk=True)
    kinds = list(withholdings(story))
    for withheld in [kinds[0], *chance.sample(kinds[1:], min(count, len(kinds) - 1))]:
        yield f"artefacts without {sorted(withheld)}", folded(evidence(story, withheld))
    for _ in range(min(count, len(story.left))):
        withheld, first = chance.choice(kinds), chance.randrange(len(story.left))
        name = f"artefacts without {sorted(withheld)}, lines from {first} on"
        yield name, folded(evidence(story, withheld, first))


def outcome(truth: TrueStory, stretch: Stretch) -> tuple[str, int]:
    """What became of the true ends of a run of offsets; the offset that tells."""
    if stretch.contradicted or stretch.lines_missing:
        return "contradicted", stretch.first
    admitted: Admitted = stretch.admitted
    if admitted.too_many:
        return "too many", stretch.first
    end = truth.end if stretch.end is None else stretch.end
    known = set()
    for offset in range(max(stretch.first, truth.log_start), min(end, truth.end + 1)):
        true = truth.at(offset)
        if true in known:
            continue
        known.add(true)
        if not is_admitted(true, admitted):
            return "EXCLUDED", offset
    return "admitted", stretch.first


def hold(score: Score, world: World, name: str, state: State, truth: TrueStory) -> None:
    """One rest of a story, asked with nothing assumed and with what is assumed by default."""
    for asked in ("strict", "default"):
        histories = Histories(state, strict=asked == "strict")
        kind = f"{asked} {name.split(' without')[0].split(' ', 2)[2]}"
        for stretch in histories.stretches():
            found, offset = outcome(truth, stretch)
            if stretch.end is not None and stretch.end <= truth.log_start:
                found = found if found == "contradicted" else "removed"
            if found == "EXCLUDED" and asked == "default" and stretch.assumed.names:
                found = "excluded by an assumption"
            score.add(kind, found, f"{name}, offset {offset}")


def compare(seeds: range, count: int, score: Score | None = None) -> Score:
    """Holds the histories of many schedules against the machine."""
    score = Score() if score is None else score
    for seed in seeds:
        world = schedule_story(seed).world
        score.counts["schedules", "held"] += 1
        truth = TrueStory(world)
        for name, state in rests(world, random.Random(seed), count):
            hold(score, world, f"seed {seed} {name}", state, truth)
    return score


def fails(world: World, seed: int, count: int) -> list[str]:
    """What of one story's rests is contradicted, or excludes what really happened."""
    score, truth = Score(), TrueStory(world)
    for name, state in rests(world, random.Random(seed), count):
        hold(score, world, f"seed {seed} {name}", state, truth)
    return score.failures


def main() -> int:
    """Prints the counts and the first failures; exit status 1 if there are any."""
    parser = argparse.ArgumentParser()
    parser.add_argument("schedules", type=int)
    parser.add_argument("first", type=int, nargs="?", default=0)
    parser.add_argument("--rests", type=int, default=2)
    options = parser.parse_args()
    began = time.process_time()
    score = compare(range(options.first, options.first + options.schedules), options.rests)
    for (asked, what), number in sorted(score.counts.items()):
        print(f"{number:9} {asked:24} {what}")
    for line in islice(score.failures, 400):
        print(line)
    print(f"{options.schedules} schedules, {time.process_time() - began:.0f} s")
    return int(bool(score.failures))


if __name__ == "__main__":
    sys.exit(main())
