"""Kills the stream's driver with SIGKILL at aimed moments, and starts it again.

The stream stops the moment a given table has a new commit (halting_stream.py), and a watcher on the
tables' logs kills it there, so that a micro-batch is left half written; before the restart it is
proven from the logs on the disk that it is. In the
end every table must equal that of a run nobody disturbed. As a command:

    python -m tests.spark.kill_cycles --seed 7 --cycles 20
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import Row, SparkSession

from replication.evidence.event_dumps import write_events
from replication.paths import project_root
from replication.spark import contracts
from replication.spark.demo import JAVA_OPTIONS, PROPERTIES
from replication.spark.tables import Store
from tests.spark.event_rows import made_trace
from tests.spark.halting_stream import HALT_AFTER
from tests.spark.jobs_in_process import rows, run_stream, start_session

# The order in which one thread commits a micro-batch's tables; the row of _batches is the last.
COMMITS = {
    "ingest": ("replica_events", "_batches"),
    "fold": (
        "isr_and_leadership", "replica_states", "findings", "loss_ledger", "verdicts", "_batches",
    ),
}  # fmt: skip
TARGETS = [(query, table) for query, tables in COMMITS.items() for table in tables]
# What was killed is gone by then, or is a zombie that nobody waits for.
ENDING_SECONDS = 5
PATIENCE = 600.0
# The exit status of a JVM that SIGTERM has ended.
TERMINATED = 128 + signal.SIGTERM


class NotThereError(AssertionError):
    """A kill did not land where it was aimed."""


@dataclass
class Kills:
    """One folder with in/, tables/ and checkpoint/, and the process that writes it. settings,
    environment: what it has besides."""

    folder: Path
    settings: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)

    def start(self, halts_after: str | None = None) -> "subprocess.Popen[bytes]":
        """The job in a process group of its own. halts_after: "query/table", where it stops."""
        submit = Path(sys.executable).with_name("spark-submit")
        quick = ["spark.sql.codegen.wholeStage=false", "spark.driver.memory=1200m", JAVA_OPTIONS]
        quick += self.settings
        settings = [part for setting in quick for part in ("--conf", setting)]
        command = [
            str(submit), "--properties-file", PROPERTIES, *settings,
            "tests/spark/halting_stream.py" if halts_after else "jobs/stream.py",
            "--source", str(self.folder / "in"), "--tables", str(self.folder / "tables"),
            "--checkpoint-dir", str(self.folder / "checkpoint"),
            "--profile", "small-batches", "--settle-seconds", "0",
        ]  # fmt: skip
        log = (self.folder / "log.txt").open("ab")
        return subprocess.Popen(
            command, cwd=project_root(), start_new_session=True, stdout=log, stderr=log,
            env={**os.environ, "PYSPARK_PYTHON": sys.executable, **self.environment,
                 HALT_AFTER: halts_after or ""},
        )  # fmt: skip

    def kill_after(self, query: str, table: str) -> str:
        """Runs the job until query has committed to table; kills it; returns the proof in words.

        Raises NotThereError where the job ended before, or the tables do not show it.
        """
        kill_group(self.started_until(query, table, halts=True))
        return self.proof(query, table)

    def end_after(self, query: str, table: str) -> str:
        """Runs the job until query has committed to table and sends SIGTERM to spark-submit, which
        must end between two micro-batches; returns the proof in words.

        Raises NotThereError where it did not.
        """
        before = len(self.log())
        process = self.started_until(query, table)
        process.terminate()
        try:
            status = process.wait(PATIENCE)
        finally:
            kill_group(process)
        micro_batch = self.newest(query, table)
        whole = self.newest(query, "_batches") == micro_batch
        said = self.log()[before:]
        if status != TERMINATED or "Traceback" in said or not whole:
            raise NotThereError(
                f"ended with {status} in {query} micro-batch {micro_batch} of {table}, finished: "
                f"{whole}\n{said[-2_000:]}"
            )
        return f"{query} micro-batch {micro_batch}: ended after it, with {status}"

    def started_until(
        self, query: str, table: str, halts: bool = False
    ) -> "subprocess.Popen[bytes]":
        """The job once query has committed to table: stopped there, or running on."""
        before = self.newest(query, table)
        process = self.start(f"{query}/{table}" if halts else None)
        deadline = time.monotonic() + PATIENCE
        try:
            while self.newest(query, table) <= before:
                if process.poll() is not None:
                    raise NotThereError(
                        f"the job ended with {process.returncode} before a commit of {table}:\n"
                        + self.log_end()
                    )
                if time.monotonic() > deadline:
                    raise NotThereError(f"no commit of {table} in {PATIENCE:.0f} s")
                time.sleep(0.002)
        except BaseException:
            kill_group(process)
            raise
        return process

    def newest(self, query: str, table: str) -> int:
        """The newest micro-batch of query in a table's log on the disk, -1 for none."""
        newest = -1
        for commit in (self.folder / "tables" / table / "_delta_log").glob("*.json"):
            for line in commit.read_text(encoding="utf-8").splitlines():
                txn = json.loads(line).get("txn")
                if txn and txn["appId"].startswith(f"{query}/"):
                    newest = max(newest, txn["version"])
        return newest

    def proof(self, query: str, table: str) -> str:
        """That the kill landed: table has the micro-batch, what comes after it has not."""
        micro_batch = self.newest(query, table)
        order = COMMITS[query]
        later = order[order.index(table) + 1 :]
        behind = [name for name in later if self.newest(query, name) >= micro_batch]
        committed = self.folder / "checkpoint" / query / "spark" / "commits" / str(micro_batch)
        if behind or committed.exists():
            raise NotThereError(
                f"killed after {table} of {query} micro-batch {micro_batch}, but {behind} have it "
                f"too, Spark's own commit: {committed.exists()}"
            )
        missing = ", ".join(later) or "Spark's own commit"
        return f"{query} micro-batch {micro_batch}: {table} has it, {missing} not"

    def log_end(self) -> str:
        """The last lines of what the job said."""
        return "\n".join(line[:500] for line in self.log().splitlines()[-15:])

    def log(self) -> str:
        """What all starts of the job have said."""
        path = self.folder / "log.txt"
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


def kill_group(process: "subprocess.Popen[bytes]") -> None:
    """SIGKILL to the process and its children (the JVM, Python); waits for the end of them all:
    one that is still ending holds its lock."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    deadline = time.monotonic() + ENDING_SECONDS
    while time.monotonic() < deadline:
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)


def prepare(folder: Path, files: int) -> None:
    """A source of that many files, each with the whole life of one partition."""
    (folder / "in").mkdir(parents=True)
    for number in range(files):
        write_events(folder / "in" / f"{number:03}.jsonl", made_trace(number, rounds=2))


def run(folder: Path, targets: Sequence[tuple[str, str]], ended: int = 0) -> list[str]:
    """Kills once a target, in order. ended: so many of the targets are met by SIGTERM instead.
    Returns the proofs."""
    kills = Kills(folder)
    proofs = []
    for number, (query, table) in enumerate(targets):
        by_request = number >= len(targets) - ended
        meet = kills.end_after if by_request else kills.kill_after
        proofs.append(meet(query, table))
        print(f"{'asked to end' if by_request else 'killed'}: {proofs[-1]}", file=sys.stderr,
              flush=True)  # fmt: skip
    return proofs


def differences(spark: SparkSession, killed: Path, undisturbed: Path) -> list[str]:
    """What the tables of two runs over the same files do not share, in words; [] when equal."""
    found = []
    for table in contracts.tables().values():
        if not table.is_of_jobs or table.name == "_batches":
            continue
        a, b = (rows(spark, folder / "tables", table.name) for folder in (killed, undisturbed))
        if a != b:
            found.append(f"{table.name}: {len(a)} rows, undisturbed {len(b)}")
    figures = ("rows_in", "applied", "duplicates", "quarantined", "held", "findings")
    keys = ("query", "micro_batch_id", *figures)
    a, b = (
        sorted(tuple(row[key] for key in keys) for row in rows_kept(spark, folder))
        for folder in (killed, undisturbed)
    )
    if a != b:
        found.append(f"_batches: {a}, undisturbed {b}")
    return found


def rows_kept(spark: SparkSession, folder: Path) -> list[Row]:
    """The rows of `_batches`."""
    return Store(spark, folder / "tables").newest("_batches").collect()


def check(
    spark: SparkSession, folder: Path, targets: Sequence[tuple[str, str]], ended: int = 0
) -> list[str]:
    """A killed run and an undisturbed one over the same files: their differences, in words."""
    killed, undisturbed = folder / "killed", folder / "undisturbed"
    for each in (killed, undisturbed):
        prepare(each, len(targets) + 1)
    run(killed, targets, ended)
    for each in (killed, undisturbed):
        run_stream(spark, each, profile="small-batches")
    return differences(spark, killed, undisturbed)


def in_order(targets: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Targets of the ingest first: a run that has ingested all has no such commit any more."""
    return sorted(targets, key=lambda target: target[0] != "ingest")


def each_then_some(
    targets: Sequence[tuple[str, str]], number: int, chance: random.Random
) -> list[tuple[str, str]]:
    """So many targets: each once before any comes at random."""
    return [*targets[:number], *chance.choices(targets, k=max(0, number - len(targets)))]


def main(argv: list[str]) -> int:
    """The command; exit status 0 when the tables equal those of an undisturbed run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cycles", type=int, default=10)
    parser.add_argument("--ended", type=int, default=2, help="SIGTERMs after them")
    flags = parser.parse_args(argv)
    chosen = each_then_some(TARGETS, flags.cycles, random.Random(flags.seed))
    with tempfile.TemporaryDirectory() as name:
        spark = start_session(Path(name) / "warehouse")
        targets = in_order(chosen) + [("fold", "replica_states")] * flags.ended
        found = check(spark, Path(name), targets, flags.ended)
        spark.stop()
    print("\n".join(found) or f"{flags.cycles} kills, {flags.ended} SIGTERMs: every table equals "
          "the undisturbed run")  # fmt: skip
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
