"""Who may write: a query's newest writer holds the lease, an older one stops at its next commit.

The lease is a small file beside the tables. Commits hold its lock shared, taking the lease holds it
alone: so no commit of the older writer lands after the newer one has begun. That needs a file
system on which flock works, as local ones do. A checkpoint directory is locked for the life of a
process: two streams on one checkpoint are refused at once.

Hadoop's file systems know no such lock. There the lease is looked at before each commit, and a
process that stood still between the look and the commit may make that one yet: Delta's transaction
ids keep it from repeating what the newer one has written. Of two streams on one checkpoint the
older stops at its next commit.
"""

import fcntl
import json
import os
import socket
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from replication.places import Place, rename

FOLDER = "_lease"


class LeaseLostError(RuntimeError):
    """Another writer has taken over these tables; the text says which."""


class LockedError(RuntimeError):
    """Another process works on this checkpoint directory; the text says which."""


@dataclass
class Lease:
    """The right of one process to write what a query writes into the tables of a folder."""

    tables: Place
    query: str
    holder: str = field(default_factory=lambda: uuid.uuid4().hex)

    def take(self, run: str) -> None:
        """Takes the lease, whoever has it now."""
        note = {"holder": self.holder, "run": run, **_this_process()}
        (self.tables / FOLDER).mkdir(parents=True, exist_ok=True)
        with self._locked(fcntl.LOCK_EX):
            partial = self._path.with_suffix(".partial")
            partial.write_text(json.dumps(note), encoding="utf-8")
            rename(partial, self._path)

    @contextmanager
    def held(self) -> Iterator[None]:
        """While a commit is made. Raises LeaseLostError where another process has taken over."""
        with self._locked(fcntl.LOCK_SH):
            self._check()
            yield

    @contextmanager
    def alone(self) -> Iterator[None]:
        """While no commit of a stream is made: each waits, where the file system has locks."""
        if (self.tables / FOLDER).is_dir():
            with self._locked(fcntl.LOCK_EX):
                yield
        else:
            yield

    def _check(self) -> None:
        try:
            note = json.loads(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise LeaseLostError(f"{self._path} cannot be read any more: {error}") from None
        if note.get("holder") != self.holder:
            raise LeaseLostError(
                f"run {note.get('run')!r} ({_named(note)}) has taken over the {self.query} tables "
                f"of {self.tables}: this process stops writing"
            )

    def last_writer(self) -> str:
        """The process that took the lease last, in words."""
        try:
            return _named_by(self._path.read_text(encoding="utf-8"))
        except OSError:
            return _named_by("")

    @property
    def _path(self) -> Place:
        return self.tables / FOLDER / f"{self.query}.json"

    @contextmanager
    def _locked(self, how: int) -> Iterator[None]:
        lock = self.tables / FOLDER / "lock"
        if not isinstance(lock, Path):
            yield
            return
        with lock.open("a") as file:
            fcntl.flock(file, how)
            yield


@dataclass
class CheckpointLock:
    """A checkpoint directory, for the life of one process. of: the job that works on it; instead:
    what another one can be given."""

    folder: Place
    of: str = "stream"
    instead: str = "a --checkpoint-dir and tables of its own"
    _file: IO[str] | None = None
    _made: bool = False

    def take(self) -> None:
        """Raises LockedError where another process has it."""
        self._made = not self.folder.is_dir()
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / "lock"
        if not isinstance(path, Path):
            path.write_text(json.dumps(_this_process()))
            return
        self._file = path.open("a+", encoding="utf-8")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.seek(0)
            text = self._file.read()
            self._file.close()
            self._file = None
            raise LockedError(
                f"{self.folder} is in use by another {self.of} ({_named_by(text)}): stop that one, "
                f"or give this one {self.instead}"
            ) from None
        if not path.exists() or not os.path.samestat(os.fstat(self._file.fileno()), path.stat()):
            # Who had it has just ended, and taken the file along: a lock on that keeps nobody out.
            self._file.close()
            return self.take()
        self._file.truncate(0)
        self._file.write(json.dumps(_this_process()))
        self._file.flush()

    def release(self) -> None:
        """Lets others in. A folder that was made for the lock, and got no more, goes with it."""
        if self._file is None:
            return
        with suppress(OSError):
            if self._made and [path.name for path in self.folder.iterdir()] == ["lock"]:
                (self.folder / "lock").unlink()
                self.folder.rmdir()
        self._file.close()


def _this_process() -> dict[str, Any]:
    return {"process": os.getpid(), "host": socket.gethostname()}


def _named(note: dict[str, Any]) -> str:
    return f"process {note.get('process')} on {note.get('host')}"


def _named_by(text: str) -> str:
    try:
        return _named(json.loads(text))
    except ValueError:
        return "of which nothing is known"
