"""Broker logs against `grep -E`, segments against Kafka's own kafka-dump-log, side by side.

grep looks for the same line families by the words that tell them apart, and must find as many lines
as we read; kafka-dump-log prints batch headers, and it always reads the records too, for their
checksums: the fair neighbour of that is the row with checksums. Of reading and of kafka-dump-log
the CPU time that Python's or the JVM's start takes is subtracted. Rounds alternate; the least CPU
time of each counts, of the whole process tree, its wall time, start and all, beside it.

    .venv/bin/python -m benchmarks.evidence [--text-mb 1024] [--segments-mb 10240] [--rounds 3]
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks import broker_text, segment_files
from benchmarks.process_tree import Cost, measured
from replication.evidence.broker_logs.broker_log import LogLineFact, read_broker_log
from replication.evidence.broker_logs.line_families import FAMILIES
from replication.evidence.collecting.many_processes import spread_over
from replication.evidence.log_directories.log_directory import (
    find_log_directories,
    read_log_directory,
)
from replication.paths import project_root

TEXT_AIM, SEGMENT_AIM, MEMORY_AIM = 0.5, 5.0, 500e6
KAFKA = "kafka-4.3.0"
MEGABYTE = 1 << 20
ITSELF = [sys.executable, "-m", "benchmarks.evidence"]
TOOL = [sys.executable, "-m", "replication"]


def pattern_of_families() -> str:
    """What tells the line families apart, as an extended regular expression."""
    words = {f.trigger for f in FAMILIES if f.trigger}
    words |= {f"{word} " for f in FAMILIES if not f.trigger for word in f.words}
    least = [w for w in words if not any(other != w and other in w for other in words)]
    return "|".join(re.sub(r"([\[\]().*?+{}|^$\\])", r"\\\1", w) for w in sorted(least))


def read_text(folder: Path, processes: int) -> None:
    """What is measured as reading: every fact of every log."""
    files = sorted(folder.rglob("*.log.*"))
    with spread_over(files, processes) as spread:
        print(sum(spread(telling_lines, files)))


def telling_lines(path: Path) -> int:
    """How many lines facts were read from; one line may tell of several partitions."""
    count = last = 0
    for fact in read_broker_log(path):
        if isinstance(fact, LogLineFact) and fact.line != last:
            last = fact.line
            count += 1
    return count


def read_segments(folder: Path, *, verify_crc: bool) -> None:
    """What is measured as reading: every batch header, perhaps every checksum."""
    count = 0
    for path in find_log_directories([folder]):
        directory = read_log_directory(path, verify_crc=verify_crc)
        count += sum(p.batch_count for p in directory.partitions)
    print(count)


CHILDREN: dict[str, Callable[[Path], None]] = {
    "text": partial(read_text, processes=1),
    "text-by-two": partial(read_text, processes=2),
    "headers": lambda folder: read_segments(folder, verify_crc=False),
    "checksums": lambda folder: read_segments(folder, verify_crc=True),
}


class Table:
    """The best of each row over all rounds."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.best: dict[str, Cost] = {}

    def add(self, name: str, cost: Cost) -> Cost:
        """Takes one measurement and shows it."""
        rate = self.size / 1e6 / max(cost.cpu, 1e-6)
        print(
            f"  {name:34} {cost.cpu:7.2f} CPU s {cost.wall:7.2f} s  {rate:7.0f} MB/CPU s  "
            f"{cost.memory / 1e6:5.0f} MB",
            flush=True,
        )
        known = self.best.get(name)
        if known is None or cost.cpu < known.cpu:
            self.best[name] = cost
        return cost

    def ratio(self, slow: str, fast: str, aim: float) -> str:
        """How many times the rate of `slow` the rate of `fast` is."""
        a, b = self.best[slow], self.best[fast]
        said = [
            f"{ratio:.2f} by {of} time ({'reached' if ratio >= aim else 'MISSED'})"
            for of, ratio in (("CPU", a.cpu / b.cpu), ("wall", a.wall / b.wall))
        ]
        return f"{fast}: times the rate of {slow}, aim {aim}: {', '.join(said)}"

    def memory(self, name: str) -> str:
        """The peak of a row against the aim."""
        peak = self.best[name].memory
        verdict = "reached" if peak < MEMORY_AIM else "MISSED"
        return f"{name}: {peak / 1e6:.0f} MB at most (aim {MEMORY_AIM / 1e6:.0f} MB): {verdict}"


def text(folder: Path, size: int, rounds: int, telling: int) -> list[str]:
    """Broker logs; the summary's lines."""
    broker_text.write(folder, size, telling)
    made = sum(p.stat().st_size for p in folder.rglob("*.log.*"))
    families = folder.with_name("families.txt")
    families.write_text(pattern_of_families() + "\n")
    grep = ["grep", "-E", "-h", "-r", "-f", str(families), str(folder)]
    print(f"{made / 1e6:,.0f} MB of broker logs, {len(FAMILIES)} line families:")
    table = Table(made)
    matched = folder.with_name("matched.txt")
    environment = os.environ | {"LC_ALL": "C"}
    events = folder.with_name("events.jsonl")
    empty = folder.with_name("empty")
    empty.mkdir()
    for _ in range(rounds):
        start = measured([*ITSELF, "--child", "text", str(empty)])
        # Not to /dev/null: grep would stop at its first match.
        shell = f"{' '.join(grep)} > {matched}"
        table.add("grep -E", measured(["bash", "-c", shell], env=environment))
        with matched.open("rb") as stream:
            found = sum(1 for _ in stream)
        read = measured([*ITSELF, "--child", "text", str(folder)])
        cost = table.add("read all facts", without(start, read))
        if found != int(cost.output):
            return [f"grep found {found} lines, we read {cost.output.strip()}: no comparison"]
        two = [*ITSELF, "--child", "text-by-two", str(folder)]
        table.add("read by two processes", without(start, measured(two)))
        table.add("import", measured([*TOOL, "import", str(folder), "--out", str(events)]))
        table.add("diagnose", measured(_diagnose(folder)))
    return [
        f"{found:,} telling lines",
        table.ratio("grep -E", "read all facts", TEXT_AIM),
        table.ratio("grep -E", "read by two processes", TEXT_AIM),
        table.memory("import"),
        table.memory("diagnose"),
    ]


def without(start: Cost, whole: Cost) -> Cost:
    """What a program cost, less the CPU time of its start: Python's, or the JVM's."""
    return Cost(whole.cpu - start.cpu, whole.wall, whole.memory, whole.output)


def _diagnose(folder: Path) -> list[str]:
    """The tool's answer as JSON; its exit status says what it found, not whether it ran."""
    command = f"{' '.join(TOOL)} diagnose {folder} --format json > {folder}.json; [ $? -le 3 ]"
    return ["bash", "-c", command]


def segments(folder: Path, size: int, rounds: int) -> list[str]:
    """Log directories; the summary's lines."""
    segment_files.write(folder, size)
    files = sorted(folder.rglob("*.log"))
    made = sum(p.stat().st_size for p in files)
    stored = sum(p.stat().st_blocks * 512 for p in files)
    print(
        f"{made / 1e6:,.0f} MB of segments in {len(files)} files ({stored / 1e6:,.0f} MB stored):"
    )
    table = Table(made)
    jars = project_root() / ".jars" / KAFKA / "*"
    dump = ["java", "-cp", str(jars), "org.apache.kafka.tools.DumpLogSegments", "--files"]
    alone = folder.with_name("alone") / "t-0"
    alone.mkdir(parents=True)
    smallest = alone / "00000000000000000000.log"
    smallest.write_bytes(files[0].read_bytes()[: segment_files.BATCH_BYTES])
    for _ in range(rounds):
        start = measured([*dump, str(smallest)])
        shell = f"{' '.join(dump)} {','.join(map(str, files))} > /dev/null".replace("*", r"\*")
        whole = measured(["bash", "-c", shell])
        table.add("kafka-dump-log", without(start, whole))
        for name in ("headers", "checksums"):
            start = measured([*ITSELF, "--child", name, str(alone.parent)])
            whole = measured([*ITSELF, "--child", name, str(folder)])
            table.add(name, without(start, whole))
        table.add("diagnose", measured(_diagnose(folder)))
    return [
        table.ratio("kafka-dump-log", "headers", SEGMENT_AIM),
        table.ratio("kafka-dump-log", "checksums", 1.0),
        table.ratio("kafka-dump-log", "diagnose", SEGMENT_AIM),
        table.memory("diagnose"),
    ]


def main(argv: list[str]) -> int:
    """Makes, measures, sums up."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--text-mb", type=int, default=1024, help="0: no broker logs")
    parser.add_argument("--segments-mb", type=int, default=10240, help="0: no segments")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--telling", type=int, default=1, help="so many times as many lines about replicas"
    )
    parser.add_argument("--folder", type=Path, help="where to make them; a temporary folder else")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    flags = parser.parse_args(argv)
    if flags.child:
        CHILDREN[flags.child[0]](Path(flags.child[1]))
        return 0
    base = Path(tempfile.mkdtemp(prefix="evidence-", dir=flags.folder))
    started = time.monotonic()
    summary = []
    try:
        if flags.text_mb:
            summary += text(base / "logs", flags.text_mb * MEGABYTE, flags.rounds, flags.telling)
            shutil.rmtree(base / "logs")
        if flags.segments_mb:
            summary += segments(base / "disks", flags.segments_mb * MEGABYTE, flags.rounds)
    except subprocess.CalledProcessError as error:
        print(f"{error}\n{error.output[-2000:]}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(base)
    print(f"\n{time.monotonic() - started:.0f} s in all")
    for line in summary:
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
