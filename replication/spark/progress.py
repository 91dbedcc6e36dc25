"""What a job says while it works: one line per micro-batch on stderr, and the sums at the end."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TextIO

from replication.progress import line_of
from replication.reports.inventory_words import counted

COUNTED = ("rows_in", "applied", "duplicates", "quarantined", "held", "superseded", "findings")


@dataclass
class Progress:
    """Where a job's lines go."""

    out: TextIO = field(default_factory=lambda: sys.stderr)

    def say(self, text: str, **figures: Any) -> None:
        """One line of progress or of notes; figures: what a line of JSON has besides."""
        print(line_of(text, **figures), file=self.out, flush=True)

    def report(self, query: str, micro_batch_id: int, figures: Mapping[str, Any]) -> None:
        """The line of one micro-batch; its figures are changes, as in `_batches`."""
        seconds = max(int(figures.get("milliseconds") or 0), 1) / 1000
        rows = int(figures.get("rows_in") or 0)
        count = {name: int(figures.get(name) or 0) for name in COUNTED}
        words = [f"{query} micro-batch {micro_batch_id}: {rows} in"]
        if query != "ingest":
            words += [f"{count['applied']} applied", f"{count['duplicates']} duplicates"]
        words.append(f"{count['quarantined']} quarantined")
        if count["superseded"]:
            words.append(f"{count['superseded']} superseded")
        if query != "ingest":
            words += [f"held {count['held']:+d}", f"findings {count['findings']:+d}"]
        newest = figures.get("newest_event_time")
        if newest is not None:
            words.append(f"newest event {moment(int(newest))}")
        words.append(f"{rows / seconds:,.0f} events/s ({seconds:.1f} s)")
        told = {name: value for name, value in figures.items() if isinstance(value, int)}
        self.say(", ".join(words), query=query, micro_batch_id=micro_batch_id, figures=told)


def sum_of(figures: Mapping[str, Any]) -> str:
    """How the rows that came in add up. Events of superseded traces are said by a newer one again:
    they count as duplicates."""
    count = {name: int(figures.get(name) or 0) for name in COUNTED}
    superseded = f" ({count['superseded']} of superseded traces)" if count["superseded"] else ""
    return (
        f"in all: {counted(count['rows_in'], 'row')} = {count['applied']} applied + "
        f"{count['duplicates'] + count['superseded']} duplicates{superseded} + "
        f"{count['quarantined']} quarantined + {count['held']} held; {count['findings']} findings"
    )


def moment(milliseconds: int) -> str:
    """Milliseconds since the Unix epoch as ISO 8601 in UTC, or the number where it is no date."""
    try:
        when = datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return f"{milliseconds} ms"
    return when.strftime("%Y-%m-%dT%H:%M:%SZ")
