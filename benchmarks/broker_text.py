"""Makes broker logs of a busy cluster: what the text reader is measured on.

The stories in broker_lines.txt are told at random about a thousand partitions on six brokers. The
shares are such that about one line in sixteen says something about a replica, as in the logs at
default level that the laboratory captured (6 to 8 %). The same seed gives the same bytes.
"""

import random
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

BROKERS = 6
REPLICAS = 3
TOPICS = 40
PARTITIONS_OF_TOPIC = 25
FILE_BYTES = 64 << 20
STARTED = 1_795_000_000_000
TELLING = ("expired", "shrunk", "moved")

Lines = list[tuple[str, str]]


def stories() -> dict[str, tuple[int, Lines]]:
    """Name -> (how often, [(who writes it, line)]) from broker_lines.txt."""
    found: dict[str, tuple[int, Lines]] = {}
    lines: Lines = []
    for line in Path(__file__).with_name("broker_lines.txt").read_text().splitlines():
        if "|" in line:
            who, _, text = line.partition("| ")
            lines.append((who, text.replace("\\n", "\n").replace("\\t", "\t")))
        elif line and not line.startswith("#"):
            name, _, weight = line.partition(" ")
            lines = []
            found[name] = (int(weight), lines)
    return found


@dataclass
class Partition:
    """One topic partition as its brokers tell of it. replicas: the leader first."""

    topic: int
    number: int
    replicas: list[int]
    leader_epoch: int = 0
    partition_epoch: int = 0
    start: int = 0
    end: int = 0
    start_of_epoch: int = 0


@dataclass
class Cluster:
    """The cluster's state. telling: how many times as often stories about replicas are told."""

    seed: int = 1
    telling: int = 1
    brokers: int = BROKERS
    topics: int = TOPICS
    now: float = float(STARTED)
    partitions: list[Partition] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.choose = random.Random(self.seed)
        self.stories = stories()
        self.names = list(self.stories)
        self.weights = [
            weight * (self.telling if name in TELLING else 1)
            for name, (weight, _) in self.stories.items()
        ]
        for at in range(self.topics * PARTITIONS_OF_TOPIC):
            replicas = [(at + i) % self.brokers + 1 for i in range(REPLICAS)]
            topic, number = divmod(at, PARTITIONS_OF_TOPIC)
            self.partitions.append(Partition(topic, number, replicas))

    def starts(self, broker: int) -> str:
        """What a broker writes when it starts, as far as it matters here."""
        _, lines = self.stories["started"]
        return "".join(self.stamp() + text.format(leader=broker) + "\n" for _, text in lines)

    def step(self) -> list[tuple[int, str]]:
        """What happens next: (broker, line)."""
        self.now += self.choose.expovariate(1 / 40)
        name = self.choose.choices(self.names, self.weights)[0]
        return self.tell(name, self.choose.choice(self.partitions))

    def tell(self, name: str, partition: Partition) -> list[tuple[int, str]]:
        """One story about one partition: (broker, line)."""
        values = self._happens(name, partition)
        stamp = self.stamp()
        told = []
        for who, text in self.stories[name][1]:
            first = 1 if who == "follower" else 0
            last = 1 if who == "leader" else REPLICAS
            for broker in partition.replicas[first:last]:
                told.append((broker, stamp + text.format(writer=broker, **values) + "\n"))
        return told

    def _happens(self, name: str, p: Partition) -> dict[str, Any]:
        """Changes the partition's state; the values that the story's lines name."""
        p.end += self.choose.randrange(1, 4_000)
        gone = p.start
        if name == "expired":
            p.start = p.end
        elif name == "shrunk":
            p.partition_epoch += 2
        elif name == "moved":
            p.replicas.append(p.replicas.pop(0))
            p.leader_epoch += 1
            p.partition_epoch += 1
            p.start_of_epoch = p.end
        joined = [str(r) for r in p.replicas]
        return {
            "tp": f"orders-{p.topic:02d}-{p.number}",
            "topic_id": f"b3JkZXJzdG9waWMtMDAw{p.topic:02d}",
            "number": p.number, "leader": p.replicas[0], "last": p.replicas[-1],
            "replicas": ",".join(joined), "others": ",".join(joined[:-1]),
            "leader_epoch": p.leader_epoch, "epoch_before": p.leader_epoch - 1,
            "partition_epoch": p.partition_epoch, "before": p.partition_epoch - 1,
            "gone": gone, "start": p.start, "end": p.end, "last_offset": p.end - 1,
            "now": int(self.now), "small": self.choose.randrange(30),
            "serial": self.choose.randrange(90_000),
        }  # fmt: skip

    def stamp(self) -> str:
        """The time as Kafka's layout prints it."""
        at = datetime.fromtimestamp(self.now / 1000, UTC)
        return f"[{at:%Y-%m-%d %H:%M:%S},{at.microsecond // 1000:03d}] "


def write(folder: Path, size: int, telling: int = 1) -> None:
    """Writes size bytes of logs below folder: a sub-folder per broker, files of 64 MiB."""
    cluster = Cluster(telling=telling)
    waiting = {broker: [cluster.starts(broker)] for broker in range(1, BROKERS + 1)}
    sizes = dict.fromkeys(waiting, 0)
    files = dict.fromkeys(waiting, 0)
    while size > 0:
        for broker, line in cluster.step():
            waiting[broker].append(line)
            sizes[broker] += len(line)
            size -= len(line)
            if sizes[broker] >= FILE_BYTES:
                sizes[broker] = 0
                files[broker] += 1
                _write(folder, broker, files[broker], waiting[broker])
    for broker, lines in waiting.items():
        _write(folder, broker, files[broker] + 1, lines)


def _write(folder: Path, broker: int, number: int, lines: list[str]) -> None:
    path = folder / f"broker-{broker}" / f"server.log.{number}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(lines), encoding="utf-8")
    lines.clear()
