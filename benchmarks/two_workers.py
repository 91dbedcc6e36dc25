"""What a second worker saves: replay and import on HDFS by one worker of one core, then by two.

By the clock it says something on an idle machine with a core for each worker and some for the
driver. By CPU seconds, which others' load changes less, it is what that would be if every process
had a core of its own: driver and all work of one worker, against driver and the work of the busier
of two. Start-up costs each executor the same however much there is to do: the same job on next to
nothing tells it, and each ratio is given with it and without. As a command, as root (mounts):

    python -m benchmarks.two_workers [--partitions 60000] [--text-mb 1500]
"""

import argparse
import os
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import broker_text
from replication.evidence.event_dumps import arrow_schema
from replication.protocol.ground import wire
from tests.spark import standalone
from tests.spark.event_rows import made_trace

AIM = 1.7
EVENT_FILES = 16
# Next to nothing: what a job costs then is its start-up.
FEW_PARTITIONS, LITTLE_TEXT_MB = 16, 1
MEGABYTE = 1 << 20
TICKS = os.sysconf("SC_CLK_TCK")
# The driver only plans here: its JVM's second compiler would be most of what it costs.
DRIVER = tuple(each for each in standalone.QUICK if each.startswith("spark.driver."))


@dataclass
class Sessions:
    """CPU seconds of all processes of some sessions while the block runs; what came and went
    between two looks is not counted."""

    leaders: list[int]
    _seen: dict[tuple[int, str], tuple[int, float]] = field(default_factory=dict)
    _ended: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> "Sessions":
        self._look()
        self._before = self._sums()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self._look()

    def used(self) -> list[float]:
        """Of each session, in the order of the leaders."""
        now = self._sums()
        return [now.get(leader, 0.0) - self._before.get(leader, 0.0) for leader in self.leaders]

    def _watch(self) -> None:
        while not self._ended.wait(0.2):
            self._look()

    def _look(self) -> None:
        for entry in Path("/proc").iterdir():
            try:
                text = (entry / "stat").read_text() if entry.name.isdigit() else ""
            except OSError:
                continue
            fields = text.rpartition(")")[2].split()
            if fields and int(fields[3]) in self.leaders:
                spent = (int(fields[11]) + int(fields[12])) / TICKS
                self._seen[int(entry.name), fields[19]] = (int(fields[3]), spent)

    def _sums(self) -> dict[int, float]:
        found: dict[int, float] = {}
        for session, spent in self._seen.values():
            found[session] = found.get(session, 0.0) + spent
        return found


@dataclass(frozen=True)
class Cost:
    """Seconds: by the clock, and of CPU."""

    clock: float
    driver: float
    workers: list[float]

    @property
    def alone(self) -> float:
        """By the clock, if every process had a core of its own."""
        return self.driver + max(self.workers)

    def less(self, start_up: "Cost") -> "Cost":
        """Without what a start costs."""
        work = [
            all_in - start for all_in, start in zip(self.workers, start_up.workers, strict=True)
        ]
        return Cost(self.clock - start_up.clock, self.driver - start_up.driver, work)


def write_events(folder: Path, partitions: int) -> None:
    """Events of that many partitions, each with an unclean election, as Parquet files."""
    schema = arrow_schema()
    one = pa.Table.from_pylist([wire.to_row(e) for e in made_trace(rounds=2)], schema=schema)
    place = schema.get_field_index("partition")
    folder.mkdir()
    for number in range(EVENT_FILES):
        tables = []
        for partition in range(number, partitions, EVENT_FILES):
            column = pa.array([partition] * len(one), schema.field("partition").type)
            tables.append(one.set_column(place, schema.field("partition"), column))
        pq.write_table(pa.concat_tables(tables).combine_chunks(), folder / f"{number}.parquet")


def cost(cluster: standalone.Cluster, job: str, *flags: object) -> Cost:
    """Of one job, run to its end. Raises AssertionError."""
    with tempfile.TemporaryDirectory() as name, standalone.processes() as start:
        log = Path(name) / "log.txt"
        started = time.monotonic()
        process = start(standalone.submit(job, cluster, *flags), log,
                        standalone.environment(), standalone.ROOT)  # fmt: skip
        with Sessions([process.pid, *cluster.workers]) as sessions:
            status = process.wait()
        assert status in (0, 1, 3), log.read_text(errors="replace")[-4000:]
        driver, *workers = sessions.used()
        return Cost(time.monotonic() - started, driver, workers)


def told(what: str, one: Cost, two: Cost) -> float:
    """Prints both ratios; that by CPU seconds."""
    by_cpu, by_clock = one.alone / two.alone, one.clock / two.clock
    print(f"{what}: by CPU seconds {by_cpu:.2f}, by the clock {by_clock:.2f}")
    for each in (one, two):
        work = " and ".join(f"{spent:.0f}" for spent in each.workers)
        print(f"  {each.clock:.0f} s; CPU: driver {each.driver:.0f} s, work {work} s", flush=True)
    return by_cpu


def main(argv: list[str]) -> int:
    """The command; exit status 0 when both jobs reach the aim by CPU seconds, start-up left out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, default=60_000)
    parser.add_argument("--text-mb", type=int, default=1_500)
    flags = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="two-workers-") as name:
        own = Path(name).resolve()
        hidden, folder = own / "drivers", own / "workers"
        for each in (hidden, folder):
            each.mkdir()
        write_events(hidden / "events", flags.partitions)
        write_events(hidden / "few-events", FEW_PARTITIONS)
        broker_text.write(hidden / "evidence", flags.text_mb * MEGABYTE)
        broker_text.write(hidden / "little-evidence", LITTLE_TEXT_MB * MEGABYTE)
        with standalone.hdfs(folder) as root:
            given = ("events", "few-events", "evidence", "little-evidence")
            standalone.copied(root, "-put", *(str(hidden / each) for each in given), f"{root}/")
            costs: dict[str, list[Cost]] = {each: [] for each in given}
            for workers in (1, 2):
                below = folder / f"of-{workers}"
                below.mkdir()
                with standalone.cluster(below, hidden, workers, DRIVER) as cluster:
                    for each in given:
                        came = f"{root}/{each}-by-{workers}"
                        if each.endswith("events"):
                            job = ("replay", "--source", f"{root}/{each}", "--tables", came)
                        else:
                            job = ("import_artifacts", f"{root}/{each}", "--out", came)
                        costs[each].append(cost(cluster, *job))
    ratios = [
        _told(job, costs[all_of_it], costs[next_to_nothing])
        for job, all_of_it, next_to_nothing in (
            ("replay", "events", "few-events"), ("import", "evidence", "little-evidence"),
        )
    ]  # fmt: skip
    return 0 if min(ratios) >= AIM else 1


def _told(job: str, both: list[Cost], start_up: list[Cost]) -> float:
    """Prints all ratios of a job; that by CPU seconds, start-up left out."""
    told(f"{job}, start-up alone", *start_up)
    told(f"{job}, all of it", *both)
    one, two = (all_in.less(start) for all_in, start in zip(both, start_up, strict=True))
    return told(f"{job}, start-up left out", one, two)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
