"""Runs a command and measures it with all processes it starts: CPU, wall time, peak memory."""

import ctypes
import os
import resource
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
SAMPLE_SECONDS = 0.25


@dataclass(frozen=True)
class Cost:
    """cpu and wall in seconds, memory in bytes: the largest sum of proportional set sizes seen."""

    cpu: float
    wall: float
    memory: int
    output: str


def measured(command: Sequence[str], fine: Sequence[int] = (0,), **options: object) -> Cost:
    """Runs a command to its end. Raises CalledProcessError where its status is not fine."""
    # Processes that outlive their parent come to us: their CPU time counts once they are reaped.
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    before = _children_cpu()
    started = time.monotonic()
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options
    )  # type: ignore[call-overload]
    peak = [0]
    done = threading.Event()
    sampler = threading.Thread(target=_sample, args=(peak, done))
    sampler.start()
    output, _ = process.communicate()
    wall = time.monotonic() - started
    done.set()
    sampler.join()
    _reap_orphans()
    if process.returncode not in fine:
        raise subprocess.CalledProcessError(process.returncode, command, output)
    return Cost(_children_cpu() - before, wall, peak[0], output)


def _children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _reap_orphans() -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            time.sleep(0.05)


def _sample(peak: list[int], done: threading.Event) -> None:
    while not done.wait(SAMPLE_SECONDS):
        peak[0] = max(peak[0], sum(memory_of(pid) for pid in descendants(os.getpid())))


def descendants(root: int) -> set[int]:
    """The processes that a process has started, and those that these have."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            parents[int(entry.name)] = int(fields[1])
    found = {root}
    grown = True
    while grown:
        more = {pid for pid, parent in parents.items() if parent in found} - found
        grown = bool(more)
        found |= more
    return found - {root}


def memory_of(pid: int) -> int:
    """The proportional set size of a process in bytes, 0 where it is gone."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0
