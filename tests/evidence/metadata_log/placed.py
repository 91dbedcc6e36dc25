"""Records of a metadata log as values, without bytes."""

from typing import Any

from replication.evidence.metadata_log.log_parts import PlacedRecord
from replication.evidence.metadata_log.metadata_records import MetadataRecord


def placed(record: str, offset: int = 0, at: int = 1000, /, **values: Any) -> PlacedRecord:
    return PlacedRecord(MetadataRecord(-1, 0, record, values), offset, at)


def registers(broker: int = 1, fenced: bool = True, **more: Any) -> PlacedRecord:
    values = {"broker_id": broker, "broker_epoch": 7, "incarnation_id": "i", "fenced": fenced}
    return placed("RegisterBrokerRecord", 0, 1000, **values, **more)


def about(name: str, broker: int = 1, **more: Any) -> PlacedRecord:
    return placed(name, 5, 1005, broker_id=broker, broker_epoch=7, **more)
