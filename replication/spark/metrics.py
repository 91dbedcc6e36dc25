"""The answer as Prometheus metrics: gauges by cluster and topic, and how the queries get on.

Beside /metrics /health answers probes: 200 while the job's own loop turns, 503 where it has stood
still for long (a JVM that answers no more).
"""

import contextlib
import socket
import socketserver
import threading
import time
from collections import Counter as Counted
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    disable_created_metrics,
    make_wsgi_app,
)

from replication.spark.alerts import CRITICAL, WARNING, Alert, Answer, Row, told_epoch
from replication.spark.topic_partition_ids import parts_of

PREFIX = "replication"
COUNTED = {
    "rows_in": "rows that came in (query live: lines)",
    "applied": "rows that were new and taken",
    "duplicates": "rows that had come before, or that a newer trace superseded",
    "quarantined": "rows that did not fit, which the table quarantine has",
}
OF_LOSS = ("status", "tier", "contract", "cause")
# A look at a large source folder, or a receiver of alerts that does not answer, takes minutes.
STANDSTILL_SECONDS = 600.0
# Who has connected and asks nothing is not waited for, and of so many at once none is.
ASKING_SECONDS = 10.0
MOST_ASKING = 32


class Metrics:
    """All metrics of one process, in a registry of its own."""

    def __init__(self) -> None:
        # Of each counter another series, which says what started_timestamp_seconds does.
        disable_created_metrics()
        self.registry = CollectorRegistry()
        self.turned = time.monotonic()
        self.shown: dict[Gauge, set[tuple[str, ...]]] = {}
        where = ("cluster", "cluster_name", "topic")
        self.started = self._gauge(
            "started_timestamp_seconds", "When this process opened its metrics", "tables"
        )
        self.at_risk = self._gauge(
            "records_at_risk", "Records that one failure would lose, while the danger lasts",
            *where, "tier", "failure",
        )  # fmt: skip
        self.dangers = self._gauge("dangers", "Dangers that have not passed", *where, "cause")
        self.gone = self._gauge(
            "records_gone", "Records that are gone from the leader's log and have not come back",
            *where, "partition", "next_leader_epoch", *OF_LOSS,
        )  # fmt: skip
        self.verdicts = self._gauge(
            "verdicts", "Verdicts that are VIOLATED or UNKNOWN", *where, "invariant", "verdict"
        )
        self.silent = self._gauge(
            "silent_broker", "1: nothing comes from this broker any more, while others go on",
            "cluster", "cluster_name", "broker",
        )  # fmt: skip
        self.alerts = self._gauge(
            "alerts", 'Active alerts of the webhook; alertname "any" has their sum',
            "alertname", "severity",
        )  # fmt: skip
        self.pending = self._gauge(
            "alerts_not_delivered", "Changes of alerts that the webhook has not taken yet"
        )
        self.newest = self._gauge(
            "newest_line_timestamp_seconds",
            "When the newest line of a cluster was written (one from the future: when it came); "
            "before the first one, when the stream started", "cluster", "cluster_name",
        )  # fmt: skip
        self.micro_batch = self._gauge(
            "micro_batch", "Number of the newest micro-batch; -1 before the first since the start",
            "query",
        )  # fmt: skip
        self.seconds = self._gauge(
            "micro_batch_seconds", "How long the newest micro-batch took", "query"
        )
        self.finished = self._gauge(
            "micro_batch_finished_timestamp_seconds",
            "When the newest micro-batch finished; before the first one, when the stream started",
            "query",
        )  # fmt: skip
        self.held = self._gauge("events_held", "Events that wait behind a gap in a trace")
        self.rows = {
            name: Counter(
                f"{PREFIX}_{name}", f"Since the start: {about}", ["query"], registry=self.registry
            )
            for name, about in COUNTED.items()
        }

    def _gauge(self, name: str, about: str, *labels: str) -> Gauge:
        return Gauge(f"{PREFIX}_{name}", about, labels, registry=self.registry)

    def serve(self, port: int, host: str = "") -> WSGIServer:
        """Answers scrapes and probes from a thread of its own. OSError: the port is taken. host:
        the address to listen at, "" for all."""
        server = make_server(host or "0.0.0.0", port, self.answers(), _Server, _Silent)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server

    def answers(self) -> Callable[..., Iterable[bytes]]:
        """The WSGI application: /health, and the metrics everywhere else."""
        metrics: Callable[..., Iterable[bytes]] = make_wsgi_app(self.registry)

        def answer(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
            if environ["PATH_INFO"] != "/health":
                return metrics(environ, start_response)
            still = time.monotonic() - self.turned
            status = "200 OK" if still < STANDSTILL_SECONDS else "503 Service Unavailable"
            start_response(status, [("Content-Type", "text/plain")])
            return [f"the job's loop turned {still:.0f} s ago\n".encode()]

        return answer

    def turn(self) -> None:
        """The job's loop has come round."""
        self.turned = time.monotonic()

    def begin(self, tables: str, queries: Iterable[str], held: int, at: float) -> None:
        """What holds before the first micro-batch, so that each series is there from the first
        scrape on. tables: their folder. held: events that wait behind a gap. at: now, seconds since
        1970."""
        self.started.labels(tables).set(at)
        self.held.set(held)
        for query in queries:
            self.micro_batch.labels(query).set(-1)
            self.seconds.labels(query).set(0)
            self.finished.labels(query).set(at)
            for counter in self.rows.values():
                counter.labels(query)

    def show(self, answer: Answer, standing: Iterable[Alert]) -> None:
        """Sets every gauge that follows from the answer. A scrape meanwhile finds what goes on
        holding: none of it is away for a moment."""
        found: dict[Gauge, Counted[tuple[str, ...]]] = {
            gauge: Counted()
            for gauge in (self.at_risk, self.dangers, self.gone, self.verdicts, self.silent,
                          self.alerts)
        }  # fmt: skip
        for row, where, _ in _rows(answer, answer.at_risk):
            found[self.at_risk][(*where, row["tier"], row["failure"])] += row["records"]
            found[self.dangers][(*where, row["cause"])] += 1
        for row, where, partition in _rows(answer, answer.loss_ledger):
            # How many they are may not be known; that they are gone is.
            records = 1 if row["records"] is None else row["records"]
            epoch = told_epoch(row)
            of_loss = [str(row[name]) for name in OF_LOSS]
            found[self.gone][*where, partition, epoch, *of_loss] += records
        for row, where, _ in _rows(answer, answer.verdicts):
            found[self.verdicts][(*where, row["invariant"], row["verdict"])] += 1
        for cluster, brokers in (answer.silent or {}).items():
            name = answer.names.get(cluster, cluster)
            found[self.silent].update({(cluster, name, str(broker)): 1 for broker in brokers})
        found[self.alerts].update({("any", severity): 0 for severity in (CRITICAL, WARNING)})
        for alert in standing:
            for name in (alert.labels["alertname"], "any"):
                found[self.alerts][name, alert.severity] += 1
        for gauge, values in found.items():
            for labels, value in values.items():
                gauge.labels(*labels).set(value)
            for labels in self.shown.get(gauge, set()) - values.keys():
                gauge.remove(*labels)
            self.shown[gauge] = set(values)

    def progress(
        self, query: str, micro_batch_id: int, figures: Mapping[str, Any], at: float
    ) -> None:
        """Notes a finished micro-batch. at: seconds since 1970."""
        self.micro_batch.labels(query).set(micro_batch_id)
        self.seconds.labels(query).set((figures.get("milliseconds") or 0) / 1000)
        self.finished.labels(query).set(at)
        if query == "fold":
            self.held.inc(figures.get("held") or 0)
        count = {name: figures.get(name) or 0 for name in (*COUNTED, "superseded")}
        count["duplicates"] += count["superseded"]
        for name, counter in self.rows.items():
            counter.labels(query).inc(max(0, count[name]))

    def heard(self, newest: Mapping[str, float], names: Mapping[str, str]) -> None:
        """newest: by cluster the time of its newest line, in seconds since 1970. names: as an
        answer has them."""
        for cluster, at in newest.items():
            self.newest.labels(cluster, names.get(cluster, cluster)).set(at)


class _Server(socketserver.ThreadingMixIn, WSGIServer):
    """A thread for each that asks; of too many the oldest gives way, which has had its time."""

    daemon_threads = True

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.asking: dict[int, socket.socket] = {}
        self.lock = threading.Lock()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Notes a connection, the newest last."""
        with self.lock:
            self.asking[id(request)] = request
            oldest = list(self.asking.values())[: len(self.asking) - MOST_ASKING]
        for each in oldest:
            self._end(each)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """A connection is over."""
        with self.lock:
            self.asking.pop(id(request), None)
        super().shutdown_request(request)

    def _end(self, request: socket.socket) -> None:
        with self.lock:
            self.asking.pop(id(request), None)
        with contextlib.suppress(OSError):  # It may have gone already.
            request.shutdown(socket.SHUT_RDWR)


class _Silent(WSGIRequestHandler):
    """Says nothing of who asked; waits for what is asked so long at most."""

    timeout = ASKING_SECONDS

    def log_message(self, format: str, *args: Any) -> None:
        pass


def _rows(
    answer: Answer, table: Mapping[str, list[Row]]
) -> Iterable[tuple[Row, tuple[str, str, str], str]]:
    for name, rows in table.items():
        cluster, topic, _, partition, _ = parts_of(name)
        for row in rows:
            yield row, (cluster, answer.names.get(cluster, cluster), topic), str(partition)
