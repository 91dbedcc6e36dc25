"""Just enough of ZooKeeper's client protocol to read znodes with their versions, and make some.

Jute encoding: big-endian numbers, strings and buffers behind an int32 length.
"""

import json
import socket
import struct
from dataclasses import dataclass
from typing import Any

CREATE, DELETE, EXISTS, GET_DATA, GET_CHILDREN, CLOSE = 1, 2, 3, 4, 8, -11
NO_NODE, NODE_EXISTS = -101, -110
ALL_PERMISSIONS = 31
STAT = struct.Struct(">qqqqiiiqiiq")


@dataclass(frozen=True)
class Znode:
    """A znode's content; `modified_ms` is the clock of ZooKeeper at the last write."""

    data: bytes
    version: int
    modified_ms: int

    def json(self) -> Any:
        return json.loads(self.data)


class ZooKeeperClient:
    """One session; every answer is read before the next question is asked."""

    def __init__(self, port: int, session_timeout_ms: int = 30_000) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=5.0)
        self.calls = 0
        hello = struct.pack(">iqiq", 0, 0, session_timeout_ms, 0) + _buffer(bytes(16))
        self._write(hello)
        self._read()

    def get(self, path: str) -> Znode | None:
        """The znode, or None where there is none."""
        body = self._call(GET_DATA, _buffer(path.encode()) + b"\0")
        if body is None:
            return None
        (size,) = struct.unpack_from(">i", body)
        size = max(size, 0)
        stat = STAT.unpack_from(body, 4 + size)
        return Znode(body[4 : 4 + size], version=stat[4], modified_ms=stat[3])

    def children(self, path: str) -> list[str]:
        body = self._call(GET_CHILDREN, _buffer(path.encode()) + b"\0")
        if body is None:
            return []
        (count,) = struct.unpack_from(">i", body)
        names, at = [], 4
        for _ in range(count):
            (size,) = struct.unpack_from(">i", body, at)
            names.append(body[at + 4 : at + 4 + size].decode())
            at += 4 + size
        return sorted(names)

    def create(self, path: str, content: Any) -> bool:
        """A znode that everybody may change, of JSON; False where it exists already."""
        access = struct.pack(">ii", 1, ALL_PERMISSIONS) + _buffer(b"world") + _buffer(b"anyone")
        data = json.dumps(content).encode()
        body = _buffer(path.encode()) + _buffer(data) + access + struct.pack(">i", 0)
        return self._call(CREATE, body) is not None

    def delete(self, path: str) -> None:
        """Whatever its version; nothing where there is none."""
        self._call(DELETE, _buffer(path.encode()) + struct.pack(">i", -1))

    def exists(self, path: str) -> bool:
        return self._call(EXISTS, _buffer(path.encode()) + b"\0") is not None

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> "ZooKeeperClient":
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._write(struct.pack(">ii", self.calls + 1, CLOSE))
        finally:
            self.close()

    def _call(self, kind: int, body: bytes) -> bytes | None:
        self.calls += 1
        self._write(struct.pack(">ii", self.calls, kind) + body)
        answer = self._read()
        _, _, error = struct.unpack_from(">iqi", answer)
        if error in (NO_NODE, NODE_EXISTS):
            return None
        if error:
            raise ConnectionError(f"ZooKeeper answered error {error}")
        return answer[16:]

    def _write(self, frame: bytes) -> None:
        self.socket.sendall(struct.pack(">i", len(frame)) + frame)

    def _read(self) -> bytes:
        (size,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(size)

    def _exactly(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            part = self.socket.recv(size - len(parts))
            if not part:
                raise ConnectionError("ZooKeeper closed the connection")
            parts += part
        return bytes(parts)


def _buffer(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data
