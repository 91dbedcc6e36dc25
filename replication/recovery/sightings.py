"""What the events of a topic partition tell of some of its offsets, and who saw them last."""

from collections.abc import Collection, Iterable
from typing import Any

from replication.protocol.ground import events as ev
from replication.protocol.ground.events import Event
from replication.protocol.ground.model import moment, touching
from replication.protocol.ground.topic_partition import State
from replication.reports.event_words import sentence

# What an event tells of records. `reached`: a log of that broker went on behind them.
HELD, WRITTEN, COPIED, CUT = "held", "written", "copied", "cut"
ACKNOWLEDGED, CONSUMED, REMOVED, REACHED = "acknowledged", "consumed", "removed", "reached"
BELOW_HIGH_WATERMARK = "below_high_watermark"
SEEN = (HELD, WRITTEN, COPIED, CUT, REACHED)


def tells(fact: ev.Fact, first: int, end: int, leader_epoch: int | None) -> str | None:
    """In a word, what a fact tells of a record among offsets [first, end); None: nothing.

    leader_epoch: the record's own, None where it is not known.
    """
    match fact:
        case ev.ReplicaLogObserved():
            held = touching(sorted(fact.spans), first, end)
            inside = [s for s in held if s.first_offset < end and first < s.end_offset]
            return HELD if any(_fits(s.leader_epoch, leader_epoch) for s in inside) else None
        case ev.LeaderAppended() | ev.FollowerAppended():
            if not _overlap(fact, first, end) or not _fits(fact.leader_epoch, leader_epoch):
                return None
            return WRITTEN if isinstance(fact, ev.LeaderAppended) else COPIED
        case ev.Truncated():
            below = fact.to_offset is not None and fact.to_offset < end
            return CUT if below and (fact.from_offset is None or fact.from_offset > first) else None
        case ev.RecordsAcknowledged() | ev.RecordsConsumed():
            if not _overlap(fact, first, end) or not _fits(fact.leader_epoch, leader_epoch):
                return None
            return ACKNOWLEDGED if isinstance(fact, ev.RecordsAcknowledged) else CONSUMED
        case ev.LogStartAdvanced():
            return REMOVED if fact.log_start_offset > first else None
        case ev.ReplicaStarted() | ev.BecameLeader() | ev.BecameFollower():
            return REACHED if (fact.log_end_offset or 0) > first else None
    return None


def reached_by(fact: ev.Fact, offset: int) -> bool:
    """Whether a fact names a high watermark above an offset."""
    return (getattr(fact, "high_watermark", None) or 0) > offset


def _overlap(
    fact: ev.LeaderAppended | ev.FollowerAppended | ev.RecordsAcknowledged | ev.RecordsConsumed,
    first: int,
    end: int,
) -> bool:
    return fact.first_offset < end and first < fact.end_offset


def _fits(told: int | None, wanted: int | None) -> bool:
    return told is None or wanted is None or told == wanted


def last_seen(
    events: Iterable[Event],
    first: int,
    end: int,
    leader_epoch: int | None,
    searched: Collection[str] = (),
) -> list[dict[str, Any]]:
    """Who had records among the offsets at last, by what: the newest event of each broker.

    searched: the copies (by path) in which they were looked for: what these hold is another.
    """
    newest: dict[int, tuple[str, Event]] = {}
    for event in events:
        word = tells(event.fact, first, end, leader_epoch)
        replica = getattr(event.fact, "replica", None)
        if word == HELD and event.source is not None and event.source.path in searched:
            continue
        if word in SEEN and isinstance(replica, int):
            if word == REACHED and replica in newest and newest[replica][0] != REACHED:
                continue
            newest[replica] = (word, event)
    return [told_by(word, event) for _, (word, event) in sorted(newest.items())]


def told_by(word: str, event: Event, before: State | None = None) -> dict[str, Any]:
    """An event as an object: what it tells, in words, when, and where it was read. before: the
    state that it met, where that is known."""
    source = event.source
    state = before or State(event.cluster_id, event.topic, event.topic_id, event.partition)
    return {
        "replica": getattr(event.fact, "replica", None),
        "what": word,
        "told": sentence(event, state),
        "observed_at": moment(event.observed_at),
        "path": None if source is None else source.path,
        "line": None if source is None else source.line,
    }
