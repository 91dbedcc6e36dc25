"""Text from evidence made safe to show: never markup, and nothing in it that cannot be seen."""

import html
import unicodedata

# Controls, formats (they can turn the reading direction round), surrogates, separators.
UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def plain(text: str) -> str:
    """The text with every character that does not show itself written as its code point."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(f"\\u{{{ord(c):x}}}" if unicodedata.category(c) in UNSEEN else c for c in text)


def escaped(text: object) -> str:
    """Text for the inside of an HTML element or a quoted attribute."""
    return html.escape(plain(str(text)), quote=True)
