"""Reads ZooKeeper's snapshots, packed or not, and transaction logs (`version-2/`), 3.4 to 3.9.

Only what Kafka keeps is taken out: partitions' states, assignments, settings, brokers, the
controller's epoch, the cluster's id. Big-endian; strings and buffers behind an int32 length (jute).
Sources: FileTxnLog, FileSnap, DataTree, SerializeUtils and zookeeper.jute of ZooKeeper.
"""

import re
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from replication.evidence.opening import READ_ERRORS, open_unpacked
from replication.evidence.unreadable import Unreadable

_LOG_MAGIC, _SNAPSHOT_MAGIC = b"ZKLG", b"ZKSN"
_FILE_HEADER = 16
_ENTRY = struct.Struct(">qi")
_HEADER = struct.Struct(">qiqqi")
_STAT = struct.Struct(">qqqqiiiqq")
_END_OF_ENTRY = b"B"
# jute.maxbuffer is 1 MB by default; multis are somewhat longer.
_LONGEST = 64 << 20
_CREATE, _DELETE, _SET_DATA = 1, 2, 5
_MULTI, _CREATE_2, _CREATE_CONTAINER, _DELETE_CONTAINER, _CREATE_TTL = 14, 15, 19, 20, 21
_CREATES = (_CREATE, _CREATE_2, _CREATE_CONTAINER, _CREATE_TTL)
_ERROR = -1
# What Kafka keeps there that tells of replication, below any chroot.
KAFKAS = re.compile(
    r"^(?P<root>.*?)/(?:brokers/topics/(?P<topic>[^/]+)(?:/partitions/(?P<partition>\d+)/state)?"
    r"|brokers/ids/(?P<broker>\d+)|(?P<controller>controller_epoch)"
    r"|cluster/(?P<cluster>id)|config/(?P<kind>topics|brokers)/(?P<name>[^/]+))$"
)


@dataclass(frozen=True, slots=True)
class ZnodeChange:
    """One znode took `data` with `version` (None for both: it was deleted) by transaction `zxid`.

    `at` is ms since 1970 on the clock of ZooKeeper's leader. `byte_offset` is the transaction's
    place in its file; None in a snapshot.
    """

    zxid: int
    at: int
    path: str
    data: bytes | None
    version: int | None
    file: str
    byte_offset: int | None


@dataclass(frozen=True, slots=True)
class LogEnd:
    """A transaction log was read up to and with `zxid` (None: nothing of it). `is_torn`: what
    follows there cannot be read."""

    zxid: int | None
    is_torn: bool
    file: str


class _Cut(Exception):
    """A record ends before its fields do. Never leaves this file."""


def is_zookeeper_file(path: Path) -> bool:
    """Whether the file is a snapshot or a transaction log."""
    try:
        with open_unpacked(path) as stream:
            return stream.read(4) in (_LOG_MAGIC, _SNAPSHOT_MAGIC)
    except READ_ERRORS:
        return False


def read_zookeeper_file(path: Path) -> Iterator[ZnodeChange | LogEnd | Unreadable]:
    """The steps of one file in its order, and where a log ends; a snapshot's are what it holds.

    A torn or damaged place ends the file with an Unreadable; nothing is raised. The zeros that a
    log is preallocated with are its lawful end.
    """
    try:
        with open_unpacked(path) as stream:
            head = stream.read(_FILE_HEADER)
            if len(head) < _FILE_HEADER:
                yield Unreadable(str(path), "byte 0", "the file ends within its header")
            elif head[:4] == _LOG_MAGIC:
                yield from _log(stream, str(path))
            else:
                yield from _snapshot(stream, str(path))
    except READ_ERRORS as error:
        yield Unreadable(str(path), "file", f"reading stops: {error}")


def _log(stream: BinaryIO, path: str) -> Iterator[ZnodeChange | LogEnd | Unreadable]:
    zxid: int | None = None
    for found in _transactions(stream, path):
        if isinstance(found, Unreadable):
            yield found
            yield LogEnd(zxid, True, path)
            return
        zxid, changes = found
        yield from changes
    yield LogEnd(zxid, False, path)


def _transactions(
    stream: BinaryIO, path: str
) -> Iterator[tuple[int, list[ZnodeChange]] | Unreadable]:
    """Each transaction's zxid and changes; an Unreadable ends them."""
    place = _FILE_HEADER
    while True:
        try:
            head = stream.read(_ENTRY.size)
            if not head.strip(b"\0"):
                return
            check_sum, size = _ENTRY.unpack(head) if len(head) == _ENTRY.size else (0, 1)
            body = stream.read(size + 1) if 0 < size <= _LONGEST else b""
            why = _unfit(head, body, check_sum, size)
            if why is None:
                yield _HEADER.unpack_from(body)[2], [*_transaction(body[:size], path, place)]
        except (_Cut, UnicodeDecodeError, struct.error):
            why = "a transaction whose fields do not fit its length"
        except READ_ERRORS as error:
            why = f"reading stops: {error}"
        if why is not None:
            yield Unreadable(path, f"byte {place}", why)
            return
        place += _ENTRY.size + size + 1


def _unfit(head: bytes, body: bytes, check_sum: int, size: int) -> str | None:
    """Why these bytes are no whole transaction; None where they are one."""
    if len(head) == _ENTRY.size and not 0 < size <= _LONGEST:
        return f"a transaction of {size} bytes is none"
    if len(head) < _ENTRY.size or len(body) < size + 1 or body[size:] != _END_OF_ENTRY:
        return "the log ends within a transaction"
    if zlib.adler32(body[:size]) != check_sum:
        return "the check sum of a transaction is wrong"
    return None


def _transaction(body: bytes, path: str, place: int) -> Iterator[ZnodeChange]:
    if len(body) < _HEADER.size:
        raise _Cut
    _, _, zxid, at, kind = _HEADER.unpack_from(body)
    fields = _Fields(body, _HEADER.size)
    parts = [(kind, fields)]
    if kind == _MULTI:
        parts = [(fields.number(), _Fields(fields.buffer() or b"")) for _ in range(fields.number())]
        if any(part == _ERROR for part, _ in parts):
            return
    for part, inside in parts:
        change = _change(part, inside)
        if change is None or not KAFKAS.match(change[0]):
            continue
        yield ZnodeChange(zxid, at, *change, path, place)


def _change(kind: int, fields: "_Fields") -> tuple[str, bytes | None, int | None] | None:
    """Path, data, version; None for what changes no znode."""
    if kind in (_DELETE, _DELETE_CONTAINER):
        return fields.text(), None, None
    if kind == _SET_DATA:
        name, data = fields.text(), fields.buffer() or b""
        return name, data, fields.number()
    if kind not in _CREATES:
        return None
    return fields.text(), fields.buffer() or b"", 0


def _snapshot(stream: BinaryIO, path: str) -> Iterator[ZnodeChange | Unreadable]:
    fields = _Fields(stream.read())
    try:
        for _ in range(fields.number()):
            fields.skip(12)
        for _ in range(fields.number()):
            fields.skip(8)
            for _ in range(max(fields.number(), 0)):
                fields.number()
                fields.text()
                fields.text()
        while (name := fields.text()) != "/":
            data = fields.buffer()
            fields.skip(8)
            _, zxid, _, at, version, *_ = _STAT.unpack(fields.take(_STAT.size))
            if KAFKAS.match(name):
                yield ZnodeChange(zxid, at, name, data or b"", version, path, None)
    except (_Cut, UnicodeDecodeError):
        where = f"byte {_FILE_HEADER + fields.place}"
        yield Unreadable(path, where, "the snapshot ends before its last znode")


class _Fields:
    """Jute's fields one after the other. _Cut where they end too early."""

    def __init__(self, body: bytes, place: int = 0) -> None:
        self.body = body
        self.place = place

    def take(self, size: int) -> bytes:
        end = self.place + size
        if size < 0 or end > len(self.body):
            raise _Cut
        taken = self.body[self.place : end]
        self.place = end
        return taken

    def skip(self, size: int) -> None:
        self.take(size)

    def number(self) -> int:
        return int.from_bytes(self.take(4), "big", signed=True)

    def buffer(self) -> bytes | None:
        size = self.number()
        return None if size < 0 else self.take(size)

    def text(self) -> str:
        return (self.buffer() or b"").decode("utf-8")
