"""What was foretold of an election, held against what the elected log then lacks: offset by offset.

`surely` has to be among what is really lost, and what is really lost among `surely` and `perhaps`.
Where the laboratory itself cannot tell whether a record was committed, it may be lost or not.
"""

from collections import Counter
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

from tests.kafka_lab.elections.measured import Log, Measured

# An answer at acks=all of a leader that had been replaced promises no more than one at acks=1, and
# who judges need not know that it was replaced: both tiers are held together.
ACKNOWLEDGED = ("acknowledged_by_isr", "acknowledged_by_leader")
COMMITTED = ("committed",)


@dataclass
class Score:
    """counts: by what. failures: in words."""

    counts: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def add(self, other: "Score") -> None:
        self.counts += other.counts
        self.failures += other.failures


@dataclass(frozen=True)
class Lost:
    """What an elected log lacks: at which offsets surely, and at which besides the laboratory
    cannot tell."""

    surely: frozenset[int]
    perhaps: frozenset[int]


def lost_of_acknowledged(measured: Measured, elected: Log, *acks: str) -> Lost:
    """Acknowledged records that are nowhere in the elected log."""
    names = {name for name, _ in elected.values()}
    lost = {
        offset
        for name, offset, how in measured.acks
        if how in acks and name not in names and offset is not None
    }
    return Lost(frozenset(lost), frozenset())


def lost_of_committed(measured: Measured, elected: Log) -> Lost:
    """Committed records that are not where they were."""

    def gone(committed: list[tuple[int, str]]) -> frozenset[int]:
        return frozenset(o for o, name in committed if elected.get(o, ("", None))[0] != name)

    sure = gone(measured.committed)
    return Lost(sure, gone(measured.perhaps_committed) - sure)


def promised(measured: Measured, elected: Log) -> int:
    """How many records that Kafka promises to keep are really lost."""
    all_of = lost_of_acknowledged(measured, elected, "all").surely
    return len(all_of | lost_of_committed(measured, elected).surely)


def hold(measured: Measured, where: str, foretold: dict[str, Any], elected: Log) -> Score:
    """One candidate of one answer against its election."""
    score = Score()
    within = _within(measured, elected)
    for name, tiers, real in (
        ("acknowledged", ACKNOWLEDGED, lost_of_acknowledged(measured, elected, "all", "1")),
        ("committed", COMMITTED, lost_of_committed(measured, elected)),
    ):
        surely = _offsets(foretold, tiers, ("surely",), within)
        worst = _offsets(foretold, tiers, ("surely", "perhaps"), within)
        too_much = sorted(surely - real.surely - real.perhaps)
        too_little = sorted(real.surely - worst)
        open_ones = worst - surely
        score.counts["offsets foretold"] += len(surely)
        score.counts["offsets lost"] += len(real.surely)
        score.counts["offsets left open"] += len(open_ones)
        score.counts["undecided" if open_ones else "decided"] += 1
        unseen = not foretold["log_is_here"] and "disks_keep" in foretold["assuming"]
        if unseen and (too_much or too_little):
            # Said to hold if that disk comes back whole, which nobody had looked at.
            score.counts["wrong by the disk that nobody looked at"] += 1
        elif too_much or too_little:
            score.counts["WRONG"] += 1
            score.failures.append(
                f"{where}, broker {foretold['replica']} elected, {name}: foretold but kept "
                f"{too_much}, lost but not foretold {too_little}"
                f" (assuming {', '.join(foretold['assuming']) or 'nothing'})"
            )
    return score


def hold_copies(
    where: str,
    foretold: dict[str, Any],
    before: dict[int, Log],
    after: dict[int, Log],
    moved: AbstractSet[int] = frozenset(),
) -> Score:
    """Of what the elected one lacks: what the others were said to cut is gone from them, and what
    they were said to keep is not. moved: whose log the plan moved away, so that nothing of it is
    left."""
    score = Score()
    elected = after[foretold["replica"]]
    for copy in foretold["copies"]:
        had, has = before[copy["replica"]], after.get(copy["replica"])
        if has is None:
            continue
        had = {o: held for o, held in had.items() if elected.get(o, ("", 0))[0] != held[0]}
        kept = {o for o, held in had.items() if o in has and has[o][0] == held[0]}
        cut = {o for o in _in(copy["cut_by_first_fetch"], had) if o in kept}
        stays = {o for o in _in(copy["kept_and_diverging"], had) if o not in kept}
        if copy["replica"] in moved:
            cut, stays = kept, set()
        score.counts["copies"] += 1
        score.counts["copies left open"] += bool(copy["either"])
        if cut or stays:
            score.counts["WRONG copies"] += 1
            score.failures.append(
                f"{where}, broker {foretold['replica']} elected, copy of {copy['replica']}: said "
                f"to be cut but kept {sorted(cut)}, said to stay but gone {sorted(stays)}"
                f" (assuming {', '.join(copy['assuming']) or 'nothing'})"
            )
    return score


def by_log_ends(measured: Measured, among: list[int]) -> dict[str, int]:
    """Whom the usual rules choose, by the bytes on the disks: the last leader epoch and then the
    longest log; and the longest log. Of equals the first in the assignment."""

    def last_leader_epoch(n: int) -> int:
        log = measured.logs[n]
        return -1 if not log or log[max(log)][1] is None else log[max(log)][1]

    def end(n: int) -> int:
        return max(measured.logs[n], default=-1)

    order = sorted(among, key=measured.replicas.index)
    return {
        "last epoch, then longest log": max(order, key=lambda n: (last_leader_epoch(n), end(n))),
        "longest log": max(order, key=end),
    }


def _within(measured: Measured, elected: Log) -> range:
    """All offsets at which anything was ever written."""
    known = [*elected, *(o for log in measured.logs.values() for o in log)]
    known += [o for o, _ in (*measured.committed, *measured.perhaps_committed)]
    known += [o for _, o, _ in measured.acks if o is not None]
    return range(max(known, default=-1) + 1)


def _offsets(
    foretold: dict[str, Any], tiers: tuple[str, ...], kinds: tuple[str, ...], within: range
) -> set[int]:
    return {
        o
        for tier in tiers
        for kind in kinds
        for first, end in foretold["lost"][tier][kind]
        for o in range(first, min(within.stop, within.stop if end is None else end))
    }


def _in(ranges: list[list[int | None]], log: Log) -> set[int]:
    return {
        o for o in log for first, end in ranges if o >= (first or 0) and (end is None or o < end)
    }
