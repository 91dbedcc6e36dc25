"""Files and folders as the jobs are given them: of the machine's file system, or of a Hadoop one.

A path without a scheme, or of `file:`, is pathlib's. One of another scheme (`hdfs:`, `abfss:`, ..)
is a HadoopPath: it answers those of pathlib's methods that the jobs call, by the file systems that
the Java beside Spark knows (replication/spark/hadoop_files.py gives them). `catalog:SCHEMA` is the
folder of a schema of Spark's catalog.
"""

import argparse
import fnmatch
import io
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import total_ordering
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Protocol
from urllib.parse import quote, unquote, urlsplit

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")
_ROOTED = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
SCHEMA_OF = re.compile(r"catalog:(\w+(?:\.\w+)?)")
# Not Hadoop's: a mount of Databricks' own, whose clusters the jobs do not run on.
_REFUSED = ("dbfs",)


@dataclass(frozen=True)
class Status:
    """What a look at a file tells, by the names of os.stat_result. st_mtime: seconds."""

    st_size: int
    st_mtime: float
    is_folder: bool
    st_ino: int = 0

    @property
    def st_mtime_ns(self) -> int:
        """The time of change in nanoseconds; stores keep milliseconds or seconds."""
        return int(self.st_mtime * 1000) * 1_000_000


class Files(Protocol):
    """What a HadoopPath asks of its file system. Each raises OSError."""

    def qualified(self, uri: str) -> str:
        """The path with its authority, as Spark names it; of `catalog:SCHEMA` the schema's."""

    def status(self, uri: str) -> Status | None:
        """None where there is nothing."""

    def listed(self, uri: str) -> list[tuple[str, Status]]:
        """Names in a folder."""

    def opened(self, uri: str) -> BinaryIO:
        """For reading, from any place."""

    def write(self, uri: str, data: bytes) -> None:
        """Puts a file there, in place of one that is there; folders above it are made."""

    def rename(self, uri: str, target: str) -> None:
        """In place of a file that is there."""

    def delete(self, uri: str, wholly: bool) -> bool:
        """A file or folder, wholly: with all that is in it; whether it was there."""

    def make_folder(self, uri: str) -> None:
        """With those above it."""

    def touch(self, uri: str, seconds: float) -> None:
        """Sets the time of change, where the store can."""


_bound: list[Files] = []


def bind(files: Files) -> None:
    """Gives HadoopPaths of this process what they work by."""
    _bound[:] = [files]


def is_bound() -> bool:
    """Whether HadoopPaths of this process work."""
    return bool(_bound)


def _files() -> Files:
    if not _bound:
        raise OSError("no Spark session has been started: nothing of a Hadoop file system is known")
    return _bound[0]


@total_ordering
class HadoopPath:
    """A path of a Hadoop file system; its methods are pathlib's of the same names."""

    def __init__(self, text: str) -> None:
        self._text = text if text.endswith(":/") or text.endswith("://") else text.rstrip("/")

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"HadoopPath({self._text!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HadoopPath) and self._text == other._text

    def __lt__(self, other: "HadoopPath") -> bool:
        return self._text < other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __truediv__(self, name: str) -> "HadoopPath":
        return HadoopPath(f"{self._text.rstrip('/')}/{name}")

    @property
    def name(self) -> str:
        """The last part; "" of a file system's root."""
        return PurePosixPath(urlsplit(self._text)._replace(scheme="", netloc="").geturl()).name

    @property
    def stem(self) -> str:
        """The name without its ending."""
        return PurePosixPath(self.name).stem

    @property
    def suffix(self) -> str:
        """The ending of the name, with its dot."""
        return PurePosixPath(self.name).suffix

    @property
    def parent(self) -> "HadoopPath":
        """The folder around it; the root's own is the root."""
        return HadoopPath(self._text.rpartition("/")[0] + "/") if self.name else self

    def with_name(self, name: str) -> "HadoopPath":
        """Beside it."""
        return self.parent / name

    def with_suffix(self, suffix: str) -> "HadoopPath":
        """Beside it, of another ending."""
        return self.with_name(self.stem + suffix)

    def absolute(self) -> "Path | HadoopPath":
        """With its authority, and a schema's own folder, once a session has been started. Raises
        FileNotFoundError where the catalog has no such schema."""
        return folder(_files().qualified(self._text)) if _bound else self

    def as_uri(self) -> str:
        """As an address: what has another meaning in one is written in its code."""
        scheme, colon, rest = self._text.partition(":")
        return scheme + colon + quote(rest, safe="/:@=,+;!~*'()$&")

    def stat(self) -> Status:
        """Raises FileNotFoundError."""
        found = _files().status(self._text)
        if found is None:
            raise FileNotFoundError(2, "No such file or directory", self._text)
        return found

    def exists(self) -> bool:
        """Whether anything is there."""
        return _files().status(self._text) is not None

    def is_file(self) -> bool:
        """Whether a file is there."""
        found = _files().status(self._text)
        return found is not None and not found.is_folder

    def is_dir(self) -> bool:
        """Whether a folder is there."""
        found = _files().status(self._text)
        return found is not None and found.is_folder

    def listed(self) -> list[tuple["HadoopPath", Status]]:
        """What is in the folder, with what a look at it tells. Raises FileNotFoundError."""
        return [(self / name, status) for name, status in _files().listed(self._text)]

    def iterdir(self) -> Iterator["HadoopPath"]:
        """What is in the folder."""
        return (path for path, _ in self.listed())

    def glob(self, pattern: str) -> Iterator["HadoopPath"]:
        """What matches, part by part; nothing where the folder is missing."""
        first, _, rest = pattern.partition("/")
        try:
            found = self.listed()
        except (FileNotFoundError, NotADirectoryError):
            return
        for path, status in found:
            if not fnmatch.fnmatchcase(path.name, first):
                continue
            if not rest:
                yield path
            elif status.is_folder:
                yield from path.glob(rest)

    def mkdir(self, parents: bool = False, exist_ok: bool = False) -> None:
        """With those above it, as such file systems do."""
        if not exist_ok and self.exists():
            raise FileExistsError(17, "File exists", self._text)
        _files().make_folder(self._text)

    def open(self, mode: str = "rb") -> BinaryIO:
        """For reading bytes."""
        assert mode == "rb"
        return _files().opened(self._text)

    def read_bytes(self) -> bytes:
        """All of it."""
        with self.open() as stream:
            return stream.read()

    def read_text(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        """All of it, line ends as \\n."""
        with io.TextIOWrapper(self.open(), encoding, errors) as stream:
            return stream.read()

    def write_bytes(self, data: bytes) -> int:
        """In place of what is there; others may see a part of it meanwhile. Its size."""
        _files().write(self._text, data)
        return len(data)

    def write_text(self, text: str, encoding: str = "utf-8") -> None:
        """As write_bytes."""
        self.write_bytes(text.encode(encoding))

    def unlink(self, missing_ok: bool = False) -> None:
        """Deletes a file."""
        if not _files().delete(self._text, False) and not missing_ok:
            raise FileNotFoundError(2, "No such file or directory", self._text)

    def rmdir(self) -> None:
        """Deletes a folder. Raises OSError where anything is in it."""
        _files().delete(self._text, False)

    def remove(self) -> None:
        """Deletes a folder with all that is in it; nothing where it is not there."""
        _files().delete(self._text, True)

    def touch(self, seconds: float) -> None:
        """Sets the time of change, where the store can."""
        _files().touch(self._text, seconds)


Place = Path | HadoopPath


def matching(folder: Place, pattern: str) -> list[Place]:
    """What matches in a folder, in the order of its names."""
    return sorted((path for path in folder.glob(pattern)), key=str)


def rename(path: Place, target: Place) -> None:
    """Gives a file another name in the same file system, in place of one that is there."""
    if isinstance(path, HadoopPath):
        _files().rename(str(path), str(target))
    else:
        os.replace(path, str(target))


def place(text: str) -> Place:
    """The path that a text names which the jobs have written themselves."""
    return HadoopPath(text) if _ROOTED.match(text) else Path(text)


def folder(text: str) -> Place:
    """The path of an argument, `file:` taken off. For argparse: refuses what is no file system."""
    found = _SCHEME.match(text)
    if found is None:
        return Path(text)
    scheme = found[1].lower()
    if scheme == "file":
        parts = urlsplit(text)
        if parts.netloc in ("", "localhost"):
            return Path(unquote(parts.path))
    elif scheme not in _REFUSED and _ROOTED.match(text):
        return HadoopPath(scheme + text[len(found[1]) :])
    raise argparse.ArgumentTypeError(
        f"{text}: neither a path of the machine's file system nor one (SCHEME://HOST/..) of a "
        "Hadoop file system that driver and every worker reach (docs/running.md)"
    )


def label(folder: Place) -> str:
    """How metrics name a folder: alike by whichever of its paths it was given, with `..` in it or a
    link."""
    return str(folder.resolve() if isinstance(folder, Path) else folder.absolute())


TABLES_HELP = "the Delta tables; catalog:SCHEMA are those of a schema of Spark's catalog"


def tables_folder(text: str) -> Place:
    """As `folder`, or of `catalog:SCHEMA`. For argparse."""
    return HadoopPath(text) if SCHEMA_OF.fullmatch(text) else folder(text)


def plain_folder(text: str) -> Place:
    """As `folder`, of a folder that Spark's file source follows: in its path no sign of patterns,
    since of n files below such a path it reads each n times (DataSource.checkAndGlobPathIfNecessary
    without globbing). For argparse."""
    path = folder(text)
    signs = sorted(set(str(path.absolute())) & set("{}[]*?\\"))
    if signs:
        raise argparse.ArgumentTypeError(
            f"{path}: has {' '.join(signs)} in its path, which Spark's file source takes for signs "
            "of a pattern: name another folder"
        )
    return path
