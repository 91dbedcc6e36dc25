"""Opens a file as it came from a machine: packed (gzip, bzip2, xz, zstandard, snappy as Java frames
it), in UTF-8 or UTF-16.

What comes out is always the unpacked bytes, text as UTF-8, so that no reader asks how a file is
packed. What unpacks to far more than logs can is refused in the middle of reading (READ_ERRORS).
"""

import bz2
import errno
import gzip
import io
import lzma
import os
import re
import stat
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PosixPath
from typing import Any, BinaryIO, NamedTuple, Protocol, cast

import cramjam
import zstandard

DAMAGED = (EOFError, zlib.error, lzma.LZMAError, zstandard.ZstdError, cramjam.DecompressionError)
READ_ERRORS = (OSError, *DAMAGED)
# Logs of one repeated line reach a few hundred.
LARGEST_RATIO = 600
UNSUSPICIOUS_BYTES = 1 << 30
_TEXT_PIECE = 1 << 16
_SMALL = 1 << 20
_STAMPS_DIFFER = 1_000_000_000
_HOLE = re.compile(rb"\0{17,}")
_ZEROS_WITHIN, _TEXT_FOR_A_ZERO = 1024, 64


class Part(PosixPath):
    """Some lines of a text file, numbered from 1: opened, all others are empty, so that every line
    keeps its number."""

    lines: frozenset[int] | None = None

    @classmethod
    def of(cls, path: Path | str, lines: Iterable[int]) -> "Part":
        """Those lines of the file."""
        part = cls(str(path))
        part.lines = frozenset(lines)
        return part

    def __reduce__(self) -> tuple[Any, ...]:
        return (Part.of, (str(self), self.lines or ()))


class _OnlyLines(io.RawIOBase):
    """Text of which some lines are left and the others are empty."""

    def __init__(self, inner: BinaryIO, lines: frozenset[int]) -> None:
        self._inner, self._lines = inner, lines
        self._number = 0
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(buffer)  # type: ignore[arg-type]
        if not self._rest:
            self._number += 1
            line = self._inner.readline()
            self._rest = line if self._number in self._lines or not line else b"\n"
        taken = self._rest[: len(view)]
        self._rest = self._rest[len(taken) :]
        view[: len(taken)] = taken
        return len(taken)

    def close(self) -> None:
        self._inner.close()
        super().close()


class _Stepwise(Protocol):
    def read1(self, size: int = -1, /) -> bytes: ...

    def close(self) -> None: ...


class _Bounded(io.RawIOBase):
    """Unpacked bytes, refused once they are too many for what they were packed in."""

    def __init__(self, inner: "_Stepwise", raw: BinaryIO, most: int) -> None:
        self._inner, self._raw = inner, raw
        self._left = most

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(buffer)  # type: ignore[arg-type]
        # One step at a time: what comes before a place that is damaged is handed on.
        data = self._inner.read1(len(view))
        self._left -= len(data)
        if self._left < 0:
            raise OSError("it unpacks to far more than a log would: refused as a bomb")
        view[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._inner.close()
        self._raw.close()
        super().close()


class _AsUtf8(io.RawIOBase):
    """Text of another encoding as UTF-8 bytes."""

    def __init__(self, inner: BinaryIO, encoding: str) -> None:
        self._text = io.TextIOWrapper(inner, encoding=encoding, errors="replace", newline="")
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(buffer)  # type: ignore[arg-type]
        if not self._rest:
            self._rest = self._text.read(_TEXT_PIECE).encode("utf-8", "replace")
        taken = self._rest[: len(view)]
        self._rest = self._rest[len(taken) :]
        view[: len(taken)] = taken
        return len(taken)

    def close(self) -> None:
        self._text.close()
        super().close()


class _Peekable(Protocol):
    def peek(self, size: int, /) -> bytes: ...


class _Zstandard(io.RawIOBase):
    """Frames one after the other; unlike the library's own reader it tells a file that is cut."""

    # What one piece unpacks to stays small even where it is all repetition.
    _PIECE = 1 << 11

    def __init__(self, raw: BinaryIO) -> None:
        self._raw = raw
        self._frame: zstandard.ZstdDecompressionObj | None = None
        self._rest = b""

    def readable(self) -> bool:
        return True

    def read1(self, size: int = -1, /) -> bytes:
        """At most size bytes; none at the end."""
        while not self._rest:
            packed = self._raw.read(self._PIECE)
            if not packed:
                if self._frame is not None:
                    raise EOFError("the compressed file ended before its end-of-stream marker")
                return b""
            while packed:
                self._frame = self._frame or zstandard.ZstdDecompressor().decompressobj()
                self._rest += self._frame.decompress(packed)
                packed = self._frame.unused_data if self._frame.eof else b""
                self._frame = None if self._frame.eof else self._frame
        taken, self._rest = self._rest[:size], self._rest[size:]
        return taken


class _Snappy(io.RawIOBase):
    """Blocks behind a header, each with its length: snappy-java's stream, as ZooKeeper has it."""

    _HEADER_BYTES = 16
    _LARGEST_BLOCK = 64 << 20

    def __init__(self, raw: BinaryIO) -> None:
        self._raw = raw
        self._rest = b""
        self._begun = False

    def readable(self) -> bool:
        return True

    def read1(self, size: int = -1, /) -> bytes:
        """At most size bytes; none at the end."""
        if not self._begun:
            self._raw.read(self._HEADER_BYTES)
            self._begun = True
        while not self._rest:
            head = self._raw.read(4)
            if not head:
                return b""
            length = int.from_bytes(head, "big")
            block = self._raw.read(length) if length <= self._LARGEST_BLOCK else b""
            if len(head) < 4 or len(block) < length:
                raise EOFError("the compressed file ends within a block")
            if cramjam.snappy.decompress_raw_len(block) > self._LARGEST_BLOCK:
                raise EOFError("a block unpacks to more than such a stream's do")
            self._rest = bytes(cramjam.snappy.decompress_raw(block))
        taken, self._rest = self._rest[:size], self._rest[size:]
        return taken


_PACKINGS: dict[bytes, Callable[[BinaryIO], _Stepwise]] = {
    b"\x1f\x8b": lambda raw: gzip.GzipFile(fileobj=raw),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\x00": lzma.LZMAFile,
    b"\x28\xb5\x2f\xfd": _Zstandard,
    b"\x82SNAPPY\x00": _Snappy,
}
_BYTE_ORDER_MARKS = (
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)


class _Kept(NamedTuple):
    """A small file's bytes, by what tells whether it is the same; plain: as they are to be read."""

    about: tuple[int, ...]
    content: bytes
    plain: bool


_kept = _Kept((), b"", plain=True)


def regular(path: Path) -> Path:
    """The path, where a file of its own lies there: one of a log directory's, to be opened next.

    Raises OSError for a link, which may lead out of what was handed over, and for a device or a
    pipe, from which reading may never end.
    """
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        told = f"a link to {os.readlink(path)}; in a log directory links are not followed"
        raise OSError(errno.ELOOP, told)
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise OSError(errno.EINVAL, "no file (a device, a pipe or a socket)")
    return path


def is_packed(head: bytes) -> bool:
    """Whether a file that begins so is taken for a packed one."""
    return head.startswith(tuple(_PACKINGS))


def open_unpacked(path: Path, most: int | None = None) -> BinaryIO:
    """The file's bytes unpacked, text as UTF-8. Raises one of READ_ERRORS, now or while reading.

    most: the bytes it may unpack to, where that is not for its own size to say.
    """
    lines = path.lines if isinstance(path, Part) else None
    stream = _unpacked(path, most)
    if lines is None:
        return stream
    return cast(BinaryIO, io.BufferedReader(_OnlyLines(stream, lines)))


def _unpacked(path: Path, most: int | None) -> BinaryIO:
    kept = _small(path)
    if kept is not None and kept.plain:
        return io.BytesIO(kept.content)
    stream: BinaryIO = path.open("rb") if kept is None else io.BytesIO(kept.content)
    try:
        head = _head(stream)
        for magic, unpacking in _PACKINGS.items():
            if head.startswith(magic):
                most = most or max(UNSUSPICIOUS_BYTES, path.stat().st_size * LARGEST_RATIO)
                bounded = _Bounded(unpacking(stream), stream, most)
                stream = cast(BinaryIO, io.BufferedReader(bounded, 1 << 17))
                head = _head(stream)
                break
        encoding = _encoding(head)
        if encoding is not None:
            return cast(BinaryIO, io.BufferedReader(_AsUtf8(stream, encoding)))
    except BaseException:
        stream.close()
        raise
    return stream


def _small(path: Path) -> _Kept | None:
    """A small file, which is kept until another one is opened: a dozen readers ask what it is, one
    after the other."""
    global _kept
    about = path.stat()
    # What was written just now may be written again within the same time stamp.
    old = time.time_ns() - about.st_mtime_ns > _STAMPS_DIFFER
    if not stat.S_ISREG(about.st_mode) or about.st_size > _SMALL or not old:
        return None
    told = (about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns)
    if told != _kept.about:
        content = path.read_bytes()
        head = content[:64]
        _kept = _Kept(told, content, plain=not is_packed(head) and _encoding(head) is None)
    return _kept


def _head(stream: BinaryIO) -> bytes:
    """The first bytes, which stay to be read."""
    if isinstance(stream, io.BytesIO):
        head = stream.read(64)
        stream.seek(0)
        return head
    return cast(_Peekable, stream).peek(64)[:64]


def _encoding(head: bytes) -> str | None:
    """The encoding of text that is no UTF-8, by its byte order mark or by zeros in every other
    byte."""
    for mark, encoding in _BYTE_ORDER_MARKS:
        if head.startswith(mark):
            return encoding
    even, odd = head[0:64:2], head[1:64:2]
    if len(odd) >= 8 and even.isascii() and odd.isascii():
        if not any(odd) and all(32 <= b < 127 or b in b"\t\r\n" for b in even):
            return "utf-16-le"
        if not any(even) and all(32 <= b < 127 or b in b"\t\r\n" for b in odd):
            return "utf-16-be"
    return None


def lines_of(path: Path) -> Iterator[bytes]:
    """The file's lines up to its end, or to where it cannot be read any more."""
    try:
        with open_unpacked(path) as stream:
            yield from stream
    except READ_ERRORS:
        return


def without_holes(text: bytes) -> bytes:
    """The text without the runs of zeros that a power failure leaves where nothing was written."""
    return _HOLE.sub(b"", text) if b"\0" in text else text


def is_no_text(head: bytes) -> bool:
    """Whether a file that begins so is none of text: it begins with a zero, as segments and indexes
    do, or holds many. A few are the characters of somebody's name, or where a write broke off."""
    text = without_holes(head)[:_ZEROS_WITHIN]
    if not text:
        return bool(head)
    return text.startswith(b"\0") or text.count(0) > len(text) // _TEXT_FOR_A_ZERO


def read_up_to(stream: BinaryIO, size: int) -> bytes:
    """As `read`, but what comes before a damaged place is answered before the error is raised."""
    pieces: list[bytes] = []
    left = size
    try:
        while left and (piece := cast(io.BufferedReader, stream).read1(left)):
            pieces.append(piece)
            left -= len(piece)
    except READ_ERRORS:
        if not pieces:
            raise
    return b"".join(pieces)
