"""The states that histories pass through, at one offset. Sets of records are bit masks."""

from dataclasses import dataclass
from typing import NamedTuple

Exposed = frozenset[tuple[int, int]]
NOTHING: Exposed = frozenset()


class At(NamedTuple):
    """A partition at the end of a leader epoch.

    records: by place of the replica, the record that it holds, 0 for none. above, ever: masks of
    places: whose high watermark is above the offset, whose ever was. The others are masks of
    records: appended by a leader; committed_by_any: below some leader's high watermark; committed:
    below a valid leader's; missed_*: of each of these those that a later leader began without.
    lost: the record that a disk lost without a trace; bit 0 for one of which nothing more is kept.
    """

    records: tuple[int, ...]
    above: int = 0
    ever: int = 0
    appended: int = 0
    committed_by_any: int = 0
    committed: int = 0
    missed: int = 0
    missed_by_any: int = 0
    missed_committed: int = 0
    lost: int = 0


# appended, committed_by_any, committed, and what was missed of each.
Masks = tuple[int, int, int, int, int, int]
Had = tuple[frozenset[int], ...]


@dataclass(frozen=True, slots=True)
class Broker:
    """What moves and filters need to know of a broker within a leader epoch.

    covered: all its lines are here; traced: its every step is. unseen_losses: how many unseen
    losses of one record with a disk are admitted, None for any number. truncation: its release's
    rule. alone, always_alone: it was alone in the ISR as the epoch began, and throughout it, in a
    release where that commits. fenced: fetches carry the leader epoch.
    """

    covered: bool
    traced: bool
    truncation: str
    unseen_losses: int | None = None
    alone: bool = False
    always_alone: bool = False
    fenced: bool = True

    def may_lose(self, *, shown: bool) -> bool:
        """Whether a disk may lose a record: one that an earlier step showed, its end being lower
        now, or one of those that are admitted though nothing shows them."""
        return shown or self.unseen_losses != 0

    def lost(self, record: int, *, shown: bool = False) -> int:
        """The bit that a loss sets, so that one record is lost unseen at most, and once."""
        return 0 if self.unseen_losses is None or shown else 1 << record


class Leading(NamedTuple):
    """A broker within an epoch that it leads. role: whether it leads by now; occurrence: how often
    it began to. exposed: (record, above) pairs that it showed its followers. steps: what it did."""

    role: bool
    occurrence: int
    record: int
    above: int
    ever: int
    appended: int
    exposed: frozenset[tuple[int, int]]
    steps: tuple[tuple[str, int], ...]
    lost: int


class Following(NamedTuple):
    """A broker within an epoch that another leads. follows: it does by now; ready: it has cut its
    log where it had to; connected: it fetches. had: the records that it showed its leader."""

    follows: bool
    ready: bool
    connected: bool
    record: int
    above: int
    ever: int
    had: frozenset[int]
    lost: int


class Ending(NamedTuple):
    """One way of a follower through an epoch."""

    record: int
    above: int
    ever: int
    had: frozenset[int]
    lost: int
