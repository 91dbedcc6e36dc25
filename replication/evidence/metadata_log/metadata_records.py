"""Decodes the records of a KRaft cluster's metadata log (`__cluster_metadata-0`).

A record's value is `frame version, api key, version` as unsigned varints, then the message in
Kafka's flexible encoding (KIP-482): compact strings and arrays, tagged fields at the end of every
structure. One table below holds every record type about brokers and replicas that 3.2 - 4.3 wrote
(KIP-631, KIP-704, KIP-841, KIP-858, KIP-868, KIP-919, KIP-966, KIP-1066); a new one is a new entry.

A record of a newer version than the table knows is read with the newest known layout and accepted
only when that uses up every byte: then the new version did no more than append tagged fields.
"""

import base64
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import crc32c

from replication.evidence.digest import gunzip
from replication.evidence.unreadable import Unreadable

FRAME_VERSION = 1
REGISTER_BROKER, UNREGISTER_BROKER, TOPIC, PARTITION, CONFIG, PARTITION_CHANGE = range(6)
FENCE_BROKER, UNFENCE_BROKER, REMOVE_TOPIC = 7, 8, 9
FEATURE_LEVEL, BROKER_REGISTRATION_CHANGE, NO_OP = 12, 17, 20
BEGIN_TRANSACTION, END_TRANSACTION, ABORT_TRANSACTION = 23, 24, 25
REGISTER_CONTROLLER, CLEAR_ELR = 27, 28
CONTROL_LEADER_CHANGE, CONTROL_SNAPSHOT_HEADER, CONTROL_SNAPSHOT_FOOTER = 2, 3, 4
CONTROL_KRAFT_VOTERS = 6


class MetadataRecordError(ValueError):
    """The bytes are no record of the layouts known here; the message says why."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a record: `kind` is a scalar name, `[]` and a scalar name, or a tuple of fields.

    `since` is the first version that carries it. `nullable` lets a string or array be absent.
    """

    name: str
    kind: "str | tuple[Field, ...]"
    since: int = 0
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class Layout:
    """What one api key means: its fields in order, its tagged fields by tag, its newest version."""

    name: str
    newest: int
    fields: tuple[Field, ...] = ()
    tagged: dict[int, Field] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MetadataRecord:
    """One decoded record: `values` by field name, tagged fields only where the record has them."""

    api_key: int
    version: int
    name: str
    values: dict[str, Any]


_ENDPOINTS = Field(
    "end_points",
    (
        Field("name", "string"),
        Field("host", "string"),
        Field("port", "uint16"),
        Field("security_protocol", "int16"),
    ),
)
_FEATURES = Field(
    "features",
    (Field("name", "string"), Field("min_version", "int16"), Field("max_version", "int16")),
)
_BROKER = (Field("broker_id", "int32"), Field("broker_epoch", "int64"))
_BY_TOPIC_PARTITION = (Field("partition", "int32"), Field("topic_id", "uuid"))

# Delegation tokens, SCRAM credentials, quotas, producer ids, access control, the migration from
# ZooKeeper: nothing about replicas, and some of it secret, so never decoded.
NOT_ABOUT_REPLICAS = frozenset({10, 11, 14, 15, 18, 19, 21, 22, 26})

LAYOUTS: dict[int, Layout] = {
    REGISTER_BROKER: Layout(
        "RegisterBrokerRecord",
        4,
        (
            Field("broker_id", "int32"),
            Field("is_migrating_zookeeper_broker", "bool", since=2),
            Field("incarnation_id", "uuid"),
            Field("broker_epoch", "int64"),
            _ENDPOINTS,
            _FEATURES,
            Field("rack", "string", nullable=True),
            Field("fenced", "bool"),
            Field("in_controlled_shutdown", "bool", since=1),
        ),
        {
            0: Field("log_dirs", "[]uuid", since=3),
            1: Field("cordoned_log_dirs", "[]uuid", since=4, nullable=True),
        },
    ),
    UNREGISTER_BROKER: Layout("UnregisterBrokerRecord", 0, _BROKER),
    TOPIC: Layout("TopicRecord", 0, (Field("name", "string"), Field("topic_id", "uuid"))),
    PARTITION: Layout(
        "PartitionRecord",
        2,
        (
            *_BY_TOPIC_PARTITION,
            Field("replicas", "[]int32"),
            Field("isr", "[]int32"),
            Field("removing_replicas", "[]int32"),
            Field("adding_replicas", "[]int32"),
            Field("leader", "int32"),
            Field("leader_epoch", "int32"),
            Field("partition_epoch", "int32"),
            Field("directories", "[]uuid", since=1),
        ),
        {
            0: Field("leader_recovery_state", "int8"),
            1: Field("eligible_leader_replicas", "[]int32", since=2, nullable=True),
            2: Field("last_known_elr", "[]int32", since=2, nullable=True),
        },
    ),
    CONFIG: Layout(
        "ConfigRecord",
        0,
        (
            Field("resource_type", "int8"),
            Field("resource_name", "string"),
            Field("name", "string"),
            Field("value", "string", nullable=True),
        ),
    ),
    PARTITION_CHANGE: Layout(
        "PartitionChangeRecord",
        2,
        _BY_TOPIC_PARTITION,
        {
            0: Field("isr", "[]int32", nullable=True),
            1: Field("leader", "int32"),
            2: Field("replicas", "[]int32", nullable=True),
            3: Field("removing_replicas", "[]int32", nullable=True),
            4: Field("adding_replicas", "[]int32", nullable=True),
            5: Field("leader_recovery_state", "int8"),
            6: Field("eligible_leader_replicas", "[]int32", since=2, nullable=True),
            7: Field("last_known_elr", "[]int32", since=2, nullable=True),
            8: Field("directories", "[]uuid", since=1, nullable=True),
        },
    ),
    FENCE_BROKER: Layout("FenceBrokerRecord", 0, _BROKER),
    UNFENCE_BROKER: Layout("UnfenceBrokerRecord", 0, _BROKER),
    REMOVE_TOPIC: Layout("RemoveTopicRecord", 0, (Field("topic_id", "uuid"),)),
    FEATURE_LEVEL: Layout(
        "FeatureLevelRecord", 0, (Field("name", "string"), Field("feature_level", "int16"))
    ),
    BROKER_REGISTRATION_CHANGE: Layout(
        "BrokerRegistrationChangeRecord",
        3,
        _BROKER,
        {
            0: Field("fenced", "int8"),
            1: Field("in_controlled_shutdown", "int8", since=1),
            2: Field("log_dirs", "[]uuid", since=2),
            3: Field("cordoned_log_dirs", "[]uuid", since=3, nullable=True),
        },
    ),
    NO_OP: Layout("NoOpRecord", 0),
    BEGIN_TRANSACTION: Layout(
        "BeginTransactionRecord", 0, (), {0: Field("name", "string", nullable=True)}
    ),
    END_TRANSACTION: Layout("EndTransactionRecord", 0),
    ABORT_TRANSACTION: Layout(
        "AbortTransactionRecord", 0, (), {0: Field("reason", "string", nullable=True)}
    ),
    REGISTER_CONTROLLER: Layout(
        "RegisterControllerRecord",
        0,
        (
            Field("controller_id", "int32"),
            Field("incarnation_id", "uuid"),
            Field("zookeeper_migration_ready", "bool"),
            _ENDPOINTS,
            _FEATURES,
        ),
    ),
    CLEAR_ELR: Layout("ClearElrRecord", 0, (Field("topic_name", "string"),)),
}

# Raft's own control records, in control batches; Kafka's LeaderChangeMessage, SnapshotHeaderRecord,
# VotersRecord. Their body starts with its version as an int16, and has no frame.
_VOTER_ID = (Field("voter_id", "int32"),)
_CONTROL_LAYOUTS: dict[int, Layout] = {
    CONTROL_LEADER_CHANGE: Layout(
        "LeaderChange",
        1,
        (
            Field("leader_id", "int32"),
            Field("voters", (*_VOTER_ID, Field("voter_directory_id", "uuid", since=1))),
            Field("granting_voters", (*_VOTER_ID, Field("voter_directory_id", "uuid", since=1))),
        ),
    ),
    CONTROL_SNAPSHOT_HEADER: Layout(
        "SnapshotHeader", 0, (Field("last_contained_log_timestamp", "int64"),)
    ),
    CONTROL_SNAPSHOT_FOOTER: Layout("SnapshotFooter", 0),
    CONTROL_KRAFT_VOTERS: Layout(
        "KRaftVoters",
        0,
        (
            Field(
                "voters",
                (
                    *_VOTER_ID,
                    Field("voter_directory_id", "uuid"),
                    Field(
                        "endpoints",
                        (Field("name", "string"), Field("host", "string"), Field("port", "uint16")),
                    ),
                    # KRaftVersionFeature is a structure of its own, with its own tagged fields.
                    Field("kraft_version", "supported_versions"),
                ),
            ),
        ),
    ),
}

_SCALARS = {
    "bool": struct.Struct(">?"),
    "int8": struct.Struct(">b"),
    "int16": struct.Struct(">h"),
    "uint16": struct.Struct(">H"),
    "int32": struct.Struct(">i"),
    "int64": struct.Struct(">q"),
}


class _Reader:
    """A position in the bytes of one record; every read checks that the bytes are there."""

    __slots__ = ("data", "position")

    def __init__(self, data: bytes, position: int = 0) -> None:
        self.data = data
        self.position = position

    def take(self, size: int) -> bytes:
        end = self.position + size
        if size < 0 or end > len(self.data):
            raise MetadataRecordError(
                f"needs {size} bytes at byte {self.position}, the record ends"
            )
        taken = self.data[self.position : end]
        self.position = end
        return taken

    def unsigned_varint(self) -> int:
        value = shift = 0
        try:
            while shift <= 28:
                byte = self.data[self.position]
                self.position += 1
                value |= (byte & 0x7F) << shift
                if byte < 0x80:
                    return value
                shift += 7
        except IndexError:
            raise MetadataRecordError(f"the record ends at byte {self.position}") from None
        raise MetadataRecordError(f"a varint before byte {self.position} is longer than 5 bytes")

    def value(self, kind: "str | tuple[Field, ...]", version: int, nullable: bool) -> Any:
        if isinstance(kind, tuple):
            return self._array(lambda: self.structure(kind, {}, version), nullable)
        if kind.startswith("[]"):
            return self._array(lambda: self.value(kind[2:], version, False), nullable)
        if kind in _SCALARS:
            return _SCALARS[kind].unpack(self.take(_SCALARS[kind].size))[0]
        if kind == "uuid":
            return uuid_text(self.take(16))
        if kind == "supported_versions":
            fields = (Field("min", "int16"), Field("max", "int16"))
            return self.structure(fields, {}, version)
        return self._text(nullable)

    def _text(self, nullable: bool) -> str | None:
        length = self.unsigned_varint() - 1
        if length < 0:
            if nullable:
                return None
            raise MetadataRecordError(f"a text before byte {self.position} is null")
        try:
            return self.take(length).decode("utf-8")
        except UnicodeDecodeError:
            raise MetadataRecordError(f"text before byte {self.position} is no UTF-8") from None

    def _array(self, element: Callable[[], Any], nullable: bool) -> list[Any] | None:
        length = self.unsigned_varint() - 1
        if length < 0:
            if nullable:
                return None
            raise MetadataRecordError(f"an array before byte {self.position} is null")
        if length > len(self.data) - self.position:
            raise MetadataRecordError(f"an array of {length} elements does not fit the record")
        return [element() for _ in range(length)]

    def structure(
        self, fields: tuple[Field, ...], tagged: dict[int, Field], version: int
    ) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for one in fields:
            if version >= one.since:
                values[one.name] = self.value(one.kind, version, one.nullable)
        last_tag = -1
        for _ in range(self.unsigned_varint()):
            tag = self.unsigned_varint()
            if tag <= last_tag:
                raise MetadataRecordError(f"tag {tag} follows tag {last_tag}: tags must rise")
            last_tag = tag
            body = _Reader(self.take(self.unsigned_varint()))
            known = tagged.get(tag)
            if known is None or version < known.since:
                continue  # a field of a later version: its size says how to pass over it
            values[known.name] = body.value(known.kind, version, known.nullable)
            if body.position != len(body.data):
                raise MetadataRecordError(f"tagged field {known.name} has bytes left over")
        return values


def uuid_text(raw: bytes) -> str:
    """Kafka's spelling of an id: 22 characters of URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode("ascii")


def record_api_key(value: bytes) -> int | None:
    """The api key of a framed record, or None where the frame itself cannot be read."""
    try:
        reader = _Reader(value)
        return reader.unsigned_varint() and reader.unsigned_varint()
    except MetadataRecordError:
        return None


def partition_of(value: bytes) -> tuple[str, int] | None:
    """(topic id, partition) of a framed PartitionRecord or PartitionChangeRecord.

    Both have carried them first in every version, so they can be read where the rest cannot.
    """
    try:
        reader = _Reader(value)
        reader.unsigned_varint()
        if reader.unsigned_varint() not in (PARTITION, PARTITION_CHANGE):
            return None
        reader.unsigned_varint()
        partition = int(reader.value("int32", 0, False))
        return str(reader.value("uuid", 0, False)), partition
    except MetadataRecordError:
        return None


def decode_record(value: bytes) -> MetadataRecord | None:
    """Decode the value of one record of the metadata log. Raises MetadataRecordError.

    None for a record type that says nothing about replicas (NOT_ABOUT_REPLICAS).
    """
    reader = _Reader(value)
    frame_version = reader.unsigned_varint()
    if frame_version != FRAME_VERSION:
        raise MetadataRecordError(f"frame version {frame_version}, only {FRAME_VERSION} is known")
    api_key, version = reader.unsigned_varint(), reader.unsigned_varint()
    if api_key in NOT_ABOUT_REPLICAS:
        return None
    layout = LAYOUTS.get(api_key)
    if layout is None:
        raise MetadataRecordError(f"record type {api_key} (version {version}) is not known")
    try:
        values = reader.structure(layout.fields, layout.tagged, version)
        if reader.position != len(value):
            left = len(value) - reader.position
            raise MetadataRecordError(f"{left} bytes are left over")
    except MetadataRecordError as error:
        newer = f", newer than {layout.newest}" if version > layout.newest else ""
        raise MetadataRecordError(f"{layout.name} version {version}{newer}: {error}") from None
    return MetadataRecord(api_key, version, layout.name, values)


def decode_control_record(key: bytes, value: bytes) -> MetadataRecord | None:
    """Decode a record of a control batch; None for a type that says nothing about replicas.

    The key is Kafka's (version, type), two int16. Raises MetadataRecordError.
    """
    if len(key) < 4:
        raise MetadataRecordError(f"a control record's key has {len(key)} bytes, not 4")
    control_type = struct.unpack_from(">h", key, 2)[0]
    layout = _CONTROL_LAYOUTS.get(control_type)
    if layout is None:
        return None
    reader = _Reader(value)
    version = int(reader.value("int16", 0, False))
    values = reader.structure(layout.fields, layout.tagged, version)
    return MetadataRecord(control_type, version, layout.name, values)


# The records of a batch that is one NoOpRecord: an idle controller writes two of them a second.
NO_OP_PAYLOAD = bytes((20, 0, 0, 0, 1, 8, FRAME_VERSION, NO_OP, 0, 0, 0))
_BATCH_HEADER = struct.Struct(">qiibIhiqqqhii")
_AFTER_LENGTH = 12  # batchLength counts the bytes after itself
_CRC_FROM = 21


@dataclass(frozen=True, slots=True)
class MetadataBatch:
    """One intact record batch of a metadata log or snapshot, its records not decoded yet."""

    position: int
    base_offset: int
    end_offset: int
    leader_epoch: int
    base_timestamp: int
    is_control: bool
    record_count: int
    payload: bytes


def metadata_batches(file: BinaryIO, path: str) -> Iterator[MetadataBatch | Unreadable]:
    """The batches of one segment or snapshot, in file order.

    A batch whose checksum (CRC-32C) fails is answered as Unreadable and passed over by its length;
    where no batch can begin, reading ends with an Unreadable. Zero bytes at the end are
    pre-allocated space, not data.
    """
    position = 0
    while True:
        header = file.read(_BATCH_HEADER.size)
        if not header or (not header.strip(b"\0") and not _has_data(file)):
            return
        where = f"byte {position}"
        if len(header) < _BATCH_HEADER.size:
            yield Unreadable(path, where, f"the file ends {len(header)} bytes into a batch header")
            return
        magic, length = header[16], struct.unpack_from(">i", header, 8)[0]
        size = _AFTER_LENGTH + length
        if magic != 2 or size < _BATCH_HEADER.size:
            yield Unreadable(path, where, f"no record batch (magic {magic}, length {length})")
            return
        payload = file.read(size - _BATCH_HEADER.size)
        if len(payload) < size - _BATCH_HEADER.size:
            reason = f"a batch of {size} bytes is cut after {len(header) + len(payload)}"
            yield Unreadable(path, where, reason)
            return
        yield _batch(header, payload, position, path)
        position += size


def _has_data(file: BinaryIO) -> bool:
    """Whether anything but zero bytes is left; reads the rest of the file in pieces."""
    while piece := file.read(1 << 20):
        if piece.strip(b"\0"):
            return True
    return False


def _batch(header: bytes, payload: bytes, position: int, path: str) -> MetadataBatch | Unreadable:
    where = f"byte {position}"
    (base, _, leader_epoch, _, crc, attributes, last_delta, base_timestamp, _, _, _, _, count) = (
        _BATCH_HEADER.unpack(header)
    )
    if crc32c.crc32c(payload, crc32c.crc32c(header[_CRC_FROM:])) != crc:
        return Unreadable(path, where, f"the batch at offset {base} fails its checksum")
    codec = attributes & 7
    if codec == 1:
        try:
            payload = gunzip(payload)
        except ValueError as error:
            return Unreadable(path, where, f"the batch at offset {base} is no gzip: {error}")
    elif codec:
        return Unreadable(path, where, f"the batch at offset {base} is compressed (codec {codec})")
    return MetadataBatch(
        position=position,
        base_offset=base,
        end_offset=base + last_delta + 1,
        leader_epoch=leader_epoch,
        base_timestamp=base_timestamp,
        is_control=bool(attributes & 0x20),
        record_count=count,
        payload=payload,
    )


def batch_records(payload: bytes, count: int) -> Iterator[tuple[int, int, bytes | None, bytes]]:
    """(offset delta, timestamp delta, key, value) of each record of a format 2 batch, uncompressed.

    `payload` are the bytes after the batch header. Raises MetadataRecordError on a broken record.
    """
    reader = _Reader(payload)
    for _ in range(count):
        length = _varint(reader)
        end = reader.position + length
        if length < 0 or end > len(payload):
            raise MetadataRecordError(f"a record of {length} bytes does not fit its batch")
        reader.take(1)
        timestamp_delta = _varint(reader)
        offset_delta = _varint(reader)
        key_length = _varint(reader)
        key = reader.take(key_length) if key_length >= 0 else None
        value_length = _varint(reader)
        value = reader.take(value_length) if value_length > 0 else b""
        if reader.position > end:
            raise MetadataRecordError("a record is longer than its length says")
        reader.position = end  # headers are not used by the metadata log
        yield offset_delta, timestamp_delta, key, value


def _varint(reader: _Reader) -> int:
    """A zigzag varint of up to 64 bits, as the records of a batch use."""
    value = shift = 0
    try:
        while shift <= 63:
            byte = reader.data[reader.position]
            reader.position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1)
            shift += 7
    except IndexError:
        raise MetadataRecordError(f"the record ends at byte {reader.position}") from None
    raise MetadataRecordError("a varint is longer than 10 bytes")
