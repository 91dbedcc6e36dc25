"""The answer as Prometheus metrics: gauges by cluster and topic, and how the queries get on.

Beside /metrics /health answers probes: 200 while the job's own loop turns, 503 where it has stood
still for long (a JVM that answers no more).
"""

import contextlib
import socket
import socketserver
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, Counter, Gauge, make_wsgi_app

from replication.spark.alerts import CRITICAL, Alert, Answer, Row
from replication.spark.topic_partition_ids import parts_of

PREFIX = "replication"
COUNTED = ("rows_in", "applied", "duplicates", "quarantined")
# A look at a large source folder, or a receiver of alerts that does not answer, takes minutes.
STANDSTILL_SECONDS = 600.0
# Who has connected and asks nothing is not waited for, and of so many at once none is.
ASKING_SECONDS = 10.0
MOST_ASKING = 32


class Metrics:
    """All metrics of one process, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.turned = time.monotonic()
        where = ("cluster", "cluster_name", "topic")
        self.at_risk = self._gauge("records_at_risk", "Records one failure away from loss",
                                   *where, "tier", "failure")  # fmt: skip
        self.dangers = self._gauge("dangers", "Dangers that have not passed", *where, "cause")
        self.gone = self._gauge("records_gone", "Records gone from the leader", *where, "status",
                                "tier", "contract")  # fmt: skip
        self.verdicts = self._gauge("verdicts", "Verdicts other than HOLDS", *where, "invariant",
                                    "verdict")  # fmt: skip
        self.silent = self._gauge("silent_broker", "1: nothing comes from it any more", "cluster",
                                  "cluster_name", "broker")  # fmt: skip
        self.alerts = self._gauge("alerts", "Active alerts", "alertname", "severity")
        self.pending = self._gauge("alerts_not_delivered", "Changes nobody was told of yet")
        self.newest = self._gauge("newest_line_timestamp_seconds", "Newest line of a cluster",
                                  "cluster")  # fmt: skip
        self.micro_batch = self._gauge("micro_batch", "Newest micro-batch", "query")
        self.seconds = self._gauge("micro_batch_seconds", "How long it took", "query")
        self.finished = self._gauge("micro_batch_finished_timestamp_seconds", "When", "query")
        self.held = self._gauge("events_held", "Events that wait behind a gap")
        self.rows = {
            name: Counter(f"{PREFIX}_{name}", f"Rows: {name}", ["query"], registry=self.registry)
            for name in COUNTED
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

    def show(self, answer: Answer, standing: Iterable[Alert]) -> None:
        """Sets every gauge that follows from the answer."""
        for gauge in (self.at_risk, self.dangers, self.gone, self.verdicts, self.silent,
                      self.alerts):  # fmt: skip
            gauge.clear()
        for row, where in _rows(answer, answer.at_risk):
            self.at_risk.labels(*where, row["tier"], row["failure"]).inc(row["records"])
            self.dangers.labels(*where, row["cause"]).inc()
        for row, where in _rows(answer, answer.loss_ledger):
            labels = (*where, row["status"], row["tier"], row["contract"])
            self.gone.labels(*labels).inc(row["records"] or 0)
        for row, where in _rows(answer, answer.verdicts):
            self.verdicts.labels(*where, row["invariant"], row["verdict"]).inc()
        for cluster, brokers in (answer.silent or {}).items():
            for broker in brokers:
                name = answer.names.get(cluster, cluster)
                self.silent.labels(cluster, name, str(broker)).set(1)
        for severity in (CRITICAL, "warning"):
            self.alerts.labels("any", severity).set(0)
        for alert in standing:
            self.alerts.labels(alert.labels["alertname"], alert.severity).inc()
            self.alerts.labels("any", alert.severity).inc()

    def progress(
        self, query: str, micro_batch_id: int, figures: Mapping[str, Any], at: float
    ) -> None:
        """Notes a finished micro-batch. at: seconds since 1970."""
        self.micro_batch.labels(query).set(micro_batch_id)
        self.seconds.labels(query).set((figures.get("milliseconds") or 0) / 1000)
        self.finished.labels(query).set(at)
        if query == "fold":
            self.held.inc(figures.get("held") or 0)
        for name, counter in self.rows.items():
            counter.labels(query).inc(max(0, figures.get(name) or 0))

    def heard(self, newest: Mapping[str, int]) -> None:
        """newest: by cluster the time of its newest line, in milliseconds."""
        for cluster, at in newest.items():
            self.newest.labels(cluster).set(at / 1000)


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
) -> Iterable[tuple[Row, tuple[str, str, str]]]:
    for name, rows in table.items():
        cluster, topic = parts_of(name)[:2]
        for row in rows:
            yield row, (cluster, answer.names.get(cluster, cluster), topic)
