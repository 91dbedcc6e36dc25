"""Kills executors of the stream with SIGKILL in mid-batch: it goes on, or says to start it again.

The stream runs over two executors (Spark's local-cluster, each a JVM of its own with its own
Python). The moment a table has a new commit, one of them is killed, while the micro-batch has
others to write. In the end every table must equal that of an undisturbed run. As a command:

    python -m tests.spark.kill_executors --seed 7 --kills 4
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import pyspark

from benchmarks.process_tree import descendants
from replication.paths import spark_jars
from replication.spark.failures import EXIT_TRY_AGAIN
from tests.spark.jobs_in_process import run_stream, start_session
from tests.spark.kill_cycles import (
    PATIENCE,
    Kills,
    NotThereError,
    differences,
    each_then_some,
    in_order,
    kill_group,
    prepare,
)

EXECUTOR = b"CoarseGrainedExecutorBackend"
# Commits after which a micro-batch has more to write: the executor dies while it is needed.
AIMED = [("ingest", "replica_events"), ("fold", "isr_and_leadership"), ("fold", "loss_ledger")]


@dataclass
class ExecutorKills(Kills):
    """A stream over two executors. said: what became of it, kill by kill."""

    chance: random.Random = field(default_factory=random.Random)
    said: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.settings = (
            "spark.master=local-cluster[2,1,1024]",
            "spark.executor.memory=1g",
            f"spark.jars={','.join(map(str, spark_jars()))}",
        )
        # Workers make their folders in Spark's own: a home of links keeps them out of it.
        home = self.folder / "home"
        home.mkdir()
        for entry in Path(pyspark.__file__).parent.iterdir():
            (home / entry.name).symlink_to(entry)
        self.environment = {"SPARK_HOME": str(home)}

    def run(self, kills: int) -> None:
        """Kills executors at so many moments; then to the end, started again where it asks."""
        process: subprocess.Popen[bytes] | None = self.start()
        try:
            for query, table in in_order(each_then_some(AIMED, kills, self.chance)):
                assert process is not None
                if not self.waited_for(process, query, table):
                    process = self.again(process)
                    if process is None:
                        return
                    continue
                pid = self.chance.choice(sorted(executors(process.pid)))
                os.kill(pid, signal.SIGKILL)
                micro_batch = self.newest(query, table)
                done = self.folder / "checkpoint" / query / "spark" / "commits" / str(micro_batch)
                when = "after" if done.exists() else "in"
                place = f"micro-batch {micro_batch} of the {query}, after {table}"
                self.said.append(f"executor killed {when} {place}")
                print(self.said[-1], file=sys.stderr, flush=True)
            while process is not None:
                process.wait(PATIENCE)
                process = self.again(process)
        finally:
            if process is not None:
                kill_group(process)

    def waited_for(self, process: "subprocess.Popen[bytes]", query: str, table: str) -> bool:
        """Whether query has committed to table before the job ended."""
        before = self.newest(query, table)
        deadline = time.monotonic() + PATIENCE
        while process.poll() is None and time.monotonic() < deadline:
            if self.newest(query, table) > before and executors(process.pid):
                return True
            time.sleep(0.01)
        if process.poll() is None:
            raise NotThereError(f"no commit of {table} in {PATIENCE:.0f} s")
        return False

    def again(self, process: "subprocess.Popen[bytes]") -> "subprocess.Popen[bytes] | None":
        """The job started once more, None where it has come to its end.

        Raises AssertionError where it ended otherwise than with the word to start it again.
        """
        if process.returncode == 0:
            return None
        if process.returncode != EXIT_TRY_AGAIN:
            raise AssertionError(f"the job ended with {process.returncode}:\n{self.log_end()}")
        self.said.append("the job asked to be started again")
        return self.start()


def executors(root: int) -> set[int]:
    """The executors' JVMs among a process's descendants."""
    found = set()
    for pid in descendants(root):
        try:
            if EXECUTOR in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.add(pid)
        except OSError:
            continue
    return found


def main(argv: list[str]) -> int:
    """The command; exit status 0 when the tables equal those of an undisturbed run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kills", type=int, default=4)
    flags = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as name:
        killed, undisturbed = Path(name) / "killed", Path(name) / "undisturbed"
        for folder in (killed, undisturbed):
            prepare(folder, flags.kills + 2)
        kills = ExecutorKills(killed, chance=random.Random(flags.seed))
        kills.run(flags.kills)
        spark = start_session(Path(name) / "warehouse")
        run_stream(spark, undisturbed, profile="small-batches")
        found = differences(spark, killed, undisturbed)
        spark.stop()
    in_mid_batch = sum(" in micro-batch " in text for text in kills.said)
    if not in_mid_batch:
        found.append("no executor was killed in mid-batch")
    print("\n".join(found) or f"{in_mid_batch} executors killed in mid-batch: every table equals "
          "the undisturbed run")  # fmt: skip
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
