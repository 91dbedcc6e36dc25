"""`make demo`: a real incident through import and jobs/stream.py into Delta tables, asked by SQL.

Every step is the command that a user would type; it is printed before it runs. All that it makes
lies in .demo/ of the checkout, made anew each time.
"""

import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from replication.java_options import QUICKLY
from replication.paths import project_root
from replication.spark import session, views

INCIDENT = "tests/incidents/unclean_election__4.1.1"
PROPERTIES = "conf/spark-defaults.conf"
JAVA_OPTIONS = (
    "spark.driver.extraJavaOptions=-Dlog4j2.configurationFile=conf/log4j2.properties "
    "-Dspark.shutdown.timeout=150s -XX:SharedArchiveFile=.jars/spark.jsa -Xlog:cds=off "
    f"-Xlog:cds+dynamic=off {QUICKLY}"
)
QUESTIONS = (
    (
        "What was promised and is gone, by tier?",
        "SELECT topic, partition, first_offset, end_offset - 1 AS last_offset, records, tier, "
        "contract, status, cause FROM loss_ledger ORDER BY topic, partition, first_offset",
    ),
    (
        "Which promises hold?",
        "SELECT topic, partition, invariant, verdict, evidence, reason FROM verdicts "
        "ORDER BY topic, partition, verdict DESC, invariant",
    ),
    (
        "Where do replicas differ?",
        "SELECT topic, partition, replicas, first_offset, end_offset, status FROM divergences "
        "ORDER BY topic, partition, first_offset",
    ),
    (
        "What does each replica hold now?",
        "SELECT topic, partition, replica, leader_epoch, first_offset, end_offset "
        "FROM replica_log_spans ORDER BY topic, partition, replica, first_offset",
    ),
)
WIDEST = 60


def main() -> int:
    """Runs the demo; returns the exit status of the step that failed, else 0."""
    os.chdir(project_root())
    demo = Path(".demo")
    shutil.rmtree(demo, ignore_errors=True)
    (demo / "events").mkdir(parents=True)
    command = Path(sys.executable).with_name("replication-analyzer")
    submit = Path(sys.executable).with_name("spark-submit")
    steps = [
        [str(command), "import", INCIDENT, "--out", str(demo / "events" / "incident.jsonl")],
        [
            str(submit), "--properties-file", PROPERTIES, "--conf", JAVA_OPTIONS, "jobs/stream.py",
            "--source", str(demo / "events"), "--tables", str(demo / "tables"),
            "--checkpoint-dir", str(demo / "checkpoint"),
        ],
    ]  # fmt: skip
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    for step in steps:
        _say(f"$ {_shown(step)}")
        started = time.monotonic()
        status = subprocess.run(step, env=environment, check=False).returncode
        if status:
            _say(f"demo: exit status {status}; `replication-analyzer doctor` says what is missing")
            return status
        _say(f"  ({time.monotonic() - started:.0f} s)")
    _ask(demo / "tables")
    return 0


def _ask(tables: Path) -> None:
    """Asks the questions by SQL from the Delta tables alone."""
    arguments = f"--properties-file {PROPERTIES} --conf {shlex.quote(JAVA_OPTIONS)} pyspark-shell"
    os.environ["PYSPARK_SUBMIT_ARGS"] = arguments
    spark = session.start("replication-analyzer demo")
    try:
        views.opened(spark, tables.absolute()).register()
        for question, sql in QUESTIONS:
            print(f"\n{question}\n  SQL: {sql}\n")
            spark.sql(sql).show(truncate=WIDEST)
        print(f"\nThe tables, for any engine that reads Delta: {tables.absolute()}")
        print(f'For example: spark.sql("SELECT * FROM delta.`{tables.absolute()}/verdicts`")')
    finally:
        spark.stop()


def _shown(step: Sequence[str]) -> str:
    """A command as a user would type it from the checkout."""
    parts = [os.path.relpath(part) if os.path.isabs(part) else part for part in step]
    return shlex.join(parts)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
