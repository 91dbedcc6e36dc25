"""`python -m tests.kafka_lab.zookeepers`: a real loss under each ZooKeeper release from 3.4 to 3.9.

Each is judged twice: by all evidence, and by ZooKeeper's own directory, the log directories and the
acknowledgements alone. Exit status 1 where an answer is wrong, or the second one decides less.
"""

import argparse
import json
import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.kafka_lab.ablation import WITHHELD, withheld_copy
from tests.kafka_lab.cluster import Plan
from tests.kafka_lab.comparing import compare
from tests.kafka_lab.experiment import Experiment
from tests.kafka_lab.scenarios import SCENARIOS
from tests.kafka_lab.versions import Version

# By release: the brokers, and the server's jars where these do not ship them.
SERVERS: dict[str, tuple[str, str | None]] = {
    "3.4.10": ("1.1.1", None),
    "3.5.9": ("2.8.2", None),
    "3.6.4": ("2.8.2", "3.6.4"),
    "3.7.2": ("2.8.2", "3.7.2"),
    "3.8.4": ("2.8.2", "3.8.4"),
    "3.9.3": ("2.8.2", "3.9.3"),
}
# What the two answers must agree in.
TOLD = ("topic", "partition", "first_offset", "end_offset", "status", "tier", "cause", "contract")


def lost_under(server: str, directory: Path) -> Experiment:
    """An unclean election with that ZooKeeper server; its directory is among the evidence."""
    brokers, jars = SERVERS[server]
    known = SCENARIOS["unclean_election"]
    planned = replace(known, plan=lambda version: Plan(version, zookeeper=jars))
    experiment = planned.run(Version(brokers), directory)
    kept = directory / "cluster" / "zookeeper" / "data" / "version-2"
    shutil.copytree(kept, experiment.evidence / "zookeeper" / "version-2")
    return experiment


def told(answer: dict[str, Any]) -> dict[str, Any]:
    """What is held against the other answer: verdicts, losses, and each election."""
    return {
        "verdicts": [(v["partition"], v["invariant"], v["verdict"]) for v in answer["verdicts"]],
        "losses": [[loss[name] for name in TOLD] for loss in answer["losses"]],
        "elections": [
            [(e["leader"], e["leader_epoch"], e["kind"]) for e in p["elections"]]
            for p in answer["partitions"]
        ],
    }


def judged(server: str, directory: Path) -> bool:
    """Whether both answers are right and the same; prints what differs."""
    experiment = lost_under(server, directory)
    whole, answer = experiment.compare(f"ZooKeeper {server}, all evidence")
    alone = directory / "alone"
    withheld_copy(experiment.evidence, alone, WITHHELD["disks_and_acknowledgements_only"])
    less, by_zookeeper = compare(
        f"ZooKeeper {server}, its directory and log directories", alone, experiment.truths
    )
    print(f"{whole.text()}\n{less.text()}", flush=True)
    both = told(answer), told(by_zookeeper)
    for name in both[0]:
        if both[0][name] != both[1][name]:
            print(f"  {name}: {json.dumps(both[0][name])}\n     alone: {json.dumps(both[1][name])}")
    return whole.right and less.right and both[0] == both[1]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.kafka_lab.zookeepers")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep every run under DIR")
    parser.add_argument("--server", choices=SERVERS, action="append", default=[])
    chosen = parser.parse_args(arguments)
    wrong = []
    with tempfile.TemporaryDirectory(prefix="zookeepers-") as scratch:
        for server in chosen.server or SERVERS:
            directory = (chosen.keep or Path(scratch)) / server
            shutil.rmtree(directory, ignore_errors=True)
            if not judged(server, directory):
                wrong.append(server)
    print(f"{len(chosen.server or SERVERS)} releases, not the same: {', '.join(wrong) or 'none'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
