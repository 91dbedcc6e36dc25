"""Versioned, compact encoding of one topic partition's state; its size follows leader epochs.

Format: magic, format version, CRC-32 of the body, then the body: the state's dataclasses as
nested arrays in field order (names are not stored), JSON text, deflated. Which fields there are, in
which order, is the layout: a state of another layout is refused, never read as if it were of this
one. States are disposable: the events make them again.
"""

import json
import struct
import zlib
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from replication.protocol.ground.model import EpochEntry, Span
from replication.protocol.ground.topic_partition import State

MAGIC = b"RPS"
FORMAT = 2
HEAD = struct.Struct(">3sBII")


class CorruptState(ValueError):
    """The bytes are no state, or not the state that was written."""


class UnknownFormat(CorruptState):
    """The state was written by an analyzer that keeps other fields than this one."""


def encode(state: State) -> bytes:
    """The state as bytes; decode() gives an equal state."""
    body = zlib.compress(json.dumps(_writer(State)(state), separators=(",", ":")).encode(), 1)
    return HEAD.pack(MAGIC, FORMAT, layout(), zlib.crc32(body)) + body


def decode(data: bytes) -> State:
    """The state of encode(). Raises CorruptState or UnknownFormat."""
    if len(data) < HEAD.size:
        raise CorruptState(f"{len(data)} bytes are too few for a state")
    magic, version, fields_of, crc = HEAD.unpack_from(data)
    if magic != MAGIC:
        raise CorruptState("these bytes are no state of a topic partition")
    if version != FORMAT or fields_of != layout():
        raise UnknownFormat(
            f"the state is of format {version}, layout {fields_of:08x}; this analyzer keeps format "
            f"{FORMAT}, layout {layout():08x}: fold the events anew"
        )
    body = data[HEAD.size :]
    if zlib.crc32(body) != crc:
        raise CorruptState("the state's checksum does not match its bytes")
    state = _reader(State)(json.loads(zlib.decompress(body)))
    assert isinstance(state, State)
    return state


@cache
def layout() -> int:
    """A number that changes whenever a field of the state is added, moved, renamed or retyped."""
    return zlib.crc32(_layout_of(State).encode())


def _layout_of(hint: Any) -> str:
    if isinstance(hint, UnionType):
        return f"{_layout_of(_named(hint))}?"
    if is_dataclass(hint):
        hints = get_type_hints(hint)
        named = ",".join(f"{f.name}:{_layout_of(hints[f.name])}" for f in _kept(hint))
        return f"{{{named}}}"
    origin, args = get_origin(hint), get_args(hint)
    if origin is None:
        return str(getattr(hint, "__name__", hint))
    inner = ",".join("..." if a is Ellipsis else _layout_of(a) for a in args)
    return f"{origin.__name__}[{inner}]"


Converter = Callable[[Any], Any]


def _as_it_is(value: Any) -> Any:
    return value


@cache
def _writer(hint: Any) -> Converter:
    """What turns a value of a type hint into plain JSON values; worked out once per type."""
    if isinstance(hint, UnionType):
        inner = _writer(_named(hint))
        return inner if inner is _as_it_is else lambda v: None if v is None else inner(v)
    if hint in (Span, EpochEntry):
        return list
    if is_dataclass(hint):
        return _dataclass_writer(hint)
    origin, args = get_origin(hint), get_args(hint)
    if origin is set:
        return sorted
    if origin is dict:
        key, value = _writer(args[0]), _writer(args[1])
        return lambda v: [[key(k), value(x)] for k, x in v.items()]
    if origin is list or (origin is tuple and args[-1] is Ellipsis):
        item = _writer(args[0])
        return list if item is _as_it_is else lambda v: [item(x) for x in v]
    if origin is tuple:
        items = [_writer(a) for a in args]
        return lambda v: [item(x) for item, x in zip(items, v, strict=True)]
    return _as_it_is


def _dataclass_writer(hint: Any) -> Converter:
    """Writes a dataclass as an array, cut after the last field that differs from its default."""
    hints = get_type_hints(hint)
    names = [f.name for f in _kept(hint)]
    writers = [_writer(hints[name]) for name in names]
    defaults = [_default(f, w) for f, w in zip(_kept(hint), writers, strict=True)]

    def write(value: Any) -> list[Any]:
        result = [w(getattr(value, n)) for n, w in zip(names, writers, strict=True)]
        length = len(result)
        while length and result[length - 1] == defaults[length - 1]:
            length -= 1
        return result[:length]

    return write


def _kept(hint: Any) -> list[Any]:
    """The fields that are written; those that follow from others come last and are not."""
    return [f for f in fields(hint) if not f.metadata.get("derived")]


_NO_DEFAULT = object()


def _default(field: Any, write: Converter) -> Any:
    """A field's default as it is written; equal to nothing where the field has none."""
    if field.default is not MISSING:
        return write(field.default)
    return _NO_DEFAULT if field.default_factory is MISSING else write(field.default_factory())


@cache
def _reader(hint: Any) -> Converter:
    """What turns the plain values of _writer back into a value of the type hint."""
    if isinstance(hint, UnionType):
        inner = _reader(_named(hint))
        return inner if inner is _as_it_is else lambda v: None if v is None else inner(v)
    if hint in (Span, EpochEntry):
        return lambda v: hint(*v)
    if is_dataclass(hint):
        hints = get_type_hints(hint)
        readers = [_reader(hints[f.name]) for f in _kept(hint)]
        # Fields that an older format had not, or that had their default, are left to the default.
        return lambda v: hint(*[r(x) for r, x in zip(readers, v, strict=False)])  # type: ignore[operator]
    origin, args = get_origin(hint), get_args(hint)
    if origin is set:
        return set
    if origin is dict:
        key, value = _reader(args[0]), _reader(args[1])
        return lambda v: {key(k): value(x) for k, x in v}
    if origin is list:
        item = _reader(args[0])
        return _as_it_is if item is _as_it_is else lambda v: [item(x) for x in v]
    if origin is tuple and args[-1] is Ellipsis:
        item = _reader(args[0])
        return tuple if item is _as_it_is else lambda v: tuple(item(x) for x in v)
    if origin is tuple:
        items = [_reader(a) for a in args]
        return lambda v: tuple(item(x) for item, x in zip(items, v, strict=True))
    return _as_it_is


def _named(hint: UnionType) -> Any:
    """The one type of an optional hint."""
    return next(o for o in get_args(hint) if o is not type(None))
