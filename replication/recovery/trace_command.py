"""The command `trace`: my record, where is it, and what became of it?"""

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from replication import progress
from replication.evidence.importer import Import
from replication.protocol.ground.model import moment
from replication.protocol.judgement.bounded import FoldedPartition
from replication.recovery.copies_at_hand import KIND_WORDS, with_records
from replication.recovery.folder import NotUsable, changed_since
from replication.recovery.groups.affected_groups import (
    ClusterGroups,
    GroupsRead,
    clusters_groups,
)
from replication.recovery.groups.command import NO_LOGS
from replication.recovery.ledger_rows import NOT_BACK
from replication.recovery.moments import last_leader
from replication.recovery.sightings import ACKNOWLEDGED, CONSUMED, REMOVED
from replication.recovery.tracing import Asked, Traced, traced
from replication.reports.inventory_words import counted
from replication.reports.removed_words import why_gone
from replication.reports.safe_text import plain, plain_json
from replication.reports.vocabulary import CAUSE_WORDS, TIER_WORDS

FOUND, NOT_FOUND = 0, 1
MOST_STORIES, MOST_SHOWN, MOST_KNOWN = 20, 80, 10
_PLACES = "t-0:17"
UNSURE = "A line with (?) may be of another record that was at the same offset."


def arguments(command: argparse.ArgumentParser) -> None:
    """What `trace` takes besides the evidence: which records are meant."""
    command.add_argument(
        "--key", metavar="KEY", help="the record's key; so is a last word that names no file"
    )
    command.add_argument(
        "--offset", metavar=_PLACES, help="the offset that it has or had: topic-partition:offset"
    )
    command.add_argument(
        "--payload-id", metavar="ID", help="what clients' logs call it (payload_id)"
    )
    command.add_argument(
        "--producer-id", type=int, metavar="N", help="all records of this idempotent producer"
    )
    command.add_argument(
        "--client", metavar="NAME", help="all records that clients' logs tell of this client"
    )
    command.add_argument(
        "--groups",
        action="store_true",
        help="also which consumer groups had read it, by the coordinators' logs",
    )
    command.add_argument(
        "--format",
        choices=("text", "json"),
        default="text",
        help="a short story of each for people (the default), or all of it for scripts",
    )


def asked(options: argparse.Namespace) -> Asked:
    """Which records are meant. Raises NotUsable where that is not said."""
    key = options.key
    given = (options.offset, options.payload_id, options.producer_id, options.client)
    if key is None and len(options.paths) > 1 and not options.paths[-1].exists():
        key = str(options.paths.pop())
    if key is None and all(one is None for one in given):
        raise NotUsable("which record? `trace PATH KEY`, or --offset, --payload-id, --client ..")
    return Asked(
        None if key is None else key.encode("utf-8", "surrogateescape"),
        None if options.offset is None else _place(options.offset),
        options.payload_id,
        options.producer_id,
        options.client,
    )


def _place(text: str) -> tuple[str, int, int]:
    partition, _, offset = text.rpartition(":")
    topic, _, number = partition.rpartition("-")
    if not topic or not (number.isdecimal() and offset.isdecimal()):
        raise NotUsable(f"--offset {text}: expected TOPIC-PARTITION:OFFSET, as {_PLACES}")
    return topic, int(number), int(offset)


def run(
    options: argparse.Namespace,
    wanted: Asked,
    imported: Import,
    folded: list[FoldedPartition],
    answer: dict[str, Any],
    began: int,
) -> int:
    """began: when reading the evidence did, ns since the Unix epoch.

    Exit status: 0 something tells of such a record, 1 nothing does. Raises NotUsable where evidence
    was changed since: what was judged is not what is told then."""
    progress.doing("looking for the record")
    stories: list[dict[str, Any]] = []
    notes: dict[str, None] = {}
    for part in _looked_for(imported, folded, answer, wanted):
        stories += part.stories
        notes.update(dict.fromkeys(part.notes))
        changed = changed_since(began, part.sources, imported.collection.unpacked.into)
        if changed and part.stories:
            raise NotUsable(changed)
        notes.update(
            dict.fromkeys([f"no such record was found in it; {changed}"] if changed else [])
        )
    stories.sort(key=lambda story: not any(x["status"] in NOT_BACK for x in story["losses"]))
    if options.groups and stories:
        _add_groups(stories, notes, clusters_groups_of(imported, folded, answer))
    for note in notes:
        print(f"note: {plain(note)}", file=sys.stderr)
    if options.format == "json":
        print(plain_json(json.dumps({"records": stories}, indent=1)))
    else:
        for line in text(stories) if stories else nothing_found(imported, folded, answer, wanted):
            print(plain(line))
    return FOUND if stories else NOT_FOUND


def _looked_for(
    imported: Import, folded: list[FoldedPartition], answer: dict[str, Any], wanted: Asked
) -> Iterator[Traced]:
    """The stories; where no copy has the key that is asked for, those of the clients' lines that
    name it."""
    found = False
    for part in traced(imported, folded, answer, wanted):
        found = found or bool(part.stories)
        yield part
    if not found and wanted.key is not None:
        named = replace(wanted, key=None, payload_id=wanted.key.decode("utf-8", "replace"))
        yield from traced(imported, folded, answer, named)


def clusters_groups_of(
    imported: Import, folded: list[FoldedPartition], answer: dict[str, Any]
) -> tuple[GroupsRead, list[ClusterGroups]]:
    """The groups of each cluster, and what could not be read of them."""
    told = GroupsRead()
    return told, clusters_groups(imported, folded, answer["losses"], told)


def _add_groups(
    stories: list[dict[str, Any]],
    notes: dict[str, None],
    read: tuple[GroupsRead, list[ClusterGroups]],
) -> None:
    """Gives each story its `groups`."""
    told, clusters = read
    notes.update(dict.fromkeys(told.notes if told.logs else [NO_LOGS]))
    for story in stories:
        names = (story["cluster_id"] or "", story["topic"], story["topic_id"] or "")
        identity = (*names, story["partition"])
        story["groups"] = [
            one
            for groups in clusters
            if groups.cluster_id == identity[0]
            for one in groups.that_read(identity, story["offset"], story["leader_epoch"])
        ]


def nothing_found(
    imported: Import, folded: list[FoldedPartition], answer: dict[str, Any], wanted: Asked
) -> Iterator[str]:
    """That there is no such record, and what would show it, as far as that was not handed over."""
    if imported.collection.event_dumps:
        yield (
            "A dump of events holds no records, so no record can be looked for in it: give `trace` "
            "the evidence that the events were imported from (log directories and the like)."
        )
        if not imported.partitions:
            return
    if wanted.where is not None:
        said = list(_of_place(folded, answer["removed"], *wanted.where))
        if said:
            yield from said
            return
    searched = counted(len(imported.partitions), "partition")
    yield f"No such record in this evidence ({searched} looked through)."
    lines = [line for p in imported.partitions for line in p.acknowledgements if wanted.told(line)]
    if wanted.client is not None and lines:
        yield (
            f"The acknowledgement log has {counted(len(lines), 'line')} of {wanted.client}, and "
            "none names an offset, or a payload_id that a copy has: nothing tells which records "
            f"are its own (acks=0 asks for no answer). Ask {wanted.client} for the keys it sent."
        )
    if wanted.by_lines():
        return
    at = None if wanted.where is None else wanted.where[:2]
    copies = [
        copy
        for p in imported.partitions
        if at in (None, (p.topic, p.partition))
        for copy in p.copies
    ]
    if not copies:
        whose = "" if at is None else f" of {at[0]}-{at[1]}"
        yield f"No copy of a log{whose} is in this evidence: hand over the log directories."
    elif wanted.key is not None and len(with_records(copies)) < len(copies):
        yield "Digests and dumps without payloads show no keys: hand over the log directories."


def _of_place(
    folded: list[FoldedPartition],
    removed: list[dict[str, Any]],
    topic: str,
    number: int,
    offset: int,
) -> Iterator[str]:
    """That there is no such partition, that its log ends below the offset, or that what was there
    is removed."""
    lives = [f for f in folded if (f.identity[1], f.identity[3]) == (topic, number)]
    if not lives:
        known = dict.fromkeys(f"{f.identity[1]}-{f.identity[3]}" for f in folded)
        more = f" and {len(known) - MOST_KNOWN} more" if len(known) > MOST_KNOWN else ""
        told = ", ".join(list(known)[:MOST_KNOWN])
        yield f"No {topic}-{number} in this evidence; known: {told}{more}."
        return
    for row in removed:
        here = (row["topic"], row["partition"]) == (topic, number)
        if here and row["first_offset"] <= offset < row["end_offset"]:
            yield f"{topic}-{number} offset {offset}: {why_gone(row, offset)}."
    ends = {
        n: r.log.log_end_offset
        for n, r in lives[-1].state.replicas.items()
        if len(lives) == 1 and lives[-1].state.log_is_known(r)
    }
    if ends and offset >= max(ends.values()):
        leader = last_leader(lives[-1])
        whose = leader if leader in ends else max(ends, key=lambda n: ends[n])
        role = " (the leader)" if whose == leader else ""
        yield (
            f"No such record in this evidence: the log of {topic}-{number} ends at "
            f"{ends[whose]} on broker {whose}{role}, below offset {offset}."
        )


def text(stories: list[dict[str, Any]]) -> Iterator[str]:
    """The stories for people, the lost first: whole while they are few, else a line for each."""
    if len(stories) > 1:
        yield f"{counted(len(stories), 'record')}:"
    whole = stories if len(stories) <= 5 else []
    for story in whole:
        yield from story_lines(story)
    if any(map(is_unsure, whole)):
        yield UNSURE
    if not whole:
        yield from (f"  {headline(story)}" for story in stories[:MOST_STORIES])
    if len(stories) > MOST_STORIES:
        yield f"... and {len(stories) - MOST_STORIES} more (--format json has all)"


def is_unsure(story: dict[str, Any]) -> bool:
    """Whether a line of it may be of another record."""
    shown = [told for told in story["moments"] if told["what"] != REMOVED]
    removals = [told for told in story["moments"] if told["what"] == REMOVED]
    return any(not told["certain"] for told in shown + removals * (len(removals) == 1))


def headline(story: dict[str, Any]) -> str:
    """Which record, and what became of it."""
    where = f"{story['topic']}-{story['partition']} offset {story['offset']}"
    if story["leader_epoch"] is not None:
        where += f", leader epoch {story['leader_epoch']}"
    return f"{where}: {_became(story)}"


def _became(story: dict[str, Any]) -> str:
    losses, leader = story["losses"], story["leader"]
    if losses:
        loss = losses[0]
        cause = CAUSE_WORDS.get(loss["cause"], loss["cause"])
        tier = TIER_WORDS.get(loss["tier"], loss["tier"])
        return f"{loss['status'].upper()}, {tier}; cause: {cause} (finding {loss['finding_id']})"
    if story["removed"] is not None:
        return why_gone(story["removed"], story["offset"])
    if leader["holds_it"]:
        return f"in the leader's log (broker {leader['broker']})"
    if leader["holds_it"] is False:
        there = f"not in the leader's log (broker {leader['broker']})"
        if leader["has_newer"]:
            newer = "the topic is compacted, and the log has a newer record of its key"
            return f"{there}: {newer}; the ledger names no loss"
        if leader["is_compacted"]:
            return f"{there}: compaction of the topic may have taken it; the ledger names no loss"
        return f"{there}, and the ledger names no loss"
    return "whether the leader's log has it is not known"


def story_lines(story: dict[str, Any]) -> Iterator[str]:
    """One record's story, line by line."""
    yield headline(story)
    record = story["record"]
    if record is None:
        yield "  no copy in the evidence shows its bytes"
    else:
        yield f"  key {_shown(record, 'key')}, value {_shown(record, 'value')}"
        made = moment(record["timestamp"])
        if made is not None:
            whose = "its broker's" if record["timestamp_type"] == "append" else "its producer's"
            yield f"  timestamp {made}, by {whose} clock"
        if record["producer_id"] is not None:
            yield (
                f"  producer {record['producer_id']}, epoch {record['producer_epoch']}, sequence "
                f"{record['sequence']}; transaction: {record['transaction']}"
            )
    for place in story["places"]:
        yield (
            f"  held by broker {place['broker']}, {KIND_WORDS[place['kind']]}: {place['file']} "
            f"byte {place['position']}"
        )
    leader = story["leader"]
    if leader["broker"] is not None and leader["has"] is not None:
        yield f"  the leader (broker {leader['broker']}) has at this offset: {leader['has']}"
    for sure, words in ((True, "read by"), (False, "perhaps read by")):
        names = [one["group"] for one in story.get("groups", ()) if one["certain"] is sure]
        if names:
            kind = "consumer group" if len(names) == 1 else "consumer groups"
            yield f"  {words} {kind} {', '.join(names)}"
    told = [m["observed_at"] for m in story["moments"] if m["observed_at"]]
    if told != sorted(told):
        yield (
            "  what happened, in causal order, not by clocks (a copied log directory has the time "
            "of its newest file):"
        )
    yield from _in_order(story)
    for gap in story["not_known"]:
        yield f"  not known ({gap['invariant']}): {gap['reason']}"
        for what in gap["settled_by"]:
            yield f"    would tell: {what}"


def _in_order(story: dict[str, Any]) -> Iterator[str]:
    """Moments and clients' lines: a client's line is put to the event that tells of it."""
    waiting = {
        ACKNOWLEDGED: [c for c in story["clients"] if c["what"] != "consumed"],
        CONSUMED: [c for c in story["clients"] if c["what"] == "consumed"],
    }
    removals = [told for told in story["moments"] if told["what"] == REMOVED]
    for told in story["moments"]:
        if told["what"] == REMOVED and told is not removals[0]:
            continue
        if told["what"] in waiting and waiting[told["what"]]:
            yield from (f"  {_of_client(line)}" for line in waiting[told["what"]])
            waiting[told["what"]] = []
        elif told["what"] not in waiting:
            place = "" if told["path"] is None else f"  [{told['path']}{_line(told)}]"
            of_many = len(removals) > 1 and told is removals[0]
            sure = "" if told["certain"] or of_many else " (?)"
            when = told["observed_at"] or "at a time not known"
            yield f"  {when}  {told['told']}{sure}{place}"
            if of_many:
                yield f"    {_later(removals)}"
    for lines in waiting.values():
        yield from (f"  {_of_client(line)}" for line in lines)


def _later(removals: list[dict[str, Any]]) -> str:
    """What further lines say of records that are removed from the log's start, in one."""
    last = removals[-1]
    until = "" if last["observed_at"] is None else f" until {last['observed_at']}"
    more = counted(len(removals) - 1, "more such line")
    who = sorted({told["replica"] for told in removals if told["replica"] is not None})
    return (
        f"{more}, of broker{'s' * (len(who) > 1)} {', '.join(map(str, who))}{until}: {last['told']}"
    )


def _of_client(line: dict[str, Any]) -> str:
    acks = "" if line["acks"] is None else f" (acks={line['acks']})"
    words = {
        "acked": f"was told that it is written{acks}",
        "failed": f"was told that it was refused{acks}",
        "unknown": f"was not told what became of it{acks}",
        "sent": "sent it and asked for no answer",
        "consumed": "was given it",
    }
    how = "" if line["names_it"] else ", by its offset"
    where = f"  [{line['path']} line {line['line']}]"
    return (
        f"{line['at'] or 'at a time not known'}  {line['client']} {words[line['what']]}{how}{where}"
    )


def _line(told: dict[str, Any]) -> str:
    return "" if told["line"] is None else f" line {told['line']}"


def _shown(record: dict[str, Any], name: str) -> str:
    if f"{name}_base64" in record:
        return f"{record[f'{name}_base64'][:MOST_SHOWN]} (base64)"
    value = record[name]
    if value is None:
        return "none"
    return json.dumps(value[:MOST_SHOWN]) + ("..." if len(value) > MOST_SHOWN else "")
