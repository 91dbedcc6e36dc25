"""A month of the stream in small: thousands of micro-batches in one job, maintenance beside it.

One long-lived jobs/stream.py follows a folder into which a few events come at a time, each file a
micro-batch of its own; jobs/maintain.py comes by every so many of them. Every hundred micro-batches
of the fold a line says what the last hundred cost in CPU (of the stream's whole process tree), how
much memory it takes, and how many files and bytes of tables and checkpoint there are. At the end
the last hundred are held against the first hundred after the warm-up.

    .venv/bin/python -m benchmarks.month [--micro-batches 20000] [--minutes 60] [--folder DIR]
"""

import argparse
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from benchmarks.process_tree import descendants, memory_of
from benchmarks.traffic import START, Partition
from replication.paths import project_root

AIM = 1.2
# No code is compiled that runs for little: a job is warm after tens of micro-batches, not hundreds.
QUICK = (
    "--conf", "spark.sql.codegen.wholeStage=false",
    "--conf", "spark.sql.codegen.factoryMode=NO_CODEGEN",
    "--driver-java-options",
    "-Dlog4j2.configurationFile=conf/log4j2.properties -Dspark.shutdown.timeout=150s "
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m "
    "-XX:MetaspaceSize=400m",
    # A heap of three gigabytes would grow for days before its size said anything.
    "--driver-memory", "1g",
)  # fmt: skip
PARTITIONS, ACTIVE = 20, 4
# A micro-batch is four minutes of traffic, by the events' own moments; 360 are a day.
MINUTE = 60_000
MINUTES_EACH = 4
# So many files wait for the stream, so that it never waits for them.
AHEAD = 20
# So many files stay in the folder after they were folded.
LEFT = 200
TICKS = os.sysconf("SC_CLK_TCK")
# The exit status of a JVM that SIGTERM has ended.
TERMINATED = 128 + signal.SIGTERM
FOLDED = re.compile(r"fold micro-batch (\d+):")


@dataclass(frozen=True)
class Sample:
    """What stands after so many micro-batches of the fold. cpu: seconds since the start."""

    micro_batches: int
    cpu: float
    wall: float
    memory: int
    table_files: int
    table_bytes: int
    checkpoint_files: int
    checkpoint_bytes: int
    state_bytes: int
    verdict_commits: int


def submit(work: Path, job: str, *flags: str, quick: bool = True) -> list[str]:
    """The command line of a job over the tables in work."""
    root = project_root()
    return [
        str(root / ".venv/bin/spark-submit"), "--properties-file", "conf/spark-defaults.conf",
        *(QUICK if quick else ()), f"jobs/{job}.py", "--tables", str(work / "tables"),
        "--checkpoint-dir", str(work / "checkpoint"), *flags,
    ]  # fmt: skip


def environment(work: Path) -> dict[str, str]:
    """Of a job, which runs this checkout's code."""
    root = project_root()
    return {
        **os.environ,
        "PATH": f"{root / '.venv/bin'}:{os.environ['PATH']}",
        "PYTHONPATH": str(root),
        "SPARK_LOCAL_DIRS": str(work / "spark"),
    }


class Month:
    """One run in a folder: in/, tables/, checkpoint/."""

    def __init__(
        self, work: Path, every: int, maintain_every: int, quick: bool, pace: float
    ) -> None:
        self.work = work
        self.every, self.maintain_every, self.quick = every, maintain_every, quick
        self.pace = pace
        self.folded = 0
        self.fed = 0
        # Once every so many micro-batches; and ten times as often, for what goes up and down.
        self.samples: list[Sample] = []
        self.looks: list[Sample] = []
        self.maintenance: list[float] = []
        self._partitions = [Partition(i) for i in range(PARTITIONS)]
        self._beside: subprocess.Popen[bytes] | None = None
        # Of the stream; and of each round of maintenance.
        self.status: int | None = None
        self.statuses: list[int] = []
        self._verdict_commits = 0
        self._verdict_version = -1
        (work / "in").mkdir(parents=True)

    def run(self, micro_batches: int, minutes: float) -> None:
        """Until so many micro-batches are folded, or so much time has gone."""
        started = time.monotonic()
        flags = ("--source", str(self.work / "in"), "--trigger", f"{self.pace * 1000:.0f} ms",
                 "--poll-seconds", f"{self.pace}", "--settle-seconds", "0",
                 "--max-files-per-trigger", "1", "--fold-max-files-per-trigger", "1")  # fmt: skip
        self.feed()
        with (self.work / "stream.log").open("w", encoding="utf-8") as log:
            stream = subprocess.Popen(
                submit(self.work, "stream", *flags, quick=self.quick), cwd=project_root(),
                env=environment(self.work), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                text=True,
            )  # fmt: skip
            reader = threading.Thread(target=self.follow, args=(stream, log))
            reader.start()
            while stream.poll() is None and self.folded < micro_batches:
                if time.monotonic() - started > minutes * 60:
                    break
                self.feed()
                self.sample(stream.pid, started)
                self.maintain()
                time.sleep(0.1)
            stream.send_signal(signal.SIGTERM)
            self.status = stream.wait()
            reader.join()
        if self._beside is not None:
            self.statuses.append(self._beside.wait())

    def follow(self, stream: "subprocess.Popen[str]", log: object) -> None:
        """Counts what the stream says that it has folded."""
        assert stream.stdout is not None
        for line in stream.stdout:
            log.write(line)  # type: ignore[attr-defined]
            log.flush()  # type: ignore[attr-defined]
            match = FOLDED.match(line)
            if match:
                self.folded = int(match[1]) + 1

    def feed(self) -> None:
        """Puts a round of some partitions into the folder until enough files wait."""
        while self.fed < self.folded + AHEAD:
            first = self.fed * ACTIVE % PARTITIONS
            path = self.work / "in" / f"{self.fed:06}.jsonl"
            partial = path.with_suffix(".partial")
            with partial.open("w", encoding="utf-8") as file:
                for minute in range(self.fed * MINUTES_EACH, (self.fed + 1) * MINUTES_EACH):
                    for partition in self._partitions[first : first + ACTIVE]:
                        partition.clock = START + minute * MINUTE
                        file.writelines([] if partition.sequence else partition.opening())
                        file.writelines(partition.round())
            partial.rename(path)
            self.fed += 1
            # Who fills a folder empties it too: so many files back, all have been folded.
            old = self.fed - AHEAD - LEFT
            (self.work / "in" / f"{old:06}.jsonl").unlink(missing_ok=True)

    def maintain(self) -> None:
        """Starts the maintenance job where it is due."""
        if self._beside is not None and self._beside.poll() is None:
            return
        if self.folded < self.maintain_every * (len(self.maintenance) + 1):
            return
        if self._beside is not None:
            self.statuses.append(self._beside.returncode)
        self.maintenance.append(time.monotonic())
        log = (self.work / "maintain.log").open("ab")
        # Versions go after an hour at the earliest, by the real clock: see --pace.
        flags = ("--keep-hours", "1", "--keep-batches-hours", "0.05", "--keep-events-hours", "0.1")
        self._beside = subprocess.Popen(
            submit(self.work, "maintain", *flags), cwd=project_root(), stdout=log, stderr=log,
            env=environment(self.work),
        )  # fmt: skip

    def sample(self, pid: int, started: float) -> None:
        """Notes how it stands, ten times in so many micro-batches."""
        if self.folded * 10 < self.every * (len(self.looks) + 1):
            return
        tables, kept = self.work / "tables", self.work / "checkpoint"
        state = kept / "fold" / "spark" / "state"
        commits = tables / "verdicts" / "_delta_log"
        sample = Sample(
            self.folded, cpu_of(pid), time.monotonic() - started,
            sum(memory_of(each) for each in descendants(pid) | {pid}),
            *held(tables), *held(kept), held(state)[1], self.verdict_commits(commits),
        )  # fmt: skip
        self.looks.append(sample)
        if self.folded < self.every * (len(self.samples) + 1):
            return
        before = self.samples[-1] if self.samples else Sample(0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
        self.samples.append(sample)
        print(line_of(sample, before), flush=True)

    def verdict_commits(self, commits: Path) -> int:
        """How many commits have changed rows so far: not those of compacting and vacuuming."""
        for path in sorted(commits.glob("[0-9]*.json")):
            if int(path.stem) > self._verdict_version:
                self._verdict_version = int(path.stem)
                text = path.read_text("utf-8").replace(" ", "")
                self._verdict_commits += '"dataChange":true' in text
        return self._verdict_commits


def held(folder: Path) -> tuple[int, int]:
    """How many files there are below a folder, and their bytes."""
    files = size = 0
    for base, _, names in os.walk(folder):
        for name in names:
            try:
                size += os.stat(os.path.join(base, name)).st_size
                files += 1
            except OSError:
                continue
    return files, size


def cpu_of(pid: int) -> float:
    """CPU seconds of a process and its descendants, of those that have ended too."""
    ticks = 0
    for each in descendants(pid) | {pid}:
        try:
            fields = Path(f"/proc/{each}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        ticks += sum(int(field) for field in fields[11:15])
    return ticks / TICKS


def line_of(sample: Sample, before: Sample) -> str:
    """A sample in words, with what the micro-batches since the one before have cost."""
    count = sample.micro_batches - before.micro_batches
    return (
        f"{sample.micro_batches:6} micro-batches: {(sample.cpu - before.cpu) / count:5.2f} CPU s "
        f"and {(sample.wall - before.wall) / count:5.2f} s each, {sample.memory / 1e6:5.0f} MB, "
        f"tables {sample.table_files:5} files {sample.table_bytes / 1e6:6.1f} MB, "
        f"spark_checkpoint {sample.checkpoint_files:5} files "
        f"{sample.checkpoint_bytes / 1e6:5.1f} MB, "
        f"state {sample.state_bytes / 1e3:4.0f} kB, {sample.verdict_commits} commits of verdicts"
    )


def faults_of(month: Month, warm_up: int) -> list[str]:
    """In words, why the run says nothing, or what it says against the stream; [] where all is
    well."""
    kept = [s for s in month.samples if s.micro_batches >= warm_up]
    found = [f"a round of maintenance ended with {s}" for s in month.statuses if s]
    if month.status != TERMINATED:
        found.append(f"the stream ended with {month.status}, not as asked")
    if len(kept) < 3:
        return [*found, "too few micro-batches for a ratio"]
    if ratio_of(kept) > AIM:
        found.append(f"CPU {ratio_of(kept):.2f} times that of the beginning")
    looks = [s for s in month.looks if s.micro_batches >= warm_up]
    third = len(looks) // 3
    for name in ("memory", "state_bytes", "table_files", "checkpoint_files"):
        first, last = (max(getattr(s, name) for s in p) for p in (looks[:third], looks[-third:]))
        if last > AIM * first:
            found.append(f"{name}: most of the first third {first:,}, of the last {last:,}")
    if kept[-1].verdict_commits > kept[0].verdict_commits:
        found.append("steady traffic has written verdicts")
    return found


def costs_of(kept: list[Sample]) -> list[float]:
    """CPU seconds of a micro-batch between each two samples."""
    return [(b.cpu - a.cpu) / (b.micro_batches - a.micro_batches) for a, b in pairwise(kept)]


def ratio_of(kept: list[Sample]) -> float:
    """What the last micro-batches cost against the first."""
    return costs_of(kept)[-1] / costs_of(kept)[0]


def summary(month: Month, warm_up: int) -> list[str]:
    """The last micro-batches against the first after the warm-up."""
    kept = [s for s in month.samples if s.micro_batches >= warm_up]
    if len(kept) < 3:
        return []
    costs, ratio = costs_of(kept), ratio_of(kept)
    verdict = "reached" if ratio <= AIM else "MISSED"
    return [
        f"{month.folded} micro-batches, {month.folded * MINUTES_EACH / 60:.1f} hours by their "
        f"events' moments, {len(month.maintenance)} rounds of maintenance beside them",
        f"CPU of the last {month.every}: {ratio:.2f} times that of the first {month.every} after "
        f"{warm_up} (aim {AIM}): {verdict}; median {statistics.median(costs):.2f} s each",
        f"memory {kept[0].memory / 1e6:.0f} -> {kept[-1].memory / 1e6:.0f} MB, state "
        f"{kept[0].state_bytes:,} -> {kept[-1].state_bytes:,} bytes, files of tables "
        f"{kept[0].table_files} -> {kept[-1].table_files}, of the checkpoint "
        f"{kept[0].checkpoint_files} -> {kept[-1].checkpoint_files}",
        f"commits of verdicts since the warm-up: "
        f"{kept[-1].verdict_commits - kept[0].verdict_commits}",
    ]


def main(argv: list[str]) -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--micro-batches", type=int, default=20_000)
    parser.add_argument("--minutes", type=float, default=60 * 24)
    parser.add_argument("--every", type=int, default=100, metavar="MICRO_BATCHES")
    parser.add_argument("--warm-up", type=int, default=200, metavar="MICRO_BATCHES")
    parser.add_argument("--quick", action="store_true", help="compile little: soon warm")
    parser.add_argument("--maintain-every", type=int, default=400, metavar="MICRO_BATCHES")
    parser.add_argument(
        "--pace", type=float, default=0.2, metavar="SECONDS",
        help="a micro-batch every so often (0.2: as fast as they go); maintenance removes no file "
        "that is younger than an hour, so only a run of some hours shows their number flat",
    )  # fmt: skip
    parser.add_argument("--folder", type=Path, help="where to work; a temporary folder else")
    flags = parser.parse_args(argv)
    base = Path(tempfile.mkdtemp(prefix="month-", dir=flags.folder))
    try:
        month = Month(base, flags.every, flags.maintain_every, flags.quick, flags.pace)
        month.run(flags.micro_batches, flags.minutes)
        print("\n".join(summary(month, flags.warm_up)))
        faults = faults_of(month, flags.warm_up)
        print("\n".join(faults) or "all flat")
    finally:
        if flags.folder is None:
            shutil.rmtree(base)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
