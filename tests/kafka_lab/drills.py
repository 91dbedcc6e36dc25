"""Drills of the product on real clusters: clean ones end with 0, planted losses are found exactly.

    python -m tests.kafka_lab.drills [--clean 20] [--loss 20] [--kafka 4.3.0] [--keep DIR]

One cluster serves all drills of a call, each with a topic of its own. A drill is the command
`drill` in a process of its own; its faults are command lines that send orders to this process. The
truth is taken from the segments of all replicas by another parser than the product's: an
acknowledged record that the leader's log does not hold at the end is lost.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from tests.kafka_lab.cluster import Cluster, Plan
from tests.kafka_lab.logs_on_disk import checkpoint_entries, cut_suffix, read_batches, records
from tests.kafka_lab.processes import wait_for
from tests.kafka_lab.versions import Version

Offsets = set[tuple[int, int]]


class Orders:
    """Carries out what command lines send, one after the other: `kill 2`, `start 2` .."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster, self.topic = cluster, ""
        self.refused: list[str] = []
        self._in, self._out = folder / "orders", folder / "answers"
        os.mkfifo(self._in)
        os.mkfifo(self._out)
        threading.Thread(target=self._serve, daemon=True).start()

    def command(self, order: str) -> str:
        """A command line that has the order carried out, and fails where it was not."""
        return f'echo {order} > {self._in} && read a < {self._out} && [ "$a" = done ]'

    def _serve(self) -> None:
        while True:
            for line in self._in.read_text().splitlines():
                name, *words = line.split()
                try:
                    getattr(self, f"do_{name}")(*map(int, words))
                    answer = "done"
                except Exception as error:
                    self.refused.append(f"{line}: {error!r}")
                    answer = "failed"
                self._out.write_text(f"{answer}\n")

    def do_kill(self, *brokers: int) -> None:
        self.cluster.kill(*brokers)

    def do_stop(self, broker: int) -> None:
        self.cluster.terminate(broker)

    def do_start(self, *brokers: int) -> None:
        for broker in brokers:
            self.cluster.start_broker(broker, wait=False)
        for broker in brokers:
            self.cluster.wait_up(broker)

    def do_freeze(self, broker: int) -> None:
        self.cluster.freeze(broker)

    def do_resume(self, broker: int) -> None:
        self.cluster.resume(broker)

    def do_empty(self, broker: int) -> None:
        self.cluster.empty_directory(broker)

    def do_isr(self, *isr: int) -> None:
        self.cluster.wait_for_isr(self.topic, 0, *isr)

    def do_leads(self, broker: int) -> None:
        self.cluster.wait_for_leader(self.topic, 0, broker)

    def do_unclean(self) -> None:
        wait_for("no leader", lambda: self.cluster.leader(self.topic, 0) is None, 30)
        self.cluster.elect_unclean(self.topic, 0)

    def do_cut(self, *brokers: int) -> None:
        """A loss of power while they were down: the last batches that were not flushed are gone."""
        for broker in brokers:
            place = self.cluster.data(broker)[0] / f"{self.topic}-0"
            flushed = checkpoint_entries(place.parent / "recovery-point-offset-checkpoint")
            assert cut_suffix(place, 30, flushed.get((self.topic, 0), 0)) is not None


@dataclass(frozen=True)
class Kind:
    """A drill by its name: the faults in order, each with the seconds before it."""

    name: str
    faults: tuple[tuple[float, str], ...]
    loses: bool
    replicas: int = 3
    min_insync_replicas: int = 2
    acks: str = "all"
    unclean: bool = False
    since: tuple[int, int] = (0, 10)


def _alone(*faults: tuple[float, str]) -> tuple[tuple[float, str], ...]:
    """First the leader is left alone in the ISR, and goes on acknowledging."""
    return ((3, "kill 2"), (0, "isr 1"), *faults)


LOSSES = (
    Kind(
        "unclean_election",
        _alone((3, "kill 1"), (0, "start 2"), (0, "leads 2"), (1, "start 1"), (0, "isr 1 2")),
        True, replicas=2, min_insync_replicas=1, unclean=True,
    ),
    Kind(
        "last_replicas_disk_emptied",
        _alone((3, "kill 1"), (0, "empty 1"), (0, "start 1"), (0, "leads 1"), (1, "start 2"),
               (0, "isr 1 2")),
        True, replicas=2, min_insync_replicas=1,
    ),
    Kind(
        "last_replica_loses_power",
        _alone((3, "kill 1"), (0, "cut 1"), (0, "start 1"), (0, "leads 1"), (1, "start 2"),
               (0, "isr 1 2")),
        True, replicas=2, min_insync_replicas=1,
    ),
    Kind(
        "acks_1",
        ((3, "freeze 2"), (1.5, "kill 1"), (0, "resume 2"), (0, "leads 2"), (1, "start 1"),
         (0, "isr 1 2")),
        True, replicas=2, min_insync_replicas=1, acks="1",
    ),
    Kind(
        "both_lose_power",
        ((5, "kill 1 2"), (0, "cut 1 2"), (0, "start 1 2"), (0, "isr 1 2")),
        True, replicas=2, min_insync_replicas=1,
    ),
    Kind(
        "unclean_election_forced",
        _alone((3, "kill 1"), (0, "start 2"), (1, "unclean"), (0, "leads 2"), (1, "start 1"),
               (0, "isr 1 2")),
        True, replicas=2, min_insync_replicas=1, since=(2, 4),
    ),
)  # fmt: skip
CLEAN = (
    Kind("nothing_happens", (), False),
    Kind("follower_killed", ((3, "kill 3"), (2, "start 3"), (0, "isr 1 2 3")), False),
    Kind("leader_killed", ((3, "kill 1"), (2, "start 1"), (0, "isr 1 2 3")), False),
    Kind(
        "rolling_restart",
        ((2, "stop 3"), (0, "start 3"), (0, "isr 1 2 3"), (1, "stop 1"), (0, "start 1"),
         (0, "isr 1 2 3")),
        False,
    ),
    Kind("follower_frozen", ((3, "freeze 2"), (8, "resume 2"), (0, "isr 1 2 3")), False),
    Kind(
        "leader_frozen", ((3, "freeze 1"), (8, "resume 1"), (0, "isr 1 2 3")), False
    ),
    Kind(
        "follower_of_two_killed", ((3, "kill 2"), (2, "start 2"), (0, "isr 1 2")), False,
        replicas=2, min_insync_replicas=1,
    ),
    Kind("acks_1_follower_killed", ((3, "kill 2"), (2, "start 2"), (0, "isr 1 2 3")), False,
         acks="1"),
    Kind(
        "followers_disk_emptied",
        ((3, "kill 3"), (0, "isr 1 2"), (0, "empty 3"), (0, "start 3"), (0, "isr 1 2 3")), False,
    ),
    Kind("all_killed", ((4, "kill 1 2 3"), (0, "start 1 2 3"), (0, "isr 1 2 3")), False),
)  # fmt: skip


def plan_text(kind: Kind, topic: str, cluster: Cluster, orders: Orders, out: Path) -> str:
    """The plan as an operator would write it; copies are taken of running brokers."""
    bootstrap = ",".join(f"127.0.0.1:{port}" for port in cluster.external.values())
    lines = [
        f"bootstrap = {json.dumps(bootstrap)}", f"out = {json.dumps(str(out))}",
        "[[topic]]", f"name = {json.dumps(topic)}", "create = false",
        "[load]", "rate = 200", "seconds = 8", "after = 4", "keys = 50",
        f"acks = {json.dumps(kind.acks)}", "timeout = 20",
    ]  # fmt: skip
    for pause, order in kind.faults:
        lines += ["[[fault]]", f"pause = {pause}", f"run = {json.dumps(orders.command(order))}"]
    lines.append("[collect.take]")
    for node in cluster.nodes():
        home = cluster.home(node)
        taken = [str(home / "data"), str(home / "logs")]
        lines.append(f"{json.dumps(home.name)} = {json.dumps(taken)}")
    return "\n".join(lines) + "\n"


@dataclass
class Outcome:
    """One drill, as it ended and as it should have."""

    name: str
    status: int
    lost: Offsets
    told: Offsets
    seconds: float
    wrong: str | None


def drilled(kind: Kind, topic: str, cluster: Cluster, orders: Orders, folder: Path) -> Outcome:
    """One drill from the creation of its topic to the comparison with the truth."""
    began = time.monotonic()
    replicas = list(range(1, kind.replicas + 1))
    cluster.create_topic(
        topic, {0: replicas}, min_insync_replicas=kind.min_insync_replicas,
        unclean_leader_election_enable=str(kind.unclean).lower(),
    )  # fmt: skip
    cluster.wait_for_isr(topic, 0, *replicas)
    orders.topic = topic
    folder.mkdir()
    plan = folder / "plan.toml"
    plan.write_text(plan_text(kind, topic, cluster, orders, folder / "out"))
    command = [sys.executable, "-m", "replication", "drill", str(plan), "--format", "json"]
    with (folder / "said.txt").open("w") as said:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=said, stdin=subprocess.DEVNULL, timeout=240,
            check=False, text=True,
        )  # fmt: skip
    (folder / "answer.json").write_text(done.stdout)
    lost, open_ones = truth(cluster, topic, kind.replicas, folder / "out" / "evidence")
    told: Offsets = set()
    if done.stdout:
        for row in json.loads(done.stdout)["losses"]:
            told |= {(row["partition"], o) for o in range(row["first_offset"], row["end_offset"])}
    wrong = _wrong(kind, done.returncode, lost, told, open_ones)
    return Outcome(kind.name, done.returncode, lost, told, time.monotonic() - began, wrong)


def _wrong(kind: Kind, status: int, lost: Offsets, told: Offsets, open_ones: Offsets) -> str | None:
    if bool(lost) != kind.loses:
        return f"the faults led to {len(lost)} lost records: no drill of its kind"
    if status != int(kind.loses):
        return f"status {status}"
    if lost - told:
        return f"{len(lost - told)} of {len(lost)} lost records are not told"
    if told - lost - open_ones:
        return f"{len(told - lost - open_ones)} records are told as lost that are there"
    return None


def truth(cluster: Cluster, topic: str, replicas: int, evidence: Path) -> tuple[Offsets, Offsets]:
    """Offsets of acknowledged records that the leader's log does not hold now, and offsets above
    every acknowledged record's or in between at which a record without an answer may have been."""
    leader = cluster.leader(topic, 0)
    assert leader is not None
    held: dict[int, str] = {}
    for batch in read_batches(cluster.data(leader)[0] / f"{topic}-0"):
        held.update((r.offset, r.payload_id.split(" ")[0]) for r in records(batch))
    acked: dict[int, set[str]] = {}
    for path in sorted((evidence / "acknowledged").glob("*.jsonl")):
        for line in map(json.loads, path.read_text().splitlines()):
            if line["status"] == "acked":
                acked.setdefault(line["offset"], set()).add(line["payload_id"])
    lost = {(0, offset) for offset, ids in acked.items() if ids - {held.get(offset)}}
    answered = {(0, offset) for offset in acked}
    top = max([*acked, *held], default=0) + 1000
    return lost, {(0, o) for o in range(top) if (0, o) not in answered}


def run(kinds: list[Kind], version: Version, folder: Path) -> list[Outcome]:
    """All of them on one cluster, one after the other."""
    outcomes = []
    folder.mkdir(parents=True, exist_ok=True)
    with Cluster(Plan(version), folder / "cluster") as cluster:
        orders = Orders(cluster, folder)
        for number, kind in enumerate(kinds):
            topic = f"drill-{number:02d}"
            outcome = drilled(kind, topic, cluster, orders, folder / topic)
            outcomes.append(outcome)
            assert "Traceback" not in (folder / topic / "said.txt").read_text(), folder
            print(
                f"{topic} {kind.name}: status {outcome.status}, lost {len(outcome.lost)}, told "
                f"{len(outcome.told)}, {outcome.seconds:.0f} s"
                + (f"  WRONG: {outcome.wrong} {orders.refused}" if outcome.wrong else ""),
                flush=True,
            )
            if outcome.wrong is None:
                shutil.rmtree(folder / topic)
            cluster.delete_topic(topic)
            cluster.assignments.pop(topic)
    return outcomes


def chosen(kinds: tuple[Kind, ...], count: int, version: Version) -> list[Kind]:
    """So many, each kind in turn."""
    fit = [kind for kind in kinds if version.at_least(*kind.since)]
    return [fit[number % len(fit)] for number in range(count)]


def main() -> int:
    """Ends with 1 where a drill was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clean", type=int, default=20)
    parser.add_argument("--loss", type=int, default=20)
    parser.add_argument("--kafka", default="4.3.0")
    parser.add_argument("--only", help="only this kind of drill")
    parser.add_argument("--keep", type=Path, help="keep the run here")
    options = parser.parse_args()
    version = Version(options.kafka)
    kinds = chosen(CLEAN, options.clean, version) + chosen(LOSSES, options.loss, version)
    kinds = [kind for kind in kinds if options.only in (None, kind.name)]
    folder = options.keep or Path(tempfile.mkdtemp(prefix="drills-"))
    folder.mkdir(parents=True, exist_ok=True)
    outcomes = run(kinds, version, folder)
    for loses, name in ((False, "clean"), (True, "with a loss")):
        names = {kind.name for kind in kinds if kind.loses == loses}
        these = [outcome for outcome in outcomes if outcome.name in names]
        right = sum(outcome.wrong is None for outcome in these)
        print(f"{name}: {right} of {len(these)} as the truth has them")
    wrong = Counter(o.name for o in outcomes if o.wrong)
    if options.keep is None and not wrong:
        shutil.rmtree(folder)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
