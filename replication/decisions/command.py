"""The command `decide`: which replica is to lead now, at what cost, and in which steps."""

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from replication import progress
from replication.decisions.answer import as_json, decide, exit_status
from replication.decisions.script import NoScript, script
from replication.decisions.state_file import BadState, begin, count, next_step, passed, read
from replication.decisions.step_words import next_step_text
from replication.decisions.words import text
from replication.protocol.ground.topic_partition import State
from replication.protocol.judgement.bounded import FoldedPartition
from replication.reports.removed_words import copy_first, folders_at_risk
from replication.reports.safe_text import plain_json, plain_values
from replication.reports.without_a_trace import caveat, partitions_as_seen
from replication.reports.words import as_called, with_paths

# As the brokers that are down: whoever is a replica.
ALL = frozenset([-1])
UNUSABLE = 2
ALL_PASSED = """Each step has passed. Look again, with the saved copies beside the live directories:
  replication-analyzer diagnose LIVE SAFE
  replication-analyzer recover LIVE SAFE --out FOLDER   (what only a saved copy has)
  replication-analyzer groups LIVE SAFE   (which consumer groups have to be reset)
"""
PASSED = "replication-analyzer decide --passed --state"


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
        help="the brokers that are down, and were down when their directories were copied (or: "
        "all). The evidence need not show it; their copies are what they come back with",
    )
    command.add_argument(
        "--away",
        type=_numbers,
        default=frozenset(),
        metavar="N,..",
        help="the brokers that stay down for long, or whose disks are gone: nobody waits for them, "
        "and the plan does without them",
    )
    command.add_argument(
        "--elect",
        type=int,
        metavar="N",
        help="plan for broker N as the next leader, in place of the one that is advised",
    )
    command.add_argument(
        "--script",
        type=Path,
        metavar="FILE",
        help="write the plan of the one partition at which something is to be decided as a script "
        "for bash, which asks before each step and stops where a check fails; nothing is run",
    )
    command.add_argument(
        "--state",
        type=Path,
        metavar="FILE",
        help="carry the plan out step by step: FILE keeps which steps have passed; without PATH "
        "the next step is shown",
    )
    command.add_argument(
        "--passed",
        action="store_true",
        help="with --state and without PATH: the check of the step that was shown printed what it "
        "must",
    )


def _brokers(text: str) -> frozenset[int]:
    """Broker numbers, separated by commas; ALL for `all`."""
    return ALL if text == "all" else _numbers(text, ", or write all")


def _numbers(text: str, others: str = "") -> frozenset[int]:
    """Broker numbers, separated by commas."""
    try:
        return frozenset(int(number) for number in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text}: name brokers by their numbers, such as 1,3{others}"
        ) from None


def run(
    options: argparse.Namespace,
    folded: list[FoldedPartition],
    diagnosed: dict[str, Any],
    ended: Mapping[str, frozenset[int]],
) -> int:
    """diagnosed: the answer of `diagnose`. ended: by cluster, who is down by the metadata log or
    its own last lines. Exit status: 0 nothing promised is lost by
    what is advised, 1 something is whatever is chosen, 3 something is not decided."""
    if problem := _strangers(options, folded, diagnosed):
        print(f"replication-analyzer decide: {problem}", file=sys.stderr)
        return UNUSABLE
    progress.doing("asking for each replica as the next leader")
    decisions = [
        decide(
            f.state,
            strict=options.strict,
            down=_replicas(f.state) if options.down == ALL else options.down,
            ended=ended.get(f.state.cluster_id, frozenset()),
            away=options.away,
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
    at_risk = folders_at_risk(diagnosed["removed"])
    answer = as_json(decisions, diagnosed["incident"], partitions_as_seen(diagnosed), at_risk)
    try:
        if options.script is not None:
            _write_script(options.script, answer)
        if options.state is not None:
            begin(options.state, answer)
    except (NoScript, BadState, OSError) as error:
        print(f"replication-analyzer decide: {error}", file=sys.stderr)
        return UNUSABLE
    if options.format == "json":
        print(plain_json(json.dumps(answer, sort_keys=True, indent=2, ensure_ascii=False)))
    else:
        told = text(plain_values(answer), as_called(options), caveat(diagnosed))
        print(with_paths(told, as_called(options)), end="")
    return exit_status(decisions)


def _strangers(
    options: argparse.Namespace, folded: list[FoldedPartition], diagnosed: dict[str, Any]
) -> str:
    """What is wrong with the brokers that the call names: a number that nothing here names is a
    typing error; "" where nothing is."""
    known = {n for f in folded for n in _replicas(f.state) if n >= 0}
    known |= {n for cluster in diagnosed["clusters"] for n in cluster["brokers"]}
    there = ", ".join(map(str, sorted(known)))
    for option, named in (("--down", options.down - ALL), ("--away", options.away)):
        if strangers := sorted(named - known):
            told = f"broker{'' if len(strangers) == 1 else 's'} {', '.join(map(str, strangers))}"
            are = "is" if len(known) == 1 else "are"
            return f"{option}: no {told} in this evidence; there {are} {there}"
    return ""


def go_on(options: argparse.Namespace) -> int:
    """Shows the next step of a plan that is carried out step by step. Exit status: 0, or 2 where
    the file is of no use."""
    try:
        state = read(options.state)
        if options.passed:
            passed(options.state, state)
        following = next_step(state)
        if following is None:
            print(ALL_PASSED, end="")
        else:
            row, step = following
            print(next_step_text(plain_values(row), plain_values(step), *count(state)), end="")
            print(f"Once its check prints that: {PASSED} {options.state}")
    except (BadState, OSError) as error:
        print(f"replication-analyzer decide: {error}", file=sys.stderr)
        return UNUSABLE
    return 0


def _write_script(path: Path, answer: dict[str, Any]) -> None:
    """Raises NoScript, OSError. A file that is there is not written over."""
    rows = [row for row in answer["partitions"] if row["steps"]]
    if len(rows) != 1:
        raise NoScript(
            f"--script: {len(rows)} partitions have steps to carry out; a script is of one. Choose "
            "by --topic, or carry them out by --state"
        )
    with path.open("x", encoding="utf-8") as file:
        file.write(script(rows[0], copy_first(plain_values(answer["copy_first"]))))
    path.chmod(0o755)


def _replicas(state: State) -> frozenset[int]:
    """Every broker that the evidence names as a replica."""
    return frozenset([*state.replicas, *(state.settings.assigned_replicas or ())])
