"""`python -m tests.kafka_lab.pairs`: one fault script on real clusters, with and without a change.

Each script runs under two releases, twice under each, and with what can be left out of it; the
topics of a run live by other settings side by side. `whatif` is asked about each loss of one run
what had become of it by the settings of another; the other run shows it. Prints the counts; exit
status 1 where an answer was wrong. `--again DIR` asks about kept runs anew, without a broker.
"""

import argparse
import random
import shutil
import sys
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.kafka_lab.pairs.comparing import Kept, Score, compared, repetitions, runs_under
from tests.kafka_lab.pairs.scripts import SCRIPTS, Arm, Script


def parsed(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.kafka_lab.pairs")
    parser.add_argument("--script", choices=sorted(SCRIPTS), action="append", default=[])
    parser.add_argument("--kafka", action="append", default=[], help="4.3.0-elr: with ELR")
    parser.add_argument("--seed", type=int, action="append", default=[])
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep every run under DIR")
    parser.add_argument("--again", type=Path, metavar="DIR", help="ask about kept runs anew")
    parser.add_argument("--jobs", type=int, default=1, help="with --again: questions at once")
    parser.add_argument("--list", action="store_true", help="the runs that would be made")
    return parser.parse_args(arguments)


def arms_of(script: Script, seed: int, chosen: list[str]) -> Iterator[Arm]:
    """The runs of one script and seed: under two releases, drawn where none is chosen."""
    chance = random.Random(f"releases {script.name} {seed}")
    versions = chosen or chance.choice(script.releases)
    if not script.together:
        for version in versions:
            for topic in script.topics:
                yield Arm(script, seed, version, (), [topic])
        return
    for version in versions:
        for repeat in (0, 1):
            yield Arm(script, seed, version, (), script.topics, repeat)
    for left_out in script.left_out[1:]:
        yield Arm(script, seed, versions[-1], left_out, script.topics)


def run(arm: Arm, directory: Path) -> bool:
    """Makes one run and keeps its evidence and outcome; False where it failed."""
    shutil.rmtree(directory, ignore_errors=True)
    started = time.monotonic()
    try:
        faults = arm.run(directory)
    except Exception:
        print(f"{directory.name}: the run failed\n{traceback.format_exc()}", flush=True)
        return False
    shutil.rmtree(directory / "cluster", ignore_errors=True)
    lost = {t: len(o.lost) for t, o in faults.outcomes.items() if o.lost}
    told = f"{arm.script.name} {arm.seed} {arm.name}: lost {lost}"
    print(f"[{time.monotonic() - started:3.0f} s] {told}", flush=True)
    return True


def report(kept: list[Kept], jobs: int) -> int:
    """Asks about every pair and prints the score."""
    score = Score()
    groups: dict[tuple[str, int], list[Kept]] = {}
    for one in kept:
        groups.setdefault((one.script, one.seed), []).append(one)
    with ThreadPoolExecutor(jobs) as pool:
        for found in pool.map(lambda group: list(compared(group)), groups.values()):
            for answered in found:
                print(f"{answered.name} --set {answered.said}: {answered.verdicts}", flush=True)
                score.pairs.append(answered)
    for name, same in repetitions(kept):
        score.repeated += 1
        if not same:
            score.differing.append(f"  differs: {name}")
    print(score.text())
    return int(not score.pairs or any(pair.wrong for pair in score.pairs))


def main(arguments: list[str]) -> int:
    chosen = parsed(arguments)
    if chosen.again:
        return report(runs_under(chosen.again), chosen.jobs)
    arms = [
        arm
        for seed in chosen.seed or [1]
        for name in chosen.script or SCRIPTS
        for arm in arms_of(SCRIPTS[name], seed, chosen.kafka)
    ]
    if chosen.list:
        for arm in arms:
            print(f"{arm.script.name} {arm.seed} {arm.name}")
        return 0
    if chosen.keep is None:
        print("--keep DIR says where the runs are to lie", file=sys.stderr)
        return 2
    for arm in arms:
        run(arm, chosen.keep / f"{arm.script.name}__{arm.seed}" / arm.name)
    return report(runs_under(chosen.keep), chosen.jobs)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
