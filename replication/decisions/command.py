"""The command `decide`: which replica is to lead now, at what cost, and in which steps."""

import argparse
import json

from replication import progress
from replication.decisions.answer import as_json, decide, exit_status
from replication.decisions.words import text
from replication.protocol.judgement.bounded import FoldedPartition
from replication.reports.safe_text import plain_json, plain_values


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


def run(options: argparse.Namespace, folded: list[FoldedPartition], incident: str | None) -> int:
    """Exit status: 0 nothing promised is lost by what is advised, 1 something is whatever is
    chosen, 3 something is not decided."""
    progress.doing("asking for each replica as the next leader")
    decisions = [
        decide(f.state, strict=options.strict)
        for f in progress.steps(folded, "partitions asked for")
        if f.defect is None
    ]
    answer = as_json(decisions, incident)
    if options.format == "json":
        print(plain_json(json.dumps(answer, sort_keys=True, indent=2, ensure_ascii=False)))
    else:
        print(text(plain_values(answer), options.paths), end="")
    return exit_status(decisions)
