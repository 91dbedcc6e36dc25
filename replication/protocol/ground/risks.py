"""What is kept of failures that could cost records: since when, until when, at what cost."""

from dataclasses import dataclass, field
from typing import Any

from replication.protocol.ground.model import DERIVED
from replication.protocol.ground.replica_log import ReplicaLog

Key = tuple[int, str, int, int | None, bool]
"""A failure: leader epoch, what, broker, next leader, whether it would be elected uncleanly."""
Failure = tuple[str, int, int | None, bool]
"""The same without the leader epoch."""
Run = tuple[int, int, str, str, tuple[int, ...], str]
"""Records that one failure would cost: first and end offset, tier, cause, holders, what ends it."""


@dataclass(slots=True)
class Risk:
    """A time in which one failure could cost records: which, since when, by events' clocks.

    failure, broker, next_leader: as `at_risk.Danger` has them; unclean: the next leader would be
    elected beside the ISR. runs: what it would have cost when last looked at; nothing is known to
    be in danger while there are none. over: it came to an end, at until.
    """

    leader_epoch: int
    failure: str
    broker: int
    next_leader: int | None
    unclean: bool
    since: int | None
    runs: list[Run] = field(default_factory=list)
    over: bool = False
    until: int | None = None

    @property
    def key(self) -> Key:
        """What tells one failure from another."""
        return (self.leader_epoch, self.failure, self.broker, self.next_leader, self.unclean)


@dataclass(slots=True)
class RiskNotes:
    """What spares the next look its work: made again when needed, never written down.

    asked, seen, possible: what decides who may lead next, with the leader epoch, who that is, and
    by which failures. data: logs and promises of the last look. dangers: of who stops and who would
    lead, by these. live: the known risks that are not over. taken_over: the possible failures of
    the last look, if none of them cost anything. alike: by two replicas, how many spans their logs
    begin with alike, with both logs and how often each had been cut by then.
    """

    asked: tuple[int, tuple[object, ...]] | None = None
    seen: Any = None
    possible: list[Key] = field(default_factory=list)
    data: tuple[object, ...] | None = None
    dangers: dict[tuple[int, int, str, bool, str], Any] = field(default_factory=dict)
    live: list[Risk] | None = None
    taken_over: list[Key] | None = None
    alike: dict[tuple[int, int], tuple[ReplicaLog, int, ReplicaLog, int, int]] = field(
        default_factory=dict
    )


@dataclass(slots=True)
class Risks:
    """Failures that are possible now, and those that were while records hung on them.

    clock: the last time that a telling event named. looked: how many events had been folded when
    they were last looked at. notes: what the last look rested on.
    """

    known: list[Risk] = field(default_factory=list)
    clock: int | None = None
    looked: int = 0
    notes: RiskNotes = field(default_factory=RiskNotes, compare=False, repr=False, metadata=DERIVED)
