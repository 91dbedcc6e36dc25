"""Suites over a million rows of states and findings, against one hand-written aggregate each.

Both look at the same Delta tables and must find the same numbers of failing rows; what is compared
is the CPU time of the whole process tree, since wall time on a shared machine says little.

    .venv/bin/python -m benchmarks.quality [--rows 1000000] [--rounds 3]
"""

import argparse
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from replication.paths import project_root, spark_jars
from replication.quality import checks, suites
from replication.quality.great_expectations_suite import Judge

AIM = 3.0
SUITES = ("replica_states", "findings")
# One row in so many breaks each rule.
ONE_IN = 5_000
SQL = Path(__file__).with_suffix(".sql")


def statements(sort: str) -> dict[str, str]:
    """Table -> statement of the SQL file: made, or by hand."""
    blocks = re.findall(rf"^-- {sort}: (\w+)\n(.*?);$", SQL.read_text(), re.M | re.S)
    return dict(blocks)


def session(folder: Path) -> SparkSession:
    """A session with the settings that the jobs ship with."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.appName("benchmark of the expectations")
    for line in (project_root() / "conf" / "spark-defaults.conf").read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            name, value = line.split(None, 1)
            builder = builder.config(name, value.replace("=conf/", f"={project_root()}/conf/"))
    builder = builder.config("spark.jars", ",".join(map(str, spark_jars())))
    builder = builder.config("spark.sql.warehouse.dir", str(folder / "warehouse"))
    return builder.getOrCreate()


def make(spark: SparkSession, folder: Path, rows: int) -> int:
    """Writes the tables, nine tenths states and one tenth findings, and makes them views."""
    numbers = {"one_in": ONE_IN, "partitions": rows * 3 // 10, "findings": rows // 10}
    for table, sql in statements("made").items():
        made = spark.sql(sql.format(**numbers))
        made.repartition(4).write.format("delta").save(str(folder / table))
        spark.read.format("delta").load(str(folder / table)).createOrReplaceTempView(table)
    return sum(spark.table(table).count() for table in SUITES)


def by_hand(spark: SparkSession) -> dict[str, int]:
    """Expectation -> failing rows, by one statement per table."""
    found: dict[str, int] = {}
    for sql in statements("by hand").values():
        found |= spark.sql(sql).collect()[0].asDict()
    return found


def by_suites(spark: SparkSession, chosen: list[suites.Suite]) -> dict[str, int]:
    """Expectation -> failing rows, by the suites."""
    views = {name: name for name in statements("made")}
    return {
        r.expectation.name: r.failing for r in checks.run(spark, chosen, views, Judge("benchmark"))
    }


@dataclass
class Meter:
    """CPU seconds of this process and of the JVM, which does the work."""

    jvm: int

    def cpu(self) -> float:
        """Seconds so far."""
        fields = Path(f"/proc/{self.jvm}/stat").read_text().rsplit(")", 1)[1].split()
        ticks = int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK") + time.process_time()

    def measured(self, work: Callable[[], dict[str, int]]) -> tuple[float, float, dict[str, int]]:
        """(CPU seconds, wall seconds, what came out)."""
        cpu, wall = self.cpu(), time.monotonic()
        found = work()
        return self.cpu() - cpu, time.monotonic() - wall, found


def main(argv: list[str]) -> int:
    """Prints a line per round and the ratio of the best ones; 1 where the sides disagree."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    flags = parser.parse_args(argv)
    chosen = suites.load(project_root() / "conf" / "expectations", SUITES)
    with tempfile.TemporaryDirectory() as base:
        spark = session(Path(base))
        rows = make(spark, Path(base), flags.rows)
        total = sum(len(s.expectations) for s in chosen)
        print(f"{rows:,} rows of {' and '.join(SUITES)}, {total} expectations")
        meter = Meter(int(spark._jvm.java.lang.ProcessHandle.current().pid()))
        best = {"suites": float("inf"), "by hand": float("inf")}
        for round_number in range(1, flags.rounds + 1):
            hand = meter.measured(lambda: by_hand(spark))
            ours = meter.measured(lambda: by_suites(spark, chosen))
            if hand[2] != ours[2]:
                print(f"they disagree:\n  by hand {hand[2]}\n  suites  {ours[2]}")
                return 1
            for name, (cpu, wall, _) in (("by hand", hand), ("suites", ours)):
                best[name] = min(best[name], cpu)
                print(f"round {round_number}: {name:8} {cpu:6.1f} CPU s, {wall:6.1f} s")
        print(f"failing rows found by both: {ours[2]}")
        ratio = best["suites"] / best["by hand"]
        print(f"suites cost {ratio:.2f} times the hand-written aggregates (aim: at most {AIM:g})")
        spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
