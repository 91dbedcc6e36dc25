"""Messages written by their layouts' files, and values to write: what Kafka's classes do in Java.

It goes by the JSON of a layout alone and shares no code with the reader that it tests.
"""

import base64
import json
import struct
from random import Random
from typing import Any

from tests.evidence.messages.from_jars import LAYOUTS

NUMBERS = {
    "bool": (">?", (False, True)),
    "int8": (">b", (0, 1, -128, 127)),
    "int16": (">h", (0, -1, 1 << 14, -(1 << 15))),
    "uint16": (">H", (0, 9092, 65535)),
    "int32": (">i", (0, -1, 300, (1 << 31) - 1)),
    "uint32": (">I", (0, (1 << 32) - 1)),
    "int64": (">q", (0, -1, 1 << 40, (1 << 63) - 1)),
    "float64": (">d", (0.0, -1.5)),
}
TEXTS = ("", "a", "grüße", "x" * 200, "\x1b[31m\n")
Layout = dict[str, Any]
Values = dict[str, Any]


def kept(name: str) -> Layout:
    """The JSON of a layout."""
    told: Layout = json.loads((LAYOUTS / f"{name}.json").read_text("utf-8"))
    return told


def versions(layout: Layout) -> range:
    """The versions that a layout describes."""
    first, _, last = layout["validVersions"].partition("-")
    return range(int(first), int(last or first) + 1)


def includes(told: str | None, version: int) -> bool:
    """Whether a range of versions, in Kafka's words, has a version."""
    if told is None or told == "none":
        return False
    if told.endswith("+"):
        return version >= int(told[:-1])
    first, _, last = told.partition("-")
    return int(first) <= version <= int(last or first)


def spelled(name: str) -> str:
    """A field's name as Kafka's JSON has it."""
    return name[0].lower() + name[1:]


def message(name: str, version: int, values: Values) -> bytes:
    """The bytes of a message. values: by the names of Kafka's JSON, tagged ones may be missing."""
    layout = kept(name)
    return _structure(layout["fields"], layout, version, values)


def _flexible(layout: Layout, version: int) -> bool:
    return includes(layout["flexibleVersions"], version)


def _structure(fields: list[Any], layout: Layout, version: int, values: Values) -> bytes:
    plain, tagged = b"", {}
    for field in fields:
        name = spelled(field["name"])
        if includes(field.get("taggedVersions"), version):
            if name in values:
                tagged[field["tag"]] = _value(field, layout, version, values[name])
        elif includes(field.get("versions"), version):
            plain += _value(field, layout, version, values[name])
    if _flexible(layout, version):
        plain += varint(len(tagged))
        for tag, content in sorted(tagged.items()):
            plain += varint(tag) + varint(len(content)) + content
    return plain


def _value(field: Any, layout: Layout, version: int, value: Any) -> bytes:
    kind = field["type"]
    if kind.startswith("[]"):
        if value is None:
            return _length(-1, "int32", layout, version)
        one = {**field, "type": kind[2:], "nullableVersions": "none"}
        content = b"".join(_value(one, layout, version, element) for element in value)
        return _length(len(value), "int32", layout, version) + content
    if kind in NUMBERS:
        return struct.pack(NUMBERS[kind][0], value)
    if kind == "uuid":
        return base64.urlsafe_b64decode(value + "==")
    if kind[0].isupper():
        marked = includes(field.get("nullableVersions"), version)
        if value is None:
            return b"\0" if includes(field.get("taggedVersions"), version) else b"\xff"
        return b"\x01" * marked + _structure(_fields_of(field, layout), layout, version, value)
    size = "int16" if kind == "string" else "int32"
    if value is None:
        return _length(-1, size, layout, version)
    content = value.encode() if kind == "string" else base64.b64decode(value)
    return _length(len(content), size, layout, version) + content


def _fields_of(field: Any, layout: Layout) -> list[Any]:
    if "fields" in field:
        return list(field["fields"])
    return next(s["fields"] for s in layout["commonStructs"] if s["name"] == field["type"])


def _length(length: int, fixed: str, layout: Layout, version: int) -> bytes:
    if _flexible(layout, version):
        return varint(length + 1)
    return struct.pack(NUMBERS[fixed][0], length)


def varint(value: int) -> bytes:
    """An unsigned number, seven bits in each byte."""
    result = b""
    while value >= 0x80:
        result += bytes([value & 0x7F | 0x80])
        value >>= 7
    return result + bytes([value])


def made_up(layout: Layout, version: int, random: Random) -> Values:
    """Values for every field of a version; a tagged one is there or not, never at its default."""
    return _made_up(layout["fields"], layout, version, random)


def _made_up(fields: list[Any], layout: Layout, version: int, random: Random) -> Values:
    values: Values = {}
    for field in fields:
        name = spelled(field["name"])
        if includes(field.get("taggedVersions"), version):
            if random.random() < 0.6:
                values[name] = _one(field, layout, version, random, is_default=False)
        elif includes(field.get("versions"), version):
            values[name] = _one(field, layout, version, random)
    return values


def _one(
    field: Any, layout: Layout, version: int, random: Random, *, is_default: bool = True
) -> Any:
    kind = field["type"]
    may_be_null = is_default or field.get("default") != "null"
    if may_be_null and includes(field.get("nullableVersions"), version) and random.random() < 0.3:
        return None
    if kind.startswith("[]"):
        one = {**field, "type": kind[2:], "nullableVersions": "none"}
        count = random.choice((0, 1, 3)) if is_default else 2
        return [_one(one, layout, version, random) for _ in range(count)]
    if kind in NUMBERS:
        chosen = NUMBERS[kind][1]
        return random.choice([n for n in chosen if is_default or n not in (0, -1, False)])
    if kind == "uuid":
        return base64.urlsafe_b64encode(random.randbytes(16)).decode().rstrip("=")
    if kind[0].isupper():
        return _made_up(_fields_of(field, layout), layout, version, random)
    if kind == "string":
        return random.choice(TEXTS if is_default else TEXTS[1:])
    content = random.randbytes(random.choice((0, 3, 200)))
    return base64.b64encode(content).decode()
