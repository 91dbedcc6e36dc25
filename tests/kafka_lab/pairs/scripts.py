"""Fault scripts: one order of faults each, whose numbers a seed draws before the run begins."""

import itertools
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.kafka_lab import scenarios, tap
from tests.kafka_lab.cluster import Plan
from tests.kafka_lab.pairs.faults import Faults
from tests.kafka_lab.pairs.lives import Life, grid
from tests.kafka_lab.versions import Version


@dataclass(frozen=True)
class Draw:
    """What a seed decides. before, alone, after: batches; count: records of each; clean: whether
    followers are stopped, not killed; first, second: who starts again in which order."""

    before: int
    alone: int
    after: int
    count: int
    clean: bool
    one_at_a_time: bool
    first: int
    second: int
    copies: bool

    @classmethod
    def of(cls, script: str, seed: int) -> "Draw":
        chance = random.Random(f"{script} {seed}")
        first = chance.choice((2, 3))
        return cls(
            before=chance.randint(2, 6),
            alone=chance.randint(1, 4),
            after=chance.randint(1, 3),
            count=chance.randint(1, 3),
            clean=chance.random() < 0.5,
            one_at_a_time=chance.random() < 0.5,
            first=first,
            second=5 - first,
            copies=chance.random() < 0.7,
        )


FILLER = "filler"
Steps = Callable[[Faults, Draw], None]
Planned = Callable[[Version], Plan]


@dataclass(frozen=True)
class Script:
    """releases: pairs whose runs are held against each other, of which a seed draws one; topics:
    what they live by; together: all in one run."""

    name: str
    steps: Steps
    releases: tuple[tuple[str, str], ...]
    topics: Sequence[tuple[int, bool, str, int]]
    plan: Planned = Plan
    together: bool = True
    left_out: tuple[tuple[str, ...], ...] = ((),)


SCRIPTS: dict[str, Script] = {}


def script(
    releases: tuple[tuple[str, str], ...],
    topics: Sequence[tuple[int, bool, str, int]],
    plan: Planned = Plan,
    *,
    together: bool = True,
    left_out: tuple[tuple[str, ...], ...] = ((),),
) -> Callable[[Steps], Steps]:
    def add(steps: Steps) -> Steps:
        name = steps.__name__
        SCRIPTS[name] = Script(name, steps, releases, topics, plan, together, left_out)
        return steps

    return add


def _four_brokers(version: Version) -> Plan:
    return Plan(version, brokers=(1, 2, 3, 4))


def _others_go(faults: Faults, draw: Draw) -> None:
    """Brokers 2 and 3 go, together or one after the other."""
    if draw.one_at_a_time or draw.clean:
        for broker in (draw.first, draw.second):
            (faults.stop if draw.clean else faults.kill)(broker)
            if draw.one_at_a_time:
                faults.write(1, draw.count)
    else:
        faults.kill(2, 3)


ANY = tuple(itertools.combinations(("0.10.2.2", "1.1.1", "2.8.2", "3.9.1", "4.1.1", "4.3.0"), 2))


@script(
    ANY, grid(3, more=4), _four_brokers, left_out=((), ("restart.2",)),
)  # fmt: skip
def last_leader_dies(faults: Faults, draw: Draw) -> None:
    """The ISR shrinks to broker 1, which dies; another one starts before it."""
    faults.create([1, 2, 3, 4])
    faults.write(draw.before, draw.count)
    time.sleep(1)
    _others_go(faults, draw)
    faults.write(draw.alone, draw.count)
    time.sleep(1)
    faults.kill(1)
    faults.start(draw.first)
    faults.write(draw.after, draw.count)
    faults.start(draw.second)
    faults.write(1, draw.count)
    faults.start(1)
    faults.write(1, draw.count)


@script((("2.8.2", "3.9.1"), ("3.9.1", "4.3.0")), grid(3), left_out=((), ("election",)))
def election_forced(faults: Faults, draw: Draw) -> None:
    """The ISR shrinks to broker 1, which dies; somebody forces the election of another one."""
    faults.create([1, 2, 3])
    faults.write(draw.before, draw.count)
    time.sleep(1)
    _others_go(faults, draw)
    faults.write(draw.alone, draw.count)
    time.sleep(1)
    faults.kill(1)
    faults.start(draw.first)
    faults.force()
    faults.write(draw.after, draw.count)
    faults.start(1)
    faults.write(1, draw.count)
    faults.start(draw.second)
    faults.write(1, draw.count)


@script(
    (
        ("4.1.1", "4.1.1-elr"),
        ("4.3.0", "4.3.0-elr"),
        ("3.9.1", "4.1.1-elr"),
        ("3.9.1", "4.3.0-elr"),
    ),
    grid(3),
)
def last_replica_standing(faults: Faults, draw: Draw) -> None:
    """KIP-966: the ISR shrinks to broker 1, which loses its disk's tail and is back first."""
    faults.create([1, 2, 3])
    faults.write(draw.before, draw.count)
    faults.mark(1)
    faults.write(draw.alone, draw.count)
    time.sleep(1)
    _others_go(faults, draw)
    faults.write(1, draw.count)
    faults.kill(1)
    faults.cut(1)
    faults.start(1)
    faults.write(draw.after, draw.count)
    faults.start(draw.first)
    faults.write(1, draw.count)
    faults.start(draw.second)
    faults.write(1, draw.count)


@script(ANY, grid(3))
def leader_alone_had_it(faults: Faults, draw: Draw) -> None:
    """The followers stand still for less than their session; the leader writes on and dies."""
    faults.create([1, 2, 3])
    faults.lab.cluster.create_topic(FILLER, {0: [1, 2, 3]})
    faults.write(draw.before, draw.count)
    time.sleep(1)
    cluster = faults.lab.cluster
    for broker in (2, 3):
        cluster.freeze(broker)
    # Their fetches that wait at the leader are answered with this, and with nothing of the topics.
    faults.lab.producer("f", FILLER).must(1, acks="1")
    faults.write(1, draw.count * draw.alone, 1.0)
    cluster.kill(1)
    for broker in (2, 3):
        cluster.resume(broker)
    faults.taken_note([1])
    faults.write(draw.after, draw.count)
    faults.start(1)
    faults.write(1, draw.count)


# With min ISR 2 nothing is written meanwhile, and a broker of 0.10 whose log is longer exits then:
# with all its partitions.
TAKES_WRITES = [topic for topic in grid(2) if topic[0] == 1]


@script((("0.10.2.2", "1.1.1"), ("0.10.2.2", "2.8.2")), TAKES_WRITES, scenarios.two_brokers)
def both_die_follower_short(faults: Faults, draw: Draw) -> None:
    """KIP-101, scenario 2: both lose power, the follower its log's end, and it is back first."""
    faults.create([1, 2])
    faults.write(draw.before, draw.count)
    faults.mark(2)
    faults.write(draw.alone, draw.count)
    time.sleep(2)
    faults.lab.cluster.kill(1, 2)
    faults.cut(2)
    faults.gone(1)
    faults.start(2)
    faults.write(draw.after, draw.count)
    faults.start(1)
    faults.write(1, draw.count)


@script((("1.1.1", "2.8.2"), ("2.8.2", "3.9.1")), grid(2), scenarios.two_brokers)
def both_die_leader_short(faults: Faults, draw: Draw) -> None:
    """Both lose power, the leader its log's end, and it is back first."""
    faults.create([1, 2])
    faults.write(draw.before, draw.count)
    faults.mark(1)
    faults.write(draw.alone, draw.count)
    time.sleep(2)
    faults.lab.cluster.kill(1, 2)
    faults.cut(1)
    faults.gone(2)
    faults.start(1)
    faults.write(draw.after, draw.count)
    faults.start(2)
    faults.write(1, draw.count)


@script((("1.1.1", "2.3.1"), ("1.1.1", "2.8.2")), grid(2), scenarios.leader_tapped)
def two_quick_elections(faults: Faults, draw: Draw) -> None:
    """KIP-279: each of two leaders writes alone and dies; the first one is back first."""
    faults.create([1, 2])
    faults.write(draw.before, draw.count)
    time.sleep(2)
    first = faults.lab.cluster.taps[1]
    first.hold(tap.FETCH)
    first.wait_held()
    faults.write(1, draw.count * draw.alone, 1.0)
    faults.lab.cluster.kill(1)
    first.release()
    faults.taken_note([1])
    faults.write(draw.after, draw.count)
    faults.kill(2)
    faults.start(1)
    faults.write(draw.after + 1, draw.count)
    faults.start(2)
    faults.write(1, draw.count)


@script(
    (("0.10.2.2", "1.1.1"), ("0.10.2.2", "2.8.2")), [(1, False, "all", 2), (2, False, "all", 2)],
    scenarios.held_follower, together=False,
)  # fmt: skip
def cut_to_an_old_high_watermark(faults: Faults, draw: Draw) -> None:
    """KIP-101, scenario 1: the follower restarts with its high watermark one behind; the leader
    dies before the follower has fetched again."""
    cluster = faults.lab.cluster
    scenarios.controller_on(faults.lab, 1)
    faults.create([2, 1])
    (topic,) = faults.topics
    faults.write(draw.before + draw.alone + 1)
    faults.lab.wait_checkpointed(1, draw.before + draw.alone, topic=topic)
    time.sleep(0.6)
    cluster.kill(1)
    cluster.taps[2].hold(tap.FETCH, tap.OFFSET_FOR_LEADER_EPOCH)
    if draw.copies:
        faults.lab.capture.copy_disk(1, "before-restart")
    cluster.start_broker(1)
    time.sleep(3)
    faults.kill(2)
    cluster.taps[2].release()
    faults.write(draw.after)
    faults.start(2)
    faults.write(1)


@dataclass(frozen=True)
class Arm:
    """One run to be made: a script under one release, with what is left out, and its topics."""

    script: Script
    seed: int
    version: str
    left_out: tuple[str, ...] = ()
    topics: Sequence[tuple[int, bool, str, int]] = field(default=())
    repeat: int = 0

    @property
    def name(self) -> str:
        only = "" if self.script.together else f"-m{self.topics[0][0]}"
        left_out = "".join(f"-no-{name}" for name in self.left_out)
        return f"{self.version}{only}{left_out}-{self.repeat}"

    @property
    def lives(self) -> list[Life]:
        release, _, elr = self.version.partition("-")
        eligible = bool(elr) if Version(release).at_least(4, 0) else None
        return [
            Life(release, m, unclean, acks, replicas, eligible, self.left_out)
            for m, unclean, acks, replicas in self.topics
        ]

    def run(self, directory: Path) -> Faults:
        """The script on a cluster of its own; its evidence and RUN_FILE lie in the directory."""
        lives = self.lives
        plan = self.script.plan(Version(lives[0].kafka))
        plan.eligible_leader_replicas = lives[0].eligible
        draw = Draw.of(self.script.name, self.seed)
        faults = Faults(plan, lives, directory, copies=draw.copies)
        with faults.lab:
            faults.lab.note(f"{self.script.name} seed {self.seed}: {draw}")
            self.script.steps(faults, draw)
            faults.finish()
        faults.save(script=self.script.name, seed=self.seed, arm=self.name)
        return faults
