"""The jobs against their yardsticks: a pass-through, and the stream with a fold that only counts.

Each is a spark-submit of its own, in turn, in one run. CPU seconds are of the whole process tree; a
run over almost no events is measured too, so that ratios can be given with and without the start
of Spark. An event counts as one, however many records it carries.

    .venv/bin/python -m benchmarks.streaming [--events 1000000] [--rounds 3] [--part throughput]
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow.dataset as ds

from benchmarks.process_tree import Cost, measured
from benchmarks.traffic import Partition, write
from replication.paths import project_root

STREAM_AIM, REPLAY_AIM, ACTIVE_AIM, STATE_AIM = 0.85, 1.3, 1.5, 2.0
FEW, ACTIVE = 64, 100
# Of so many topic partitions an event costs at most so many times one of FEW.
MANY_AIMS = {10_000: 1.1, 100_000: 1.3}
JOBS = {
    "pass": ["benchmarks/yardsticks.py", "pass"],
    "count": ["benchmarks/yardsticks.py", "count"],
    "stream": ["jobs/stream.py"],
    "replay": ["jobs/replay.py"],
}
FILES = 16
# Micro-batches with few partitions active; the first ones warm up and do not count.
SMALL_BATCHES, WARM_UP = 20, 8
# As docs/sizing.md sets the stream up where few of many topic partitions have events.
SPARSE = ("--state-shards", "65536")


def submit(job: str, source: Path, work: Path, *flags: str) -> Cost:
    """Runs a job or a yardstick over a folder of events into new tables in work."""
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    root = project_root()
    command = [
        str(root / ".venv/bin/spark-submit"), "--properties-file", "conf/spark-defaults.conf",
        *JOBS[job], "--source", str(source), "--tables", str(work / "tables"),
    ]  # fmt: skip
    if job != "replay":
        command += ["--checkpoint-dir", str(work / "checkpoint")]
    bin_first = {**os.environ, "PATH": f"{root / '.venv/bin'}:{os.environ['PATH']}"}
    environment = {**bin_first, "PYTHONPATH": str(root), "SPARK_LOCAL_DIRS": str(work / "spark")}
    return measured([*command, *flags], cwd=root, env=environment)


def state_bytes(work: Path) -> int:
    """Bytes of state that the fold's state stores hold on disk."""
    files = (work / "checkpoint").glob("fold*/**/state/**/*")
    return sum(path.stat().st_size for path in files if path.is_file())


def throughput(base: Path, events: int, rounds: int, many: list[int]) -> None:
    """The four jobs over few partitions, stream and replay over many too."""
    counts = {
        known: write(base / str(known), [Partition(i) for i in range(known)], events, FILES)
        for known in (FEW, *many)
    }
    tiny = base / "tiny"
    write(tiny, [Partition(i) for i in range(FEW)], FEW, 1)
    for known, count in counts.items():
        print(f"{count:,} events over {known:,} topic partitions")
    runs = [(job, FEW) for job in JOBS]
    runs += [(job, known) for known in many for job in ("stream", "replay")]
    idle = {job: submit(job, tiny, base / "work") for job in JOBS}
    for job, cost in idle.items():
        print(f"start alone: {job:7} {cost.cpu:6.1f} CPU s {cost.wall:6.1f} s", flush=True)
    best: dict[tuple[str, int], float] = {}
    for number in range(1, rounds + 1):
        for job, known in runs:
            cost = submit(job, base / str(known), base / "work")
            written = f" {state_bytes(base / 'work'):>11,} state bytes" if job == "stream" else ""
            print(
                f"round {number}: {job:7} {known:7,} {cost.cpu:6.1f} CPU s {cost.wall:6.1f} s "
                f"{cost.memory >> 20:6,} MiB{written}", flush=True,
            )  # fmt: skip
            key = (job, known)
            best[key] = min(best.get(key, cost.cpu), cost.cpu)
    net = {key: cpu - idle[key[0]].cpu for key, cpu in best.items()}
    few_pass = ("pass", FEW)
    for job, aim in (("stream", STREAM_AIM), ("replay", REPLAY_AIM)):
        key = (job, FEW)
        print(
            f"pass-through / {job}: {best[few_pass] / best[key]:.2f} of whole runs, "
            f"{net[few_pass] / net[key]:.2f} without the start (aim: at least {aim:g})"
        )
    for job in ("stream", "count"):
        print(f"{job}: {counts[FEW] / net[job, FEW]:,.0f} events a CPU second")
    print(f"counting fold / stream: {net['count', FEW] / net['stream', FEW]:.2f}")
    for job, known in runs[len(JOBS) :]:
        ratio = net[job, known] / counts[known] / (net[job, FEW] / counts[FEW])
        print(f"{job}: an event of {known:,} topic partitions costs {ratio:.2f} times one of {FEW} "
              f"(aim: at most {MANY_AIMS.get(known, max(MANY_AIMS.values())):g})")  # fmt: skip


def few_active(base: Path, rounds: int, most: int) -> None:
    """Micro-batches of 100 active topic partitions, when very many are known and when 100 are."""
    medians: dict[int, list[float]] = {most: [], ACTIVE: []}
    states: dict[int, int] = {}
    for number in range(1, rounds + 1):
        for known in medians:
            folder, work = base / f"known-{known}", base / "work"
            shutil.rmtree(folder, ignore_errors=True)
            partitions = [Partition(i) for i in range(known)]
            write(folder, partitions, known, 1, "a")
            step = known // ACTIVE
            write(folder, partitions[::step], SMALL_BATCHES * ACTIVE * 9, SMALL_BATCHES, "b")
            one = ("--max-files-per-trigger", "1", "--fold-max-files-per-trigger", "1")
            submit("stream", folder, work, *one, "--settle-seconds", "0", *SPARSE)
            times = batch_times(work)
            medians[known].append(statistics.median(times))
            states[known] = state_of_last(work)
            print(
                f"round {number}: {known:7,} known, {ACTIVE} active: "
                f"{medians[known][-1]:6.0f} ms a micro-batch of the fold (median of {len(times)}), "
                f"{states[known]:,} state bytes written in the last one", flush=True,
            )  # fmt: skip
    ratio = min(medians[most]) / min(medians[ACTIVE])
    print(f"{ACTIVE} of {most:,} active against all of {ACTIVE}: {ratio:.2f} times the latency "
          f"(aim: at most {ACTIVE_AIM:g}), {states[most] / states[ACTIVE]:.2f} times the state "
          f"(aim: at most {STATE_AIM:g})")  # fmt: skip


def batch_times(work: Path) -> list[float]:
    """Milliseconds of the fold's micro-batches after the warm-up."""
    table = ds.dataset(work / "tables" / "_batches", exclude_invalid_files=True)
    rows = table.to_table(["query", "micro_batch_id", "milliseconds"]).to_pylist()
    fold = [r for r in rows if r["query"] == "fold" and r["micro_batch_id"] >= WARM_UP]
    return [r["milliseconds"] for r in fold]


def state_of_last(work: Path) -> int:
    """Bytes that the newest version of every state store added on disk."""
    newest: dict[Path, tuple[float, int]] = {}
    for path in (work / "checkpoint").glob("fold*/**/state/**/*.changelog"):
        status = path.stat()
        known = newest.get(path.parent, (0.0, 0))
        newest[path.parent] = max(known, (status.st_mtime, status.st_size))
    return sum(size for _, size in newest.values())


def main(argv: list[str]) -> int:
    """Prints a line per run, then the ratios."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--part", choices=("throughput", "few-active"))
    parser.add_argument(
        "--many", type=int, nargs="+", default=list(MANY_AIMS), help="topic partitions known"
    )
    flags = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as base:
        try:
            if flags.part != "few-active":
                throughput(Path(base), flags.events, flags.rounds, flags.many)
            if flags.part != "throughput":
                few_active(Path(base), flags.rounds, max(flags.many))
        except subprocess.CalledProcessError as error:
            print(json.dumps(error.cmd), error.output, sep="\n", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
