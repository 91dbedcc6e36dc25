"""`python -m tests.kafka_lab.elections`: stories on real brokers, each replica elected, compared.

Of each story the disks are kept once and put back for each replica, which is elected by the
commands of the plan that `decide` prints. What its log then lacks is held against what was
foretold, offset by offset, and against what log ends alone would have chosen. `--again DIR` judges
kept captures anew, by the product as it is now, without a broker. Exit status 1 where something was
foretold wrongly, or a check of a plan did not print what it must.
"""

import argparse
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from pathlib import Path

from replication.decisions.reorder import SINCE
from tests.kafka_lab.elections.by_script import elect_by_script
from tests.kafka_lab.elections.electing import elect, put_back_and_elect, write_outputs
from tests.kafka_lab.elections.judging import judged, report
from tests.kafka_lab.elections.measured import MEASURED_FILE, Measured
from tests.kafka_lab.elections.recording import record
from tests.kafka_lab.elections.reordering import reorder_and_elect
from tests.kafka_lab.elections.stopped import told
from tests.kafka_lab.elections.stories import STORIES, Story
from tests.kafka_lab.versions import FOR_COMMANDS, SUPPORTED, Version


def parsed(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.kafka_lab.elections")
    parser.add_argument("--story", choices=sorted(STORIES), action="append", default=[])
    parser.add_argument("--kafka", choices=SUPPORTED + FOR_COMMANDS, action="append", default=[])
    parser.add_argument("--zookeeper", action="store_true", help="3.9.1 with ZooKeeper")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep every capture under DIR")
    parser.add_argument("--again", type=Path, metavar="DIR", help="judge kept captures anew")
    parser.add_argument("--whole-only", action="store_true", help="with all evidence only")
    parser.add_argument(
        "--record", action="store_true", help="write which commands were tried (with --again)"
    )
    parser.add_argument(
        "--reorder", action="store_true", help="besides, elect the last replica by reorder.py"
    )
    parser.add_argument(
        "--script", action="store_true", help="besides, elect the second one by `decide --script`"
    )
    parser.add_argument(
        "--one-runs", action="store_true", help="the last one runs as the second one is elected"
    )
    parser.add_argument(
        "--older-only",
        action="store_true",
        help="elect the older copies alone, no replica as it is",
    )
    parser.add_argument("--list", action="store_true", help="the stories and their versions")
    return parser.parse_args(arguments)


def chosen_runs(chosen: argparse.Namespace) -> Iterator[tuple[Story, Version]]:
    for name in chosen.kafka or SUPPORTED:
        for story in STORIES.values():
            named = story.name in (chosen.story or STORIES)
            if named and (name in story.versions or name in FOR_COMMANDS):
                yield story, Version(name, chosen.zookeeper)


def run(story: Story, version: Version, directory: Path, chosen: argparse.Namespace) -> Measured:
    """One story, and an election of each replica; everything lies in the directory. Of what is
    chosen, reorder: one election more, of the last replica while another one lives; script: one
    more by the script; one_runs: the last replica runs as the plan for the second one begins."""
    with told(story, version, directory) as stopped:
        measured = stopped.measured
        measured.save(directory)
        left_out = measured.replicas if chosen.older_only else measured.away
        for replica in [r for r in measured.replicas if r not in left_out]:
            last = measured.replicas[-1]
            running = (last,) if chosen.one_runs and replica == measured.replicas[1] != last else ()
            found = elect(stopped, replica, every_step=replica == last, running=running)
            write_outputs(directory, found)
            measured.elections.append(found)
            measured.save(directory)
        measured.put_back = put_back_and_elect(stopped)
        for found in measured.put_back:
            write_outputs(directory, found, "put-back")
        measured.save(directory)
        if chosen.reorder and version.at_least(*SINCE) and len(measured.replicas) == 3:
            print("\n".join(f"  reorder.py: {said}" for said in reorder_and_elect(stopped)))
        if chosen.script:
            by_plan = measured.elections[1]
            by_script = elect_by_script(stopped, by_plan.replica)
            same = {o: by_script.get(o) for o in by_plan.log} == by_plan.log
            print(f"  by the script: {'the same log' if same else 'ANOTHER LOG'}", flush=True)
    for place in (stopped.kept, *directory.glob("elect-*"), *directory.glob("put-back-*")):
        if place.is_dir():
            shutil.rmtree(place)
    return measured


def main(arguments: list[str]) -> int:
    chosen = parsed(arguments)
    if chosen.list:
        for name, known in STORIES.items():
            print(f"{name:28} {' '.join(known.versions)}")
        return 0
    if chosen.again:
        kept = sorted(path.parent for path in chosen.again.glob(f"**/{MEASURED_FILE}"))
        done = [judged(Measured.load(d), d / "evidence", chosen.whole_only) for d in kept]
        if chosen.record:
            record([Measured.load(d) for d in kept])
        return report(done, [])
    scores, spoilt = [], []
    with tempfile.TemporaryDirectory(prefix="elections-") as scratch:
        for story, version in chosen_runs(chosen):
            mode = "-zookeeper" if chosen.zookeeper else ""
            name = f"{story.name}__{version.name}{mode}"
            directory = (chosen.keep or Path(scratch)) / name
            shutil.rmtree(directory, ignore_errors=True)
            started = time.monotonic()
            try:
                measured = run(story, version, directory, chosen)
            except Exception:
                # The next story has its own cluster; the sums at the end tell of this one.
                spoilt.append(name)
                print(f"{name}: the experiment failed\n{traceback.format_exc()}", flush=True)
                continue
            print(f"[{time.monotonic() - started:3.0f} s] {name}", flush=True)
            scores.append(judged(measured, directory / "evidence", chosen.whole_only))
    return report(scores, spoilt)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
