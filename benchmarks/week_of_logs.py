"""A week of logs in which almost nothing tells, beside `grep -E` over the same bytes in one run.

Folders of three brokers' hourly rotated logs: of either era with all kinds of noise, in small files
and in large ones, with log directories beside them; and of each kind of noise by itself, so that
none is slow. Every file is read as `diagnose` reads it. The least CPU time of the rounds counts, of
the whole process tree; the start of Python is subtracted where files are read only.

    .venv/bin/python -m benchmarks.week_of_logs [--mb 1000] [--rounds 3] [--no-kinds]
"""

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

from benchmarks import noise_text, segment_files
from benchmarks.evidence import TOOL, Table, pattern_of_families, without
from benchmarks.process_tree import measured
from replication.evidence.collecting.collection import read_file

RATE_AIM, DIAGNOSE_AIM, MEMORY_AIM = 60, 60, 250e6
SMALL_MB, KIND_MB = 77, 9
DIRECTORIES = 100
ITSELF = [sys.executable, "-m", "benchmarks.week_of_logs", "--child"]


def read_all(folder: Path) -> None:
    """What is measured as reading."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    print(sum(log.count for path in files for log in read_file(path).found_logs))


def grep(folder: Path) -> list[str]:
    """grep for what tells the line families apart; not to /dev/null, where it would stop early."""
    pattern = folder.with_name("families.txt")
    pattern.write_text(pattern_of_families() + "\n")
    shell = f"LC_ALL=C grep -rhE -f {pattern} {folder} > {folder}.matched; [ $? -le 1 ]"
    return ["bash", "-c", shell]


def diagnose(folder: Path) -> list[str]:
    """The tool's answer; its exit status says what it found, not whether it ran."""
    command = f"{' '.join(TOOL)} diagnose {folder} --format json > {folder}.json; [ $? -le 3 ]"
    return ["bash", "-c", command]


def size_of(folder: Path) -> int:
    """Bytes of all files below."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def rates(name: str, folder: Path, empty: Path, rounds: int) -> str:
    """Reading against grep; the line of the summary."""
    table = Table(size_of(folder))
    print(f"{name}: {table.size / 1e6:,.0f} MB")
    for _ in range(rounds):
        start = measured([*ITSELF, str(empty)])
        table.add("grep -E", measured(grep(folder)))
        table.add("read", without(start, measured([*ITSELF, str(folder)])))
    grepped, read = table.best["grep -E"].cpu, table.best["read"].cpu
    rate = table.size / 1e6 / read
    said = "reached" if rate >= RATE_AIM else "MISSED"
    return (
        f"{name}: read at {rate:.0f} MB a CPU second (aim {RATE_AIM}): {said}; "
        f"{grepped / read:.2f} times the rate of grep -E"
    )


def week(folder: Path, era: str, size: int, rounds: int) -> list[str]:
    """One diagnose of a week's logs and log directories."""
    logs = folder / era
    noise_text.write(logs, size, era)
    for number in range(DIRECTORIES):
        broker = noise_text.BROKERS[number % len(noise_text.BROKERS)]
        place = logs / f"broker-{broker}" / f"data-{number}"
        segment_files.write_directory(place, broker, {f"orders-{number // 4}-{number % 4}": 10})
    table = Table(size)
    print(f"a week of {era} logs, {size / 1e6:,.0f} MB, {DIRECTORIES} log directories:")
    for _ in range(rounds):
        table.add("grep -E", measured(grep(logs)))
        table.add("diagnose", measured(diagnose(logs)))
    cost = table.best["diagnose"]
    most = DIAGNOSE_AIM * size / 1e9
    reached = cost.cpu <= most and cost.memory <= MEMORY_AIM
    shutil.rmtree(logs)
    return [
        f"diagnose of {era}: {cost.cpu:.1f} CPU s (aim {most:.0f}), {cost.memory / 1e6:.0f} MB "
        f"(aim {MEMORY_AIM / 1e6:.0f}): {'reached' if reached else 'MISSED'}; "
        f"{cost.cpu / table.best['grep -E'].cpu:.1f} times the CPU time of grep -E"
    ]


def main(argv: list[str]) -> int:
    """Makes, measures, sums up."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--mb", type=int, default=1000, help="of a whole week")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-kinds", action="store_true", help="not each kind by itself")
    parser.add_argument("--folder", type=Path, help="where to make them; a temporary folder else")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    flags = parser.parse_args(argv)
    if flags.child:
        read_all(flags.child)
        return 0
    base = Path(tempfile.mkdtemp(prefix="week-", dir=flags.folder))
    empty = base / "empty"
    empty.mkdir()
    summary: list[str] = []
    try:
        for era in ("zookeeper", "kraft"):
            small = base / f"{era}-small"
            count = noise_text.write(small, SMALL_MB * 1_000_000, era)
            summary.append(rates(f"{count} small files of {era}", small, empty, flags.rounds))
            shutil.rmtree(small)
            if flags.mb:
                summary += week(base, era, flags.mb * 1_000_000, flags.rounds)
        for kind in [] if flags.no_kinds else noise_text.kinds():
            era = "kraft" if kind.era == "kraft" else "zookeeper"
            for files, hours in (("small", 20), ("large", 1)):
                folder = base / f"{kind.name}-{files}"
                noise_text.write(folder, KIND_MB * 1_000_000, era, kind.name, hours)
                summary.append(rates(f"{kind.name}, {files} files", folder, empty, flags.rounds))
                shutil.rmtree(folder)
    finally:
        shutil.rmtree(base)
    print(f"load {os.getloadavg()[0]:.1f}")
    print("\n".join(summary))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
