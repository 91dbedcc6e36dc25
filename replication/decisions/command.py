"""The command `decide`: which replica is to lead now, at what cost, and in which steps."""

import argparse
import json
import sys

from replication import progress
from replication.decisions.answer import as_json, decide, exit_status
from replication.decisions.words import text
from replication.protocol.ground.topic_partition import State
from replication.protocol.judgement.bounded import FoldedPartition
from replication.reports.safe_text import plain_json, plain_values

# As the brokers that are down: whoever is a replica.
ALL = frozenset([-1])
UNUSABLE = 2


def arguments(command: argparse.ArgumentParser) -> None:
    """What `decide` takes besides the evidence."""
    command.add_argument(
        "--format",
        choices=("text", "json"),
        default="text",
        help="the advice for people (the default), or the whole for scripts",
    )
    command.add_argument(
        "--strict",
        action="store_true",
        help="take nothing for granted that the evidence leaves open",
    )
    command.add_argument(
        "--down",
        type=_brokers,
        default=frozenset(),
        metavar="N,..",
        help="the brokers that are down, and were when their directories were copied, or all: the "
        "evidence need not tell it, and their copies show what they come back with",
    )
    command.add_argument(
        "--elect",
        type=int,
        metavar="N",
        help="plan for broker N as the next leader, in place of the one that is advised",
    )


def _brokers(text: str) -> frozenset[int]:
    """Broker numbers, separated by commas; ALL for `all`."""
    if text == "all":
        return ALL
    try:
        return frozenset(int(number) for number in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text}: name brokers by their numbers, such as 1,3, or write all"
        ) from None


def run(options: argparse.Namespace, folded: list[FoldedPartition], incident: str | None) -> int:
    """Exit status: 0 nothing promised is lost by what is advised, 1 something is whatever is
    chosen, 3 something is not decided."""
    progress.doing("asking for each replica as the next leader")
    decisions = [
        decide(
            f.state,
            strict=options.strict,
            down=_replicas(f.state) if options.down == ALL else options.down,
            elect=options.elect,
        )
        for f in progress.steps(folded, "partitions asked for")
        if f.defect is None
    ]
    if options.elect is not None and not any(d.choice.as_asked for d in decisions):
        print(
            f"replication-analyzer decide: --elect {options.elect}: no partition at which "
            f"something is to be decided has a replica on broker {options.elect}. If a leader is "
            "taken to be there that is down: say so by --down",
            file=sys.stderr,
        )
        return UNUSABLE
    answer = as_json(decisions, incident)
    if options.format == "json":
        print(plain_json(json.dumps(answer, sort_keys=True, indent=2, ensure_ascii=False)))
    else:
        print(text(plain_values(answer), options.paths), end="")
    return exit_status(decisions)


def _replicas(state: State) -> frozenset[int]:
    """Every broker that the evidence names as a replica."""
    return frozenset([*state.replicas, *(state.settings.assigned_replicas or ())])
