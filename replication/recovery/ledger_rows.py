"""Rows of the loss ledger, looked up by offset."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Generic, TypeVar

from replication.protocol.judgement.bounded import Identity

Item = TypeVar("Item")
# What is back on a later leader needs nobody to bring it.
NOT_BACK = ("lost", "recoverable", "undetermined")
# The status of rows that are no losses: their topic was deleted.
WITH_TOPIC = "topic_deleted"


@dataclass(slots=True, eq=False)
class Row:
    """One row of the ledger: records [first, end) of one leader epoch (None: not known).

    written_before: the leader epoch before which they were written, where that is all that is known
    of it. acknowledged: from when until when producers got their answers (ISO 8601); None where
    that is not known. became: what became of its offsets, in offset order: (first, end, outcome,
    why).
    """

    first: int
    end: int
    leader_epoch: int | None
    tier: str
    status: str
    finding_id: str | None
    written_before: int | None = None
    acknowledged: tuple[str, str] | None = None
    became: list[tuple[int, int, str, str]] = field(default_factory=list)

    def may_be_of(self, leader_epoch: int | None) -> bool:
        """Whether a record of a leader epoch may be the row's. None: it names none."""
        if self.leader_epoch is not None:
            return leader_epoch == self.leader_epoch
        bound = self.written_before
        return bound is None or leader_epoch is None or leader_epoch < bound

    def settle(self, first: int, end: int, outcome: str, why: str = "") -> None:
        """Notes what became of offsets at or behind all that were noted before."""
        first, end = max(first, self._reached), min(end, self.end)
        if first >= end:
            return
        last = self.became[-1] if self.became else None
        if last is not None and last[1] == first and last[2:] == (outcome, why):
            self.became[-1] = (last[0], end, outcome, why)
        else:
            self.became.append((first, end, outcome, why))

    @property
    def _reached(self) -> int:
        return self.became[-1][1] if self.became else self.first

    def settle_rest(self, until: int, outcome: str, why: str) -> None:
        """Notes the same of all offsets below until that nothing was noted of."""
        self.settle(self._reached, until, outcome, why)

    def outcome_at(self, offset: int) -> str | None:
        """What became of one offset, None before that is known."""
        at = bisect_right(self.became, offset, key=lambda b: b[0]) - 1
        return self.became[at][2] if at >= 0 and offset < self.became[at][1] else None


class Ranges(Generic[Item]):
    """Things that each hold a range of offsets [first, end), to be asked for by offset."""

    def __init__(self, items: Iterable[tuple[int, int, Item]]) -> None:
        ordered = sorted(items, key=lambda i: i[:2])
        self.all: list[Item] = [item for _, _, item in ordered]
        self._firsts = [first for first, _, _ in ordered]
        self._ends = [end for _, end, _ in ordered]
        self._reached = list(accumulate(self._ends, max))

    def touching(self, first: int, end: int) -> list[Item]:
        """Those of which an offset is in [first, end), in offset order."""
        found = []
        at = bisect_left(self._firsts, end) - 1
        while at >= 0 and self._reached[at] > first:
            if self._ends[at] > first:
                found.append(self.all[at])
            at -= 1
        return found[::-1]


class Rows(Ranges[Row]):
    """The rows of one topic partition."""

    def __init__(self, rows: Iterable[Row]) -> None:
        super().__init__((row.first, row.end, row) for row in rows)


def rows_by_partition(losses: list[dict[str, Any]]) -> dict[Identity, Rows]:
    """The ledger's rows of what is not back, by topic partition."""
    found: dict[Identity, list[Row]] = {}
    for loss in losses:
        if loss["status"] in (*NOT_BACK, WITH_TOPIC):
            where = (loss["topic"], loss["topic_id"] or "", loss["partition"])
            found.setdefault((loss["cluster_id"] or "", *where), []).append(_row_of(loss))
    return {identity: Rows(rows) for identity, rows in sorted(found.items())}


def may_be_lost(loss: dict[str, Any], leader_epoch: int | None) -> bool:
    """Whether a loss may be of a record of this leader epoch. None: it is not known."""
    return leader_epoch is None or _row_of(loss).may_be_of(leader_epoch)


def _row_of(loss: dict[str, Any]) -> Row:
    told = loss["acknowledged_from"], loss["acknowledged_until"]
    return Row(
        first=loss["first_offset"],
        end=loss["end_offset"],
        leader_epoch=loss["leader_epoch"],
        tier=loss["tier"],
        status=loss["status"],
        finding_id=loss["finding_id"],
        written_before=_written_before(loss),
        acknowledged=None if None in told else told,
    )


def _written_before(loss: dict[str, Any]) -> int | None:
    """The leader epoch before which the records of a loss were written: whoever began to lead
    without them had not written them. A disk may lose what its own leader wrote in that epoch."""
    leader_epoch: int | None = loss["next_leader_epoch"]
    of_a_disk = {"storage_loss", "last_replica_standing", "unknown"} & {
        loss["cause"],
        *loss["causes"],
    }
    return None if leader_epoch is None else leader_epoch + bool(of_a_disk)
