"""Random faults by a seed: kills, clean stops, freezes and power losses under a mixed load.

The seed fixes the plan, not the timing of the brokers' threads: the same seed gives another
history each time. What is worth keeping is the capture.
"""

import random
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.kafka_lab import wire
from tests.kafka_lab.capture import Capture
from tests.kafka_lab.cluster import Cluster, Plan
from tests.kafka_lab.experiment import Experiment
from tests.kafka_lab.logs_on_disk import checkpoint_entries, cut_suffix
from tests.kafka_lab.processes import LabTimeout
from tests.kafka_lab.producer import Load
from tests.kafka_lab.versions import Version

LABELS = ("before-restart", "copy", "2nd", "after-crash", "x")


@dataclass
class ChaosPlan:
    """What one seed decides in advance."""

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
    idempotent: bool
    retries: int
    names: str
    small_segments: bool
    settings: dict[str, str] = field(default_factory=dict)

    @classmethod
    def from_seed(cls, seed: int, version: Version) -> "ChaosPlan":
        chance = random.Random(f"{version.name}-{seed}")
        factor = chance.choice((2, 2, 3))
        partitions = chance.choice((1, 2))
        spread = {partition: chance.sample((1, 2, 3), factor) for partition in range(partitions)}
        idempotent = version.magic == 2 and chance.random() < 0.4
        names = chance.choice(("payload_id", "sequence" if idempotent else "payload_id") * 3)
        return cls(
            seed=seed,
            version=version,
            seconds=chance.choice((25, 35, 45)),
            assignment=spread,
            min_insync_replicas=chance.choice((1, 1, 2) if factor == 3 else (1, 1, 1, 1, 2)),
            unclean=chance.random() < 0.4,
            eligible_leader_replicas=chance.random() < 0.5,
            acks=chance.choice((["all"], ["all", "1"], ["all", "all", "1"], ["all", "1", "0"])),
            grade="trace" if chance.random() < 0.2 else "default",
            cut_chance=chance.choice((0.0, 0.3, 0.8)),
            copy_chance=chance.choice((0.5, 1.0)),
            live_copy_chance=chance.choice((0.0, 0.15)),
            empty_disk_chance=chance.choice((0.0, 0.0, 0.25)),
            reassign_chance=0.15 if version.at_least(2, 8) and chance.random() < 0.3 else 0.0,
            idempotent=idempotent,
            retries=chance.choice((0, 0, 3)),
            names="offset" if chance.random() < 0.1 else names,
            small_segments=chance.random() < 0.3,
        )


class Chaos:
    """One run of a plan on a cluster that is up."""

    def __init__(self, plan: ChaosPlan, cluster: Cluster, capture: Capture) -> None:
        self.plan = plan
        self.cluster = cluster
        self.capture = capture
        self.chance = random.Random(plan.seed)
        self.killed: set[int] = set()
        self.down_since: dict[int, float] = {}
        self.frozen: set[int] = set()

    def run(self) -> None:
        end = time.monotonic() + self.plan.seconds
        while time.monotonic() < end:
            time.sleep(self.chance.choice((0.3, 0.6, 1.5, 3.0, 5.0)))
            self._one_fault()

    def heal(self) -> None:
        """Everybody up and nobody frozen; those that were down are copied before their start."""
        for broker in sorted(self.frozen):
            self._resume(broker)
        self._notice_the_dead()
        for broker in sorted(self.down_since):
            self._start(broker)
        for broker in self.cluster.plan.brokers:
            self._bring_up(broker)
        for partition, replicas in self.plan.assignment.items():
            try:
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
        for broker in self.cluster.plan.brokers:
            if broker not in self.down_since and not self.cluster.running(broker):
                self.cluster.journal.write(action="ended_by_itself", broker=broker)
                self.frozen.discard(broker)
                self.down_since[broker] = time.monotonic()

    def _one_fault(self) -> None:
        self._notice_the_dead()
        out = sorted(self.frozen | self.down_since.keys())
        # Somebody should be up most of the time, else nothing is written that could be lost.
        rescue = len(out) > 1 and self.chance.random() < 0.7
        broker = self.chance.choice(out if rescue else self.cluster.plan.brokers)
        if self.chance.random() < self.plan.live_copy_chance:
            self.capture.copy_disk(broker, "live")
            return
        if self.chance.random() < self.plan.reassign_chance:
            self._reassign()
        elif broker in self.frozen:
            self._resume(broker)
        elif broker in self.down_since:
            self._start(broker)
        else:
            fault = self.chance.choice((self._kill, self._kill, self._terminate, self._freeze))
            fault(broker)

    def _kill(self, broker: int) -> None:
        self.cluster.kill(broker)
        self.killed.add(broker)
        self.down_since[broker] = time.monotonic()

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

    def _start(self, broker: int) -> None:
        if broker in self.killed and self.chance.random() < self.plan.cut_chance:
            self._cut(broker)
        if broker in self.killed and self.chance.random() < self.plan.empty_disk_chance:
            self.cluster.replace_disk(broker)
        if self.chance.random() < self.plan.copy_chance:
            self.capture.copy_disk(broker, self.chance.choice(LABELS))
        self.killed.discard(broker)
        del self.down_since[broker]
        self.cluster.start_broker(broker, wait=False)

    def _reassign(self) -> None:
        """Moves a partition to other brokers, if the controller takes the order just now."""
        partition = self.chance.choice(sorted(self.plan.assignment))
        factor = len(self.plan.assignment[partition])
        replicas = self.chance.sample(self.cluster.plan.brokers, factor)
        request = wire.reassign_request("t", partition, replicas)
        try:
            self.cluster.order(
                "reassign",
                request,
                lambda told: told.error_code or told.responses[0].partitions[0].error_code,
                seconds=1,
            )
        except wire.Refused:
            return
        self.plan.assignment[partition] = replicas
        self.cluster.journal.write(action="reassign", partition=partition, replicas=replicas)

    def _cut(self, broker: int) -> None:
        data = self.cluster.data(broker)[0]
        if (data / ".kafka_cleanshutdown").exists():
            return
        flushed = checkpoint_entries(data / "recovery-point-offset-checkpoint")
        for partition in self.plan.assignment:
            place = data / f"t-{partition}"
            if not place.is_dir():
                continue
            recovery_point = flushed.get(("t", partition), 0)
            cut = cut_suffix(place, self.chance.choice((1, 2, 4)), recovery_point)
            if cut is not None:
                self.cluster.journal.write(action="cut_suffix", broker=broker, **vars(cut))


def _segment_settings(plan: ChaosPlan) -> dict[str, object]:
    """Logs of several segments; by size where a size that small is allowed."""
    if not plan.small_segments:
        return {}
    return {"segment_ms": 4000} if plan.version.at_least(4, 0) else {"segment_bytes": 2000}


def run_chaos(seed: int, version: Version, directory: Path) -> Experiment:
    """One seeded run from start to truth; the evidence is under `directory`/evidence."""
    plan = ChaosPlan.from_seed(seed, version)
    set_up = Plan(
        version,
        grade=plan.grade,
        settings=plan.settings,
        eligible_leader_replicas=plan.eligible_leader_replicas,
    )
    with Experiment(set_up, directory, names=plan.names) as experiment:
        cluster = experiment.cluster
        cluster.journal.write(action="plan", **{**vars(plan), "version": version.name})
        cluster.create_topic(
            "t",
            plan.assignment,
            min_insync_replicas=plan.min_insync_replicas,
            unclean_leader_election_enable=str(plan.unclean).lower(),
            **_segment_settings(plan),
        )
        load = Load(
            cluster,
            experiment.acks,
            plan.acks,
            partitions=tuple(plan.assignment),
            pause=0.25,
            batch=random.Random(seed).choice((1, 1, 2)),
            idempotent=plan.idempotent,
            retries=plan.retries,
        )
        chaos = Chaos(plan, cluster, experiment.capture)
        try:
            chaos.run()
            chaos.heal()
        finally:
            load.stop()
        experiment.finish()
    return experiment
