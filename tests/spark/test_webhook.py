"""Every answer that a web server can give: only a receiver's own 2xx is a delivery.

No answer holds the caller for longer than it was told to wait, and nothing is sent to anybody else.
"""

import io
import socket
import socketserver
import threading
import time
from collections.abc import Iterator
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path

import pytest

from replication.spark import alerting, metrics
from replication.spark.alerting import Alerting, Channels, channels_of
from replication.spark.metrics import Metrics
from replication.spark.progress import Progress
from replication.spark.webhook import post
from tests.spark.test_alerts import BEGAN, answered, at_risk

FAILURES = (OSError, HTTPException, ValueError)
# A wait of this long is none that was told; what a loaded machine takes is far below.
MUCH_TOO_LONG = 60.0


class Server:
    """Answers each connection with some bytes, one after the other where it drips."""

    def __init__(self, answer: bytes, drips: bool = False) -> None:
        ended = self.ended = threading.Event()
        self.asked: list[bytes] = []
        asked = self.asked

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                asked.append(self.request.recv(1 << 16))
                try:
                    if not drips:
                        self.request.sendall(answer)
                        return
                    for byte in iter(lambda: b"x", b""):
                        self.request.sendall(answer or byte)
                        if ended.wait(0.05):
                            return
                except OSError:
                    return

        self.server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}/s3cret"

    def close(self) -> None:
        self.ended.set()
        self.server.shutdown()


@pytest.fixture
def other() -> Iterator[Server]:
    """Somebody who takes whatever comes."""
    made = Server(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    yield made
    made.close()


@pytest.mark.parametrize(
    "status", [s.value for s in HTTPStatus if s.value >= 200] + [299, 600, 999]
)
def test_only_two_hundreds_are_a_delivery(status: int, other: Server) -> None:
    """A redirect is followed nowhere, a GET of another address least of all."""
    told = f"HTTP/1.1 {status} X\r\nLocation: {other.address}\r\nContent-Length: 0\r\n\r\n"
    server = Server(told.encode())
    try:
        if 200 <= status < 300:
            post(server.address, b"{}")
        else:
            with pytest.raises(FAILURES):
                post(server.address, b"{}")
    finally:
        server.close()
    assert other.asked == []


@pytest.mark.parametrize(
    "answer", [b"", b"x", b"HTTP/1.1 200 OK\r\n", b"X: y\r\n", b"HTTP/1.1 100 Continue\r\n\r\n"]
)
def test_a_server_that_drips_is_given_up(answer: bytes, tmp_path: Path) -> None:
    server = Server(answer, drips=True)
    began, before = time.monotonic(), threading.active_count()
    try:
        with pytest.raises(FAILURES):
            post(server.address, b"{}", 0.3)
        assert time.monotonic() - began < MUCH_TOO_LONG
        for _ in range(600):
            if threading.active_count() <= before + 1:
                break
            time.sleep(0.05)
        assert threading.active_count() <= before + 1, "what was given up goes on"
    finally:
        server.close()


def test_a_dripping_receiver_costs_the_jobs_loop_its_patience_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alerting, "PATIENCE_SECONDS", 0.3)
    server, said = Server(b"HTTP/1.1 200 OK\r\n", drips=True), io.StringIO()
    made = Alerting(Channels(webhook=server.address), tmp_path, Progress(said))
    made.answer = answered(at_risk(), clock=BEGAN)
    assert not made.deliver()
    assert not made.deliver(), "its pause lasts"
    server.close()
    assert said.getvalue().count("not delivered, tried again") == 1
    assert "s3cret" not in said.getvalue()


def test_who_connects_and_asks_nothing_keeps_no_other_from_asking(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(metrics, "MOST_ASKING", 8)
    monkeypatch.setattr(metrics._Silent, "timeout", 600.0)
    before = threading.active_count()
    server = Metrics().serve(0, "127.0.0.1")
    place = ("127.0.0.1", server.server_address[1])
    idle = [socket.create_connection(place) for _ in range(100)]
    with socket.create_connection(place) as asking:
        asking.sendall(b"GET /health HTTP/1.0\r\n\r\n")
        assert b"200 OK" in asking.recv(1 << 16)
    for _ in range(600):
        if threading.active_count() <= before + 12:
            break
        time.sleep(0.05)
    assert threading.active_count() <= before + 12
    for each in idle:
        each.close()
    server.shutdown()


def test_metrics_listen_where_they_are_told_to() -> None:
    assert channels_of(["prometheus=9464"]) == Channels(9464)
    assert channels_of(["prometheus=127.0.0.1:9464"]) == Channels(9464, host="127.0.0.1")
