"""What decides the place of an event among those of its partition."""

from dataclasses import dataclass

from replication.protocol.ground import events as ev

# Within one millisecond of one broker's clock: what must come before what.
RANKS = {
    "replica_stopped": 0,
    "replica_log_observed": 1,
    "replica_started": 2,
    "checkpoint_observed": 3,
    "leadership_recorded": 4,
    "became_leader": 5,
    "became_follower": 5,
    "truncated": 6,
    "leader_appended": 7,
    "follower_appended": 7,
}
LAST = 9


@dataclass(slots=True)
class Entry:
    """A fact on its way to an event: when, by whose order, and where it was read."""

    at: float
    rank: int
    stream: int
    index: int
    fact: ev.Fact
    source: ev.Source | None
    grade: str
    shown_at: int | None
