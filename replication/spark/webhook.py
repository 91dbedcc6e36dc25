"""One POST to a webhook: only its own answer counts, and it has a bounded time for that.

A redirect is no answer of a receiver: followed, the POST would become a GET of an address that
somebody else names. The request runs in a thread of its own, whose connection is cut when its time
is over: a server that sends a byte now and then holds nobody up.
"""

import http.client
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

PATIENCE_SECONDS = 10.0


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *told: Any) -> None:
        """None: the redirect is the answer, and an error."""


class _Request(urllib.request.HTTPHandler, urllib.request.HTTPSHandler):
    """Opens connections, and can cut them."""

    def __init__(self) -> None:
        urllib.request.HTTPSHandler.__init__(self)
        self.connections: list[http.client.HTTPConnection] = []
        self.error: Exception | None = None

    def http_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        """By a connection that is noted."""
        return self.do_open(self._noted(http.client.HTTPConnection), request)

    def https_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        """By a connection that is noted."""
        return self.do_open(self._noted(http.client.HTTPSConnection), request)

    def _noted(self, made: type[http.client.HTTPConnection]) -> Callable[..., Any]:
        def connection(*given: Any, **more: Any) -> http.client.HTTPConnection:
            self.connections.append(made(*given, **more))
            return self.connections[-1]

        return connection

    def send(self, request: urllib.request.Request, seconds: float) -> None:
        """Runs in the request's own thread."""
        try:
            opener = urllib.request.build_opener(self, _NoRedirects)
            with opener.open(request, timeout=seconds):
                pass
        except Exception as error:
            self.error = error

    def cut(self) -> None:
        """Whoever waits for these connections waits no longer."""
        for connection in self.connections:
            if connection.sock is not None:
                try:
                    connection.sock.shutdown(socket.SHUT_RDWR)
                except OSError:
                    continue


def post(address: str, data: bytes, seconds: float = PATIENCE_SECONDS) -> None:
    """Posts JSON; returns when the receiver has answered 2xx.

    Raises OSError (any other answer, no answer in time), HTTPException or ValueError.
    """
    kind = {"Content-Type": "application/json"}
    request, sending = urllib.request.Request(address, data, kind), _Request()
    thread = threading.Thread(target=sending.send, args=(request, seconds), daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        sending.cut()
        raise TimeoutError(f"no whole answer within {seconds:.0f} s")
    if sending.error is not None:
        raise sending.error


def reason_of(error: Exception) -> str:
    """Why `post` failed, without the address: that may hold a secret."""
    if isinstance(error, urllib.error.HTTPError):
        told = f"the receiver answered {error.code} {error.reason}"
        moved = ", which is not followed: give the address that takes alerts itself"
        return f"{told}{moved}" if 300 <= error.code < 400 else told
    told_by_os = str(error) if isinstance(error, OSError) else type(error).__name__
    return str(getattr(error, "reason", None) or told_by_os)
