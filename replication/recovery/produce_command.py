"""`recover --produce`: the plan, the question, the run, and which guarantee holds."""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from replication import progress
from replication.protocol.ground.model import moment
from replication.recovery.finding import WHY_HELD_BACK
from replication.recovery.folder import NotUsable
from replication.recovery.producing import (
    GUARANTEES,
    Plan,
    Producing,
    Refused,
    Target,
    chosen,
    client,
    planned,
    settings_of,
)
from replication.reports.inventory_words import counted
from replication.reports.safe_text import plain

DONE, NOT_ALL, FAILED = 0, 1, 5


def arguments(command: argparse.ArgumentParser) -> None:
    """What `--produce` takes."""
    command.add_argument(
        "--produce",
        metavar="BOOTSTRAP",
        help="produce the folder's records to the cluster at HOST:PORT,..; shows first what would "
        "be done, and asks. Without a PATH: those that an earlier call wrote to the folder",
    )
    command.add_argument(
        "--to-topic", metavar="NAME", help="to this topic; without, each to its own"
    )
    command.add_argument(
        "--producer-config",
        type=Path,
        metavar="FILE",
        help="a properties file for a secured cluster, by librdkafka's names "
        "(security.protocol, sasl.mechanism, sasl.username ..)",
    )
    command.add_argument(
        "--also",
        action="append",
        choices=sorted(WHY_HELD_BACK),
        help="records held back for this reason, too; may be given several times",
    )
    command.add_argument(
        "--no-transactions",
        action="store_true",
        help="for a cluster without transactions: a file notes the progress, and what was under "
        "way when the call was stopped goes out twice",
    )
    command.add_argument("--yes", action="store_true", help="produce without asking")


def run(options: argparse.Namespace) -> int:
    """Exit status: 0 all is there (or it was only shown), 1 some were left out, 5 start it again.

    Raises NotUsable.
    """
    target = Target(
        options.produce,
        options.to_topic,
        settings_of(options.producer_config),
        frozenset(options.also or ()),
        not options.no_transactions,
    )
    lines = options.out / "records.jsonl"
    plan = planned(lines, target)
    for line in _plan_lines(plan, target):
        print(plain(line))
    if not plan.total:
        return NOT_ALL if plan.left_out else DONE
    kafka = client()
    if not _is_agreed(options.yes):
        print("Nothing was produced. With --yes, or when you answer yes, it is.")
        return DONE
    run_of = Producing(kafka, target, plan, options.out)
    try:
        run_of.begin()
        return _produced(run_of, lines)
    except Refused as error:
        print(f"replication-analyzer recover: {plain(str(error))}", file=sys.stderr)
        print("replication-analyzer recover: the same call goes on from there", file=sys.stderr)
        return FAILED
    finally:
        run_of.close()


def _produced(run_of: Producing, lines: Path) -> int:
    plan = run_of.plan
    print(f"Guarantee ({run_of.guarantee}): {GUARANTEES[run_of.guarantee]}.")
    if run_of.done:
        print(f"An earlier call produced {run_of.done} of {plan.total}.")
    progress.doing("producing")
    for done in run_of.run(r for r in chosen(lines, run_of.target) if not isinstance(r, str)):
        progress.doing(f"producing, {done} of {plan.total}")
    print(f"{counted(run_of.done, 'record')} of {plan.total} are in the cluster.")
    return NOT_ALL if plan.left_out else DONE


def _plan_lines(plan: Plan, target: Target) -> Iterator[str]:
    yield f"To {target.bootstrap}, {counted(plan.total, 'record')}:"
    for topic, count in sorted(plan.counts.items()):
        yield f"  topic {topic}: {counted(count, 'record')}"
    if plan.oldest is not None:
        yield (
            f"They keep their timestamps, the oldest {moment(plan.oldest) or plan.oldest}: a topic "
            "whose retention.ms is shorter than their age deletes them again. Raise it first."
        )
    for why, count in sorted(plan.left_out.items()):
        hint = f" (--also {why} takes them)" if why in WHY_HELD_BACK else ""
        yield f"Left out, {counted(count, 'record')}: {WHY_HELD_BACK.get(why, why)}{hint}"


def _is_agreed(yes: bool) -> bool:
    if yes or not sys.stdin.isatty():
        return yes
    print("Produce them? [y/N] ", end="", flush=True)
    answer: Any = sys.stdin.readline()
    return answer.strip().lower() in ("y", "yes")


def is_only_produced(options: argparse.Namespace) -> bool:
    """Whether the folder's records are there from an earlier call. Raises NotUsable."""
    if options.produce is None:
        given = ("to_topic", "producer_config", "also", "no_transactions", "yes")
        for name in given:
            if getattr(options, name):
                raise NotUsable(f"--{name.replace('_', '-')} needs --produce BOOTSTRAP")
    return options.produce is not None and not options.paths
