"""What the acknowledgement log costs a producer: throughput and 99th percentile, with and without.

    python -m benchmarks.tap [--rounds 5] [--rate 50000] [--seconds 8]

One broker, one topic. Producers with and without the log take turns in one run: Java by Kafka's own
perf tool and the interceptor (with its header), Python by confluent-kafka and the callback. A ratio
is that of the medians of all rounds.
"""

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import confluent_kafka as ck

from replication.drill.java_tap import build
from replication.paths import kafka_broker_jars, project_root
from replication.tap import AcknowledgementLog
from tests.kafka_lab.cluster import Cluster, Plan
from tests.kafka_lab.processes import java
from tests.kafka_lab.versions import Version

VALUE_BYTES = 100
PERF = "org.apache.kafka.tools.ProducerPerformance"
Measured = tuple[float, float]


def java_load(
    bootstrap: str, rate: int, seconds: float, jar: Path, folder: Path | None
) -> Measured:
    """Records a second and the 99th percentile in milliseconds. folder: of the log, None: none."""
    properties = [f"bootstrap.servers={bootstrap}", "linger.ms=5", "acks=all"]
    if folder is not None:
        properties += [
            "interceptor.classes=replication.tap.AcknowledgementInterceptor",
            f"acknowledgement.log.dir={folder}", "acknowledgement.log.header=ack-id",
        ]  # fmt: skip
    class_path = ":".join(map(str, [*kafka_broker_jars("4.3.0"), jar]))
    command = [
        java(), "-Xms256m", "-Xmx256m", "-cp", class_path, PERF, "--topic", "t", "--num-records",
        str(int(rate * seconds)), "--record-size", str(VALUE_BYTES), "--throughput", str(rate),
        "--warmup-records", str(int(rate * seconds / 3)), "--command-property", *properties,
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    last = done.stdout.strip().splitlines()[-1]
    found = re.search(r", ([\d.]+) records/sec .* (\d+) ms 99th", last)
    assert found is not None, last
    return float(found[1]), float(found[2])


def python_load(bootstrap: str, rate: int, seconds: float, folder: Path | None) -> Measured:
    """As `java_load`, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.tap", "--one", bootstrap, "--rate", str(rate)]
    command += ["--seconds", str(seconds)] + ([] if folder is None else ["--folder", str(folder)])
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=project_root())
    throughput, late = json.loads(done.stdout)
    return throughput, late


def one_python_load(bootstrap: str, rate: int, seconds: float, folder: Path | None) -> Measured:
    latencies: list[float] = []
    add = latencies.append

    def answered(error: object, message: ck.Message) -> None:
        add(message.latency())

    log = None if folder is None else AcknowledgementLog(folder, client="b", payload_id="key")
    callback = answered if log is None else log.then(answered)
    producer = ck.Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, "acks": "all"})
    value, sent, total = b"x" * VALUE_BYTES, 0, int(rate * seconds)
    began = time.monotonic()
    while sent < total:
        due = min(int((time.monotonic() - began) * rate), total) - sent
        for number in range(sent, sent + min(due, 1000)):
            try:
                producer.produce("t", value, b"%09d" % number, on_delivery=callback)
            except BufferError:
                producer.poll(0.01)
                break
            sent += 1
        producer.poll(0.001)
    producer.flush(30)
    took = time.monotonic() - began
    if log is not None:
        log.close()
        assert (log.noted, log.dropped) == (total, 0)
    # The first third warms up, as with the Java tool.
    steady = sorted(latencies[total // 3 :])
    return total / took, 1000 * steady[int(len(steady) * 0.99)]


def told(name: str, plain: list[Measured], tapped: list[Measured]) -> str:
    medians = [[statistics.median(m[n] for m in each) for n in (0, 1)] for each in (plain, tapped)]
    (rate, late), (rate_with, late_with) = medians
    return (
        f"{name}: {rate_with:,.0f} records a second with the log, {rate:,.0f} without (ratio "
        f"{rate_with / rate:.3f}, aim 0.97); 99th percentile {late_with:.1f} ms and {late:.1f} ms "
        f"(ratio {late_with / late:.2f}, aim 1.05), {len(plain)} rounds"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rate", type=int, default=50_000)
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--only", choices=("java", "python"))
    parser.add_argument("--one", metavar="BOOTSTRAP", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(one_python_load(
            options.one, options.rate, options.seconds, options.folder
        )))  # fmt: skip
        return 0
    found: dict[tuple[str, bool], list[Measured]] = {}
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        jar = folder / "tap.jar"
        clients = next(j for j in kafka_broker_jars("4.3.0") if j.name.startswith("kafka-clients"))
        build(clients, jar)
        with Cluster(Plan(Version("4.3.0"), brokers=(1,)), folder / "cluster") as cluster:
            cluster.create_topic("t", {0: [1]}, retention_bytes=1 << 28, segment_bytes=1 << 26)
            where = f"127.0.0.1:{cluster.external[1]}"
            for number in range(options.rounds + 1):
                # The turns change, so that neither is always the first.
                for with_log in (number % 2 == 0, number % 2 == 1):
                    acks = folder / f"acks-{number}" if with_log else None
                    for name in ("java", "python"):
                        if options.only not in (None, name):
                            continue
                        measured = (
                            java_load(where, options.rate, options.seconds, jar, acks)
                            if name == "java"
                            else python_load(where, options.rate, options.seconds, acks)
                        )
                        # The first round warms the broker.
                        if number:
                            found.setdefault((name, with_log), []).append(measured)
    for name in ("java", "python"):
        if (name, True) in found:
            print(told(name, found[name, False], found[name, True]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
