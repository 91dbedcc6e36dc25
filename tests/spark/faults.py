"""Faults at the stream, one after the other, each held against an undisturbed run and a replay.

    python -m tests.spark.faults [--seed 0] [--only NAME ..]     (make faults SEED=n)

A fault is a function that works on a folder with the source in it until all is folded; afterwards
every table must hold what the undisturbed run's tables hold, or the job must have refused in words
that say what to do. Crashes are exceptions at a commit, before it or after; real kills of driver,
JVM and Python are `tests.spark.kill_cycles`, which `make faults` runs as well.
"""

import argparse
import random
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from replication.evidence.event_dumps import write_events
from replication.spark import analyzer_version, contracts, fold_stream, runs, tables
from replication.spark.lease import CheckpointLock, LockedError
from replication.spark.maintain import Kept, Maintenance
from replication.spark.progress import Progress
from replication.spark.tables import Store, TablesError
from tests.spark.event_rows import made_trace, other_content
from tests.spark.jobs_in_process import rows, run_replay, run_stream, start_session

LEFT_OUT = ("_batches", "_refolds", "expectation_results")


class CrashError(RuntimeError):
    """The end of the process, as far as the tables can tell."""


@dataclass
class Bench:
    """What a fault works on. folder/in is the source; chance is seeded."""

    spark: SparkSession
    folder: Path
    chance: random.Random

    def stream(self, **flags: Any) -> str:
        """One run of the stream to its end."""
        return run_stream(self.spark, self.folder, profile="small-batches", **flags)

    def deliver(self, *numbers: int) -> None:
        """Puts some of the files into the source folder."""
        for number, events in enumerate(source()):
            if not numbers or number in numbers:
                write_events(self.folder / "in" / f"{number}.jsonl", events)


def source() -> list[list[Any]]:
    """Files of events: two partitions in turns, duplicates, a late conflict, a second trace."""
    one, two = made_trace(0), made_trace(1)
    newer = made_trace(1, generation=1, trace_id="again", rounds=3)
    return [one[:30] + two[:20], [*one[30:], other_content(one[8]), one[3]], two[20:], newer]


@contextmanager
def crash_at(commit: int, after: bool) -> Iterator[list[int]]:
    """The process ends at its commit of that number, before it is made or after."""
    seen = [0]
    sound = Store._save

    def save(store: Store, written: Any, table: str, writer: Any) -> None:
        seen[0] += 1
        if seen[0] == commit and not after:
            raise CrashError(f"before commit {commit}, of {table}")
        sound(store, written, table, writer)
        if seen[0] == commit:
            raise CrashError(f"after commit {commit}, of {table}")

    Store._save = save  # type: ignore[method-assign]
    try:
        yield seen
    finally:
        Store._save = sound  # type: ignore[method-assign]


def crash_on_and_on(bench: Bench, most: int) -> None:
    """Crashes at a commit of each start, further and further, until a start comes to its end."""
    for _ in range(most):
        try:
            with crash_at(bench.chance.randint(1, 9), bench.chance.random() < 0.5):
                bench.stream()
                return
        except Exception as error:
            if "CrashError" not in str(error) and "CrashError" not in repr(error):
                raise
    bench.stream()


def crashes(bench: Bench) -> None:
    """Random crashes, forty at most."""
    bench.deliver()
    crash_on_and_on(bench, 40)


def few_crashes(bench: Bench) -> None:
    """Three random crashes, for the tests."""
    bench.deliver()
    crash_on_and_on(bench, 3)


def files_in_any_order(bench: Bench) -> None:
    """The files one by one in a random order, a start each."""
    numbers = list(range(len(source())))
    bench.chance.shuffle(numbers)
    for number in numbers:
        bench.deliver(number)
        bench.stream()


def maintenance_between(bench: Bench) -> None:
    """OPTIMIZE and VACUUM of all that is not in use, between starts."""
    for number in range(len(source())):
        bench.deliver(number)
        bench.stream()
        round_ = Maintenance(bench.spark, bench.folder / "tables", bench.folder / "checkpoint",
                             Progress(sys.stderr))  # fmt: skip
        round_.run(Kept(0.0), 2)


def rewritten_source(bench: Bench) -> None:
    """A file that is cut after it was read and written anew, longer: its events are duplicates."""
    bench.deliver(0)
    bench.stream()
    path = bench.folder / "in" / "0.jsonl"
    whole = path.read_text()
    path.write_text(whole[: len(whole) // 2])
    assert "was cut to" in bench.stream()
    bench.deliver()
    bench.stream()


def another_analyzer(bench: Bench) -> None:
    """The analyzer itself changes between starts: everything is judged anew, once."""
    bench.deliver(0, 1)
    bench.stream()
    with another_version("9.9+changed"):
        assert "judges every topic partition anew" in bench.stream()
        assert "judges every topic partition anew" not in bench.stream()
        bench.deliver()
        bench.stream()


@contextmanager
def another_version(name: str) -> Iterator[None]:
    """Another analyzer, as far as the tables can tell."""
    modules = (tables, fold_stream)
    for module in modules:
        module.analyzer_version = lambda: name  # type: ignore[attr-defined]
    try:
        yield
    finally:
        for module in modules:
            module.analyzer_version = analyzer_version.analyzer_version  # type: ignore[attr-defined]


def other_shuffle_partitions(bench: Bench) -> None:
    """Spark's own settings changed between starts."""
    bench.deliver(0, 1)
    bench.stream()
    before = bench.spark.conf.get("spark.sql.shuffle.partitions")
    bench.spark.conf.set("spark.sql.shuffle.partitions", "5")
    try:
        bench.deliver()
        bench.stream()
    finally:
        bench.spark.conf.set("spark.sql.shuffle.partitions", str(before))


def refusals(bench: Bench) -> None:
    """What is refused, each in words that say what to do; after it all goes on as before."""
    bench.deliver(0)
    bench.stream()
    checkpoint = bench.folder / "checkpoint"
    kept = bench.folder / "kept"
    shutil.copytree(checkpoint, kept)
    bench.deliver(1)
    bench.stream()
    newest = bench.folder / "newest"
    shutil.move(checkpoint, newest)
    refused(bench, "start anew with --new-run NAME")
    shutil.rmtree(checkpoint)
    shutil.copytree(kept, checkpoint)
    refused(bench, "is older than")
    shutil.rmtree(checkpoint)
    shutil.copytree(newest, checkpoint)
    shutil.rmtree(checkpoint / "fold" / "spark" / "state")
    refused(bench, "the state of .* is gone")
    shutil.rmtree(checkpoint)
    shutil.move(newest, checkpoint)
    refused(bench, "state_shards is 16", state_shards="8")
    other = CheckpointLock(checkpoint)
    other.take()
    refused(bench, "in use by another stream")
    other.release()
    bench.deliver()
    bench.stream()


def refused(bench: Bench, words: str, **flags: Any) -> None:
    """Fails unless the stream refuses to start, in such words."""
    text = ""
    try:
        bench.stream(**flags)
    except (TablesError, LockedError) as error:
        text = str(error)
    if not text or not all(part in text for part in words.split(".*")):
        raise AssertionError(f"wanted a refusal with {words!r}, got {text!r}")


def taken_over(bench: Bench) -> None:
    """Another stream takes the tables over while this one runs: the older one stops."""
    bench.deliver(0, 1)
    sound = fold_stream.Fold.take

    def take(fold: Any, frame: Any, micro_batch_id: int) -> None:
        if micro_batch_id == 1:
            runs.Lease(bench.folder / "tables", "fold").take("another")
        sound(fold, frame, micro_batch_id)

    fold_stream.Fold.take = take  # type: ignore[method-assign]
    try:
        bench.stream()
        raise AssertionError("the older stream wrote on")
    except Exception as error:
        if "run 'another'" not in str(error):
            raise
    finally:
        fold_stream.Fold.take = sound  # type: ignore[method-assign]
    bench.deliver()
    bench.stream()


FAULTS: dict[str, Callable[[Bench], None]] = {
    fault.__name__: fault
    for fault in (
        crashes, files_in_any_order, maintenance_between, rewritten_source, another_analyzer,
        other_shuffle_partitions, refusals, taken_over,
    )
}  # fmt: skip


def state_of(spark: SparkSession, folder: Path) -> dict[str, list[dict[str, Any]]]:
    """The rows of every table, without who wrote them; events and line refusals once each."""
    found = {}
    for table in contracts.tables().values():
        if table.written != "view" and table.name not in LEFT_OUT:
            unique = {repr(row): row for row in rows(spark, folder, table.name)}
            found[table.name] = [unique[text] for text in sorted(unique)]
    return found


def differences(
    spark: SparkSession, folder: Path, wanted: dict[str, list[dict[str, Any]]]
) -> list[str]:
    """In words, the tables that differ from what is wanted."""
    found = state_of(spark, folder)
    return [
        f"{table}: {len(found[table])} rows, undisturbed {len(kept)}"
        for table, kept in wanted.items()
        if found[table] != kept
    ]


def undisturbed(spark: SparkSession, folder: Path) -> dict[str, list[dict[str, Any]]]:
    """The tables of a run that nothing disturbs, which must be those of a replay."""
    bench = Bench(spark, folder, random.Random(0))
    (folder / "in").mkdir(parents=True)
    bench.deliver()
    bench.stream()
    wanted = state_of(spark, folder / "tables")
    run_replay(spark, folder, keep_events=True)
    apart = differences(spark, folder / "replayed", wanted)
    assert apart == [], apart
    return wanted


def work(
    spark: SparkSession, base: Path, name: str, fault: Callable[[Bench], None], seed: int,
    wanted: dict[str, list[dict[str, Any]]],
) -> list[str]:  # fmt: skip
    """One fault on a folder of its own; what its tables do not share with the undisturbed ones."""
    folder = base / name
    (folder / "in").mkdir(parents=True)
    fault(Bench(spark, folder, random.Random(f"{seed} {name}")))
    return differences(spark, folder / "tables", wanted)


def main(argv: list[str]) -> int:
    """The command; exit status 0 when no fault left a difference."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", default=list(FAULTS), choices=list(FAULTS))
    flags = parser.parse_args(argv)
    bad = 0
    with tempfile.TemporaryDirectory() as name:
        base = Path(name)
        spark = start_session(base / "warehouse")
        wanted = undisturbed(spark, base / "undisturbed")
        for fault in flags.only:
            try:
                apart = work(spark, base, fault, FAULTS[fault], flags.seed, wanted)
            except Exception as error:
                apart = [f"{type(error).__name__}: {str(error)[:500]}"]
            bad += bool(apart)
            print(f"{fault}: {'; '.join(apart) or 'the same tables'}", flush=True)
        spark.stop()
    print(f"{len(flags.only)} faults, {bad} left a difference")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
