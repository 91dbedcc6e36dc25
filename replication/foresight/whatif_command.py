"""The command `whatif`: an incident told again, had a setting or a step been otherwise."""

import argparse
import json
from collections.abc import Callable
from typing import Any

from replication import progress
from replication.foresight.cluster import Unusable
from replication.foresight.interventions import NAMES, Intervention, parsed
from replication.foresight.whatif import as_json, ask, exit_status
from replication.foresight.whatif_words import text
from replication.protocol.ground.events import Event
from replication.protocol.judgement.bounded import Identity
from replication.reports.headline import partitions_undecided
from replication.reports.safe_text import plain_json, plain_values
from replication.reports.without_a_trace import caveat, partitions_as_seen
from replication.reports.words import as_called, with_paths

IDENTITY = ("cluster_id", "topic", "topic_id", "partition")


def arguments(command: argparse.ArgumentParser) -> None:
    """What `whatif` takes besides the evidence."""
    command.add_argument(
        "--set",
        action="append",
        metavar="NAME=VALUE,..",
        help="what had been otherwise; what commas part had been so together, each further --set "
        f"is a column. Names: {', '.join(NAMES)} (the last two take `no`). Without any the "
        "answer is that of diagnose",
    )
    command.add_argument(
        "--format",
        choices=("text", "json"),
        default="text",
        help="a table for people (the default), or the whole for scripts",
    )


def interventions(options: argparse.Namespace) -> list[Intervention]:
    """What was asked about. Raises Unusable."""
    try:
        return [parsed(each) for each in options.set or ()]
    except ValueError as error:
        raise Unusable(str(error)) from None


def run(
    options: argparse.Namespace,
    asked: list[Intervention],
    diagnosed: dict[str, Any],
    events_of: Callable[[Identity], list[Event]],
) -> int:
    """Exit status: 0 each loss is none under some --set, 1 one is lost or may be under each of
    them, 3 one could not be told again, or each is none and it is not decided what
    else is lost. diagnosed: the answer of `diagnose`."""
    by_partition: dict[Identity, list[dict[str, Any]]] = {}
    for row in diagnosed["losses"]:
        if row["status"] != "recovered":
            identity = tuple("" if row[n] is None else row[n] for n in IDENTITY)
            by_partition.setdefault(identity, []).append(row)  # type: ignore[arg-type]
    progress.doing("telling the incident again")
    found = [
        ({n: rows[0][n] for n in IDENTITY}, rows, ask(events_of(identity), rows, asked))
        for identity, rows in progress.steps(sorted(by_partition.items()), "partitions told again")
    ]
    undecided = partitions_undecided(diagnosed)
    answer = as_json(found, undecided, partitions_as_seen(diagnosed))
    if options.format == "json":
        print(plain_json(json.dumps(answer, sort_keys=True, indent=2, ensure_ascii=False)))
    else:
        told = text(plain_values(answer), caveat(diagnosed))
        print(with_paths(told, as_called(options)), end="")
    return exit_status(found, undecided)
