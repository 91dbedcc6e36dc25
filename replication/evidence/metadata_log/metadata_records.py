"""Decodes the records of a KRaft cluster's metadata log (`__cluster_metadata-0`).

A record's value is `frame version, api key, version` as unsigned varints, then the message in
Kafka's flexible encoding (KIP-482), read by its layout (replication.evidence.messages): every
record type about brokers and replicas that 3.2 - 4.3 wrote (KIP-631, KIP-704, KIP-841, KIP-858,
KIP-868, KIP-919, KIP-966, KIP-1066).

A record of a newer version than its layout knows is read with the newest known fields and accepted
only when that uses up every byte: then the new version did no more than append tagged fields.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

import crc32c

from replication.evidence.digest import gunzip
from replication.evidence.messages.byte_reader import ByteReader, MessageError
from replication.evidence.messages.layouts import Layout, layout, layouts_of_type
from replication.evidence.messages.reading import read_message, read_whole
from replication.evidence.unreadable import Unreadable

FRAME_VERSION = 1
REGISTER_BROKER, UNREGISTER_BROKER, TOPIC, PARTITION, CONFIG, PARTITION_CHANGE = range(6)
FENCE_BROKER, UNFENCE_BROKER, REMOVE_TOPIC = 7, 8, 9
FEATURE_LEVEL, BROKER_REGISTRATION_CHANGE, NO_OP = 12, 17, 20
BEGIN_TRANSACTION, END_TRANSACTION, ABORT_TRANSACTION = 23, 24, 25
REGISTER_CONTROLLER, CLEAR_ELR = 27, 28
CONTROL_LEADER_CHANGE, CONTROL_SNAPSHOT_HEADER, CONTROL_SNAPSHOT_FOOTER = 2, 3, 4
CONTROL_KRAFT_VOTERS = 6


# The bytes are no record of the layouts known here; the message says why.
MetadataRecordError = MessageError


@dataclass(frozen=True, slots=True)
class MetadataRecord:
    """One decoded record: `values` by field name, tagged fields only where the record has them."""

    api_key: int
    version: int
    name: str
    values: dict[str, Any]


# Delegation tokens, SCRAM credentials, quotas, producer ids, access control, the migration from
# ZooKeeper: nothing about replicas, and some of it secret, so never decoded.
NOT_ABOUT_REPLICAS = frozenset({10, 11, 14, 15, 18, 19, 21, 22, 26})

LAYOUTS: dict[int, Layout] = {
    known.api_key: known for known in layouts_of_type("metadata") if known.api_key is not None
}
# Fields that schemas name differently in several records, or that say more with another word.
_RENAMED = {"partition_id": "partition", "id": "broker_id", "epoch": "broker_epoch"}
# Raft's own control records, in control batches: their body has no frame, and its first field is
# its version.
_CONTROL_LAYOUTS: dict[int, tuple[str, Layout]] = {
    CONTROL_LEADER_CHANGE: ("LeaderChange", layout("LeaderChangeMessage")),
    CONTROL_SNAPSHOT_HEADER: ("SnapshotHeader", layout("SnapshotHeaderRecord")),
    CONTROL_SNAPSHOT_FOOTER: ("SnapshotFooter", layout("SnapshotFooterRecord")),
    CONTROL_KRAFT_VOTERS: ("KRaftVoters", layout("VotersRecord")),
}


def value_name(field: str) -> str:
    """The name by which `MetadataRecord.values` has a field of that name (in snake case)."""
    return _RENAMED.get(field, field)


def record_api_key(value: bytes) -> int | None:
    """The api key of a framed record, or None where the frame itself cannot be read."""
    try:
        reader = ByteReader(value)
        return reader.unsigned_varint() and reader.unsigned_varint()
    except MessageError:
        return None


def partition_of(value: bytes) -> tuple[str, int] | None:
    """(topic id, partition) of a framed PartitionRecord or PartitionChangeRecord.

    Both have carried them first in every version, so they can be read where the rest cannot.
    """
    try:
        reader = ByteReader(value)
        reader.unsigned_varint()
        if reader.unsigned_varint() not in (PARTITION, PARTITION_CHANGE):
            return None
        reader.unsigned_varint()
        partition = int(reader.scalar("int32"))
        return reader.uuid(), partition
    except MessageError:
        return None


def decode_record(value: bytes) -> MetadataRecord | None:
    """Decode the value of one record of the metadata log. Raises MetadataRecordError.

    None for a record type that says nothing about replicas (NOT_ABOUT_REPLICAS).
    """
    reader = ByteReader(value)
    frame_version = reader.unsigned_varint()
    if frame_version != FRAME_VERSION:
        raise MetadataRecordError(f"frame version {frame_version}, only {FRAME_VERSION} is known")
    api_key, version = reader.unsigned_varint(), reader.unsigned_varint()
    if api_key in NOT_ABOUT_REPLICAS:
        return None
    known = LAYOUTS.get(api_key)
    if known is None:
        raise MetadataRecordError(f"record type {api_key} (version {version}) is not known")
    values = {value_name(key): one for key, one in read_whole(known, version, reader).items()}
    return MetadataRecord(api_key, version, known.name, values)


def decode_control_record(key: bytes, value: bytes) -> MetadataRecord | None:
    """Decode a record of a control batch; None for a type that says nothing about replicas.

    The key is Kafka's (version, type), two int16. Raises MetadataRecordError.
    """
    if len(key) < 4:
        raise MetadataRecordError(f"a control record's key has {len(key)} bytes, not 4")
    control_type = struct.unpack_from(">h", key, 2)[0]
    if control_type not in _CONTROL_LAYOUTS:
        return None
    name, known = _CONTROL_LAYOUTS[control_type]
    version = int(ByteReader(value).scalar("int16"))
    return MetadataRecord(
        control_type, version, name, read_message(known, version, ByteReader(value))
    )


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
    reader = ByteReader(payload)
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


def _varint(reader: ByteReader) -> int:
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
