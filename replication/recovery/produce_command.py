"""`recover --produce`: the plan, the question, the run, and which guarantee holds."""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from replication import progress
from replication.protocol.ground.model import joined_ranges, moment
from replication.recovery.already_there import Looked
from replication.recovery.connecting import client, settings_of
from replication.recovery.finding import WHY_HELD_BACK
from replication.recovery.folder import NotUsable, leaders_in
from replication.recovery.producing import (
    GUARANTEES,
    Plan,
    Producing,
    Refused,
    Target,
    chosen,
    planned,
)
from replication.reports.inventory_words import counted
from replication.reports.safe_text import plain
from replication.reports.vocabulary import offsets

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
    command.add_argument(
        "--dry-run",
        action="store_true",
        help="with --produce: show what would be produced, by partition and offset, and stop; no "
        "cluster is reached",
    )


def run(options: argparse.Namespace) -> int:
    """Exit status: 0 all is there (or it was only shown), 1 some were left out, 5 start it again.

    Raises NotUsable.
    """
    target = Target(
        options.produce,
        options.to_topic,
        settings_of(options.producer_config, "--producer-config"),
        frozenset(options.also or ()),
        not options.no_transactions,
    )
    lines = options.out / "records.jsonl"
    plan = planned(lines, target)
    for line in _plan_lines(plan, target):
        print(plain(line))
    if options.dry_run:
        for line in _offset_lines(lines, target):
            print(plain(line))
        print("Nothing was produced: --dry-run reaches no cluster.")
    if options.dry_run or not plan.total:
        return NOT_ALL if plan.left_out else DONE
    run_of = Producing(client("--produce"), target, plan, options.out)
    try:
        if not options.yes:
            _look_ahead(run_of, lines)
            if not _is_agreed():
                print("Nothing was produced. With --yes, or when you answer yes, it is.")
                return DONE
        run_of.begin()
        return _produced(run_of, lines, tell=options.yes)
    except Refused as error:
        print(f"replication-analyzer recover: {plain(str(error))}", file=sys.stderr)
        print("replication-analyzer recover: the same call goes on from there", file=sys.stderr)
        return FAILED
    finally:
        run_of.close()


def _look_ahead(run_of: Producing, lines: Path) -> None:
    """Tells, before anybody is asked, what the cluster has already."""
    try:
        run_of.peek()
        looked = run_of.look(_records(run_of, lines))
    except Refused as error:
        print(plain(f"What the cluster has of them already is not known: {error}"))
        return
    for line in _there_lines(run_of, looked):
        print(plain(line))


def _records(run_of: Producing, lines: Path) -> Iterator[dict[str, Any]]:
    return (r for r in chosen(lines, run_of.target) if not isinstance(r, str))


def _there_lines(run_of: Producing, looked: Looked) -> Iterator[str]:
    """What of the plan is done, or need not be."""
    total, left = run_of.plan.total, run_of.plan.total - run_of.done - len(run_of.there)
    yield from _leaders_since(run_of)
    if run_of.done:
        yield f"An earlier call produced {run_of.done} of {total}."
    if run_of.there:
        yield (
            f"Already there, {counted(len(run_of.there), 'record')}: the cluster has them at the "
            "offsets that they were at. They are not produced."
        )
    for why, count in sorted(looked.unknown.items()):
        yield (
            f"Not known of {counted(count, 'record')} whether the cluster has them already "
            f"({why}): they are produced."
        )
    yield f"To be produced: {counted(left, 'record')}."


def _leaders_since(run_of: Producing) -> Iterator[str]:
    """Where another broker leads than when the folder was written."""
    for (topic, partition), was in sorted(leaders_in(run_of.folder).items()):
        now = run_of.leaders.get((topic, partition))
        if now is not None and now != was:
            yield (
                f"{topic}-{partition}: the folder has what is missing if broker {was} leads; "
                f"broker {now} leads now. It may lack others: call recover again on the evidence "
                "of today."
            )


def _produced(run_of: Producing, lines: Path, *, tell: bool) -> int:
    """tell: what the cluster has already was not told yet."""
    plan = run_of.plan
    looked = run_of.look(_records(run_of, lines))
    for line in _there_lines(run_of, looked) if tell else ():
        print(plain(line))
    print(f"Guarantee ({run_of.guarantee}): {GUARANTEES[run_of.guarantee]}.")
    progress.doing("producing")
    for done in run_of.run(_records(run_of, lines)):
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


def _offset_lines(lines: Path, target: Target) -> Iterator[str]:
    """Where the records were that would be produced."""
    found: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for record in chosen(lines, target):
        if not isinstance(record, str):
            offset = record["offset"]
            place = (record["topic"], record["partition"])
            found.setdefault(place, []).append((offset, offset + 1))
    for (topic, partition), runs in sorted(found.items()):
        told = ", ".join(offsets(first, end) for first, end in joined_ranges(sorted(runs)))
        yield f"  {topic}-{partition}: {told}"


def _is_agreed() -> bool:
    if not sys.stdin.isatty():
        return False
    print("Produce them? [y/N] ", end="", flush=True)
    answer: Any = sys.stdin.readline()
    return answer.strip().lower() in ("y", "yes")


def is_only_produced(options: argparse.Namespace) -> bool:
    """Whether the folder's records are there from an earlier call. Raises NotUsable."""
    if options.produce is None:
        given = ("to_topic", "producer_config", "also", "no_transactions", "yes", "dry_run")
        for name in given:
            if getattr(options, name):
                raise NotUsable(f"--{name.replace('_', '-')} needs --produce BOOTSTRAP")
    return options.produce is not None and not options.paths
