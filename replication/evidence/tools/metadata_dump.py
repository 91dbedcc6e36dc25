"""Reads a metadata log from the text of `kafka-dump-log --cluster-metadata-decoder`.

The text carries every field that the log does, so it gives the same history as the bytes. Two
things can be wrong with it: a tool older than the log prints "Error at N, skipping" for records it
does not know, and a dump of a snapshot stands for another log than its own.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from replication.evidence.messages.layouts import Field, Layout, snake_case
from replication.evidence.metadata_log import metadata_records as records
from replication.evidence.metadata_log.cluster_metadata import replay_records
from replication.evidence.metadata_log.history import MetadataHistory
from replication.evidence.metadata_log.log_parts import PlacedRecord
from replication.evidence.metadata_log.metadata_records import MetadataRecord
from replication.evidence.text_lines import text_lines
from replication.evidence.unreadable import Unreadable

_LINES_TO_KNOW_A_FILE_BY = 40
_LONGEST_LINE = 16 << 20
_DUMPING = re.compile(r"^Dumping (.+)$")
_BATCH = re.compile(
    r"^baseOffset: (\d{1,18}) lastOffset: (\d{1,18}) .*\bpartitionLeaderEpoch: (\d{1,9}) .*"
    r"\bCreateTime: (\d{1,15}) .*"
    r"\bisvalid: (true|false)$"
)
_RECORD = re.compile(
    r"^\| offset: (\d{1,18}) CreateTime: (\d{1,15}) .*?headerKeys: \[[^\]]*\] ?(.*)$"
)
_PAYLOAD = re.compile(r"payload: (\{.*\})$")
METADATA_PAYLOAD = re.compile(r'(?:^| )payload: \{"type":"[A-Z_]+_RECORD","version":')
_ERROR = re.compile(r"payload: Error at \d+, skipping\. .*?(?:record with type (\d{1,9}))?$")
_LEADER_CHANGE = re.compile(r"LeaderChange: (\{.*\})$")


def _record_type(layout: Layout) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", layout.name).upper()


_BY_TYPE = {_record_type(layout): (key, layout) for key, layout in records.LAYOUTS.items()}
_NO_RECORD = MetadataRecord(records.NO_OP, 0, "NoOpRecord", {})


class _BadLine(ValueError):
    """What is wrong with a line, for the user."""


def is_metadata_dump(path: Path) -> bool:
    """Whether the first lines are those of a decoded metadata log."""
    for number, line in text_lines(path, _LONGEST_LINE):
        if isinstance(line, Unreadable) or number > _LINES_TO_KNOW_A_FILE_BY:
            return False
        if re.search(r'^(?:\| offset: .*)? ?payload: \{"type":"[A-Z_]+_RECORD","version":', line):
            return True
    return False


def read_metadata_dump(path: Path) -> MetadataHistory:
    """The history that the dumped log tells. Records the tool could not decode are reported."""
    reported: list[Unreadable] = []
    history = replay_records(str(path), _placed(path, reported))
    return replace(history, unreadable=(*history.unreadable, *reported))


def _placed(
    path: Path, reported: list[Unreadable]
) -> Iterator[tuple[PlacedRecord, int] | Unreadable]:
    in_log = True
    next_offset = leader_epoch = at = 0
    for number, line in text_lines(path, _LONGEST_LINE):
        if isinstance(line, Unreadable):
            yield line
            continue
        where = f"line {number}"
        text = line.rstrip("\r\n")
        dumping, batch = _DUMPING.match(text), _BATCH.match(text)
        if dumping:
            in_log = dumping[1].rstrip().endswith(".log")
            if dumping[1].rstrip().endswith(".checkpoint"):
                reason = "the dump of a snapshot is not used: hand over the file itself"
                reported.append(Unreadable(str(path), where, reason))
        elif batch:
            next_offset, leader_epoch, at = int(batch[1]), int(batch[3]), int(batch[4])
            if batch[5] != "true" and in_log:
                reason = f"kafka-dump-log found the batch at offset {batch[1]} to be damaged"
                yield Unreadable(str(path), where, reason)
        elif in_log and (text.startswith(("| offset: ", " payload: ")) or not text.strip()):
            found = _RECORD.match(text)
            offset, at = (int(found[1]), int(found[2])) if found else (next_offset, at)
            next_offset = offset + 1
            if not text.strip():
                continue  # a control record with --skip-record-metadata
            try:
                if not line.endswith("\n"):
                    raise _BadLine("the file ends within this line")
                record = _record(found[3] if found else text.strip())
            except _BadLine as error:
                if "partition" in str(error) or not line.endswith("\n"):
                    yield Unreadable(str(path), where, str(error))
                    continue
                reported.append(Unreadable(str(path), where, str(error)))
                record = _NO_RECORD
            yield PlacedRecord(record, offset, at), leader_epoch


def _record(text: str) -> MetadataRecord:
    """The record that the tool printed. _BadLine naming partitions where one may be lost."""
    change, payload = _LEADER_CHANGE.search(text), _PAYLOAD.search(text)
    if change:
        voters = [{"voter_id": one["voterId"]} for one in _object(change[1]).get("voters", [])]
        values = {"leader_id": _object(change[1]).get("leaderId", -1), "voters": voters}
        return MetadataRecord(records.CONTROL_LEADER_CHANGE, 0, "LeaderChange", values)
    if payload:
        return _decoded(_object(payload[1]))
    failed = _ERROR.search(text)
    if failed:
        lost = failed[1] is None or int(failed[1]) in (records.PARTITION, records.PARTITION_CHANGE)
        about = "a partition's record" if lost else f"a record of type {failed[1]}"
        raise _BadLine(f"kafka-dump-log could not decode {about}: use that of a newer Kafka")
    return _NO_RECORD  # a control record that says nothing about replicas


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise _BadLine("this is no JSON: a partition's record may be lost") from None
    return found if isinstance(found, dict) else {}


def _decoded(found: dict[str, Any]) -> MetadataRecord:
    name, data = found.get("type"), found.get("data")
    known = _BY_TYPE.get(name) if isinstance(name, str) else None
    if known is None or not isinstance(data, dict):
        return _NO_RECORD
    api_key, layout = known
    version = found.get("version")
    version = version if isinstance(version, int) else 0
    values = {}
    for key, value in data.items():
        values[records.value_name(snake_case(key))] = _in_snake_case(value)
    for one in layout.fields:
        expected = records.value_name(one.name)
        needed = version in one.versions and version not in one.tagged
        if (needed or expected in values) and not _fits(values.get(expected), one, version):
            raise _BadLine(f"this record, {name} of a partition or broker, has no {expected}")
    return MetadataRecord(api_key, version, layout.name, values)


def _in_snake_case(value: Any) -> Any:
    """A value whose own fields, if it has any, are named as the records' are."""
    if isinstance(value, list):
        return [_in_snake_case(one) for one in value]
    if isinstance(value, dict):
        return {snake_case(name): _in_snake_case(one) for name, one in value.items()}
    return value


def _fits(value: Any, expected: Field, version: int) -> bool:
    if value is None:
        return version in expected.nullable
    if expected.is_array:
        return isinstance(value, list) and all(_is_one(element, expected) for element in value)
    return _is_one(value, expected)


def _is_one(value: Any, expected: Field) -> bool:
    """Whether a value that is no list may be of the field's type."""
    if expected.kind == "struct":
        return isinstance(value, dict)
    if expected.kind == "bool":
        return isinstance(value, bool)
    if expected.kind in ("string", "uuid"):
        return isinstance(value, str)
    return isinstance(value, int) and not isinstance(value, bool)
