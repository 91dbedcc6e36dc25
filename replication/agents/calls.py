"""Runs one command of the tool in a process of its own: what it prints is the answer."""

import asyncio
import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

from replication.progress import LOG_FORMAT

# An answer that no assistant can read; whoever asks narrows the question.
LARGEST = 16 << 20


class NotPossible(ValueError):
    """The command cannot be called so, or prints more than LARGEST bytes; the text says which."""


@dataclass(frozen=True, slots=True)
class Called:
    """status: the exit status. out, error: all that was printed."""

    status: int
    out: str
    error: str


async def call(words: list[str], root: Path) -> Called:
    """Runs the command with root as its working directory; ends it where the call is cancelled.

    Raises NotPossible.
    """
    for word in words:
        if "\0" in word or not word.isprintable():
            raise NotPossible(f"{word!r}: has a character that no name can have")
    # -P: nothing is imported from the working directory, which holds what a stranger wrote.
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "replication", *words),
        cwd=root,
        env={
            **_environment(),
            "PYTHONPATH": os.pathsep.join(map(os.path.abspath, filter(None, sys.path))),
        },
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        out, error = await asyncio.gather(_all_of(process.stdout), _all_of(process.stderr))
        status = await process.wait()
    finally:
        if process.returncode is None:
            # The processes that read files for it are of its group.
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    return Called(status, out.decode("utf-8", "replace"), error.decode("utf-8", "replace"))


def _environment() -> dict[str, str]:
    """That of the server; notes are text in an answer, in whatever form the server logs."""
    return {name: value for name, value in os.environ.items() if name != LOG_FORMAT}


async def _all_of(stream: asyncio.StreamReader) -> bytes:
    parts, size = [], 0
    while part := await stream.read(1 << 16):
        parts.append(part)
        size += len(part)
        if size > LARGEST:
            raise NotPossible(
                f"the answer has more than {LARGEST >> 20} MiB: ask for one topic, or fewer records"
            )
    return b"".join(parts)
