"""The layouts of Kafka's messages, read from the files in `layout_files`.

A file holds the facts of one schema of Kafka's message language: the fields in their order, each
with its type, the versions that carry it, those in which it may be null, and its tag. They are the
schemas in the jars of Kafka 4.3.0 (kafka-group-coordinator, kafka-transaction-coordinator,
kafka-share-coordinator, kafka-metadata, kafka-clients), which read every earlier version, too;
`tests/evidence/messages/from_jars.py` makes them, also of a later release.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

_FOLDER = resources.files("replication.evidence.messages") / "layout_files"
_WORD_BEGINS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class Versions:
    """A range of versions, both ends in it; empty where the first is above the last."""

    first: int = 1
    last: int = 0

    def __contains__(self, version: int) -> bool:
        return self.first <= version <= self.last


_OPEN_END = 1 << 15


@dataclass(frozen=True, slots=True)
class Field:
    """One field. kind: Kafka's word for the type, "struct" where fields describes it.

    is_array: a list of such. tag: the number that is before it in the versions `tagged`.
    """

    name: str
    kind: str
    is_array: bool
    versions: Versions
    nullable: Versions
    tagged: Versions
    tag: int | None
    fields: tuple["Field", ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """One message. api_key: the record's type in its log. newest: the last version described."""

    name: str
    api_key: int | None
    newest: int
    oldest: int
    flexible: Versions
    fields: tuple[Field, ...]


@cache
def layout(name: str) -> Layout:
    """The layout of a message by Kafka's name for it; OSError where none is kept."""
    told = json.loads((_FOLDER / f"{name}.json").read_text("utf-8"))
    shared = {one["name"]: one["fields"] for one in told.get("commonStructs", ())}
    valid = _versions(told["validVersions"])
    return Layout(
        name,
        told.get("apiKey"),
        valid.last,
        valid.first,
        _versions(told["flexibleVersions"]),
        _fields(told["fields"], shared),
    )


@cache
def layouts_of_type(kind: str) -> tuple[Layout, ...]:
    """All layouts of one type of message ("metadata", "coordinator-key" ..), by name."""
    texts = {f.name: f.read_text("utf-8") for f in _FOLDER.iterdir() if f.name.endswith(".json")}
    named = sorted(n for n, text in texts.items() if json.loads(text)["type"] == kind)
    return tuple(layout(name.removesuffix(".json")) for name in named)


def snake_case(name: str) -> str:
    """A field's name as values have it: `PartitionId` and `partitionId` are `partition_id`."""
    return _WORD_BEGINS.sub("_", name[0].lower() + name[1:]).lower()


def _fields(told: list[dict[str, Any]], shared: Mapping[str, Any]) -> tuple[Field, ...]:
    return tuple(_field(one, shared) for one in told)


def _field(told: dict[str, Any], shared: Mapping[str, Any]) -> Field:
    kind = told["type"].removeprefix("[]")
    fields = told.get("fields") or (shared[kind] if kind[0].isupper() else ())
    tagged = _versions(told.get("taggedVersions", "none"))
    return Field(
        snake_case(told["name"]),
        "struct" if kind[0].isupper() else kind,
        told["type"].startswith("[]"),
        _versions(told["versions"]) if "versions" in told else tagged,
        _versions(told.get("nullableVersions", "none")),
        tagged,
        told.get("tag"),
        _fields(list(fields), shared),
    )


def _versions(text: str) -> Versions:
    """`3`, `1-3`, `2+` or `none`."""
    if text == "none":
        return Versions()
    first, _, last = text.removesuffix("+").partition("-")
    return Versions(int(first), _OPEN_END if text.endswith("+") else int(last or first))
