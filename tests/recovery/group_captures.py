"""Captures of consumer groups across a loss, held against what Kafka's own tool printed before it.

    python -m tests.recovery.group_captures [--kafka VERSION]... [--seed N]... [--keep DIR]
    python -m tests.recovery.group_captures --again DIR

In each, three groups read a topic on a real cluster while its ISR shrinks to one broker; that
broker dies, and one that was behind is elected. `kafka-consumer-groups --describe` is asked before
that and at the end. `replication-analyzer groups` on the evidence has to name the same offsets.
Where internal topics allow unclean elections, too, commits are lost with the records.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import confluent_kafka as ck

from tests.kafka_lab.cluster import Cluster, Plan
from tests.kafka_lab.experiment import Experiment
from tests.kafka_lab.processes import LabTimeout, run_tool, wait_for
from tests.kafka_lab.versions import Version

VERSIONS = ("1.1.1", "2.3.1", "2.8.2", "3.6.2", "3.9.1", "4.1.1", "4.3.0")
WITH_ZOOKEEPER = "3.6.2"
SEEDS = range(1, 6)
TOPIC, PARTITIONS = "t", (0, 1)
OFFSETS = "__consumer_offsets"
BEFORE, AFTER = "groups_before.json", "groups_after.json"
Offsets = dict[str, dict[str, int]]
_ROW = re.compile(r"^(\S+)\s+(\S+)\s+(\d+)\s+(\d+|-)\s+\S+\s+\S+")
_OLD_ROW = re.compile(r"^()(\S+)\s+(\d+)\s+(\d+|-)\s+\S+\s+\S+")


def bootstrap(cluster: Cluster) -> str:
    """The brokers that run."""
    return ",".join(f"127.0.0.1:{cluster.external[b]}" for b in cluster.answering())


def read_on(cluster: Cluster, group: str, protocol: str, upto: dict[int, int]) -> None:
    """A member of the group reads on to these offsets, commits them and leaves."""
    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap(cluster), "group.id": group, "client.id": f"{group}-app",
        "enable.auto.commit": False, "auto.offset.reset": "earliest", "fetch.wait.max.ms": 100,
    }  # fmt: skip
    if protocol == "consumer":
        settings["group.protocol"] = "consumer"
    else:
        settings["session.timeout.ms"] = 6000
    last: dict[int, Any] = {}
    with closing(ck.Consumer(settings)) as consumer:
        consumer.subscribe([TOPIC])
        deadline = time.monotonic() + 60
        while any(p not in last or last[p].offset() + 1 < end for p, end in upto.items()):
            if time.monotonic() > deadline:
                raise LabTimeout(f"group {group}: read not as far as {upto} within 60 s")
            message = consumer.poll(0.5)
            if message is None or message.error() is not None:
                continue
            if message.offset() < upto.get(message.partition(), 0):
                last[message.partition()] = message
        for message in last.values():
            consumer.commit(message=message, asynchronous=False)


def share_on(cluster: Cluster, group: str, count: int) -> None:
    """A member of a share group takes so many records and acknowledges them."""
    tool = "org.apache.kafka.tools.consumer.ConsoleShareConsumer"
    run_tool(
        cluster.version.class_path,
        [tool, "--bootstrap-server", bootstrap(cluster), "--topic", TOPIC, "--group", group,
         "--max-messages", str(count), "--timeout-ms", "20000"],
    )  # fmt: skip


def described(cluster: Cluster, groups: list[str]) -> Offsets:
    """group -> {"topic-partition": offset} as kafka-consumer-groups prints it."""
    version, found = cluster.version, {}
    moved = version.at_least(3, 8)
    package = "org.apache.kafka.tools.consumer.group" if moved else "kafka.admin"
    for group in groups:
        text = run_tool(
            version.class_path,
            [f"{package}.ConsumerGroupCommand", "--bootstrap-server", bootstrap(cluster),
             "--describe", "--group", group],
        )  # fmt: skip
        rows = [(_ROW if version.at_least(2, 3) else _OLD_ROW).match(x) for x in text.splitlines()]
        found[group] = {f"{m[2]}-{m[3]}": int(m[4]) for m in rows if m and m[4] != "-"}
        assert found[group], text
    return found


def started_share_groups(cluster: Cluster) -> None:
    """Share groups of the laboratory begin at a topic's start."""
    tool = "org.apache.kafka.tools.ConfigCommand"
    names = ("kafka.admin.ConfigCommand", tool)
    for name in names:
        try:
            run_tool(
                cluster.version.class_path,
                [name, "--bootstrap-server", bootstrap(cluster), "--alter", "--entity-type",
                 "groups", "--entity-name", "shared", "--add-config",
                 "share.auto.offset.reset=earliest"],
            )  # fmt: skip
            return
        except (LabTimeout, subprocess.SubprocessError):
            continue
    raise AssertionError("no ConfigCommand")


def capture(version: Version, seed: int, directory: Path) -> None:
    """One capture; `directory` then has its evidence and what the tool printed."""
    random = Random(seed)
    offsets_too = seed % 2 == 0
    settings = {
        "offsets.topic.replication.factor": "3", "min.insync.replicas": "1",
        "unclean.leader.election.enable": "true" if offsets_too else "false",
        "group.initial.rebalance.delay.ms": "0",
    }  # fmt: skip
    if version.at_least(4, 0):
        settings["share.coordinator.state.topic.replication.factor"] = "3"
    kinds = ["classic", "classic", "consumer" if version.at_least(4, 0) else "classic"]
    groups = {f"{kind}-{number}": kind for number, kind in enumerate(kinds)}
    with Experiment(Plan(version, settings=settings), directory) as lab:
        lab.cluster.create_topic(
            TOPIC, {p: [1, 2, 3] for p in PARTITIONS}, unclean_leader_election_enable="true"
        )
        producer = lab.producer()
        for partition in PARTITIONS:
            producer.must(10, 2, partition=partition)
        shares = version.at_least(4, 2)
        if shares:
            started_share_groups(lab.cluster)
        for group, kind in groups.items():
            read_on(lab.cluster, group, kind, {p: random.randrange(5, 18) for p in PARTITIONS})
        if shares:
            share_on(lab.cluster, "shared", 14)
        time.sleep(1)
        lab.cluster.kill(2, 3)
        for partition in PARTITIONS:
            lab.cluster.wait_for_isr(TOPIC, partition, 1)
        lab.cluster.wait_for_isr(OFFSETS, 0, 1)
        for partition in PARTITIONS:
            producer.must(5, 2, partition=partition)
        for group, kind in list(groups.items())[: random.choice((2, 3))]:
            read_on(lab.cluster, group, kind, {p: random.randrange(21, 31) for p in PARTITIONS})
        if shares:
            share_on(lab.cluster, "shared", 40)
        before = described(lab.cluster, list(groups))
        (directory / BEFORE).write_text(json.dumps(before, indent=1))
        lab.cluster.kill(1)
        for broker in (1, 2, 3):
            lab.capture.copy_disk(broker, "before-restart")
        lab.cluster.start_broker(2)
        for partition in PARTITIONS:
            lab.cluster.wait_for_leader(TOPIC, partition, 2)
        lab.cluster.start_broker(3)
        for partition in PARTITIONS:
            producer.must(2, 2, partition=partition)
        lab.cluster.start_broker(1)
        for topic, partition in [(OFFSETS, 0), *((TOPIC, p) for p in PARTITIONS)]:
            lab.cluster.wait_for_isr(topic, partition, 1, 2, 3)
        wait_for("offsets", lambda: _answers(lab.cluster, groups), 60, pause=1)
        after = described(lab.cluster, list(groups))
        (directory / AFTER).write_text(json.dumps(after, indent=1))
        lab.finish()


def _answers(cluster: Cluster, groups: dict[str, str]) -> bool:
    try:
        return bool(described(cluster, list(groups)))
    except (LabTimeout, AssertionError):
        return False


def differences(directory: Path) -> Iterator[str]:
    """What `groups` says of a capture otherwise than Kafka's tool did."""
    ran = subprocess.run(
        [sys.executable, "-m", "replication", "groups", str(directory / "evidence"),
         "--format", "json"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    (directory / "groups.json").write_text(ran.stdout)
    if ran.returncode not in (0, 1):
        yield f"status {ran.returncode}: {ran.stderr[-500:]}"
        return
    rows = {
        (r["group"], f"{r['topic']}-{r['partition']}"): r for r in json.loads(ran.stdout)["groups"]
    }
    for name in (BEFORE, AFTER):
        told: Offsets = json.loads((directory / name).read_text())
        for group, offsets in told.items():
            for where, offset in offsets.items():
                row = rows.get((group, where), {})
                ours = row.get("committed_offset")
                if name == BEFORE and row.get("lost_committed_offset") is not None:
                    ours = row["lost_committed_offset"]
                if ours != offset:
                    yield f"{name}: {group} {where}: Kafka {offset}, ours {ours}"


def main(words: list[str]) -> int:
    """Exit status 1 where a capture differs or did not come about."""
    parser = argparse.ArgumentParser(prog="python -m tests.recovery.group_captures")
    parser.add_argument("--kafka", action="append", choices=VERSIONS, default=[])
    parser.add_argument("--seed", type=int, action="append", default=[])
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--again", type=Path, help="judge kept captures under this folder anew")
    chosen = parser.parse_args(words)
    wrong = count = 0
    with tempfile.TemporaryDirectory(prefix="group-captures-") as scratch:
        root = chosen.again or chosen.keep or Path(scratch)
        if chosen.again is None:
            named = [(v, s) for v in chosen.kafka or VERSIONS for s in chosen.seed or SEEDS]
            made = [(root / f"groups__{v}__seed{s}", v, s) for v, s in named]
        else:
            made = [(path.parent, "", 0) for path in sorted(root.glob(f"**/{AFTER}"))]
        for directory, version, seed in made:
            count += 1
            began = time.monotonic()
            try:
                if version:
                    shutil.rmtree(directory, ignore_errors=True)
                    capture(Version(version, version == WITH_ZOOKEEPER), seed, directory)
                told = list(differences(directory))
            except (LabTimeout, AssertionError, ChildProcessError, ck.KafkaException) as error:
                told = [f"the capture did not come about: {error}"]
            wrong += bool(told)
            state = "; ".join(told) or "as Kafka's tool"
            print(f"[{time.monotonic() - began:3.0f} s] {directory.name}: {state}", flush=True)
    print(f"{count} captures, {wrong} differ")
    return 1 if wrong or not count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
