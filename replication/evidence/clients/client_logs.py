"""Reads what clients wrote down: acknowledgement and consumption logs, JSON Lines, plain or gz.

An acknowledgement log tells what a producer was promised, a consumption log what a consumer was
given. Both are known by their content. A line that cannot be one is answered as Unreadable with its
number; nothing is dropped in silence.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
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
_NEWEST_SECONDS = 100_000_000_000  # as seconds the year 5138, as milliseconds 1973


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """What a producer was told about one record, in the words of its log.

    `ts` is milliseconds since 1970, on the client's clock. `offset` is None where the client was
    not told one. `acks` is "0", "1" or "all". `status`: acked; failed (refused before the append);
    unknown (it may be in the log or not); sent (acks=0, never acknowledged). `line` counts from 1.
    `payload_id_in`: where in its record the id stands, "key", "value" or "header:NAME", if told.
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


def client_log_kind(path: Path) -> str | None:
    """ "acknowledgements", "consumption", or None where the file is neither.

    Decided by the first lines: at least half of them must be of the kind, so that a damaged line
    does not hide a log and a stray line does not make one.
    """
    kinds: list[str | None] = []
    for _, text in _lines(path):
        if isinstance(text, Unreadable):
            break
        kinds.append(_kind_of_line(text))
        if len(kinds) == _LINES_TO_KNOW_A_FILE_BY:
            break
        if len(kinds) == 3 and not any(kinds):
            return None  # a text of another kind: do not read on through a large file
    for kind in (ACKNOWLEDGEMENTS, CONSUMPTION):
        if kinds.count(kind) * 2 >= max(len(kinds), 1):
            return kind
    return None


def _kind_of_line(text: str) -> str | None:
    if not text.startswith("{"):
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or not found.keys() >= _COMMON:
        return None
    if found.keys() >= _ONLY_ACKNOWLEDGED:
        return ACKNOWLEDGEMENTS
    return CONSUMPTION if found.keys() <= _CONSUMED else None


def read_acknowledgements(path: Path) -> Iterator[Acknowledgement | Unreadable]:
    """Every line of an acknowledgement log, in its order."""
    yield from _read(path, _acknowledgement)


def read_consumptions(path: Path) -> Iterator[Consumption | Unreadable]:
    """Every line of a consumption log, in its order."""
    yield from _read(path, _consumption)


def _read(path: Path, build: Callable[[dict[str, Any], str, int], Any]) -> Iterator[Any]:
    for number, text in _lines(path):
        if isinstance(text, Unreadable):
            yield text
            continue
        try:
            found = json.loads(text)
            if not isinstance(found, dict):
                raise _BadLine("is JSON but no object")
            yield build(found, str(path), number)
        except _BadLine as error:
            yield Unreadable(str(path), f"line {number}", f"this line {error}")
        except (ValueError, RecursionError):
            yield Unreadable(str(path), f"line {number}", "this line is no JSON (cut?)")


def _lines(path: Path) -> Iterator[tuple[int, str | Unreadable]]:
    """Those that are not blank, without the space around them."""
    for number, line in text_lines(path):
        if isinstance(line, Unreadable):
            yield number, line
        elif text := line.strip():
            yield number, text


def _acknowledgement(found: dict[str, Any], path: str, line: int) -> Acknowledgement:
    acks = found.get("acks")
    asked = None if isinstance(acks, bool) else _ACKS.get(str(acks).lower())
    if asked is None:
        raise _BadLine(f"has acks {_shown(acks)}, not 0, 1 or all")
    status = found.get("status")
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
