"""A cluster that a story left without a leader: its disks kept, and put back for each election."""

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.kafka_lab import node_settings
from tests.kafka_lab.cluster import Cluster
from tests.kafka_lab.commits import commits
from tests.kafka_lab.elections.measured import Log, Measured
from tests.kafka_lab.elections.stories import Story
from tests.kafka_lab.experiment import Experiment
from tests.kafka_lab.history import lives, terms
from tests.kafka_lab.lineage import Replicas
from tests.kafka_lab.logs_on_disk import read_batches, records
from tests.kafka_lab.processes import wait_for
from tests.kafka_lab.truth import Run
from tests.kafka_lab.versions import Version

# Until a KRaft controller has fenced who died last, in seconds.
FENCED = 8.0
TOPIC, PARTITION = "t", 0


@dataclass
class Stopped:
    """What a story left."""

    experiment: Experiment
    measured: Measured
    kept: Path = field(init=False)

    def __post_init__(self) -> None:
        self.kept = self.experiment.directory / "kept"
        for place in _places(self.cluster):
            shutil.copytree(place, self.kept / place.relative_to(self.cluster.directory))

    @property
    def cluster(self) -> Cluster:
        return self.experiment.cluster

    @property
    def evidence(self) -> Path:
        return self.experiment.evidence

    def put_back(self, *, with_controller: bool = True) -> None:
        """Every disk as the story left it; ZooKeeper runs, the controller where that is said."""
        self.cluster.kill_everything()
        for tap in self.cluster.taps.values():
            tap.release()  # What the story held back is over with it.
        for place in _places(self.cluster):
            shutil.rmtree(place, ignore_errors=True)
            shutil.copytree(self.kept / place.relative_to(self.cluster.directory), place)
        if with_controller or not self.cluster.version.kraft:
            self.cluster.start_keeper()
        if not self.cluster.version.kraft:
            for broker in self.cluster.brokers:
                self.cluster.wait_unregistered(broker)


@contextmanager
def told(story: Story, version: Version, directory: Path) -> Iterator[Stopped]:
    """Tells a story up to the end of every process, and takes the evidence; while it is open, the
    cluster can be started again."""
    experiment = Experiment(story.plan(version), directory)
    with experiment as lab:
        lab.cluster.journal.write(action="scenario", name=story.name)
        story.steps(lab)
        _see_them_dead(lab)
        lab.cluster.journal.write(action="quiet_point")
        if not version.kraft:
            lab.capture.describe(time.time())
        lab.sampler.stop()
        lab.cluster.save()
        lab.cluster.kill_everything()
        _take_evidence(lab)
        yield Stopped(experiment, _measured(story, lab))


def _measured(story: Story, lab: Experiment) -> Measured:
    run = Run.read(lab.cluster, lab.sampler.notes, lab.evidence, lab.acks.journal.path)
    life = lives(lab.cluster.actions(), TOPIC)[-1]
    view = run.view((TOPIC, PARTITION), life, last=True)
    committed = commits(
        terms(view.elections, view.life.ends),
        Replicas(view.samples),
        view.acks,
        view.high_watermarks,
        view.rules(),
    )
    replicas = lab.cluster.assignments[TOPIC][PARTITION]
    version = lab.cluster.version
    return Measured(
        story.name,
        version.name,
        "kraft" if version.kraft else "zookeeper",
        replicas,
        {n: log_of(lab.cluster, n) for n in replicas},
        [
            (ack["payload_id"], ack["offset"], ack["acks"])
            for ack in view.acks
            if ack["status"] == "acked"
        ],
        sorted((held.offset, held.payload_id) for held in committed.sure),
        sorted((held.offset, held.payload_id) for held in committed.possible),
        away=[*story.disk_gone],
    )


def log_of(cluster: Cluster, broker: int) -> Log:
    """What a broker holds of the partition."""
    return {
        held.offset: (held.payload_id, held.leader_epoch)
        for data in cluster.data(broker)
        for batch in read_batches(data / f"{TOPIC}-{PARTITION}")
        for held in records(batch)
    }


def _see_them_dead(lab: Experiment) -> None:
    """Every broker dies, and the controller or ZooKeeper has seen it."""
    running = [broker for broker in lab.cluster.brokers if lab.cluster.running(broker)]
    if running:
        lab.cluster.kill(*running)
    if lab.cluster.version.kraft:
        time.sleep(FENCED)
        return
    with lab.cluster.zookeeper() as asked:
        for broker in lab.cluster.brokers:
            path = f"/brokers/ids/{broker}"
            wait_for(f"{path} to go", lambda path=path: not asked.exists(path), 60)


def _take_evidence(lab: Experiment) -> None:
    for node in lab.cluster.nodes():
        lab.capture.copy_disk(node, "stopped")
    lab.capture.copy_logs()
    kept = lab.cluster.directory / "zookeeper" / "data" / "version-2"
    if kept.is_dir():
        shutil.copytree(kept, lab.evidence / "zookeeper" / "version-2")


def _places(cluster: Cluster) -> list[Path]:
    """All that a process of the cluster keeps on a disk."""
    found = [place for node in cluster.nodes() for place in cluster.data(node)]
    if not cluster.version.kraft:
        found.append(cluster.directory / "zookeeper" / "data")
    assert cluster.version.kraft is (node_settings.CONTROLLER_ID in cluster.nodes())
    return found
