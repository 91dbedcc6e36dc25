"""spark-submit jobs/check_quality.py: expectations over the tables; `--help` tells all."""

import argparse
import math
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from replication.paths import project_root
from replication.places import HadoopPath, label
from replication.progress import doing, is_json, line_of, told
from replication.quality import acceptances, checks, offline_docs, suites, verdict_sums
from replication.quality.command import Every, parser
from replication.quality.great_expectations_suite import Judge, ProjectError
from replication.quality.metrics import Metrics, told_if_in_vain
from replication.quality.suites import Suite, SuiteError
from replication.reports.inventory_words import counted
from replication.spark import contracts, expectation_results, session, views
from replication.spark.cut import BATCHES
from replication.spark.ending import Stop
from replication.spark.failures import EXIT_DEFECT, ended_by, exit_status
from replication.spark.fold_stream import QUERY
from replication.spark.tables import Store
from replication.spark.views import Opened
from replication.spark.whole_files import read_whole

# Bytes: smaller tables are read once for all expectations.
KEPT_BELOW = 16_000_000
POLL_SECONDS = 1.0
# Where no time is told (--every N): after a look that failed the next is due so much later, and so
# often it is asked whether each table is still there.
RETRY_SECONDS = 60.0


def main(argv: list[str]) -> int:
    """Runs the job; returns the exit status."""
    flags = parser().parse_args(argv)
    if flags.project is not None and isinstance(flags.tables, HadoopPath):
        raise ProjectError(
            f"--project: offers tables in folders of this machine, not {flags.tables}"
        )
    if isinstance(flags.metrics, int) and flags.every is None:
        raise SuiteError("--metrics PORT: nobody is served without --every")
    folder = project_root() / "conf" / "expectations"
    tables = flags.tables.absolute()
    with told_if_in_vain(label(tables), flags.metrics):
        chosen = suites.load(folder, tuple(flags.suite), flags.expectations, flags.fail_on)
        acceptances.load(flags.accepted)  # What is wrong in it is said before Spark starts.
        spark = session.start("replication-analyzer quality", [tables])
    stop = Stop()
    try:
        if flags.every is None:
            return check(spark, flags, chosen)
        stop.listen(spark)
        return follow(spark, flags, chosen, stop)
    except Exception as error:
        return ended_by(error, "check_quality.py")  # Before the JVM is let go.
    finally:
        spark.stop()
        stop.leave()


def check(spark: SparkSession, flags: argparse.Namespace, chosen: list[Suite]) -> int:
    """Holds the tables against the suites, once; the exit status."""
    tables = label(flags.tables)
    with told(), told_if_in_vain(tables, flags.metrics):
        metrics = Metrics(tables, flags.metrics)
        return _look(_opened(spark, flags), flags, chosen, flags.run, metrics)


def _opened(spark: SparkSession, flags: argparse.Namespace) -> Opened:
    """The tables, in a session that suits their size."""
    doing("opening the tables")
    folder = flags.tables.absolute()
    few = folder.is_dir() and views.few_rows(spark, folder)
    return views.opened(session.for_few_rows(spark) if few else spark, folder)


def follow(spark: SparkSession, flags: argparse.Namespace, chosen: list[Suite], stop: Stop) -> int:
    """Checks now and as flags.every says; the worst exit status (`checks.worst`). After a first
    look, one that fails ends nothing: what watches the watcher is the metric of the last look."""
    metrics = Metrics(label(flags.tables), flags.metrics)
    made: list[int] = []
    in_vain: list[int] = []
    due, looks = Due(flags.every), Looks()
    _say(f"judging now and {flags.every}; stop with SIGTERM or Ctrl-C (process {os.getpid()})")
    while not stop.asked:
        try:
            if due.now(Store(spark, flags.tables.absolute())):
                found = _opened(spark, flags)
                due.looked = (found.run, found.micro_batch_id)
                run = flags.run and f"{flags.run} {found.run}/{found.micro_batch_id}"
                if flags.run and flags.every.seconds:
                    run = f"{run} {datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
                looks.number = len(made) + len(in_vain) + 1
                made.append(_look(found, flags, chosen, run, metrics, looks.say))
                spark.catalog.clearCache()  # Each look keeps its small tables in memory.
        except Exception as error:
            if not stop.asked:
                with suppress(OSError):  # Perhaps the very disk that is full.
                    metrics.look_failed()
            if not made or stop.asked or not session.is_alive(spark):
                raise
            in_vain.append(ended_by(error, "check_quality.py"))
            if in_vain[-1] == EXIT_DEFECT:
                raise
            again = flags.every if flags.every.seconds else f"every {RETRY_SECONDS:g} s"
            _say(
                f"the tables were not judged; it looks again {again} until they are, and the "
                "metrics stay those of the last look: TablesNotChecked fires after 15 minutes"
            )
            due.failed()
        time.sleep(POLL_SECONDS)
    status, words = checks.worst(made, in_vain)
    _say(words)
    return status


@dataclass
class Looks:
    """Prints what each look says with its number and time; what the one before said, in a line.
    number: of the look that is being made."""

    number: int = 1
    _said: str = ""
    _before: int = 0

    def say(self, text: str) -> None:
        """Prints what a look came to."""
        told = f"look {self.number} at {datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        if text == self._said:
            print(f"{told}: nothing has changed since look {self._before}", flush=True)
        else:
            print(f"{told}\n{text}", flush=True)
        self._said, self._before = text, self.number


@dataclass
class Due:
    """Whether the tables are to be judged again. looked: run and micro-batch of the last look."""

    every: Every
    looked: tuple[str, int] | None = None
    _began: float = -math.inf
    _seen: int | None = None
    _retry: float | None = None
    _there: float = -math.inf

    def failed(self) -> None:
        """The last look could not be made: another is due, whether anything is written or not."""
        self._retry = time.monotonic() + RETRY_SECONDS

    def now(self, store: Store) -> bool:
        """By the clock, or where the fold is so much further or at work on another run."""
        if self.every.seconds:
            due = time.monotonic() - self._began >= self.every.seconds
            self._began = time.monotonic() if due else self._began
            return due
        if self._retry is not None:
            due = time.monotonic() >= self._retry
            self._retry = None if due else self._retry
            return due
        return self._is_further(store) or self._lacks_a_table(store)

    def _is_further(self, store: Store) -> bool:
        # The version alone is cheap to ask for; the rows of a long stream's _batches are many.
        version = store.version(BATCHES)
        if version == self._seen:
            return False
        self._seen = version
        newest = store.newest_batches().get(QUERY)
        if newest is None or self.looked is None or self.looked[0] != newest["run"]:
            return True
        return bool(newest["micro_batch_id"] - self.looked[1] >= self.every.micro_batches)

    def _lacks_a_table(self, store: Store) -> bool:
        """Whether one is gone, now and then: a stream over it has ended, and writes nothing."""
        if self.looked is None or time.monotonic() < self._there:
            return False
        self._there = time.monotonic() + RETRY_SECONDS
        return any(not (store.folder / t / "_delta_log").is_dir() for t in views.folded())


def _look(
    found: Opened, flags: argparse.Namespace, chosen: list[Suite], name: str | None,
    metrics: Metrics, say: Callable[[str], None] = print,
) -> int:  # fmt: skip
    """Judges what was opened, writes and says what came out; the exit status."""
    run = name or datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    folder = flags.tables.absolute()
    known = contracts.tables()
    columns = {table: [c.name for c in known[table].columns] for table in views.stored()}
    judge = Judge(run, flags.data_docs, flags.project, (folder, columns))
    spark = found.store.spark
    for begun in sorted(set(found.cut.begun.values())):
        _say(
            f"run {begun!r} has begun and has finished no micro-batch: judged is what run "
            f"{found.run!r} has written, which is in force until then"
        )
    if flags.read_files:
        doing("reading every byte of the tables' files")
        files, size = read_whole(found.store, views.stored())
        print(f"files: {counted(files, 'file')}, {size:,} bytes read, none is damaged")
    doing("judging the suites")
    others = suites.not_chosen(flags.expectations, tuple(flags.suite))
    asked = "\n".join(suite.sql() for suite in [*chosen, *others])
    names = found.register(KEPT_BELOW, f"{asked} lost_records")
    accepted, today = acceptances.load(flags.accepted), datetime.now(UTC).date()
    in_force = acceptances.in_force(accepted, today)
    sums = verdict_sums.sums_of(found.frame("verdicts"), found.frame("replica_states"))
    results = checks.run(spark, chosen, names, judge, in_force, sums)
    results += checks.unusable(spark, others, names)
    results += [checks.result_of(own) for own in judge.own(names, found.versions())]
    checked = (found.run, found.micro_batch_id)
    at = time.time_ns() // 1_000_000
    about = whose(found)
    rows = checks.result_rows(results, run, checked, at, about)
    expectation_results.append(found.store, rows)
    metrics.show(results, about[0], at / 1000, sums, all_asked=not flags.suite)
    told = list(
        acceptances.words(accepted, *checks.findings_of(results), all_asked=not flags.suite)
    )
    lines = [checks.text(results, told)]
    docs = judge.write_docs()
    sites = judge.sites()
    lost = spark.table(names["lost_records"])
    answer = verdict_sums.in_one_line(sums, found.frame("verdicts"), lost) if sites else ""
    for site in sites:
        offline_docs.make_offline(site, offline_docs.whose_words(*about), [answer, *told])
    if docs is not None:
        lines.append(f"Data Docs: {docs}")
    say("\n".join([*lines, str(sums)]))
    if is_json():
        for line, level, told_of in checks.to_log(results):
            _say(line, level=level, expectation=told_of)
        _say(str(sums), verdicts=sums.figures(), expectations=checks.counts(results))
    return checks.exit_status(results)


def whose(found: Opened) -> tuple[list[str], list[str]]:
    """The clusters and the named incidents that the tables hold."""
    names = F.collect_set("cluster_id"), F.collect_set("incident")
    row = found.frame("verdicts").agg(*names).collect()[0]
    return sorted(row[0]), sorted(row[1])


def _say(text: str, **figures: Any) -> None:
    print(line_of(f"check_quality.py: {text}", **figures), file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(exit_status(main, sys.argv))
