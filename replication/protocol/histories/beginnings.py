"""What may have happened before anything concerns an offset: the same for all offsets above it.

Every step of every broker up to there tells of each of them that the log ends below, so the states
are worked out once for all of them, one leader epoch after the other.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice

from replication.protocol.histories.alike import Transitions
from replication.protocol.histories.assumptions import Assumed
from replication.protocol.histories.endings import Endings
from replication.protocol.histories.filters.at_offset import Run
from replication.protocol.histories.filters.windows import Window
from replication.protocol.histories.moves.states import At
from replication.protocol.histories.records import Kinds, Records, Stretch


@dataclass(slots=True)
class Beginning:
    """states: before the first leader epoch and after each. unseen: the stretches of leadership
    whose unseen records were numbered, in order; counts: how many of them by each of the states."""

    states: list[set[At]] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    unseen: list[Stretch] = field(default_factory=list)

    def add(self, states: set[At], records: Records) -> None:
        self.states.append(states)
        self.counts.append(len(records.unseen))
        self.unseen += islice(records.unseen, len(self.unseen), None)

    def resume(self, number: int, records: Records) -> set[At]:
        """The states after so many leader epochs, their unseen records numbered as they were."""
        records.number(self.unseen[: self.counts[number]])
        return self.states[number]


class Beginnings:
    """Those of one partition. Records of the same number stand for others in each run of offsets,
    none of which is written before something tells of it."""

    def __init__(self) -> None:
        self._known: dict[Kinds, Beginning] = {}
        self._endings: dict[Assumed, Endings] = {}
        self.transitions = Transitions()

    def endings_of(self, run: Run) -> Endings:
        """What may come after, shared with the runs under the same assumptions."""
        return self._endings.setdefault(run.assumed, Endings())

    def after(
        self,
        windows: Sequence[Window],
        records: Records,
        starts: Callable[[], set[At]],
        after: Callable[[set[At], Window], set[At]],
    ) -> set[At]:
        """The states after leader epochs that tell nothing of an offset.

        starts: the states before the first; after: those that one leads to."""
        begun = self._known.setdefault(records.kinds(), Beginning())
        if not begun.states:
            begun.add(starts(), records)
        number = min(len(windows), len(begun.states) - 1)
        states = begun.resume(number, records)
        for window in windows[number:]:
            states = after(states, window)
            begun.add(states, records)
        return states
