"""Foretold against real: each replica of a machine's leaderless partition, really elected.

A random schedule is stopped at a moment at which nobody leads. Each candidate is asked for; then
the machine elects it, the others follow, and what its log lacks is counted.
`python -m tests.decisions.elected N [SEED] [--rests N] [--down]` prints the counts.
"""

import argparse
import copy
import random
import sys
from collections import Counter
from dataclasses import dataclass, field

from replication.decisions.candidates import Candidate, outlook
from replication.decisions.down import copies_of_the_stopped
from replication.decisions.questions import (
    ACKNOWLEDGED_BY_ALL,
    ACKNOWLEDGED_BY_LEADER,
    COMMITTED,
    CONSUMED,
    TIERS,
)
from replication.decisions.ranges import Ranges
from replication.machine.machine_state import World
from replication.machine.scenario import Story
from replication.machine.scenario_check import fold_steps
from replication.protocol.ground.topic_partition import State
from tests.protocol.histories import refinement
from tests.protocol.histories.refinement import rests
from tests.protocol.histories.true_ends import Record, TrueStory
from tests.protocol.schedules import schedule_story
from tests.protocol.stories import NAMES, tell

Offsets = set[int]
_TIERS = {
    "acks_all": ACKNOWLEDGED_BY_ALL, "acks_1": ACKNOWLEDGED_BY_LEADER, "consumed": CONSUMED,
}  # fmt: skip


@dataclass
class Real:
    """What the machine lost with one leader: by tier, the offsets. holds: by broker, the records
    it has after it followed."""

    lost: dict[str, Offsets]
    before: dict[int, dict[int, Record]]
    after: dict[int, dict[int, Record]]


@dataclass
class Score:
    """counts: what -> tiers of candidates. failures: the first few, in words."""

    counts: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)


def left_without_leader(story: Story) -> None:
    """The brokers that lead die one after the other, until nobody is left who may lead."""
    world = story.world
    while world.controller.leader is not None:
        name = world.name(world.controller.leader)
        tell(story, f"crash {name} kind=process", f"fence {name}")


def really(story: Story, candidate: int) -> Real:
    """The same story with the candidate elected, and the others following it."""
    promised = promises(story.world)
    before = logs(story.world)
    after = copy.deepcopy(story)
    world = after.world
    for broker in world.brokers.values():
        broker.isolated = False
    name = world.name(candidate)
    for number in (candidate, *world.brokers):
        if not world.broker(number).running:
            tell(after, f"start {world.name(number)} deliver=no")
        if number == candidate:
            tell(after, f"elect {name} isr={name} deliver={name}")
    others = [n for n in NAMES if n != name]
    tell(after, *(f"deliver {n}" for n in others))
    held = logs(world)[candidate]
    for _ in range(4):
        tell(after, *(f"fetch {n}" for n in others))
    lost = {tier: {o for o, record in promised[tier] if held.get(o) != record} for tier in TIERS}
    return Real(lost, before, logs(world))


def logs(world: World) -> dict[int, dict[int, Record]]:
    """By broker, its records by offset."""
    return {
        r: {
            o: (s.leader_epoch, s.content)
            for s in b.log.spans
            for o in range(s.first_offset, s.end_offset)
        }
        for r, b in world.brokers.items()
    }


def promises(world: World) -> dict[str, set[tuple[int, Record]]]:
    """By tier, the records that were promised and that nobody removed lawfully."""
    truth = TrueStory(world)
    found: dict[str, set[tuple[int, Record]]] = {tier: set() for tier in TIERS}
    history = fold_steps(world).history
    for promise in (*history.acknowledgements, *history.consumptions):
        # An answer at acks=all of a leader that had been replaced promises no more than at acks=1.
        first, end, leader_epoch, content = promise.span
        tier = _TIERS[promise.how]
        found[tier] |= {(o, (leader_epoch, content)) for o in range(first, end)}
    for offset in range(truth.end):
        found[COMMITTED] |= {(offset, record) for record in truth.at(offset).committed}
    return {
        tier: {(o, r) for o, r in records if o >= truth.log_start}
        for tier, records in found.items()
    }


def offsets_of(ranges: Ranges, within: range) -> Offsets:
    """The offsets of ranges, within those that count."""
    return {o for first, end in ranges for o in range(first, min(end, within.stop)) if o in within}


def hold(score: Score, name: str, foretold: Candidate, real: Real, counts: range) -> None:
    """Holds what was foretold of one candidate against what became of it.

    Which of the two promises an answer at acks=all of a replaced leader is depends on what tells
    that it was replaced: both kinds of answers are held together.
    """
    for tiers in ((ACKNOWLEDGED_BY_ALL, ACKNOWLEDGED_BY_LEADER), (CONSUMED,), (COMMITTED,)):
        lost = [foretold.lost[tier] for tier in tiers]
        surely = offsets_of([r for each in lost for r in each.surely], counts)
        worst = offsets_of([r for each in lost for r in each.worst], counts)
        actual = set().union(*(real.lost[tier] for tier in tiers))
        decided = "decided" if surely == worst else "undecided"
        wrong = sorted(surely - actual), sorted(actual - worst)
        score.counts[f"{decided}, {'loses' if actual else 'keeps'}"] += 1
        if wrong != ([], []) and foretold.assuming:
            score.counts["wrong by an assumption"] += 1
        elif wrong != ([], []):
            score.counts["WRONG"] += 1
            score.failures.append(
                f"{name}, broker {foretold.replica} elected, {tiers[0]}: foretold but kept "
                f"{wrong[0]}, lost but not foretold {wrong[1]}"
            )


def hold_copies(score: Score, name: str, foretold: Candidate, real: Real, counts: range) -> None:
    """What a follower was said to cut is gone from it, and what it was said to keep is not."""
    for other in foretold.copies:
        before, after = real.before[other.replica], real.after[other.replica]
        kept = {o for o, record in before.items() if after.get(o) == record}
        lost = set().union(*real.lost.values())
        cut = offsets_of(other.cut, counts) & lost
        stays = offsets_of(other.diverging, counts) & lost
        if other.assuming:
            continue
        if cut & kept or stays - kept or (cut | stays) - set(before):
            score.counts["WRONG copy"] += 1
            score.failures.append(
                f"{name}, broker {foretold.replica} elected, copy of {other.replica}: "
                f"cut {sorted(cut)}, stays {sorted(stays)}, had {sorted(before)}, "
                f"kept {sorted(kept)}"
            )
        score.counts["copy"] += 1


def leaderless(seed: int, *, down: bool = False) -> Story:
    """A random story up to a moment without a leader. down: every broker has died, some of them
    without power, so that a tail of what was not flushed may be gone."""
    story = copy.deepcopy(schedule_story(seed))
    left_without_leader(story)
    if down:
        world = story.world
        chance = random.Random(seed)
        for number, broker in world.brokers.items():
            if not broker.running:
                continue
            end = broker.log.log_end_offset
            left = max(broker.log.log_start_offset, end - chance.choice((0, 0, 1, 2)))
            how = "kind=process" if left == end else f"kind=power to={left}"
            tell(story, f"crash {world.name(number)} {how}")
    return story


def is_admitted(world: World, name: str, state: State, *, strict: bool) -> bool:
    """Whether what really happened is among the histories: else they are at fault, or what they
    assume."""
    truth = refinement.Score()
    refinement.hold(truth, world, name, state, TrueStory(world))
    asked = "strict" if strict else "default"
    bad = ("EXCLUDED", "contradicted", "excluded by an assumption")
    return not any(how.startswith(asked) and what in bad for how, what in truth.counts)


def compare(
    seeds: range,
    count: int,
    score: Score | None = None,
    *,
    strict: bool = False,
    down: bool = False,
) -> Score:
    """Many schedules; count: how many rests of each as well. strict: nothing is assumed. down: all
    brokers are, and whoever asks says so."""
    score = Score() if score is None else score
    for seed in seeds:
        story = leaderless(seed, down=down)
        score.counts["schedules"] += 1
        real = {r: really(story, r) for r in story.world.brokers}
        end = 1 + max((o for log in logs(story.world).values() for o in log), default=-1)
        end = max([end, *(1 + o for o, _ in set().union(*promises(story.world).values()))])
        counts = range(TrueStory(story.world).log_start, end)
        states: list[tuple[str, State]] = [*rests(story.world, random.Random(seed), count)]
        for name, state in states[: None if count else 1]:
            where, this = f"seed {seed} {name}", Score()
            if down:
                copies_of_the_stopped(state, frozenset(story.world.brokers))
            for foretold in outlook(state, strict=strict, whole=True).candidates:
                if foretold.replica in real:
                    hold(this, where, foretold, real[foretold.replica], counts)
                    hold_copies(this, where, foretold, real[foretold.replica], counts)
            if this.failures and not is_admitted(story.world, where, state, strict=strict):
                score.counts["the histories exclude what happened"] += 1
                continue
            score.counts += this.counts
            score.failures += this.failures
    return score


def main() -> int:
    """Prints the counts and the failures; exit status 1 if there are any."""
    parser = argparse.ArgumentParser()
    parser.add_argument("schedules", type=int)
    parser.add_argument("first", type=int, nargs="?", default=0)
    parser.add_argument("--rests", type=int, default=0)
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("--down", action="store_true", help="all brokers have died before")
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.schedules)
    score = compare(seeds, options.rests, strict=options.strict, down=options.down)
    for what, number in sorted(score.counts.items()):
        print(f"{number:9} {what}")
    for line in score.failures[:60]:
        print(line)
    return int(bool(score.failures))


if __name__ == "__main__":
    sys.exit(main())
