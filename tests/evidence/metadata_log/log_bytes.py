"""Writes metadata logs byte by byte, after Kafka's protocol guide."""

import struct
from typing import Any

import crc32c

LOG = "0" * 20 + ".log"
TOPIC_ID = bytes(range(16))
OTHER_TOPIC_ID = bytes(range(16, 32))
ALL = (1, 2, 3)


def uvarint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def varint(value: int) -> bytes:
    return uvarint(value * 2 if value >= 0 else -value * 2 - 1)


def text(value: str | None) -> bytes:
    raw = (value or "").encode()
    return b"\0" if value is None else uvarint(len(raw) + 1) + raw


def ints(values: Any) -> bytes:
    return uvarint(len(values) + 1) + b"".join(struct.pack(">i", value) for value in values)


def tags(fields: dict[int, bytes]) -> bytes:
    out = uvarint(len(fields))
    for tag in sorted(fields):
        out += uvarint(tag) + uvarint(len(fields[tag])) + fields[tag]
    return out


def framed(api_key: int, version: int, body: bytes) -> bytes:
    return uvarint(1) + uvarint(api_key) + uvarint(version) + body


def topic(name: str = "t", topic_id: bytes = TOPIC_ID) -> bytes:
    return framed(2, 0, text(name) + topic_id + tags({}))


def remove_topic(topic_id: bytes = TOPIC_ID) -> bytes:
    return framed(9, 0, topic_id + tags({}))


def partition(
    leader: int = 1,
    isr: Any = ALL,
    replicas: Any = ALL,
    leader_epoch: int = 0,
    partition_epoch: int = 0,
    topic_id: bytes = TOPIC_ID,
    elr: Any = (),
    recovering: bool = False,
) -> bytes:
    body = struct.pack(">i", 0) + topic_id + ints(replicas) + ints(isr) + ints(()) + ints(())
    body += struct.pack(">iii", leader, leader_epoch, partition_epoch) + uvarint(1)
    fields = {1: ints(elr)} if elr else {}
    if recovering:
        fields[0] = b"\1"
    return framed(3, 2, body + tags(fields))


def change(topic_id: bytes = TOPIC_ID, version: int = 2, **fields: Any) -> bytes:
    number = {"isr": 0, "leader": 1, "replicas": 2, "recovery": 5, "elr": 6, "last_known": 7}
    packed = {}
    for name, value in fields.items():
        kind = {"leader": ">i", "recovery": ">b"}.get(name)
        packed[number[name]] = struct.pack(kind, value) if kind else ints(value)
    return framed(5, version, struct.pack(">i", 0) + topic_id + tags(packed))


def config(key: str, value: str | None, name: str = "t", kind: int = 2) -> bytes:
    return framed(4, 0, struct.pack(">b", kind) + text(name) + text(key) + text(value) + tags({}))


def feature(name: str, level: int) -> bytes:
    return framed(12, 0, text(name) + struct.pack(">h", level) + tags({}))


def register(broker: int, leader_epoch: int, version: int = 3, fenced: bool = True) -> bytes:
    body = struct.pack(">i", broker) + (b"\0" if version >= 2 else b"") + bytes([broker]) * 16
    body += struct.pack(">q", leader_epoch)
    endpoint = text("PLAINTEXT") + text("host") + struct.pack(">Hh", 9092, 0) + tags({})
    supported = text("metadata.version") + struct.pack(">hh", 1, 30) + tags({})
    body += uvarint(2) + endpoint + uvarint(2) + supported + text(None) + bytes([fenced])
    body += b"\0" if version >= 1 else b""
    directories = {0: uvarint(2) + bytes([broker]) * 16} if version >= 3 else {}
    if version >= 4:
        directories[1] = uvarint(1)
    return framed(0, version, body + tags(directories))


def standing(broker: int, leader_epoch: int, fenced: int = 0, shutdown: int = 0) -> bytes:
    fields = {}
    if fenced:
        fields[0] = struct.pack(">b", fenced)
    if shutdown:
        fields[1] = struct.pack(">b", shutdown)
    return framed(17, 1, struct.pack(">iq", broker, leader_epoch) + tags(fields))


def begin() -> bytes:
    return framed(23, 0, tags({0: text("x")}))


def end() -> bytes:
    return framed(24, 0, tags({}))


def abort() -> bytes:
    return framed(25, 0, tags({}))


def record(delta: int, value: bytes, key: bytes | None = None) -> bytes:
    body = b"\0" + varint(0) + varint(delta)
    body += varint(-1) if key is None else varint(len(key)) + key
    body += varint(len(value)) + value + varint(0)
    return varint(len(body)) + body


def batch(
    base: int, *values: bytes, leader_epoch: int = 1, at: int = 1000, control: int | None = None
) -> bytes:
    """A batch of format 2; `control` makes it a control batch of that record type."""
    key = None if control is None else struct.pack(">hh", 0, control)
    payload = b"".join(record(n, value, key) for n, value in enumerate(values))
    attributes = 0x20 if control is not None else 0
    checked = struct.pack(">hiqqqhii", attributes, len(values) - 1, at, at, -1, -1, -1, len(values))
    checked += payload
    after_length = struct.pack(">ibI", leader_epoch, 2, crc32c.crc32c(checked)) + checked
    return struct.pack(">qi", base, len(after_length)) + after_length


def log(*values: bytes, base: int = 0, leader_epoch: int = 1) -> bytes:
    """One batch a record."""
    return b"".join(
        batch(base + n, value, leader_epoch=leader_epoch, at=1000 + base + n)
        for n, value in enumerate(values)
    )


def new_controller(base: int, leader_epoch: int, node: int = 100) -> bytes:
    voters = uvarint(2) + struct.pack(">i", node) + tags({})
    value = struct.pack(">hi", 0, node) + voters + voters + tags({})
    return batch(base, value, leader_epoch=leader_epoch, control=2)


def snapshot(*values: bytes, footer: bool = True, at: int = 900) -> bytes:
    header = struct.pack(">hq", 0, at) + tags({})
    out = batch(0, struct.pack(">h", 0) + header[2:], control=3) + batch(1, *values)
    return out + (batch(1 + len(values), struct.pack(">h", 0) + tags({}), control=4) * footer)
