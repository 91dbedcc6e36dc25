"""What a follower may do unseen: cut, fetch, learn a high watermark, and lose its disk."""

from collections.abc import Iterator

from replication.protocol.ground.versions import Behaviour
from replication.protocol.histories.moves.by_rule import (
    BY_COMMON_EPOCH,
    BY_HIGH_WATERMARK,
    counts_before_it_cuts,
    keeps_by_epoch,
)
from replication.protocol.histories.moves.states import Broker, Exposed, Following


class Fetching:
    """A leader as its followers see it within one epoch, at one offset.

    epochs: the leader epoch of each record by its number.
    """

    def __init__(self, exposed: Exposed, epochs: list[int | None], flags: Behaviour | None) -> None:
        self.exposed, self.epochs, self.flags = exposed, epochs, flags
        self.records = {record for record, _ in exposed}
        self.high = any(above for _, above in exposed)
        self.low = any(not above for _, above in exposed)

    def continues(self, by: Broker, record: int) -> bool:
        """Whether a follower that holds the record may fetch on without a cut below it."""
        if not record:
            return True
        if by.truncation in BY_COMMON_EPOCH:
            return self.has_it(by, record)
        return any(self.records)

    def has_it(self, by: Broker, record: int) -> bool:
        """Whether truncation takes the record for one that the leader has."""
        return any(self._same(by, record, other) for other in self.records if other)

    def _same(self, by: Broker, a: int, b: int) -> bool:
        own, leaders = self.epochs[a], self.epochs[b]
        if own is None or leaders is None or by.truncation not in BY_COMMON_EPOCH:
            return a == b
        return keeps_by_epoch(own, leaders, self.flags)


def unseen_moves(by: Broker, at: Following, leader: Fetching) -> Iterator[Following]:
    """What a follower may do by itself before its next own step."""
    if not by.covered:
        yield from _without_its_lines(by, at, leader)
    if not at.follows or not leader.records:
        return
    if not at.connected:
        cuts_first = by.truncation == BY_HIGH_WATERMARK and by.covered
        ready = at.ready or not cuts_first or not at.record or at.above
        if at.record not in {0, *at.had} and counts_before_it_cuts(leader.flags):
            yield at._replace(had=at.had | {at.record})
        if ready and leader.continues(by, at.record):
            had = at.had | {at.record} if at.record else at.had
            yield at._replace(connected=True, had=had)
        return
    if not at.record and by.traced:
        return
    if not at.record:
        for record in leader.records:
            if record:
                yield at._replace(record=record, had=at.had | {record})
    elif by.covered:
        if not at.above and leader.high:
            yield at._replace(above=1, ever=1)
        if at.above and leader.low:
            yield at._replace(above=0)


def _without_its_lines(by: Broker, at: Following, leader: Fetching) -> Iterator[Following]:
    """A broker whose lines are missing may have followed, cut or lost its disk."""
    mark = by.lost(at.record) if at.record else 0
    disk = by.unseen_losses != 0 and not (mark and at.lost)
    others = at.follows and leader.records and not leader.has_it(by, at.record)
    if at.record and (disk or others or by.truncation == BY_HIGH_WATERMARK):
        lost = at.lost | mark if disk else at.lost
        yield Following(True, True, False, 0, 0, 1, at.had, lost)
    if not at.follows:
        yield at._replace(follows=True, ready=True, connected=False, above=0)
