"""Locks of files (flock) on file systems of the machine: who waits, and who is refused at once.

A checkpoint directory is locked for the life of a process: two streams on one checkpoint are
refused at once. A stream's commits hold the lock of the tables' folder together, and maintenance
holds it alone where they have come before its own. Hadoop's file systems know no such lock. Who may
write is said by the tables' logs, not by locks: fence.py.
"""

import fcntl
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from replication.places import Place

FOLDER = "_lease"


class LockedError(RuntimeError):
    """Another process works on this checkpoint directory; the text says which."""


@contextmanager
def commits_locked(tables: Place, *, alone: bool = False) -> Iterator[None]:
    """While a commit is made to tables of a folder. alone: while no other process makes one: each
    waits, where the file system has locks, and a stream has written there."""
    folder = tables / FOLDER
    if not isinstance(folder, Path) or not folder.is_dir():
        yield
        return
    with (folder / "lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
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
