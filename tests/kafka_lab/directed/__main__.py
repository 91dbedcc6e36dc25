"""What `preflight` says, performed on real brokers: each CAN is made to happen, each CANNOT tried.

    python -m tests.kafka_lab.directed [--kafka 4.3.0] [--keep FILE] [--list]

Six profiles of settings, every kind of failure, on each release. For a CAN the commands of the very
history that `preflight` prints are carried out, one after the other: taps before the brokers let
followers fetch when it says so and no sooner. It is realised where the record was promised by the
real cluster (answered, or shown to a consumer), the leader then elected lacks it, and so does the
leader once all brokers are back. For a CANNOT a history that loses such records under other
settings is carried out under these; whatever these settings let come of it, none may be lost.
Histories of the same commands and settings are one run. Prints each run and the counts; exit status
1 where a CAN was not realised in three runs, or a CANNOT was broken.
"""

import argparse
import json
import sys
import tempfile
import traceback
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.kafka_lab.cluster import Cluster
from tests.kafka_lab.directed.histories import RELEASES, Run, runs_of
from tests.kafka_lab.directed.outcome import Seen
from tests.kafka_lab.directed.stage import Stage, plan_of

ATTEMPTS = 3


class Theatre:
    """Stages of one release: a cluster serves until a run spoils it."""

    def __init__(self, release: str, folder: Path) -> None:
        self.release, self.folder, self.number = release, folder, 0
        self.stage: Stage | None = None

    def perform(self, run: Run) -> Seen | None:
        """None where the cluster could not go on, which says nothing."""
        if self.stage is None:
            self.number += 1
            place = self.folder / f"{self.release}-{self.number}"
            place.mkdir(parents=True)
            cluster = Cluster(plan_of(self.release), place / "cluster")
            cluster.__enter__()
            self.stage = Stage(cluster, place)
        try:
            seen = self.stage.perform(run)
            if self.stage.is_spoilt:
                self.close()
            return seen
        except Exception:
            print(f"the run failed\n{traceback.format_exc()}", flush=True)
            self.close()
            return None

    def close(self) -> None:
        if self.stage is not None:
            self.stage.cluster.close()
            self.stage = None


def is_right(run: Run, seen: Seen) -> bool:
    """A CAN: each kind was lost, and for good. A CANNOT: none of them was, then or later."""
    if run.is_attack:
        return not set(run.kinds) & {*seen.lost, *seen.lost_for_good}
    return set(run.kinds) <= set(seen.lost) & set(seen.lost_for_good)


def performed(theatre: Theatre, run: Run) -> dict[str, Any]:
    """A run in up to three attempts, as it is kept. The worst of a CANNOT counts."""
    told: list[dict[str, Any]] = []
    for _ in range(ATTEMPTS):
        seen = theatre.perform(run)
        if seen is None:
            continue
        right = is_right(run, seen)
        told.append({"right": right, **vars(seen)})
        if right or run.is_attack:
            break
    return {
        "kafka": theatre.release,
        "says": says(run),
        "right": bool(told) and told[-1]["right"],
        "settings": asdict(run.settings),
        "leader": run.at,
        "lines": run.lines,
        "kinds": run.kinds,
        "cells": run.cells,
        "attempts": told,
    }


def parsed(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.kafka_lab.directed")
    parser.add_argument("--kafka", action="append", default=[])
    parser.add_argument("--says", choices=("CAN", "CANNOT"))
    parser.add_argument("--only", type=int, nargs="*", default=[], help="runs by their number")
    parser.add_argument(
        "--keep",
        type=Path,
        metavar="FILE",
        help="a line of JSON for each run; what is right there is not made again",
    )
    parser.add_argument("--list", action="store_true", help="the runs that would be made")
    return parser.parse_args(arguments)


def made(release: str, runs: list[Run], keep: Path | None) -> Counter[str]:
    """Makes these runs, says what came of each, and counts runs and cells."""
    score: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="directed-") as folder:
        theatre = Theatre(release, Path(folder))
        try:
            for run in runs:
                one = performed(theatre, run)
                word = "right" if one["right"] else "WRONG" if one["attempts"] else "NOT RUN"
                print(f"{word} {text(run)}", flush=True)
                for seen in one["attempts"]:
                    print(f"    {seen}", flush=True)
                score[f"{says(run)} runs {word}"] += 1
                score[f"{says(run)} cells {word}"] += len(run.cells)
                if keep:
                    with keep.open("a") as file:
                        file.write(json.dumps(one) + "\n")
        finally:
            theatre.close()
    return score


def text(run: Run) -> str:
    """A run in a line."""
    where = "; ".join(sorted({f"{name}: {failure}" for name, failure, _ in run.cells}))
    lines = " ; ".join(run.lines)
    return f"{run.settings.kafka_version} {says(run)} {','.join(run.kinds)} [{where}] {lines}"


def says(run: Run) -> str:
    """What `preflight` says of its kinds of records."""
    return "CANNOT" if run.is_attack else "CAN"


def key(run: Run) -> str:
    """What tells a run from others."""
    return json.dumps([asdict(run.settings), run.lines, says(run)])


def kept_as_right(keep: Path | None) -> set[str]:
    """The keys of runs that need not be made again."""
    if keep is None or not keep.exists():
        return set()
    kept = map(json.loads, keep.read_text().splitlines())
    return {
        json.dumps([one["settings"], one["lines"], one["says"]]) for one in kept if one["right"]
    }


def main(arguments: list[str]) -> int:
    chosen = parsed(arguments)
    score: Counter[str] = Counter()
    for release in chosen.kafka or RELEASES:
        runs, counts = runs_of(release)
        print(f"{release}: {dict(counts)} cells in {len(runs)} runs", flush=True)
        done = kept_as_right(chosen.keep)
        wanted = [r for r in runs if chosen.says in (None, says(r)) and key(r) not in done]
        if chosen.only:
            wanted = [runs[number] for number in chosen.only]
        if chosen.list:
            for run in wanted:
                print(runs.index(run), text(run))
        else:
            score += made(release, wanted, chosen.keep)
    for name, count in sorted(score.items()):
        print(f"{count:6} {name}")
    return int(any("right" not in name for name in score))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
