"""Which fields a line of `digest.py --to-stdout` has, of which type and how large.

A line is somebody's words before it is evidence: one whose fields are others is refused whole, with
the field named, before anything rests on it. A field that an older digest did not print may be
missing; kinds of lines and fields that are not known here are passed over, so that a newer digest
can be read.
"""

import base64
import math
import re
from collections.abc import Callable
from typing import Any

from replication.evidence.digest import DIRECTORY_NAME
from replication.protocol.ground.model import LAST_MOMENT
from replication.protocol.ground.wire import MAX_INT32, MAX_OFFSET

# The largest file of a log that Kafka writes: segment.bytes is an int.
LARGEST_FILE = MAX_INT32
_LONGEST_INTERVAL = 366 * 86_400
_FILE = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}")

Test = Callable[[Any], bool]


def refusal(line: dict[str, Any]) -> str | None:
    """Why an object is no line of a digest, None where it is one."""
    fields = _OF_ALL | _OF_KIND.get(str(line.get("what")), {})
    for name, (test, needed) in fields.items():
        value = line.get(name)
        if not (test(value) if name in line else not needed):
            return f"its {name} is {_shown(value)}" if name in line else f"it has no {name}"
    if line["what"] == "metadata":
        return _beyond_its_file(line)
    return None


def known_part(line: dict[str, Any]) -> dict[str, Any]:
    """The line without the fields of its envelope; whole where its kind is not known."""
    of_kind = _OF_KIND.get(line["what"])
    if of_kind is None:
        return line
    return {name: line[name] for name in line if name in _OF_ALL or name in of_kind}


def _beyond_its_file(line: dict[str, Any]) -> str | None:
    end = line["at_byte"] + len(base64.b64decode(line["base64"]))
    return f"it ends at byte {end} of a file of {line['size']}" if end > line["size"] else None


def _shown(value: Any) -> str:
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    shown = ascii(value)
    return shown if len(shown) <= 60 else shown[:60] + ".."


def _whole(most: int) -> Test:
    return lambda value: type(value) is int and 0 <= value <= most


def _text(value: Any) -> bool:
    """Text that can be written down: no half of a character, no NUL."""
    return isinstance(value, str) and "\0" not in value and not _HALVES.search(value)


def _matching(pattern: re.Pattern[str]) -> Test:
    return lambda value: _text(value) and pattern.fullmatch(value) is not None


def _or_none(test: Test) -> Test:
    return lambda value: value is None or test(value)


def _all(test: Test) -> Test:
    return lambda value: isinstance(value, list) and all(map(test, value))


def _pair(first: Test, second: Test) -> Test:
    def is_pair(value: Any) -> bool:
        return isinstance(value, list) and len(value) == 2 and first(value[0]) and second(value[1])

    return is_pair


def _flag(value: Any) -> bool:
    return isinstance(value, bool)


def _interval(value: Any) -> bool:
    """Seconds between two rounds."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and math.isfinite(value) and 0 < value <= _LONGEST_INTERVAL


def _base64(value: Any) -> bool:
    try:
        base64.b64decode(value, validate=True)
    except (TypeError, ValueError):
        return False
    return isinstance(value, str)


_HALVES = re.compile("[\ud800-\udfff]")
_MOMENT, _OFFSET = _whole(LAST_MOMENT), _whole(MAX_OFFSET)
_DIRECTORY = _matching(DIRECTORY_NAME)
_OF_ALL: dict[str, tuple[Test, bool]] = {
    "replication_digest": (_whole(MAX_INT32), True),
    "n": (_OFFSET, True),
    "started": (_MOMENT, True),
    "at": (_MOMENT, True),
    "directory": (_text, True),
    "what": (_text, True),
    "every": (_interval, False),
}
_OF_KIND: dict[str, dict[str, tuple[Test, bool]]] = {
    "directory": {
        "meta": (_or_none(_text), False),
        "clean_shutdown": (_or_none(_text), False),
        "broker_runs": (_or_none(_flag), False),
        "down_since": (_or_none(_MOMENT), False),
        "partitions": (_OFFSET, False),
    },
    "partition": {
        "name": (_DIRECTORY, True),
        "topic_id": (_or_none(_text), True),
        "log_start_offset": (_OFFSET, True),
        "log_end_offset": (_OFFSET, True),
        "leader_epochs": (_or_none(_all(_pair(_whole(MAX_INT32), _OFFSET))), True),
        "high_watermark": (_or_none(_OFFSET), True),
        "recovery_point": (_or_none(_OFFSET), True),
        "grown": (_or_none(_all(_pair(_MOMENT, _OFFSET))), False),
    },
    "gone": {
        "name": (_DIRECTORY, True),
        "topic_id": (_or_none(_text), False),
        "emptied": (_flag, False),
    },
    "error": {"name": (_text, True), "reason": (_text, True)},
    "metadata_files": {"name": (_text, False), "names": (_all(_matching(_FILE)), True)},
    "metadata": {
        "name": (_matching(_FILE), True),
        "at_byte": (_whole(LARGEST_FILE), True),
        "size": (_whole(LARGEST_FILE), True),
        "base64": (_base64, True),
    },
}
