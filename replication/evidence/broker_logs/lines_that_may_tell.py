"""Which of many lines may hold a message that line families know, whole or wrapped into several.

In a week of logs almost nothing tells, so a line must cost nothing but being passed over. One scan
of all lines stops only where a message may begin: with a family's first word, behind whatever
is before messages. There the words of the family's trigger are looked for. Whether a text has
anything else that tells, an automaton says at once. What is found may be too much, never too
little: it is taken apart elsewhere.
"""

import html
import re
import struct
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from html.entities import html5

import pyarrow as pa
import pyarrow.compute as pc

from replication.evidence.broker_logs.line_families import FAMILIES
from replication.evidence.broker_logs.line_headers import HEADER_PATTERN, LEVEL, LEVELS
from replication.evidence.broker_logs.loggers_in_lines import WRITER_IN_BRACKETS

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
_IN_DISGUISE = rb"&|\x1b\[|\xc2\xa0|\xe2\x80[\xaf\x98\x99\x9c\x9d]"
_DISGUISED = re.compile(
    rb"&(?:#|"
    + _any_of(name for name in _ENTITIES if not name.startswith("#")).encode()
    + _IN_DISGUISE.replace(b"&", b")", 1)
)


def undisguised(text: str) -> str:
    """The text without what pages, terminals and word processors made of it."""
    return html.unescape(_COLOURS.sub("", text)).translate(_WRITTEN)


_Parts = tuple[bytes, ...]


def _parts(trigger: str) -> _Parts:
    return tuple(part.encode() for part in trigger.split())


_OF_ANY_WORD = tuple(_parts(family.trigger) for family in FAMILIES if not family.words)
# First words, and the words of each trigger that may come with them, the longest first.
_TRIGGERS: dict[bytes, tuple[tuple[bytes, _Parts], ...]] = {
    word.encode(): tuple(
        (max(_parts(f.trigger), key=len, default=b""), _parts(f.trigger))
        for f in FAMILIES
        if word in f.words
    )
    for word in {word for family in FAMILIES for word in family.words}
}

# Behind a line that was disguised is a zero byte: it is none in Kafka's own layout.
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
_LEVEL = rb"(?:\[?+" + LEVEL + rb"\]?+[ \t:]++)?+"
# Behind a broker's logger a line in Kafka's own layout ends; nothing in it is disguised.
_BROKERS_LOGGER = rb"\((?:kafka|org\.apache\.kafka|state\.change)\."
_IN_LAYOUT_TO_ITS_END = (
    rb"[^\n(&\x00]*+(?:(?!" + _BROKERS_LOGGER + rb")\([^\n(&\x00]*+)*+"
    rb"(?:" + _BROKERS_LOGGER + rb"[\w.$\x80-\xff]++(?::\d++)?+\))\r*+\n"
)
# Of what is beneath a line most is stacks, which begin no message.
_LINE_START = (  # fmt: skip
    rb"\n(?!\tat )(?>(?P<kafkas>"
    + _KAFKAS
    + rb")[ \t:]*+|"
    + _QUOTED
    + _ANY_HEADER
    + rb")"
    + _LEVEL
    + _MESSAGE
)
_AT_LINE_START = re.compile(_LINE_START)
_AT_OTHER_LINE_START = re.compile(_LINE_START + rb"(?(kafkas)(?!" + _IN_LAYOUT_TO_ITS_END + rb"))")
_LATER_HEADER = rb"[^\n]" + _KAFKAS
_BEHIND_KAFKAS_HEADER = re.compile(rb"\[(?<!\n\[)" + _KAFKAS[2:] + _MESSAGE)
# What names a broker, but for behind a header of Kafka's, where it is looked for already.
_WRITER_WITHIN = re.compile(
    rb"\["
    + b"".join(rb"(?<!,\d{3}\] " + level + rb" \[)" for level in LEVELS)
    + WRITER_IN_BRACKETS[2:].encode()
)
_SETTINGS = re.compile(rb"KafkaConfig values:")
_BEHIND_WRITER = re.compile(_MESSAGE)
# What is before a message and its first word, whatever line ends and quotation are between.
_GAP = rb"(?: |" + _BLANK + rb"*+[\n\x00]" + _QUOTED + rb")"
_SPREAD = re.compile(
    rb"(?:\[?\d(?s:.){4,200}?" + LEVEL + rb"(?:[\t:]|" + _GAP + rb")++)?+"
    rb"(?:\[[^\]]*+\](?:[,:]|" + _GAP + rb")*+|Partition" + _GAP + rb"++\[(?s:.)*?:" + _GAP + rb"++"
    rb"|Broker" + _GAP + rb"++(?:\S++" + _GAP + rb"++)??"
    rb"|Controller" + _GAP + rb"++(?:\S++" + _GAP + rb"++){0,3}?)?" + _FIRST_WORD
)


# What an exception says.
THROWN = (
    "mismatch for", "in append to", "Cannot increment", "UNKNOWN_LEADER", "newer epoch",
    "processing data for",
)  # fmt: skip
# What says something wherever it is in a line: that, and what tools print.
_ANYWHERE = tuple(word.encode() for word in (*THROWN, ": partition ", "(UNCLEAN)"))
_OF_ANY = tuple(max(parts, key=len) for parts in _OF_ANY_WORD)
_MARKS = b"|".join(
    (*map(re.escape, (*_ANYWHERE, *_OF_ANY, b"=3D")), _LATER_HEADER, _IN_DISGUISE)
).decode("ascii")


def _is_marked(text: bytes) -> bool:
    """Whether a text has anything to be looked for but messages where lines begin: words that say
    something wherever they are, headers within lines, what pages and mail make of a text. RE2 looks
    at each byte once, for all of that."""
    place = pa.py_buffer(struct.pack("=ii", 0, len(text)))
    # Not by pa.array, which imports pandas where there is one.
    value = pa.Array.from_buffers(pa.binary(), 1, [None, place, pa.py_buffer(text)])
    return bool(pc.match_substring_regex(value, _MARKS)[0].as_py())


class Lines:
    """The lines of a text, to be searched. text: without the line end of its last line. marked: it
    has more than messages where lines begin."""

    def __init__(self, text: bytes) -> None:
        self._text = b"\n%b\n" % text
        self.marked = _is_marked(text)
        disguised = self.matching(_DISGUISED) if self.marked else ()
        if disguised:
            shown = text.split(b"\n")
            for place in disguised:
                bare = undisguised(shown[place].decode("utf-8", "replace"))
                shown[place] = bare.encode("utf-8", "replace").replace(b"\n", b" ") + b"\0"
            self._text = b"\n%b\n" % b"\n".join(shown)

    def with_any(self, words: Sequence[bytes]) -> set[int]:
        """The places of the lines that hold one of the words."""
        return {n for word in words for n in _lines_of(_finds(word, self._text), self._text)}

    def matching(self, pattern: re.Pattern[bytes]) -> set[int]:
        """The places of the lines in which the pattern is found."""
        return set(_lines_of((m.start() for m in pattern.finditer(self._text)), self._text))

    def that_may_tell(self, *, headed: bool) -> list[int]:
        """The places of the lines that something may be read from, by themselves or together with
        those that they were wrapped into."""
        messages = self.with_messages(headed=headed)
        return sorted(messages | self.with_any(_ANYWHERE) if self.marked else messages)

    def with_messages(self, *, headed: bool) -> set[int]:
        """The places of the lines that may be a message, or the first line of one. headed: those in
        Kafka's own layout too, and a broker's prefix may be behind anything; without, lines in
        that layout only where a line has more than that."""
        text = self._text
        found: set[int] = set()
        empty: set[int] = set()
        begins = _AT_LINE_START if headed else _AT_OTHER_LINE_START
        for pattern in (begins, _BEHIND_KAFKAS_HEADER) if self.marked else (begins,):
            self._sort(pattern.finditer(text), found, empty)
        if headed:
            for prefix in (_WRITER_WITHIN, _SETTINGS):
                behind = (_BEHIND_WRITER.match(text, m.start()) for m in prefix.finditer(text))
                self._sort(filter(None, behind), found, empty)
        for place in self.with_any(_OF_ANY) if self.marked else ():
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
        told: list[int] = []
        untold: list[int] = []
        for begin in begins:
            word, nothing, writer, head = begin.group("word", "nothing", "writer", "head")
            start = begin.start()
            if nothing is not None:
                untold.append(start)
                continue
            # The line end before a line is its own here.
            end = start + 1
            for _ in range(WRAPPED_INTO):
                end = text.find(b"\n", end) + 1 or len(text)
            triggers = _TRIGGERS.get(word or writer or b"", ())
            if not word:
                spread = _SPREAD.match(text, begin.start("head" if head else "writer"), end)
                triggers += _TRIGGERS.get(spread["word"], ()) if spread else ()
            lines = text[start:end]
            for longest, parts in triggers:
                if longest in lines and _in_a_row(parts).search(lines):
                    told.append(start)
                    break
        found.update(_lines_of(iter(told), text))
        empty.update(_lines_of(iter(untold), text))


@cache
def _in_a_row(parts: _Parts) -> re.Pattern[bytes]:
    """The words one behind the other, wherever somebody wrapped them."""
    return re.compile((_GAP + rb"++").join(map(re.escape, parts)))


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
