"""Takes events out of complete traces, declares them missing, and holds verdicts to the truth.

A verdict must be what every completion of the rest agrees on, else UNKNOWN. In small worlds the
completions are all there: every schedule of so many commands is made, every trace is stripped in
many ways, and traces that leave the same rest complete each other. In larger worlds random
schedules are stripped at random: there only a verdict against the truth can be found. Where nothing
declares what is missing, a verdict may differ from the truth by a named limit only. "Unknown
though all agree" is said of the completions that were made: longer ones may well disagree.
`python -m tests.protocol.missing_evidence [--commands N] [--schedules N]` prints both figures.
"""

import argparse
import random
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from replication.machine.machine_state import Step, World
from replication.machine.scenario import Runner
from replication.machine.scenario_text import Stanza, parse
from replication.protocol.folding.fold import Rejected, apply, new_state
from replication.protocol.ground import events as ev
from replication.protocol.ground.topic_partition import State
from replication.protocol.judgement.judge import answer
from tests.protocol.default_evidence import (
    evidence,
    folded,
    left_by,
    with_brokers_named,
    withholdings,
)
from tests.protocol.named_limits import CLASSES, Truth, limit, truth_of
from tests.protocol.schedules import schedule_machine
from tests.protocol.world_states import Limits, Node, act, commands, start

PROMISES = ("committed_records_survive", "acknowledged_records_survive", "log_matching")
SCENARIOS = Path(__file__).parent.parent / "scenarios"
WORLDS = {
    "0.10.2.2": Limits("stops", elections=1),
    "2.8.1": Limits("unclean", elections=2, stops=0, unclean=True),
    "4.1.0": Limits("power loss", elections=1, lossy=True, shrinks=1),
}
Facts = tuple[ev.Fact, ...]
# What each removal is declared to have left incomplete.
SUBJECTS = {
    "acknowledgements": "acknowledgements",
    "consumptions": "consumptions",
    "controller": "controller_history",
}


def source_of(fact: ev.Fact) -> Hashable:
    """Whose evidence a fact is: a broker's number, the controller's, the clients'; None: given."""
    match fact:
        case ev.PartitionDescribed() | ev.CoverageDeclared():
            return None
        case ev.LeadershipRecorded():
            return "controller"
        case ev.RecordsAcknowledged():
            return "acknowledgements"
        case ev.RecordsConsumed():
            return "consumptions"
        case ev.FetchRequested():
            return fact.leader
    return getattr(fact, "replica", None)


def without(facts: Facts, gone: frozenset[int]) -> Facts:
    """The trace without the facts at these places, and with what is missing declared."""
    sources = {source_of(facts[place]) for place in gone}
    left: list[ev.Fact] = []
    for place, fact in enumerate(facts):
        if place in gone:
            continue
        if isinstance(fact, ev.CoverageDeclared):
            traced = fact.subject == "replica_trace" and fact.replica in sources
            if traced or any(SUBJECTS.get(str(s)) == fact.subject for s in sources):
                fact = replace(fact, complete=False)
        left.append(fact)
    return tuple(left)


def by_offset_alone(facts: Facts) -> Facts:
    """The trace with acknowledgements that tell offsets alone, as most producers write down."""
    return tuple(
        replace(fact, leader_epoch=None, content=None)
        if isinstance(fact, ev.RecordsAcknowledged)
        else fact
        for fact in facts
    )


def removals(facts: Facts, chance: random.Random) -> Iterator[frozenset[int]]:
    """Ways to strip a trace: all, the first, the last, one or some of a source; some of any."""
    places: dict[Hashable, list[int]] = defaultdict(list)
    for place, fact in enumerate(facts):
        if source_of(fact) is not None:
            places[source_of(fact)].append(place)
    for known in places.values():
        cut = chance.randrange(len(known))
        yield frozenset(known)
        yield frozenset(known[cut:])
        yield frozenset(known[: cut + 1])
        yield frozenset({known[cut]})
        yield frozenset(p for p in known if chance.random() < 0.5)
    every = [p for known in places.values() for p in known]
    yield frozenset(chance.sample(every, chance.randint(1, min(6, len(every)))))
    yield frozenset(p for p in every if chance.random() < 0.5)


def verdicts(facts: Facts) -> dict[str, str]:
    """Every invariant's verdict on a trace; facts that the fold refuses are left out."""
    state = new_state("", "world", "", 0)
    for n, fact in enumerate(facts):
        try:
            apply(state, ev.Event(str(n), "world", "", "world", "", 0, n, fact, None, "traced"))
        except Rejected:
            continue
    return {v["invariant"]: v["verdict"] for v in answer(state).verdicts}


@dataclass
class Score:
    """counts: (invariant, what became of a verdict) -> how many. wrong: the first few, in words."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def add(self, name: str, found: str, truths: set[str], story: str, every: bool) -> None:
        """One verdict beside what the completions of its evidence say; every: they are all."""
        if found == "UNKNOWN" and not every:
            self.counts[name, "unknown"] += 1
        elif found == "UNKNOWN":
            decided = len(truths) == 1 and "UNKNOWN" not in truths
            self.counts[name, "unknown though all agree" if decided else "rightly unknown"] += 1
        elif truths <= {found, "UNKNOWN"}:
            self.counts[name, "decided"] += 1
        else:
            self.counts[name, "WRONG"] += 1
            self.wrong.append(f"{name} {found}, completions say {sorted(truths)}: {story}")


def traces(version: str, limits: Limits, length: int) -> Iterator[tuple[list[str], Facts]]:
    """Every schedule of up to so many commands, and the trace that it leaves."""
    first = start(version, limits)
    yield from _longer(first, limits, length, [], _facts(first))


def _facts(node: Node) -> Facts:
    return tuple(step.fact for step in node.machine.world.steps)


def _longer(
    node: Node, limits: Limits, length: int, lines: list[str], facts: Facts
) -> Iterator[tuple[list[str], Facts]]:
    yield lines, facts
    if len(lines) == length:
        return
    for line in commands(node, limits):
        after = act(node, line)
        if after is not None:
            yield from _longer(after, limits, length, [*lines, line], facts + _facts(after))


def by_completions(version: str, limits: Limits, length: int) -> tuple[Score, int]:
    """Small worlds: the score over every rest that some trace leaves, and how many there are."""
    truths: dict[Facts, dict[str, set[str]]] = {}
    stories: dict[Facts, str] = {}
    for number, (lines, facts) in enumerate(traces(version, limits, length)):
        truth = verdicts(facts)
        for gone in set(removals(facts, random.Random(number))):
            rest = without(facts, gone)
            known = truths.setdefault(rest, {name: set() for name in truth})
            stories.setdefault(rest, f"{version}: {', '.join(lines)} without {sorted(gone)}")
            for name, verdict in truth.items():
                known[name].add(verdict)
    score = Score()
    for rest, known in truths.items():
        for name, found in verdicts(rest).items():
            score.add(name, found, known[name], stories[rest], every=True)
    return score, len(truths)


def by_chance(schedules: int, first_seed: int = 0) -> tuple[Score, int]:
    """Larger worlds: the score against the one completion that is known, and how many rests."""
    score, rests = Score(), 0
    for seed in range(first_seed, first_seed + schedules):
        facts = tuple(step.fact for step in schedule_machine(seed).story.world.steps)
        truth = verdicts(facts)
        for gone in removals(facts, random.Random(seed)):
            rests += 1
            for name, found in verdicts(without(facts, gone)).items():
                story = f"seed {seed} without {sorted(gone)}"
                score.add(name, found, {truth[name]}, story, every=False)
    return score, rests


def by_default_evidence(
    schedules: int, first_seed: int = 0, *, brokers_named: bool = False
) -> tuple[Score, int]:
    """Random schedules as default log levels and directories tell them, less one or two kinds of
    artefact: nothing declares that they are missing. The promises held to the truth.

    brokers_named: the producers' log names who answered.
    """
    score, rests = Score(), 0
    for seed in range(first_seed, first_seed + schedules):
        truth = truth_of(schedule_machine(seed).story.world)
        story = left_by(truth.world, random.Random(seed), as_on_disk=True)
        if brokers_named:
            story = with_brokers_named(story, truth.world)
        for withheld in withholdings(story):
            rests += 1
            state = folded(evidence(story, withheld))
            _hold(score, truth, state, f"seed {seed} without {sorted(withheld)}")
    return score, rests


def _hold(score: Score, truth: Truth, state: State, story: str) -> None:
    """The verdicts on undeclared rests, held to the truth but for the named limits."""
    found = {v["invariant"]: v["verdict"] for v in answer(state).verdicts}
    for name in PROMISES:
        if found[name] not in ("UNKNOWN", truth.verdicts[name]):
            named = limit(truth, name, state, found[name])
            if named is not None:
                score.counts[name, named] += 1
                continue
        score.add(name, found[name], {truth.verdicts[name]}, story, every=False)


def undeclared_in_small_worlds(version: str, limits: Limits, length: int) -> tuple[Score, int]:
    """Small worlds, every schedule: less one or two kinds of artefact, or less some steps of a
    trace, and nothing declares it."""
    score, rests = Score(), 0
    for number, (lines, world) in enumerate(_worlds(version, limits, length)):
        truth = truth_of(world)
        story = left_by(world, random.Random(number), as_on_disk=True)
        text = f"{version}: {', '.join(lines)} without"
        for withheld in withholdings(story):
            rests += 1
            _hold(score, truth, folded(evidence(story, withheld)), f"{text} {sorted(withheld)}")
        facts = tuple(step.fact for step in world.steps)
        for gone in set(removals(facts, random.Random(number))):
            rests += 1
            state = folded(silently_without(facts, gone), "traced")
            _hold(score, truth, state, f"{text} {sorted(gone)}")
    return score, rests


def silently_without(facts: Facts, gone: frozenset[int]) -> Facts:
    """The trace without the facts at these places, and without any word on their sources."""
    sources = {source_of(facts[place]) for place in gone}
    silent = {SUBJECTS.get(str(s)) for s in sources}
    return tuple(
        fact
        for place, fact in enumerate(facts)
        if place not in gone
        and not (
            isinstance(fact, ev.CoverageDeclared)
            and (
                fact.subject in silent
                or (fact.subject == "replica_trace" and fact.replica in sources)
            )
        )
    )


def _worlds(version: str, limits: Limits, length: int) -> Iterator[tuple[list[str], World]]:
    """Every schedule of up to so many commands, and the world it leads to, with all its steps."""
    first = start(version, limits)
    yield from _world_after(first, limits, length, [], first.machine.world.steps)


def _world_after(
    node: Node, limits: Limits, length: int, lines: list[str], steps: list[Step]
) -> Iterator[tuple[list[str], World]]:
    yield lines, replace(node.machine.world, steps=steps)
    if len(lines) == length:
        return
    for line in commands(node, limits):
        after = act(node, line)
        if after is not None:
            told = steps + after.machine.world.steps
            yield from _world_after(after, limits, length, [*lines, line], told)


def by_scenarios(rounds: int) -> tuple[Score, int]:
    """The stories of tests/scenarios, as told at the end of each file, stripped so many times."""
    score, rests = Score(), 0
    for path in sorted(SCENARIOS.glob("*.txt")):
        facts = _told(path.read_text(encoding="utf-8"))
        truth = verdicts(facts)
        for gone in (g for n in range(rounds) for g in removals(facts, random.Random(n))):
            rests += 1
            for name, found in verdicts(without(facts, gone)).items():
                story = f"{path.stem} without {sorted(gone)}"
                score.add(name, found, {truth[name]}, story, every=False)
    return score, rests


def _told(text: str) -> Facts:
    runner = Runner()
    for part in parse(text):
        if isinstance(part, Stanza):
            runner.run(part)
    assert runner.story is not None
    return tuple(step.fact for step in runner.story.world.steps)


def show(title: str, score: Score, rests: int, seconds: float) -> None:
    """Prints a score by invariant."""
    print(f"{title}: {rests} traces with evidence removed ({seconds:.0f} s)")
    order = ("decided", "unknown", "rightly unknown", "unknown though all agree")
    named = [c for c in CLASSES if any(what == c for _, what in score.counts)]
    columns = [c for c in order if any(what == c for _, what in score.counts)] + ["WRONG"]
    print(f"  {'':36}" + "".join(f"{c:>26}" for c in columns))
    for name in sorted({name for name, _ in score.counts}):
        cells = "".join(f"{score.counts[name, c]:26}" for c in columns)
        print(f"  {name:36}{cells}")
    for limit_ in named:
        number = sum(n for (_, what), n in score.counts.items() if what == limit_)
        share = number / sum(score.counts.values())
        print(f"  against the truth, by a named limit: {number} ({share:.3%}): {limit_}")
    for line in score.wrong[:5]:
        print(f"  {line}")


def main() -> int:
    """Prints both scores; exit status 1 where a verdict is wrong."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--commands", type=int, default=4)
    parser.add_argument("--schedules", type=int, default=500)
    options = parser.parse_args()
    wrong = 0
    for version, limits in WORLDS.items():
        began = time.process_time()
        score, rests = by_completions(version, limits, options.commands)
        title = (
            f"Kafka {version}, {limits.name}, every schedule of up to {options.commands} commands"
        )
        show(title, score, rests, time.process_time() - began)
        wrong += len(score.wrong)
        began = time.process_time()
        score, rests = undeclared_in_small_worlds(version, limits, options.commands - 1)
        title = f"Kafka {version}, {limits.name}, {options.commands - 1} commands, undeclared"
        show(title, score, rests, time.process_time() - began)
        wrong += len(score.wrong)
    began = time.process_time()
    score, rests = by_default_evidence(options.schedules)
    title = f"{options.schedules} random schedules as default log levels tell them"
    show(title, score, rests, time.process_time() - began)
    wrong += len(score.wrong)
    began = time.process_time()
    score, rests = by_default_evidence(options.schedules, brokers_named=True)
    title = f"{options.schedules} of them, of producers that tell who answered"
    show(title, score, rests, time.process_time() - began)
    wrong += len(score.wrong)
    began = time.process_time()
    score, rests = by_scenarios(10)
    show("every scenario", score, rests, time.process_time() - began)
    wrong += len(score.wrong)
    began = time.process_time()
    score, rests = by_chance(options.schedules)
    title = f"{options.schedules} random schedules of three replicas (one completion each)"
    show(title, score, rests, time.process_time() - began)
    return int(wrong + len(score.wrong) > 0)


if __name__ == "__main__":
    sys.exit(main())
