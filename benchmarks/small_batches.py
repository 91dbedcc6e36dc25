"""What a micro-batch of a thousand events costs: of the stream, and of the fold that only counts.

Each file is a micro-batch of the ingest and one of the fold, in one warm job; CPU is that of the
whole process tree between the first micro-batches, which warm up, and the last one.

    .venv/bin/python -m benchmarks.small_batches [--events 1000] [--micro-batches 40] [--warm-up 15]
"""

import argparse
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from benchmarks.month import cpu_of, environment
from benchmarks.streaming import FEW, JOBS
from benchmarks.traffic import Partition, write
from replication.paths import project_root

CPU_AIM, COUNT_AIM = 1.5, 1.3
DONE = re.compile(r"(ingest|fold) micro-batch (\d+):")


def costs(job: str, source: Path, work: Path, warm_up: int) -> dict[str, float]:
    """CPU seconds of a warm micro-batch, by query."""
    root = project_root()
    command = [
        str(root / ".venv/bin/spark-submit"), "--properties-file", "conf/spark-defaults.conf",
        *JOBS[job], "--source", str(source), "--tables", str(work / "tables"),
        "--checkpoint-dir", str(work / "checkpoint"), "--settle-seconds", "0",
        "--max-files-per-trigger", "1", "--fold-max-files-per-trigger", "1",
    ]  # fmt: skip
    work.mkdir(parents=True)
    marks: dict[str, list[tuple[int, float]]] = defaultdict(list)
    process = subprocess.Popen(
        command, cwd=root, env=environment(work), stdout=subprocess.PIPE, text=True,
        stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert process.stdout is not None
    said = []
    for line in process.stdout:
        said.append(line)
        match = DONE.match(line)
        if match and int(match[2]) >= warm_up:
            marks[match[1]].append((int(match[2]), cpu_of(process.pid)))
    if process.wait():
        raise RuntimeError("".join(said[-20:]))
    return {
        query: (found[-1][1] - found[0][1]) / (found[-1][0] - found[0][0])
        for query, found in marks.items()
    }


def main(argv: list[str]) -> int:
    """Prints a line a job, then how the aims are met."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--events", type=int, default=1_000)
    parser.add_argument("--micro-batches", type=int, default=40)
    parser.add_argument("--warm-up", type=int, default=15, metavar="MICRO_BATCHES")
    flags = parser.parse_args(argv)
    sums = {}
    with tempfile.TemporaryDirectory() as name:
        source, files = Path(name) / "in", flags.micro_batches
        partitions = [Partition(number) for number in range(FEW)]
        events = write(source, partitions, flags.events * files, files)
        print(f"{files} micro-batches of about {events // files:,} events, {FEW} topic partitions")
        for job in ("stream", "count"):
            found = costs(job, source, Path(name) / job, flags.warm_up)
            sums[job] = sum(found.values())
            parts = ", ".join(f"{query} {cpu:.2f}" for query, cpu in sorted(found.items()))
            print(f"{job}: {sums[job]:.2f} CPU s a micro-batch ({parts})", flush=True)
    ratio = sums["stream"] / sums["count"]
    print(f"aim of {CPU_AIM} CPU s: {'reached' if sums['stream'] <= CPU_AIM else 'MISSED'}")
    print(f"stream / counting: {ratio:.2f} (aim: at most {COUNT_AIM})")
    return int(sums["stream"] > CPU_AIM or ratio > COUNT_AIM)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
