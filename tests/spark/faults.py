"""Faults at the stream, one after the other, each held against an undisturbed run and a replay.

    python -m tests.spark.faults [--seed 0] [--only NAME ..]     (make faults SEED=n)

A fault is a function that works on a folder with the source in it until all is folded; afterwards
every table must hold what the undisturbed run's tables hold, or the job must have refused in words
that say what to do. Crashes are exceptions at a commit, before it or after; real kills of driver,
JVM and Python are `tests.spark.kill_cycles`, which `make faults` runs as well.
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from benchmarks.process_tree import descendants
from replication.protocol.ground import wire
from replication.spark import analyzer_version, failures, fold_stream, runs, tables
from replication.spark.kafka_source import KafkaSource
from replication.spark.locks import CheckpointLock
from replication.spark.tables import Store
from tests.spark.fault_bench import (
    Bench,
    Tables,
    differences,
    ending,
    failed_outside,
    maintained,
    refused,
    source,
    undisturbed,
)
from tests.spark.jobs_in_process import rows, run_stream, start_session
from tests.spark.kafka_broker import make_topic, send, started_broker


class CrashError(RuntimeError):
    """The end of the process, as far as the tables can tell."""


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
        maintained(bench)


def rewritten_source(bench: Bench) -> None:
    """A file that is cut after it was read and written anew, longer: its events are duplicates."""
    bench.deliver(0)
    bench.stream()
    path = bench.folder / "in" / "0.jsonl"
    whole = path.read_text()
    path.write_text(whole[: whole.index("\n", len(whole) // 2) + 1])
    assert "was cut to" in bench.stream()
    bench.deliver()
    bench.stream()


def half_a_line(bench: Bench) -> None:
    """A file whose end is cut inside a line and stands still: that line is refused, and said; when
    the file is written anew, all of it is read."""
    bench.deliver(0)
    path = bench.folder / "in" / "0.jsonl"
    whole = path.read_text()
    path.write_text(whole[: len(whole) // 2])
    bench.stream()
    bench.refused.append(whole[: len(whole) // 2].rsplit("\n", 1)[1])
    bench.deliver()
    bench.stream()


def clocks(bench: Bench) -> None:
    """The machine's clock jumps by weeks between starts, and files come with any time of change."""
    sound = time.time
    try:
        for number in range(len(source())):
            jump = bench.chance.choice([-40, -8, 8, 40]) * 86_400.0
            time.time = lambda jump=jump: sound() + jump
            bench.deliver(number)
            stamp = sound() + bench.chance.uniform(-1e7, -1e6)
            os.utime(bench.folder / "in" / f"{number}.jsonl", (stamp, stamp))
            bench.stream()
            if number == 1:
                maintained(bench)
    finally:
        time.time = sound


def full_disk(bench: Bench) -> None:
    """A disk with little left, again and again: each time it says so, and goes on when there is."""
    with small_disk(bench) as disk:
        ballast = disk / "ballast"
        bench.deliver()
        full = 0
        for _ in range(6):
            free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
            ballast.write_bytes(b"x" * max(0, free - bench.chance.randint(0, 1 << 17)))
            said = failed_outside(bench, "No space left on device")
            full += bool(said)
            ballast.unlink()
        if not full:
            raise AssertionError("the disk was never full")
        bench.stream()


def read_only_tables(bench: Bench) -> None:
    """The disk of tables and checkpoint can only be read from one start on."""
    with small_disk(bench) as disk:
        bench.deliver(0)
        bench.stream()
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        bench.deliver()
        if not failed_outside(bench, "Read-only file system"):
            raise AssertionError("wrote to a disk that can only be read")
        subprocess.run(["mount", "-o", "remount,rw", disk], check=True)
        bench.stream()


@contextmanager
def small_disk(bench: Bench) -> Iterator[Path]:
    """A file system of its own in memory, on which tables and checkpoint lie; it stays until the
    fault has been looked at."""
    disk = bench.folder / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "none", disk], check=True)
    bench.afterwards.append(lambda: subprocess.run(["umount", "--lazy", disk], check=True))
    for name in ("tables", "checkpoint"):
        (disk / name).mkdir()
        (bench.folder / name).symlink_to(disk / name)
    yield disk


def damaged_checkpoint(bench: Bench) -> None:
    """Files of the checkpoint are gone, cut or empty: refused in words, or the same tables."""
    bench.deliver(0, 1)
    bench.stream()
    kept = bench.folder / "kept"
    for part in ("tables", "checkpoint"):
        shutil.copytree(bench.folder / part, kept / part)
    files = [
        p for p in sorted((kept / "checkpoint").rglob("*")) if p.is_file() and p.name[0] != "."
    ]
    bench.deliver()
    for _ in range(bench.trials):
        path = bench.chance.choice(files).relative_to(kept)
        how = bench.chance.choice(["gone", "cut", "empty"])
        damage(bench.folder / path, how)
        try:
            bench.stream()
            said = "went on"
            apart = differences(bench.spark, bench.folder / "tables", bench.wanted)
        except Exception as error:
            status, said = ending(error)
            apart = [] if status in (2, 5) else [f"exit {status}: {said}"]
        print(f"  {path} {how}: {said}", flush=True)
        if apart:
            bench.found.append(f"{path} {how}: {'; '.join(apart)}")
        put_back(bench, kept)
    bench.stream()


def damage(path: Path, how: str) -> None:
    """Takes a file away, or half of it, or all that is in it."""
    data = path.read_bytes()
    path.unlink()
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    if how != "gone":
        path.write_bytes(data[: len(data) // 2] if how == "cut" else b"")


def put_back(bench: Bench, kept: Path) -> None:
    """Tables and checkpoint as they were, for Delta too."""
    for part in ("tables", "checkpoint"):
        shutil.rmtree(bench.folder / part)
        shutil.copytree(kept / part, bench.folder / part)
    bench.spark.sparkContext._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()


def deleted_rows(bench: Bench) -> None:
    """Somebody deletes rows beside the stream: refused in words when the rows are counted; taken
    back, it goes on."""
    bench.deliver(0, 1)
    bench.stream()
    table = f"delta.`{bench.folder / 'tables' / 'isr_and_leadership'}`"
    bench.spark.sql(f"DELETE FROM {table} WHERE leader_epoch = 0").collect()
    refused(bench, "somebody else has written.* is a DELETE.*fold the events into new tables")
    version = bench.spark.sql(f"DESCRIBE HISTORY {table}").agg({"version": "max"}).first()[0]
    bench.spark.sql(f"RESTORE TABLE {table} TO VERSION AS OF {version - 1}").collect()
    bench.deliver()
    bench.stream()


def added_column(bench: Bench) -> None:
    """Somebody adds a column to tables between two micro-batches: it says to start again, or goes
    on."""
    bench.deliver(0, 1)
    sound = fold_stream.Fold.take

    def take(fold: Any, frame: Any, micro_batch_id: int) -> None:
        sound(fold, frame, micro_batch_id)
        if micro_batch_id == 0:
            for table in ("replica_events", "verdicts"):
                path = bench.folder / "tables" / table
                bench.spark.sql(f"ALTER TABLE delta.`{path}` ADD COLUMNS (note string)")

    fold_stream.Fold.take = take  # type: ignore[method-assign]
    try:
        failed_outside(bench, "start it again")
    finally:
        fold_stream.Fold.take = sound  # type: ignore[method-assign]
    bench.deliver()
    failed_outside(bench, "start it again")
    bench.stream()


def killed_workers(bench: Bench) -> None:
    """Python workers are killed at random moments, until a start comes to its end."""
    bench.deliver()
    for _ in range(bench.trials):
        done = threading.Event()
        killer = threading.Thread(target=kill_a_worker, args=(bench.chance.uniform(0, 8), done))
        killer.start()
        try:
            bench.stream()
        except Exception as error:
            status, said = ending(error)
            if status != failures.EXIT_TRY_AGAIN:
                raise AssertionError(f"exit {status}: {said}") from error
        finally:
            done.set()
            killer.join()
    bench.stream()


def kill_a_worker(after: float, done: threading.Event) -> None:
    """Kills the first worker of this process's Spark that is seen at work after so many seconds."""
    done.wait(after)
    while not done.wait(0.02):
        for pid in descendants(os.getpid()):
            try:
                command = Path(f"/proc/{pid}/cmdline").read_bytes()
                parent = int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
                forked = b"pyspark.daemon" in Path(f"/proc/{parent}/cmdline").read_bytes()
            except OSError:
                continue
            if forked and b"pyspark.daemon" in command:
                os.kill(pid, signal.SIGKILL)
                return


def broker_killed(bench: Bench) -> None:
    """The source's only broker is killed, and comes back: a start without it says so."""
    quick = {"kafka.default.api.timeout.ms": "5000", "kafka.request.timeout.ms": "4000"}
    (bench.folder / "kafka").mkdir()
    with started_broker(bench.folder / "kafka") as broker:
        topic = KafkaSource(broker.address, "events", quick)
        make_topic(broker, "events")
        lines = [wire.to_json(event).encode() for piece in source() for event in piece]
        send(broker, "events", list(lines[: len(lines) // 2]))
        run_stream(bench.spark, bench.folder, source=topic)
        broker.process.kill()
        if not failed_outside(bench, "start it again", topic):
            raise AssertionError("there was no broker, and nothing said so")
        broker.restart()
        send(broker, "events", list(lines[len(lines) // 2 :]))
        run_stream(bench.spark, bench.folder, source=topic)


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


def other_shards(bench: Bench) -> None:
    """Another number of shards, over the stored events: a run of its own, which says how."""
    bench.deliver(0, 1)
    bench.stream()
    refused(bench, "delete .*fold.* start anew with --new-run NAME", state_shards="5")
    shutil.rmtree(bench.folder / "checkpoint" / "fold")
    bench.stream(new_run="resharded", state_shards="5")
    bench.deliver()
    bench.stream(state_shards="5")


def too_much_held(bench: Bench) -> None:
    """All topic partitions together may hold nothing: what waits behind a gap is let go, and read
    again when the gap has closed."""
    little, let_go = {"held_total_limit": "1"}, False
    numbers = list(range(len(source())))
    for number in reversed(numbers):
        bench.deliver(number)
        bench.stream(**little)
        batches = rows(bench.spark, bench.folder / "tables", "_batches")
        in_state = sum(row["held_in_state"] or 0 for row in batches)
        held = sum(row["held"] for row in batches)
        print(f"  {held} held, {in_state} of them in the state", flush=True)
        let_go = let_go or held > in_state
    if not let_go:
        raise AssertionError("nothing was let go")


def refusals(bench: Bench) -> None:
    """What is refused, each in words that say what to do; after it all goes on as before."""
    bench.deliver(0)
    bench.stream()
    checkpoint = bench.folder / "checkpoint"
    kept = bench.folder / "kept"
    shutil.copytree(checkpoint, kept)
    tables, older, whole = bench.folder / "tables", bench.folder / "older", bench.folder / "whole"
    shutil.copytree(tables, older)
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
    shutil.move(tables, whole)
    shutil.copytree(older, tables)
    refused(bench, "put tables and checkpoint directory of one moment back")
    shutil.rmtree(tables)
    shutil.move(whole, tables)
    shutil.rmtree(checkpoint / "fold" / "spark" / "state")
    refused(bench, "the state of .* is gone")
    shutil.rmtree(checkpoint)
    shutil.move(newest, checkpoint)
    refused(bench, "state_shards is 1024", state_shards="8")
    other = CheckpointLock(checkpoint)
    other.take()
    refused(bench, "in use by another stream")
    other.release()
    bench.deliver()
    bench.stream()


def taken_over(bench: Bench) -> None:
    """Another stream takes the tables over while this one runs: the older one stops."""
    bench.deliver(0, 1)
    sound = fold_stream.Fold.take

    def take(fold: Any, frame: Any, micro_batch_id: int) -> None:
        if micro_batch_id == 1:
            store = Store(bench.spark, bench.folder / "tables")
            runs.Run("fold", "another", 1, "", bench.folder).fenced(store)
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
        crashes, files_in_any_order, maintenance_between, rewritten_source, half_a_line,
        another_analyzer, other_shuffle_partitions, other_shards, refusals, taken_over, clocks,
        deleted_rows, added_column, damaged_checkpoint, full_disk, read_only_tables,
        killed_workers, broker_killed, too_much_held,
    )
}  # fmt: skip


def work(
    spark: SparkSession, base: Path, name: str, fault: Callable[[Bench], None], seed: int,
    wanted: Tables, trials: int = 12,
) -> list[str]:  # fmt: skip
    """One fault on a folder of its own; what its tables do not share with the undisturbed ones."""
    folder = base / name
    (folder / "in").mkdir(parents=True)
    bench = Bench(spark, folder, random.Random(f"{seed} {name}"), wanted, trials)
    try:
        fault(bench)
        return bench.found + differences(spark, folder / "tables", wanted, bench.refused)
    finally:
        for undo in bench.afterwards:
            undo()


def main(argv: list[str]) -> int:
    """The command; exit status 0 when no fault left a difference."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--trials", type=int, default=12, help="of faults that come in many forms")
    parser.add_argument("--only", nargs="*", default=list(FAULTS), choices=list(FAULTS))
    flags = parser.parse_args(argv)
    bad = 0
    with tempfile.TemporaryDirectory() as name:
        base = Path(name)
        spark = start_session(base / "warehouse")
        wanted = undisturbed(spark, base / "undisturbed")
        for fault in flags.only:
            started = time.monotonic()
            try:
                apart = work(spark, base, fault, FAULTS[fault], flags.seed, wanted, flags.trials)
            except Exception as error:
                apart = [f"{type(error).__name__}: {str(error)[:500]}"]
            bad += bool(apart)
            took = f"{time.monotonic() - started:.0f} s"
            print(f"{fault}: {'; '.join(apart) or 'the same tables'} ({took})", flush=True)
        spark.stop()
    print(f"{len(flags.only)} faults, {bad} left a difference")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
