"""The two histories behind an UNKNOWN, side by side, leader epoch by leader epoch."""

import textwrap
from typing import Any

from replication.reports.headline import how_to_get
from replication.reports.vocabulary import INVARIANT_WORDS, name, offsets, sides

WIDTH = 46
NOTHING = "nothing at these offsets"


def open_questions_of(answer: dict[str, Any], topic_partition: str) -> list[dict[str, Any]]:
    """The verdicts on a partition (`t-0`) that have two histories."""
    return [v for v in answer["verdicts"] if v.get("histories") and name(v) == topic_partition]


def epochs_of(histories: dict[str, Any]) -> list[int | None]:
    """The leader epochs of two histories in order; last None for what comes after the evidence."""
    epochs = {t["leader_epoch"] for t in (*histories["kept"], *histories["broken"])}
    return sorted(epochs, key=lambda number: (number is None, number))


def two_histories_text(verdict: dict[str, Any]) -> str:
    """The histories of one open verdict as a table of two columns, and what would settle it."""
    told = verdict["histories"]
    what = INVARIANT_WORDS.get(verdict["invariant"], verdict["invariant"])
    first, end = told["first_offset"], told["end_offset"]
    where = f"from offset {first} on" if end is None else offsets(first, end)
    part = told["part_at"]
    lines = [
        f"{name(verdict)}, {what}: two histories fit the evidence at {where}.",
        "",
        _row("", *(side.upper() for side in sides(verdict))),
    ]
    for number in epochs_of(told):
        kept = [t["words"] for t in told["kept"] if t["leader_epoch"] == number]
        broken = [t["words"] for t in told["broken"] if t["leader_epoch"] == number]
        here = "they part here" if part and part["leader_epoch"] == number else ""
        lines += _rows("later" if number is None else f"epoch {number}", kept, broken)
        if here:
            lines.append(_row("", f"^ {here}", f"^ {here}"))
    lines += ["", "Which of the two it was, these would tell:"]
    for artefact in verdict["settled_by"]:
        way = how_to_get(artefact)
        lines.append(f"  {artefact}" + (f"; to get it: {way}" if way else ""))
    return "\n".join(lines) + "\n"


def _rows(head: str, kept: list[str], broken: list[str]) -> list[str]:
    left = [part for words in kept or [NOTHING] for part in textwrap.wrap(words, WIDTH)]
    right = [part for words in broken or [NOTHING] for part in textwrap.wrap(words, WIDTH)]
    height = max(len(left), len(right))
    left += [""] * (height - len(left))
    right += [""] * (height - len(right))
    heads = [head] + [""] * (height - 1)
    return [_row(*cells) for cells in zip(heads, left, right, strict=True)]


def _row(head: str, left: str, right: str) -> str:
    return f"{head:<10}{left:<{WIDTH + 2}}{right}".rstrip()
