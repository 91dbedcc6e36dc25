"""Reads a message by its layout: Kafka's generated classes do the same, one class for each.

Both encodings are read: lengths of fixed size, and since KIP-482 the flexible one with varints and
tagged fields at the end of every structure. Fields that a later version appended with a tag that
is not known here are passed over (KIP-915).
"""

from collections.abc import Callable
from functools import cache
from typing import Any

from replication.evidence.messages.byte_reader import ByteReader, MessageError
from replication.evidence.messages.layouts import Field, Layout

Read = Callable[[ByteReader], Any]
_TEXTS = {"string": "int16", "bytes": "int32", "records": "int32"}


def read_message(layout: Layout, version: int, reader: ByteReader) -> dict[str, Any]:
    """The fields by name (snake case), tagged ones only where the message has them.

    A version above the newest known is read by the newest known fields. Raises MessageError.
    """
    if version < layout.oldest:
        raise MessageError(f"{layout.name} version {version}: no release wrote it")
    # All versions above the newest one are read alike.
    known = min(version, layout.newest + 1)
    values: dict[str, Any] = _reading(layout, known)(reader)
    return values


def read_whole(layout: Layout, version: int, reader: ByteReader) -> dict[str, Any]:
    """The same of a message that ends where the bytes do. Raises MessageError."""
    try:
        values = read_message(layout, version, reader)
        left = len(reader.data) - reader.position
        if left:
            raise MessageError(f"{left} bytes are left over")
    except MessageError as error:
        newer = f", newer than {layout.newest}" if version > layout.newest else ""
        raise MessageError(f"{layout.name} version {version}{newer}: {error}") from None
    return values


@cache
def _reading(layout: Layout, version: int) -> Read:
    return _structure(layout.fields, version, version in layout.flexible)


def _structure(fields: tuple[Field, ...], version: int, flexible: bool) -> Read:
    """Reads one structure as a version has it."""
    present = [one for one in fields if version in one.versions]
    plain = [
        (one.name, _value(one, version, flexible)) for one in present if version not in one.tagged
    ]
    tagged = {
        one.tag: (one.name, _value(one, version, flexible))
        for one in present
        if version in one.tagged
    }

    def read(reader: ByteReader) -> dict[str, Any]:
        values = {name: read_one(reader) for name, read_one in plain}
        last_tag = -1
        for _ in range(reader.unsigned_varint() if flexible else 0):
            tag = reader.unsigned_varint()
            if tag <= last_tag:
                raise MessageError(f"tag {tag} follows tag {last_tag}: tags must rise")
            last_tag = tag
            body = ByteReader(reader.take(reader.unsigned_varint()))
            if tag in tagged:
                name, read_one = tagged[tag]
                values[name] = read_one(body)
                if body.position != len(body.data):
                    raise MessageError(f"tagged field {name} has bytes left over")
        return values

    return read


def _value(field: Field, version: int, flexible: bool) -> Read:
    nullable = version in field.nullable
    if field.is_array:
        one = _single(field, version, flexible, nullable=False)
        return _array(one, flexible, nullable)
    return _single(field, version, flexible, nullable)


def _single(field: Field, version: int, flexible: bool, nullable: bool) -> Read:
    kind = field.kind
    if kind == "struct":
        read = _structure(field.fields, version, flexible)
        is_tagged = version in field.tagged
        return _unless_null(read, is_tagged=is_tagged) if nullable else read
    if kind == "uuid":
        return ByteReader.uuid
    if kind in _TEXTS:
        return _text(kind, flexible, nullable)
    return lambda reader: reader.scalar(kind)


def _unless_null(structure: Read, *, is_tagged: bool) -> Read:
    """A structure behind what tells whether there is one: a byte below 0, in a tagged field a
    varint of 0, where there is none."""
    if is_tagged:
        return lambda reader: structure(reader) if reader.unsigned_varint() else None
    return lambda reader: None if reader.scalar("int8") < 0 else structure(reader)


def _text(kind: str, flexible: bool, nullable: bool) -> Read:
    def read(reader: ByteReader) -> str | bytes | None:
        length = reader.length(_TEXTS[kind], flexible=flexible)
        if length < 0:
            if nullable:
                return None
            raise MessageError(f"a text before byte {reader.position} is null")
        return reader.text(length) if kind == "string" else reader.take(length)

    return read


def _array(one: Read, flexible: bool, nullable: bool) -> Read:
    def read(reader: ByteReader) -> list[Any] | None:
        length = reader.length("int32", flexible=flexible)
        if length < 0:
            if nullable:
                return None
            raise MessageError(f"an array before byte {reader.position} is null")
        if length > len(reader.data) - reader.position:
            raise MessageError(f"an array of {length} elements does not fit the record")
        return [one(reader) for _ in range(length)]

    return read
