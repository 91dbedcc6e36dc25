"""What was removed lawfully, in words: with a deleted topic, by retention, by deleteRecords, by
compaction. Whoever misses these records asks where they went."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from replication.protocol.judgement.lawful_removals import COMPACTION, LOG_START, TOPIC_DELETED
from replication.reports.headline import counted
from replication.reports.natural import names, of_partition
from replication.reports.safe_text import escaped
from replication.reports.vocabulary import name, offsets

NO_LOSS = "no loss by Kafka's rules"
HOW = {
    "retention_time": "by retention (time{setting})",
    "retention_size": "by retention (size{setting})",
    "delete_records": "by deleteRecords, which a client asked for",
    "not_told": "by retention or by deleteRecords: no line here tells which",
}
# Whoever starts a broker has it delete these.
DELETED_FOLDER = "deleted"
KINDS = {
    DELETED_FOLDER: "a -delete folder",
    "stray": "a -stray folder",
    "future": "a folder that was being moved",
    "replica": "an older copy",
}
AT_RISK = (
    "a broker's start deletes its -delete folders after file.delete.delay.ms (of the broker: "
    "log.segment.delete.delay.ms, 1 minute by default)"
)
MOST_TOLD = 12
MOST_COPIES = 4


def of_deleted_topics(rows: Iterable[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The rows of `removed` that went with their topics, topic by topic."""

    def topic(row: dict[str, Any]) -> tuple[Any, ...]:
        return (row["topic"], row["cluster_id"] or "", row["topic_id"] or "")

    gone = sorted((r for r in rows if r["why"] == TOPIC_DELETED), key=topic)
    return [sorted(same, key=of_partition) for _, same in groupby(gone, topic)]


def folders_at_risk(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The copies of deleted topics that a broker's start deletes, each with its partition."""
    return [
        {**{k: row[k] for k in ("cluster_id", "topic", "topic_id", "partition")}, **copy}
        for same in of_deleted_topics(rows)
        for row in same
        for copy in row["copies"]
        if copy["kind"] == DELETED_FOLDER
    ]


def copy_first(folders: list[dict[str, Any]]) -> list[str]:
    """The line that comes before any start: which folders to copy, and why."""
    if not folders:
        return []
    first = folders[:MOST_COPIES]
    told = ", ".join(f"{copy['path']} (broker {copy['broker']})" for copy in first)
    more = f" and {len(folders) - len(first)} more" if len(folders) > len(first) else ""
    topics = ", ".join(dict.fromkeys(copy["topic"] for copy in folders))
    return [
        f"Before any start copy what is left of the deleted topic {topics}: {told}{more}; "
        f"{AT_RISK}."
    ]


def beside_the_headline(answer: dict[str, Any]) -> list[str]:
    """A sentence for each deleted topic, and one for all that went otherwise."""
    rows = answer.get("removed", [])
    lines = [with_topic(same) for same in of_deleted_topics(rows)[:MOST_TOLD]]
    others = [r for r in rows if r["why"] != TOPIC_DELETED and _is_told(r)]
    if others:
        by = list(dict.fromkeys(each for row in others for each in _in_short(row)))
        where = names(others, 3) if len(others) < 4 else counted(len(others), "partition")
        lines.append(
            f"{_capital(_records(others))} of {where} {_were(others)} removed since by "
            f"{' and '.join(by)}: {NO_LOSS} (below)."
        )
    return lines


def _is_told(row: dict[str, Any]) -> bool:
    """Whether anything shows the records, or a line their removal."""
    return bool(row["seen"] or any(each["lines"] for each in row["by"]))


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def with_topic(same: list[dict[str, Any]]) -> str:
    """That a topic was deleted, when, which took its name, and what went with it."""
    first = same[0]
    at = "" if first["deleted_at"] is None else f" at {first['deleted_at']}"
    ids = "" if first["topic_id"] is None else f" (topic id {first['topic_id']})"
    again = ""
    if first["next_topic_id"] is not None:
        again = f" and created again (topic id {first['next_topic_id']})"
    of = "" if len(same) == 1 else f" of {counted(len(same), 'partition')}"
    return (
        f"Topic {first['topic']}{ids} was deleted{at}{again}: {_records(same)}{of} went with it; "
        f"{NO_LOSS}."
    )


def _records(rows: list[dict[str, Any]]) -> str:
    """How many records: acknowledged ones where an acknowledgement log tells, else those seen."""
    if any(row["acknowledged"] is None for row in rows):
        number = sum(row["seen"] for row in rows)
        return f"{counted(number, 'record')} that this evidence shows" if number else "records"
    acknowledged = sum(row["acknowledged"] for row in rows)
    others = sum(row["seen"] for row in rows) - acknowledged
    told = counted(acknowledged, "acknowledged record")
    return f"{told} and {others:,} more" if others else told


def _were(rows: list[dict[str, Any]]) -> str:
    return "was" if sum(row["seen"] for row in rows) == 1 else "were"


def _in_short(row: dict[str, Any]) -> Iterator[str]:
    if row["why"] == COMPACTION:
        yield "compaction"
    for each in row["by"]:
        yield {"delete_records": "deleteRecords", "not_told": "retention or deleteRecords"}.get(
            each["how"], "retention"
        )
    if row["why"] == LOG_START and not row["by"]:
        yield "retention or deleteRecords"


def removed_text(answer: dict[str, Any]) -> list[str]:
    """The paragraph of `diagnose --format text`."""
    lines = list(removed_lines(answer))
    return [f"REMOVED  {NO_LOSS}", *(f"  {line}" for line in lines), ""] if lines else []


def removed_html(answer: dict[str, Any]) -> str:
    """The section of the page."""
    lines = [*beside_the_headline(answer), *removed_lines(answer)]
    if not lines:
        return ""
    items = "".join(f"<li>{escaped(line.strip())}</li>" for line in lines)
    return f"<section id=removed><h2>Removed, {NO_LOSS}</h2><ul>{items}</ul></section>"


def removed_lines(answer: dict[str, Any]) -> Iterator[str]:
    """Per partition what was removed, up to which offset, when and why; where copies still have
    it."""
    rows = sorted(answer.get("removed", ()), key=of_partition)
    seen = [row for row in rows if _is_told(row)]
    for row in seen[:MOST_TOLD]:
        id_told = row["why"] == TOPIC_DELETED and row["topic_id"] is not None
        which = f" (topic id {row['topic_id']})" if id_told else ""
        where = offsets(row["first_offset"], row["end_offset"])
        told = f"{_records([row])}, {where}"
        if row["acknowledged"] is None:
            shown = counted(row["seen"], "record")
            told = f"{where}, of which this evidence shows {shown}; no acknowledgement log is here"
        yield f"{name(row)}{which}: {told}"
        yield from (f"  {why}" for why in why_removed(row))
        yield from (f"  still there: {copy}" for copy in _still_there(row))
    if len(seen) > MOST_TOLD:
        left = counted(len(seen) - MOST_TOLD, "more partition")
        yield f"... and {left} (--format json, removed)"
    unseen = [row for row in rows if not _is_told(row)]
    if unseen:
        yield (
            f"{names(unseen)}: the log begins above 0; nothing here shows a record of what is below"
        )


def why_removed(row: dict[str, Any], offset: int | None = None) -> Iterator[str]:
    """By what the records of a row, or of one offset, went, when, and in which line."""
    if row["why"] == TOPIC_DELETED:
        at = "" if row["deleted_at"] is None else f" at {row['deleted_at']}"
        yield f"with the topic, which was deleted{at}{_place(row, 'a line of it')}"
    elif row["why"] == COMPACTION:
        yield "by compaction (cleanup.policy=compact), which keeps the newest record of each key"
    elif not row["by"]:
        yield f"by retention or by deleteRecords; the log begins at {row['end_offset']}"
    for each in row["by"]:
        if offset is not None and not each["first_offset"] <= offset < each["end_offset"]:
            continue
        setting = "" if each["setting"] is None else f": {each['setting']}"
        which = ""
        if offset is None and len(row["by"]) > 1:
            which = f"{offsets(each['first_offset'], each['end_offset'])}: "
        yield (
            f"{which}{HOW[each['how']].format(setting=setting)}{_when(each)}; the log begins at "
            f"{row['end_offset']}{_place(each)}"
        )


def why_gone(row: dict[str, Any], offset: int) -> str:
    """What became of the record at an offset of a row, after the name of the record."""
    if row["why"] != TOPIC_DELETED:
        return f"removed {next(why_removed(row, offset), '')}; {NO_LOSS}"
    at = "" if row["deleted_at"] is None else f" at {row['deleted_at']}"
    again = ""
    if row["next_topic_id"] is not None:
        again = f" and created again (id {row['next_topic_id']})"
    which = "" if row["topic_id"] is None else f" (id {row['topic_id']})"
    return f"its topic{which} was deleted{at}{again}; {NO_LOSS}"


def _when(each: dict[str, Any]) -> str:
    if each["from"] is None:
        return ""
    if each["from"] == each["until"]:
        return f" at {each['from']}"
    return f" from {each['from']} to {each['until']}, {each['lines']} times"


def _place(row: dict[str, Any], which: str = "") -> str:
    which = which or ("the last line" if row["lines"] > 1 else "the line")
    return "" if row["path"] is None else f" ({which}: {row['path']}, line {row['line']})"


def _still_there(row: dict[str, Any]) -> Iterator[str]:
    for copy in row["copies"][:MOST_COPIES]:
        first = max(copy["first_offset"], row["first_offset"])
        held = offsets(first, min(copy["end_offset"], row["end_offset"]))
        kind = KINDS.get(copy["kind"], copy["kind"])
        yield f"broker {copy['broker']}, {kind}: {copy['path']} ({held})"
    if len(row["copies"]) > MOST_COPIES:
        yield f"{len(row['copies']) - MOST_COPIES} more copies (--format json, removed)"
