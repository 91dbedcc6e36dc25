"""A fleet's lines through the whole of jobs/stream.py --shipped, as time goes: does it keep up?

The fleet of benchmarks.live writes into files, one for each broker, piece by piece while the clock
runs; the stream follows their folder. Every ten minutes, and after the storm at the end, in which
every partition changes its leader within a minute: what the stream's process tree has used of two
cores, its memory (of the JVM what a collection leaves, by jcmd), what it keeps, and how long after
a piece was written its lines were joined. maintain.py comes by every half hour.

    python -m benchmarks.live_stream [--brokers 30] [--topics 400] [--minutes 120]

Exit status 0 only where it kept up, and memory and what is kept are flat.
"""

import argparse
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.live import Fleet
from benchmarks.month import TERMINATED, TICKS, environment, held, submit
from benchmarks.process_tree import descendants, memory_of
from replication.evidence.collecting.envelopes import ShippedLine
from replication.paths import project_root

AIM = 1.2
TRIGGER = 30
PIECES = 6
MAINTAIN = 30
# Maintenance keeps everything for an hour: what is kept is looked at from then on.
KEEP = 60
MINUTE = 60.0
LOOK = 10
JOINED = re.compile(r"live micro-batch \d+: (\d+) lines? = .*, (\d+) events?")
FOLDED = re.compile(r"fold micro-batch \d+: (\d+) in")
# What waits at most: two triggers, and one micro-batch's own time.
PATIENCE = 3 * TRIGGER
AFTER_STORM = 600.0


@dataclass
class Through:
    """How far rows have come: of each piece how many there were up to it, and when."""

    total: int = 0
    waiting: list[tuple[int, float]] = field(default_factory=list)
    late: list[float] = field(default_factory=list)

    def sent(self, rows: int) -> None:
        """So many more are on their way."""
        self.waiting.append((rows + (self.waiting[-1][0] if self.waiting else 0), time.monotonic()))

    def came(self, rows: int) -> None:
        """So many more have come; of each piece that is through its age is noted."""
        self.total += rows
        while len(self.late) < len(self.waiting) and self.waiting[len(self.late)][0] <= self.total:
            self.late.append(time.monotonic() - self.waiting[len(self.late)][1])


@dataclass(frozen=True)
class Look:
    """What stands at a moment. cpu: seconds since the start."""

    minute: int
    cpu: float
    wall: float
    memory: int
    state: int
    files: int


def collected(root: int) -> int:
    """Bytes that the JVM below a process holds after a collection; 0 without jcmd."""
    for pid in sorted(descendants(root)):
        try:
            if Path(f"/proc/{pid}/comm").read_text().strip() != "java":
                continue
            jcmd = ["jcmd", str(pid)]
            subprocess.run([*jcmd, "GC.run"], check=True, capture_output=True)
            told = subprocess.run([*jcmd, "GC.heap_info"], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            return 0
        found = re.search(rb"used (\d+)K", told.stdout)
        return int(found[1]) << 10 if found else 0
    return 0


def of_python(root: int) -> int:
    """Bytes of the processes below one that are no JVM."""
    return sum(
        memory_of(pid)
        for pid in descendants(root)
        if Path(f"/proc/{pid}/comm").read_text().strip() != "java"
    )


class Cpu:
    """What a process and its descendants have used, those included that have ended since: Spark's
    workers come and go, and their time is nobody's then."""

    def __init__(self, root: int) -> None:
        self.root, self.used = root, dict[tuple[int, str], int]()
        threading.Thread(target=self.follow, daemon=True).start()

    def follow(self) -> None:
        """Looks for as long as the process lives."""
        while Path(f"/proc/{self.root}").exists():
            for pid in descendants(self.root) | {self.root}:
                try:
                    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
                except OSError:
                    continue
                self.used[pid, fields[19]] = int(fields[11]) + int(fields[12])
            time.sleep(1)

    def seconds(self) -> float:
        """All of it until now."""
        return sum(list(self.used.values())) / TICKS


class Run:
    """A stream over a fleet's folder."""

    def __init__(self, work: Path, fleet: Fleet) -> None:
        self.work, self.fleet = work, fleet
        self.lines, self.events = Through(), Through()
        self.looks: list[Look] = []
        self.beside: list[subprocess.Popen[bytes]] = []

    def stream(self) -> "subprocess.Popen[str]":
        """Starts the job."""
        flags = ("--shipped", "--source", str(self.work / "in"), "--cluster", "fleet",
                 "--trigger", f"{TRIGGER} seconds", "--settle-seconds", "0",
                 "--max-files-per-trigger", "100000")  # fmt: skip
        job = subprocess.Popen(
            submit(self.work, "stream", *flags, quick=False), cwd=project_root(), text=True,
            env=environment(self.work), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        threading.Thread(target=self.follow, args=(job,), daemon=True).start()
        return job

    def follow(self, job: "subprocess.Popen[str]") -> None:
        """Notes what the stream says that it has done."""
        assert job.stdout is not None
        with (self.work / "stream.log").open("w") as log:
            for line in job.stdout:
                log.write(line)
                log.flush()
                if found := JOINED.match(line):
                    self.events.sent(int(found[2]))
                    self.lines.came(int(found[1]))
                elif found := FOLDED.match(line):
                    self.events.came(int(found[1]))

    def write(self, lines: Iterable[ShippedLine]) -> None:
        """One piece, each line to its broker's file."""
        texts: dict[str, list[str]] = {}
        for line in lines:
            texts.setdefault(line.host, []).append(line.text + "\n")
        self.lines.sent(sum(len(each) for each in texts.values()))
        for host, told in texts.items():
            path = self.work / "in" / host / "server.log"
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a", encoding="utf-8") as out:
                out.writelines(told)

    def maintain(self) -> None:
        """Starts a round of maintenance beside the stream."""
        flags = (
            "--keep-hours",
            str(KEEP / 60),
            "--keep-batches-hours",
            "0.5",
            "--keep-events-hours",
            "0.5",
        )
        log = (self.work / "maintain.log").open("ab")
        command = submit(self.work, "maintain", *flags)
        self.beside.append(subprocess.Popen(
            command, cwd=project_root(), stdout=log, stderr=log, env=environment(self.work)
        ))  # fmt: skip

    def minute(self, share: int | None = None) -> None:
        """A minute of the fleet, in as much time, piece by piece."""
        made = list(self.fleet.minute() if share is None else self.fleet.minute(share))
        began, size = time.monotonic(), -(-len(made) // PIECES)
        for piece in range(PIECES):
            self.write(made[piece * size : (piece + 1) * size])
            time.sleep(max(0.0, began + (piece + 1) * MINUTE / PIECES - time.monotonic()))

    def look(self, minute: int, pid: int, cpu: Cpu) -> None:
        """Notes how it stands, and says it."""
        memory = collected(pid) + of_python(pid)
        files, state = held(self.work / "checkpoint")
        now = Look(minute, cpu.seconds(), time.monotonic(), memory, state, files)
        before = self.looks[-1] if self.looks else now
        self.looks.append(now)
        busy = (now.cpu - before.cpu) / max(now.wall - before.wall, 1e-9)
        waiting = len(self.lines.waiting) - len(self.lines.late)
        print(
            f"{minute:4} minutes: {busy:4.2f} cores busy, {memory / 1e6:5.0f} MB, checkpoint "
            f"{files} files {state / 1e6:.1f} MB; lines joined after {ages(self.lines)}, their "
            f"events folded {ages(self.events)} later; {waiting} pieces on their way",
            flush=True,
        )

    def settled(self, job: "subprocess.Popen[str]", patience: float) -> float | None:
        """Waits until all that was written is folded; how long that took, None where it did not."""
        began = time.monotonic()
        while time.monotonic() - began < patience and job.poll() is None:
            folded = len(self.events.late) == len(self.events.waiting)
            if len(self.lines.late) == len(self.lines.waiting) and folded:
                return time.monotonic() - began
            time.sleep(0.5)
        return None


def ages(through: Through) -> str:
    """The median and the highest age of the last pieces that came through."""
    late = sorted(through.late[-PIECES * LOOK :] or [0.0])
    return f"{late[len(late) // 2]:.0f} s (at most {late[-1]:.0f})"


def faults_of(run: Run, storm: float | None, status: int) -> list[str]:
    """In words, what is not as it must be."""
    found = [] if status == TERMINATED else [f"the stream ended with {status}, not as asked"]
    found += [f"maintenance ended with {s}" for each in run.beside if (s := each.wait())]
    if storm is None:
        found.append("the storm was not through")
    late = max(run.lines.late[PIECES * LOOK :], default=0.0)
    if late > PATIENCE:
        found.append(f"lines were joined only after {late:.0f} s")
    looks = [look for look in run.looks if look.minute >= KEEP] or run.looks[1:]
    third = -(-len(looks) // 3)
    for name in ("memory", "state", "files"):
        first = max(getattr(look, name) for look in looks[:third])
        last = max(getattr(look, name) for look in looks[-third:])
        if last > AIM * first:
            found.append(f"{name}: most of the first third {first:,}, of the last {last:,}")
    return found


def main(argv: list[str]) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--brokers", type=int, default=30)
    parser.add_argument("--topics", type=int, default=400, help="of 25 partitions each")
    parser.add_argument("--minutes", type=int, default=120)
    flags = parser.parse_args(argv)
    work = Path(tempfile.mkdtemp(prefix="live-stream-"))
    fleet = Fleet(flags.brokers, flags.topics)
    fleet.cluster.now = time.time() * 1000
    run = Run(work, fleet)
    try:
        run.write(fleet.begins())
        job = run.stream()
        cpu = Cpu(job.pid)
        began = run.settled(job, AFTER_STORM)
        count = len(fleet.cluster.partitions)
        print(f"{count:,} partitions, {flags.brokers} brokers: what stood there at the start was "
              f"folded after {began or AFTER_STORM:.0f} s", flush=True)  # fmt: skip
        run.look(0, job.pid, cpu)
        for minute in range(1, flags.minutes + 1):
            run.minute()
            if minute % LOOK == 0:
                run.look(minute, job.pid, cpu)
            if minute % MAINTAIN == 0:
                run.maintain()
        before = cpu.seconds()
        run.minute(share=1)
        storm = run.settled(job, AFTER_STORM)
        print(f"storm: all folded {storm or AFTER_STORM:.0f} s after its minute, "
              f"{cpu.seconds() - before:.0f} CPU s")  # fmt: skip
        job.send_signal(signal.SIGTERM)
        found = faults_of(run, storm, job.wait())
    finally:
        shutil.rmtree(work)
    print("\n".join(found) or "kept up; memory and what is kept are flat")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
