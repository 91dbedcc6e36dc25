"""Versioned, compact encoding of one topic partition's state; its size follows leader epochs.

Format: magic, format version, CRC-32 of the body, then the body: the state's dataclasses as
nested arrays in field order (names are not stored), JSON text, deflated. A state written by an
older format is read by naming the fields that format had; defaults fill the rest.
"""

import json
import struct
import zlib
from dataclasses import fields, is_dataclass
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from replication.protocol.model import EpochEntry, Span
from replication.protocol.topic_partition import State

MAGIC = b"RPS"
FORMAT = 1
HEAD = struct.Struct(">3sBI")


class CorruptState(ValueError):
    """The bytes are no state, or not the state that was written."""


class UnknownFormat(CorruptState):
    """The state was written by a newer format than this one reads."""


def encode(state: State) -> bytes:
    """The state as bytes; decode() gives an equal state."""
    body = zlib.compress(json.dumps(_plain(state), separators=(",", ":")).encode(), 1)
    return HEAD.pack(MAGIC, FORMAT, zlib.crc32(body)) + body


def decode(data: bytes) -> State:
    """The state of encode(). Raises CorruptState or UnknownFormat."""
    if len(data) < HEAD.size:
        raise CorruptState(f"{len(data)} bytes are too few for a state")
    magic, version, crc = HEAD.unpack_from(data)
    if magic != MAGIC:
        raise CorruptState("these bytes are no state of a topic partition")
    if version > FORMAT:
        raise UnknownFormat(f"state format {version} is newer than {FORMAT}")
    body = data[HEAD.size :]
    if zlib.crc32(body) != crc:
        raise CorruptState("the state's checksum does not match its bytes")
    state = _built(json.loads(zlib.decompress(body)), State)
    assert isinstance(state, State)
    return state


def _plain(value: Any) -> Any:
    """Dataclasses as arrays cut after the last field that differs from its default."""
    if is_dataclass(value) and not isinstance(value, type):
        result = [_plain(getattr(value, f.name)) for f in fields(value)]
        while result and result[-1] in (None, [], 0, False, ""):
            # Only what the field's own default restores may be left out.
            field = fields(value)[len(result) - 1]
            default = field.default
            if field.default_factory is not field.default and callable(field.default_factory):
                default = _plain(field.default_factory())
            if default != getattr(value, field.name) and default != result[-1]:
                break
            result.pop()
        return result
    if isinstance(value, dict):
        return [[_plain(k), _plain(v)] for k, v in value.items()]
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return value


_HINTS: dict[Any, dict[str, Any]] = {}


def _built(plain: Any, hint: Any) -> Any:
    """The value of type hint that _plain() wrote."""
    if isinstance(hint, UnionType):
        if plain is None:
            return None
        hint = next(o for o in get_args(hint) if o is not type(None))
    if hint in (Span, EpochEntry):
        return hint(*plain)
    origin = get_origin(hint)
    if origin is list:
        return [_built(v, get_args(hint)[0]) for v in plain]
    if origin is set:
        return set(plain)
    if origin is dict:
        key, value = get_args(hint)
        return {_built(k, key): _built(v, value) for k, v in plain}
    if origin is tuple:
        args = get_args(hint)
        if len(args) == 2 and args[1] is Ellipsis:
            return tuple(_built(v, args[0]) for v in plain)
        return tuple(_built(v, a) for v, a in zip(plain, args, strict=True))
    if is_dataclass(hint):
        hints = _HINTS.get(hint)
        if hints is None:
            hints = _HINTS[hint] = get_type_hints(hint)
        values = {
            f.name: _built(v, hints[f.name]) for f, v in zip(fields(hint), plain, strict=False)
        }
        assert isinstance(hint, type)
        return hint(**values)
    return plain
