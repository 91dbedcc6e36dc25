"""Says on stderr how far a command is, once it takes longer than people wait in silence."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

PATIENCE_SECONDS = 2.0
Item = TypeVar("Item")


class _Clock:
    """When the command began to be slow, and when it last said so."""

    def __init__(self) -> None:
        self.last = time.monotonic()

    def say(self, text: str) -> None:
        now = time.monotonic()
        if now - self.last >= PATIENCE_SECONDS:
            self.last = now
            print(f"... {text}", file=sys.stderr, flush=True)


def steps(items: Sequence[Item], what: str) -> Iterator[Item]:
    """The items one by one, with a word on how many of them are done."""
    clock = _Clock()
    for number, item in enumerate(items):
        yield item
        clock.say(f"{number + 1} of {len(items)} {what}")


def spread(inner: Callable[..., Iterable[Any]]) -> Callable[..., Iterator[Any]]:
    """As inner (`map`, perhaps over many processes), with a word on how many are done."""

    def mapped(function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        every = list(items)
        clock = _Clock()
        for number, result in enumerate(inner(function, every)):
            yield result
            clock.say(f"{number + 1} of {len(every)} files or folders read")

    return mapped
