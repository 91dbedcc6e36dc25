"""Makes the layouts of messages out of the schemas in a release's jars.

    python -m tests.evidence.messages.from_jars [--write]

Kept are the facts that a reader needs: names, types, versions, tags. A new release of Kafka is this
call with its jars; without --write it names the layouts that differ.
"""

import json
import re
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
LAYOUTS = ROOT / "replication" / "evidence" / "messages" / "layout_files"
RELEASE = "4.3.0"
# Of each jar the folder of its schemas, and which of them.
TAKEN = {
    "kafka-group-coordinator": ("common/message", r"\w+(Key|Value)"),
    "kafka-transaction-coordinator": ("common/message", r"\w+(Key|Value)"),
    "kafka-share-coordinator": ("common/message", r"\w+(Key|Value)"),
    "kafka-metadata": ("common/metadata", r"\w+Record"),
    "kafka-clients": (
        "common/message",
        "LeaderChangeMessage|SnapshotHeaderRecord|SnapshotFooterRecord|VotersRecord",
    ),
}
# Secrets, quotas, access control, the migration: nothing about replicas or groups.
LEFT_OUT = re.compile(
    r"(Remove)?(AccessControlEntry|DelegationToken|UserScramCredential)Record"
    r"|ClientQuotaRecord|ProducerIdsRecord|ZkMigrationRecord"
)
OF_MESSAGE = ("apiKey", "type", "name", "validVersions", "flexibleVersions")
OF_FIELD = ("name", "type", "versions", "nullableVersions", "taggedVersions", "tag", "default")


def jars() -> Path:
    """Where the release's jars are."""
    return ROOT / ".jars" / f"kafka-{RELEASE}"


def schemas() -> Iterator[dict[str, Any]]:
    """The layouts that the jars' schemas give, by name."""
    found = {}
    for jar, (folder, wanted) in TAKEN.items():
        pattern = re.compile(rf"{folder}/({wanted})\.json")
        with zipfile.ZipFile(jars() / f"{jar}-{RELEASE}.jar") as packed:
            for name in packed.namelist():
                match = pattern.fullmatch(name)
                if match and not LEFT_OUT.fullmatch(match[1]):
                    text = packed.read(name).decode("utf-8")
                    lines = [x for x in text.splitlines() if not x.strip().startswith("//")]
                    found[match[1]] = _layout(json.loads("\n".join(lines)))
    return (found[name] for name in sorted(found))


def _layout(schema: dict[str, Any]) -> dict[str, Any]:
    layout = {key: schema[key] for key in OF_MESSAGE if key in schema}
    layout["fields"] = [_field(one) for one in schema["fields"]]
    if "commonStructs" in schema:
        layout["commonStructs"] = [
            {"name": one["name"], "fields": [_field(f) for f in one["fields"]]}
            for one in schema["commonStructs"]
        ]
    return layout


def _field(field: dict[str, Any]) -> dict[str, Any]:
    kept = {key: field[key] for key in OF_FIELD if key in field}
    if "fields" in field:
        kept["fields"] = [_field(one) for one in field["fields"]]
    return kept


def as_text(layout: dict[str, Any]) -> str:
    """A layout as it is kept: one line for each field without fields of its own."""
    return _value(layout, "") + "\n"


def _value(value: Any, indent: str) -> str:
    deeper = indent + "  "
    if isinstance(value, list) and value:
        inner = ",\n".join(f"{deeper}{_value(one, deeper)}" for one in value)
        return f"[\n{inner}\n{indent}]"
    if isinstance(value, dict) and any(isinstance(one, list) for one in value.values()):
        parts = [f"{deeper}{json.dumps(k)}: {_value(v, deeper)}" for k, v in value.items()]
        return "{\n" + ",\n".join(parts) + f"\n{indent}}}"
    return json.dumps(value)


def differing() -> dict[str, str]:
    """What the kept layouts would have to be, of those that are not so, by file name."""
    made = {f"{one['name']}.json": as_text(one) for one in schemas()}
    kept = {path.name: path.read_text() for path in LAYOUTS.glob("*.json")}
    return {name: text for name, text in made.items() if kept.get(name) != text}


if __name__ == "__main__":
    for file_name, content in differing().items():
        print(file_name)
        if "--write" in sys.argv[1:]:
            (LAYOUTS / file_name).write_text(content)
