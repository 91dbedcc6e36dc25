"""Every benchmark beside its yardstick in one run, alternating, with spread: benchmarks/RESULTS.md.

Each benchmark prints lines of words and numbers. The benchmarks are run in turn, some rounds; of
each line RESULTS.md gives the median of every number, and the lowest and highest where they differ.

    python -m benchmarks.all [--rounds 3] [--only core evidence ..]     (make bench)
"""

import argparse
import os
import platform
import re
import statistics
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

from replication.paths import project_root

BENCHMARKS = {
    "core": ["--rounds", "1"],
    "evidence": [],
    "live": ["--minutes", "40"],
    "quality": [],
    "small_batches": [],
    "streaming": ["--rounds", "1"],
    "week_of_logs": ["--rounds", "1"],
}
NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?")
RESULTS = Path("benchmarks") / "RESULTS.md"


def printed(name: str) -> list[str]:
    """The lines of one run of a benchmark; what it missed is in its lines, not in its status."""
    root = project_root()
    command = [sys.executable, "-m", f"benchmarks.{name}", *BENCHMARKS[name]]
    run = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    if not run.stdout.strip():
        raise RuntimeError(f"benchmarks.{name} ended with {run.returncode}: {run.stderr[-500:]}")
    return [line.rstrip() for line in run.stdout.splitlines() if NUMBER.search(line)]


def joined(rounds: list[list[str]]) -> list[str]:
    """The same line of each round as one: where the words are the same, and how often before."""
    found: dict[tuple[str, int], list[list[str]]] = {}
    for lines in rounds:
        before: Counter[str] = Counter()
        for line in lines:
            words = NUMBER.sub("#", line)
            found.setdefault((words, before[words]), []).append(NUMBER.findall(line))
            before[words] += 1
    return [_with_spread(words, numbers) for (words, _), numbers in found.items()]


def _with_spread(words: str, numbers: list[list[str]]) -> str:
    parts = words.split("#")
    text = parts[0]
    for place, after in enumerate(parts[1:]):
        texts = [row[place] for row in numbers]
        values = sorted((float(t.replace(",", "")), t) for t in texts)
        middle = statistics.median_low([v for v, _ in values])
        shown = next(t for v, t in values if v == middle)
        spread = f" ({values[0][1]}..{values[-1][1]})" if values[0][0] != values[-1][0] else ""
        text += f"{shown}{spread}{after}"
    return text


def page(results: dict[str, list[str]], rounds: int) -> str:
    """RESULTS.md: the machine, then each benchmark's lines."""
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=project_root(), capture_output=True,
        text=True, check=False,
    ).stdout.strip()  # fmt: skip
    busy = os.getloadavg()[0]
    lines = [
        "# Benchmarks", "",
        "Made by `make bench`; numbers are medians, with lowest and highest in brackets.", "",
        f"- {datetime.now(UTC):%Y-%m-%d}, commit {commit}, {rounds} rounds, benchmarks in turn",
        f"- {os.cpu_count()} cores of {platform.machine()}, Python {platform.python_version()}",
        f"- load of the machine at the end: {busy:.1f} (above the number of cores others worked "
        "beside; CPU seconds then say more than wall time)",
    ]  # fmt: skip
    for name, found in results.items():
        lines += ["", f"## benchmarks.{name}", "", "```", *found, "```"]
    return "\n".join(lines) + "\n"


def main(argv: list[str]) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--only", nargs="*", default=list(BENCHMARKS), choices=list(BENCHMARKS), metavar="NAME"
    )
    flags = parser.parse_args(argv)
    rounds: dict[str, list[list[str]]] = {name: [] for name in flags.only}
    for number in range(flags.rounds):
        for name in flags.only:
            print(f"round {number + 1} of {flags.rounds}: {name}", file=sys.stderr, flush=True)
            rounds[name].append(printed(name))
    results = {name: joined(found) for name, found in rounds.items()}
    (project_root() / RESULTS).write_text(page(results, flags.rounds), encoding="utf-8")
    print(RESULTS)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
