"""A dump of settings whose lines two micro-batches divide is written whole where it goes on.

It is one message of hundreds of lines of which only the first says when it was printed: what comes
in a later micro-batch's file would be there without a title. Where a shipper tells each line's
byte, its lines may come in any order; where it tells none, in their own alone.
"""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

from replication.evidence.broker_logs.line_families.settings import DUMP_TITLE, settings_of_dump

INDENTED = ("\t", " ")
_CLOSING = " ("  # behind its settings, Kafka's layout names the logger
# Whose rest has not come after so many micro-batches, or what is longer, is no dump any more.
_WAITS = 20
_LONGEST = 2_000


class Line(NamedTuple):
    """A line of a log. offset: its byte as the shipper tells it; since: the micro-batch it came."""

    offset: int | None
    text: str
    since: int


def put_together(loose: list[Line], lines: list[Line]) -> tuple[list[str], list[Line]]:
    """The texts to write of one log in one micro-batch, and the lines that others may join later.

    loose: those of before. lines: of this micro-batch, in the order of the log.
    """
    if not lines or not (loose or any(_is_of_dump(line) for line in lines)):
        return [line.text for line in lines], loose
    located = all(line.offset is not None for line in (*loose, *lines))
    texts: list[str] = []
    left: list[Line] = []
    messages = list(_messages(_in_order(loose, lines, located)))
    for message, behind in pairwise([*messages, []]):
        is_dump = _is_dump(message[0].text)
        new = [line.since == lines[0].since for line in message]
        again = is_dump and any(new)
        of_now = zip(message, new, strict=True)
        texts += [line.text for line, now in of_now if now or (again and counts(line.text))]
        if is_dump and not _is_whole(message, behind, located):
            left += message
        elif located:
            left += _untitled(message)
    left = [line for line in left if lines[0].since - line.since < _WAITS]
    return texts, left if len(left) <= _LONGEST else []


def without_begins(messages: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """(stamp, text) of a log's messages, of each dump the one that tells all that others do."""
    told = {n: settings_of_dump(t.split("\n")) for n, (_, t) in enumerate(messages) if _is_dump(t)}
    for number, message in enumerate(messages):
        if number not in told or not any(
            messages[other][0] == message[0]
            and (
                told[number].items() < values.items() or (told[number] == values and other < number)
            )
            for other, values in told.items()
        ):
            yield message


def counts(line: str) -> bool:
    """Whether anything is lost with a line behind a message's first one."""
    return line[:1] not in INDENTED or line.startswith(_CLOSING) or bool(settings_of_dump([line]))


def _in_order(loose: list[Line], lines: list[Line], located: bool) -> Iterable[Line]:
    if not located:
        return [*loose, *lines] if lines[0].text[:1] in INDENTED else lines
    here = {(line.offset, line.text) for line in lines}
    before = [line for line in loose if (line.offset, line.text) not in here]
    return sorted([*before, *lines], key=lambda line: line.offset or 0)


def _messages(lines: Iterable[Line]) -> Iterator[list[Line]]:
    """Each line that is not indented with the indented ones behind it."""
    message: list[Line] = []
    for line in lines:
        if message and line.text[:1] not in INDENTED:
            yield message
            message = []
        message.append(line)
    if message:
        yield message


def _is_dump(text: str) -> bool:
    return text[:1] not in INDENTED and DUMP_TITLE in text.partition("\n")[0]


def _is_of_dump(line: Line) -> bool:
    return _is_dump(line.text) or (line.text[:1] in INDENTED and " = " in line.text)


def _is_whole(message: list[Line], behind: list[Line], located: bool) -> bool:
    """Whether nothing of a dump is missing. behind: the message that follows it, if any."""
    closed = message[-1].text.startswith(_CLOSING)
    if not located or not (closed or behind):
        return closed or bool(behind)
    pairs = list(pairwise(message if closed else [*message, *behind[:1]]))
    return all(_follows(a, b, a) for a, b in pairs) or all(_follows(a, b, b) for a, b in pairs)


def _follows(one: Line, next_one: Line, between: Line) -> bool:
    """Whether nothing else is between two lines. between: the one whose length lies between
    what a shipper tells of them: the first where it tells where lines begin, else the second."""
    length = len(between.text.encode())
    return (next_one.offset or 0) - (one.offset or 0) in (length + 1, length + 2)


def _untitled(message: list[Line]) -> list[Line]:
    """The settings in a message whose dump's title, or what follows it, has not come yet."""
    pairs = enumerate(pairwise(message), 1)
    apart = (n for n, (a, b) in pairs if not (_follows(a, b, a) or _follows(a, b, b)))
    begin = 0 if message[0].text[:1] in INDENTED else next(apart, len(message))
    return [line for line in message[begin:] if _is_of_dump(line)]
