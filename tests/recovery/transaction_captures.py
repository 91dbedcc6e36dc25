"""Captures of a transaction across a loss, held against what kafka-transactions says of it.

    python -m tests.recovery.transaction_captures [--kafka VERSION]... [--seed N]... [--keep DIR]

A transaction's records are on all three brokers; its end is on one, which dies; one of the others
is elected. Seed 1: the coordinator's own log is kept, so that nobody ends the transaction any more.
Seed 2: the coordinator's log is elected uncleanly, too, and it forgets the commit. Asked is for the
open transactions of each partition (describe-producers) and the coordinator's state (describe).
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka as ck

from tests.kafka_lab.cluster import Cluster, Plan
from tests.kafka_lab.experiment import Experiment
from tests.kafka_lab.processes import LabTimeout, run_tool
from tests.kafka_lab.versions import Version
from tests.recovery.group_captures import PARTITIONS, TOPIC, bootstrap

VERSIONS = ("3.9.1", "4.1.1", "4.3.0")
SEEDS = (1, 2)
STATE = "__transaction_state"
TOLD = "transactions.json"
NAME = "app-1"
KEPT, LOST = 1, 2


def asked(cluster: Cluster) -> dict[str, Any]:
    """The coordinator's state, and by topic partition where the open transaction begins."""
    tool = ["org.apache.kafka.tools.TransactionsCommand", "--bootstrap-server", bootstrap(cluster)]
    path = cluster.version.class_path
    text = run_tool(path, [*tool, "describe", "--transactional-id", NAME])
    head, row = (line.split() for line in text.splitlines()[:2])
    state = dict(zip(head, row, strict=False))["TransactionState"]
    began: dict[str, int] = {}
    for partition in PARTITIONS:
        text = run_tool(
            path, [*tool, "describe-producers", "--topic", TOPIC, "--partition", str(partition)]
        )
        head, *rows = (line.split() for line in text.splitlines() if line.strip())
        at = head.index("CurrentTransactionStartOffset")
        began |= {f"{TOPIC}-{partition}": int(r[at]) for r in rows if r[at].isdecimal()}
    return {"state": state, "began": began}


def capture(version: Version, seed: int, directory: Path) -> None:
    """One capture; `directory` then has its evidence and what the tool printed."""
    settings = {
        "transaction.state.log.replication.factor": "3", "min.insync.replicas": "1",
        "unclean.leader.election.enable": "true" if seed == LOST else "false",
    }  # fmt: skip
    with Experiment(Plan(version, settings=settings), directory) as lab:
        lab.cluster.create_topic(
            TOPIC, {p: [1, 2, 3] for p in PARTITIONS}, unclean_leader_election_enable="true"
        )
        lab.producer().must(2, 2)
        producer = ck.Producer(
            {"bootstrap.servers": bootstrap(lab.cluster), "transactional.id": NAME,
             "transaction.timeout.ms": 300_000}
        )  # fmt: skip
        producer.init_transactions(60)
        producer.begin_transaction()
        for partition in PARTITIONS:
            for number in range(3):
                producer.produce(TOPIC, b"tx-%d" % number, partition=partition)
        assert producer.flush(30) == 0
        for topic, partition in [(STATE, 0), *((TOPIC, p) for p in PARTITIONS)]:
            lab.cluster.wait_for_isr(topic, partition, 1, 2, 3)
        lab.cluster.kill(2, 3)
        for topic, partition in [(STATE, 0), *((TOPIC, p) for p in PARTITIONS)]:
            lab.cluster.wait_for_isr(topic, partition, 1)
        producer.commit_transaction(60)
        lab.producer("p2").must(1)
        lab.cluster.kill(1)
        for broker in (1, 2, 3):
            lab.capture.copy_disk(broker, "before-restart")
        lab.cluster.start_broker(2)
        for partition in PARTITIONS:
            lab.cluster.wait_for_leader(TOPIC, partition, 2)
        lab.cluster.start_broker(3)
        lab.cluster.start_broker(1)
        for topic, partition in [(STATE, 0), *((TOPIC, p) for p in PARTITIONS)]:
            lab.cluster.wait_for_isr(topic, partition, 1, 2, 3)
        (directory / TOLD).write_text(json.dumps(asked(lab.cluster), indent=1))
        lab.finish()


def differences(directory: Path, seed: int) -> Iterator[str]:
    """What `groups` says of a capture otherwise than Kafka's tool did."""
    told = json.loads((directory / TOLD).read_text())
    ran = subprocess.run(
        [sys.executable, "-m", "replication", "groups", str(directory / "evidence"),
         "--format", "json"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if ran.returncode != 1:
        yield f"status {ran.returncode}: {ran.stderr[-500:]}"
        return
    rows = json.loads(ran.stdout)["transactions"]
    (directory / "groups.json").write_text(ran.stdout)
    of_kind = {kind: [r for r in rows if r["kind"] == kind] for kind in {r["kind"] for r in rows}}
    hanging = {
        f"{r['topic']}-{r['partition']}": r["first_offset"] for r in of_kind.get("hanging", ())
    }
    if not told["began"]:
        yield "the capture did not get there: no transaction is open"
    if seed == KEPT and hanging != told["began"]:
        yield f"hanging: Kafka {told['began']}, ours {hanging}"
    forgot = [
        (r["coordinator_status"], r["lost_coordinator_status"])
        for r in rows
        if r["kind"] == "coordinator_forgot"
    ]
    if seed == LOST and (hanging or forgot != [("ongoing", "complete_commit")]):
        yield f"coordinator {told['state']}: hanging {hanging}, forgot {forgot}"
    if any(r["transactional_id"] != NAME or not r["certain"] for r in rows):
        yield f"not certain, or not its id: {rows}"


def main(words: list[str]) -> int:
    """Exit status 1 where a capture differs or did not come about."""
    parser = argparse.ArgumentParser(prog="python -m tests.recovery.transaction_captures")
    parser.add_argument("--kafka", action="append", choices=VERSIONS, default=[])
    parser.add_argument("--seed", type=int, action="append", choices=SEEDS, default=[])
    parser.add_argument("--keep", type=Path)
    chosen = parser.parse_args(words)
    wrong = count = 0
    with tempfile.TemporaryDirectory(prefix="transaction-captures-") as scratch:
        for version in chosen.kafka or VERSIONS:
            for seed in chosen.seed or SEEDS:
                directory = (chosen.keep or Path(scratch)) / f"transactions__{version}__seed{seed}"
                shutil.rmtree(directory, ignore_errors=True)
                count += 1
                try:
                    capture(Version(version), seed, directory)
                    told = list(differences(directory, seed))
                except (LabTimeout, AssertionError, ChildProcessError, ck.KafkaException) as error:
                    told = [f"the capture did not come about: {error}"]
                wrong += bool(told)
                print(f"{directory.name}: {'; '.join(told) or 'as Kafka says'}", flush=True)
    print(f"{count} captures, {wrong} differ")
    return 1 if wrong or not count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
