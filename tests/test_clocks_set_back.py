"""Brokers' clocks that are set while the logs are written: back, ahead, at a restart or any time.

Of every captured incident the lines that some brokers wrote from some moment on are printed by a
clock that was set. The order of lines in a file stays; no verdict may come out wrong, and that a
clock was set back is said.
"""

import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tests.changed_evidence import EXPECTED, broker_logs, each_incident
from tests.rewritten_logs import outcomes as rewritten
from tests.test_clock_skew import HOUR, MINUTE, STAMP

QUICK = ("kip101_scenario_1__0.10.2.2__loss_only", "last_replica_standing__4.1.1__elr_off")
_START = re.compile(r"Registered `?kafka:type=kafka\.Log4jController|starting \(kafka\.server\.")
# By how many seconds a clock is set, the last one twice: ahead, then back.
ZONES = (-8 * HOUR, -3 * HOUR - 30 * MINUTE, HOUR, 5 * HOUR + 30 * MINUTE)
STEPS = (-HOUR, -5 * HOUR, -37 * MINUTE, -90, HOUR, 3 * HOUR)


def set_clock(path: Path, moments: list[tuple[str, int]]) -> None:
    """Prints a log's lines by a clock that was set: (from which stamp on, by how many seconds)."""

    def moved(match: re.Match[str]) -> str:
        seconds = sum(by for since, by in moments if f"{match[1]},{match[2]}" >= since)
        shown = datetime.strptime(match[1], "%Y-%m-%d %H:%M:%S") + timedelta(seconds=seconds)
        return f"[{shown:%Y-%m-%d %H:%M:%S},{match[2]}]"

    text = path.read_bytes().decode("utf-8", "surrogateescape")
    path.write_bytes(STAMP.sub(moved, text).encode("utf-8", "surrogateescape"))


def _stamps(path: Path, *, of_starts: bool) -> list[str]:
    lines = path.read_bytes().decode("utf-8", "surrogateescape").split("\n")
    told = [(STAMP.match(line), line) for line in lines]
    return [
        f"{found[1]},{found[2]}"
        for found, line in told
        if found is not None and (not of_starts or _START.search(line))
    ]


def clocks_set(
    seed: int, said: list[str] | None = None, *, zones: bool = False
) -> Callable[[Path], None]:
    """Of some brokers, at a restart or in between, once or twice. zones: some are in another zone
    from their first line on, too."""

    def change(evidence: Path) -> None:
        chance = random.Random(seed)
        for node in sorted({path.parent for path in broker_logs(evidence)}):
            logs = [path for path in broker_logs(evidence) if path.parent == node]
            own = next((p for p in logs if p.name in ("server.log", "all.log")), logs[0])
            starts = _stamps(own, of_starts=True)[1:]
            stamps = starts if starts and chance.random() < 0.7 else _stamps(own, of_starts=False)
            if not stamps or chance.random() < 0.4:
                continue
            count = chance.choice((1, 1, 2))
            moments = [(chance.choice(stamps), chance.choice(STEPS)) for _ in range(count)]
            if zones and chance.random() < 0.5:
                moments.append(("", chance.choice(ZONES)))
            for path in logs:
                set_clock(path, moments)
            if said is not None:
                said.append(f"{node.name} {moments}")

    return change


def outcomes(
    incident: str, seed: int, *, zones: bool = False
) -> tuple[list[str], Counter[str], list[str]]:
    """What is wrong, how many verdicts of each sort there are, and what was done."""
    said: list[str] = []
    wrong, sorts = rewritten(incident, clocks_set(seed, said, zones=zones))
    return wrong, sorts, said


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("incident", each_incident(QUICK))
def test_a_clock_that_is_set_makes_no_verdict_wrong(incident: str, seed: int) -> None:
    wrong, _, said = outcomes(incident, seed)
    assert wrong == [], said


def main(seeds: range) -> Iterator[str]:
    """All incidents with many seeds: what came out wrong, and how much stayed decided."""
    total: Counter[str] = Counter()
    for seed in seeds:
        for incident in EXPECTED:
            wrong, sorts, said = outcomes(incident, seed, zones=seed % 2 > 0)
            total += sorts
            total["wrong"] += len(wrong)
            total["runs"] += 1
            if wrong:
                yield f"{incident} {seed}: {wrong} {said}"
    yield str(dict(total))


if __name__ == "__main__":
    first, end = map(int, sys.argv[1:] or ("0", "12"))
    for line in main(range(first, end)):
        print(line, flush=True)
