"""Random faults on the machine; each loss is told again without one of its steps.

What the ledger calls the cause of a loss must be the earliest step without which the records
survive. Here that is tried out: a story of commands is told again, with one loss of storage, one
cut of a log or one unclean election left out, and at its end it is looked whether the leader has
the record. `python -m tests.protocol.removed_steps N [SEED]` compares many losses.
"""

import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any
from unittest import mock

from replication.machine import follower, registration
from replication.machine.machine_state import Broker, World
from replication.machine.scenario import Story
from replication.machine.scenario_check import fold_steps
from replication.protocol.ground import events as ev
from replication.protocol.judgement.loss import Loss
from replication.protocol.judgement.view import view_of
from tests.protocol.stories import NAMES, begun
from tests.protocol.stories import tell as tell_on

CUTS = {"out_of_range": "out_of_range_reset"}
UNCLEAN = ("unclean", "last_known_leader")
VERSIONS = (
    "kafka=0.10.2.2", "kafka=1.1.1", "kafka=2.0.1", "kafka=2.8.2",
    "kafka=3.9.1 controller=kraft", "kafka=4.1.0 controller=kraft elr=yes",
    "kafka=4.1.0 controller=kraft elr=no",
)  # fmt: skip


@dataclass(frozen=True)
class Removal:
    """One step left out of a telling: what the command of this number does to this replica.

    what: storage, cut or election.
    """

    line: int
    what: str
    replica: int


@dataclass
class Told:
    """A story's end, and what each command did.

    steps: what took records (by content) from logs, or let a leader lead without them. missed: the
    records that some leader took over without. led_without: which, and where in facts.
    """

    story: Story
    facts: list[tuple[int, ev.Fact]] = field(default_factory=list)
    steps: list[tuple[int, Removal]] = field(default_factory=list)
    written: set[int] = field(default_factory=set)
    missed: set[int] = field(default_factory=set)
    led_without: list[tuple[int, int]] = field(default_factory=list)

    @property
    def world(self) -> World:
        return self.story.world


def holds(broker: Broker, content: int) -> bool:
    """Whether the broker's log has the record."""
    return any(s.content == content for s in broker.log.spans)


def tell(given: str, lines: list[str], without: tuple[Removal, ...] = ()) -> Told:
    """Tells a story, without these steps."""
    told = Told(begun(given))
    world = told.world
    for number, line in enumerate(lines):
        with ExitStack() as stack:
            for removal in (r for r in without if r.line == number):
                line = _without(stack, told, removal, line)
            before = len(world.steps)
            held = {b.replica: _contents(b) for b in world.brokers.values()}
            if line:
                tell_on(told.story, line)
            for step in world.steps[before:]:
                told.facts.append((number, step.fact))
                _note(told, number, step.fact, held)
    return told


def _contents(broker: Broker) -> set[int]:
    return {s.content for s in broker.log.spans if s.content is not None}


def _note(told: Told, number: int, fact: ev.Fact, held: dict[int, set[int]]) -> None:
    """Keeps what a fact does to records: held is what each broker held before its command."""
    world = told.world
    if isinstance(fact, ev.LeaderAppended) and fact.content is not None:
        told.written.add(fact.content)
        # A deposed leader writes what it would go on leading with, had nobody deposed it.
        told.steps += [
            (fact.content, Removal(n, "election", f.leader))
            for n, f in told.facts
            if isinstance(f, ev.LeadershipRecorded)
            and f.leader is not None
            and f.leader_epoch > (fact.leader_epoch or 0)
            and f.election_kind in UNCLEAN
        ]
    elif isinstance(fact, ev.ReplicaStopped) and fact.reason in ("power_loss", "disk_loss"):
        gone = held[fact.replica] - _contents(world.brokers[fact.replica])
        told.steps += [(c, Removal(number, "storage", fact.replica)) for c in gone]
    elif isinstance(fact, ev.Truncated):
        gone = held[fact.replica] - _contents(world.brokers[fact.replica])
        told.steps += [(c, Removal(number, "cut", fact.replica)) for c in gone]
    elif isinstance(fact, ev.LeadershipRecorded) and fact.leader is not None:
        if fact.election_kind in UNCLEAN:
            gone = told.written - held[fact.leader]
            told.steps += [(c, Removal(number, "election", fact.leader)) for c in gone]
    elif isinstance(fact, ev.BecameLeader) and fact.leader_epoch == world.controller.leader_epoch:
        gone = told.written - _contents(world.brokers[fact.replica])
        told.missed |= gone
        told.led_without += [(c, len(told.facts) - 1) for c in gone]


def _without(stack: ExitStack, told: Told, removal: Removal, line: str) -> str:
    """Prepares that a step does not happen; the command to be told then, or none."""
    name = told.world.name(removal.replica)
    if removal.what == "storage":
        return f"crash {name} kind=process"
    if removal.what == "cut":
        true_cut = follower.apply_cut

        def apply_cut(world: World, broker: Broker, cut: Any) -> None:
            if broker.replica != removal.replica:
                true_cut(world, broker, cut)

        stack.enter_context(mock.patch.object(follower, "apply_cut", apply_cut))
        return line
    told.world.unclean_leader_election = False
    true_election = registration.election_kraft

    def election(*positional: Any, **named: Any) -> Any:
        return true_election(*positional, **{**named, "last_known_leader": None})

    stack.enter_context(mock.patch.object(registration, "election_kraft", election))
    return "" if line.startswith("elect") else line


def story(seed: int) -> tuple[str, list[str]]:
    """Random settings, and commands that end with every broker back and in step."""
    chance = random.Random(seed)
    given = (
        f"given isr=A,B,C {chance.choice(VERSIONS)} min_insync_replicas={chance.choice((1, 2, 3))} "
        f"unclean={chance.choice(('yes', 'no'))}"
    )
    told = begun(given)
    lines: list[str] = []
    for number in range(chance.randint(8, 30)):
        for line in _next(chance, told.world, number):
            lines.append(line)
            tell_on(told, line)
    return given, [*lines, *HEALING]


def _next(chance: random.Random, world: World, number: int) -> list[str]:
    """What happens next: one thing, and what mostly goes with it."""
    brokers = list(world.brokers.values())
    running = [world.name(b.replica) for b in brokers if b.running]
    stopped = [world.name(b.replica) for b in brokers if not b.running]
    leaders = [world.name(b.replica) for b in brokers if b.role == "leader"]
    followers = [world.name(b.replica) for b in brokers if b.role == "follower"]
    draw = chance.random()
    if draw < 0.3 and leaders:
        return [f"produce {chance.choice(leaders)} r{number} acks={chance.choice(('1', 'all'))}"]
    if draw < 0.45 and followers:
        extra = chance.choice(("", "", "", " response=lost"))
        return [f"fetch {chance.choice(followers)}{extra}"]
    if draw < 0.55:
        return [f"fetch {f}" for f in followers * 2]
    if draw < 0.7 and running:
        return _ending(chance, world, chance.choice(running))
    if draw < 0.85 and stopped:
        return [f"start {chance.choice(stopped)}"]
    name = chance.choice(NAMES)
    return [
        chance.choice(
            (f"fence {name}", f"unfence {name}", f"isolate {name}", f"rejoin {name}",
             f"checkpoint {name}", "elect", "elect cause=unclean", "elect cause=preferred",
             f"deliver {name}", f"restart {name}")
        )
    ]  # fmt: skip


def _ending(chance: random.Random, world: World, name: str) -> list[str]:
    broker = world.brokers[NAMES.index(name) + 1]
    start, end = broker.log.log_start_offset, broker.log.log_end_offset
    line = chance.choice(
        (f"stop {name}", f"crash {name} kind=process",
         f"crash {name} kind=power to={chance.randint(start, end)}", f"crash {name} kind=disk")
    )  # fmt: skip
    return [line, f"fence {name}"] if chance.random() < 0.7 else [line]


# Everybody comes back, an election by rule if nobody leads, and all fetch.
HEALING = (
    *(f"rejoin {name}" for name in NAMES),
    *(f"{what} {name}" for name in NAMES for what in ("start", "unfence")),
    "elect",
    *(f"deliver {name}" for name in NAMES),
    *(f"fetch {name}" for name in NAMES * 3),
)


def survives(told: Told, content: int, committed: bool = True) -> bool:
    """Whether the last leader has it; nobody leading, whether any broker has.

    What was not committed comes back by luck alone once a leader has lacked it.
    """
    leader = told.world.controller.leader
    if leader is None:
        return any(holds(b, content) for b in told.world.brokers.values())
    return holds(told.world.brokers[leader], content) and (committed or content not in told.missed)


def steps(
    given: str, lines: list[str], content: int, without: tuple[Removal, ...] = ()
) -> list[Removal]:
    """What took the record from a log, or gave its place to a leader without it, in order."""
    told = tell(given, lines, without)
    return list(dict.fromkeys(r for c, r in told.steps if c == content and r not in without))


@dataclass(frozen=True)
class Truth:
    """The earliest step, else the earliest two, without which the record survives.

    Where it takes more (`several`), or nothing of this kind helps (`nothing`): all there were.
    """

    causes: tuple[str, ...]
    removed: tuple[Removal, ...]


def truth(given: str, lines: list[str], content: int, committed: bool = True) -> Truth:
    """Tries every step of a record's loss in turn, then every two of them, then all there are."""
    whole = tell(given, lines)
    tried = steps(given, lines, content)
    alone = [r for r in tried if survives(tell(given, lines, (r,)), content, committed)]
    if alone:
        # What was lost outside the ISR is missed only once its replica is elected uncleanly.
        later = [r for r in alone if r.what == "election" and r.replica == alone[0].replica]
        first = (later or alone)[0]
        return Truth((named(whole, first, content),), (first,))
    for chosen in combinations(tried, 2):
        if survives(tell(given, lines, chosen), content, committed):
            return Truth(tuple(named(whole, r, content) for r in chosen), chosen)
    gone = tuple(tried)
    for _ in range(4):
        again = tell(given, lines, gone)
        if survives(again, content, committed):
            return Truth((*(named(whole, r, content) for r in tried), "several"), gone)
        gone = (*gone, *steps(given, lines, content, gone))
    return Truth((*(named(whole, r, content) for r in tried), "nothing"), ())


def named(told: Told, removal: Removal, content: int) -> str:
    """A step in the ledger's words."""
    if removal.what == "election":
        return "unclean_election"
    if removal.what == "storage":
        least = told.world.min_insync_replicas
        alone = least >= 2 and len(isr_before_leading(told, removal, content)) < least
        return "last_replica_standing" if alone else "storage_loss"
    for number, fact in told.facts:
        here = number == removal.line and isinstance(fact, ev.Truncated)
        if here and fact.replica == removal.replica:
            return CUTS.get(fact.reason, "truncate_to_high_watermark")
    raise AssertionError(removal)


def isr_before_leading(told: Told, removal: Removal, content: int) -> tuple[tuple[int, ...], bool]:
    """The ISR in force before the first leader without the record, after a loss of storage, and
    whether that was elected uncleanly. An epoch raised for a smaller ISR is no election.
    """
    places = [p for c, p in told.led_without if c == content and told.facts[p][0] > removal.line]
    upto = places[0] if places else len(told.facts)
    before = now = (1, 2, 3)
    elected = -1
    for _, fact in told.facts[:upto]:
        if isinstance(fact, ev.LeadershipRecorded):
            if fact.leader is not None and fact.election_kind not in ("same_leader", None):
                before, elected = now, fact.leader_epoch
            now = fact.isr or now
    led = told.facts[places[0]][1] if places else None
    again = any(
        isinstance(f, ev.BecameLeader) and f.leader_epoch == elected for _, f in told.facts[:upto]
    )
    if isinstance(led, ev.BecameLeader) and led.leader_epoch == elected and not again:
        return before
    return now


def contract(told: Told, loss: Loss, true: Truth) -> str | None:
    """What Kafka had promised, where one step alone decides it."""
    if loss.tier == "acknowledged_by_leader":
        return "not_promised"
    if len(true.causes) != 1:
        return None
    if true.causes == ("unclean_election",):
        return "not_promised" if told.world.unclean_leader_election else "broken"
    others = [r for c, r in told.steps if c == loss.record.content and r not in true.removed]
    if true.causes == ("truncate_to_high_watermark",):
        return None if any(r.what == "election" for r in others) else "broken"
    if any(r.what != "cut" for r in others):
        return None
    return "broken" if told.world.min_insync_replicas >= 2 else "not_promised"


def agrees(loss: Loss, true: Truth) -> bool:
    """Whether the ledger names the step, or one of those that it takes together.

    A failover is no step that can be left out: somebody has to lead.
    """
    if {"nothing", "several"} & set(true.causes) and loss.tier == "acknowledged_by_leader":
        true = replace(true, causes=("acks_one_failover", *true.causes))
    return bool({loss.cause.name, *loss.cause.one_of} & set(true.causes))


@dataclass
class Comparison:
    """counts: (ledger's cause, true cause) -> losses. stories: one of each difference."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    contracts: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    stories: dict[tuple[str, str], str] = field(default_factory=dict)


def lost_records(told: Told) -> Iterator[tuple[int, Loss]]:
    """(content, ledger row) of each record that the ledger says is gone for good."""
    for loss in view_of(fold_steps(told.world)).losses:
        content = loss.record.content
        if loss.status != "recovered" and content is not None:
            yield content, loss


def compare(seeds: range) -> Comparison:
    """Holds the ledger against the machine over many stories."""
    result = Comparison()
    for seed in seeds:
        given, lines = story(seed)
        told = tell(given, lines)
        for content, row in lost_records(told):
            true = truth(given, lines, content, row.tier != "acknowledged_by_leader")
            right = agrees(row, true)
            ledger = " or ".join(row.cause.one_of) or row.cause.name
            pair = (ledger, ledger if right else "+".join(true.causes))
            result.counts[pair] += 1
            promised = contract(told, row, true)
            if promised is not None and right:
                result.contracts[ledger, row.contract, promised] += 1
            if pair not in result.stories:
                result.stories[pair] = f"seed {seed}, {told.world.contents[content]}: {row.tier}"
    return result


def main() -> int:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    began = time.monotonic()
    found = compare(range(first, first + count))
    for pair, number in found.counts.most_common():
        mark = "  " if pair[0] == pair[1] else "! "
        print(f"{mark}{number:6} ledger {pair[0]:28} machine {pair[1]:28} {found.stories[pair]}")
    for (cause, ledger, machine), number in sorted(found.contracts.items()):
        mark = "  " if ledger == machine else "! "
        print(f"{mark}{number:6} {cause:28} contract {ledger}, machine {machine}")
    print(f"{count} stories, {sum(found.counts.values())} losses, {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
