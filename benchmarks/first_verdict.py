"""From the command to the first verdict of a small dump, and to what the suites say of its tables.

Each is a command of its own on the incident of `make demo`. Spark's own start is a command that
only starts the session and ends, so that what is ours is told apart. Lines of Spark's are those on
the console that the user can do nothing about.

    .venv/bin/python -m benchmarks.first_verdict [--rounds 3]
"""

import argparse
import os
import re
import sys
import tempfile
from pathlib import Path

from benchmarks.process_tree import Cost, measured
from replication.evidence.event_dumps import write_events
from replication.evidence.importer import import_evidence
from replication.paths import project_root
from replication.spark import session
from replication.spark.demo import INCIDENT
from replication.submit import command_of

# Seconds.
VERDICT_AIM, SUITES_AIM = 20.0, 15.0
OF_SPARK = re.compile(r"^(\d\d:\d\d:\d\d |WARNING: |\d\d/\d\d/\d\d )", re.M)
# 1: records of the incident are lost, and a suite says so.
STATUSES = (0, 1)


def commands(folder: Path) -> dict[str, list[str]]:
    """What is measured, by its name, in turn."""
    submit = str(Path(sys.executable).with_name("spark-submit"))
    source, tables = ["--source", str(folder / "in")], ["--tables", str(folder / "tables")]
    start = command_of("check_quality", [], submit)[:-1]
    return {
        "start of Spark": [*start, str(Path(__file__)), "start"],
        "first verdict": command_of("replay", [*source, *tables], submit),
        "suites": command_of("check_quality", tables, submit),
    }


def one(command: list[str], folder: Path) -> Cost:
    """Runs a command with this Python, from a folder that is not the checkout."""
    environment = {
        **os.environ, "PYTHONPATH": str(project_root()), "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable, "SPARK_LOCAL_DIRS": str(folder / "spark"),
    }  # fmt: skip
    return measured(command, STATUSES, cwd=folder, env=environment)


def main(argv: list[str]) -> int:
    """Prints a line a command, then how the aims are met."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    flags = parser.parse_args(argv)
    best: dict[str, Cost] = {}
    with tempfile.TemporaryDirectory() as name:
        for number in range(1, flags.rounds + 1):
            folder = Path(name) / str(number)
            (folder / "in").mkdir(parents=True)
            events = list(import_evidence([project_root() / INCIDENT]).events())
            write_events(folder / "in" / "incident.jsonl", events)
            for what, command in commands(folder).items():
                cost = one(command, folder)
                lines = len(OF_SPARK.findall(cost.output))
                told = f"{cost.cpu:.1f} CPU s, {cost.wall:.1f} s, {lines} lines of Spark's"
                print(f"round {number}: {what}: {told}", flush=True)
                if what not in best or cost.wall < best[what].wall:
                    best[what] = cost
    start = best["start of Spark"]
    verdict, suites = best["first verdict"].wall, best["suites"].wall - start.wall
    missed = verdict > VERDICT_AIM or suites > SUITES_AIM
    print(f"first verdict after {verdict:.1f} s, of which Spark's own start takes "
          f"{start.wall:.1f} (aim: {VERDICT_AIM:g}): {_word(verdict <= VERDICT_AIM)}")  # fmt: skip
    print(f"suites in {suites:.1f} s without Spark's own start (aim: {SUITES_AIM:g}): "
          f"{_word(suites <= SUITES_AIM)}")  # fmt: skip
    for what in ("first verdict", "suites"):
        print(f"{what}: {best[what].cpu / start.cpu:.1f} times the CPU of starting Spark alone")
    return int(missed)


def _word(reached: bool) -> str:
    return "reached" if reached else "MISSED"


def start_alone() -> None:
    """The job that only starts."""
    session.start("replication-analyzer start").stop()


if __name__ == "__main__":
    if sys.argv[1:] == ["start"]:
        start_alone()
    else:
        sys.exit(main(sys.argv[1:]))
