"""Text from evidence made safe to show: never markup, and nothing in it that cannot be seen."""

import html
import re
import sys
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any, TextIO, cast

# Controls, formats (they can turn the reading direction round), surrogates, separators.
UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_NOT_PRINTED = re.compile(r"[^\n -~]")


def plain(text: str) -> str:
    """The text with every character that does not show itself written as its code point."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(f"\\u{{{ord(c):x}}}" if unicodedata.category(c) in UNSEEN else c for c in text)


def plain_lines(text: str) -> str:
    """The same, line ends left as they are."""
    return "\n".join(plain(line) for line in text.split("\n"))


def plain_values(value: Any) -> Any:
    """An answer, or a part of one, with every text in it plain: none can forge a line."""
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, dict):
        return {plain_values(k): plain_values(v) for k, v in value.items()}
    return [plain_values(v) for v in value] if isinstance(value, list) else value


def plain_json(text: str) -> str:
    """JSON of the same meaning in which nothing is raw that cannot be seen."""
    return _NOT_PRINTED.sub(lambda found: _escaped_in_json(found[0]), text)


def _escaped_in_json(character: str) -> str:
    if unicodedata.category(character) not in UNSEEN:
        return character
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))


def escaped(text: object) -> str:
    """Text for the inside of an HTML element or a quoted attribute."""
    return html.escape(plain(str(text)), quote=True)


class _Plain:
    """A stream to which nothing is written that steers a terminal, and no half of a character."""

    def __init__(self, inner: TextIO) -> None:
        self._inner = inner

    def write(self, text: str) -> int:
        self._inner.write(plain_lines(text))
        return len(text)

    def writelines(self, lines: list[str]) -> None:
        self.write("".join(lines))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


@contextmanager
def plain_output() -> Iterator[None]:
    """While it lasts, what is printed is plain: the last defence, behind those of each text."""
    out, err = cast(TextIO, _Plain(sys.stdout)), cast(TextIO, _Plain(sys.stderr))
    with redirect_stdout(out), redirect_stderr(err):
        yield
