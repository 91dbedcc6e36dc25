"""Tells people what the stream finds: metrics for Prometheus, and a webhook, each change once.

The fold hands over the rows that changed; at the start the tables say what was told before. What
could not be delivered stays due and is tried again with every look, and at the next start.
"""

import http.client
import json
import os
import re
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import functions as F

from replication.places import Place, label
from replication.progress import WARNING
from replication.spark.alerts import TABLES, Alert, Answer, Outbox, Row, alerts_of, payload
from replication.spark.answer_tables import Outcome
from replication.spark.event_files import SourceError
from replication.spark.metrics import Metrics
from replication.spark.progress import Progress
from replication.spark.tables import Store
from replication.spark.webhook import PATIENCE_SECONDS, post, reason_of

STATE = "alerts.json"
FOLD = "fold"
# One notification holds so many alerts, so that no receiver refuses it for its size.
MOST_IN_ONE = 100
# A delivery that failed is tried again after a time that doubles from the first to the last.
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0


@dataclass(frozen=True)
class Channels:
    """Where people are told: the port of the metrics, and the webhook's address. host: of this
    machine's addresses the one at which the metrics are, "" for all."""

    port: int | None = None
    webhook: str | None = None
    host: str = ""


def channels_of(given: list[str], environment: Mapping[str, str] = os.environ) -> Channels:
    """`prometheus=[HOST:]PORT` and `webhook=URL`; `${NAME}` is taken from the environment.

    Raises SourceError.
    """
    found: dict[str, str] = {}
    for each in given:
        kind, equals, value = each.partition("=")
        if not equals or kind not in ("prometheus", "webhook"):
            raise SourceError(f"--alert {each!r} is neither prometheus=[HOST:]PORT nor webhook=URL")
        try:
            found[kind] = re.sub(r"\$\{(\w+)\}", lambda match: environment[match[1]], value)
        except KeyError as error:
            raise SourceError(f"--alert {kind}: {error} is not in the environment") from None
    told = found.get("prometheus")
    host, _, port = (told or "").rpartition(":")
    if told is not None and not (re.fullmatch("[0-9]{1,5}", port) and 0 < int(port) < 65_536):
        raise SourceError(f"--alert prometheus={told}: no port")
    if not re.match(r"https?://", found.get("webhook", "http://")):
        raise SourceError("--alert webhook: its address begins with neither http:// nor https://")
    if re.match(r"https?://[^/?#]*@", found.get("webhook", "")):
        raise SourceError(
            "--alert webhook: its address names a user (USER:PASSWORD@HOST), which is not taken: "
            "take that away, and have the receiver know you by a part of the path or the query"
        )
    return Channels(int(port) if port else None, found.get("webhook"), host.strip("[]"))


@dataclass
class Alerting:
    """The alerts of one stream. names: a cluster's readable name by its id."""

    channels: Channels
    folder: Place
    progress: Progress
    names: Mapping[str, str] = field(default_factory=dict)
    answer: Answer = field(init=False)
    outbox: Outbox = field(init=False)
    metrics: Metrics = field(default_factory=Metrics)
    pause: float = FIRST_PAUSE
    not_before: float = 0.0
    # The queries hand over rows in their own threads, and the job tells in its own.
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.answer = Answer(names=self.names)
        self.outbox = Outbox(self.folder / STATE)

    def begin(self, store: Store, fold_run: str, queries: Iterable[str]) -> None:
        """Takes what the tables say now. queries: those that will run."""
        for table in TABLES:
            frame = store.at_cut(table)
            if table == "verdicts":
                frame = frame.filter(F.col("verdict") != "HOLDS")
            rows: dict[str, list[Row]] = {}
            for row in frame.collect():
                found = row.asDict(recursive=True)
                rows.setdefault(found["topic_partition_id"], []).append(found)
            for name, found_rows in rows.items():
                self.answer.put(table, name, found_rows)
        self.answer.tables = str(store.folder)
        held = store.sums(fold_run, FOLD)["held"]
        self.metrics.begin(label(store.folder), queries, held, time.time())
        self._show()

    def open(self) -> None:
        """Opens the port of the metrics, when all of them are there. Raises SourceError: it is
        taken."""
        if self.channels.port is not None:
            try:
                self.metrics.serve(self.channels.port, self.channels.host)
            except OSError as error:
                raise SourceError(f"--alert prometheus={self.channels.port}: {error}") from None

    def take(self, outcome: Outcome, micro_batch_id: int) -> None:
        """Takes the rows that a micro-batch of the fold has written, and its figures."""
        changed = {table: outcome.rows(table) for table in TABLES if outcome.has(table)}
        newest = outcome.figures.get("newest_event_time")
        with self.lock:
            for table, told in changed.items():
                for name, rows in told.items():
                    self.answer.put(table, name, rows)
            if newest is not None:
                # A broker whose clock is ahead makes no danger older than it is.
                at = min(int(newest), int(time.time() * 1000))
                self.answer.clock = max(at, self.answer.clock or 0)
        self.progressed(FOLD, micro_batch_id, outcome.figures)
        self._show()

    def heard(self, silent: dict[str, dict[int, str]], newest: Mapping[str, float]) -> None:
        """Takes what the live query found: silent brokers, and when the newest line of each cluster
        was written, in seconds since 1970."""
        if silent:
            with self.lock:
                self.answer.silent = {**(self.answer.silent or {}), **silent}
        self.metrics.heard(newest, self.names)
        self._show()

    def progressed(self, query: str, micro_batch_id: int, figures: Mapping[str, Any]) -> None:
        """Notes a micro-batch of any query."""
        self.metrics.progress(query, micro_batch_id, figures, time.time())

    def standing(self) -> list[Alert]:
        """The alerts that are active now."""
        with self.lock:
            return alerts_of(self.answer)

    def deliver(self, tries: int = 1) -> bool:
        """Tells what nobody was told yet; whether all of it is delivered.

        Does nothing while the pause after a failure lasts, unless more than one try is asked for.
        """
        keeps = ("BrokerSilent",) if self.answer.silent is None else ()
        due = self.outbox.due(self.standing(), keeps)
        self.metrics.pending.set(len(due) if self.channels.webhook else 0)
        if not due or self.channels.webhook is None:
            return True
        for _ in range(tries):
            if tries == 1 and time.monotonic() < self.not_before:
                return False
            if self._post(due, self.channels.webhook):
                return True
            if tries > 1:
                time.sleep(min(self.pause, 1.0))
        return False

    def _post(self, due: list[Row], address: str) -> bool:
        until = time.monotonic() + PATIENCE_SECONDS
        for first in range(0, len(due), MOST_IN_ONE):
            part = due[first : first + MOST_IN_ONE]
            data = json.dumps(payload(part)).encode()
            left = until - time.monotonic()
            if first and left <= 0:
                return False  # The job's loop waits; the rest is told with its next look.
            try:
                post(address, data, max(left, 1.0))
            except (OSError, http.client.HTTPException, ValueError) as error:
                told = f"{len(due)} not delivered, tried again: {reason_of(error)}"
                self.progress.say(f"alerts: {told}", level=WARNING)
                self.not_before = time.monotonic() + self.pause
                self.pause = min(2 * self.pause, LONGEST_PAUSE)
                return False
            self.outbox.was_told(part)
        self.progress.say(f"alerts: {len(due)} delivered")
        self.pause = FIRST_PAUSE
        self.metrics.pending.set(0)
        return True

    def _show(self) -> None:
        standing = self.standing()
        with self.lock:
            self.metrics.show(self.answer, standing)
