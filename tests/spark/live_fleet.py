"""Faults on real brokers, shipped by a real rsyslog through Kafka into the running stream.

    python -m tests.spark.live_fleet [--kafka 4.3.0] [--rounds 5]

Needs rsyslog with its Kafka output (Debian: rsyslog, rsyslog-kafka). Beside every broker digest.py
prints what its directories hold. Each round loses records of a topic of its own: all but one of its
replicas die, then the last, and one that was behind leads. Printed: how long after the ISR had
shrunk the danger stood in `at_risk`, how long after the election the broken promise stood in
`verdicts`, in seconds and in micro-batches, and whether the records named were those lost. The
tables at the end are held against `import` of the same logs and digests.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from replication.evidence.importer import import_evidence
from replication.evidence.shipping.live_join import named
from replication.paths import project_root
from replication.protocol.judgement.bounded import fold_all
from replication.spark.demo import JAVA_OPTIONS, PROPERTIES
from tests.kafka_lab.cluster import Plan
from tests.kafka_lab.experiment import Experiment
from tests.kafka_lab.versions import Version
from tests.spark.fleet import Lost, loses, started_digests
from tests.spark.test_kafka_source import Broker, make_topic, started_broker

TOPIC = "broker-logs"
NAME = "orders"
PATIENCE = 300.0
RSYSLOG = """
module(load="imfile" mode="polling" pollingInterval="1")
module(load="omkafka")
global(workDirectory="{work}")
template(name="line" type="list" option.jsonf="on") {{
  property(outname="hostname" name="hostname" format="jsonf")
  property(outname="path" name="$!metadata!filename" format="jsonf")
  property(outname="offset" name="$!metadata!fileoffset" format="jsonf")
  property(outname="message" name="msg" format="jsonf")
}}
input(type="imfile" file="{logs}/*/logs/*.log" tag="kafka" ruleset="ship" addMetadata="on")
input(type="imfile" file="{digests}/*.digest" tag="kafka" ruleset="ship" addMetadata="on")
ruleset(name="ship") {{
  action(type="omkafka" broker=["{address}"] topic="{topic}" template="line"
         confParam=["compression.codec=none"] resubmitOnFailure="on")
}}
"""


def start_rsyslog(
    folder: Path, logs: Path, broker: Broker, digests: Path | None = None
) -> "subprocess.Popen[bytes]":
    """Ships every broker's log files, and what digests print, as they grow. folder: what it keeps
    lies there, and the digests unless they lie elsewhere."""
    work = folder / "rsyslog"
    work.mkdir(exist_ok=True)
    config = work / "rsyslog.conf"
    said = {"work": work, "logs": logs, "digests": digests or folder}
    config.write_text(RSYSLOG.format(**said, address=broker.address, topic=TOPIC))
    (work / "pid").unlink(missing_ok=True)
    command = ["rsyslogd", "-n", "-f", str(config), "-i", str(work / "pid")]
    log = (work / "said.txt").open("ab")
    return subprocess.Popen(command, stdout=log, stderr=log)


def start_stream(
    folder: Path, broker: Broker, more: Sequence[str] = ()
) -> "subprocess.Popen[bytes]":
    """jobs/stream.py beside the fleet, in a process group of its own. more: further flags."""
    submit = str(Path(sys.executable).with_name("spark-submit"))
    quick = ["spark.sql.codegen.wholeStage=false", "spark.driver.memory=1200m", JAVA_OPTIONS]
    command = [
        submit, "--properties-file", PROPERTIES,
        *[part for setting in quick for part in ("--conf", setting)],
        "jobs/stream.py", "--shipped", "--source", "kafka",
        "--bootstrap-servers", broker.address, "--topic", TOPIC, "--cluster", NAME,
        "--tables", str(folder / "tables"), "--checkpoint-dir", str(folder / "checkpoint"),
        "--trigger", "2 seconds", "--settle-seconds", "0", *more,
    ]  # fmt: skip
    log = (folder / "stream.txt").open("ab")
    return subprocess.Popen(
        command, cwd=project_root(), start_new_session=True, stdout=log, stderr=log,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
    )  # fmt: skip


def rows_of(tables: Path, table: str) -> list[dict[str, Any]]:
    """What stands in the table now, read by another engine."""
    try:
        return list(DeltaTable(str(tables / table)).to_pyarrow_table().to_pylist())
    except TableNotFoundError:
        return []


def verdicts(tables: Path) -> dict[tuple[str, int, str], str]:
    """What the stream says of every partition."""
    return {
        (r["topic"], r["partition"], r["invariant"]): r["verdict"]
        for r in rows_of(tables, "verdicts")
    }


@dataclass
class Watch:
    """Looks into the tables without pause. risky: by topic when a danger first stood there, and the
    records that were named last; violated: by topic when the broken promise did."""

    tables: Path
    risky: dict[str, float] = field(default_factory=dict)
    named: dict[str, set[int]] = field(default_factory=dict)
    violated: dict[str, float] = field(default_factory=dict)
    ended: threading.Event = field(default_factory=threading.Event)

    def look(self) -> None:
        while not self.ended.wait(0.25):
            now = time.time()
            for row in rows_of(self.tables, "at_risk"):
                if row["until"] is None:
                    self.risky.setdefault(row["topic"], now)
                    offsets = range(row["first_offset"], row["end_offset"])
                    self.named.setdefault(row["topic"], set()).update(offsets)
            for (topic, _, invariant), verdict in verdicts(self.tables).items():
                if (invariant, verdict) == ("committed_records_survive", "VIOLATED"):
                    self.violated.setdefault(topic, now)

    def micro_batches(self, since: float, until: float) -> int:
        """How many of the fold's ended in that time."""
        ended = (
            row["finished_at"] / 1000
            for row in rows_of(self.tables, "_batches")
            if row["query"] == "fold" and row["micro_batch_id"] >= 0
        )
        return sum(1 for at in ended if since < at <= until + 0.5)


def waited(
    what: str, reached, process: "subprocess.Popen[bytes]", seconds: float = PATIENCE
) -> float:  # type: ignore[no-untyped-def]
    """When it was so; AssertionError after so long, or when the process ended."""
    deadline = time.time() + seconds
    while not reached():
        assert process.poll() is None, f"the process ended with {process.returncode}"
        assert time.time() < deadline, f"no {what} after {seconds:.0f} s"
        time.sleep(0.25)
    return time.time()


def expected(logs: Path) -> dict[tuple[str, int, str], str]:
    """What importing the same logs says."""
    events = [named(event, NAME) for event in import_evidence([logs]).events()]
    return {
        (f.identity[1], f.identity[3], v["invariant"]): v["verdict"]
        for f in fold_all(events)
        for v in f.answer.verdicts
    }


def spread(numbers: list[float]) -> str:
    """Median and the 95th of a hundred."""
    ordered = sorted(numbers)
    last = ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]
    return f"median {ordered[len(ordered) // 2]:.1f}, p95 {last:.1f}"


def lost_in(tables: Path, topic: str) -> set[int]:
    """The offsets that the ledger tells of."""
    return {
        offset
        for row in rows_of(tables, "loss_ledger")
        if row["topic"] == topic
        for offset in range(row["first_offset"], row["end_offset"])
    }


def run(folder: Path, kafka: str, rounds: int) -> int:
    """The whole story; exit status 0 when every loss was named before and the tables end as the
    import says."""
    (folder / "log-broker").mkdir()
    watch = Watch(folder / "tables")
    watching = threading.Thread(target=watch.look)
    moments: dict[str, Lost] = {}
    with started_broker(folder / "log-broker") as broker:
        make_topic(broker, TOPIC)
        stream = start_stream(folder, broker)
        with Experiment(Plan(Version(kafka)), folder / "lab") as lab:
            digests = started_digests(lab, folder)
            shipper = start_rsyslog(folder, lab.cluster.directory, broker)
            watching.start()
            try:
                # Measured is a stream that runs, not its start.
                lab.cluster.create_topic("first", {0: [1, 2, 3]}, min_insync_replicas=1)
                waited("first answer", lambda: verdicts(watch.tables), stream)
                for number in range(rounds):
                    topic = f"t{number}"
                    moments[topic] = loses(lab, topic)
                    waited("row of the loss", lambda: topic in watch.violated, stream)  # noqa: B023
                    lab.cluster.start_broker(3)
                    lab.cluster.wait_for_isr(topic, 0, 1, 2, 3)
                for process in digests:
                    process.terminate()
                equal = _ends_equal(folder, lab.cluster.directory, stream)
            finally:
                watch.ended.set()
                watching.join()
                for process in (*digests, shipper, stream):
                    process.terminate()
                stream.wait(120)
    return _told(watch, moments, kafka) + (not equal)


def _ends_equal(folder: Path, machines: Path, stream: "subprocess.Popen[bytes]") -> bool:
    """Whether the tables come to say what importing the same logs and digests does."""
    copied = folder / "copied"
    for home in sorted(machines.glob("*/logs")):
        shutil.copytree(home, copied / home.parent.name)
    for printed in folder.glob("*.digest"):
        shutil.copy(printed, copied / printed.stem)
    wanted = expected(copied)
    try:
        waited("equal tables", lambda: verdicts(folder / "tables") == wanted, stream, 120)
    except AssertionError as error:
        found = verdicts(folder / "tables")
        differ = {k: (v, found.get(k)) for k, v in wanted.items() if found.get(k) != v}
        print(f"{error}: import says, the tables say: {differ}")
        return False
    print(f"{len(wanted)} verdicts, each as `import` of the same logs and digests says")
    return True


def _told(watch: Watch, moments: dict[str, Lost], kafka: str) -> int:
    """Prints what was seen when; how many losses had not been named."""
    print(
        f"Kafka {kafka}, {len(moments)} rounds; trigger 2 s, rsyslog and digests look each second"
    )
    for what, seen, since in (
        ("at_risk after the ISR had shrunk", watch.risky, lambda m: m.shrunk),
        ("verdicts after one led that was behind", watch.violated, lambda m: m.led),
    ):
        took = [seen[topic] - since(m) for topic, m in moments.items() if topic in seen]
        batches = [
            float(watch.micro_batches(since(m), seen[topic]))
            for topic, m in moments.items()
            if topic in seen
        ]
        if took:
            print(f"  {what}: {spread(took)} s; {spread(batches)} micro-batches")
    missed = 0
    for topic, at in moments.items():
        lost, named = lost_in(watch.tables, topic), watch.named.get(topic, set())
        ahead = at.killed - watch.risky.get(topic, at.killed)
        missed += ahead <= 0 or not lost or not lost <= named
        print(f"  {topic}: named {len(named)} records {ahead:.1f} s before the last holder died; "
              f"lost {len(lost)}, of them named {len(lost & named)}")  # fmt: skip
    return missed


def main(argv: list[str]) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kafka", default="4.3.0")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--keep", type=Path, help="leave everything in this folder")
    flags = parser.parse_args(argv)
    if shutil.which("rsyslogd") is None:
        print("live_fleet: install rsyslog and rsyslog-kafka", file=sys.stderr)
        return 2
    if flags.keep:
        flags.keep.mkdir(parents=True)
        return run(flags.keep, flags.kafka, flags.rounds)
    with tempfile.TemporaryDirectory() as name:
        return run(Path(name), flags.kafka, flags.rounds)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
