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
from replication.spark.event_files import SourceError
from replication.spark.metrics import Metrics
from replication.spark.progress import Progress
from replication.spark.webhook import post
from tests.spark.test_alerts import BEGAN, answered, at_risk

FAILURES = (OSError, HTTPException, ValueError)
# A wait of this long is none that was told; what a loaded machine takes is far below.
MUCH_TOO_LONG = 60.0


class Server:
    """Answers each connection with some bytes, one after the other where it drips."""

    def __init__(self, answer: bytes, drips: bool = False, begin: bytes = b"") -> None:
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
                    self.request.sendall(begin)
                    for byte in iter(lambda: b"x", b""):
                        self.request.sendall(answer or byte)
                        if ended.wait(0.05):
                            return
                except OSError:
                    return

        self.server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
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


OK = b"HTTP/1.1 200 OK\r\n"
ANSWERS: list[tuple[bytes, bool]] = [
    # Whole answers in every form that HTTP has for them: delivered.
    (OK + b"Content-Length: 0\r\n\r\n", True),
    (OK + b"\r\n", True),
    (OK + b"Content-Length: 5\r\n\r\nabc", True),
    (OK + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", True),
    (OK + b"Transfer-Encoding: chunked\r\n\r\nno number\r\n", True),
    (OK + b"Content-Encoding: gzip\r\n\r\n\x1f\x8b", True),
    (OK + b"Content-Length: -1\r\n\r\n", True),
    (OK + b"Content-Length: x\r\n\r\n", True),
    (OK + b"Content-Length: " + b"9" * 5_000 + b"\r\n\r\n", True),
    (OK + b"Location: http://127.0.0.1:1/\r\nRefresh: 0\r\n\r\n", True),
    (b"HTTP/1.0 204 No Content\r\n\r\n", True),
    (b"HTTP/1.1 200\r\n\r\n", True),
    (b"HTTP/1.1 100 Continue\r\n\r\n" * 90 + OK + b"\r\n", True),
    (b"HTTP/1.1 103 Early Hints\r\n\r\n" + OK + b"\r\n", False),
    (b"HTTP/1.1 101 Switching Protocols\r\n\r\n", False),
    # No answers of HTTP, or only parts of one: never a delivery, and never another exception.
    *[((OK + b"A: b\r\n\r\n")[:length], False) for length in range(11)],
    (b"HTTP/1.1 2 00 OK\r\n\r\n", False),
    (b"HTTP/1.1 20 OK\r\n\r\n", False),
    (b"HTTP/1.1 2000 OK\r\n\r\n", False),
    (b"HTTP/1.1 -200 OK\r\n\r\n", False),
    (b"HTTP/1.1 000 OK\r\n\r\n", False),
    (b"HTTP/1.1 " + b"2" * 5_000 + b" OK\r\n\r\n", False),
    (b"HTTP/9.9 200 OK\r\n\r\n", False),
    (b"HTTP/2 200\r\n\r\n", False),
    (b"ICY 200 OK\r\n\r\n", False),
    (b"<html>200 OK</html>", False),
    (b"SSH-2.0-OpenSSH_9\r\n", False),
    (b"\x16\x03\x01\x02\x00", False),
    (b"\0" * 70_000, False),
    (b"\xff\xfe\r\n\r\n", False),
    (OK + b"X" * 70_000, False),
    (OK + b"X: y\r\n" * 200 + b"\r\n", False),
    (OK + b" no field\r\nX\r\n: y\r\n\r\n", True),
    (b"\r\n" + OK + b"\r\n", False),
    (OK.replace(b"\r", b"") + b"\n", True),
]  # fmt: skip


@pytest.mark.parametrize(("answer", "delivered"), ANSWERS)
def test_whatever_a_server_answers_is_a_delivery_or_a_failure(
    answer: bytes, delivered: bool
) -> None:
    server = Server(answer)
    try:
        if delivered:
            post(server.address, b"{}", 20)
        else:
            with pytest.raises(FAILURES):
                post(server.address, b"{}", 20)
    finally:
        server.close()


def test_nobody_there_a_port_of_no_http_and_no_address_are_failures() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(FAILURES):
            post(f"http://127.0.0.1:{port}/", b"{}", 0.3)
    for address in (f"http://127.0.0.1:{port}/", f"https://127.0.0.1:{port}/", "http://[::1/",
                    "http:///x", "gopher://127.0.0.1/", "http://\u0130/",
                    "http://127.0.0.1:99999/", "http://127.0.0.1:x/", "x"):  # fmt: skip
        with pytest.raises(FAILURES):
            post(address, b"{}", 5)


@pytest.mark.parametrize("answer", [b"\x16\x03\x03\x40\x00", b"\x15"])
def test_a_handshake_that_drips_is_given_up(answer: bytes) -> None:
    """And the thread that waits for it ends."""
    server = Server(b"", drips=True, begin=answer)
    before = threading.active_count()
    try:
        with pytest.raises(FAILURES):
            post(server.address.replace("http:", "https:"), b"{}", 0.5)
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


@pytest.mark.parametrize(
    ("status", "said"),
    [("308 Permanent Redirect", "answered 308 Permanent Redirect, which is not followed: give"),
     ("503 Later", "tried again: the receiver answered 503 Later\n")],
)  # fmt: skip
def test_what_a_receiver_answered_is_said(status: str, said: str, tmp_path: Path) -> None:
    server, out = Server(f"HTTP/1.1 {status}\r\nLocation: /s3cret\r\n\r\n".encode()), io.StringIO()
    made = Alerting(Channels(webhook=server.address), tmp_path, Progress(out))
    made.answer = answered(at_risk(), clock=BEGAN)
    assert not made.deliver()
    server.close()
    assert said in out.getvalue()
    assert "s3cret" not in out.getvalue()


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


@pytest.mark.parametrize(
    "given",
    ["prometheus=", "prometheus=0", "prometheus=65536", "prometheus=x", "prometheus=-1",
     "prometheus=\u00b2", "prometheus=9464:", "prometheus", "webhook=file:///etc/hostname",
     "webhook=ftp://h/", "webhook=//h", "webhook=", "pager=1", "webhook=${NOT_THERE}",
     "webhook=http://user:s3cret@h/hook", "webhook=https://s3cret@h:8080"],
)  # fmt: skip
def test_what_is_no_place_to_tell_is_refused_at_the_start(given: str) -> None:
    with pytest.raises(SourceError) as refused:
        channels_of([given], {})
    assert "s3cret" not in str(refused.value)


def test_a_sign_of_users_behind_the_host_names_no_user() -> None:
    assert channels_of(["webhook=http://h/@team?to=a@b"]).webhook == "http://h/@team?to=a@b"
