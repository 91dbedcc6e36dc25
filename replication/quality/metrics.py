"""Outcomes of the checks as Prometheus metrics: scraped while the job stays, or left in a file."""

import argparse
import re
import time
from collections.abc import Iterable
from itertools import product
from pathlib import Path

from prometheus_client import CollectorRegistry, Gauge, start_http_server, write_to_textfile

from replication.quality.checks import Result
from replication.quality.verdict_sums import NAMES, WORDS, Sums

# Of each expectation; the table expectation_results has all.
MOST_TOPICS = 50


class Metrics:
    """tables: their folder. where: a port that is scraped, a file that node_exporter's textfile
    collector reads, or None: nobody asks."""

    def __init__(self, tables: str, where: int | Path | None) -> None:
        self.registry, self.tables, self.where = CollectorRegistry(), tables, where
        self.failed = Gauge(
            "replication_expectation_failed",
            "1: it failed at the last look, or could not be judged; 0: it passed",
            ["tables", "severity", "suite", "expectation", "cluster", "topic"],
            registry=self.registry,
        )  # fmt: skip
        self.checked = Gauge(
            "replication_quality_checked_timestamp_seconds",
            "When the tables were last looked at; before the first look, when the job started",
            ["tables"], registry=self.registry,
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
        self.in_vain.labels(tables).set(0)
        self.checked.labels(tables).set(time.time())
        self._told: set[tuple[str, ...]] = set()
        if isinstance(where, int):
            start_http_server(where, registry=self.registry)

    def show(self, results: Iterable[Result], clusters: list[str], at: float, sums: Sums) -> None:
        """What came out of a look. clusters: those of the tables, for what fails by no row of one.
        at: seconds since the Unix epoch. OSError: the file cannot be written."""
        told: dict[tuple[str, ...], Result] = {}
        for r in results:
            labels = (self.tables, r.expectation.severity, r.suite, r.expectation.name)
            named = {(row["cluster_id"] or "", row["topic"]) for row in r.rows if row["topic"]}
            for where in sorted(named)[:MOST_TOPICS] or [(", ".join(clusters), "")]:
                told[*labels, *where] = r
        for each, r in told.items():
            self.failed.labels(*each).set(not r.passed)
        for each in self._told - told.keys():
            self.failed.remove(*each)
        self._told = set(told)
        for invariant, verdict in product(NAMES, WORDS):
            count = sums.counts.get((invariant, verdict), 0)
            self.verdicts.labels(self.tables, invariant, verdict).set(count)
        self.checked.labels(self.tables).set(at)
        self.in_vain.labels(self.tables).set(0)
        self._write()

    def look_failed(self) -> None:
        """A look could not be made: what the last one said stays. OSError: as show."""
        self.in_vain.labels(self.tables).set(1)
        self._write()

    def _write(self) -> None:
        if isinstance(self.where, Path):
            write_to_textfile(str(self.where), self.registry)


def place(text: str) -> int | Path:
    """A port, or a file. Raises argparse.ArgumentTypeError."""
    if re.fullmatch(r"\d+", text):
        if int(text) < 1 << 16:
            return int(text)
    elif text.endswith(".prom"):
        return Path(text)
    raise argparse.ArgumentTypeError(f"{text!r} is neither a port nor a file whose name ends .prom")
