"""What a leader epoch does to the states is worked out once for all epochs and runs alike.

Of an epoch the moves and filters read its leader, its ISRs, the brokers' items and which of the
records are older or newer than it: never its number. So a partition that elects a thousand times in
the same way is followed as if it had done so a few times.
"""

from collections.abc import Callable

from replication.protocol.histories.filters.at_offset import Run
from replication.protocol.histories.filters.windows import UNSURE, Window
from replication.protocol.histories.moves.states import At
from replication.protocol.histories.records import Records

Kind = tuple[object, ...]
# Only small sets are kept, and so many of them: what lives long costs time, too. With many records
# to compare it takes longer to tell whether epochs are alike than to follow them.
MOST_STATES = 64
MOST_KEPT = 2000
MOST_RECORDS = 64


class Transitions:
    """The states after leader epochs, by what these are to the states before. occurrences: the
    unseen records that were numbered on the way, by the stretch of leadership in the epoch."""

    def __init__(self) -> None:
        self._known: dict[object, tuple[set[At], tuple[int, ...]]] = {}

    def after(
        self,
        states: set[At],
        window: Window,
        records: Records,
        follow: Callable[[set[At], Window], set[At]],
    ) -> set[At]:
        """The states after a leader epoch. follow: works them out."""
        few = len(states) <= MOST_STATES and len(records.epochs) <= MOST_RECORDS
        if not few:
            return follow(states, window)
        key = (frozenset(states), records.seen_from(window.leader_epoch), _is_to(window, records))
        if key in self._known:
            found, occurrences = self._known[key]
            for occurrence in occurrences:
                records.unseen_of(window.leader_epoch, occurrence)
            return found
        numbered = len(records.unseen)
        found = follow(states, window)
        if len(found) <= MOST_STATES:
            if len(self._known) >= MOST_KEPT:
                self._known.clear()
            new = tuple(occurrence for _, occurrence in list(records.unseen)[numbered:])
            self._known[key] = found, new
        return found


def _is_to(window: Window, records: Records) -> Kind:
    """All that the moves and filters read of a leader epoch at a run of offsets."""
    run, leader_epoch = records.run, window.leader_epoch
    begins_above = None if window.start is None else run.offset < window.start
    on = [leader_epoch in epochs for epochs in run.followed_on]
    index = run.line.index
    back = [index[r].came_back_without(run.offset, leader_epoch) for r in run.place if r in index]
    return (begins_above, *on, *back, *kind_of(run, window))


def kind_of(run: Run, window: Window) -> Kind:
    """What the moves and filters read of a leader epoch, whichever offset it is asked about."""
    leader_epoch, following = window.leader_epoch, window.next_other
    return (
        window.leader,
        None if window.isrs is None else tuple(window.isrs),
        window.kind,
        window.led,
        window.unnamed,
        window.shown,
        window.leader_was_away,
        window.number in run.line.not_heard,
        None if following is None else following.kind in UNSURE,
        tuple(items.get(leader_epoch, ()) for items in run.items),
    )
