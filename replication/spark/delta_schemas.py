"""schemas/ as Delta has them: the first commit of a table, and what an older table lacks."""

import json
import time
import uuid
from collections.abc import Sequence
from typing import Any

from replication.spark import contracts

# What people filter by, and what the stream looks up events by: of these columns Delta keeps each
# file's lowest and highest value, so that a query passes over files without reading them.
FILTERED = (
    "cluster_id", "incident", "topic", "partition", "observed_at", "sequence", "micro_batch_id",
)  # fmt: skip
# What commits of this tool bear as their `userMetadata`.
MARK = "replication-analyzer"
STATISTICS = "delta.dataSkippingStatsColumns"
# What tables of older versions have for it, and their owners have left as it was.
OLDER_STATISTICS = (None, "sequence,micro_batch_id")


def first_commit(table: contracts.Table, checkpoint_every: int) -> str:
    """The actions of the commit that makes an empty Delta table (protocol: reader 1, writer 2).

    checkpoint_every: after how many commits Delta sums up its log.
    """
    fields = []
    for column in table.columns:
        field_type = json.loads(json_type(column.type))
        metadata = {"comment": column.meaning}
        fields.append({"name": column.name, "type": field_type, "nullable": column.nullable,
                       "metadata": metadata})  # fmt: skip
    meta = {
        "id": str(uuid.uuid4()),
        "description": table.about,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": [],
        "configuration": {
            "delta.checkpointInterval": str(checkpoint_every),
            **statistics(table),
        },
        "createdTime": int(time.time() * 1000),
    }
    actions = [
        {"commitInfo": {"timestamp": meta["createdTime"], "operation": "CREATE TABLE",
                        "operationParameters": {}, "userMetadata": MARK}},
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {"metaData": meta},
    ]  # fmt: skip
    return "".join(json.dumps(action) + "\n" for action in actions)


def statistics(table: contracts.Table) -> dict[str, str]:
    """The property that names the columns of which Delta keeps statistics; without any it keeps the
    number of rows."""
    found = {c.name for c in table.columns}
    kept = ",".join(name for name in FILTERED if name in found)
    return {STATISTICS: kept} if kept else {"delta.dataSkippingNumIndexedCols": "0"}


def json_type(text: str) -> str:
    """Spark SQL's type text as the JSON of a Delta schema."""
    if "<" not in text:
        return json.dumps({"bigint": "long"}.get(text, text))
    outer, inner = text.split("<", 1)
    inner = inner[:-1]
    if outer == "array":
        element = json.loads(json_type(inner))
        return json.dumps({"type": "array", "elementType": element, "containsNull": True})
    if outer == "map":
        key, value = (json.loads(json_type(t)) for t in inner.split(","))
        return json.dumps({"type": "map", "keyType": key, "valueType": value,
                           "valueContainsNull": True})  # fmt: skip
    fields = [part.split(":", 1) for part in inner.split(",")]
    return json.dumps({"type": "struct", "fields": [
        {"name": name, "type": json.loads(json_type(kind)), "nullable": True, "metadata": {}}
        for name, kind in fields
    ]})  # fmt: skip


def alterations(table: contracts.Table, schema: dict[str, Any], kept: str | None) -> list[str]:
    """What ALTER TABLE has to do to a table of an older version. kept: columns with statistics.

    Raises ValueError where a column has another type.
    """
    lacking = columns_to_add(table, schema)
    wanted = statistics(table).get(STATISTICS)
    found = [f"ADD COLUMNS ({', '.join(lacking)})"] if lacking else []
    if wanted and kept in OLDER_STATISTICS:
        found.append(f"SET TBLPROPERTIES ('{STATISTICS}' = '{wanted}')")
    return found


def columns_to_add(table: contracts.Table, schema: dict[str, Any]) -> list[str]:
    """DDL of the columns, and of fields of arrays of structs, that a Delta schema lacks.

    Raises ValueError where a column has another type.
    """
    found = {field["name"]: field["type"] for field in schema["fields"]}
    lacking: list[str] = []
    for column in table.columns:
        wanted = json.loads(json_type(column.type))
        if column.name not in found:
            lacking.append(f"`{column.name}` {column.type} COMMENT {quoted(column.meaning)}")
            continue
        inner = _lacking_fields(column, found[column.name], wanted)
        if inner is None:
            told = json.dumps(found[column.name])
            raise ValueError(f"has {column.name} as {told}, not as {column.type}")
        lacking += inner
    return lacking


def _bare(field_type: Any) -> Any:
    """A type of a Delta schema without what may differ: comments and nullability."""
    if isinstance(field_type, dict):
        left_out = ("metadata", "nullable", "containsNull", "valueContainsNull")
        return {k: _bare(v) for k, v in field_type.items() if k not in left_out}
    return [_bare(v) for v in field_type] if isinstance(field_type, list) else field_type


def _fields_of(field_type: Any) -> dict[str, Any] | None:
    """Name -> type of the fields of an array of structs, None for what is none."""
    element = field_type.get("elementType") if isinstance(field_type, dict) else None
    if not isinstance(element, dict) or element.get("type") != "struct":
        return None
    return {inner["name"]: _bare(inner["type"]) for inner in element["fields"]}


def _lacking_fields(column: contracts.Column, found: Any, wanted: Any) -> list[str] | None:
    """DDL of the fields that an array of structs lacks; None where the types differ otherwise."""
    if _bare(found) == _bare(wanted):
        return []
    has, needs = _fields_of(found), _fields_of(wanted)
    if has is None or needs is None or any(needs.get(name) != has[name] for name in has):
        return None
    types = dict(p.split(":", 1) for p in column.type[len("array<struct<") : -2].split(","))
    return [f"`{column.name}`.element.`{n}` {types[n]}" for n in needs if n not in has]


def quoted(text: str) -> str:
    """SQL: a text."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def named(topic_partitions: Sequence[str], of: str = "topic_partition_id") -> str:
    """SQL: the rows of these topic partitions. of: SQL of a row's topic_partition_id."""
    return f"{of} IN ({', '.join(quoted(name) for name in topic_partitions)})"
