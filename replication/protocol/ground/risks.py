"""What is kept of failures that could cost records: since when, until when, at what cost."""

from dataclasses import dataclass, field

Run = tuple[int, int, str, str, tuple[int, ...], str]
"""Records that one failure would cost: first and end offset, tier, cause, holders, what ends it."""


@dataclass(slots=True)
class Risk:
    """A time in which one failure could cost records: which, since when, by events' clocks.

    failure, broker, next_leader: as `at_risk.Danger` has them; unclean: the next leader would be
    elected beside the ISR. runs: what it would have cost when
    last looked at; nothing is known to be in danger while there are none. over: it came to an end,
    at until.
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
    def key(self) -> tuple[int, str, int, int | None, bool]:
        """What tells one failure from another."""
        return (self.leader_epoch, self.failure, self.broker, self.next_leader, self.unclean)


@dataclass(slots=True)
class Risks:
    """Failures that are possible now, and those that were while records hung on them.

    clock: the last time that a telling event named. looked: how many events had been folded when
    they were last looked at.
    """

    known: list[Risk] = field(default_factory=list)
    clock: int | None = None
    looked: int = 0
