"""What a job says while it works: one line per micro-batch on stderr, and the sums at the end."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TextIO

from replication.progress import line_of
from replication.protocol.ground.model import moment
from replication.reports.inventory_words import counted

# So much of the reasons for refusals is said on a micro-batch's line, and of each at least so much.
REASON_LENGTH, SHORTEST = 180, 60
COUNTED = ("rows_in", "applied", "duplicates", "quarantined", "held", "superseded", "findings")


@dataclass
class Progress:
    """Where a job's lines go."""

    out: TextIO = field(default_factory=lambda: sys.stderr)

    def say(self, text: str, **figures: Any) -> None:
        """One line of progress or of notes; figures: what a line of JSON has besides."""
        print(line_of(text, **figures), file=self.out, flush=True)

    def report(
        self, query: str, micro_batch_id: int, figures: Mapping[str, Any],
        why: Sequence[tuple[str, int]] = (),
    ) -> None:  # fmt: skip
        """The line of one micro-batch; its figures are changes, as in `_batches`.

        why: the most frequent reasons for which rows were quarantined, and for how many.
        """
        seconds = max(int(figures.get("milliseconds") or 0), 1) / 1000
        rows = int(figures.get("rows_in") or 0)
        count = {name: int(figures.get(name) or 0) for name in COUNTED}
        words = [f"{query} micro-batch {micro_batch_id}: {rows} in"]
        if query != "ingest":
            words += [f"{count['applied']} applied", _repeated(count)]
        words.append(quarantined(count["quarantined"], why))
        if query != "ingest":
            words += [f"held {count['held']:+d}", f"findings {count['findings']:+d}"]
        newest = figures.get("newest_event_time")
        if newest is not None:
            words.append(f"newest event {moment(int(newest))}")
        words.append(f"{rows / seconds:,.0f} events/s ({seconds:.1f} s)")
        numbers = {name: value for name, value in figures.items() if isinstance(value, int)}
        self.say(", ".join(words), query=query, micro_batch_id=micro_batch_id, figures=numbers)


def quarantined(rows: int, why: Sequence[tuple[str, int]]) -> str:
    """How many rows of a micro-batch went to quarantine, and the reasons that most of them have."""
    told = f"{rows} quarantined"
    if not why:
        return told
    length = max(REASON_LENGTH // len(why), SHORTEST)
    reasons = [f"{counted(times, 'row')}: {shortened(text, length)}" for text, times in why]
    return f"{told} (see table quarantine; {'; '.join(reasons)})"


def shortened(reason: str, length: int) -> str:
    """The beginning of a reason, on one line."""
    text = " ".join(reason.split())
    return text if len(text) <= length else text[: length - 2] + ".."


def _repeated(count: Mapping[str, int]) -> str:
    """What a newer trace superseded is a duplicate of what that one says again."""
    superseded = f" ({count['superseded']} superseded)" if count["superseded"] else ""
    return f"{count['duplicates'] + count['superseded']} duplicates{superseded}"


def sum_of(figures: Mapping[str, Any]) -> str:
    """How the rows that came in add up."""
    count = {name: int(figures.get(name) or 0) for name in COUNTED}
    return (
        f"in all: {counted(count['rows_in'], 'row')} = {count['applied']} applied + "
        f"{_repeated(count)} + {count['quarantined']} quarantined + "
        f"{count['held']} held; {count['findings']} findings"
    )
