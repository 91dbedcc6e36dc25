"""The command `preflight`: what a cluster can lose as it is now, before it happens."""

import argparse
import json
import sys
from pathlib import Path

from replication import progress
from replication.foresight.answer import Asked, as_json, ask, exit_status
from replication.foresight.cluster import NoPartitions, Profile, Told, Unusable, profiles
from replication.foresight.described import read
from replication.foresight.failures import FAILURES
from replication.foresight.from_evidence import profiles_of
from replication.foresight.search import MOST_THAT_END, STATES, STATES_OF_MORE, Bound
from replication.foresight.words import text
from replication.foresight.worlds import KINDS, PROMISED
from replication.protocol.ground.versions import behaviour
from replication.reports.safe_text import plain, plain_json, plain_values

MOST_LEFT_ASIDE = 5
NAMES = tuple(failure.name for failure in FAILURES)


def arguments(command: argparse.ArgumentParser) -> None:
    """What `preflight` takes."""
    command.add_argument(
        "paths",
        nargs="*",
        type=Path,
        metavar="FILE",
        help="output of kafka-topics --describe; besides, as far as it is at hand, kafka-configs "
        "--describe --all, server.properties, kafka-features describe, and racks "
        "(kafka-broker-api-versions, or lines of BROKER RACK); files or folders",
    )
    command.add_argument("--kafka", metavar="VERSION", help="the release that the brokers run")
    command.add_argument(
        "--controller",
        choices=("zookeeper", "kraft"),
        help="where the files do not tell: server.properties and kafka-features do",
    )
    command.add_argument(
        "--elr",
        choices=("on", "off"),
        help="whether eligible.leader.replicas.version is 1; kafka-features tells, else the "
        "release's default counts",
    )
    command.add_argument(
        "--failure",
        metavar="NAME,..",
        help=f"only these: {', '.join(NAMES)}; the exit status is that of these alone",
    )
    command.add_argument(
        "--records",
        metavar="KIND,..",
        help=f"whose loss makes the exit status 1, by default all but acks_1: {', '.join(KINDS)}",
    )
    command.add_argument(
        "--states",
        type=_states,
        metavar="N",
        help=f"how many states each search looks at; {STATES} by default, {STATES_OF_MORE} of more "
        f"than {MOST_THAT_END} replicas",
    )
    command.add_argument(
        "--writes",
        type=_writes,
        default=Bound().records,
        metavar="N",
        help="how many records clients write in each search, besides those of a lag; 1 by default",
    )
    command.add_argument(
        "--no-changes",
        action="store_true",
        help="look for no change of settings that closes a loss",
    )
    command.add_argument(
        "--histories",
        action="store_true",
        help="draw the shortest history of each loss, step by step, with the logs after each",
    )
    command.add_argument(
        "--format",
        choices=("text", "json"),
        default="text",
        help="a table for people (the default), or the whole for scripts",
    )


def run(options: argparse.Namespace) -> int:
    """Exit status: 0 nothing that was asked about can be lost within the bound, 1 something can.

    Raises Unusable.
    """
    failures = _chosen(options.failure, NAMES, "--failure") or NAMES
    kinds = _chosen(options.records, KINDS, "--records") or PROMISED
    asked = Asked(failures, Bound(options.writes, options.states), not options.no_changes)
    found = _profiles(options)
    progress.doing("searching for histories that lose records")
    results = ask(found, asked)
    answer = as_json(found, results, asked, kinds)
    if options.format == "json":
        print(plain_json(json.dumps(answer, sort_keys=True, indent=2, ensure_ascii=False)))
    else:
        print(text(plain_values(answer), histories=options.histories), end="")
    return exit_status(results, kinds)


def _profiles(options: argparse.Namespace) -> list[Profile]:
    if not options.paths:
        raise Unusable(
            "no FILE given: the output of `kafka-topics --bootstrap-server B --describe`, and what "
            "else tells the settings (--help)"
        )
    for path in options.paths:
        if not path.exists():
            raise Unusable(f"{path}: no such file or folder")
    if options.kafka:
        try:
            behaviour(options.kafka)
        except ValueError as error:
            raise Unusable(f"--kafka: {error}") from None
    eligible = None if options.elr is None else options.elr == "on"
    told = Told(options.kafka, options.controller, eligible)
    described = read(options.paths)
    if not described.partitions or (told.kafka is None and not described.tells_release):
        try:
            return profiles_of(options.paths, told)
        except NoPartitions:
            if not described.kinds:
                raise
            raise Unusable(
                f"the files say {' and '.join(described.kinds)}, but none says which topics there "
                "are and which brokers have their replicas: hand over what `kafka-topics "
                "--bootstrap-server B --describe` prints too (or the metadata log of a controller, "
                "__cluster_metadata-0)"
            ) from None
    for one in described.left_aside[:MOST_LEFT_ASIDE]:
        where = "" if one.where == "file" else f" ({one.where})"
        print(f"left aside: {plain(f'{one.path}{where}: {one.reason}')}", file=sys.stderr)
    if len(described.left_aside) > MOST_LEFT_ASIDE:
        more = len(described.left_aside) - MOST_LEFT_ASIDE
        print(f"left aside: {more} more files and lines", file=sys.stderr)
    return profiles(described, told)


def _chosen(text: str | None, allowed: tuple[str, ...], option: str) -> tuple[str, ...]:
    if text is None:
        return ()
    chosen = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    wrong = [name for name in chosen if name not in allowed]
    if wrong or not chosen:
        named = ", ".join(wrong) or "nothing"
        raise Unusable(f"{option}: {named} is none of {', '.join(allowed)}")
    return chosen


def _states(text: str) -> int:
    if not text.isdecimal() or not 100 <= int(text) <= 10_000_000:
        raise argparse.ArgumentTypeError(f"{text}: expected a number from 100 to 10000000")
    return int(text)


def _writes(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 5:
        raise argparse.ArgumentTypeError(f"{text}: expected a number from 1 to 5")
    return int(text)
