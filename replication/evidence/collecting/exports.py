"""A file of what a log shipper sent, of several brokers or a digest's lines: laid out as the files
it came from.

Each sender's lines are written to a file of its own, and have there the number that their
envelope has in the export, as far as no envelope holds several.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from replication.evidence.broker_logs.line_headers import HEADER
from replication.evidence.collecting.envelopes import (
    LONGEST_ENVELOPE,
    NotALine,
    ShippedLine,
    shipped_lines,
)
from replication.evidence.log_directories.digest_lines import is_digest_lines
from replication.evidence.opening import READ_ERRORS, open_unpacked
from replication.evidence.unreadable import Unreadable

# A file's name and a host's are somebody's words: nothing in them leads out of the folder.
_SAFE = re.compile(r"[^A-Za-z0-9._-]+")
_DEEPEST = 8
_LINES_TO_KNOW_A_FILE_BY = 50
_LISTED = 50
_NO_HOST, _NO_LOG, _DIGEST = "unnamed-host", "broker.log", "digest.lines"
_UNNAMED = NotALine("no envelope that names host or file of the line in it")
_BEGINS = [b"%c" % byte for byte in b"{[0123456789\x1fB\xfd\x28"]
# An export has few hosts; more are no brokers of one cluster.
_MOST_SENDERS = 200


@dataclass(slots=True)
class _Member:
    """A sender's file. written: how many lines it has; begun: the begin of a line that a container
    runtime cut."""

    path: Path
    stream: IO[str]
    written: int = 0
    begun: str = ""

    def add(self, text: str, number: int, *, partial: bool) -> None:
        text, self.begun = self.begun + text, ""
        if partial:
            self.begun = text
            return
        # A message goes on in indented lines, between which there is none.
        gap = 0 if text[:1] in ("\t", " ") else max(0, number - 1 - self.written)
        self.stream.write("\n" * gap + text + "\n")
        self.written += gap + 1 + text.count("\n")


def laid_out(export: Path, folder: Path) -> list[Unreadable] | None:
    """What could not be read of what a shipper sent of several senders, or of a digest; their files
    are then in the folder. None for any other file."""
    printed = _prints_lines(export)
    if printed is None:
        return None
    members: dict[Path, _Member] = {}
    unread: list[Unreadable] = []
    try:
        for number, raw, line in _lines(export):
            if isinstance(line, NotALine):
                if len(unread) < _LISTED:
                    unread.append(Unreadable(str(export), f"line {number}", line.reason))
                continue
            place = _place(line, folder)
            if place not in members and len(members) == _MOST_SENDERS:
                return None
            if place not in members:
                place.parent.mkdir(parents=True, exist_ok=True)
                members[place] = _Member(place, place.open("w", encoding="utf-8"))
            whole = printed or line.digest
            text = line.text if whole else raw
            # Readers know a digest by how its file begins.
            at = 0 if line.digest else number
            members[place].add(text, at, partial=line.partial and whole)
    finally:
        for member in members.values():
            member.stream.close()
    digests = [place for place in members if place.name == _DIGEST]
    return unread if len(members) > 1 or digests else None


def _prints_lines(export: Path) -> bool | None:
    """Whether the envelopes hold lines as brokers print them, or messages beside other fields; None
    where the file is no export that names its senders."""
    try:
        with export.open("rb") as raw:
            # Objects, arrays of them, a container's own format, or what is packed.
            if raw.read(2)[:1] not in _BEGINS or is_digest_lines(export):
                return None
    except OSError:
        return None
    headed = count = others = 0
    for _, _, line in _lines(export, _LINES_TO_KNOW_A_FILE_BY):
        if isinstance(line, NotALine):
            others += 1
        elif line.text.strip():
            count += 1
            headed += line.digest or HEADER.match(line.text.encode("utf-8", "replace")) is not None
    # One line that somebody makes a broker print hides no other.
    return None if not count or count < others else headed * 5 >= count


def _lines(
    export: Path, most: int | None = None
) -> Iterator[tuple[int, str, ShippedLine | NotALine]]:
    """Number, the envelope itself and each line in it; a line whose sender no envelope names is
    none. most: so many envelopes, None: all."""
    number, of_digest = 0, False
    try:
        with open_unpacked(export) as stream:
            while number != most and (sent := stream.readline(LONGEST_ENVELOPE)):
                number += 1
                text = sent.decode("utf-8", "replace").rstrip("\r\n")
                for line in shipped_lines(text.encode()) if text.strip() else ():
                    if isinstance(line, ShippedLine):
                        named = text.startswith("{") and bool(line.host or line.path)
                        # A digest tells whose it is; lines beside it that do not are of one broker.
                        of_digest = line.digest or of_digest
                        yield number, text, line if named or of_digest else _UNNAMED
                    else:
                        yield number, text, line
    except READ_ERRORS as error:
        yield number, "", NotALine(f"reading stops behind this line: {error}")


def _place(line: ShippedLine, folder: Path) -> Path:
    host = Path(folder, *filter(None, (_name(line.cluster), _name(line.host) or _NO_HOST)))
    if line.digest:
        return host / _DIGEST
    parts = [part for part in map(_name, line.path.split("/")) if part]
    return host.joinpath(*(parts[-_DEEPEST:] or [_NO_LOG]))


def _name(text: str) -> str:
    """A name without anything that a file system understands; "" for nothing or dots alone."""
    name = _SAFE.sub("_", text.strip())[:120]
    return "" if not name.strip("._") else name.lstrip(".")
