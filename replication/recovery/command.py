"""The command `recover`: what the ledger calls lost and a copy still holds, written to a folder."""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from replication import progress
from replication.evidence.importer import Import
from replication.protocol.judgement.bounded import FoldedPartition
from replication.recovery.deleted_topics import rows_of_deleted_topics
from replication.recovery.finding import (
    ABORTED,
    CONTROL,
    HELD_BACK,
    NOT_HAD,
    OUTCOMES,
    RECOVERED,
    WHY_HELD_BACK,
)
from replication.recovery.folder import (
    SUMMARY,
    TABLES,
    Table,
    prepared,
    unchanged_since,
    write_text,
)
from replication.recovery.gathering import Recovery, Sinks, gather
from replication.recovery.groups.affected_groups import GROUPS, group_names
from replication.recovery.groups.affected_transactions import TRANSACTIONS
from replication.recovery.ledger_rows import WITH_TOPIC
from replication.recovery.produce_command import FAILED
from replication.recovery.rows_out import KEYS, RECORDS
from replication.recovery.sightings import CUT
from replication.recovery.unpromised import UNPROMISED, unpromised_words
from replication.reports.do_now import no_keys
from replication.reports.event_words import offset_range
from replication.reports.headline import undecided
from replication.reports.inventory_words import counted
from replication.reports.removed_words import NO_LOSS, of_deleted_topics, with_topic
from replication.reports.safe_text import plain
from replication.reports.without_a_trace import caveat
from replication.reports.words import as_called, with_paths

ALL_HAD, NOT_ALL_HAD, MORE_MAY_BE_LOST = 0, 1, 3
MOST_RANGES = 20
WORDS = {
    RECOVERED: "recovered",
    HELD_BACK: "held back",
    NOT_HAD: "not had",
    CONTROL: "control records left out",
    ABORTED: "of aborted transactions left out",
}


def arguments(command: argparse.ArgumentParser) -> None:
    """What `recover` takes besides the evidence."""
    command.add_argument(
        "--out",
        required=True,
        type=Path,
        metavar="FOLDER",
        help="a new or empty folder for the records, the keys, and what could not be had",
    )
    command.add_argument(
        "--deleted-topics",
        action="store_true",
        help="also the records that went with a deleted topic, from its -delete and -stray folders "
        "and older copies: they are no losses by Kafka's rules",
    )


def run(
    options: argparse.Namespace,
    imported: Import,
    folded: list[FoldedPartition],
    answer: dict[str, Any],
    began: int,
) -> int:
    """began: when reading the evidence did, ns since the Unix epoch.

    Exit status: 0 all that is lost was had, 1 not all that the ledger names (or not surely), 3 all
    of that, and it is not decided whether more is lost.

    Raises folder.NotUsable.
    """
    folder = prepared(options.out, options.paths)
    progress.doing("looking for the records")
    deleted = rows_of_deleted_topics(folded) if options.deleted_topics else []
    result = recover(imported, folded, answer, folder, began, deleted)
    text = summary_text(result, answer, folder)
    print(with_paths(text, as_called(options)), end="")
    for note in result.notes:
        print(f"note: {plain(note)}", file=sys.stderr)
    if result.became[NOT_HAD] + result.became[HELD_BACK]:
        return NOT_ALL_HAD
    return MORE_MAY_BE_LOST if undecided(answer) else ALL_HAD


def worse(recovered: int, produced: int) -> int:
    """The exit status of both: 5 what failed and may come back, then 1 what is not there, then 3
    what is not decided."""
    return max(recovered, produced, key=(ALL_HAD, MORE_MAY_BE_LOST, NOT_ALL_HAD, FAILED).index)


def recover(
    imported: Import,
    folded: list[FoldedPartition],
    answer: dict[str, Any],
    folder: Path,
    began: int,
    deleted: Sequence[dict[str, Any]] = (),
) -> Recovery:
    """Writes what can be had to the folder, and tells what came of it. deleted: as `gather`.

    Raises NotUsable where evidence was changed since `began`; then nothing is written.
    """
    with (
        Table(folder, TABLES[0], RECORDS) as records,
        Table(folder, TABLES[1], KEYS) as keys,
        Table(folder, TABLES[2], UNPROMISED) as unpromised,
        Table(folder, TABLES[3], GROUPS) as groups,
        Table(folder, TABLES[4], TRANSACTIONS) as transactions,
    ):
        sinks = Sinks(records, keys, groups, transactions, unpromised)
        result = gather(imported, folded, answer["losses"], sinks, deleted)
        unchanged_since(began, result.sources, imported.collection.unpacked.into)
    lines = "".join(json.dumps(m, separators=(",", ":")) + "\n" for m in result.missing)
    write_text(folder / "not_recovered.jsonl", lines)
    write_text(folder / SUMMARY, json.dumps(_summary(result), indent=1) + "\n")
    return result


def _summary(result: Recovery) -> dict[str, Any]:
    return {
        "deleted_topics": {outcome: result.of_deleted[outcome] for outcome in OUTCOMES},
        "offsets": {outcome: result.became[outcome] for outcome in OUTCOMES},
        "held_back": dict(sorted(result.why_held_back.items())),
        "records_written": result.records,
        "keys_written": result.keys,
        "sent_never_promised": len(result.unpromised),
        "groups_hurt": len(group_names(result.groups)) if result.groups_are_known else None,
        "transactions_hurt": result.transactions,
        "partitions": result.partitions,
        "notes": result.notes,
    }


def summary_text(result: Recovery, answer: dict[str, Any], folder: Path) -> str:
    """What came of it, for people."""
    return "".join(f"{plain(line)}\n" for line in _lines(result, answer, folder))


def _lines(result: Recovery, answer: dict[str, Any], folder: Path) -> Iterator[str]:
    became, deleted = result.became, result.of_deleted
    of_ledger = sum(became.values()) - sum(deleted.values())
    if of_ledger:
        had = became[RECOVERED] - deleted[RECOVERED]
        whose = counted(of_ledger, "offset")
        yield f"{had} of {whose} that the loss ledger names are in {folder}."
    else:
        rest = "" if deleted else ": there is nothing to recover"
        yield f"The loss ledger names no record that is not back{rest}."
        yield from caveat(answer)
    yield from _of_deleted_topics(deleted, answer, folder)
    for p in result.partitions:
        told = ", ".join(f"{p[o]} {WORDS[o]}" for o in OUTCOMES if p[o])
        yield f"  {p['topic']}-{p['partition']}: {told}"
    yield from _under_leaders(result)
    for why, count in sorted(result.why_held_back.items()):
        yield f"Held back, {counted(count, 'record')} ({why}): {WHY_HELD_BACK[why]}."
    for missing in result.missing[:MOST_RANGES]:
        yield _not_had(missing)
    if len(result.missing) > MOST_RANGES:
        yield f"... and {len(result.missing) - MOST_RANGES} more ranges in not_recovered.jsonl"
    if result.without_key:
        clients, times = zip(*result.without_key, strict=True)
        lacking = counted(len(clients), "lost record")
        yield f"Without a key, {lacking}: {no_keys(clients, times)}."
    yield from unpromised_words(result.unpromised)
    if result.groups:
        hurt = counted(len(group_names(result.groups)), "consumer group")
        yield f"Hurt: {hurt}; affected_groups.jsonl says how."
    if result.transactions:
        hurt = counted(result.transactions, "transaction")
        yield f"Hurt: {hurt}; affected_transactions.jsonl says how."
    unknown = sorted({f"{v['topic']}-{v['partition']}" for v in undecided(answer)})
    if unknown:
        more = f" and {len(unknown) - 5} more" if len(unknown) > 5 else ""
        yield (
            f"More may be lost than the ledger names in {', '.join(unknown[:5])}{more}: "
            "`diagnose` does not decide all of it there, and says what would settle it."
        )
    if became:
        yield from caveat(answer)


def _of_deleted_topics(
    deleted: Counter[str], answer: dict[str, Any], folder: Path
) -> Iterator[str]:
    """What was had of topics that were deleted, or that it can be had."""
    if deleted:
        whose = counted(sum(deleted.values()), "offset")
        yield (
            f"{deleted[RECOVERED]} of {whose} that went with a deleted topic, {NO_LOSS}, are in "
            f"{folder}. Each has the status {WITH_TOPIC} and the old topic's id there; produced "
            "again they go to the topic that has the name now, or to that of --to-topic."
        )
        return
    for same in of_deleted_topics(answer.get("removed", ())):
        if any(row["copies"] for row in same):
            yield (
                f"{with_topic(same)} Copies still have records of it: "
                "replication-analyzer recover PATH --out FOLDER --deleted-topics takes them."
            )


def _under_leaders(result: Recovery) -> Iterator[str]:
    """Under which leaders the records are missing, and who would have them as leader."""
    places: dict[int, list[str]] = {}
    there: Counter[int] = Counter()
    for p in result.partitions:
        if p["leader"] is not None and (p[RECOVERED] or p[HELD_BACK]):
            places.setdefault(p["leader"], []).append(f"{p['topic']}-{p['partition']}")
            there.update({int(broker): count for broker, count in p["had_by"].items()})
    told = [
        f"broker {leader} leads {', '.join(names[:5])}"
        + (f" and {len(names) - 5} more" if len(names) > 5 else "")
        for leader, names in sorted(places.items())
    ]
    if told:
        yield f"These records are missing if {', '.join(told)}."
    for broker, count in sorted(there.items()):
        are = "is" if count == 1 else "are"
        yield (
            f"If broker {broker} is elected, {count} of them {are} there, and others may be "
            "missing. To see before the election which, and who still has them: "
            f"replication-analyzer decide PATH --elect {broker}"
        )
    if there:
        yield "After an election call recover again, before anything is produced."
    if result.became[NOT_HAD]:
        yield (
            "What was not had an older copy may have: give recover the directories as they were "
            "before brokers were started, beside these (recover EVIDENCE SAVED --out FOLDER)."
        )


def _not_had(missing: dict[str, Any]) -> str:
    where = f"{missing['topic']}-{missing['partition']}"
    seen = missing["last_seen"]
    cuts = [one for one in seen if one["what"] == CUT]
    how = "what cut a log there" if cuts else "last seen"
    told = f"; {how}: {(cuts or seen)[-1]['told']}" if seen else ""
    asked = offset_range(missing["first_offset"], missing["end_offset"])
    return f"Not had, {where} {asked}: {missing['why']}{told}"
