"""What clients were told, as far as it binds histories: of which topic, and written by when."""

from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import accumulate

from replication.protocol.ground.topic_partition import Promise, State
from replication.protocol.histories.filters.by_offset import Spread

# By so much, ms, clocks differ that are set by the network; an answer takes no longer to be logged.
CLOCKS_DIFFER_BY = 2_000


@dataclass(frozen=True, slots=True)
class Begun:
    """When leader epochs began, by the clocks, as far as anything tells: times, ms, in order, and
    the first of the epochs that began at each of them or later. first: the first epoch of all."""

    times: list[int] = field(default_factory=list)
    epochs: list[int] = field(default_factory=list)
    first: int = 0

    def before(self, at: int) -> int | None:
        """The last leader epoch before all that began after a moment; None where none did."""
        number = bisect_right(self.times, at)
        return self.epochs[number] - 1 if number < len(self.times) else None


def created_by(state: State, covered: set[int]) -> int | None:
    """By which step of the fold the topic is known to be this one: the first by a broker's lines or
    the controller's history; else the first acknowledgement of a record that a copy shows."""
    told = state.coverage.get(("controller_history", None), (False, None))[0]
    if covered or told or state.story.ordered:
        return 0
    copied = Spread(
        (s.first_offset, s.end_offset, s.content)
        for steps in state.story.own.values()
        for step in steps
        for s in step.spans
        if s.content is not None
    )
    shown = (p.at for p in _promises(state) if p.span.content in copied.at(p.span.first_offset))
    return min(shown, default=None)


def is_of(promise: Promise, created_by: int | None) -> bool:
    """Whether the records are surely of this topic. created_by: by which step of the
    fold it is known to be this one."""
    return created_by is not None and promise.at >= created_by


def begun(state: State) -> Begun:
    """When each leader epoch began whose election is recorded; other records of the controller, and
    what brokers tell of their role, may come long after it."""
    found: dict[int, int] = {}
    for told in state.story.recorded:
        if told.observed_at is not None and told.election_kind not in (None, "unknown"):
            at = found.get(told.leader_epoch, told.observed_at)
            found[told.leader_epoch] = min(at, told.observed_at)
    ordered = sorted((at, leader_epoch) for leader_epoch, at in found.items())
    epochs = [*accumulate((leader_epoch for _, leader_epoch in reversed(ordered)), min)][::-1]
    return Begun([at for at, _ in ordered], epochs, min(found, default=0))


def written_by(promise: Promise, begun: Begun) -> int | None:
    """The last leader epoch in which the records can have been written, by the clocks: the next
    began surely later. None: nothing tells, as where it is not known when the last was answered."""
    return None if promise.until is None else begun.before(promise.until + CLOCKS_DIFFER_BY)


def clocks_tell(state: State) -> bool:
    """Whether the clocks bound where an acknowledged record was written of which no log tells the
    leader epoch, and nothing shows that they are wrong: a record in a log under a later leader
    epoch, or one that was acknowledged before anybody is known to have led."""
    begins, tells = begun(state), False
    if not state.coverage.get(("clocks", None), (True, None))[0]:
        return False
    for promise in _promises(state):
        by, leader_epoch = written_by(promise, begins), promise.span.leader_epoch
        if by is not None and by < max(leader_epoch or 0, begins.first):
            return False
        tells = tells or (by is not None and leader_epoch is None)
    return tells


def _promises(state: State) -> list[Promise]:
    return [*state.history.acknowledgements, *state.history.consumptions]
