"""Clients with an acknowledgement log, killed at random moments: what the log lacks, and invents.

    python -m tests.kafka_lab.client_kills [--kills 20] [--rate 5000]

Python and Java clients in turn, on a real broker. The truth is the broker's segments, read by
another parser than the product's: a line names a record that is at its offset, or it is invented;
a record without a line was written at most a second before the client was killed.
"""

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import confluent_kafka as ck
from kafka.record import MemoryRecords

from benchmarks.tap import PERF
from replication.drill.java_tap import build
from replication.paths import kafka_broker_jars
from replication.tap import AcknowledgementLog
from tests.kafka_lab.cluster import Cluster, Plan
from tests.kafka_lab.logs_on_disk import read_batches
from tests.kafka_lab.processes import java, wait_for
from tests.kafka_lab.versions import Version

HEADER = "ack-id"


@dataclass(frozen=True)
class Killed:
    """noted: lines of acknowledgements; invented: of records that are not there; torn: lines that
    are not whole, the last one excepted; missing_seconds: how long before the kill the oldest
    record was written that no line names (0: every record has its line)."""

    noted: int
    invented: int
    torn: int
    missing: int
    missing_seconds: float


def client(bootstrap: str, folder: Path, topic: str, rate: int) -> None:
    """Sends until it is killed."""
    log = AcknowledgementLog(folder, client="killed", payload_id="key")
    producer = ck.Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
    began, sent = time.monotonic(), 0
    while True:
        while sent < (time.monotonic() - began) * rate:
            producer.produce(topic, b"v" * 50, b"k%09d" % sent, on_delivery=log)
            sent += 1
        producer.poll(0.002)


def java_command(bootstrap: str, folder: Path, topic: str, rate: int, jar: Path) -> list[str]:
    class_path = ":".join(map(str, [*kafka_broker_jars("4.3.0"), jar]))
    return [
        java(), "-Xmx128m", "-cp", class_path, PERF, "--topic", topic, "--num-records", "10000000",
        "--record-size", "50", "--throughput", str(rate), "--command-property",
        f"bootstrap.servers={bootstrap}", "linger.ms=5",
        "interceptor.classes=replication.tap.AcknowledgementInterceptor",
        f"acknowledgement.log.dir={folder}", f"acknowledgement.log.header={HEADER}",
    ]  # fmt: skip


def killed(command: list[str], folder: Path, partition: Path, after: float) -> Killed:
    """Runs a client, kills it `after` seconds after its first line, and compares."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for("a first line", lambda: any(p.stat().st_size for p in folder.glob("*")), 60)
        time.sleep(after)
    finally:
        at = time.time()
        process.send_signal(signal.SIGKILL)
        process.wait()
    time.sleep(0.3)
    there = written(partition)
    noted, torn = lines_of(folder)
    invented = sum(there.get(offset, ("", 0.0))[0] != name for offset, name in noted.items())
    missing = [when for offset, (_, when) in there.items() if offset not in noted]
    oldest = max(at - min(missing), 0.0) if missing else 0.0
    return Killed(len(noted), invented, torn, len(missing), oldest)


def written(partition: Path) -> dict[int, tuple[str, float]]:
    """Of each record on disk its name (header, else key) and when it was made, in seconds."""
    found = {}
    for batch in read_batches(partition):
        for record in MemoryRecords(batch).next_batch() or ():
            name = dict(record.headers).get(HEADER, record.key) or b""
            found[record.offset] = (bytes(name).decode(), record.timestamp / 1000)
    return found


def lines_of(folder: Path) -> tuple[dict[int, str], int]:
    """Offset and name of each acknowledgement, and how many lines are not whole."""
    noted, torn = {}, 0
    for path in sorted(folder.glob("*.jsonl")):
        *whole, rest = path.read_bytes().split(b"\n")
        for line in whole:
            try:
                told = json.loads(line)
            except ValueError:
                torn += 1
                continue
            if told["status"] == "acked":
                noted[told["offset"]] = told["payload_id"]
        if rest:
            # The last one may be cut; it must not be taken for a whole one.
            try:
                json.loads(rest)
                torn += 1
            except ValueError:
                pass
    return noted, torn


def main() -> int:
    """Ends with 1 where a line was invented or torn, or more than a second is missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--rate", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--client", nargs=3, metavar=("BOOTSTRAP", "FOLDER", "TOPIC"))
    options = parser.parse_args()
    if options.client:
        bootstrap, folder, topic = options.client
        client(bootstrap, Path(folder), topic, options.rate)
    chance = random.Random(options.seed)
    found: list[Killed] = []
    with tempfile.TemporaryDirectory() as made:
        jar = Path(made) / "tap.jar"
        jars = kafka_broker_jars("4.3.0")
        build(next(j for j in jars if j.name.startswith("kafka-clients")), jar)
        plan = Plan(Version("4.3.0"), brokers=(1,))
        with Cluster(plan, Path(made) / "cluster") as cluster:
            where = f"127.0.0.1:{cluster.external[1]}"
            for number in range(options.kills):
                topic, folder = f"k{number}", Path(made) / f"acks-{number}"
                cluster.create_topic(topic, {0: [1]})
                folder.mkdir()
                if number % 2:
                    command = java_command(where, folder, topic, options.rate, jar)
                else:
                    command = [sys.executable, "-m", "tests.kafka_lab.client_kills", "--client"]
                    command += [where, str(folder), topic, "--rate", str(options.rate)]
                place = cluster.data(1)[0] / f"{topic}-0"
                one = killed(command, folder, place, chance.uniform(0.3, 3))
                print(f"{'java' if number % 2 else 'python'}: {one}", flush=True)
                found.append(one)
                cluster.delete_topic(topic)
    worst = max(one.missing_seconds for one in found)
    bad = sum(one.invented + one.torn for one in found)
    print(
        f"{len(found)} kills, {sum(one.noted for one in found)} lines: {bad} invented or torn, at "
        f"most the last {worst:.2f} s missing"
    )
    return int(bad > 0 or worst > 1)


if __name__ == "__main__":
    sys.exit(main())
