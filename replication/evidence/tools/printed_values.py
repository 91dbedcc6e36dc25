"""Numbers, names and JSON as Kafka's tools print them; BadLine says what is wrong with one."""

import json
from typing import Any

from replication.evidence.digest import DIRECTORY_NAME
from replication.protocol.ground.wire import MAX_OFFSET

LARGEST_JSON = 64 << 20


class BadLine(ValueError):
    """What is wrong with a line, for the user."""


def replica_of(name: str) -> tuple[str, int] | tuple[None, None]:
    """Whose directory a name is, if it is no directory set aside: those are no replica's log."""
    named = DIRECTORY_NAME.fullmatch(name)
    if named is None or named["kind"]:
        return None, None
    return named["topic"], int(named["partition"])


def whole_number(pairs: dict[str, str], name: str) -> int:
    value = pairs.get(name, "missing")
    if not (value.isascii() and value.isdigit() and len(value) < 20):
        raise BadLine(f"has {name} {value[:40]}, which is no number")
    number = int(value)
    if number > MAX_OFFSET:
        raise BadLine(f"has {name} {value}, which is out of range")
    return number


def known_number(pairs: dict[str, str], *names: str) -> int | None:
    """The first of the names that is there; None for Kafka's -1 and for what is not printed."""
    for name in names:
        if name in pairs:
            return None if pairs[name] in ("-1", "null") else whole_number(pairs, name)
    return None


def parsed_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def json_number(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise BadLine(f"{str(value)[:40]} is no number")
    return value
