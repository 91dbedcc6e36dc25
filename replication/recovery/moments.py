"""What happened to single records, step by step: the events told anew, beside the state they meet.

That a broker cut its log at an offset, or that a high watermark was above it, tells of a record
only where that broker's log had this very record then: one offset may have held many records in
turn.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from replication.protocol.folding import fold
from replication.protocol.ground import events as ev
from replication.protocol.ground.events import Event
from replication.protocol.ground.model import Span, same_record, touching
from replication.protocol.ground.topic_partition import State
from replication.protocol.judgement.bounded import FoldedPartition
from replication.recovery.sightings import (
    BELOW_HIGH_WATERMARK,
    CUT,
    REACHED,
    REMOVED,
    reached_by,
    tells,
    told_by,
)

# Words of events of which the log of the broker tells whether they concern the record.
_BY_THE_LOG = (CUT, REACHED, REMOVED, BELOW_HIGH_WATERMARK)


@dataclass(slots=True, eq=False)
class Target:
    """A record: its offset, leader epoch, and the numbers that its bytes have among the copies.

    Without bytes (is_seen is false) nothing tells which of the records at its offset is meant.
    """

    offset: int
    leader_epoch: int | None = None
    contents: frozenset[int] = frozenset()
    is_seen: bool = False
    moments: list[dict[str, Any]] = field(default_factory=list)
    is_below: bool = False

    def is_in(self, spans: Iterable[Span]) -> bool | None:
        """Whether it is what is at its offset; None where nothing tells."""
        here = [s for s in spans if s.first_offset <= self.offset < s.end_offset]
        if not here:
            return False
        if not self.is_seen:
            return None
        it = here[0]._replace(leader_epoch=self.leader_epoch)
        told = [
            same_record(span, it._replace(content=content))
            for span in here
            for content in self.contents or (None,)
        ]
        return True if True in told else None if None in told else False


def last_leader(folded: FoldedPartition) -> int | None:
    """The leader at the evidence's end, or the last one; None where none is known."""
    partition = folded.answer.partition
    led = [e["leader"] for e in partition["elections"] if e["leader"] is not None]
    leader: int | None = partition["leader"]
    return led[-1] if leader is None and led else leader


def log_of(state: State, replica: int | None) -> list[Span] | None:
    """What a replica's log holds in a state; None where that is not known."""
    known = None if replica is None else state.replicas.get(replica)
    return list(known.log.spans) if known is not None and state.log_is_known(known) else None


def tell(targets: list[Target], events: Iterable[Event], state: State) -> None:
    """Gives each target its moments. state: of the partition before the first event."""
    for event in events:
        words = [(target, _word(target, event, state)) for target in targets]
        if any(word is not None for _, word in words):
            before = {w: told_by(w, event, state) for _, w in words if w is not None}
            for target, word in words:
                sure = None if word is None else _concerns(target, word, event, state)
                if word is not None and sure is not False:
                    target.is_below = target.is_below or word == BELOW_HIGH_WATERMARK
                    told = {**before[word], "grade": event.grade, "certain": sure is True}
                    target.moments.append(told)
        try:
            fold.apply(state, event)
        except fold.Rejected:
            continue


def _word(target: Target, event: Event, state: State) -> str | None:
    offset = target.offset
    word = tells(event.fact, offset, offset + 1, target.leader_epoch)
    above = reached_by(event.fact, offset) and not target.is_below
    if above and word in (None, REACHED) and not isinstance(event.fact, ev.ReplicaLogObserved):
        return BELOW_HIGH_WATERMARK
    return word


def _concerns(target: Target, word: str, event: Event, state: State) -> bool | None:
    """Whether an event is of this very record; None where nothing tells."""
    fact = event.fact
    if word in _BY_THE_LOG:
        spans = log_of(state, getattr(fact, "replica", None))
        if spans is None:
            return None
        around = touching(spans, target.offset, target.offset + 1)
        here = target.is_in(around)
        # A log of which nobody has seen that far may have reached it.
        return None if here is False and not spans else here
    if isinstance(fact, ev.ReplicaLogObserved):
        return target.is_in(fact.spans)
    told = Span(
        getattr(fact, "first_offset", 0),
        getattr(fact, "end_offset", 0),
        getattr(fact, "leader_epoch", None),
        getattr(fact, "content", None),
    )
    return target.is_in([told])
