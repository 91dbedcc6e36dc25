"""Shipped lines of a fleet joined minute by minute: what a minute costs, and what is kept of it.

Thirty brokers with ten thousand partitions tell their stories, and digests beside them what their
logs hold, of which retention leaves six leader epochs; every minute one partition in a hundred
changes its leader, at the end all of them within one minute. Elections older than ten minutes are
folded into bases; what is kept is looked at each time when files have been joined. The yardstick is
the import of the same lines as a folder: what each minute would cost if nothing were remembered.

    .venv/bin/python -m benchmarks.live [--brokers 30] [--topics 400] [--minutes 120]
"""

import argparse
import json
import resource
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from benchmarks.broker_text import REPLICAS, Cluster, Partition
from replication.evidence.collecting.envelopes import ShippedLine
from replication.evidence.digest import LINES_NAME, LINES_VERSION
from replication.evidence.importer import import_evidence
from replication.evidence.shipping.compaction import TOGETHER
from replication.evidence.shipping.live_join import Joined, LiveJoin

CHANGED = 100
BASE_AFTER = 600
KEPT_EPOCHS = 6
CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qk"
OTHER_STORIES = 300


class Fleet:
    """What its brokers print, as a shipper sends it."""

    def __init__(self, brokers: int, topics: int) -> None:
        self.cluster = Cluster(brokers=brokers, topics=topics)
        self.sent: dict[int, int] = {}
        self.printed = 0
        self.began = int(self.cluster.now)
        self.leader_epochs: dict[int, list[tuple[int, int]]] = {}

    def begins(self) -> Iterator[ShippedLine]:
        """Every partition is made, every broker starts and every partition gets its leader."""
        for partition in self.cluster.partitions:
            yield self._made(partition)
        for broker in range(1, self.cluster.brokers + 1):
            for line in self.cluster.starts(broker).splitlines():
                yield self._shipped(broker, line)
        yield from self.moved(self.cluster.partitions)
        yield from self.digests(self.cluster.partitions)

    def minute(self, share: int = CHANGED) -> Iterator[ShippedLine]:
        """One of so many partitions changes its leader, and other things happen."""
        cluster = self.cluster
        began = cluster.now
        for _ in range(OTHER_STORIES):
            for broker, line in cluster.step():
                yield self._shipped(broker, line)
        chosen = cluster.choose.sample(cluster.partitions, len(cluster.partitions) // share)
        yield from self.moved(chosen)
        cluster.now = max(cluster.now, began + 60_000)
        yield from self.digests(chosen)

    def digests(self, changed: Iterable[Partition]) -> Iterator[ShippedLine]:
        """What is printed beside each broker of the logs that have changed, and that it lives."""
        self.cluster.now += 1
        for partition in changed:
            held = self.leader_epochs.setdefault(id(partition), [])
            if not held or held[-1][0] != partition.leader_epoch:
                held.append((partition.leader_epoch, partition.start_of_epoch))
            del held[:-KEPT_EPOCHS]
            tells = {
                "what": "partition", "name": f"orders-{partition.topic:02d}-{partition.number}",
                "topic_id": f"b3JkZXJzdG9waWMtMDAw{partition.topic:02d}",
                "log_start_offset": held[0][1], "log_end_offset": partition.end,
                "high_watermark": partition.end, "recovery_point": held[-1][1],
                "leader_epochs": held,
            }  # fmt: skip
            for broker in partition.replicas:
                yield self._digest(broker, tells)
        for broker in range(1, self.cluster.brokers + 1):
            meta = f"version=1\nnode.id={broker}\ncluster.id={CLUSTER_ID}\n"
            told = len(self.cluster.partitions) * REPLICAS // self.cluster.brokers
            yield self._digest(broker, {"what": "directory", "meta": meta, "partitions": told,
                                        "broker_runs": True, "clean_shutdown": None})  # fmt: skip

    def _digest(self, broker: int, tells: dict[str, object]) -> ShippedLine:
        self.printed += 1
        line = {
            LINES_NAME: LINES_VERSION, "n": self.printed, "started": self.began,
            "at": int(self.cluster.now), "every": 60, "directory": "/var/lib/kafka/data", **tells,
        }  # fmt: skip
        return ShippedLine(json.dumps(line), f"broker-{broker}", "digest", "fleet", digest=True)

    def _made(self, partition: Partition) -> ShippedLine:
        """The controller's line."""
        replicas = partition.replicas
        text = self.cluster.stamp() + (
            "INFO [QuorumController id=100] Replayed PartitionRecord for new partition "
            f"orders-{partition.topic:02d}-{partition.number} with topic ID "
            f"b3JkZXJzdG9waWMtMDAw{partition.topic:02d} and PartitionRegistration("
            f"replicas={replicas}, directories=[], isr={replicas}, removingReplicas=[], "
            f"addingReplicas=[], elr=[], lastKnownElr=[], leader={replicas[0]}, "
            "leaderRecoveryState=RECOVERED, leaderEpoch=0, partitionEpoch=0). "
            "(org.apache.kafka.controller.ReplicationControlManager)"
        )
        return ShippedLine(text, "controller-100", "controller.log", "fleet")

    def moved(self, partitions: Iterable[Partition]) -> Iterator[ShippedLine]:
        """Each gets another leader."""
        yield from self.told("moved", partitions)

    def told(self, story: str, partitions: Iterable[Partition]) -> Iterator[ShippedLine]:
        """The same story about each."""
        for partition in partitions:
            self.cluster.now += 1
            for broker, line in self.cluster.tell(story, partition):
                yield self._shipped(broker, line)

    def _shipped(self, broker: int, line: str) -> ShippedLine:
        offset = self.sent.get(broker, 0)
        self.sent[broker] = offset + len(line)
        text = line.rstrip("\n")
        return ShippedLine(
            text, host=f"broker-{broker}", path="server.log", cluster="fleet", offset=offset
        )


def kept_in(live: LiveJoin) -> int:
    """Bytes of what is kept of all lines and digests, and of what was last told."""
    return sum(path.stat().st_size for path in live.folder.rglob("*") if path.is_file())


def resident() -> int:
    """MB of memory that the process has now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() >> 20


def measured(live: LiveJoin, number: int, lines: Iterable[ShippedLine]) -> tuple[float, Joined]:
    """CPU seconds of one micro-batch, without the making of its lines."""
    made = list(lines)
    began = time.process_time()
    joined = live.step(number, made)
    return time.process_time() - began, joined


def main() -> None:
    """Prints what the first and the last ten minutes cost, and the storm."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--brokers", type=int, default=30)
    parser.add_argument("--topics", type=int, default=400, help="of 25 partitions each")
    parser.add_argument("--minutes", type=int, default=120)
    parser.add_argument("--share", type=int, default=CHANGED, help="one of so many moves a minute")
    flags = parser.parse_args()
    fleet = Fleet(flags.brokers, flags.topics)
    partitions = len(fleet.cluster.partitions)
    with tempfile.TemporaryDirectory() as folder:
        live = LiveJoin(Path(folder) / "live", Path(folder) / "events", base_after=BASE_AFTER)
        first, joined = measured(live, 0, fleet.begins())
        rows, costs, memory, kept_then = joined.taken.rows, [], [], []
        for number in range(1, flags.minutes + 1):
            cost, joined = measured(live, number, fleet.minute(flags.share))
            costs.append(cost)
            memory.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10)
            rows += joined.taken.rows
            if number % TOGETHER == 0:
                kept_then.append(kept_in(live))
                told = f"{kept_then[-1] / 1e6:.1f} MB are kept, {resident()} MB of memory"
                print(f"  after {number} minutes {told}", flush=True)
        storm, stormy = measured(live, flags.minutes + 1, fleet.minute(share=1))
        files = list(live.folder.rglob("*.log"))
        kept = sum(path.read_bytes().count(b"\n") for path in files)
        began = time.process_time()
        whole = sum(1 for _ in import_evidence([live.folder / "spool" / "fleet"]).events())
        again = time.process_time() - began
    early, late = sorted(costs[:10])[5], sorted(costs[-10:])[5]
    stormed = len(stormy.changed)
    print(f"fleet of {flags.brokers} brokers, {partitions:,} partitions, {flags.minutes} minutes")
    print(f"  the first micro-batch: {first:.1f} CPU s")
    print(f"  a minute: {early:.2f} CPU s at first, {late:.2f} at last ({late / early:.2f} times)")
    print(f"  all of it imported: {again:.1f} CPU s ({again / late:.0f} minutes), {whole:,} events")
    print(f"  storm: {storm:.1f} CPU s for {stormy.taken.rows:,} lines, {stormed:,} partitions")
    print(f"  lines shipped: {rows + stormy.taken.rows:,}, kept: {kept:,} in {len(files):,} files")
    print(f"  memory at most: {memory[0]} MB at first, {memory[-1]} MB at last")


if __name__ == "__main__":
    main()
