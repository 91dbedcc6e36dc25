"""What may still happen after all that concerns an offset: of many leader epochs only few kinds.

From some leader epoch on every step of every broker tells of an offset what it tells of all below
it: that the log ends above. What such an epoch does to the states depends on its kind alone. States
that no kind which is still to come changes are those of the end.
"""

from bisect import bisect_right
from dataclasses import dataclass, field
from operator import neg

from replication.protocol.histories.alike import Kind, kind_of
from replication.protocol.histories.filters.at_offset import Run
from replication.protocol.histories.filters.by_offset import EVERYWHERE, lowest_from
from replication.protocol.histories.filters.windows import Window

# With more kinds than this to come, each epoch is followed.
MOST_KINDS = 50


@dataclass(slots=True)
class Endings:
    """Those of one partition under one set of assumptions. to_come: by the number of a leader
    epoch, the kinds from there on. numbers: of each kind, the last leader epoch first."""

    to_come: dict[int, tuple[Kind, ...]] = field(default_factory=dict)
    numbers: dict[Kind, list[int]] = field(default_factory=dict)
    starts: list[int] = field(default_factory=list)

    def alike_from(self, run: Run) -> int:
        """The number of the leader epoch from which on everything tells of a run of offsets what it
        tells of all below."""
        line = run.line
        if not line.fences_fetches:
            return len(line.windows)  # Steps count for later epochs than their own.
        if not self.starts:
            begins = (EVERYWHERE if w.start is None else w.start for w in line.windows)
            self.starts = lowest_from(begins)
        last = max(reader.index.unlike_until(run.offset) for reader in run.readers)
        told = (*run.epochs, *run.written_by, run.committed_by, last)
        newest = max(e for e in told if e is not None)
        after = bisect_right(line.windows, newest, key=lambda w: w.leader_epoch)
        return max(after, bisect_right(self.starts, run.offset))

    def left(self, run: Run, number: int) -> list[int]:
        """By their numbers the next leader epoch of each kind, from one on that is alike for the
        run; in order."""
        windows = run.line.windows
        for each in range(min(self.to_come, default=len(windows)) - 1, number - 1, -1):
            kind, known = _kind_of(run, windows[each]), self.to_come.get(each + 1, ())
            new = kind not in self.numbers and len(known) <= MOST_KINDS
            self.to_come[each] = (kind, *known) if new else known
            self.numbers.setdefault(kind, []).append(each)
        return sorted(_first_from(self.numbers[kind], number) for kind in self.to_come[number])


def _first_from(numbers: list[int], least: int) -> int:
    """The last of descending numbers that is no less."""
    return numbers[bisect_right(numbers, -least, key=neg) - 1]


def _kind_of(run: Run, window: Window) -> Kind:
    """All that a leader epoch's moves and filters read of it."""
    here = [items.get(window.leader_epoch, ()) for items in run.items]
    # Copies tell each run of offsets something of its own.
    own = any(item.kind == "copy" for row in here for item in row)
    return (window.number if own else None, window.start is None, *kind_of(run, window))
