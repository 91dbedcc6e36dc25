"""Random schedules of the machine against what `preflight` says cannot be lost.

A schedule does what the search does, and more of it: four records, lags and moves of leadership as
often as they come, answers to fetches that are lost or late, members that join the ISR again. The
failure comes as often as its kind says. A schedule ends after thirty moves, or once no failure is
left and nobody can take the leader's place. One that loses a record of a kind that the search said
cannot be is printed: the moves that it takes, and what of them the search does not look at.

`python -m tests.foresight.sweep SCHEDULES [FIRST_SEED]` makes so many for each profile and failure
by which some kind of record cannot be lost, and a twentieth where each can. How many of the losses
that the search found they find, too, tells what they are worth.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache

from replication.foresight.failures import FAILURES, Failure
from replication.foresight.search import Bound, Found, search
from replication.foresight.settings import Settings
from replication.foresight.worlds import KINDS
from tests.foresight.walks import Walk, shortened, walk
from tests.kafka_lab.directed.histories import RELEASES
from tests.kafka_lab.directed.histories import profiles as performed

PROFILES = (
    Settings("0.10.2.2", 3, 2, False, "zookeeper"),
    Settings("1.1.1", 3, 2, False, "zookeeper"),
    Settings("2.8.1", 3, 1, False, "zookeeper"),
    Settings("2.8.1", 3, 2, True, "zookeeper"),
    Settings("3.9.1", 3, 2, False, "kraft"),
    Settings("3.9.1", 2, 1, False, "kraft", flushed=True),
    Settings("4.1.0", 3, 2, False, "kraft", eligible=True),
    Settings("4.3.0", 3, 2, False, "kraft", eligible=True, racks=(0, 0, 1)),
)
# With what is performed on real brokers: six profiles of three releases.
ALL = tuple(dict.fromkeys([*PROFILES, *(s for r in RELEASES for s in performed(r).values())]))
MOST_SHOWN, AT_ONCE = 3, 100


@dataclass
class Score:
    """counts: what -> how many. broken: in words, the first few of a profile and failure. tried:
    kinds that cannot be lost; can: kinds that can, by whether a schedule lost one, too."""

    counts: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)
    tried: set[tuple[Settings, str, str]] = field(default_factory=set)
    can: dict[tuple[Settings, str, str], bool] = field(default_factory=dict)

    def lines(self) -> list[str]:
        """The counts."""
        counts = {
            **self.counts,
            "kinds tried that CANNOT be lost": len(self.tried),
            "kinds that CAN be lost": len(self.can),
            "of these lost by a schedule, too": sum(self.can.values()),
        }
        return [f"{number:9} {what}" for what, number in counts.items()]


@cache
def found_by_default(settings: Settings, failure: Failure) -> Found:
    """What the search finds within its usual bound."""
    return search(settings, failure, Bound())


def pairs(profiles: Sequence[Settings], names: Sequence[str]) -> Iterator[tuple[Settings, Failure]]:
    """Each profile with each failure; racks matter to one kind of failure alone."""
    asked = [f for f in FAILURES if not names or f.name in names]
    of_racks = [f for f in asked if f.together == "rack"]
    yield from ((s, f) for s in profiles if s.racks for f in of_racks)
    for settings in dict.fromkeys(s.without_racks() for s in profiles):
        yield from ((settings, f) for f in asked if f not in of_racks)


def sweep(
    seeds: range,
    names: Sequence[str] = (),
    profiles: Sequence[Settings] = PROFILES,
    score: Score | None = None,
) -> Score:
    """Schedules of these seeds for each profile and kind of failure, added to the score."""
    score = score or Score()
    for settings, failure in pairs(profiles, names):
        can = set(found_by_default(settings, failure).lost)
        some = seeds if can < set(KINDS) else seeds[: max(1, len(seeds) // 20)]
        score.tried |= {(settings, failure.name, kind) for kind in KINDS if kind not in can}
        for seed in some:
            one = walk(settings, failure, seed)
            score.counts["schedules"] += 1
            score.counts["lost as foretold"] += bool(one.lost & can)
            for kind in can:
                at = (settings, failure.name, kind)
                score.can[at] = score.can.get(at, False) or kind in one.lost
            if one.lost - can:
                of_cell = f"BROKEN: {settings.kafka_version} {failure.name}"
                score.counts[of_cell] += 1
                if score.counts[of_cell] <= MOST_SHOWN:
                    score.broken.append(_told(one, seed, one.lost - can))
    return score


def _told(one: Walk, seed: int, kinds: set[str]) -> str:
    """A schedule that lost what cannot be lost, for people."""
    short = shortened(one, kinds)
    where = f"{one.settings} {one.failure.name} seed {seed}: {sorted(short.lost & kinds)}"
    return f"{where}\n  {short.text()}\n  beyond the search: {short.beyond() or 'NOTHING'}"


def main() -> int:
    """Prints the counts and what was broken; exit status 1 if anything was."""
    parser = argparse.ArgumentParser()
    parser.add_argument("schedules", type=int, help="of each profile and kind of failure")
    parser.add_argument("first", type=int, nargs="?", default=0)
    parser.add_argument("--failure", default="")
    options = parser.parse_args()
    names = tuple(n for n in options.failure.split(",") if n)
    score, end, began = Score(), options.first + options.schedules, time.process_time()
    for first in range(options.first, end, AT_ONCE):
        shown = len(score.broken)
        sweep(range(first, min(end, first + AT_ONCE)), names, ALL, score)
        counts = ", ".join(f"{number} {what}" for what, number in score.counts.items())
        print(
            *score.broken[shown:],
            f"{counts}; {time.process_time() - began:.0f} s of CPU",
            sep="\n",
            flush=True,
        )
    print("\n".join(score.lines()))
    return int(bool(score.broken))


if __name__ == "__main__":
    sys.exit(main())
