"""The one drawing of a partition's logs, written and read: scenarios, errors, reports share it.

    A  e0  0:m1 |
    B* e0  0:m1 | 0:m2*3

A line is a replica: its name; `*` if it leads, `!` if it is stopped; the leader epoch it knows
(`e-`: none); then cells from offset 0. A cell is `<leader epoch>:<record>`, `*n` for a run of n
offsets; `.` is an offset without a record (compacted), `[n]` a log that starts at offset n, `-` an
epoch and `?` a record that nobody saw. `|` shows the high watermark; `|n` names one that lies
outside the log.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from replication.protocol.ground.model import Span

_ROW = re.compile(r"(?P<name>[A-Za-z0-9_-]+)(?P<sign>[*!]?)(?P<gap> +)(?P<epoch>\S+)(?P<rest>.*)")
_CELL = re.compile(r"(?P<epoch>\d+|-):(?P<label>[A-Za-z?_][A-Za-z0-9_]*)(?:\*(?P<count>[1-9]\d*))?")
_HOLE = re.compile(r"\.(?:\*(?P<count>[1-9]\d*))?")
_START = re.compile(r"\[(\d+)\]")
_HIGH_WATERMARK = re.compile(r"\|(\d*)")
UNSEEN = "?"


class PictureError(ValueError):
    """A line that is no row of a picture. column: 1-based, where it stops making sense."""

    def __init__(self, column: int, message: str) -> None:
        super().__init__(message)
        self.column = column


@dataclass(frozen=True, slots=True)
class Row:
    """One replica as drawn. high_watermark and leader_epoch are None where unknown."""

    name: str
    spans: tuple[Span, ...]
    high_watermark: int | None
    leader_epoch: int | None = None
    log_start_offset: int = 0
    log_end_offset: int = 0
    leads: bool = False
    stopped: bool = False


def draw(rows: Iterable[Row], content_name: Callable[[int], str]) -> list[str]:
    """The lines of a picture. content_name: what to call a content id."""
    rows = list(rows)
    width = max((len(r.name) for r in rows), default=0) + 1
    epochs = [_epoch_text(r.leader_epoch) for r in rows]
    epoch_width = max((len(e) for e in epochs), default=0)
    lines = []
    for row, known in zip(rows, epochs, strict=True):
        sign = "*" if row.leads else "!" if row.stopped else ""
        head = f"{row.name}{sign}".ljust(width) + " " + known.ljust(epoch_width)
        cells = " ".join(_cells(row, content_name))
        lines.append(f"{head}  {cells}".rstrip())
    return lines


def _epoch_text(leader_epoch: int | None) -> str:
    return "e-" if leader_epoch is None else f"e{leader_epoch}"


def _cells(row: Row, content_name: Callable[[int], str]) -> list[str]:
    """Cells in offset order; a run that the high watermark divides becomes two."""
    high_watermark = row.high_watermark
    start, end = row.log_start_offset, row.log_end_offset
    cells: list[str] = []
    if high_watermark is not None and high_watermark < start:
        cells.append(f"|{high_watermark}")
        high_watermark = None
    if start:
        cells.append(f"[{start}]")
    pieces: list[tuple[int, int, Span | None]] = []
    position = start
    for span in row.spans:
        if span.first_offset > position:
            pieces.append((position, span.first_offset, None))
        pieces.append((span.first_offset, span.end_offset, span))
        position = span.end_offset
    if position < end:
        pieces.append((position, end, None))
    for first, stop, piece in pieces:
        if high_watermark is not None and first < high_watermark < stop:
            cells += [_cell(first, high_watermark, piece, content_name), "|"]
            cells.append(_cell(high_watermark, stop, piece, content_name))
            continue
        if high_watermark == first:
            cells.append("|")
        cells.append(_cell(first, stop, piece, content_name))
    if high_watermark is not None and high_watermark == end:
        cells.append("|")
    elif high_watermark is not None and high_watermark > end:
        cells.append(f"|{high_watermark}")
    return cells


def _cell(first: int, end: int, span: Span | None, content_name: Callable[[int], str]) -> str:
    count = f"*{end - first}" if end - first > 1 else ""
    return ("." if span is None else record_name(span, content_name)) + count


def record_name(span: Span, content_name: Callable[[int], str]) -> str:
    """A record as people call it: `<leader epoch>:<record>`."""
    written_in = "-" if span.leader_epoch is None else str(span.leader_epoch)
    label = UNSEEN if span.content is None else content_name(span.content)
    return f"{written_in}:{label}"


def read_row(line: str, contents: list[str]) -> Row:
    """One line of a picture. Records not named in contents yet are appended to it.

    Raises PictureError with the column (1-based) of what is not understood.
    """
    match = _ROW.fullmatch(line.rstrip())
    if not match:
        raise PictureError(1, "expected a replica: NAME, * or !, eEPOCH, cells")
    epoch_text = match["epoch"]
    if not re.fullmatch(r"e(\d+|-)", epoch_text):
        raise PictureError(match.start("epoch") + 1, f"expected eN, found {epoch_text!r}")
    leader_epoch = None if epoch_text == "e-" else int(epoch_text[1:])
    spans, start, end, high_watermark = _read_cells(line, match.start("rest"), contents)
    return Row(
        match["name"],
        tuple(spans),
        high_watermark,
        leader_epoch,
        start,
        end,
        match["sign"] == "*",
        match["sign"] == "!",
    )


def _read_cells(
    line: str, begin: int, contents: list[str]
) -> tuple[list[Span], int, int, int | None]:
    spans: list[Span] = []
    start = position = 0
    high_watermark: int | None = None
    for token in re.finditer(r"\S+", line[begin:]):
        text, column = token[0], begin + token.start() + 1
        if match := _HIGH_WATERMARK.fullmatch(text):
            if high_watermark is not None:
                raise PictureError(column, "a second high watermark")
            high_watermark = int(match[1]) if match[1] else position
        elif match := _START.fullmatch(text):
            if spans or position:
                raise PictureError(column, "the log start must come before the records")
            start = position = int(match[1])
        elif match := _HOLE.fullmatch(text):
            position += int(match["count"] or 1)
        elif match := _CELL.fullmatch(text):
            end = position + int(match["count"] or 1)
            written_in = None if match["epoch"] == "-" else int(match["epoch"])
            _join(spans, Span(position, end, written_in, _content(match["label"], contents)))
            position = end
        else:
            raise PictureError(
                column, f"expected a cell like 0:m1 or 2:x*5, `.`, `[3]` or `|`, found {text!r}"
            )
    return spans, start, position, high_watermark


def _content(label: str, contents: list[str]) -> int | None:
    if label == UNSEEN:
        return None
    if label not in contents:
        contents.append(label)
    return contents.index(label)


def _join(spans: list[Span], span: Span) -> None:
    last = spans[-1] if spans else None
    if last and last.end_offset == span.first_offset and last[2:] == span[2:]:
        spans[-1] = Span(last.first_offset, *span[1:])
    else:
        spans.append(span)


def read(lines: Sequence[str], contents: list[str]) -> list[Row]:
    """All lines of a picture; PictureError as read_row."""
    return [read_row(line, contents) for line in lines]
