"""Writes .jars/spark.jsa, which conf/spark-defaults.conf names: an archive of Spark's classes.

A third of the CPU of each start of Spark goes into reading and checking its classes. `make setup`
runs one short replay and has the JVM keep what it loaded (Java's class data sharing). A JVM that
the archive does not fit runs without it.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from replication.paths import jars_dir, project_root
from replication.spark.demo import INCIDENT, PROPERTIES

ARCHIVE = "spark.jsa"
# What the JVM says of classes that it cannot keep is of no use to anybody.
QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off"


def main() -> int:
    """Writes the archive, whole or not at all; returns the exit status."""
    os.chdir(project_root())
    binaries, partial = Path(sys.executable).parent, jars_dir() / f"{ARCHIVE}.partial"
    partial.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as name:
        events, tables = Path(name) / "events", Path(name) / "tables"
        events.mkdir()
        java = (
            f"spark.driver.extraJavaOptions=-Dlog4j2.configurationFile=conf/log4j2.properties "
            f"-XX:ArchiveClassesAtExit={partial} {QUIET}"
        )
        steps: list[list[str | Path]] = [
            [binaries / "replication-analyzer", "import", INCIDENT, "--out", events / "one.jsonl"],
            [binaries / "spark-submit", "--properties-file", PROPERTIES, "--conf", java,
             "jobs/replay.py", "--source", events, "--tables", tables],
        ]  # fmt: skip
        environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
        for step in steps:
            run = subprocess.run(step, env=environment, capture_output=True, text=True, check=False)
            # 1: the incident has lost records.
            if run.returncode not in (0, 1):
                print(f"{run.stderr[-2000:]}\nspark.jsa: {step[0]} failed", file=sys.stderr)
                return run.returncode
    if not partial.is_file():
        print("spark.jsa: this Java keeps no classes; Spark starts without", file=sys.stderr)
        return 0
    partial.replace(partial.with_suffix(""))
    return 0


if __name__ == "__main__":
    sys.exit(main())
