"""What a step of the fold costs against an earlier commit: CPU of both, alternating, in one run.

The earlier commit is checked out into a work tree of its own for the time of the run. Both fold the
same events, which the earlier one can read; the least of some rounds counts, and the ratio is what
says something, since both met the same machine.

    .venv/bin/python -m benchmarks.against COMMIT [--events 100000] [--rounds 5]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks import core
from replication.protocol.ground import wire

# A child runs this file with another tree's benchmarks and replication in front of the path.
HERE = Path(__file__).resolve()
ROOT = HERE.parent.parent
# In the order in which they are printed.
PATHS = ("steady from columns", "steady from objects", "stormy from columns", "stormy from objects")


def main(argv: list[str]) -> int:
    """Prints the ratios; 1 where steady events from columns cost more than 1.15 times as much."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("commit")
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    flags = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        before = Path(folder, "before")
        run = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*run, "add", "--detach", str(before), flags.commit], check=True,
                       capture_output=True)  # fmt: skip
        try:
            ratios = compared(before, Path(folder, "events.json"), flags.events, flags.rounds)
        finally:
            subprocess.run([*run, "remove", "--force", str(before)], check=True)
    for path in PATHS:
        before_us, now_us = ratios[path]
        print(
            f"{path:20} {before_us:6.2f} us an event before, {now_us:6.2f} now: "
            f"{now_us / before_us:.2f} times"
        )
    before_us, now_us = ratios[PATHS[0]]
    return int(now_us > 1.15 * before_us)


def compared(
    before: Path, events: Path, number: int, rounds: int
) -> dict[str, tuple[float, float]]:
    """Microseconds of CPU an event costs, before and now, by path."""
    _child(before, "write", str(events), str(number))
    least: dict[str, tuple[float, float]] = {}
    for _ in range(rounds):
        old, new = (json.loads(_child(tree, "fold", str(events))) for tree in (before, ROOT))
        for path in PATHS:
            a, b = least.get(path, (1e9, 1e9))
            least[path] = (min(a, old[path]), min(b, new[path]))
    return least


def _child(tree: Path, *arguments: str) -> str:
    """Runs one step with the code of a tree; what it prints."""
    asked = [sys.executable, str(HERE), *arguments]
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    return subprocess.run(
        asked, check=True, capture_output=True, text=True, env=environment, cwd=tree
    ).stdout


def write(events: Path, number: int) -> None:
    """The traffic as this tree knows it: by kind of traffic, by partition, rows."""
    quiet = [core.events_of(core.steady(number // 90, 10), n) for n in range(10)]
    storm = [core.events_of(core.stormy(n, 400), n) for n in range(max(1, number // 1_500))]
    both = [[[wire.to_row(e) for e in part] for part in kind] for kind in (quiet, storm)]
    events.write_text(json.dumps(both))


def fold(events: Path) -> dict[str, float]:
    """Microseconds of CPU an event costs in this tree, by path."""
    found = []
    for kind in json.loads(events.read_text()):
        parts = [[wire.from_row(row) for row in part] for part in kind]
        frame, total = core.frame_of(parts), sum(len(p) for p in parts)
        for work in (lambda: core.from_columns(frame), lambda: core.from_events(parts)):  # noqa: B023
            found.append(min(_seconds(work) for _ in range(3)) / total * 1e6)
    return dict(zip(PATHS, found, strict=True))


def _seconds(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


if __name__ == "__main__":
    if sys.argv[1:2] == ["write"]:
        write(Path(sys.argv[2]), int(sys.argv[3]))
    elif sys.argv[1:2] == ["fold"]:
        print(json.dumps(fold(Path(sys.argv[2]))))
    else:
        sys.exit(main(sys.argv[1:]))
