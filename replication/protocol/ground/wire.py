"""Events as flat rows (JSON Lines, Parquet, Kafka) and back; the event contract in code.

A row is a flat mapping of the columns that `schemas/replica_events.json` describes; what is
absent is null. The content-derived event_id makes the same event from two deliveries the same.
"""

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from replication.protocol.ground import events as ev
from replication.protocol.ground.model import LAST_MOMENT, EpochEntry, Span

FORMAT_VERSION = 1
# What is known to no version so far may be known to a later one: kinds and columns are added.
OF_A_NEWER_VERSION = ": where a newer version of this tool wrote it, update this one"
MAX_OFFSET = (1 << 63) - 1
# Kafka's own int32: the numbers of replicas and partitions, and every epoch.
MAX_INT32 = (1 << 31) - 1
INT32_COLUMNS = frozenset({
    "partition", "replica", "leader", "leader_epoch", "partition_epoch", "last_fetched_epoch",
    "diverging_epoch", "min_insync_replicas", "assigned_replicas", "isr",
    "eligible_leader_replicas", "last_known_leader_replicas",
})  # fmt: skip
MOMENTS = frozenset(("observed_at", "observed_until"))
HEADER = (
    "format_version", "event_id", "trace_id", "trace_generation", "cluster_id", "incident",
    "topic", "topic_id", "partition", "sequence", "kind", "observed_at", "grade", "source_path",
    "source_line", "source_byte_offset",
)  # fmt: skip
FACT_COLUMNS = tuple(dict.fromkeys(name for names in ev.FACT_FIELDS.values() for name in names))
COLUMNS = HEADER + FACT_COLUMNS
# What people call an incident: short, and safe in file names, SQL and keys.
INCIDENT = re.compile(r"[A-Za-z0-9._-]{1,100}")
INCIDENT_RULE = "letters, digits and ._- only, at most 100"
NOT_CONTENT = frozenset(("event_id", "source_path", "incident"))


class Misfit(ValueError):
    """A row that is no event of this contract; the text says which column and why."""


def _field_types(kind: str) -> dict[str, tuple[str, bool]]:
    """Column name -> (type word, required) for one kind, from the dataclass's annotations."""
    result = {}
    fact_type = ev.FACT_TYPES[kind]
    defaults = {
        f.name
        for f in fact_type.__dataclass_fields__.values()
        if f.default is not f.default_factory
    }
    for name, hint in get_type_hints(fact_type).items():
        if name == "kind":
            continue
        options = get_args(hint) if isinstance(hint, UnionType) else (hint,)
        base = next(o for o in options if o is not type(None))
        result[name] = (_type_word(base), type(None) not in options and name not in defaults)
    return result


def _type_word(hint: Any) -> str:
    if get_origin(hint) is tuple:
        inner = get_args(hint)[0]
        return {int: "ints", Span: "spans", EpochEntry: "epoch_entries"}[inner]
    return {int: "int", str: "str", bool: "bool"}[hint]


FIELD_TYPES: dict[str, dict[str, tuple[str, bool]]] = {k: _field_types(k) for k in ev.FACT_TYPES}
# The columns of facts that a kind does not have.
FOREIGN = {k: frozenset(FACT_COLUMNS) - types.keys() for k, types in FIELD_TYPES.items()}
KNOWN_COLUMNS = frozenset(COLUMNS)


def to_row(event: ev.Event) -> dict[str, Any]:
    """The event as a flat, JSON-able mapping; absent columns are left out."""
    row: dict[str, Any] = {
        "format_version": FORMAT_VERSION,
        "event_id": event.event_id,
        "trace_id": event.trace_id,
        "trace_generation": event.trace_generation,
        "cluster_id": event.cluster_id,
        "incident": event.incident or None,
        "topic": event.topic,
        "topic_id": event.topic_id,
        "partition": event.partition,
        "sequence": event.sequence,
        "kind": event.fact.kind,
        "observed_at": event.observed_at,
        "grade": event.grade,
    }
    if event.source is not None:
        row["source_path"] = event.source.path
        row["source_line"] = event.source.line
        row["source_byte_offset"] = event.source.byte_offset
    for name in ev.FACT_FIELDS[event.fact.kind]:
        value = getattr(event.fact, name)
        if name == "spans":
            value = [span._asdict() for span in value]
        elif name == "epoch_entries" and value is not None:
            value = [entry._asdict() for entry in value]
        elif isinstance(value, tuple):
            value = list(value)
        row[name] = value
    return {k: v for k, v in row.items() if v is not None}


def content_id(row: Mapping[str, Any]) -> str:
    """The content-derived identity of a row, null or absent alike.

    Where its file lay when it was read (source_path), and what its incident is called, are no part
    of it: the same evidence imported from another folder, or once more, gives the same events.
    """
    body = {k: v for k, v in row.items() if k not in NOT_CONTENT and v is not None}
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def to_json(event: ev.Event) -> str:
    """The event as one line of an event dump."""
    return json.dumps(to_row(event), sort_keys=True, separators=(",", ":"))


def from_row(row: Mapping[str, Any]) -> ev.Event:
    """The event that a row describes.

    Raises Misfit for an unknown kind or version, a missing or mistyped column, a negative or
    absurd number, a time that is no date, a text that is no Unicode. Unknown columns are misfits
    too: a silent drop would lose evidence.
    """
    version = row.get("format_version")
    if version != FORMAT_VERSION:
        is_newer = isinstance(version, int) and version > FORMAT_VERSION
        raise Misfit(
            f"format_version {version!r} is not {FORMAT_VERSION}"
            + (": a newer version of this tool wrote it; update this one" if is_newer else "")
        )
    kind = row.get("kind")
    if not isinstance(kind, str) or kind not in ev.FACT_TYPES:
        raise Misfit(f"unknown kind {kind!r}{OF_A_NEWER_VERSION}")
    unknown = [c for c, v in row.items() if v is not None and c not in KNOWN_COLUMNS]
    if unknown:
        raise Misfit(f"unknown column {unknown[0]!r}{OF_A_NEWER_VERSION}")
    fact = fact_of(kind, row)
    source = None
    if row.get("source_path") is not None:
        source = ev.Source(
            _text(row, "source_path"),
            _number(row, "source_line", False),
            _number(row, "source_byte_offset", False),
        )
    sequence = _number(row, "sequence", True)
    partition = _number(row, "partition", True)
    assert sequence is not None
    assert partition is not None
    topic, topic_id = _text(row, "topic"), _optional_text(row, "topic_id")
    if "/" in topic + topic_id:
        raise Misfit(f"no topic's name or id: {topic!r} {topic_id!r}")
    observed_at = _number(row, "observed_at", False)
    grade = row.get("grade") or "forensic"
    if grade not in ("traced", "forensic"):
        raise Misfit(f"grade {grade!r} is neither traced nor forensic")
    incident = _optional_text(row, "incident")
    if incident and not INCIDENT.fullmatch(incident):
        raise Misfit(f"no incident's name: {incident!r} ({INCIDENT_RULE})")
    return ev.Event(
        event_id=_optional_text(row, "event_id") or content_id(row),
        trace_id=_text(row, "trace_id"),
        cluster_id=_optional_text(row, "cluster_id"),
        topic=topic,
        topic_id=topic_id,
        partition=partition,
        sequence=sequence,
        fact=fact,
        observed_at=observed_at,
        grade=grade,
        source=source,
        trace_generation=_number(row, "trace_generation", False) or 0,
        incident=incident,
    )


def fact_of(kind: str, row: Mapping[str, Any]) -> ev.Fact:
    """The fact alone that the columns of a row describe. Raises Misfit as from_row does."""
    types, foreign = FIELD_TYPES[kind], FOREIGN[kind]
    values: dict[str, Any] = {}
    for name, value in row.items():
        if name in foreign and value is not None:
            named = {c for c, v in row.items() if v is not None} & foreign
            first = min(named, key=FACT_COLUMNS.index)
            raise Misfit(f"column {first} does not belong to {kind}")
    for name, (word, required) in types.items():
        value = row.get(name)
        if value is not None:
            values[name] = _CONVERTED[word](name, value)
        elif required:
            raise Misfit(f"{kind} needs {name}")
    if kind == "leadership_recorded":
        # The one column whose absence says something: no leader was elected.
        values.setdefault("leader", None)
    fact: ev.Fact = ev.FACT_TYPES[kind](**values)
    return fact


def _whole_numbers(name: str, value: Any) -> tuple[int, ...]:
    return tuple([_whole(name, v) for v in _list(name, value)])


def _spans(name: str, value: Any) -> tuple[Span, ...]:
    return tuple([_span(name, v) for v in _list(name, value)])


def _epoch_entries(name: str, value: Any) -> tuple[EpochEntry, ...]:
    return tuple(
        EpochEntry(
            _whole("leader_epoch", _item(name, v, "leader_epoch")),
            _whole(name, _item(name, v, "start_offset")),
        )
        for v in _list(name, value)
    )


def _boolean(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise Misfit(f"{name} is no boolean: {value!r}")
    return value


def _span(name: str, value: Any) -> Span:
    leader_epoch = _item(name, value, "leader_epoch", None)
    content = _item(name, value, "content", None)
    first = _whole(name, _item(name, value, "first_offset"))
    end = _whole(name, _item(name, value, "end_offset"))
    if end <= first:
        raise Misfit(f"{name} holds an empty span [{first}, {end})")
    return Span(
        first,
        end,
        None if leader_epoch is None else _whole("leader_epoch", leader_epoch),
        None if content is None else _whole(name, content),
    )


def _item(name: str, value: Any, key: str, *default: Any) -> Any:
    try:
        return value[key]
    except (KeyError, TypeError, IndexError, ValueError):
        if default:
            return default[0]
        raise Misfit(f"{name} lacks {key}: {value!r}") from None


def _list(name: str, value: Any) -> list[Any]:
    if isinstance(value, (str, bytes, Mapping)) or not hasattr(value, "__iter__"):
        raise Misfit(f"{name} is no array: {value!r}")
    return list(value)


def _whole(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise Misfit(f"{name} is no whole number: {value!r}")
    if not 0 <= value <= (MAX_INT32 if name in INT32_COLUMNS else MAX_OFFSET):
        raise Misfit(f"{name} is out of range: {value}")
    if name in MOMENTS and value > LAST_MOMENT:
        raise Misfit(f"{name} is out of range: {value} is no date in milliseconds")
    return value


_CONVERTED: dict[str, Callable[[str, Any], Any]] = {
    "int": _whole,
    "ints": _whole_numbers,
    "spans": _spans,
    "epoch_entries": _epoch_entries,
    "bool": _boolean,
    "str": lambda name, value: _unicode(name, value),
}


def _number(row: Mapping[str, Any], name: str, required: bool) -> int | None:
    value = row.get(name)
    if value is None:
        if required:
            raise Misfit(f"{name} is missing")
        return None
    return _whole(name, value)


def _text(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name)
    if not isinstance(value, str) or not value:
        raise Misfit(f"{name} is missing or no text: {value!r}")
    return _unicode(name, value)


def _optional_text(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name)
    return "" if value is None else _unicode(name, value)


def _unicode(name: str, value: Any) -> str:
    """Text that every host keeps apart: half of a surrogate pair, which JSON can spell, has no
    bytes, and what follows a NUL is not looked at by all that hash texts."""
    if not isinstance(value, str):
        raise Misfit(f"{name} is no text: {value!r}")
    if "\0" in value:
        raise Misfit(f"{name} holds a NUL: {value!r}")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise Misfit(f"{name} is no Unicode text: {value!r}") from None
    return value


def from_json(line: str) -> ev.Event:
    """The event of one line of a dump. Raises Misfit, also for what is no JSON object."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise Misfit(f"no JSON: {error}") from None
    if not isinstance(row, dict):
        raise Misfit("a line must be one JSON object")
    return from_row(row)
