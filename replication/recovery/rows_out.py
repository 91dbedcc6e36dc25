"""The rows that `recover` writes: each field with its meaning, as Parquet and as JSON Lines."""

import base64
import json
from typing import Any

import pyarrow as pa

from replication.evidence.joining.partition_evidence import PartitionEvidence
from replication.evidence.log_directories.record_payloads import RecordIdentity
from replication.protocol.ground.model import moment
from replication.recovery.candidates import Candidate
from replication.recovery.clients_told import ToldOf
from replication.recovery.copies_at_hand import kind_of
from replication.recovery.finding import Found, Search
from replication.recovery.ledger_rows import Row

_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_HEADER = pa.struct([("name", pa.binary()), ("value", pa.binary())])
_TEXT, _NUMBER, _BYTES, _FLAG = pa.string(), pa.int64(), pa.binary(), pa.bool_()

RECORDS = pa.schema(
    [
        ("cluster_id", _TEXT), ("topic", _TEXT), ("topic_id", _TEXT), ("partition", _NUMBER),
        ("offset", _NUMBER), ("leader_epoch", _NUMBER),
        ("key", _BYTES), ("value", _BYTES), ("headers", pa.list_(_HEADER)),
        ("timestamp", _NUMBER), ("timestamp_type", _TEXT),
        ("producer_id", _NUMBER), ("producer_epoch", _NUMBER), ("sequence", _NUMBER),
        ("transaction", _TEXT), ("tier", _TEXT), ("status", _TEXT), ("acks", _TEXT),
        ("consumed", _FLAG), ("finding_id", _TEXT), ("held_back", _TEXT), ("lacks", _TEXT),
        ("message_format", _NUMBER), ("codec", _TEXT),
        ("source_broker", _NUMBER), ("source_kind", _TEXT), ("source_file", _TEXT),
        ("source_position", _NUMBER), ("copies", _NUMBER),
    ]
)  # fmt: skip
KEYS = pa.schema(
    [
        ("client", _TEXT), ("key", _BYTES), ("payload_id", _TEXT), ("topic", _TEXT),
        ("partition", _NUMBER), ("offset", _NUMBER), ("leader_epoch", _NUMBER), ("acks", _TEXT),
        ("acknowledged_at", _TEXT), ("tier", _TEXT), ("status", _TEXT), ("consumed_by", _TEXT),
        ("became", _TEXT), ("certain", _FLAG), ("path", _TEXT), ("line", _NUMBER),
        ("cluster_id", _TEXT), ("topic_id", _TEXT),
    ]
)  # fmt: skip


def record_row(found: Found, search: Search, partition: PartitionEvidence, told: ToldOf) -> Any:
    """A record as a row of RECORDS; bytes stay bytes."""
    candidate, record = found.candidate, found.candidate.record
    batch, place = candidate.batch, candidate.places[0]
    copy = search.copies[place.copy]
    return {
        "cluster_id": partition.cluster_id or None,
        "topic": partition.topic,
        "topic_id": partition.topic_id or None,
        "partition": partition.partition,
        "offset": record.offset,
        "leader_epoch": batch.leader_epoch,
        "key": record.key_bytes,
        "value": record.value,
        "headers": [{"name": name, "value": value} for name, value in record.headers],
        "timestamp": record.timestamp,
        "timestamp_type": _timestamp_type(record),
        "producer_id": batch.producer_id,
        "producer_epoch": batch.producer_epoch,
        "sequence": candidate.sequence,
        "transaction": candidate.transaction,
        "tier": found.row.tier,
        "status": found.row.status,
        "acks": told.acks,
        "consumed": bool(told.consumed) or found.row.tier == "consumed",
        "finding_id": found.row.finding_id,
        "held_back": found.held_back,
        "lacks": candidate.lacks,
        "message_format": batch.magic,
        "codec": _CODECS[batch.codec] if batch.codec < len(_CODECS) else str(batch.codec),
        "source_broker": copy.broker,
        "source_kind": kind_of(copy),
        "source_file": partition.shown(str(place.path)),
        "source_position": place.position,
        "copies": len({p.copy for p in candidate.places}),
    }


def shown_record(candidate: Candidate) -> dict[str, Any]:
    """A record by itself, its bytes as `as_json` shows them."""
    record, batch = candidate.record, candidate.batch
    return {
        **_in_text(("key", record.key_bytes), ("value", record.value)),
        "headers": [_in_text(("name", name), ("value", value)) for name, value in record.headers],
        "timestamp": record.timestamp,
        "timestamp_type": _timestamp_type(record),
        "producer_id": batch.producer_id,
        "producer_epoch": batch.producer_epoch,
        "sequence": candidate.sequence,
        "transaction": candidate.transaction,
        "lacks": candidate.lacks,
    }


def _timestamp_type(record: RecordIdentity) -> str | None:
    return None if record.timestamp is None else "append" if record.by_broker else "create"


def key_rows(
    row: Row,
    offset: int,
    partition: PartitionEvidence,
    told: ToldOf,
    found: Found | None,
) -> list[dict[str, Any]]:
    """A lost record as rows of KEYS: one for each line in which a producer was told of it, one in
    all where nobody's line tells."""
    consumed_by = sorted({c.client for c in told.consumed})
    common = {
        "key": None if found is None else found.candidate.record.key_bytes,
        "topic": partition.topic,
        "partition": partition.partition,
        "offset": offset,
        "leader_epoch": row.leader_epoch,
        "tier": row.tier,
        "status": row.status,
        "consumed_by": ", ".join(consumed_by) or None,
        "became": "not_had" if found is None else found.held_back or "recovered",
        "certain": told.is_certain and (found is None or found.held_back != "one_of_several"),
        "cluster_id": partition.cluster_id or None,
        "topic_id": partition.topic_id or None,
    }
    rows = [
        {
            **common,
            "client": a.client,
            "payload_id": a.payload_id,
            "acks": a.acks,
            "acknowledged_at": moment(a.ts),
            "path": partition.shown(a.path),
            "line": a.line,
        }
        for a in told.acknowledged
    ]
    if rows or found is None:
        return rows
    nobody = ("client", "payload_id", "acks", "acknowledged_at", "path", "line")
    return [{**common, **dict.fromkeys(nobody)}]


def as_json(row: dict[str, Any]) -> str:
    """A row as one line of JSON: bytes as text where they are UTF-8, else under NAME_base64."""
    shown: dict[str, Any] = {}
    for name, value in row.items():
        if name == "headers":
            shown[name] = [_in_text(("name", h["name"]), ("value", h["value"])) for h in value]
        elif name in ("key", "value"):
            shown |= _in_text((name, value))
        else:
            shown[name] = value
    return json.dumps(shown, separators=(",", ":"))


def _in_text(*fields: tuple[str, bytes | None]) -> dict[str, str | None]:
    shown: dict[str, str | None] = {}
    for name, value in fields:
        shown[name] = None
        if value is not None:
            try:
                shown[name] = value.decode()
            except UnicodeDecodeError:
                shown[f"{name}_base64"] = base64.b64encode(value).decode()
    return shown


def from_json(line: str) -> dict[str, Any]:
    """The row of a line that `as_json` made, with bytes; ValueError where it is none."""
    row = json.loads(line)
    if not isinstance(row, dict) or not {"topic", "partition", "offset"} <= row.keys():
        raise ValueError("no record of `recover`")
    for name in ("key", "value"):
        row[name] = _bytes(row, name)
    row["headers"] = [
        (_bytes(h, "name") or b"", _bytes(h, "value")) for h in row.get("headers", ())
    ]
    return row


def _bytes(row: dict[str, Any], name: str) -> bytes | None:
    packed = row.pop(f"{name}_base64", None)
    if packed is not None:
        return base64.b64decode(packed, validate=True)
    text = row.get(name)
    return None if text is None else str(text).encode()
