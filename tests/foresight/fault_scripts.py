"""Pairs of runs of one fault script by the machine, under two settings: `whatif` against the truth.

A fault script says what happens to brokers and clients: writes to whoever leads, rounds of fetches,
followers that lag, brokers that crash (some lose their log's end), come back, or are cut off. The
controller acts by its rules. The first run leaves the evidence of default log levels; `whatif`
answers for each of its losses; the second run tells the truth.
`python -m tests.foresight.fault_scripts SCRIPTS [FIRST_SEED]` prints the counts.
"""

import argparse
import random
import sys
import time
from collections import Counter
from dataclasses import dataclass, field

from replication.foresight.interventions import parsed
from replication.foresight.whatif import NOT_LOST, NOT_TOLD, STILL_LOST, ask
from replication.machine.machine_state import Impossible, World
from replication.machine.partition_machine import Given, PartitionMachine
from replication.machine.states import valid_leader
from replication.protocol.ground import events as ev
from replication.protocol.ground.events import Event, RecordsAcknowledged
from replication.protocol.ground.versions import behaviour
from replication.protocol.judgement.judge import answer
from tests.protocol.default_evidence import evidence, folded, left_by
from tests.protocol.judgement.told import event

Script = list[tuple[str, ...]]


@dataclass(frozen=True)
class Settings:
    """What a run lives by."""

    kafka: str
    controller: str
    min_insync: int = 1
    unclean: bool = False
    eligible: bool = False
    acks: str = "all"
    flushed: bool = False


# Settings, what is said to `whatif`, and the settings of the second run.
PAIRS = (
    (Settings("0.10.2.2", "zookeeper"), "kafka=1.1.1", Settings("1.1.1", "zookeeper")),
    (Settings("0.10.2.2", "zookeeper"), "kafka=2.8.1", Settings("2.8.1", "zookeeper")),
    (
        Settings("2.8.1", "zookeeper", unclean=True),
        "unclean.leader.election.enable=false",
        Settings("2.8.1", "zookeeper"),
    ),
    (
        Settings("3.9.1", "kraft", unclean=True),
        "unclean.leader.election.enable=false",
        Settings("3.9.1", "kraft"),
    ),
    (
        Settings("3.9.1", "kraft"), "min.insync.replicas=2", Settings("3.9.1", "kraft", 2)
    ),
    (
        Settings("3.9.1", "kraft", acks="1"), "acks=all", Settings("3.9.1", "kraft")
    ),
    (
        Settings("4.1.0", "kraft", 2), "eligible.leader.replicas.version=1",
        Settings("4.1.0", "kraft", 2, eligible=True),
    ),
    (
        Settings("3.9.1", "kraft"), "flush.messages=1", Settings("3.9.1", "kraft", flushed=True)
    ),
)  # fmt: skip


def script_of(chance: random.Random) -> Script:
    """A random fault script for three brokers."""
    script: Script = [("write",), ("fetch", "1"), ("fetch", "2"), ("fetch", "3"), ("fetch", "all")]
    for _ in range(chance.randint(5, 11)):
        broker = str(chance.choice((1, 2, 3)))
        script.append(
            chance.choice(
                (
                    ("write",),
                    ("write",),
                    ("fetch", "all"),
                    ("fetch", broker),
                    ("lag", broker),
                    ("crash", broker, "0"),
                    ("crash", broker, "0"),
                    ("crash", broker, "1"),
                    ("start", broker),
                    ("start", broker),
                )
            )
        )
    return [*script, ("start", "1"), ("start", "2"), ("start", "3"), ("fetch", "all")]


@dataclass
class Run:
    """One run: its machine, and the writes by number: content, acks that were answered."""

    machine: PartitionMachine
    acked: set[str] = field(default_factory=set)

    def lost(self, label: str) -> bool:
        """Whether an answered record is missing from the leader's log."""
        world = self.machine.world
        leader = valid_leader(world)
        if leader is None or label not in self.acked:
            return False
        names = {world.contents[s.content] for s in leader.log.spans if s.content is not None}
        return label not in names


def run(script: Script, under: Settings) -> Run:
    """The script under these settings; what cannot happen is passed by."""
    lives_by = behaviour(
        under.kafka, controller=under.controller, eligible_leader_replicas=under.eligible
    )
    machine = PartitionMachine(
        lives_by,
        [Given(n, (), 0, 0, 0, n == 1) for n in (1, 2, 3)],
        (1, 2, 3),
        min_insync_replicas=under.min_insync,
        unclean_leader_election=under.unclean,
    )
    result = Run(machine)
    for number, command in enumerate(script):
        machine.world.command = " ".join(command)
        try:
            _do(machine, command, number, under)
        except Impossible:
            continue
    world = machine.world
    result.acked = {
        world.contents[s.fact.content]
        for s in world.steps
        if isinstance(s.fact, RecordsAcknowledged) and s.fact.content is not None
    }
    return result


def _do(machine: PartitionMachine, command: tuple[str, ...], number: int, under: Settings) -> None:
    world, verb = machine.world, command[0]
    c = world.controller
    if verb == "write":
        machine.produce(f"r{number}", acks=under.acks)
        return
    if verb == "fetch":
        for replica in world.brokers if command[1] == "all" else (int(command[1]),):
            for _ in range(3 if command[1] == "all" else 1):
                if world.brokers[replica].role == "follower" and world.brokers[replica].running:
                    machine.fetch(replica)
        return
    replica = int(command[1])
    broker = world.brokers[replica]
    if verb == "lag" and c.leader not in (None, replica) and replica in c.isr:
        machine.propose_isr([replica])
    elif verb == "crash" and broker.running:
        end = broker.log.log_end_offset
        less = max(0, end - int(command[2]))
        kept = end if under.flushed else max(less, broker.log.log_start_offset)
        reason = "power_loss" if kept < end else "process_crash"
        machine.stop(replica, reason, surviving=kept if kept < end else None)
        if replica in c.active:
            machine.fence(replica)
    elif verb == "start" and not broker.running:
        machine.start(replica)


@dataclass
class Score:
    """counts: what -> losses. wrong: in words."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


def compare(seeds: range, pairs: range = range(len(PAIRS))) -> Score:
    """Scripts under each pair of settings."""
    score = Score()
    for seed in seeds:
        script = script_of(random.Random(seed))
        for which in pairs:
            first, said, second = PAIRS[which]
            _one(score, seed, script, first, said, second)
    return score


def _one(
    score: Score, seed: int, script: Script, first: Settings, said: str, second: Settings
) -> None:
    was, truth = run(script, first), run(script, second)
    lost = [
        label for label in was.machine.world.contents if label.startswith("r") and was.lost(label)
    ]
    if not lost:
        return
    score.counts["pairs of runs"] += 1
    events = as_events(was.machine.world, seed)
    rows = ledger_of(events)
    columns = ask(events, rows, [parsed(said)])
    for row, verdict in zip(rows, columns[0].verdicts, strict=True):
        labels = [x for x in lost if _is_at(was, x, row["first_offset"], row["end_offset"])]
        truly = any(truth.lost(label) for label in labels)
        score.counts[verdict.answer] += 1
        if verdict.answer == NOT_TOLD:
            score.counts[f"not told: {verdict.because}"] += 1
        if (verdict.answer == NOT_LOST and truly) or (
            verdict.answer == STILL_LOST and not truly and _leads(truth)
        ):
            score.counts["WRONG"] += 1
            score.wrong.append(
                f"seed {seed} {first} {said}: {labels} {verdict.answer}, truth "
                f"{'lost' if truly else 'kept'}\n  {script}"
            )


def _is_at(run: Run, label: str, first: int, end: int) -> bool:
    """Whether a record was written at these offsets."""
    content = run.machine.world.contents.index(label)
    written = (s.fact for s in run.machine.world.steps if isinstance(s.fact, ev.LeaderAppended))
    return any(f.content == content and first <= f.first_offset < end for f in written)


def _leads(run: Run) -> bool:
    return valid_leader(run.machine.world) is not None


def as_events(world: World, seed: int) -> list[Event]:
    """What a run leaves behind at default log levels."""
    facts = evidence(left_by(world, random.Random(seed)), frozenset())
    return [event(n, fact) for n, fact in enumerate(facts)]


def ledger_of(events: list[Event]) -> list[dict[str, object]]:
    """The rows of the ledger that tell of answered records."""
    judged = answer(folded(events))
    found = []
    for row in judged.losses:
        if row["status"] == "recovered" or not str(row["tier"]).startswith("acknowledged"):
            continue
        contents = {
            e.fact.content
            for e in events
            if isinstance(e.fact, ev.RecordsAcknowledged)
            and e.fact.first_offset <= row["first_offset"] < e.fact.end_offset
            and e.fact.leader_epoch == row["leader_epoch"]
        }
        found.append({**row, "content": contents.pop() if len(contents) == 1 else None})
    return found


def main() -> int:
    """Prints the counts and what was wrong; exit status 1 if anything was."""
    parser = argparse.ArgumentParser()
    parser.add_argument("scripts", type=int)
    parser.add_argument("first", type=int, nargs="?", default=0)
    options = parser.parse_args()
    began = time.monotonic()
    score = compare(range(options.first, options.first + options.scripts))
    for what, number in sorted(score.counts.items()):
        print(f"{number:9} {what}")
    for text in score.wrong[:8]:
        print(text)
    print(f"{time.monotonic() - began:.0f} s")
    return int(bool(score.wrong))


if __name__ == "__main__":
    sys.exit(main())
