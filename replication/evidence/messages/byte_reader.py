"""Reads numbers, texts and arrays as Kafka's messages have them; every read checks the bytes."""

import base64
import struct
from typing import Any

_SCALARS = {
    "bool": struct.Struct(">?"),
    "int8": struct.Struct(">b"),
    "int16": struct.Struct(">h"),
    "uint16": struct.Struct(">H"),
    "int32": struct.Struct(">i"),
    "uint32": struct.Struct(">I"),
    "int64": struct.Struct(">q"),
    "float64": struct.Struct(">d"),
}


class MessageError(ValueError):
    """The bytes are no message of the layouts known here; the message says why."""


class ByteReader:
    """A position in the bytes of one message. Every read raises MessageError past their end."""

    __slots__ = ("data", "position")

    def __init__(self, data: bytes, position: int = 0) -> None:
        self.data = data
        self.position = position

    def take(self, size: int) -> bytes:
        """The next bytes."""
        end = self.position + size
        if size < 0 or end > len(self.data):
            raise MessageError(f"needs {size} bytes at byte {self.position}, the record ends")
        taken = self.data[self.position : end]
        self.position = end
        return taken

    def scalar(self, kind: str) -> Any:
        """A number or a truth value of fixed size; kind: Kafka's word for it."""
        packed = _SCALARS[kind]
        return packed.unpack(self.take(packed.size))[0]

    def unsigned_varint(self) -> int:
        """A number of up to 32 bits, seven of them in each byte."""
        value = shift = 0
        try:
            while shift <= 28:
                byte = self.data[self.position]
                self.position += 1
                value |= (byte & 0x7F) << shift
                if byte < 0x80:
                    return value
                shift += 7
        except IndexError:
            raise MessageError(f"the record ends at byte {self.position}") from None
        raise MessageError(f"a varint before byte {self.position} is longer than 5 bytes")

    def length(self, fixed: str, *, flexible: bool) -> int:
        """The length before a text, bytes or an array, below 0 for null. fixed: how it is written
        where the version is not flexible (KIP-482)."""
        return self.unsigned_varint() - 1 if flexible else int(self.scalar(fixed))

    def text(self, length: int) -> str:
        """The next bytes as UTF-8."""
        try:
            return self.take(length).decode("utf-8")
        except UnicodeDecodeError:
            raise MessageError(f"text before byte {self.position} is no UTF-8") from None

    def uuid(self) -> str:
        """An id in Kafka's spelling."""
        return uuid_text(self.take(16))


def uuid_text(raw: bytes) -> str:
    """Kafka's spelling of an id: 22 characters of URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode("ascii")
