"""Work that loses nothing, by a seed: rolling restarts, load, moved partitions and leaders.

For what must stay silent beside a healthy cluster: no broker is killed, frozen or cut off, and the
next step is taken when every replica is in the ISR again.
"""

import random
import time
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from tests.kafka_lab.chaos import BROKERS
from tests.kafka_lab.cluster import Cluster, Plan
from tests.kafka_lab.experiment import Experiment
from tests.kafka_lab.producer import Load
from tests.kafka_lab.tape import Tape
from tests.kafka_lab.versions import Version


@dataclass
class HealthyPlan:
    """What one seed decides in advance."""

    seed: int
    version: Version
    steps: tuple[str, ...]
    assignment: dict[int, list[int]]
    min_insync_replicas: int
    unclean: bool
    eligible_leader_replicas: bool
    acks: list[str]
    pause: float
    idempotent: bool

    @classmethod
    def from_seed(cls, seed: int, version: Version) -> "HealthyPlan":
        chance = random.Random(f"healthy-{version.name}-{seed}")
        factor = chance.choice((2, 3, 3))
        steps = ["restart"] * chance.choice((2, 3)) + ["reassign"] * chance.choice((1, 2))
        steps += ["elect"] * chance.choice((0, 1))
        chance.shuffle(steps)
        return cls(
            seed=seed,
            version=version,
            steps=tuple(steps),
            assignment={p: chance.sample(BROKERS, factor) for p in range(chance.choice((1, 2)))},
            min_insync_replicas=chance.choice((1, 2)) if factor == 3 else 1,
            unclean=chance.random() < 0.3,
            eligible_leader_replicas=chance.random() < 0.5,
            acks=chance.choice((["all"], ["all", "1"], ["all", "all", "1"])),
            pause=chance.choice((0.05, 0.25)),
            idempotent=version.magic == 2 and chance.random() < 0.5,
        )


@dataclass
class Healthy:
    """One run of a plan on a cluster that is up."""

    plan: HealthyPlan
    cluster: Cluster

    def run(self) -> None:
        chance = random.Random(self.plan.seed)
        restarts = chance.sample(BROKERS, len(BROKERS))
        for step in self.plan.steps:
            time.sleep(chance.choice((0.5, 1.5, 3.0)))
            partition = chance.choice(sorted(self.plan.assignment))
            if step == "restart":
                broker = restarts.pop()
                self.cluster.terminate(broker)
                self.cluster.start_broker(broker)
            elif step == "reassign":
                factor = len(self.plan.assignment[partition])
                replicas = chance.sample(BROKERS, factor)
                self.cluster.reassign("t", partition, replicas)
            else:
                self.cluster.elect_preferred("t", partition)
            self._settled()

    def _settled(self) -> None:
        """Every replica that is assigned now is in the ISR, and nobody else."""
        for partition, replicas in self.cluster.assignments["t"].items():
            self.cluster.wait_for_isr("t", partition, *replicas, seconds=60)


def run_healthy(seed: int, version: Version, directory: Path, taped: bool = False) -> Experiment:
    """One seeded run from start to truth; as `chaos.run_chaos`."""
    plan = HealthyPlan.from_seed(seed, version)
    set_up = Plan(version, eligible_leader_replicas=plan.eligible_leader_replicas)
    with Experiment(set_up, directory) as experiment:
        cluster = experiment.cluster
        cluster.journal.write(action="plan", **{**vars(plan), "version": version.name})
        cluster.create_topic(
            "t", plan.assignment, min_insync_replicas=plan.min_insync_replicas,
            unclean_leader_election_enable=str(plan.unclean).lower(),
        )  # fmt: skip
        with Tape(cluster, directory) if taped else nullcontext():
            load = Load(
                cluster, experiment.acks, plan.acks, partitions=tuple(plan.assignment),
                pause=plan.pause, idempotent=plan.idempotent, retries=9,
            )  # fmt: skip
            try:
                Healthy(plan, cluster).run()
            finally:
                load.stop()
            experiment.finish()
    return experiment
