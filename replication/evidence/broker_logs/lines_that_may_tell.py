"""Which of many lines may hold a message that line families know, whole or wrapped into several.

In a week of logs almost nothing tells, so a line must cost nothing but being passed over. One scan
of all lines stops only where a message may begin: with a family's first word, behind whatever
is before messages. There the words of the family's trigger are looked for. What is found may
be too much, never too little: it is taken apart elsewhere.
"""

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from html.entities import html5

from replication.evidence.broker_logs.line_families import FAMILIES
from replication.evidence.broker_logs.line_headers import HEADER_PATTERN, LEVEL
from replication.evidence.broker_logs.loggers_in_lines import BROKERS_PREFIX_BYTES

# A message that somebody wrapped lies in at most so many lines.
WRAPPED_INTO = 3
_COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
# What mail, chats and word processors make of blanks and quotation marks.
TYPOGRAPHY = {
    "\u00a0": " ", "\u202f": " ", "\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"',
}  # fmt: skip
_WRITTEN = str.maketrans(TYPOGRAPHY)


def _any_of(words: Iterable[str]) -> str:
    """A pattern for the longest of the words that is there: a letter is looked at once."""
    by_first: dict[str, set[str]] = {}
    ends = False
    for word in words:
        ends = ends or not word
        if word:
            by_first.setdefault(word[0], set()).add(word[1:])
    branches = [re.escape(first) + _any_of(by_first[first]) for first in sorted(by_first)]
    return f"(?:{'|'.join(branches)})" + "?+" * ends if branches else ""


# Entities that stand for what messages hold: ASCII, or typography of it.
_ENTITIES = sorted(
    {name for name, text in html5.items() if text.isascii() or text in TYPOGRAPHY}, key=len
)
_DISGUISES = tuple(
    re.compile(what)
    for what in (
        rb"&(?:#|"
        + _any_of(name for name in _ENTITIES if not name.startswith("#")).encode()
        + rb")",
        rb"\x1b\[",
        rb"\xc2\xa0",
        rb"\xe2\x80[\xaf\x98\x99\x9c\x9d]",
    )
)


def undisguised(text: str) -> str:
    """The text without what pages, terminals and word processors made of it."""
    return html.unescape(_COLOURS.sub("", text)).translate(_WRITTEN)


_Parts = tuple[bytes, ...]


def _parts(trigger: str) -> _Parts:
    return tuple(part.encode() for part in trigger.split())


_OF_ANY_WORD = tuple(_parts(family.trigger) for family in FAMILIES if not family.words)
# First words, and the words of each trigger that may come with them.
_TRIGGERS: dict[bytes, tuple[_Parts, ...]] = {
    word.encode(): tuple(_parts(f.trigger) for f in FAMILIES if word in f.words)
    for word in {word for family in FAMILIES for word in family.words}
}

# One line may have several texts of it, a zero byte between them.
_END = rb"(?=[\n\x00])"
# Blanks as text has them; those beyond ASCII are of bytes beyond it, whatever these mean.
_BLANK = rb"[ \t\r\x0b\x0c\x1c-\x1f\x80-\xff]"
_QUOTED = (
    rb"(?:[>|`*]|" + _BLANK + rb"|-" + _BLANK + rb"|\d{1,5}[:.)]" + _BLANK + rb"|[^\s@]++@\S++"
    rb"(?<=[:$#])" + _BLANK + rb")*+"
)
_ANY_HEADER = rb"(?>" + re.sub(rb"\?P<\w+>", b"?:", HEADER_PATTERN) + rb")?+"
_FIRST_WORD = (
    rb"(?P<word>" + _any_of(word.decode() for word in _TRIGGERS).encode() + rb")(?=[\s\[\x00])"
)
_KAFKAS = rb"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\] (?:TRACE|DEBUG|INFO|WARN|ERROR|FATAL) "
# A line that ends before its message begins.
_PART_OF_HEADER = (
    rb"(?P<head>\[?+(?=\d)(?:\d{4}-\d\d-\d\d)?+[ T]?+(?:\d\d:\d\d:\d\d[^\s\]\x00]*+)?+"
    rb"(?: (?:UTC|GMT|[+-]\d\d:?\d\d))?+\]?+"
    + _BLANK
    + rb"*+(?:\[[^\]\n\x00]*+\]?+)?+"
    + _BLANK
    + rb"*+(?:"
    + LEVEL
    + rb":?+)?+"
    + _BLANK
    + rb"*+"
    + _END
    + rb")"
)
# A message, behind what names its writer; the next lines may have more of either.
_MESSAGE = (
    rb"(?:(?P<writer>\[[^\]\n\x00]*+" + _END + rb"|(?:Partition|Broker|Controller)(?=[\s\x00]))"
    rb"|(?:\[[^\]\n\x00]*+\])?+[,: ]*+(?:" + _FIRST_WORD + rb"|(?P<nothing>" + _BLANK + rb"*+"
    rb"(?:\([^\n\x00]*+)?+" + _END + rb"))"
    rb"|" + _PART_OF_HEADER + rb")"
)
_BEFORE_MESSAGE = _QUOTED + _ANY_HEADER + rb"(?:\[?+" + LEVEL + rb"\]?+[ \t:]++)?+"
_AT_LINE_START = re.compile(rb"\n" + _BEFORE_MESSAGE + _MESSAGE)
# A whole line in Kafka's own layout: nothing is behind its logger, nothing in it is disguised.
_BROKERS_LOGGER = rb"\((?:kafka|org\.apache\.kafka|state\.change)\."
_IN_LAYOUT = (
    _KAFKAS + rb"[^\n(&\x00]*+(?:(?!" + _BROKERS_LOGGER + rb")\([^\n(&\x00]*+)*+"
    rb"(?:" + _BROKERS_LOGGER + rb"[\w.$\x80-\xff]++(?::\d++)?+\))\r*+\n"
)
_AT_OTHER_LINE_START = re.compile(rb"\n(?!" + _IN_LAYOUT + rb")" + _BEFORE_MESSAGE + _MESSAGE)
_BEHIND_KAFKAS_HEADER = re.compile(rb"\[(?<!\n\[)" + _KAFKAS[2:] + _MESSAGE)
_BEHIND_WRITER = re.compile(_MESSAGE)
# What is before a message and its first word, whatever line ends and quotation are between.
_GAP = rb"(?: |" + _BLANK + rb"*+[\n\x00]" + _QUOTED + rb")"
_SPREAD = re.compile(
    rb"(?:\[?\d(?s:.){4,200}?" + LEVEL + rb"(?:[\t:]|" + _GAP + rb")++)?+"
    rb"(?:\[[^\]]*+\](?:[,:]|" + _GAP + rb")*+|Partition" + _GAP + rb"++\[(?s:.)*?:" + _GAP + rb"++"
    rb"|Broker" + _GAP + rb"++(?:\S++" + _GAP + rb"++)??"
    rb"|Controller" + _GAP + rb"++(?:\S++" + _GAP + rb"++){0,3}?)?" + _FIRST_WORD
)


class Lines:
    """Lines to be searched, all in one text."""

    def __init__(self, lines: Sequence[bytes]) -> None:
        self._text = _joined(lines)
        disguised = {n for what in _DISGUISES for n in self.matching(what)}
        if disguised:
            shown = list(lines)
            for place in disguised:
                bare = undisguised(lines[place].decode("utf-8", "replace"))
                text = bare.encode("utf-8", "replace").replace(b"\n", b" ")
                shown[place] = b"%b\0%b" % (text, lines[place])
            self._text = _joined(shown)
        self._known: dict[bytes, list[_Parts]] = {}

    def with_any(self, words: Sequence[bytes]) -> set[int]:
        """The places of the lines that hold one of the words."""
        return {n for word in words for n in _lines_of(_finds(word, self._text), self._text)}

    def matching(self, pattern: re.Pattern[bytes]) -> set[int]:
        """The places of the lines in which the pattern is found."""
        return set(_lines_of((m.start() for m in pattern.finditer(self._text)), self._text))

    def with_messages(self, *, headed: bool) -> set[int]:
        """The places of the lines that may be a message, or the first line of one. headed: those in
        Kafka's own layout too, and a broker's prefix may be behind anything; without, lines in
        that layout only where a line has more than that."""
        text = self._text
        found: set[int] = set()
        empty: set[int] = set()
        begins = _AT_LINE_START if headed else _AT_OTHER_LINE_START
        for pattern in (begins, _BEHIND_KAFKAS_HEADER):
            self._sort(pattern.finditer(text), found, empty)
        if headed:
            prefixes = BROKERS_PREFIX_BYTES.finditer(text)
            behind = (_BEHIND_WRITER.match(text, prefix.start()) for prefix in prefixes)
            self._sort(filter(None, behind), found, empty)
        for parts in _OF_ANY_WORD:
            for place in self.with_any([max(parts, key=len)]):
                found.update(range(max(0, place - WRAPPED_INTO + 1), place + 1))
        # Of a line without a message the next ones may be it.
        later = range(1, WRAPPED_INTO)
        return found | {n for n in empty if any(n + more in found for more in later)}

    def _sort(
        self,
        begins: Iterator[re.Match[bytes]],
        found: set[int],
        empty: set[int],
    ) -> None:
        text = self._text
        at, line = 0, -1
        for begin in begins:
            word, nothing, writer, head = begin.group("word", "nothing", "writer", "head")
            if word and not self._triggers(word):
                continue
            start = begin.start()
            # The line end before a line is its own here.
            line += text.count(b"\n", at, start + 1)
            at = start + 1
            if nothing is not None:
                empty.add(line)
                continue
            end = at
            for _ in range(WRAPPED_INTO):
                end = text.find(b"\n", end) + 1 or len(text)
            triggers = self._triggers(word or writer or b"")
            if not word:
                spread = _SPREAD.match(text, begin.start("head" if head else "writer"), end)
                triggers = triggers + (self._triggers(spread["word"]) if spread else [])
            if any(_holds(text, start, end, parts) for parts in triggers):
                found.add(line)

    def _triggers(self, word: bytes) -> list[_Parts]:
        """The triggers that may come with the word, as far as they are in the text at all."""
        known = self._known.get(word)
        if known is None:
            end = len(self._text)
            known = [p for p in _TRIGGERS.get(word, ()) if _holds(self._text, 0, end, p)]
            self._known[word] = known
        return known


def _joined(lines: Sequence[bytes]) -> bytes:
    return b"\n%b\n" % b"\n".join(lines)


def _holds(text: bytes, start: int, end: int, parts: _Parts) -> bool:
    return all(text.find(part, start, end) >= 0 for part in parts)


def _finds(word: bytes, text: bytes) -> Iterator[int]:
    place = text.find(word)
    while place >= 0:
        yield place
        place = text.find(word, place + 1)


def _lines_of(places: Iterator[int], text: bytes) -> Iterator[int]:
    """The number of the line of each place, which only grow; each line once."""
    at, line, last = 0, -1, -1
    for place in places:
        line += text.count(b"\n", at, place + 1)
        at = place + 1
        if line != last:
            last = line
            yield line
