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
    meta = {
        "id": str(uuid.uuid4()),
        "description": table.about,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields_of(table)}),
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


def fields_of(table: contracts.Table) -> list[dict[str, Any]]:
    """The columns as a Delta schema has them."""
    return [
        {"name": c.name, "type": json.loads(json_type(c.type)), "nullable": c.nullable,
         "metadata": {"comment": c.meaning}}
        for c in table.columns
    ]  # fmt: skip


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


def lacks(table: contracts.Table, schema: dict[str, Any]) -> bool:
    """Whether a Delta schema is not the table's: a column, or a field of one, is not there, or of
    another type."""
    found = {field["name"]: _bare(field["type"]) for field in schema["fields"]}
    wanted = {field["name"]: _bare(field["type"]) for field in fields_of(table)}
    return any(found.get(name) != field_type for name, field_type in wanted.items())


def _bare(field_type: Any) -> Any:
    """A type of a Delta schema without what may differ: comments and nullability."""
    if isinstance(field_type, dict):
        left_out = ("metadata", "nullable", "containsNull", "valueContainsNull")
        return {k: _bare(v) for k, v in field_type.items() if k not in left_out}
    return [_bare(v) for v in field_type] if isinstance(field_type, list) else field_type


def quoted(text: str) -> str:
    """SQL: a text."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def named(topic_partitions: Sequence[str], of: str = "topic_partition_id") -> str:
    """SQL: the rows of these topic partitions. of: SQL of a row's topic_partition_id."""
    return f"{of} IN ({', '.join(quoted(name) for name in topic_partitions)})"
