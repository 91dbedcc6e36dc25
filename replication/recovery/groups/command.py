"""The command `groups`: how far each consumer group has come; which of them a loss hurt, and
how."""

import argparse
import json
import sys
from collections.abc import Iterator
from typing import Any

from replication import progress
from replication.evidence.importer import Import
from replication.protocol.judgement.bounded import FoldedPartition
from replication.recovery.groups.affected_groups import GroupsRead, read_groups
from replication.recovery.groups.affected_transactions import affected_transactions
from replication.reports.group_words import group_sentences
from replication.reports.headline import partitions_undecided
from replication.reports.inventory_words import counted
from replication.reports.safe_text import plain, plain_json
from replication.reports.transaction_words import transaction_sentence
from replication.reports.without_a_trace import caveat, partitions_as_seen
from replication.reports.words import as_called, with_paths

UNHURT, HURT, NOT_KNOWN = 0, 1, 3
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
    """Exit status: 0 no group and no transaction was hurt, 1 one was, 3 none as far as the evidence
    shows, and it does not show all: no coordinator's log is there, or what is lost is undecided."""
    progress.doing("reading the groups' offsets")
    found = read_groups(imported, folded, answer["losses"])
    if options.group is not None:
        found.rows = [row for row in found.rows if row["group"] == options.group]
    told = []
    if options.group is None:
        told = affected_transactions(imported, folded, answer["losses"])
    for note in dict.fromkeys(found.notes):
        print(f"note: {plain(note)}", file=sys.stderr)
    if options.format == "json":
        made = {
            "groups": found.rows,
            "transactions": told,
            "partitions_as_seen": partitions_as_seen(answer),
        }
        print(plain_json(json.dumps(made, indent=1)))
    else:
        lines = [*text(found), *transactions_text(told), *_undecided_text(answer)]
        for line in [*lines, *caveat(answer)]:
            print(with_paths(plain(line), as_called(options)))
    if found.affected or told:
        return HURT
    return UNHURT if found.logs and not partitions_undecided(answer) else NOT_KNOWN


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
        yield f"Not hurt, nothing to be done: {', '.join(sorted(every - hurt)[:20])}" + (
            f" and {len(every - hurt) - 20} more" if len(every - hurt) > 20 else ""
        )
    yield "Offsets of every group: --format json."


def transactions_text(rows: list[dict[str, Any]]) -> Iterator[str]:
    """The transactions for people."""
    if rows:
        yield f"{counted(len(rows), 'transaction')} hurt by losses:"
        yield from (f"  {transaction_sentence(row)}" for row in rows)


def _undecided_text(answer: dict[str, Any]) -> Iterator[str]:
    undecided = partitions_undecided(answer)
    if undecided:
        yield (
            f"CANNOT TELL whether anything more is lost in {counted(undecided, 'partition')}, and "
            "whom that would hurt: `diagnose` says what would decide it."
        )
