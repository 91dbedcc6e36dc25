"""What is kept of failures that could cost records: since when, until when, at what cost."""

from dataclasses import dataclass, field
from typing import NamedTuple

from replication.protocol.ground.model import DERIVED
from replication.protocol.ground.replica_log import ReplicaLog


class Failure(NamedTuple):
    """What may happen next to a partition: what, to which broker, which broker leads then, and
    whether that would be an unclean election. `at_risk.Danger` says which words there are."""

    failure: str
    broker: int
    next_leader: int | None
    unclean: bool


Key = tuple[int, str, int, int | None, bool]
"""A failure with the leader epoch in which it is possible."""
Run = tuple[int, int, str, str, tuple[int, ...]]
"""Records that one failure would cost: first and end offset, tier, cause, holders."""


@dataclass(slots=True)
class Risk:
    """A time in which one failure could cost records: which, since when, by events' clocks.

    failure, broker, next_leader, unclean: as `Failure` has them. runs: what it would have cost when
    it was last looked at; nothing is known to be in danger while there are none. until: when it was
    seen to have passed.
    """

    leader_epoch: int
    failure: str
    broker: int
    next_leader: int | None
    unclean: bool
    since: int | None
    runs: list[Run] = field(default_factory=list)
    until: int | None = None

    @property
    def key(self) -> Key:
        """What tells one failure from another."""
        return (self.leader_epoch, self.failure, self.broker, self.next_leader, self.unclean)


@dataclass(slots=True)
class RiskNotes:
    """What spares the next look its work: made again when needed, never written down.

    asked: the leader epoch of the last look, what decided which failures are possible, and what
    decided what each would cost.
    possible: those failures. alike: by two replicas, how many spans their logs begin with alike,
    with both logs and how often each had been cut by then.
    """

    asked: tuple[int, tuple[object, ...], tuple[object, ...]] | None = None
    possible: list[Failure] = field(default_factory=list)
    alike: dict[tuple[int, int], tuple[ReplicaLog, int, ReplicaLog, int, int]] = field(
        default_factory=dict
    )


@dataclass(slots=True)
class Risks:
    """Failures that could cost records: live, those that are possible now; past, those that were
    possible while records hung on them.

    clock: the last time that a telling event named. looked: how many events had been folded when
    they were last looked at. notes: what the last look rested on.
    """

    live: list[Risk] = field(default_factory=list)
    past: list[Risk] = field(default_factory=list)
    clock: int | None = None
    looked: int = 0
    notes: RiskNotes = field(default_factory=RiskNotes, compare=False, repr=False, metadata=DERIVED)
