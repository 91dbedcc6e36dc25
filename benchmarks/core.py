"""The fold alone, in one process: events per second, and how large the state of a partition grows.

Two kinds of traffic are folded on the two paths that exist: from columns, as the Spark jobs do, and
from Event objects, as the laptop tool does. On both, what one failure would cost is looked at along
the way (`risk_watch`); without it is the fold alone, which no host runs. The yardstick is a loop
that only counts the same events, timed in the same run; CPU time is compared, since wall time on a
busy machine says little. What comes after is timed for a few of the partitions: their answers, as
each micro-batch asks for them, and the state as bytes. Steady: appends, fetches, high watermarks
and acknowledgements of a leader and two followers. Stormy: elections, truncations, ISR changes and
restarts in between.

    .venv/bin/python -m benchmarks.core [--events 300000] [--rounds 5] [--profile]
"""

import argparse
import cProfile
import gc
import json
import pstats
import random
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import pandas as pd

from replication.entry import GARBAGE_AFTER
from replication.machine.machine_state import Impossible
from replication.machine.partition_machine import Given, PartitionMachine
from replication.protocol.folding import fold
from replication.protocol.folding.codec import encode
from replication.protocol.folding.steady import fold_event
from replication.protocol.ground import events as ev
from replication.protocol.ground import wire
from replication.protocol.ground.topic_partition import State
from replication.protocol.ground.versions import behaviour
from replication.protocol.judgement import risk_watch
from replication.protocol.judgement.judge import answer
from replication.spark import contracts
from replication.spark.shard_fold import ShardFold
from replication.spark.transport import ABSENT, ARGUMENTS, COLUMNS, NUMBERS, Rows

AIM = 500_000
VERSION = "3.9.1"
REPLICAS = (1, 2, 3)
ELECTIONS = (200, 800, 1_600, 5_000)
# So many partitions are answered.
ANSWERED = 20
RECORDS = (10_000, 100_000, 1_000_000)


def beginning() -> list[ev.Fact]:
    """Three replicas of which the first leads, all of them traced."""
    facts: list[ev.Fact] = [
        ev.PartitionDescribed(REPLICAS, 2, False, "delete", VERSION, "3.9", "kraft"),
        *(ev.CoverageDeclared("replica_trace", r, True) for r in REPLICAS),
        ev.LeadershipRecorded(1, 0, REPLICAS, 0, "initial", REPLICAS),
        ev.BecameLeader(1, 0, 0, 0),
        ev.BecameFollower(2, 0, 1, 0, 0),
        ev.BecameFollower(3, 0, 1, 0, 0),
    ]
    return facts


def steady(rounds: int, records: int) -> list[ev.Fact]:
    """Rounds of one append, two fetches, a high watermark and an acknowledgement."""
    facts = beginning()
    for n in range(rounds):
        first, end = n * records, (n + 1) * records
        facts.append(ev.LeaderAppended(1, first, end, 0))
        for follower in (2, 3):
            facts.append(ev.FollowerAppended(follower, first, end, 0))
            facts.append(ev.FetchAnswered(follower, 1, first, 0))
            facts.append(ev.FetchRequested(follower, 1, end, 0, 0, 0))
        facts.append(ev.HighWatermarkAdvanced(1, end))
        facts.append(ev.RecordsAcknowledged(first, end, "all", 0))
    return facts


def stormy(seed: int, commands: int) -> list[ev.Fact]:
    """What a partition emits under random commands, one in three of them a disturbance."""
    chance = random.Random(seed)
    rows = [Given(r, (), 0, 0, 0, r == 1) for r in REPLICAS]
    flags = behaviour(VERSION, controller="kraft")
    machine = PartitionMachine(flags, rows, REPLICAS, min_insync_replicas=1,
                               unclean_leader_election=True)  # fmt: skip
    for number in range(commands):
        try:
            _disturb(machine, chance, number)
        except Impossible:
            continue
    return [_unmarked(step.fact) for step in machine.world.steps]


def _unmarked(fact: Any) -> ev.Fact:
    """The fact without a content: the machine gives every append one of its own, evidence gives
    runs of equal records one."""
    return replace(fact, content=None) if hasattr(fact, "content") else fact


def _disturb(machine: PartitionMachine, chance: random.Random, number: int) -> None:
    draw, replica = chance.random(), chance.choice(REPLICAS)
    if draw < 0.3:
        machine.produce(f"r{number}", chance.randint(1, 50), acks="all")
    elif draw < 0.7:
        machine.fetch(replica, response=chance.choice(("ok", "ok", "ok", "lost")))
    elif draw < 0.78:
        machine.stop(replica, chance.choice(("clean", "process_crash")))
        machine.fence(replica)
        machine.elect_by_rule()
    elif draw < 0.9:
        machine.start(replica)
    elif draw < 0.95:
        machine.elect(replica)
    else:
        machine.tick(20_000)
        machine.check_lag()


def events_of(facts: list[ev.Fact], partition: int) -> list[ev.Event]:
    """The facts as one trace of a topic partition."""
    source = ev.Source("server.log", 1)
    return [
        ev.Event(f"{partition}-{n}", "trace", "cluster", "t", "", partition, n, fact, n, "traced",
                 source)
        for n, fact in enumerate(facts)
    ]  # fmt: skip


def frame_of(partitions: list[list[ev.Event]]) -> pd.DataFrame:
    """The events as the columns in which Spark hands them to the fold."""
    codes = {kind: n for n, kind in enumerate(contracts.event_kinds())}
    rows = [_row(event, codes) for events in partitions for event in events]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _row(event: ev.Event, codes: dict[str, int]) -> tuple[Any, ...]:
    fact, kind = event.fact, event.fact.kind
    name = f"{event.cluster_id}/{event.topic}/{event.topic_id}/{event.partition}"
    numbers, word, rest = [ABSENT] * NUMBERS, None, None
    if kind in ARGUMENTS:
        names, text = ARGUMENTS[kind]
        found = [getattr(fact, n) for n in names]
        numbers[: len(found)] = [ABSENT if v is None else v for v in found]
        word = text and getattr(fact, text)
    else:
        known = {k: v for k, v in wire.to_row(event).items() if k in wire.FACT_COLUMNS}
        rest = json.dumps(known)
    return (
        name, 0, event.trace_id, event.sequence, event.event_id, codes[kind], event.observed_at,
        True, "server.log", 1, ABSENT, *numbers, word, rest, 0,
    )  # fmt: skip


def from_columns(frame: pd.DataFrame) -> ShardFold:
    """The path of the jobs."""
    shard = ShardFold()
    shard.take(frame)
    return shard


def counted_columns(frame: pd.DataFrame) -> dict[int, int]:
    """The yardstick of that path: reads each row of the same columns and counts it by kind."""
    counts = dict.fromkeys(range(len(contracts.event_kinds())), 0)
    columns = [column.tolist() for column in Rows(frame).step_columns]
    for kind, _, _, *_ in zip(*columns, strict=True):
        counts[kind] += 1
    return counts


def watched(events: list[ev.Event]) -> State:
    """The path of the laptop tool, whose events are in order already: one partition's state."""
    state = _new_state(events)
    for event in events:
        try:
            risk_watch.before(state, event)
            fold_event(state, event)
            risk_watch.after(state, event)
        except fold.Rejected:
            continue
    return state


def from_events(partitions: list[list[ev.Event]]) -> int:
    """The fold alone, without a look at what a failure would cost; how many were refused."""
    refused = 0
    for events in partitions:
        state = _new_state(events)
        for event in events:
            try:
                fold_event(state, event)
            except fold.Rejected:
                refused += 1
    return refused


def _new_state(events: list[ev.Event]) -> State:
    e = events[0]
    return fold.new_state(e.cluster_id, e.topic, e.topic_id, e.partition)


def counted_events(partitions: list[list[ev.Event]]) -> dict[str, int]:
    """The yardstick of that path."""
    counts = dict.fromkeys(ev.FACT_TYPES, 0)
    for events in partitions:
        for event in events:
            counts[event.fact.kind] += 1
    return counts


def best(work: Callable[[], object], rounds: int) -> float:
    """The least CPU seconds of some rounds."""
    return min(_seconds(work) for _ in range(rounds))


def _seconds(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def speed(name: str, partitions: list[list[ev.Event]], rounds: int) -> float:
    """Prints the line of one kind of traffic; events per second from columns."""
    total = sum(len(events) for events in partitions)
    frame = frame_of(partitions)
    ours = best(lambda: from_columns(frame), rounds)
    hand = best(lambda: counted_columns(frame), rounds)
    print(f"{name}: {total:,} events of {len(partitions)} partitions")
    print(_line("from columns", total, ours, hand))
    hand = best(lambda: counted_events(partitions), rounds)
    again = best(lambda: [watched(events) for events in partitions], rounds)
    print(_line("from Event objects", total, again, hand))
    alone = best(lambda: from_events(partitions), rounds)
    print(_line("the fold alone", total, alone, hand))
    print(_after_the_fold(partitions[:ANSWERED]))
    return total / ours


def _after_the_fold(partitions: list[list[ev.Event]]) -> str:
    """What answers and encoding cost beside the folding of the same events from columns."""
    frame, total = frame_of(partitions), sum(map(len, partitions))
    shard = ShardFold()
    folding = _seconds(lambda: shard.take(frame))
    answering = _seconds(lambda: list(shard.outcome()))
    encoding = _seconds(shard.encode)
    lines = [
        f"  {what:18} {total / seconds:11,.0f} events/s, {seconds / folding:5.2f} times the CPU of "
        "folding them from columns"
        for what, seconds in (("answers", answering), ("encoded state", encoding))
    ]
    return "\n".join(lines)


def _line(path: str, total: int, ours: float, counting: float) -> str:
    return (
        f"  {path:18} {total / ours:11,.0f} events/s, {ours / counting:5.1f} times the CPU of "
        f"counting them ({total / counting:,.0f} events/s)"
    )


def elections(number: int) -> list[ev.Fact]:
    """A partition whose leadership goes round, each leader committing one append."""
    facts = beginning()[:4]
    for leader_epoch in range(number):
        leader, end = REPLICAS[leader_epoch % 3], 3 * leader_epoch
        facts += [
            ev.LeadershipRecorded(leader, leader_epoch, REPLICAS, leader_epoch,
                                  "clean" if leader_epoch else "initial", REPLICAS),
            ev.BecameLeader(leader, leader_epoch, end, end, leader_epoch),
            ev.LeaderAppended(leader, end, end + 3, leader_epoch),
        ]  # fmt: skip
        for follower in (r for r in REPLICAS if r != leader):
            facts += [
                ev.BecameFollower(follower, leader_epoch, leader, end, end, leader_epoch),
                ev.FollowerAppended(follower, end, end + 3, leader_epoch),
            ]
        facts += [
            ev.HighWatermarkAdvanced(leader, end + 3),
            ev.RecordsAcknowledged(end, end + 3, "all", leader_epoch),
        ]
    return facts


def judged_elections() -> Iterator[str]:
    """One line for each number of elections: CPU of folding and of judging one partition."""
    for grade, number in product(("traced", "forensic"), ELECTIONS):
        events = [replace(event, grade=grade) for event in events_of(elections(number), 0)]
        began = time.process_time()
        state = watched(events)
        folding = time.process_time() - began
        judging = best(lambda: answer(state), 3)  # noqa: B023
        yield (
            f"{number:6,} elections, {grade:8}: folded in {folding:6.2f} s, judged in "
            f"{judging * 1000:6.1f} ms ({judging / number * 1e6:.0f} microseconds an election), "
            f"{judging / folding:.1f} times the CPU of folding them"
        )


def sizes() -> Iterator[tuple[str, int]]:
    """(what, bytes of one partition's encoded state) as a partition's log grows."""
    for records in RECORDS:
        shard = from_columns(frame_of([events_of(steady(1_000, records // 1_000), 0)]))
        (part,) = shard.live.values()
        assert part.state is not None
        yield f"{records:,} records, one leader epoch", len(encode(part.state))
    for commands in (250, 500, 1_000):
        shard = from_columns(frame_of([events_of(stormy(0, commands), 0)]))
        (part,) = shard.live.values()
        assert part.state is not None
        epochs = len({term.leader_epoch for term in part.state.history.terms})
        yield f"stormy, {epochs} leader epochs", len(encode(part.state))


def profile(frame: pd.DataFrame) -> None:
    """Prints where the time of the columns goes."""
    profiler = cProfile.Profile()
    profiler.runcall(from_columns, frame)
    pstats.Stats(profiler).sort_stats("tottime").print_stats(18)


def main(argv: list[str]) -> int:
    """Prints the figures; 1 where the steady figure misses its aim or a state grows."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--events", type=int, default=300_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--profile", action="store_true", help="where the time goes, too")
    flags = parser.parse_args(argv)
    gc.set_threshold(GARBAGE_AFTER)  # As every host does.
    quiet = [events_of(steady(flags.events // 90, 10), n) for n in range(10)]
    storm = [events_of(stormy(n, 400), n) for n in range(max(1, flags.events // 1_500))]
    rate = speed("steady", quiet, flags.rounds)
    speed("stormy", storm, flags.rounds)
    if flags.profile:
        profile(frame_of(quiet))
        profile(frame_of(storm))
    for line in judged_elections():
        print(line)
    found = list(sizes())
    for what, size in found:
        print(f"encoded state of a partition: {size:6,} bytes ({what})")
    missed = f"{AIM / rate:.1f} times too slow" if rate < AIM else "reached"
    print(f"aim of {AIM:,} events/s of steady traffic: {missed}")
    steady_sizes = [size for _, size in found[: len(RECORDS)]]
    return int(rate < AIM or max(steady_sizes) > 1.1 * min(steady_sizes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
