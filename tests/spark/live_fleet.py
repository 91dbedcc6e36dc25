"""A fault on real brokers, shipped by a real rsyslog through Kafka into the running stream.

    python -m tests.spark.live_fleet [--kafka 4.3.0] [--scenario unclean_election]

Needs rsyslog with its Kafka output (Debian: rsyslog, rsyslog-kafka). Prints when the row of the
fault came into `verdicts`, and holds the tables at the end against `import` of the same logs.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from replication.evidence.importer import import_evidence
from replication.evidence.shipping.live_join import named
from replication.paths import project_root
from replication.protocol.judgement.bounded import fold_all
from replication.spark.demo import JAVA_OPTIONS, PROPERTIES
from tests.kafka_lab.scenarios import SCENARIOS
from tests.kafka_lab.versions import Version
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
ruleset(name="ship") {{
  action(type="omkafka" broker=["{address}"] topic="{topic}" template="line"
         confParam=["compression.codec=none"] resubmitOnFailure="on")
}}
"""


def start_rsyslog(folder: Path, logs: Path, broker: Broker) -> "subprocess.Popen[bytes]":
    """Ships every broker's log files, as they grow."""
    work = folder / "rsyslog"
    work.mkdir()
    config = work / "rsyslog.conf"
    config.write_text(RSYSLOG.format(work=work, logs=logs, address=broker.address, topic=TOPIC))
    command = ["rsyslogd", "-n", "-f", str(config), "-i", str(work / "pid")]
    log = (work / "said.txt").open("wb")
    return subprocess.Popen(command, stdout=log, stderr=log)


def start_stream(folder: Path, broker: Broker) -> "subprocess.Popen[bytes]":
    """jobs/stream.py beside the fleet."""
    submit = str(Path(sys.executable).with_name("spark-submit"))
    quick = ["spark.sql.codegen.wholeStage=false", "spark.driver.memory=1200m", JAVA_OPTIONS]
    command = [
        submit, "--properties-file", PROPERTIES,
        *[part for setting in quick for part in ("--conf", setting)],
        "jobs/stream.py", "--shipped", "--source", "kafka",
        "--bootstrap-servers", broker.address, "--topic", TOPIC, "--cluster", NAME,
        "--tables", str(folder / "tables"), "--checkpoint-dir", str(folder / "checkpoint"),
        "--trigger", "2 seconds", "--settle-seconds", "0",
    ]  # fmt: skip
    log = (folder / "stream.txt").open("wb")
    return subprocess.Popen(
        command, cwd=project_root(), stdout=log, stderr=log,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
    )  # fmt: skip


def verdicts(tables: Path) -> dict[tuple[str, int, str], str]:
    """What stands in the table now, read by another engine."""
    try:
        rows = DeltaTable(str(tables / "verdicts")).to_pyarrow_table().to_pylist()
    except TableNotFoundError:
        return {}
    return {(r["topic"], r["partition"], r["invariant"]): r["verdict"] for r in rows}


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


def started_after_the_last_kill(journal: list[dict[str, Any]]) -> float:
    """When the laboratory started the first broker after it had killed the last one."""
    killed = max(n for n, line in enumerate(journal) if line["action"] == "kill9")
    started = next(line for line in journal[killed:] if line["action"] == "start")
    return datetime.fromisoformat(started["ts"]).timestamp()


def run(folder: Path, scenario: str, kafka: str) -> int:
    """The whole story; exit status 0 when the tables end as the import says."""
    lab = folder / "lab"
    (folder / "log-broker").mkdir()
    with started_broker(folder / "log-broker") as broker:
        make_topic(broker, TOPIC)
        stream = start_stream(folder, broker)
        shipper = start_rsyslog(folder, lab / "cluster", broker)
        try:
            with ThreadPoolExecutor(1) as pool:
                story = pool.submit(SCENARIOS[scenario].run, Version(kafka), lab)
                key = ("t", 0, "committed_records_survive")
                seen = waited(
                    "row of the fault",
                    lambda: verdicts(folder / "tables").get(key) == "VIOLATED",
                    stream,
                )
                experiment = story.result()
            fault = started_after_the_last_kill(experiment.cluster.journal.lines())
            print(
                f"{scenario} on {kafka}: the row came {seen - fault:.1f} s after the broker was "
                "started that led without the records (trigger 2 s, rsyslog looks once a second)"
            )
            logs = folder / "copied"
            for home in sorted((lab / "cluster").glob("*/logs")):
                shutil.copytree(home, logs / home.parent.name)
            wanted = expected(logs)
            waited("equal tables", lambda: verdicts(folder / "tables") == wanted, stream, 120)
            print(f"{len(wanted)} verdicts, each as `import` of the same logs says")
        finally:
            shipper.terminate()
            stream.terminate()
            stream.wait(120)
    return 0


def main(argv: list[str]) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kafka", default="4.3.0")
    parser.add_argument("--scenario", default="unclean_election", choices=sorted(SCENARIOS))
    parser.add_argument("--keep", type=Path, help="leave everything in this folder")
    flags = parser.parse_args(argv)
    if shutil.which("rsyslogd") is None:
        print("live_fleet: install rsyslog and rsyslog-kafka", file=sys.stderr)
        return 2
    if flags.keep:
        flags.keep.mkdir(parents=True)
        return run(flags.keep, flags.scenario, flags.kafka)
    with tempfile.TemporaryDirectory() as name:
        return run(Path(name), flags.scenario, flags.kafka)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
