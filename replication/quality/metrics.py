"""Outcomes of the checks as Prometheus metrics: scraped while the job stays, or left in a file."""

import argparse
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import product
from pathlib import Path

from prometheus_client import CollectorRegistry, Gauge, start_http_server, write_to_textfile
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from replication.quality.checks import Result
from replication.quality.verdict_sums import NAMES, WORDS, Sums

# Of each expectation; the table expectation_results has all.
MOST_TOPICS = 50
OF_EXPECTATION = ("tables", "severity", "suite", "expectation", "cluster", "topic")


class Metrics:
    """tables: their folder. where: a port that is scraped, a file that node_exporter's textfile
    collector reads, or None: nobody asks."""

    def __init__(self, tables: str, where: int | Path | None) -> None:
        self.registry, self.tables, self.where = CollectorRegistry(), tables, where
        self.failed = Gauge(
            "replication_expectation_failed",
            "1: it failed at the last look, or could not be judged; 0: it passed",
            OF_EXPECTATION,
            registry=self.registry,
        )  # fmt: skip
        self.checked = Gauge(
            "replication_quality_checked_timestamp_seconds",
            "When the tables were last looked at, by the suite that this is longest ago of; before "
            "the first look, when the job started",
            ["tables"], registry=self.registry,
        )  # fmt: skip
        self.of_suite = Gauge(
            "replication_quality_suite_checked_timestamp_seconds",
            "When a suite was last asked", ["tables", "suite"], registry=self.registry,
        )  # fmt: skip
        self.verdicts = Gauge(
            "replication_quality_verdicts",
            "Verdicts at the last look, one for each topic partition; not_judged: there is none, "
            "or a defect of this tool left it open",
            ["tables", "invariant", "verdict"], registry=self.registry,
        )  # fmt: skip
        self.in_vain = Gauge(
            "replication_quality_look_failed",
            "1: the last look could not be made, and all others are of the one before; 0: it was",
            ["tables"], registry=self.registry,
        )  # fmt: skip
        self._gauges = (self.failed, self.checked, self.of_suite, self.verdicts, self.in_vain)
        self.in_vain.labels(tables).set(0)
        self.checked.labels(tables).set(time.time())
        self._told: set[tuple[str, ...]] = set()
        if isinstance(where, int):
            start_http_server(where, registry=self.registry)

    def show(
        self, results: Iterable[Result], clusters: list[str], at: float, sums: Sums,
        all_asked: bool = True,
    ) -> None:  # fmt: skip
        """What came out of a look. clusters: those of the tables, for what fails by no row of one.
        at: seconds since the Unix epoch. all_asked: not where only some suites were: of what was
        not asked, the file goes on saying what it said. OSError: the file cannot be written."""
        self._recall()
        told: dict[tuple[str, ...], Result] = {}
        for r in results:
            labels = (self.tables, r.expectation.severity, r.suite, r.expectation.name)
            named = {(row["cluster_id"] or "", row["topic"]) for row in r.rows if row["topic"]}
            for where in sorted(named)[:MOST_TOPICS] or [(", ".join(clusters), "")]:
                told[*labels, *where] = r
        for each, r in told.items():
            self.failed.labels(*each).set(not r.passed)
        asked = {(r.suite, r.expectation.name) for r in told.values()}
        gone = self._told - told.keys()
        if not all_asked:
            gone = {each for each in gone if each[0] != self.tables or each[2:4] in asked}
        for each in gone:
            self.failed.remove(*each)
        self._told = self._told - gone | told.keys()
        looks = self._looks() if not all_asked else {}
        looks |= {r.suite: at for r in told.values()}
        self.of_suite.clear()
        for suite in sorted({each[2] for each in self._told if each[0] == self.tables}):
            self.of_suite.labels(self.tables, suite).set(looks.get(suite, at))
        if isinstance(self.where, Path):  # Of other tables, from a look in vain, it says no more.
            for gauge in (self.verdicts, self.checked, self.in_vain):
                gauge.clear()
        for invariant, verdict in product(NAMES, WORDS):
            count = sums.counts.get((invariant, verdict), 0)
            self.verdicts.labels(self.tables, invariant, verdict).set(count)
        self.checked.labels(self.tables).set(min(self._looks().values(), default=at))
        self.in_vain.labels(self.tables).set(0)
        self._write()

    def _looks(self) -> dict[str, float]:
        """When each suite of these tables was last asked."""
        samples = [s for each in self.of_suite.collect() for s in each.samples]
        return {s.labels["suite"]: s.value for s in samples if s.labels["tables"] == self.tables}

    def look_failed(self) -> None:
        """A look could not be made: what the last one said stays. OSError: as show."""
        self._recall(of_others=True)
        self.in_vain.labels(self.tables).set(1)
        self._write()

    def _recall(self, of_others: bool = False) -> None:
        """Takes up what the file says, which another call may have written. of_others: also of
        other tables, for a folder may be misspelt."""
        said = _said_in(self.where) if isinstance(self.where, Path) else []
        for each in self._told if said else ():
            self.failed.remove(*each)
        self._told = set() if said else self._told
        gauges = {next(iter(g.describe())).name: g for g in self._gauges}
        for sample in said:
            gauge, labels = gauges.get(sample.name), sample.labels
            if gauge is None or not (of_others or labels.get("tables") == self.tables):
                continue
            with suppress(ValueError):  # An older version had other labels.
                gauge.labels(**labels).set(sample.value)
                if gauge is self.failed:
                    self._told.add(tuple(labels[name] for name in OF_EXPECTATION))

    def _write(self) -> None:
        if isinstance(self.where, Path):
            write_to_textfile(str(self.where), self.registry)


@contextmanager
def told_if_in_vain(tables: str, where: int | Path | None) -> Iterator[None]:
    """Where a call ends by an exception, a file of metrics says so: what it said before would look
    as if the tables had been judged."""
    try:
        yield
    except Exception:
        if isinstance(where, Path):
            with suppress(OSError):  # Perhaps the very disk that is full.
                Metrics(tables, where).look_failed()
        raise


def _said_in(file: Path) -> list[Sample]:
    """The samples of a file of metrics; none where it is not there, or is none."""
    try:
        families = text_string_to_metric_families(file.read_text(encoding="utf-8"))
        return [sample for family in families for sample in family.samples]
    except (OSError, ValueError):
        return []


def place(text: str) -> int | Path:
    """A port, or a file. Raises argparse.ArgumentTypeError."""
    if re.fullmatch(r"\d+", text):
        if int(text) < 1 << 16:
            return int(text)
    elif text.endswith(".prom"):
        return Path(text)
    raise argparse.ArgumentTypeError(f"{text!r} is neither a port nor a file whose name ends .prom")
