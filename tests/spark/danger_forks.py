"""Dangers made true: what a row of `at_risk` names is lost when the failure that it names is made.

    python -m tests.spark.danger_forks [--kafka 4.3.0 ..] [--only STORY] [--keep DIR]

One real cluster for each version, with digest.py beside its brokers, joined and folded as the
stream does. Each story brings a topic of its own into a danger. At the moment at which a row
stands, the failure that it names is made: the broker is killed, or its log directory fails, or it
is killed and what it had not flushed cut off or its directory emptied, or whoever is named is
started and elected. Then the leader's log is read on its disk. Exit status 0 where the named
records are gone from it in 95 of 100 stories, and 95 of 100 records.
"""

import argparse
import json
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kafka.protocol.admin import ElectLeadersRequest

from replication.spark.alerts import alerts_of
from tests.kafka_lab import tap, wire
from tests.kafka_lab.cluster import Plan
from tests.kafka_lab.experiment import Experiment
from tests.kafka_lab.logs_on_disk import (
    checkpoint_entries,
    cut_suffix,
    read_batches,
    records,
)
from tests.kafka_lab.processes import LabTimeout, wait_for
from tests.kafka_lab.producer import Producer
from tests.kafka_lab.versions import Version
from tests.spark.fleet import Fleet, started_digests

VERSIONS = ("1.1.1", "2.8.2", "3.9.1", "4.1.1", "4.3.0")
PATIENCE = 60.0
ENOUGH = 0.95
UNCLEAN = 1
# From 4.1 on another replica may still be eligible (KIP-966): then it is who begins without them.
ANY = ""
EVERYTHING = 1_000_000
KEPT = 6
STORAGE = ("leader_loses_its_tail", "leader_loses_its_log")
# A follower that stalls stays in the ISR until its danger has been told.
SLOW = {"replica.lag.time.max.ms": "15000"}


@dataclass
class Stage:
    """One topic of one cluster on its way into danger; it is led by broker 1 of 1, 2 and 3."""

    lab: Experiment
    topic: str
    producer: Producer = field(init=False)
    failed: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.producer = self.lab.producer(client=self.topic, topic=self.topic)
        self.producer.must(5, 2)

    def others_die(self) -> None:
        """The leader goes on alone."""
        self.lab.cluster.kill(2, 3)
        self.lab.cluster.wait_for_isr(self.topic, 0, 1)
        self.producer.must(4, 2, acks="1")

    def others_fall_behind(self) -> None:
        """They run, and their fetches do not come through; who lacks nothing stays in the ISR."""
        self.lab.cluster.taps[1].hold(tap.FETCH)
        time.sleep(1)
        self.producer.must(1, 2, acks="1")
        self.lab.cluster.wait_for_isr(self.topic, 0, 1)
        self.producer.must(4, 2, acks="1")

    def followers_stall(self) -> None:
        """As members of the ISR still they lack what the leader alone has acknowledged."""
        self.lab.cluster.taps[1].hold(tap.FETCH)
        time.sleep(1)
        self.producer.send_many(4, 2, acks="1")

    def everybody_dies(self) -> None:
        """The last one, too: nobody leads when another is back."""
        self.others_die()
        self.lab.cluster.kill(1)
        self.lab.cluster.start_broker(2)

    def leader_lost_some(self) -> None:
        """Alone in the ISR, it dies without what all three held: nobody leads until it is back."""
        self.lab.cluster.kill(2, 3)
        self.lab.cluster.wait_for_isr(self.topic, 0, 1)
        self.lab.cluster.kill(1)
        cut(self, 1, KEPT)

    def all_are_down(self) -> None:
        """Whoever is back first leads."""
        self.others_die()
        self.lab.cluster.kill(1)

    def a_member_must_return(self) -> None:
        """The leader dies, and so does whom the controller takes for alive still."""
        self.lab.cluster.kill(3)
        self.lab.cluster.wait_for_isr(self.topic, 0, 1, 2)
        self.producer.must(4, 2)
        self.lab.cluster.kill(1)
        time.sleep(2)
        self.lab.cluster.kill(2)
        self.lab.cluster.start_broker(3)

    def leader_dies(self) -> None:
        """It stays registered until its session ends: one member has all, a third is behind."""
        self.lab.cluster.kill(3)
        self.lab.cluster.wait_for_isr(self.topic, 0, 1, 2)
        self.producer.must(4, 2)
        self.lab.cluster.kill(1)

    def others_directories_fail(self) -> None:
        """They run, each without the directory of its replica."""
        for broker in (2, 3):
            self.directory_fails(broker)
        self.lab.cluster.wait_for_isr(self.topic, 0, 1)
        self.producer.must(4, 2, acks="1")

    def others_lose_power(self) -> None:
        """Of what all three held they come back with some, if they come back."""
        self.lab.cluster.kill(2, 3)
        for broker in (2, 3):
            cut(self, broker, KEPT)
        self.lab.cluster.wait_for_isr(self.topic, 0, 1)
        self.producer.must(4, 2, acks="1")

    def directory_fails(self, broker: int) -> None:
        """The one that its replica lies in."""
        number = self.lab.cluster.data(broker).index(self.place(broker).parent)
        self.lab.cluster.fail_directory(broker, number)
        self.failed.append(broker)

    def place(self, broker: int) -> Path:
        """Its replica's directory."""
        found = [data / f"{self.topic}-0" for data in self.lab.cluster.data(broker)]
        return next(place for place in found if place.is_dir())

    def has_log(self, broker: int) -> bool:
        """Whether its replica has a directory."""
        return any((data / f"{self.topic}-0").is_dir() for data in self.lab.cluster.data(broker))

    def log(self, broker: int) -> dict[int, str]:
        """Payload ids by offset, from the disk."""
        place = self.place(broker)
        return {held.offset: held.payload_id for b in read_batches(place) for held in records(b)}


@dataclass(frozen=True)
class Story:
    """leads: brings the topic into danger. failure: of the row that is waited for. directory: the
    leader stops as its log directory fails. before: the release from which on it ends otherwise."""

    name: str
    failure: str
    leads: Callable[[Stage], None]
    min_insync_replicas: int = 1
    unclean: bool = False
    elects: bool = False
    directory: bool = False
    before: tuple[int, int] | None = None

    def told_by(self, version: Version) -> bool:
        """Whether that release lets an operator order the election, and ends it so."""
        if self.before is not None and version.at_least(*self.before):
            return False
        return not self.elects or version.at_least(2, 4)


STORIES = (
    Story("last replica standing", ANY, Stage.others_die, 2),
    Story("unflushed tail of the last", "leader_loses_its_tail", Stage.others_die),
    Story("its tail, unclean allowed", "leader_loses_its_tail", Stage.others_die, 1, True),
    Story("unclean, the others dead", "leader_stops", Stage.others_die, 1, True),
    Story("unclean, followers behind", "leader_stops", Stage.others_fall_behind, 1, True),
    Story("ISR members stalled", "leader_stops", Stage.followers_stall),
    Story("nobody leads, unclean open", "unclean_election", Stage.everybody_dies, 1, False, True),
    Story("nobody leads, the tail", ANY, Stage.everybody_dies, 2),
    Story("the leader's directory fails", "leader_stops", Stage.others_fall_behind, 1, True,
          directory=True),
    Story("the others' directories fail", "leader_loses_its_tail", Stage.others_directories_fail),
    Story("the last one's directory", "leader_loses_its_log", Stage.others_die),
    # Whom no eligible replica (KIP-966) waits for.
    Story("a member that must return", "leader_loses_its_log", Stage.a_member_must_return,
          before=(4, 1)),
    Story("all are down, unclean open", "leader_loses_its_log", Stage.all_are_down, 1, True,
          before=(4, 1)),
    Story("the last leader back short", "clean_election", Stage.leader_lost_some, before=(4, 1)),
    Story("the heir, unclean open", "leader_stops", Stage.leader_dies, 1, True),
    Story("one power loss after another", "leader_loses_its_tail", Stage.others_lose_power),
)  # fmt: skip


@dataclass
class Forked:
    """One story's end. lost, named: of the row's records. row: None where none came to stand.
    broken: the cluster is not whole again after it."""

    version: str
    story: str
    row: dict[str, Any] | None = None
    alerted: bool = False
    named: int = 0
    lost: int = 0
    seconds: float = 0.0
    said: str = ""
    broken: bool = False

    @property
    def right(self) -> bool:
        return bool(self.named) and self.lost == self.named

    def text(self) -> str:
        told = "no row stood" if self.row is None else (
            f"{self.row['failure']} of broker {self.row['broker']}, {self.row['cause']}, tier "
            f"{self.row['tier']}{', alerted' if self.alerted else ''}"
        )  # fmt: skip
        return (f"{self.version:8} {self.story:28} {self.lost} of {self.named} named records lost "
                f"({told}) {self.seconds:.0f} s {self.said}")  # fmt: skip


def stands(fleet: Fleet, topic: str, failure: str) -> dict[str, Any] | None:
    """The row that stands now, the one with most records."""
    rows = [] if not fleet.seen else fleet.seen[-1][1]
    named = [r for r in rows if r["topic"] == topic and failure in (ANY, r["failure"])]
    return max(named, key=lambda r: int(r["records"]), default=None)


def waited(fleet: Fleet, topic: str, failure: str) -> dict[str, Any] | None:
    """As soon as such a row stands; None where none does in time."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        assert fleet.failure is None
        row = stands(fleet, topic, failure)
        if row is not None:
            return row
        time.sleep(0.1)
    return None


def make(stage: Stage, row: dict[str, Any], directory: bool) -> int:
    """Makes what the row names; who leads then."""
    cluster, broker = stage.lab.cluster, row["broker"]
    if row["failure"] == "leader_stops":
        if directory:
            stage.directory_fails(broker)
            # Noticed at its next checkpoint: until then it leads on, and must not be followed.
            wait_for("its end", lambda: cluster.leader(stage.topic, 0) != broker, PATIENCE)
        else:
            cluster.kill(broker)
        release(stage.lab)
        started(stage.lab, row["next_leader"])
    elif row["failure"] in STORAGE:
        for each in cluster.brokers:
            if cluster.running(each):
                cluster.kill(each)
        if row["failure"] == "leader_loses_its_log":
            # Of a disk that was replaced (another directory id) KRaft elects nobody from 3.7 on.
            cluster.empty_directory(broker, cluster.data(broker).index(stage.place(broker).parent))
        else:
            cut(stage, broker, row["first_offset"])
        started(stage.lab, broker)
    else:
        started(stage.lab, broker)
        if row["failure"] == "unclean_election":
            elect_uncleanly(stage)
    leads: list[int] = []

    def somebody() -> bool:
        leader = cluster.leader(stage.topic, 0)
        struck = row["failure"] == "leader_stops" and leader == broker
        leads[:] = [leader] if leader is not None and not struck else []
        return bool(leads) and cluster.running(leads[0])

    tail = row["failure"] == "leader_loses_its_tail"
    try:
        wait_for("a leader", somebody, PATIENCE / 2 if tail else PATIENCE)
    except LabTimeout:
        if not tail:
            raise
        # Who was not shut down cleanly may lead no more (KIP-966): then nobody has them.
        return int(broker)
    # A registration from before the failure may still name it.
    wait_for("its log", lambda: stage.has_log(leads[0]), PATIENCE)
    # What the leader before it had may not come back any more: it has written on.
    stage.producer.send_many(2, 1, acks="1")
    return leads[0]


def cut(stage: Stage, broker: int, first_offset: int) -> None:
    """The power goes: what had not been flushed from there on is gone."""
    place = stage.place(broker)
    flushed = checkpoint_entries(place.parent / "recovery-point-offset-checkpoint")
    kept = max(flushed.get((stage.topic, 0), 0), first_offset)
    cut_suffix(place, EVERYTHING, kept)


def elect_uncleanly(stage: Stage) -> None:
    """As kafka-leader-election --election-type unclean does."""
    named = ElectLeadersRequest.TopicPartitions(topic=stage.topic, partitions=[0])
    request = ElectLeadersRequest(
        version=1, election_type=UNCLEAN, topic_partitions=[named], timeout_ms=10_000
    )

    def code(answer: Any) -> int:
        results = [p for t in answer.replica_election_results for p in t.partition_result]
        return int(answer.error_code or max(p.error_code for p in results))

    stage.lab.cluster.order("elect uncleanly", request, code)


def release(lab: Experiment) -> None:
    for each in lab.cluster.taps.values():
        each.release()


def started(lab: Experiment, broker: int | None) -> None:
    if broker is not None and not lab.cluster.running(broker):
        lab.cluster.start_broker(broker)


def forked(lab: Experiment, fleet: Fleet, story: Story, version: Version, number: int) -> Forked:
    """Tells one story to its end, and leaves every broker running."""
    found, topic, begun = Forked(version.name, story.name), f"s{number}", time.monotonic()
    lab.cluster.create_topic(
        topic, {0: [1, 2, 3]}, min_insync_replicas=story.min_insync_replicas,
        unclean_leader_election_enable=str(story.unclean).lower(),
    )  # fmt: skip
    stage = Stage(lab, topic)
    try:
        lab.cluster.wait_for_isr(topic, 0, 1, 2, 3)
        if lab.cluster.leader(topic, 0) != 1:
            lab.cluster.elect_preferred(topic, 0)
            lab.cluster.wait_for_leader(topic, 0, 1)
        story.leads(stage)
        found.row = waited(fleet, topic, story.failure)
        if found.row is not None:
            name = f'"{topic}'
            found.alerted = any(name in json.dumps(dict(a.labels)) for a in alerts_of(fleet.answer))
            before = stage.log(holder_of(found.row))
            named = {o: before.get(o) for o in offsets(found.row)}
            leader = make(stage, found.row, story.directory)
            after = stage.log(leader)
            found.named = len(named)
            found.lost = sum(1 for o, record in named.items() if record and after.get(o) != record)
    except (LabTimeout, ChildProcessError, wire.Refused, AssertionError) as error:
        found.said = f"{type(error).__name__}: {error}"
    release(lab)
    try:
        for broker in lab.cluster.brokers:
            if broker in stage.failed and lab.cluster.running(broker):
                lab.cluster.kill(broker)
            started(lab, broker)
    except (LabTimeout, ChildProcessError):
        found.broken = True
    found.seconds = time.monotonic() - begun
    return found


def holder_of(row: dict[str, Any]) -> int:
    """Whose log has the row's records before its failure is made."""
    if row["failure"] == "unclean_election":
        return 1
    return int(row["holders"][0] if row["failure"] == "clean_election" else row["broker"])


def offsets(row: dict[str, Any]) -> range:
    return range(row["first_offset"], row["end_offset"])


def told(version: Version, work: Path, stories: "list[tuple[int, Story]]") -> list[Forked]:
    """Every story on one cluster; the rest on another where that one does not come up again."""
    done: list[Forked] = []
    work.mkdir(parents=True, exist_ok=True)
    with Experiment(Plan(version, tapped=(1,), settings=SLOW, log_dirs=2), work / "lab") as lab:
        fleet = Fleet(lab.cluster.directory, work)
        digests = started_digests(lab, work)
        shipping = threading.Thread(target=fleet.follow)
        shipping.start()
        try:
            for number, story in stories:
                done.append(forked(lab, fleet, story, version, number))
                print(done[-1].text(), flush=True)
                if done[-1].broken:
                    break
        finally:
            fleet.ended.set()
            shipping.join()
            for process in digests:
                process.terminate()
                process.wait()
    left = stories[len(done) :]
    return done + (told(version, work / "again", left) if left else [])


def summed(done: list[Forked]) -> int:
    """Prints the sums by story and by cause; the exit status."""
    print()
    for title, key in (("story", lambda f: f.story), ("cause", lambda f: f.row["cause"])):
        by: dict[str, list[Forked]] = {}
        for each in done:
            if each.row is not None:
                by.setdefault(key(each), []).append(each)
        for name, those in sorted(by.items()):
            right = sum(f.right for f in those)
            of = f"{sum(f.lost for f in those)} of {sum(f.named for f in those)} records"
            print(f"{title} {name:28} {right} of {len(those)} as named, {of}")
    rows = [f for f in done if f.row is not None]
    right, named = sum(f.right for f in rows), sum(f.named for f in rows)
    lost = sum(f.lost for f in rows)
    print(f"{len(done)} stories: a row stood in {len(rows)}; as named {right}; "
          f"{lost} of {named} named records lost")  # fmt: skip
    enough = right >= ENOUGH * len(rows) and lost >= ENOUGH * named
    return 0 if done and enough else 1


def main(argv: list[str]) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kafka", action="append", default=[], help=f"else {VERSIONS}")
    parser.add_argument("--only", default="", help="stories whose name has this")
    parser.add_argument("--keep", type=Path, help="leave everything in this folder")
    flags = parser.parse_args(argv)
    done: list[Forked] = []
    for name in flags.kafka or VERSIONS:
        with tempfile.TemporaryDirectory() as scratch:
            work = Path(scratch) if flags.keep is None else flags.keep / name
            version, only = Version(name), flags.only
            stories = [
                (n, s) for n, s in enumerate(STORIES) if only in s.name and s.told_by(version)
            ]
            done += told(version, work, stories)
    return summed(done)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
