"""What each of a broker's own steps admits: the states after it, none where it contradicts.

One filter a kind of step, for the broker that leads in the epoch and for those that follow.
"""

from collections.abc import Iterator

from replication.protocol.histories.filters.items import Item
from replication.protocol.histories.moves.by_rule import (
    BY_COMMON_EPOCH,
    BY_HIGH_WATERMARK,
    after_start,
    keeps_by_high_watermark,
)
from replication.protocol.histories.moves.leading import wrote
from replication.protocol.histories.moves.states import Broker, Following, Leading


def fits(item: Item, record: int) -> bool:
    """Whether what a step tells of the log's end agrees with holding that record."""
    return item.has is None or item.has == bool(record)


def _loaded(item: Item, record: int, above: int, ever: int) -> set[int]:
    """The high watermarks after a start: the checkpointed one lags behind."""
    if item.kind == "stopped":
        return {above}
    if item.above is None:
        return {above, 0}
    if item.above and not ever:
        return set()
    return {int(after_start(bool(record), item.above))}


def restarted(
    by: Broker, item: Item, record: int, above: int, ever: int, lost: int
) -> Iterator[tuple[int, int, int, int]]:
    """(record, above, ever, lost) after a start or a stop."""
    started = item.kind == "started"
    if item.has is True and not record:
        return
    if item.has is False and record:
        if started and item.clean is True and by.covered and not item.shown:
            return
        shown = started and item.shown
        mark = by.lost(record, shown=shown)
        if by.may_lose(shown=shown) and not (mark and lost):
            yield 0, 0, ever, lost | mark
        return
    for high in _loaded(item, record, above, ever):
        yield record, high, ever | high, lost
    if item.has is None and record and not item.clean:
        mark = by.lost(record, shown=item.shown)
        if by.may_lose(shown=item.shown) and not (mark and lost):
            yield 0, 0, ever, lost | mark


def of_leader(by: Broker, item: Item, at: Leading) -> Iterator[Leading]:
    """The states of the broker that leads in the epoch, after one of its own steps."""
    kind = item.kind
    if kind in ("started", "stopped"):
        for record, above, ever, lost in restarted(by, item, at.record, at.above, at.ever, at.lost):
            yield at._replace(role=False, record=record, above=above, ever=ever, lost=lost)
    elif kind == "led":
        yield from _began(by, item, at)
    elif kind == "followed":
        if fits(item, at.record) and item.above in (None, bool(at.above)):
            yield at._replace(role=False)
    elif kind == "cut":
        yield from _cut_by_leader(item, at)
    elif kind == "wrote" or (kind == "fetched" and not by.covered):
        if not at.record:
            for record in item.records or ():
                yield wrote(at, record)
        elif kind == "fetched" and at.record in (item.records or ()):
            yield at
    elif kind == "high_watermark":
        yield from _leader_at_high_watermark(item, at)
    elif kind == "checkpoint":
        if not item.above or at.ever:
            yield at._replace(above=int(bool(item.above) and at.record > 0))
    elif kind == "copy":
        if shows(item, at.record, at.ever):
            yield at
    elif kind == "replaced":
        yield at._replace(steps=(*at.steps, ("replaced", 0)))
    else:
        yield at


def shows(item: Item, record: int, ever: int) -> bool:
    """Whether a copy may be of a replica that holds that record."""
    may_be_it = fits(item, record) and (item.records is None or record in item.records)
    return may_be_it and (not item.above or bool(ever))


def _began(by: Broker, item: Item, at: Leading) -> Iterator[Leading]:
    """A broker becomes leader, or is told once more that it leads without a restart between."""
    record, above = at.record, at.above
    if not fits(item, record):
        return
    if item.above is not None and item.above != bool(above) and not (item.above and not record):
        if by.covered:
            return
        above = int(item.above)
    if item.above and not record and by.traced:
        above = 1  # Up to 2.3 a high watermark may lie beyond the log's end.
    steps, occurrence = at.steps, at.occurrence
    if not at.role:
        occurrence += bool(steps)
        steps = (*steps, ("began", record))
        if record and above:
            steps = (*steps, ("had_committed", record))
        elif record and not item.again and (by.always_alone or (by.alone and not at.steps)):
            steps, above = (*steps, ("had_committed", record)), 1
    exposed = at.exposed | {(record, above)}
    yield Leading(
        True, occurrence, record, above, at.ever | above, at.appended, exposed, steps, at.lost
    )


def _cut_by_leader(item: Item, at: Leading) -> Iterator[Leading]:
    if not fits(item, at.record):
        return
    if item.cut is not False:
        yield at._replace(record=0, above=0)
    if not item.cut:
        yield at


def _leader_at_high_watermark(item: Item, at: Leading) -> Iterator[Leading]:
    if not at.role:
        above = int(bool(item.above) and at.record > 0)
        yield at._replace(above=above, ever=1 if item.above else at.ever)
        return
    above = int(bool(item.above))
    if (above and not at.record) or (at.above and not above):
        return
    steps = (*at.steps, ("committed", at.record)) if above and not at.above else at.steps
    yield at._replace(
        above=above,
        ever=at.ever | above,
        exposed=at.exposed | {(at.record, above)},
        steps=steps,
    )


def of_follower(
    by: Broker, item: Item, at: Following, leader: int | None, exposed: frozenset[tuple[int, int]]
) -> Iterator[Following]:
    """The states of a broker that does not lead in the epoch, after one of its own steps."""
    kind = item.kind
    if kind in ("started", "stopped"):
        for record, above, ever, lost in restarted(by, item, at.record, at.above, at.ever, at.lost):
            yield Following(False, False, False, record, above, ever, at.had, lost)
    elif kind == "fetches_on":
        yield from _fetches_on(at, exposed)
    elif kind == "has_fetched":
        unseen = item.unseen_from
        if at.record in (item.records or ()) or (unseen is not None and at.record >= unseen):
            yield at
        yield from _fetched(item, at, exposed)
    elif kind == "followed":
        yield from _came_to_follow(by, item, at, leader)
    elif kind == "led":
        if fits(item, at.record):
            yield at._replace(follows=False, ready=False, connected=False)
    elif kind == "cut":
        yield from _cut_by_follower(by, item, at)
    elif kind == "restarted_above":
        yield from _restarted_above(item, at, exposed)
    elif kind == "fetched":
        yield from _fetched(item, at, exposed)
    elif kind == "high_watermark":
        above = int(bool(item.above) and at.record > 0)
        told = any(high for _, high in exposed)
        if not by.covered or not item.above or at.above or told:
            yield at._replace(above=above, ever=at.ever | above)
    elif kind == "checkpoint":
        if not item.above or at.ever:
            yield at._replace(above=int(bool(item.above) and at.record > 0))
    elif kind == "copy":
        if shows(item, at.record, at.ever):
            yield at
    else:
        yield at


def _fetches_on(at: Following, exposed: frozenset[tuple[int, int]]) -> Iterator[Following]:
    """It fetches from a leader of whose election it has not heard: by position alone."""
    if not at.record or any(record for record, _ in exposed):
        had = at.had | {at.record} if at.record else at.had
        yield at._replace(follows=True, ready=True, connected=True, had=had)
    yield at._replace(follows=True, ready=True, connected=False)


def _came_to_follow(
    by: Broker, item: Item, at: Following, leader: int | None
) -> Iterator[Following]:
    if not fits(item, at.record):
        return
    differs = item.above is not None and item.above != bool(at.above)
    if differs and by.covered and (at.record or not item.above):
        return
    mine = leader is not None and item.leader in (None, leader)
    by_epoch = by.truncation in BY_COMMON_EPOCH
    keeps = mine and ((at.follows and at.ready) or (item.again and not by_epoch))
    connected = at.connected and at.follows and mine
    ready = keeps or by.truncation != BY_HIGH_WATERMARK
    yield at._replace(follows=mine, ready=ready, connected=connected)
    if mine and item.again and not by.fenced and not connected:
        # It has heard of a later epoch of the same leader, and fetches on from where it was.
        had = at.had | {at.record} if at.record else at.had
        yield at._replace(follows=mine, ready=True, connected=True, had=had)


def _cut_by_follower(by: Broker, item: Item, at: Following) -> Iterator[Following]:
    if not fits(item, at.record):
        return
    by_own = by.truncation == BY_HIGH_WATERMARK and item.reason == "high_watermark"
    if by_own and by.covered and at.connected:
        return  # It cuts before it fetches, and so by the high watermark that it came with.
    if by_own and at.record and item.cut is keeps_by_high_watermark(bool(at.above)):
        return
    if item.cut is not False:
        yield at._replace(ready=True, record=0, above=0)
    if not item.cut:
        yield at._replace(ready=True)


def _restarted_above(
    item: Item, at: Following, exposed: frozenset[tuple[int, int]]
) -> Iterator[Following]:
    """Its log was emptied and begins above the offset: of what lies below, which its leader removed
    lawfully, it is taken to hold whatever may have been there."""
    records = {record for record, _ in exposed if record} or set(item.records or ()) or {0}
    for record in records | {at.record}:
        for above in {0, 1} if record else {0}:
            yield at._replace(ready=True, record=record, above=above, ever=at.ever | above)


def _fetched(item: Item, at: Following, exposed: frozenset[tuple[int, int]]) -> Iterator[Following]:
    if at.record:
        return
    values = {record for record, _ in exposed}
    unseen = item.unseen_from
    may_be = {r for r in values if unseen is not None and r >= unseen} | set(item.records or ())
    for record in may_be:
        if not values or record in values or item.late:
            yield at._replace(connected=True, record=record, had=at.had | {record})
