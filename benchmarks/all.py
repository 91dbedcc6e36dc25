"""Every benchmark beside its yardstick in one run, alternating, with spread: benchmarks/RESULTS.md.

Each benchmark prints lines of words and numbers. The benchmarks are run in turn, some rounds; of
each line RESULTS.md gives the median of every number, and the lowest and highest where they differ.
Ends with 1 where a figure beside its yardstick is worse by more than a fifth than the last recorded
one (benchmarks/figures.csv); what is not, or --accept says is to be so, is recorded.

    python -m benchmarks.all [--rounds 3] [--only core evidence ..] [--accept]     (make bench)
"""

import argparse
import os
import platform
import statistics
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import figures
from benchmarks.figures import NUMBER
from replication.paths import project_root

BENCHMARKS = {
    "core": ["--rounds", "1"],
    "evidence": [],
    "first_verdict": ["--rounds", "1"],
    "live": ["--minutes", "40"],
    "quality": [],
    "small_batches": [],
    "streaming": ["--rounds", "1"],
    "week_of_logs": ["--rounds", "1"],
}
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


def commit_now() -> str:
    """The commit that is measured."""
    command = ["git", "describe", "--always", "--dirty"]
    run = subprocess.run(command, cwd=project_root(), capture_output=True, text=True, check=False)
    return run.stdout.strip()


def page(results: dict[str, list[str]], rounds: int, commit: str) -> str:
    """RESULTS.md: the machine, then each benchmark's lines."""
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
    parser.add_argument(
        "--accept", action="store_true", help="record figures that have fallen, too"
    )
    flags = parser.parse_args(argv)
    rounds: dict[str, list[list[str]]] = {name: [] for name in flags.only}
    for number in range(flags.rounds):
        for name in flags.only:
            print(f"round {number + 1} of {flags.rounds}: {name}", file=sys.stderr, flush=True)
            rounds[name].append(printed(name))
    results = {name: joined(found) for name, found in rounds.items()}
    commit = commit_now()
    (project_root() / RESULTS).write_text(page(results, flags.rounds, commit), encoding="utf-8")
    print(RESULTS)
    return compared(results, commit, flags.accept)


def compared(results: dict[str, list[str]], commit: str, accept: bool) -> int:
    """Holds the figures of a run against those recorded last; 1 where one has fallen."""
    found = {}
    for name, lines in results.items():
        found |= figures.figures_of(name, lines)
    fallen = figures.fallen(found, figures.recorded())
    for text in fallen:
        print(f"fallen by more than a fifth: {text}")
    if fallen and not accept:
        print("nothing recorded: mend it, or record it with --accept and say why in the commit")
        return 1
    figures.record(commit, found)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
