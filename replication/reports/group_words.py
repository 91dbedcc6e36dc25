"""What losses did to consumer groups, in sentences: of each, and of all together."""

import shlex
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any

from replication.reports.inventory_words import counted
from replication.reports.safe_text import escaped

MOST_GROUPS, MOST_MEMBERS = 20, 5
MORE_BY = "replication-analyzer groups PATH"


def group_sentences(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Each affected group: a line of its own, then one for each topic partition, indented, then how
    to reset it."""
    for _, same in groupby(rows, key=_named):
        told = list(same)
        yield _heading(told[0])
        yield from (f"  {partition_sentence(row)}" for row in told)
        yield from (f"  {line}" for line in _resets(told))


def _resets(rows: list[dict[str, Any]]) -> Iterator[str]:
    """The commands that set one group's offsets to where its log and the leader's part. No command
    does that for share and streams groups."""
    wanted = sorted(
        (row["parts_at"], row["topic"], row["partition"])
        for row in rows
        if row["parts_at"] is not None and row["group_type"] not in ("share", "streams")
    )
    for (offset, topic), same in groupby(wanted, key=lambda w: w[:2]):
        partitions = ",".join(str(partition) for _, _, partition in same)
        yield (
            "Before it is started: kafka-consumer-groups.sh --bootstrap-server HOST:PORT --group "
            f"{shlex.quote(rows[0]['group'])} --topic {shlex.quote(topic)}:{partitions} "
            f"--reset-offsets --to-offset {offset} --execute"
        )
    if wanted:
        yield (
            "It is then given all that the log has from there on: among it, a second time, what it "
            "had read of the lost records, as far as they are back."
        )


def _named(row: dict[str, Any]) -> tuple[str, str]:
    return row["cluster_id"] or "", row["group"]


def _heading(row: dict[str, Any]) -> str:
    kind = f" ({row['group_type']})" if row["group_type"] else ""
    who = f", members: {', '.join(row['members'][:MOST_MEMBERS])}" if row["members"] else ""
    return f"Group {row['group']}{kind}{who}"


def partition_sentence(row: dict[str, Any]) -> str:
    """What became of one group in one topic partition."""
    told = " ".join(_SENTENCES[effect](row) for effect in row["effects"])
    sure = "" if row["certain"] else " (Not certain: no leader epoch tells which records it read.)"
    return f"{row['topic']}-{row['partition']}: {told}{sure}"


def groups_text(answer: dict[str, Any]) -> list[str]:
    """The groups that losses hurt, in the text of `diagnose`."""
    rows = answer.get("affected_groups", ())
    if not rows:
        return []
    names = list(dict.fromkeys(row["group"] for row in rows))
    more = f" and {len(names) - MOST_MEMBERS} more" if len(names) > MOST_MEMBERS else ""
    lines = [f"HURT  {counted(len(names), 'consumer group')}: {_few(names)}{more}"]
    lines += [f"  {sentence}" for sentence in _together(rows, len(names))]
    return [*lines, f"  each of them: {MORE_BY}", ""]


def _few(names: list[str]) -> str:
    return ", ".join(names[:MOST_MEMBERS])


def _together(rows: list[dict[str, Any]], groups: int) -> Iterator[str]:
    who = "It" if groups == 1 else "They"
    read = sum(row["lost_read"] for row in rows)
    if read:
        each = "" if groups == 1 else ", each counted for each group that read it"
        yield f"{who} had read lost records: {read:,} in all{each}."
    for field, what in (("skipped", "skip"), ("read_again", "read again")):
        total = sum(row[field] for row in rows)
        if total:
            yield f"{who} will {what} {total:,} {'record' if total == 1 else 'records'}."
    beyond = sum("committed_beyond_the_end" in row["effects"] for row in rows)
    if beyond:
        yield f"Committed offsets beyond the end of the log: {beyond:,}."
    gone = sum("commit_lost" in row["effects"] for row in rows)
    if gone:
        yield f"Lost offset commits: of {counted(gone, 'topic partition')}."


def groups_html(answer: dict[str, Any]) -> str:
    """The groups that losses hurt, as a section of the page; "" where there is none."""
    rows = answer.get("affected_groups", ())
    if not rows:
        return ""
    told = [list(same) for _, same in groupby(rows, key=_named)]
    items = "".join(map(_item, told[:MOST_GROUPS]))
    if len(told) > MOST_GROUPS:
        items += f"<li>and {len(told) - MOST_GROUPS:,} more: <code>{MORE_BY}</code></li>"
    return (
        "<section id=groups><h2>Consumer groups that were hurt</h2>"
        f"<ul class=unknowns>{items}</ul></section>"
    )


def _item(rows: list[dict[str, Any]]) -> str:
    lines = "<br>".join(escaped(partition_sentence(row)) for row in rows)
    return f"<li><h3>{escaped(_heading(rows[0]))}</h3><p>{lines}</p></li>"


def _read_lost(row: dict[str, Any]) -> str:
    are = "is" if row["lost_read"] == 1 else "are"
    return f"It had read {counted(row['lost_read'], 'record')} that {are} lost."


def _beyond(row: dict[str, Any]) -> str:
    return (
        f"Its committed offset {row['committed_offset']} is beyond the end of the "
        f"log, {row['log_end_offset']}: auto.offset.reset decides where the group "
        f"continues, or the group skips what is written up to there.{_reset(row)}"
    )


def _reset(row: dict[str, Any]) -> str:
    """Where to reset a group to, unless another sentence says it."""
    if row["parts_at"] is None or "skips_records" in row["effects"]:
        return ""
    return (
        f" Reset it to {row['parts_at']}, where its log and this one part: then it is given all "
        "that was written since, and what is produced again."
    )


def _skips(row: dict[str, Any]) -> str:
    told = (
        f"It skips {counted(row['skipped'], 'record')} that came after the loss, from offset "
        f"{row['parts_at']} on"
    )
    if row["group_type"] == "share":
        return f"{told}: it has acknowledged these offsets. Reset it to {row['parts_at']}."
    by_itself = (
        ""
        if row["committed_leader_epoch"] is None
        else "; a client that checks leader epochs (KIP-320) goes there by itself"
    )
    return (
        f"{told}: its committed offset is {row['committed_offset']}. Reset it to "
        f"{row['parts_at']}{by_itself}."
    )


def _commit_lost(row: dict[str, Any]) -> str:
    now = row["committed_offset"]
    if row["group_type"] == "share":
        return "What it had acknowledged last is no longer known to its coordinator."
    present = "no offset of it is left" if now is None else f"its offset is {now} now"
    return f"Its commit of offset {row['lost_committed_offset']} was lost; {present}."


def _reads_again(row: dict[str, Any]) -> str:
    depends = "" if row["committed_offset"] is not None else " with auto.offset.reset=earliest"
    return f"It reads {counted(row['read_again'], 'record')} again{depends}."


_SENTENCES: dict[str, Callable[[dict[str, Any]], str]] = {
    "read_lost_records": _read_lost,
    "committed_beyond_the_end": _beyond,
    "skips_records": _skips,
    "commit_lost": _commit_lost,
    "reads_again": _reads_again,
}
