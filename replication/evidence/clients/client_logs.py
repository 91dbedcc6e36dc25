"""Reads what clients wrote down: acknowledgement and consumption logs, JSON Lines or CSV.

An acknowledgement log tells what a producer was promised, a consumption log what a consumer was
given. Both are known by their content. A line that cannot be one is answered as Unreadable with its
number; nothing is dropped in silence. A file that is nearly an acknowledgement log is none, and
`near_miss` says how its fields have to be named (AckFields) to be one.
"""

import csv
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from replication.evidence.text_lines import iso_milliseconds, text_lines
from replication.evidence.unreadable import Unreadable

ACKNOWLEDGEMENTS, CONSUMPTION = "acknowledgements", "consumption"
_LINES_TO_KNOW_A_FILE_BY = 20
_COMMON = frozenset({"client", "topic", "partition", "offset"})
_ONLY_ACKNOWLEDGED = frozenset({"acks", "status"})
# What a consumption log may carry. Other JSON Lines (events, samples) have fields of their own.
_CONSUMED = _COMMON | {
    *(
        "ts",
        "payload_id",
        "payload_id_in",
        "topic_id",
        "group",
        "key",
        "sent_ts",
        "broker",
        "error",
    ),
}
_STATUSES = frozenset({"acked", "failed", "unknown", "sent"})
# As other programs say it. An error that names no reason leaves the outcome open.
_STATUS_WORDS = {
    "ok": "acked", "success": "acked", "succeeded": "acked", "acknowledged": "acked",
    "delivered": "acked", "true": "acked", "error": "unknown", "failure": "unknown",
    "timeout": "unknown", "false": "unknown",
}  # fmt: skip
_FIELDS = (
    "ts", "client", "topic", "partition", "offset", "acks", "status", "payload_id", "producer_id",
    "producer_epoch", "sequence", "topic_id", "error", "broker", "sent_ts",
)  # fmt: skip
_TEXTS = frozenset({"client", "topic", "acks", "status", "payload_id", "topic_id", "error"})
_OTHER_WORDS: dict[str, tuple[str, ...]] = {
    "ts": ("timestamp", "time", "at", "ack_ts", "acked_at", "datetime", "date"),
    "client": ("producer", "client_id", "clientid", "client.id", "app", "service"),
    "topic": ("topic_name",),
    "partition": ("partition_id", "part"),
    "offset": ("record_offset", "base_offset"),
    "acks": ("required_acks", "ack"),
    "status": ("result", "state", "outcome", "success"),
    "payload_id": ("key", "message_key", "record_key", "message_id", "msg_id", "id", "uuid"),
    "error": ("exception", "error_code", "err"),
}
_EXAMPLES = {
    "client": "producer-1", "topic": "orders", "partition": "0", "offset": "0", "acks": "all",
    "status": "acked",
}  # fmt: skip
_ACKS = {"0": "0", "1": "1", "-1": "all", "all": "all"}
# After one of these the record may be in the log or not: the client cannot know. A connection that
# was refused never carried the record.
_OUTCOME_UNKNOWN = (
    "TIMEOUT",
    "TIMEDOUT",
    "DISCONNECT",
    "NETWORK",
    "CONNECTION",
    "TRANSPORT",
    "NOTLEADER",
    "AFTERAPPEND",
)
_LONGEST_BEGINNING = 1 << 16
_NEWEST_SECONDS = 100_000_000_000  # as seconds the year 5138, as milliseconds 1973


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """What a producer was told about one record, in the words of its log.

    `ts` is milliseconds since 1970, on the client's clock. `offset` is None where the client was
    not told one. `acks` is "0", "1" or "all". `status`: acked; failed (refused before the append);
    unknown (it may be in the log or not); sent (acks=0, never acknowledged). `line` counts from 1.
    `payload_id_in`: where in its record the id is, "key", "value" or "header:NAME", if told.
    `broker`: the id of the one that answered, if told. `sent`: when the attempt began, as `ts`.
    """

    ts: int | None
    client: str
    topic: str
    partition: int
    offset: int | None
    acks: str
    status: str
    payload_id: str | None
    producer_id: int | None
    producer_epoch: int | None
    sequence: int | None
    topic_id: str | None
    error: str | None
    path: str
    line: int
    payload_id_in: str | None = None
    broker: int | None = None
    sent: int | None = None


@dataclass(frozen=True, slots=True)
class Consumption:
    """One record that a consumer was given. `ts` is milliseconds since 1970, on its clock."""

    ts: int | None
    client: str
    topic: str
    partition: int
    offset: int
    payload_id: str | None
    topic_id: str | None
    path: str
    line: int
    payload_id_in: str | None = None


class _BadLine(ValueError):
    """What is wrong with a line, for the user."""


@dataclass(frozen=True, slots=True)
class AckFields:
    """How another program names what ours calls `status`, `payload_id` and so on.

    columns: our name -> its name. values: our name -> what holds for every line.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, text: str) -> "AckFields":
        """`ts=timestamp,payload_id=key,status=:acked`; ValueError names what is wrong with it."""
        columns: dict[str, str] = {}
        values: dict[str, str] = {}
        for part in filter(None, (p.strip() for p in text.split(","))):
            name, equals, theirs = part.partition("=")
            if not equals or not theirs:
                raise ValueError(f"{part}: expected NAME=FIELD or NAME=:VALUE")
            if name not in _FIELDS:
                raise ValueError(f"{name} is none of {', '.join(_FIELDS)}")
            if theirs.startswith(":"):
                values[name] = theirs[1:]
            else:
                columns[name] = theirs
        return cls(columns, values)

    def renamed(self, found: dict[str, Any]) -> dict[str, Any]:
        """The line's fields under our names."""
        if not self.columns and not self.values:
            return found
        result = {**found, **{k: v for k, v in self.values.items() if found.get(k) is None}}
        for ours, theirs in self.columns.items():
            if theirs in found:
                result[ours] = found[theirs]
        return result


AS_THEY_ARE = AckFields()


def client_log_kind(path: Path, names: AckFields = AS_THEY_ARE) -> str | None:
    """ "acknowledgements", "consumption", or None where the file is neither.

    Decided by the first lines: at least half of them must be of the kind, so that a damaged line
    does not hide a log and a stray line does not make one.
    """
    kinds = [None if keys is None else kind_of_fields(keys) for keys in _first_keys(path, names)]
    for kind in (ACKNOWLEDGEMENTS, CONSUMPTION):
        if kinds.count(kind) * 2 >= max(len(kinds), 1):
            return kind
    return None


def _first_keys(path: Path, names: AckFields) -> list[frozenset[str] | None]:
    """The names of the fields of the first lines, None for a line that has none."""
    result: list[frozenset[str] | None] = []
    for _, found in _objects(path, names):
        if isinstance(found, Unreadable):
            if found.where == "file":
                break
            result.append(None)
        else:
            result.append(frozenset(k for k, v in found.items() if v is not None or k == "offset"))
        if len(result) == _LINES_TO_KNOW_A_FILE_BY:
            break
        if len(result) == 3 and not any(result):
            return []  # a text of another kind: do not read on through a large file
    return result


def kind_of_fields(keys: frozenset[str]) -> str | None:
    """ "acknowledgements" or "consumption", by the names of a line's fields; None for neither."""
    if not keys >= _COMMON:
        return None
    if keys >= _ONLY_ACKNOWLEDGED:
        return ACKNOWLEDGEMENTS
    return CONSUMPTION if keys <= _CONSUMED else None


def line_of_client(text: str, names: AckFields | None) -> tuple[str | None, str | None]:
    """Of which kind of client's log one line is, None: of none; and why it cannot be used.

    names: as for a file; None: what is nearly an acknowledgement is none.
    """
    try:
        found = (names or AS_THEY_ARE).renamed(_json_object(text))
    except _BadLine:
        return None, None
    known = frozenset(k for k, v in found.items() if v is not None or k == "offset")
    kind = kind_of_fields(known)
    if kind is not None:
        try:
            (_acknowledgement if kind == ACKNOWLEDGEMENTS else _consumption)(found, "", 0)
        except _BadLine as error:
            return None, f"a line of a client's log that {error}"
        return kind, None
    if names is None or "format_version" in known:
        return None, None
    near = _nearly_acknowledged(known)
    return None, None if near is None else f"it names {near}"


def near_miss(path: Path, names: AckFields = AS_THEY_ARE) -> str | None:
    """How the file's fields have to be named for an acknowledgement log, where it is nearly one:
    its lines name topic, partition and offset. None where it is not."""
    if _is_array_of_acknowledgements(path):
        return (
            "its objects name topic, partition and offset as an acknowledgement log's do, but they "
            "are one JSON array: write one object per line, for example: jq -c '.[]' FILE > "
            "acks.jsonl. If it is none, pass --ack-fields none"
        )
    lines = [keys for keys in _first_keys(path, names) if keys is not None]
    if not lines:
        return None
    known = frozenset.intersection(*lines)
    if "format_version" in known or kind_of_fields(known) is not None:
        return None
    near = _nearly_acknowledged(known)
    return None if near is None else f"its lines name {near}"


def _nearly_acknowledged(known: frozenset[str]) -> str | None:
    """How fields of these names have to be named for an acknowledgement; None where they are of
    nothing like one."""
    guesses = {ours: _guess(ours, known) for ours in _FIELDS if ours not in known}
    if any(guesses.get(ours, ours) is None for ours in ("topic", "partition", "offset")):
        return None
    missing = sorted((_COMMON | _ONLY_ACKNOWLEDGED) - known)
    fix = [f"{ours}={theirs}" for ours, theirs in guesses.items() if theirs is not None]
    fix += [f"{ours}=:{_EXAMPLES[ours]}" for ours in missing if guesses.get(ours) is None]
    return (
        f"topic, partition and offset as an acknowledgement log's do, but no "
        f"{', '.join(missing)}. If it is one, say how its fields are named and what holds for "
        f"every line, for example: --ack-fields {','.join(fix)}. If it is none, pass "
        "--ack-fields none"
    )


_ARRAY_OF_OBJECTS = re.compile(r"\[\s*(?:\{|$)")
# So many blank lines may be before what a file holds.
_MOST_BLANK = 10_000


def _is_array_of_acknowledgements(path: Path) -> bool:
    """By the first object of an array, as far as the file's beginning holds it."""
    head = ""
    for number, line in text_lines(path):
        if isinstance(line, Unreadable) or (number > _MOST_BLANK and not head):
            return False
        head = (head + line).lstrip()
        if head and not _ARRAY_OF_OBJECTS.match(head):
            return False
        if len(head) > _LONGEST_BEGINNING:
            break
    try:
        first, _ = json.JSONDecoder().raw_decode(head, head.find("{"))
    except (ValueError, RecursionError):
        return False
    known = frozenset(first)
    named = ("topic", "partition", "offset")
    return all(_guess(ours, known) for ours in named) and any(
        _guess(ours, known) for ours in ("ts", "status", "payload_id")
    )


def _guess(ours: str, known: frozenset[str]) -> str | None:
    lowered = {name.lower(): name for name in sorted(known)}
    return next((lowered[w] for w in (ours, *_OTHER_WORDS.get(ours, ())) if w in lowered), None)


def read_acknowledgements(
    path: Path, names: AckFields = AS_THEY_ARE
) -> Iterator[Acknowledgement | Unreadable]:
    """Every line of an acknowledgement log, in its order."""
    yield from _read(path, names, _acknowledgement)


def read_consumptions(
    path: Path, names: AckFields = AS_THEY_ARE
) -> Iterator[Consumption | Unreadable]:
    """Every line of a consumption log, in its order."""
    yield from _read(path, names, _consumption)


def _read(
    path: Path, names: AckFields, build: Callable[[dict[str, Any], str, int], Any]
) -> Iterator[Any]:
    for number, found in _objects(path, names):
        if isinstance(found, Unreadable):
            yield found
            continue
        try:
            yield build(found, str(path), number)
        except _BadLine as error:
            yield Unreadable(str(path), f"line {number}", f"this line {error}")


def _objects(path: Path, names: AckFields) -> Iterator[tuple[int, dict[str, Any] | Unreadable]]:
    """Each line that is not blank as an object, JSON or CSV with a line of names."""
    header: list[str] | None = None
    separator = ","
    for number, line in text_lines(path):
        if isinstance(line, Unreadable):
            yield number, line
            continue
        text = line.strip()
        if not text:
            continue
        if header is None:
            separator = next((s for s in (",", ";", "\t") if s in text), ",")
            header = [] if text.startswith("{") else _csv_names(text, separator)
            if header:
                continue
        try:
            if header and not line.endswith("\n"):
                raise _BadLine("ends with the file (cut?)")
            found = _csv_row(header, text, separator) if header else _json_object(text)
            yield number, names.renamed(found)
        except _BadLine as error:
            yield number, Unreadable(str(path), f"line {number}", f"this line {error}")


def _json_object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise _BadLine("is no JSON (cut?)") from None
    if not isinstance(found, dict):
        raise _BadLine("is JSON but no object")
    return found


def _csv_names(text: str, separator: str) -> list[str]:
    """The names that a CSV file begins with; none where it begins with anything else."""
    cells = [c.strip().strip('"') for c in text.split(separator)]
    names = [c.lower() if c.lower() in _FIELDS else c for c in cells]
    words = set(_FIELDS).union(*_OTHER_WORDS.values())
    told = [c for c in cells if c.lower() in words]
    return names if len(cells) >= 3 and len(told) >= 3 and len(set(names)) == len(names) else []


def _csv_row(header: list[str], text: str, separator: str) -> dict[str, Any]:
    try:
        cells = next(csv.reader([text], delimiter=separator, strict=True))
    except (csv.Error, StopIteration):
        raise _BadLine("is no row of CSV (cut?)") from None
    if len(cells) != len(header):
        raise _BadLine(f"has {len(cells)} cells, the line of names {len(header)}")
    values = (c.strip() for c in cells)
    return {n: _csv_value(n, v) for n, v in zip(header, values, strict=True)}


def _csv_value(name: str, text: str) -> Any:
    if text in ("", "null", "NULL", "None"):
        return None
    bare = text.removeprefix("-")
    return int(text) if bare.isdecimal() and len(bare) < 20 and name not in _TEXTS else text


def _acknowledgement(found: dict[str, Any], path: str, line: int) -> Acknowledgement:
    acks = found.get("acks")
    asked = None if isinstance(acks, bool) else _ACKS.get(str(acks).lower())
    if asked is None:
        raise _BadLine(f"has acks {_shown(acks)}, not 0, 1 or all")
    status = found.get("status")
    status = _STATUS_WORDS.get(str(status).lower(), status)
    if not isinstance(status, str) or status not in _STATUSES:
        raise _BadLine(f"has status {_shown(status)}, not acked, failed, unknown or sent")
    error = found.get("error")
    if error is not None and not isinstance(error, str):
        error = json.dumps(error)
    return Acknowledgement(
        ts=_time(found.get("ts")),
        client=_text(found, "client"),
        topic=_text(found, "topic"),
        partition=_number(found, "partition", 2**31 - 1),
        offset=_optional_number(found, "offset"),
        acks=asked,
        status=_status(status, asked, error),
        payload_id=_payload_id(found),
        producer_id=_optional_number(found, "producer_id"),
        producer_epoch=_optional_number(found, "producer_epoch", 2**15 - 1),
        sequence=_optional_number(found, "sequence", 2**31 - 1),
        topic_id=_optional_text(found, "topic_id"),
        error=error,
        path=path,
        line=line,
        payload_id_in=_optional_text(found, "payload_id_in"),
        broker=_broker(found.get("broker")),
        sent=_time(found.get("sent_ts")),
    )


def _consumption(found: dict[str, Any], path: str, line: int) -> Consumption:
    return Consumption(
        ts=_time(found.get("ts")),
        client=_text(found, "client"),
        topic=_text(found, "topic"),
        partition=_number(found, "partition", 2**31 - 1),
        offset=_number(found, "offset"),
        payload_id=_payload_id(found),
        topic_id=_optional_text(found, "topic_id"),
        path=path,
        line=line,
        payload_id_in=_optional_text(found, "payload_id_in"),
    )


def _broker(value: Any) -> int | None:
    """A broker's id; None for what else clients call so: an address, a list of them."""
    is_id = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31
    return value if is_id else None


def _status(status: str, acks: str, error: str | None) -> str:
    """The status as the rest of the product means it; clients use the words more loosely.

    With acks=0 no broker ever answers: what such a client calls acknowledged was sent. "Failed" is
    kept for a refusal before the append; an error that leaves the outcome open makes it unknown.
    """
    if acks == "0":
        return "sent" if status == "acked" else status
    if status == "sent":
        return "unknown"
    letters = "".join(filter(str.isalpha, error or "")).upper()
    open_outcome = any(word in letters for word in _OUTCOME_UNKNOWN) and "REFUSED" not in letters
    return "unknown" if status == "failed" and open_outcome else status


def _shown(value: Any) -> str:
    return "missing" if value is None else json.dumps(value)[:60]


def _text(found: dict[str, Any], name: str) -> str:
    value = found.get(name)
    if not isinstance(value, str) or not value:
        raise _BadLine(f"has {name} {_shown(value)}, not a text")
    return value


def _optional_text(found: dict[str, Any], name: str) -> str | None:
    return None if found.get(name) is None else _text(found, name)


def _payload_id(found: dict[str, Any]) -> str | None:
    value = found.get("payload_id")
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return None if value is None else _text(found, "payload_id")


def _number(found: dict[str, Any], name: str, largest: int = 2**63 - 1) -> int:
    value = found.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= largest:
        raise _BadLine(f"has {name} {_shown(value)}, not a number from 0 to {largest}")
    return value


def _optional_number(found: dict[str, Any], name: str, largest: int = 2**63 - 1) -> int | None:
    """Absent, null or Kafka's own -1 (RecordMetadata, RecordBatch: no such number): None."""
    value = found.get(name)
    if value is None or (value == -1 and isinstance(value, int)):
        return None
    return _number(found, name, largest)


def _time(value: Any) -> int | None:
    """Milliseconds since 1970 of ISO 8601 text (UTC where it names no zone) or of a number."""
    if value is None:
        return None
    try:
        if isinstance(value, str):
            return iso_milliseconds(value)
        if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
            # Clients write seconds or milliseconds; the two cannot be taken for one another.
            scaled = value * 1000 if value < _NEWEST_SECONDS else value
            if scaled < 1000 * _NEWEST_SECONDS:
                return int(scaled)
    except (ValueError, OverflowError):
        pass
    raise _BadLine(f"has ts {_shown(value)}, which is no time")
