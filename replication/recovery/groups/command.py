"""The command `groups`: where every consumer group stands, and what a loss did to it."""

import argparse
import json
import sys
from collections.abc import Iterator
from typing import Any

from replication import progress
from replication.evidence.importer import Import
from replication.protocol.judgement.bounded import FoldedPartition
from replication.recovery.groups.affected_groups import GroupsRead, read_groups
from replication.reports.group_words import group_sentences
from replication.reports.inventory_words import counted
from replication.reports.safe_text import plain, plain_json

UNHURT, HURT = 0, 1
NO_LOGS = (
    "The evidence has no copy of __consumer_offsets or __share_group_state: hand over the whole "
    "log directories of the brokers, these topics' folders with them."
)


def arguments(command: argparse.ArgumentParser) -> None:
    """What `groups` takes besides the evidence."""
    command.add_argument("--group", metavar="NAME", help="only this group")
    command.add_argument(
        "--format",
        choices=("text", "json"),
        default="text",
        help="for people (the default), or all rows for scripts",
    )


def run(
    options: argparse.Namespace,
    imported: Import,
    folded: list[FoldedPartition],
    answer: dict[str, Any],
) -> int:
    """Exit status: 0 no group was hurt, 1 one was."""
    progress.doing("reading the groups' offsets")
    found = read_groups(imported, folded, answer["losses"])
    if options.group is not None:
        found.rows = [row for row in found.rows if row["group"] == options.group]
    for note in dict.fromkeys(found.notes):
        print(f"note: {plain(note)}", file=sys.stderr)
    if options.format == "json":
        print(plain_json(json.dumps({"groups": found.rows}, indent=1)))
    else:
        for line in text(found):
            print(plain(line))
    return HURT if found.affected else UNHURT


def text(found: GroupsRead) -> Iterator[str]:
    """The groups for people: those that were hurt first and in words, the others by number."""
    if not found.logs:
        yield NO_LOGS
        return
    hurt = {row["group"] for row in found.affected}
    every = {row["group"] for row in found.rows}
    yield f"{len(hurt)} of {counted(len(every), 'group')} hurt by losses."
    yield from group_sentences(found.affected)
    if every - hurt:
        yield f"Not hurt: {', '.join(sorted(every - hurt)[:20])}" + (
            f" and {len(every - hurt) - 20} more" if len(every - hurt) > 20 else ""
        )
    yield "Offsets of every group: --format json."
