"""The brokers that do not lead: all their ways through one leader epoch, each by itself."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from replication.protocol.histories.engine import Effort, walk
from replication.protocol.histories.filters.at_offset import Run
from replication.protocol.histories.filters.items import Item
from replication.protocol.histories.filters.own_steps import of_follower
from replication.protocol.histories.moves import following
from replication.protocol.histories.moves.states import (
    NOTHING,
    At,
    Broker,
    Ending,
    Exposed,
    Following,
    Had,
)

# What became of all replicas together: records, above, ever, had, lost.
Together = tuple[tuple[int, ...], int, int, Had, int]
NO_RECORDS: frozenset[int] = frozenset()


class Followers:
    """The ways of followers, worked out once for each start and for what their leader exposed."""

    def __init__(
        self, run: Run, brokers: list[Broker], epochs: list[int | None], effort: Effort
    ) -> None:
        self.run, self.brokers, self.epochs, self.effort = run, brokers, epochs, effort
        self._known: dict[object, list[Ending]] = {}

    def ways(
        self, place: int, leader_epoch: int, at: At, exposed: Exposed, leader: int | None
    ) -> list[Ending]:
        """All ways of a broker through a leader epoch. leader: None where nobody leads it."""
        items = self.run.items[place].get(leader_epoch, ())
        by = self.brokers[place]
        if by.traced and leader_epoch in self.run.followed_on[place]:
            by = replace(by, traced=False)
        above, ever = (at.above >> place & 1, at.ever >> place & 1) if by.covered else (0, 1)
        key = (place, by.traced, items, at.records[place], above, ever, exposed, leader)
        known = self._known.get(key)
        if known is None:
            follows = not by.covered and leader is not None
            start = Following(follows, False, False, at.records[place], above, ever, NO_RECORDS, 0)
            known = self._known[key] = self._walk(by, items, start, exposed, leader)
        return known

    def without_leader(self, states: set[At], leader_epoch: int) -> set[At]:
        """The states after a leader epoch that nobody leads, as far as the offset is concerned."""
        found: set[At] = set()
        for at in states:
            ways = [
                self.ways(place, leader_epoch, at, NOTHING, None)
                for place in range(len(self.brokers))
            ]
            for records, above, ever, _, lost in together(ways, at.lost, self.effort):
                found.add(At(records, above, ever, *at[3:9], lost))
        return found

    def _walk(
        self,
        by: Broker,
        items: tuple[Item, ...],
        start: Following,
        exposed: Exposed,
        leader: int | None,
    ) -> list[Ending]:
        fetching = following.Fetching(exposed, self.epochs, self.run.line.flags)
        idle = not exposed and (by.covered or leader is None)

        def moves(at: Following) -> Iterable[Following]:
            return () if idle else following.unseen_moves(by, at, fetching)

        def accept(item: Item, at: Following) -> Iterable[Following]:
            return of_follower(by, item, at, leader, exposed)

        at_rest = bool(items and items[-1].last)
        found = walk(items, [start], moves, accept, self.effort, at_rest=at_rest)
        return _widest(Ending(*at[3:]) for at in found)


def together(ways: Sequence[list[Ending]], lost: int, effort: Effort) -> list[Together]:
    """Each combination of the replicas' ways, which double with each replica. Of all records
    one disk at most lost one that nobody saw lost."""
    found: list[Together] = [((), 0, 0, (), lost)]
    for place, options in enumerate(ways):
        found = [
            (
                (*records, way.record),
                above | way.above << place,
                ever | way.ever << place,
                (*had, way.had),
                gone | way.lost,
            )
            for records, above, ever, had, gone in found
            for way in options
            if not (gone and way.lost)
        ]
        effort.spend(0, len(found) // 8)
    return found


def _widest(ways: Iterable[Ending]) -> list[Ending]:
    """The ways that no other one contains: who had shown more, and lost less, admits more."""
    best: dict[tuple[int, int], list[Ending]] = {}
    for way in ways:
        kept = best.setdefault((way.record, way.above), [])
        if any(_contains(k, way) for k in kept):
            continue
        kept[:] = [k for k in kept if not _contains(way, k)]
        kept.append(way)
    return [way for kept in best.values() for way in kept]


def _contains(a: Ending, b: Ending) -> bool:
    return a.ever >= b.ever and a.had >= b.had and b.lost | a.lost == b.lost
