"""`python -m tests.kafka_lab`: scenarios and chaos runs, each judged; `make lab` runs them all.

Prints for every run what differs between the truth and the answer of `diagnose`, and at the end
the sums. Exit status 1 when a verdict was wrong or an experiment did not get where it should.
"""

import argparse
import json
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.handed_over import OF_DUMPS, SHAPES
from tests.kafka_lab.ablation import ALTERED, RANDOM, WITHHELD, judge_changed
from tests.kafka_lab.chaos import run_chaos
from tests.kafka_lab.comparing import Comparison, compare
from tests.kafka_lab.experiment import Experiment
from tests.kafka_lab.healthy import run_healthy
from tests.kafka_lab.notes import Notes
from tests.kafka_lab.site import Site
from tests.kafka_lab.truth import Run, establish, load_truths, save_truths
from tests.kafka_lab.versions import SUPPORTED, Version
from tests.kafka_lab.wrong_choices import SCENARIOS

# Over three kinds of controller and three truncation rules; 24 runs.
CHAOS_VERSIONS = ("1.1.1", "2.8.2", "4.1.1", "0.10.2.2", "3.9.1", "4.3.0")
CHAOS_SEEDS = range(1, 5)

Named = tuple[str, Callable[[Path], Experiment]]


def parsed(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.kafka_lab", description=__doc__)
    parser.add_argument("--scenario", choices=sorted(SCENARIOS), action="append", default=[])
    parser.add_argument("--chaos", action="store_true", help="only chaos runs")
    parser.add_argument("--healthy", action="store_true", help="restarts and moves, no faults")
    parser.add_argument(
        "--calm", type=float, default=0.0, metavar="S", help="with --chaos: seconds between faults"
    )
    parser.add_argument("--seed", type=int, action="append", default=[])
    parser.add_argument("--kafka", choices=SUPPORTED, action="append", default=[])
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep every run under DIR")
    parser.add_argument("--tape", action="store_true", help="keep what shippers would have sent")
    parser.add_argument("--again", type=Path, metavar="DIR", help="judge kept runs under DIR anew")
    parser.add_argument(
        "--clock-bound", type=int, metavar="MS", help="with --again: declare it to diagnose"
    )
    parser.add_argument("--truth", action="store_true", help="with --again: the truth anew, too")
    parser.add_argument(
        "--changed", action="append", default=[], type=a_change, metavar="NAME",
        help="with --again: after this change of the evidence, all of them, random:N subsets, or "
        "\"shapes\": all in which people hand evidence over",
    )  # fmt: skip
    parser.add_argument("--list", action="store_true", help="the scenarios and their versions")
    return parser.parse_args(arguments)


def a_change(name: str) -> str:
    """The name of a change of the evidence, checked."""
    if name in {"all", "shapes", *WITHHELD, *ALTERED, *SHAPES, *OF_DUMPS} or RANDOM.fullmatch(name):
        return name
    known = ", ".join(["all", "shapes", *WITHHELD, *ALTERED])
    raise argparse.ArgumentTypeError(f"one of {known}, random:N")


def runs(chosen: argparse.Namespace) -> Iterator[Named]:
    """Named runs: the chosen scenarios, or all, then chaos."""
    versions = chosen.kafka or list(SUPPORTED)
    random_ones = chosen.chaos or chosen.healthy or chosen.seed
    names = chosen.scenario or ([] if random_ones else sorted(SCENARIOS))
    for name in names:
        for version in SCENARIOS[name].versions:
            if version in versions:
                yield f"{name}__{version}", _scenario(name, Version(version))
    if chosen.scenario:
        return
    for version in CHAOS_VERSIONS:
        for seed in chosen.seed or CHAOS_SEEDS:
            if version in versions:
                kind = "healthy" if chosen.healthy else "chaos"
                run = _seeded(kind, seed, Version(version), chosen.tape, chosen.calm)
                yield f"{kind}__{version}__seed{seed}", run


def _scenario(name: str, version: Version) -> Callable[[Path], Experiment]:
    return lambda directory: SCENARIOS[name].run(version, directory)


def _seeded(
    kind: str, seed: int, version: Version, taped: bool, calm: float
) -> Callable[[Path], Experiment]:
    if kind == "healthy":
        return lambda directory: run_healthy(seed, version, directory, taped)
    return lambda directory: run_chaos(seed, version, directory, taped, calm)


def main(arguments: list[str]) -> int:
    chosen = parsed(arguments)
    if chosen.list:
        for name, known in sorted(SCENARIOS.items()):
            print(f"{name:40} {' '.join(known.versions)}")
        return 0
    if chosen.again:
        kept = [path.parent for path in kept_truths(chosen.again)]
        for directory in kept if chosen.truth else ():
            established_again(directory)
        if chosen.changed:
            names = [] if "all" in chosen.changed else chosen.changed
            return report([one for directory in kept for one in changed(directory, names)], [])
        return report([judged_again(directory, chosen.clock_bound) for directory in kept], [])
    done: list[Comparison] = []
    spoilt: list[str] = []
    with tempfile.TemporaryDirectory(prefix="kafka-lab-") as scratch:
        for name, run in runs(chosen):
            directory = (chosen.keep or Path(scratch)) / name
            shutil.rmtree(directory, ignore_errors=True)
            started = time.monotonic()
            try:
                experiment = run(directory)
            except Exception:
                # The next experiment has its own cluster; the sums at the end tell of this one.
                spoilt.append(name)
                print(f"{name}: the experiment failed\n{traceback.format_exc()}", flush=True)
                continue
            comparison, answer = experiment.compare(name)
            (directory / "answer.json").write_text(json.dumps(answer, indent=1))
            done.append(comparison)
            print(f"[{time.monotonic() - started:3.0f} s] {comparison.text()}", flush=True)
            if not chosen.keep:
                shutil.rmtree(directory, ignore_errors=True)
    return report(done, spoilt)


def kept_truths(directory: Path) -> list[Path]:
    return sorted(directory.glob("**/truth.json"))


def established_again(directory: Path) -> None:
    """The truth of a kept run worked out anew, by the laboratory as it is now."""
    site = Site.kept(directory / "cluster")
    notes = Notes.load(site.directory)
    run = Run.read(site, notes, directory / "evidence", directory / "acknowledgements.jsonl")
    save_truths(directory / "truth.json", establish(run))


def changed(directory: Path, names: list[str]) -> list[Comparison]:
    """`diagnose` on a kept run without some of the evidence; prints what is wrong then."""
    done = judge_changed(directory, names)
    for comparison in done:
        if not comparison.right or comparison.assumed or comparison.contradicted:
            print(comparison.text(), flush=True)
    return done


def sum_of(name: str, done: list[Comparison]) -> None:
    """One line of what a change of the evidence costs."""
    verdicts, unknown = sum(o.verdicts for o in done), sum(len(o.unknown) for o in done)
    wrong = sum(len(o.wrong + o.false_alarms) for o in done)
    assumed, empty = sum(len(o.assumed) for o in done), sum(len(o.contradicted) for o in done)
    print(
        f"{name}: {verdicts} verdicts, {wrong} wrong, {assumed} wrong as assumed, {empty} without "
        f"a history, UNKNOWN {unknown / verdicts if verdicts else 0.0:.0%}",
        flush=True,
    )


def judged_again(directory: Path, clock_bound: int | None) -> Comparison:
    """`diagnose` once more on a kept run, held against the truth that was found then."""
    truths = load_truths(directory / "truth.json")
    comparison, answer = compare(directory.name, directory / "evidence", truths, clock_bound)
    (directory / "answer.json").write_text(json.dumps(answer, indent=1))
    print(comparison.text(), flush=True)
    return comparison


def report(done: list[Comparison], spoilt: list[str]) -> int:
    by_offset = sum(one.by_offset for one in done)
    verdicts = sum(one.verdicts for one in done) - by_offset
    unknown_by_offset = sum(len(one.unknown_by_offset) for one in done)
    unknown = sum(len(one.unknown) for one in done)
    wrong = sum(len(one.wrong) for one in done)
    causes = sum(len(one.wrong_causes) for one in done)
    alarms = sum(len(one.false_alarms) for one in done)
    for change in dict.fromkeys(one.change for one in done if one.change):
        sum_of(change, [one for one in done if one.change == change])
    share = unknown / verdicts if verdicts else 0.0
    print(
        f"{len(done)} runs, {verdicts + by_offset} verdicts: {wrong} wrong, {alarms} false alarms, "
        f"{causes} wrong causes or contracts; {unknown} UNKNOWN of {verdicts} ({share:.1%}); "
        f"{len(spoilt)} experiments failed {spoilt or ''}"
    )
    if by_offset:
        runs_without = sum(one.by_offset > 0 for one in done)
        print(
            f"besides, {unknown_by_offset} UNKNOWN of {by_offset} verdicts in {runs_without} runs "
            "whose acknowledgements name records by offset alone"
        )
    return 0 if done and not (wrong or alarms or causes or spoilt) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
