"""A TCP tap before a broker's listener that holds back requests of chosen kinds.

Only requests are read as frames (size, api key, version, correlation id, client id); answers pass
as they come. A held request waits until `release`, its connection with it.
"""

import contextlib
import socket
import struct
import threading
import time

FETCH, OFFSET_FOR_LEADER_EPOCH = 1, 23
# What a controller of ZooKeeper's time tells brokers.
LEADER_AND_ISR, STOP_REPLICA, UPDATE_METADATA = 4, 5, 6
Clients = str | tuple[str, ...]
"""How client ids begin: "" is any, () is none."""


class Tap:
    """Listens on `port` and forwards to `target`, both on 127.0.0.1."""

    def __init__(self, port: int, target: int) -> None:
        self.target = target
        self.held = 0
        self._held_kinds: list[tuple[frozenset[int], Clients]] = []
        self._waiting: dict[socket.socket, str] = {}
        self._let: list[str] = []
        self._changed = threading.Condition()
        self._closed = False
        self._sockets: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", port))
        threading.Thread(target=self._accept, daemon=True).start()

    def hold(self, *api_keys: int, from_clients: Clients = "") -> None:
        """From now on requests with these keys wait, if the client id begins so; others go on."""
        with self._changed:
            self.held = 0
            self._held_kinds, self._let = [(frozenset(api_keys), from_clients)], []
            self._changed.notify_all()

    def also_hold(self, *api_keys: int, from_clients: Clients = "") -> None:
        """As `hold`, beside what is held already."""
        with self._changed:
            self._held_kinds.append((frozenset(api_keys), from_clients))
            self._changed.notify_all()

    def release(self) -> None:
        self.hold()

    def let_one(self, client: str) -> None:
        """One held request of a client whose id begins so goes on."""
        with self._changed:
            self._let = [client]
            self._changed.notify_all()

    def holds(self, client: str) -> bool:
        """Whether a request of a client whose id begins so is held, and somebody waits for it."""
        with self._changed:
            waiting = [one for one, name in self._waiting.items() if name.startswith(client)]
        return any(not _has_gone(one) for one in waiting)

    def wait_held(self, seconds: float = 30) -> None:
        """Until at least one request is really held."""
        end = time.monotonic() + seconds
        while not self.held:
            if time.monotonic() > end:
                raise TimeoutError("no request came to be held")
            time.sleep(0.05)

    def close(self) -> None:
        self._closed = True
        self.release()
        self._listener.close()
        for one in self._sockets:
            one.close()

    def _accept(self) -> None:
        while not self._closed:
            try:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self.target), timeout=5.0)
            except OSError:
                if self._closed:
                    return
                client.close()
                continue
            server.settimeout(None)
            self._sockets += [client, server]
            for job in (self._requests, self._answers):
                threading.Thread(target=job, args=(client, server), daemon=True).start()

    def _requests(self, client: socket.socket, server: socket.socket) -> None:
        try:
            while True:
                head = _exactly(client, 4)
                body = _exactly(client, struct.unpack(">i", head)[0])
                with self._changed:
                    waited = False
                    while self._is_held(body) and not (waited and self._is_let(client, body)):
                        self.held += 1
                        waited = True
                        self._waiting[client] = _client(body)
                        self._changed.wait()
                    self._waiting.pop(client, None)
                if waited and _has_gone(client):
                    raise ConnectionError("whoever asked has gone: its request with it")
                server.sendall(head + body)
        except OSError:
            _close(client, server)

    def _is_held(self, body: bytes) -> bool:
        (api_key,) = struct.unpack_from(">h", body)
        return any(
            api_key in api_keys and _client(body).startswith(clients)
            for api_keys, clients in self._held_kinds
        )

    def _is_let(self, client: socket.socket, body: bytes) -> bool:
        """Whether it is the one that `let_one` means, which is used up by it."""
        named = [one for one in self._let if _client(body).startswith(one)]
        if not named or _has_gone(client):
            return False
        self._let.remove(named[0])
        return True

    def _answers(self, client: socket.socket, server: socket.socket) -> None:
        try:
            while data := server.recv(65_536):
                client.sendall(data)
        except OSError:
            pass
        _close(client, server)


def _client(body: bytes) -> str:
    (length,) = struct.unpack_from(">h", body, 8)
    return body[10 : 10 + max(length, 0)].decode()


def _has_gone(client: socket.socket) -> bool:
    """Whether the other side has closed; what it may have sent besides stays."""
    try:
        return not client.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True


def _exactly(source: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        part = source.recv(size - len(parts))
        if not part:
            raise ConnectionError("closed")
        parts += part
    return bytes(parts)


def _close(*sockets: socket.socket) -> None:
    for one in sockets:
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
        one.close()
