"""Takes evidence as an operator would: log files, copies of log directories, tool output.

Everything the product may read is under `evidence/`; the laboratory's own notes lie beside it.
"""

import shutil
from collections import Counter
from pathlib import Path

from tests.kafka_lab.cluster import Cluster
from tests.kafka_lab.journal import utc_text

NEVER_COPIED = (".lock",)


class Capture:
    """The evidence folder of one experiment."""

    def __init__(self, cluster: Cluster, directory: Path, *, with_indexes: bool = False) -> None:
        self.cluster = cluster
        self.directory = directory
        self.with_indexes = with_indexes
        self._labels: Counter[tuple[int, str]] = Counter()
        directory.mkdir(parents=True, exist_ok=True)

    def copy_disk(self, node: int, label: str) -> Path:
        """A node's log directories as they are now; a label used twice is numbered."""
        self._labels[node, label] += 1
        times = self._labels[node, label]
        name = f"disk-{label}" if times == 1 else f"disk-{label}-{times}"
        target = self.directory / self.cluster.home(node).name / name
        for directory in self.cluster.data(node):
            several = len(self.cluster.data(node)) > 1
            _copy_moving(directory, target / directory.name if several else target, self._skipped)
        self.cluster.journal.write(action="copy_disk", node=node, label=name)
        return target

    def copy_logs(self) -> None:
        """Broker and controller logs, rotated files included, empty ones not."""
        for node in self.cluster.nodes():
            logs = self.cluster.home(node) / "logs"
            for path in sorted(logs.glob("*.log*")):
                if path.stat().st_size:
                    target = self.directory / self.cluster.home(node).name / path.name
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(path, target)

    def describe(self, at: float) -> None:
        """What `kafka-topics --describe` prints for each topic, from the live cluster's answers."""
        lines = [f"# {utc_text(at)}"]
        for topic, assignment in self.cluster.assignments.items():
            configs = ",".join(
                f"{name}={value}" for name, value in self.cluster.topic_settings[topic].items()
            )
            topic_id = self.cluster.topic_ids.get(topic)
            head = [f"Topic: {topic}"] if topic_id else [f"Topic:{topic}"]
            if topic_id:
                head.append(f"TopicId: {topic_id}")
            space = " " if topic_id else ""
            factor = len(assignment[0])
            head += [
                f"PartitionCount:{space}{len(assignment)}",
                f"ReplicationFactor:{space}{factor}",
                f"Configs:{space}{configs}",
            ]
            lines.append("\t".join(head))
            for partition in assignment:
                lines.append(self._described_partition(topic, partition))
        with (self.directory / "describe.txt").open("a") as file:
            file.write("\n".join(lines) + "\n\n")

    def _described_partition(self, topic: str, partition: int) -> str:
        state = self.cluster.state(topic, partition)
        if state is None:
            return f"\tTopic: {topic}\tPartition: {partition}\tLeader: none\tReplicas: \tIsr: "
        leader = "none" if state.leader is None else str(state.leader)
        replicas = ",".join(map(str, state.replicas))
        isr = ",".join(map(str, state.isr))
        return (
            f"\tTopic: {topic}\tPartition: {partition}\tLeader: {leader}"
            f"\tReplicas: {replicas}\tIsr: {isr}"
        )

    def _skipped(self, name: str) -> bool:
        return name in NEVER_COPIED or (not self.with_indexes and name.endswith("index"))


def _copy_moving(source: Path, target: Path, skipped: object) -> None:
    """Copies a tree that may be written to meanwhile; what vanishes is left out."""
    target.mkdir(parents=True, exist_ok=True)
    try:
        entries = sorted(source.iterdir())
    except FileNotFoundError:
        return
    for entry in entries:
        if skipped(entry.name):  # type: ignore[operator]
            continue
        if entry.is_dir():
            _copy_moving(entry, target / entry.name, skipped)
            continue
        try:
            shutil.copy2(entry, target / entry.name)
        except FileNotFoundError:
            continue
