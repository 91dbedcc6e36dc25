"""The leader that missed an epoch, and its two remedies, in every KRaft release.

Every schedule of a world of three replicas, one record and three elections, all of them clean:
which promises can be broken by the release as it is, and under each remedy.
`python -m tests.protocol.remedies` takes some ten minutes; exit status 1 where a remedy leaves
anything broken, or a release as it is breaks something else than the defect does.
"""

import argparse
import multiprocessing
import os
import sys
from dataclasses import replace

from replication.protocol.ground.boundaries import REMEDIES
from tests.protocol.small_worlds import Outcome, explore
from tests.protocol.world_states import Limits

KRAFT_RELEASES = (
    "2.8.2", "3.0.2", "3.1.2", "3.2.3", "3.3.2", "3.4.1", "3.5.2", "3.6.2", "3.7.2", "3.8.1",
    "3.9.1", "4.0.1", "4.1.1", "4.2.0", "4.3.0",
)  # fmt: skip
THREE_ELECTIONS = Limits(
    "a missed epoch", replicas=3, elections=3, records=1, stops=0, lost_responses=False,
    controller="kraft",
)  # fmt: skip
TWO_ELECTIONS = replace(THREE_ELECTIONS, elections=2)
AS_RELEASED = ""
VARIANTS = (AS_RELEASED, *(r.flag for r in REMEDIES))
BROKEN = {
    "isr_reaches_high_watermark", "acknowledged_records_survive", "committed_records_survive",
    "truncation_spares_committed",
}  # fmt: skip
"""What the defect breaks: the leader counts a member of the ISR for what it no longer has."""


def _explored(pair: tuple[str, str]) -> tuple[str, str, Outcome]:
    release, remedy = pair
    return release, remedy, explore(release, replace(THREE_ELECTIONS, remedy=remedy))


def main() -> int:
    """Prints what is broken by release and remedy; exit status as said above."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--release", choices=KRAFT_RELEASES, default=None)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    options = parser.parse_args()
    releases = [options.release] if options.release else KRAFT_RELEASES
    wrong = 0
    with multiprocessing.Pool(options.processes) as pool:
        pairs = [(release, variant) for release in releases for variant in VARIANTS]
        for release, remedy, outcome in pool.imap(_explored, pairs):
            ways = ", ".join(
                f"{name} in {len(way)}" for name, way in sorted(outcome.broken.items())
            )
            wrong += set(outcome.broken) != (set() if remedy else BROKEN) or not outcome.complete
            print(f"{release:6} {remedy or 'as released'}: {outcome.states} states, "
                  f"{ways or 'nothing broken'}", flush=True)  # fmt: skip
    print(f"{wrong} not as expected")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
