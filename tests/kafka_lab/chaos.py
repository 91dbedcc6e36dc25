"""Random faults by a seed: kills, freezes, zombies, power losses, elections, moves, new lives.

The seed fixes the plan, not the timing of the brokers' threads: the same seed gives another
history each time. What is worth keeping is the capture.
"""

import random
import time
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.kafka_lab import tap, wire
from tests.kafka_lab.capture import Capture
from tests.kafka_lab.cluster import Cluster, Plan
from tests.kafka_lab.experiment import Experiment
from tests.kafka_lab.logs_on_disk import checkpoint_entries, cut_suffix, read_batches, records
from tests.kafka_lab.processes import LabTimeout
from tests.kafka_lab.producer import Batch, Load, Producer
from tests.kafka_lab.tape import Tape
from tests.kafka_lab.transactions import (
    TRANSACTIONS,
    TransactionalLoad,
    TransactionalProducer,
)
from tests.kafka_lab.versions import Version

LABELS = ("before-restart", "copy", "2nd", "after-crash", "x")
BROKERS = (1, 2, 3)
# Of these the rules by which the truth is worked out are the same in both releases.
UPGRADES = {"1.1.1": "2.8.2", "3.9.1": "4.1.1", "4.1.1": "4.3.0"}
ZONES = ("Asia/Kolkata", "America/New_York", "Pacific/Auckland")
# What a clock shows that was set back or ahead.
CLOCKS = ("GMT-05:00", "GMT-01:00", "GMT-00:30", "GMT+01:00", "GMT+03:00")
RETENTION_MS = 20_000
AS_BEFORE = {"inter.broker.protocol.version": "1.1", "log.message.format.version": "1.1"}


@dataclass
class ChaosPlan:
    """What one seed decides in advance; chances are per fault, lives are of the topic."""

    seed: int
    version: Version
    seconds: float
    assignment: dict[int, list[int]]
    min_insync_replicas: int
    unclean: bool
    eligible_leader_replicas: bool
    acks: list[str]
    grade: str
    cut_chance: float
    copy_chance: float
    live_copy_chance: float
    empty_disk_chance: float
    reassign_chance: float
    elect_chance: float
    zombie_chance: float
    hold_chance: float
    outage_chance: float
    lives: int
    keys: int | None
    transactional: bool
    idempotent: bool
    retries: int
    names: str
    small_segments: bool
    log_dirs: int
    directory_chance: float
    # Orders of an operator: settings changed, records deleted, an unclean election, more replicas
    # or fewer.
    order_chance: float
    # The release that brokers are upgraded to, some at each start; None: they stay.
    upgrade_to: str | None
    # Whether some go back to the first release, too.
    downgrades: bool
    # Whether what power took is left as zeros.
    zeros: bool
    # Whose machine is in another time zone, in which its logs print the time.
    zones: dict[int, str]
    # At a start: that the machine's clock was set; that a directory lies under another path; that
    # the directories are those of an earlier stop.
    clock_chance: float
    move_chance: float
    roll_back_chance: float
    # Whether old records go by themselves.
    retention: bool
    settings: dict[str, str] = field(default_factory=dict)

    @classmethod
    def from_seed(cls, seed: int, version: Version) -> "ChaosPlan":
        chance = random.Random(f"{version.name}-{seed}")
        disks = random.Random(f"{version.name}-{seed}-directories")
        orders = random.Random(f"{version.name}-{seed}-orders")
        machines = random.Random(f"{version.name}-{seed}-machines")
        handled = random.Random(f"{version.name}-{seed}-handled")
        factor = chance.choice((2, 2, 3, 3))
        partitions = chance.choice((1, 2))
        spread = {partition: chance.sample(BROKERS, factor) for partition in range(partitions)}
        idempotent = version.magic == 2 and chance.random() < 0.4
        names = chance.choice(("payload_id", "sequence" if idempotent else "payload_id") * 3)
        keys = chance.choice((5, 12)) if chance.random() < 0.25 else None
        return cls(
            seed=seed,
            version=version,
            seconds=chance.choice((20, 30, 40)),
            assignment=spread,
            min_insync_replicas=chance.choice((1, 2, 3) if factor == 3 else (1, 1, 2)),
            unclean=chance.random() < 0.4,
            eligible_leader_replicas=chance.random() < 0.5,
            acks=chance.choice((["all"], ["all", "1"], ["all", "all", "1"], ["all", "1", "0"])),
            grade="trace" if chance.random() < 0.15 else "default",
            cut_chance=chance.choice((0.0, 0.3, 0.8)),
            copy_chance=chance.choice((0.5, 1.0)),
            live_copy_chance=chance.choice((0.0, 0.1)),
            empty_disk_chance=chance.choice((0.0, 0.0, 0.25)),
            reassign_chance=chance.choice((0.0, 0.0, 0.15)),
            elect_chance=chance.choice((0.0, 0.2, 0.35)),
            zombie_chance=chance.choice((0.0, 0.15, 0.3)),
            hold_chance=chance.choice((0.0, 0.0, 0.25)),
            outage_chance=chance.choice((0.0, 0.0, 0.12)),
            lives=chance.choice((1, 1, 1, 2)),
            keys=keys,
            transactional=version.magic == 2 and chance.random() < 0.25,
            idempotent=idempotent,
            retries=chance.choice((0, 0, 3)),
            names="offset" if keys is None and chance.random() < 0.1 else names,
            small_segments=keys is not None or chance.random() < 0.3,
            log_dirs=disks.choice((1, 2)) if version.at_least(1, 0) else 1,
            directory_chance=disks.choice((0.0, 0.2)),
            order_chance=orders.choice((0.0, 0.2)) if version.at_least(0, 11) else 0.0,
            upgrade_to=orders.choice((None, UPGRADES.get(version.name))),
            downgrades=machines.random() < 0.5,
            zeros=machines.random() < 0.5,
            zones={machines.choice(BROKERS): machines.choice(ZONES)}
            if machines.random() < 0.4
            else {},
            clock_chance=handled.choice((0.0, 0.0, 0.5)),
            move_chance=handled.choice((0.0, 0.0, 0.4)),
            roll_back_chance=handled.choice((0.0, 0.0, 0.5)),
            retention=keys is None and handled.random() < 0.25,
            settings={"delete.topic.enable": "true"} if not version.kraft else {},
        )

    def topic_settings(self) -> dict[str, object]:
        """Logs of several segments; by size where a size that small is allowed."""
        found: dict[str, object] = {
            "min_insync_replicas": self.min_insync_replicas,
            "unclean_leader_election_enable": str(self.unclean).lower(),
        }
        if (self.small_segments or self.retention) and self.version.at_least(4, 0):
            found["segment_ms"] = 4000
        elif self.small_segments or self.retention:
            found["segment_bytes"] = 2000
        if self.retention:
            found["retention_ms"] = RETENTION_MS
        if self.keys is not None:
            found |= {"cleanup_policy": "compact", "min_cleanable_dirty_ratio": "0.01"}
        return found

    def broker_settings(self) -> dict[str, str]:
        settings = {**self.settings, **(AS_BEFORE if self.upgrade_to == "2.8.2" else {})}
        if self.keys is None and not self.retention:
            return settings
        cleaner = {"log.cleaner.backoff.ms": "1000", "log.retention.check.interval.ms": "1000"}
        if self.version.at_least(3, 9):
            cleaner["log.initial.task.delay.ms"] = "500"
        return {**settings, **cleaner}


@dataclass
class Zombie:
    """A frozen leader and what waits in its socket to be served when it wakes up."""

    producer: Producer
    waiting: list[Batch]


class Chaos:
    """One run of a plan on a cluster that is up."""

    def __init__(self, plan: ChaosPlan, experiment: Experiment, calm: float = 0.0) -> None:
        self.plan = plan
        self.experiment = experiment
        self.cluster: Cluster = experiment.cluster
        self.capture: Capture = experiment.capture
        self.chance = random.Random(plan.seed)
        self.killed: set[int] = set()
        self.down_since: dict[int, float] = {}
        self.frozen: set[int] = set()
        self.held: set[int] = set()
        self.without_directory: set[int] = set()
        self.zombies: dict[int, Zombie] = {}
        self.older: dict[int, Path] = {}
        self.loads: list[Load | TransactionalLoad] = []
        self.lives_left = plan.lives - 1
        self.calm = calm

    def run(self) -> None:
        began = time.monotonic()
        while (passed := time.monotonic() - began) < self.plan.seconds:
            time.sleep(self.chance.choice((0.3, 0.6, 1.5, 3.0, 5.0)))
            if self.lives_left and passed > self.plan.seconds / 2:
                self._new_life()
            else:
                self._one_fault()
            if self.calm and self.chance.random() < 0.5:
                self.heal()
                time.sleep(self.calm)

    def heal(self) -> None:
        """Everybody up and nobody frozen; those that were down are copied before their start."""
        for broker in sorted(self.held):
            self._let_go(broker)
        for broker in sorted(self.frozen):
            self._resume(broker)
        self._notice_the_dead()
        for broker in sorted(self.without_directory - self.down_since.keys()):
            self._terminate(broker)
        for broker in sorted(self.down_since):
            self._start(broker)
        for broker in self.cluster.brokers:
            self._bring_up(broker)
        for partition in self.plan.assignment:
            try:
                state = self.cluster.state("t", partition)
                replicas = self.plan.assignment[partition] if state is None else state.replicas
                self.cluster.wait_for_isr("t", partition, *replicas, seconds=45)
            except LabTimeout:
                # Lawful: with unclean elections off nobody may be allowed to lead.
                self.cluster.journal.write(action="isr_not_full", partition=partition)

    def _bring_up(self, broker: int) -> None:
        """A broker frozen while it starts may find its session gone, and end: started again."""
        for _ in range(3):
            try:
                self.cluster.wait_up(broker)
                return
            except ChildProcessError:
                self._notice_the_dead()
                self._start(broker)
        self.cluster.wait_up(broker)

    def _notice_the_dead(self) -> None:
        for broker in self.cluster.brokers:
            if broker not in self.down_since and not self.cluster.running(broker):
                self.cluster.journal.write(action="ended_by_itself", broker=broker)
                self._wake(broker)
                self.down_since[broker] = time.monotonic()

    def _one_fault(self) -> None:
        self._notice_the_dead()
        out = sorted(self.frozen | self.down_since.keys())
        # Somebody should be up most of the time, else nothing is written that could be lost.
        rescue = len(out) > 1 and self.chance.random() < 0.7
        broker = self.chance.choice(out if rescue else self.cluster.brokers)
        for chance, fault in (
            (self.plan.live_copy_chance, lambda: self.capture.copy_disk(broker, "live")),
            (self.plan.reassign_chance, self._reassign),
            (self.plan.elect_chance, self._elect),
            (self.plan.outage_chance, self._outage),
            (self.plan.directory_chance, lambda: self._fail_directory(broker)),
            (self.plan.order_chance, self._order),
        ):
            if self.chance.random() < chance:
                fault()
                return
        if broker in self.held:
            self._let_go(broker)
        if broker in self.frozen:
            self._resume(broker)
        elif broker in self.down_since:
            self._start(broker)
        elif self.chance.random() < self.plan.zombie_chance:
            self._zombie()
        elif self.chance.random() < self.plan.hold_chance:
            self._hold(broker)
        else:
            self._stop_somehow(broker)

    def _stop_somehow(self, broker: int) -> None:
        faults: tuple[Callable[[int], None], ...]
        faults = (self._kill, self._kill, self._terminate, self._freeze)
        self.chance.choice(faults)(broker)

    def _kill(self, broker: int) -> None:
        self.cluster.kill(broker)
        self._wake(broker)
        self.killed.add(broker)
        self.down_since[broker] = time.monotonic()

    def _fail_directory(self, broker: int) -> None:
        """One of its log directories fails; with its last one a broker ends by itself."""
        if broker in self.down_since or broker in self.without_directory:
            return
        self.without_directory.add(broker)
        self.cluster.fail_directory(broker, self.chance.randrange(self.plan.log_dirs))

    def _outage(self) -> None:
        """The power goes for several at once."""
        up = [broker for broker in self.cluster.brokers if broker not in self.down_since]
        if not up:
            return
        struck = self.chance.sample(up, self.chance.choice((len(up), max(1, len(up) - 1))))
        self.cluster.kill(*struck)
        for broker in struck:
            self._wake(broker)
            self.killed.add(broker)
            self.down_since[broker] = time.monotonic()

    def _wake(self, broker: int) -> None:
        """It is no more: nor is what waited for it."""
        self.frozen.discard(broker)
        self._finish(self.zombies.pop(broker, None), broker)

    def _terminate(self, broker: int) -> None:
        if not self.cluster.terminate(broker, seconds=15):
            self.killed.add(broker)
        self.down_since[broker] = time.monotonic()

    def _freeze(self, broker: int) -> None:
        self.cluster.freeze(broker)
        self.frozen.add(broker)

    def _resume(self, broker: int) -> None:
        self.frozen.discard(broker)
        self.cluster.resume(broker)
        self._finish(self.zombies.pop(broker, None), broker)

    def _zombie(self) -> None:
        """A leader is frozen with requests in its socket, so that it serves them when deposed."""
        partition = self.chance.choice(sorted(self.plan.assignment))
        leader = self.cluster.leader("t", partition)
        if leader not in self.cluster.answering() or leader is None:
            return
        producer = self.experiment.producer("zombie")
        producer.keys = self.plan.keys
        producer.timeout_ms = 3_000
        acks = self.chance.choice(("1", "all", "0"))
        if producer.send(1, acks=acks, partition=partition, broker=leader)[0].error is not None:
            return
        self._freeze(leader)
        ids = [self.experiment.acks.new_ids("z", 1) for _ in range(self.chance.choice((1, 4)))]
        waiting = [producer.start(leader, one, acks, partition) for one in ids]
        self.zombies[leader] = Zombie(producer, waiting)

    def _finish(self, zombie: Zombie | None, broker: int) -> None:
        if zombie is None:
            return
        for batch in zombie.waiting:
            zombie.producer.finish(broker, batch)
        zombie.producer.close()

    def _hold(self, broker: int) -> None:
        """Its followers' fetches do not reach this broker any more."""
        self.cluster.taps[broker].hold(tap.FETCH)
        self.held.add(broker)
        self.cluster.journal.write(action="hold_fetches", broker=broker)

    def _let_go(self, broker: int) -> None:
        self.held.discard(broker)
        self.cluster.taps[broker].release()
        self.cluster.journal.write(action="release_fetches", broker=broker)

    def _start(self, broker: int) -> None:
        if broker in self.killed and self.chance.random() < self.plan.cut_chance:
            self._cut(broker)
        if broker in self.killed and self.chance.random() < self.plan.empty_disk_chance:
            self.cluster.replace_disk(broker, self.chance.randrange(self.plan.log_dirs))
        self._handle(broker)
        self.experiment.sampler.look()
        if self.chance.random() < self.plan.copy_chance:
            self.capture.copy_disk(broker, self.chance.choice(LABELS))
        self.killed.discard(broker)
        self.without_directory.discard(broker)
        del self.down_since[broker]
        if self.plan.upgrade_to is not None and self.chance.random() < 0.5:
            back = self.plan.downgrades and broker in self.cluster.releases
            release = self.plan.version if back else Version(self.plan.upgrade_to)
            self.cluster.upgrade(broker, release)
        self.cluster.start_broker(broker, wait=False)

    def _handle(self, broker: int) -> None:
        """What an operator does to a machine whose broker is down, or its clock by itself."""
        if self.chance.random() < self.plan.clock_chance:
            self.cluster.set_clock(broker, self.chance.choice(CLOCKS))
        if self.chance.random() < self.plan.move_chance:
            self.cluster.move_directory(broker, self.chance.randrange(self.plan.log_dirs))
        if broker in self.older and self.chance.random() < self.plan.roll_back_chance:
            self._roll_back(broker, self.older[broker])
        elif broker not in self.older and self.plan.roll_back_chance:
            self.older[broker] = self.cluster.directory / f"older-{broker}"
            self.cluster.save_directories(broker, self.older[broker])

    def _roll_back(self, broker: int, older: Path) -> None:
        """To what its directories were at its first stop in this life of the topic."""
        self.experiment.sampler.look()
        before = self._held(broker)
        self.cluster.roll_back(broker, older)
        after = self._held(broker)
        for partition, held in before.items():
            removed = sorted(held - after.get(partition, set()))
            if removed:
                self.cluster.journal.write(
                    action="rolled_back", broker=broker, partition=partition, removed=removed
                )

    def _held(self, broker: int) -> dict[int, set[str]]:
        return {
            partition: {
                held.payload_id
                for data in self.cluster.data(broker)
                for batch in read_batches(data / f"t-{partition}")
                for held in records(batch)
            }
            for partition in self.plan.assignment
        }

    def _reassign(self) -> None:
        """Moves a partition to other brokers, if the controller takes the order just now."""
        partition = self.chance.choice(sorted(self.plan.assignment))
        factor = len(self.plan.assignment[partition])
        replicas = self.chance.sample(self.cluster.brokers, factor)
        try:
            self.cluster.reassign("t", partition, replicas, seconds=1)
        except wire.Refused:
            return

    def _elect(self) -> None:
        """Another replica becomes the preferred one, and the preferred one is to lead."""
        partition = self.chance.choice(sorted(self.plan.assignment))
        replicas = list(self.plan.assignment[partition])
        self.chance.shuffle(replicas)
        try:
            if replicas != self.plan.assignment[partition]:
                self.cluster.reassign("t", partition, replicas, seconds=1)
            self.cluster.elect_preferred("t", partition, seconds=1)
        except wire.Refused:
            return

    def _order(self) -> None:
        """What an operator does to a topic in use, or in need."""
        partition = self.chance.choice(sorted(self.plan.assignment))
        orders: list[Callable[[int], None]] = [self._alter, self._alter, self._change_factor]
        if self.plan.keys is None:
            orders.append(self._delete_records)
        if self.plan.version.at_least(1, 0):
            orders.append(self._grow)
        if self.plan.version.at_least(1, 1) and self.plan.log_dirs > 1:
            orders += [self._move_replica, self._move_replica]
        if self.plan.version.at_least(2, 4):
            orders.append(self._elect_unclean)
        with suppress(wire.Refused):
            self.chance.choice(orders)(partition)

    def _alter(self, _partition: int) -> None:
        if self.chance.random() < 0.5:
            self.cluster.alter_topic("t", 1, min_insync_replicas=self.chance.choice((1, 2)))
        else:
            permitted = self.chance.choice(("true", "false"))
            self.cluster.alter_topic("t", 1, unclean_leader_election_enable=permitted)

    def _change_factor(self, partition: int) -> None:
        factor = self.chance.choice((2, 3))
        replicas = self.chance.sample(self.cluster.brokers, factor)
        self.cluster.reassign("t", partition, replicas, seconds=1)

    def _delete_records(self, partition: int) -> None:
        leader = self.cluster.leader("t", partition)
        known = 0 if leader is None else self.experiment.checkpointed(leader, partition=partition)
        if known:
            self.cluster.delete_records("t", partition, self.chance.randint(1, known))

    def _grow(self, _partition: int) -> None:
        """One partition more, written to from then on."""
        if len(self.plan.assignment) > 3:
            return
        factor = len(self.plan.assignment[0])
        self.cluster.create_partitions("t", [self.chance.sample(BROKERS, factor)], seconds=1)
        self.plan.assignment = self.cluster.assignments["t"]
        self.loads += _loads(self.plan, self.experiment, (max(self.plan.assignment),))

    def _move_replica(self, partition: int) -> None:
        held_by = sorted({*self.plan.assignment[partition]} & {*self.cluster.answering()})
        if held_by:
            number = self.chance.randrange(self.plan.log_dirs)
            self.cluster.move_replica(self.chance.choice(held_by), "t", partition, number)

    def _elect_unclean(self, partition: int) -> None:
        self.cluster.elect_unclean("t", partition, seconds=1)

    def _new_life(self) -> None:
        """The topic is deleted and made again; where ZooKeeper rules only with everybody up."""
        if not self.cluster.version.kraft and (self.frozen or self.down_since or self.held):
            self.heal()
        try:
            self.cluster.delete_topic("t", seconds=10)
        except wire.Refused:
            # Nobody answers just now: asked anew at the next turn.
            self._one_fault()
            return
        self.lives_left -= 1
        self.older.clear()
        # A topic is created with as many replicas of each partition.
        spread = self.plan.assignment
        factor = min(map(len, spread.values()))
        self.plan.assignment = {number: spread[number][:factor] for number in sorted(spread)}
        time.sleep(self.chance.choice((0.5, 2.0)))
        try:
            self.cluster.create_topic("t", self.plan.assignment, **self.plan.topic_settings())
        except wire.Refused:
            # KRaft places no partition on brokers that are all fenced.
            self.heal()
            self.cluster.create_topic("t", self.plan.assignment, **self.plan.topic_settings())

    def _cut(self, broker: int) -> None:
        for data in self.cluster.data(broker):
            if not (data / ".kafka_cleanshutdown").exists():
                self._cut_in(broker, data)

    def _cut_in(self, broker: int, data: Path) -> None:
        flushed = checkpoint_entries(data / "recovery-point-offset-checkpoint")
        for partition in self.plan.assignment:
            place = data / f"t-{partition}"
            if not place.is_dir():
                continue
            recovery_point = flushed.get(("t", partition), 0)
            batches = self.chance.choice((1, 2, 4))
            cut = cut_suffix(place, batches, recovery_point, zeros=self.plan.zeros)
            if cut is not None:
                self.cluster.journal.write(
                    action="cut_suffix", broker=broker, partition=partition, **vars(cut)
                )


def run_chaos(
    seed: int, version: Version, directory: Path, taped: bool = False, calm: float = 0.0
) -> Experiment:
    """One seeded run from start to truth; the evidence is under `directory`/evidence. taped: what
    shippers would have sent is kept beside it, see `Tape`. calm: seconds without a fault, with
    everybody up, after about every second one; 0: none."""
    plan = ChaosPlan.from_seed(seed, version)
    set_up = Plan(
        version,
        grade=plan.grade,
        settings=plan.broker_settings(),
        eligible_leader_replicas=plan.eligible_leader_replicas,
        tapped=BROKERS if plan.hold_chance else (),
        log_dirs=plan.log_dirs,
        zones=plan.zones,
    )
    with Experiment(set_up, directory, names=plan.names) as experiment:
        cluster = experiment.cluster
        cluster.journal.write(action="plan", **{**vars(plan), "version": version.name})
        cluster.create_topic("t", plan.assignment, **plan.topic_settings())
        with Tape(cluster, directory) if taped else nullcontext():
            chaos = Chaos(plan, experiment, calm)
            chaos.loads += _loads(plan, experiment, tuple(plan.assignment))
            try:
                chaos.run()
                chaos.heal()
            finally:
                for load in chaos.loads:
                    load.stop()
            experiment.finish()
    return experiment


def _loads(
    plan: ChaosPlan, experiment: Experiment, partitions: tuple[int, ...]
) -> list[Load | TransactionalLoad]:
    load = Load(
        experiment.cluster,
        experiment.acks,
        plan.acks,
        partitions=partitions,
        pause=0.25,
        batch=random.Random(plan.seed).choice((1, 1, 2)),
        idempotent=plan.idempotent,
        retries=plan.retries,
        keys=plan.keys,
    )
    if not plan.transactional or partitions[0]:
        return [load]
    producer = TransactionalProducer(
        experiment.cluster, experiment.acks, TRANSACTIONS, timeout_ms=4000, keys=plan.keys
    )
    return [load, TransactionalLoad(producer, partitions, plan.seed, pause=0.4)]
