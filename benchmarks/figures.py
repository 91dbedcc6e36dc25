"""The figures that a change may not let fall: each beside its yardstick of the same run, by commit.

Of what the benchmarks print those are kept that say how many times as much something costs, or how
many times as fast it is, as a yardstick of the same run: a busy machine changes them little.
benchmarks/figures.csv has a line for each figure of each run that was recorded.
"""

import csv
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

FIGURES = Path(__file__).with_name("figures.csv")
COLUMNS = ("commit", "benchmark", "figure", "times", "better")
# A figure that is worse by more than this part than the last recorded one has fallen.
MOST = 0.2
NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?")
SPREAD = re.compile(r" \([\d,.]+\.\.[\d,.]+\)")
COST = re.compile(
    r"(?:(?<![\w.])|/ counting: )(\d+(?:\.\d+)?)(?: times (?!the rate\b)| \(aim: at most)"
)
AIM = re.compile(r":? ?\(?\b(?:MISSED|reached)\b\)?")
RATE = re.compile(r"times the rate of [^:]*: (\d+(?:\.\d+)?) by|(\d+(?:\.\d+)?) times the rate")
HIGHER, LOWER = "higher", "lower"


def figures_of(benchmark: str, lines: Iterable[str]) -> dict[tuple[str, str], tuple[float, str]]:
    """(benchmark, words) -> (how many times the yardstick, which direction is better).

    The same words twice are two figures: the second one has its number behind it.
    """
    found: dict[tuple[str, str], tuple[float, str]] = {}
    before: Counter[str] = Counter()
    for line in lines:
        plain = AIM.sub("", SPREAD.sub("", line))
        rate, cost = RATE.search(plain), COST.search(plain)
        if rate is None and cost is None:
            continue
        words = " ".join(NUMBER.sub("#", plain).split())
        before[words] += 1
        if before[words] > 1:
            words = f"{words} [{before[words]}]"
        if rate is not None:
            found[benchmark, words] = (float(rate[1] or rate[2]), HIGHER)
        elif cost is not None:
            found[benchmark, words] = (float(cost[1]), LOWER)
    return found


def recorded(path: Path = FIGURES) -> dict[tuple[str, str], tuple[str, float]]:
    """(benchmark, words) -> commit and figure, as they were recorded last."""
    if not path.is_file():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return {(r["benchmark"], r["figure"]): (r["commit"], float(r["times"])) for r in rows}


def fallen(
    found: Mapping[tuple[str, str], tuple[float, str]],
    before: Mapping[tuple[str, str], tuple[str, float]],
) -> list[str]:
    """In words, each figure that is worse by more than a fifth than the last recorded one."""
    told = []
    for (benchmark, words), (times, better) in found.items():
        if (benchmark, words) not in before:
            continue
        commit, known = before[benchmark, words]
        is_worse = times > known * (1 + MOST) if better == LOWER else times < known * (1 - MOST)
        if is_worse:
            told.append(f"{benchmark}: {words}: {times:g} times, {known:g} at {commit}")
    return told


def record(
    commit: str, found: Mapping[tuple[str, str], tuple[float, str]], path: Path = FIGURES
) -> None:
    """Adds the figures of a run."""
    is_new = not path.is_file()
    with path.open("a", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if is_new:
            writer.writerow(COLUMNS)
        for (benchmark, words), (times, better) in found.items():
            writer.writerow([commit, benchmark, words, times, better])
