"""Says on stderr how far a command is, once it takes longer than people wait in silence.

For those who collect logs, each line on stderr is an object of JSON where the environment asks so.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from datetime import UTC, datetime
from typing import Any, TextIO, TypeVar, cast

# json: each line is an object.
LOG_FORMAT = "REPLICATION_ANALYZER_LOG"
INFO, WARNING, ERROR = "info", "warning", "error"
# The tool names itself where it says why it did not do what it was asked; a job's last line is told
# apart by who prints it.
_ERRORS = ("replication-analyzer:", "replication-analyzer ", "Traceback ")
_DEFECT = ": a defect of this tool: "
_WARNINGS = ("note: ", "silent: ", "unreadable: ", "left aside: ", "left for later")
PATIENCE_SECONDS = 2.0
# Where nothing can be counted the same is said again after this, at most.
_LONGEST_SECONDS = 30.0
Item = TypeVar("Item")


class _Voice:
    """What is going on, since when, and when something was last said of it."""

    def __init__(self) -> None:
        self.doing = "working"
        self.began = self.last = time.monotonic()

    def say(self, text: str) -> None:
        """Says it, if nothing was said for a while."""
        now = time.monotonic()
        if now - self.last >= PATIENCE_SECONDS:
            self.last = now
            line = f"... {text}"
            is_in_form = isinstance(sys.stderr, _Lines)
            print(line if is_in_form else line_of(line), file=sys.stderr, flush=True)


_voice = _Voice()


def doing(what: str) -> None:
    """What the command does from now on, as `told` says it: `reading the evidence`."""
    _voice.doing, _voice.began = what, time.monotonic()


def is_json() -> bool:
    """Whether the environment asks for a line of JSON for each that goes to stderr."""
    return os.environ.get(LOG_FORMAT) == "json"


def level_of(text: str) -> str:
    """How much a line matters to whoever is on call, by how it begins."""
    if text.startswith(_ERRORS) or _DEFECT in text:
        return ERROR
    return WARNING if text.startswith(_WARNINGS) else INFO


def line_of(text: str, level: str | None = None, **figures: Any) -> str:
    """A line as it is printed: the words, or where the environment asks for it an object of JSON
    with `at` (ISO 8601), `level`, `message` and what else is known. level: None, as it begins."""
    if not is_json():
        return text
    at = datetime.now(UTC).isoformat(timespec="milliseconds")
    return json.dumps({"at": at, "level": level or level_of(text), "message": text, **figures})


class _Lines:
    """A stream whose lines are written to another, each as `line_of` has it."""

    def __init__(self, inner: TextIO) -> None:
        self._inner, self._begun = inner, ""

    def write(self, text: str) -> int:
        *whole, self._begun = (self._begun + text).split("\n")
        for line in whole:
            self._inner.write(f"{line_of(line)}\n")
        return len(text)

    def end(self) -> None:
        """Writes a line that has not ended."""
        if self._begun:
            self.write("\n")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


@contextmanager
def lines_as_asked() -> Iterator[None]:
    """While it lasts, what goes to stderr is in the form that the environment asks for."""
    if not is_json():
        yield
        return
    lines = _Lines(sys.stderr)
    with redirect_stderr(cast(TextIO, lines)):
        try:
            yield
        finally:
            lines.end()


@contextmanager
def told() -> Iterator[None]:
    """Within it a silence ends with what is being done."""
    _voice.last = time.monotonic()
    done = threading.Event()
    threading.Thread(target=_break_silence, args=(done,), daemon=True).start()
    try:
        yield
    finally:
        done.set()


def _break_silence(done: threading.Event) -> None:
    wait = PATIENCE_SECONDS
    while not done.wait(wait):
        before = _voice.last
        _voice.say(f"{_voice.doing}, {time.monotonic() - _voice.began:.0f} s so far")
        wait = min(2 * wait, _LONGEST_SECONDS) if _voice.last != before else PATIENCE_SECONDS


def steps(items: Sequence[Item], what: str) -> Iterator[Item]:
    """The items one by one, with a word on how many of them are done."""
    for number, item in enumerate(items):
        yield item
        _voice.say(f"{number + 1} of {len(items)} {what}")


def spread(inner: Callable[..., Iterable[Any]]) -> Callable[..., Iterator[Any]]:
    """As inner (`map`, perhaps over many processes), with a word on how many are done."""

    def mapped(function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        every = list(items)
        for number, result in enumerate(inner(function, every)):
            yield result
            _voice.say(f"{number + 1} of {len(every)} files or folders read")

    return mapped
