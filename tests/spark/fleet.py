"""Real brokers: their logs and digests joined as the stream joins them, and how they lose records.

Without Spark: what a micro-batch adds to the time, tests.spark.live_fleet shows.
"""

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from replication.evidence import digest
from replication.evidence.collecting.envelopes import NotALine, ShippedLine, shipped_lines
from replication.evidence.event_dumps import read_events
from replication.evidence.shipping.live_join import LiveJoin
from replication.protocol.ground.events import Event
from replication.protocol.judgement.bounded import Identity, fold_partition, identity_of
from replication.spark.alerts import CRITICAL, Answer, alerts_of
from tests.kafka_lab.experiment import Experiment

EVERY = 1.0
SILENCE = 60.0


@dataclass
class Fleet:
    """Ships all that grows below the machines' folders, and keeps what the answer said when."""

    machines: Path
    work: Path
    answer: Answer = field(default_factory=Answer)
    seen: list[tuple[float, list[dict[str, Any]]]] = field(default_factory=list)
    critical: list[tuple[float, str]] = field(default_factory=list)
    took: list[float] = field(default_factory=list)
    read: dict[Path, int] = field(default_factory=dict)
    losses: list[dict[str, Any]] = field(default_factory=list)
    verdicts: dict[Identity, list[dict[str, Any]]] = field(default_factory=dict)
    steps: int = 0
    joining: LiveJoin = field(init=False)
    ended: threading.Event = field(default_factory=threading.Event)
    failure: BaseException | None = None

    def __post_init__(self) -> None:
        self.joining = LiveJoin(self.work / "live", self.work / "events", {}, SILENCE)

    def follow(self) -> None:
        """Micro-batches, one after the other, until told to end; one more then."""
        try:
            while not self.ended.is_set():
                self.ship(self.lines(), time.time)
                self.ended.wait(EVERY)
            self.ship(self.lines(), time.time)
        except BaseException as error:
            self.failure = error
            raise

    def ship(self, lines: Iterable[ShippedLine | NotALine], clock: Callable[[], float]) -> None:
        """One micro-batch, as the stream takes it. clock: seconds since 1970."""
        begun = time.time()
        self.joining.step(self.steps, lines)
        path = self.work / "events" / f"{self.steps:010}.jsonl"
        self.steps += 1
        changed: dict[Any, list[Event]] = {}
        for event in read_events(path) if path.exists() else ():
            assert isinstance(event, Event)
            changed.setdefault(identity_of(event), []).append(event)
        for identity, events in changed.items():
            folded = fold_partition(identity, events).answer
            name = "/".join(map(str, identity))
            self.answer.put("at_risk", name, folded.at_risk)
            self.answer.put("loss_ledger", name, folded.losses)
            self.answer.put("verdicts", name, folded.verdicts)
            self.verdicts[identity] = folded.verdicts
            if identity[1] == "t":
                self.losses = folded.losses
        now = clock()
        self.answer.clock = int(now * 1000)
        standing = [row for rows in self.answer.at_risk.values() for row in rows]
        self.seen.append((now, standing))
        self.critical += [
            (now, a.annotations["summary"])
            for a in alerts_of(self.answer)
            if a.severity == CRITICAL
        ]
        self.took.append(time.time() - begun)

    def lines(self) -> Iterator[ShippedLine | NotALine]:
        """What has been added to the logs and to what digests printed."""
        for log in sorted([*self.machines.glob("*/logs/*.log"), *self.work.glob("*.digest")]):
            at = self.read.get(log, 0)
            with log.open("rb") as stream:
                stream.seek(at)
                whole = stream.read().rpartition(b"\n")
            added = whole[0] + whole[1]
            self.read[log] = at + len(added)
            host = log.stem if log.suffix == ".digest" else log.parent.parent.name
            for line in added.splitlines(keepends=True):
                for each in shipped_lines(line.rstrip(b"\n")):
                    if isinstance(each, ShippedLine):
                        yield ShippedLine(each.text, host, log.name, "", at, False, each.digest)
                    else:
                        yield each
                at += len(line)


def started_digests(lab: Experiment, work: Path) -> "list[subprocess.Popen[bytes]]":
    """digest.py beside every broker and the controller."""
    found = []
    for node in lab.cluster.nodes():
        for directory in lab.cluster.data(node):
            with (work / f"{lab.cluster.home(node).name}.digest").open("ab") as out:
                command = [sys.executable, "-I", digest.__file__, str(directory)]
                command += ["--every", str(EVERY), "--to-stdout"]
                found.append(subprocess.Popen(command, stdout=out))
    return found


@dataclass(frozen=True)
class Lost:
    """Moments of one loss, seconds since 1970: the ISR had shrunk to one; that one died; one led
    that had been behind."""

    shrunk: float
    killed: float
    led: float


def loses(lab: Experiment, topic: str = "t", stands: float = 25) -> Lost:
    """Records of a topic are lost by an unclean election. stands: seconds that one holds them."""
    lab.cluster.create_topic(
        topic, {0: [1, 2, 3]}, min_insync_replicas=1, unclean_leader_election_enable="true"
    )
    producer = lab.producer(topic=topic)
    producer.must(10, 2)
    time.sleep(2)
    lab.cluster.kill(2, 3)
    lab.cluster.wait_for_isr(topic, 0, 1)
    shrunk = time.time()
    producer.must(5, 2)
    time.sleep(stands)
    lab.cluster.kill(1)
    killed = time.time()
    lab.cluster.start_broker(2)
    lab.cluster.wait_for_leader(topic, 0, 2)
    led = time.time()
    producer.must(3, 2)
    # Only its own next start shows that it had stopped when broker 2 was elected.
    lab.cluster.start_broker(1)
    lab.cluster.wait_for_isr(topic, 0, 1, 2)
    time.sleep(5)
    return Lost(shrunk, killed, led)
