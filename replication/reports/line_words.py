"""What single lines of broker logs mean, in a sentence each; the worst first.

A line proves what it says of its own broker and nothing of the others, so a sentence never says
that records are lost for good: it says what is gone from where, and who may still hold it.
"""

from collections.abc import Callable
from typing import Any

from replication.reports.inventory_words import counted, moment
from replication.reports.natural import runs

MOST_SHOWN = 12
Fields = dict[str, Any]


def line_text(answer: dict[str, Any]) -> list[str]:
    """A section about lines of partitions that are not decided by more than them."""
    undecided = {
        (v["topic"], v["partition"])
        for v in answer["verdicts"]
        if v["verdict"] == "UNKNOWN"
        and v["invariant"] in ("committed_records_survive", "log_matching")
    }
    if not undecided and answer["partitions"]:
        return []
    rows = [
        row
        for row in answer.get("observations", ())
        if row["topic"] is None or (row["topic"], row["partition"]) in undecided
    ]
    told = sorted(
        ((_rank(row["kind"]), index, row) for index, row in enumerate(rows) if sentence(row)),
        key=lambda each: each[:2],
    )
    if not told or not any(rank < len(_WORDS) for rank, _, _ in told):
        return []
    lines = ["What single lines tell (each of its own broker alone):"]
    groups = _alike([row for _, _, row in told])
    for rows in groups[:MOST_SHOWN]:
        row = rows[0]
        when = "" if row["at"] is None else f", {moment(row['at'])}"
        again = len(rows) - len({each["partition"] for each in rows})
        repeats = again + sum(each["repeats"] for each in rows)
        more = f" (and {counted(repeats, 'line')} like it)" if repeats else ""
        first = "first: " if len(rows) > 1 else ""
        lines.append(f"  {_place(rows)}{sentence(row)}{more}")
        lines.append(f"    {first}{row['path']}, line {row['line']}{when}")
    if len(groups) > MOST_SHOWN:
        left = counted(sum(len(rows) for rows in groups[MOST_SHOWN:]), "line")
        lines.append(f"  ... and {left} more (--format json has all: observations)")
    return [*lines, ""]


def _alike(rows: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The rows in their order, those together that one file says of several partitions of a topic
    within a minute: of one start, or one election."""
    groups: dict[tuple[object, ...], list[dict[str, Any]]] = {}
    for row in rows:
        minute = None if row["at"] is None else row["at"] // 60_000
        groups.setdefault((row["topic"], sentence(row), row["path"], minute), []).append(row)
    return list(groups.values())


def _place(rows: list[dict[str, Any]]) -> str:
    """The partitions of a topic that the rows are about."""
    if rows[0]["topic"] is None:
        return ""
    return f"{rows[0]['topic']}-{runs(sorted({row['partition'] for row in rows}))}: "


def sentence(row: dict[str, Any]) -> str:
    """What one row of `observations` means; nothing where it says nothing of losses."""
    words = _WORDS.get(row["kind"])
    if words is None:
        return ""
    who = _who(row)
    try:
        return words(who, row["fields"])
    except KeyError:
        return ""


def _who(row: dict[str, Any]) -> str:
    if row["broker"] is not None:
        return f"broker {row['broker']}"
    brokers = ", ".join(str(b) for b in row.get("one_of", ()))
    return f"one of brokers {brokers}" if brokers else "some broker"


def _rank(kind: str) -> int:
    return _ORDER.get(kind, len(_ORDER))


def _range(first: int, end: int) -> str:
    """Offsets with their count, transaction markers among them; the end is exclusive."""
    if end <= first:
        return "nothing"
    if end == first + 1:
        return f"what was at offset {first}"
    return f"offsets {first}..{end - 1} ({end - first} offsets)"


def _leader(f: Fields) -> str:
    return f"the leader, broker {f['leader']}" if f.get("leader") is not None else "the leader"


def _refused(who: str, f: Fields) -> str:
    first, end = f["leader_log_end_offset"], f["log_end_offset"]
    return (
        f"{who} stopped instead of truncating its log: it holds "
        f"{_range(first, end)} that {_leader(f)}, lacks. They are still in its "
        "log: copy it before anybody deletes it or starts the broker"
    )


def _below(who: str, f: Fields) -> str:
    return (
        f"{who} cut its log at {f['to_offset']}, below its high watermark "
        f"{f['high_watermark']}: {_range(f['to_offset'], f['high_watermark'])} "
        "had been committed, as far as the broker knew, and its leader does not "
        "have them"
    )


def _truncated(who: str, f: Fields) -> str:
    if f.get("leader") is not None:
        who = f"{who}, which follows broker {f['leader']},"
    to, end = f["to_offset"], f.get("log_end_offset")
    if "log_end_offset_before" in f:
        return _truncated_since(who, to, f["log_end_offset_before"])
    if end is None:
        return (
            f"{who} cut its log to offset {to}: everything from {to} on is gone from "
            "it; how much that was is not known, since no line tells where the log "
            "ended before"
        )
    if end <= to:
        return f"{who} did not truncate: its log ended at or below offset {to}"
    return f"{who} cut {_range(to, end)} from its log"


def _truncated_since(who: str, to: int, before: int) -> str:
    """Of a log that may have grown since a line told where it ended."""
    if before <= to == 0:
        return f"{who}'s log was empty by the lines before: nothing was cut"
    if before <= to:
        return (
            f"{who} cut its log to offset {to}, where it ended by its earlier lines: "
            "only records written since can be gone from it"
        )
    return f"{who} cut {_range(to, before)} from its log, and whatever came behind"


def _reason(who: str, f: Fields) -> str:
    how = {
        "high_watermark": "to its own high watermark",
        "leader_epoch": "to where the leader's epoch ends",
        "diverging_epoch": "to where its log diverges from the leader's",
        "unknown_epoch": "by offset, the leader not knowing its epoch",
    }.get(str(f.get("reason")), "")
    return f"{who} was told to cut its log to offset {f['to_offset']} {how}".rstrip()


def _unclean(who: str, f: Fields) -> str:
    leader = f"broker {f['leader']}" if f.get("leader") is not None else "a broker"
    return (
        f"an unclean election: {leader} became leader though it was not in the "
        "ISR; records that only members of the ISR had are lost unless those "
        "brokers still have them"
    )


def _unclean_by_id(who: str, f: Fields) -> str:
    return f"{_unclean(who, f)} (topic id {f['topic_id']})"


def _high_watermark_fell(who: str, f: Fields) -> str:
    return (
        f"{who}'s high watermark fell from {f['from_high_watermark']} to {f['to_high_watermark']}: "
        "if it was a follower then, nothing is wrong; if it led then, this must not happen"
    )


def _out_of_range(who: str, f: Fields) -> str:
    where = f" at offset {f['fetch_offset']}" if "fetch_offset" in f else ""
    return f"{who} fetched{where} beyond what {_leader(f)}, holds: their logs differ in length"


def _reset(who: str, f: Fields) -> str:
    first, end = f["to_offset"], f["from_offset"]
    if end > first:
        return f"{who} removed {_range(first, end)}: it set its log back to {_leader(f)}'s"
    return (
        f"{who} gave up its log up to {first}, where {_leader(f)}'s begins (removed by retention "
        "there, as a rule)"
    )


def _mismatch(who: str, f: Fields) -> str:
    return (
        f"{who} was given records from offset {f['fetch_offset']}, its log ending at "
        f"{f['log_end_offset']}: its log changed while it fetched, and it stopped fetching"
    )


def _unexpected(who: str, f: Fields) -> str:
    if "log_end_offset" not in f:
        return f"{who} was given a batch that begins below its log start; it starts anew from there"
    return (
        f"{who} was given records from offset {f['first_offset']} though it holds all up to "
        f"{f['log_end_offset']}: two histories of one log met"
    )


def _corrupt(who: str, f: Fields) -> str:
    to = f" from offset {f['to_offset']} on" if "to_offset" in f else ""
    return f"{who} found damaged records in its log and dropped what follows{to}"


def _shrunk(who: str, f: Fields) -> str:
    left = ", ".join(str(b) for b in f["to_isr"])
    if f.get("refused"):
        still = ", ".join(map(str, f.get("from_isr") or ())) or "all that were in it"
        return (
            f"{who}, the leader, wanted to leave only {left} in the ISR and was refused: it still "
            f"waits for {still} before a record is committed"
        )
    return (
        f"{who}, the leader, left only {left} in the ISR: from then on a record is committed as "
        "soon as those have it"
    )


def _differ(who: str, f: Fields) -> str:
    a, b = f["replicas"]
    return (
        f"replicas {a} and {b} held different records at offset {f['offset']}, below the high "
        "watermark, when kafka-replica-verification compared them"
    )


def _without_effect(who: str, f: Fields) -> str:
    more = f" in {f['partitions']} partitions, this one among them" if "partitions" in f else ""
    return f"{who} did not truncate{more}: its log already ended below the cut"


def _described(who: str, f: Fields) -> str:
    def listed(name: str) -> str:
        return ", ".join(str(b) for b in f.get(name, ())) or "nobody"

    led = "no leader" if f.get("leader") is None else f"leader {f['leader']}"
    told = [led, f"ISR {listed('isr')}", f"replicas {listed('replicas')}"]
    told += [f"ELR {listed('elr')}"] if f.get("elr") else []
    told += [f"last known ELR {listed('last_known_elr')}"] if f.get("last_known_elr") else []
    return f"kafka-topics told: {', '.join(told)}"


def _nobody(who: str, f: Fields) -> str:
    if f.get("to_state") != "OnlinePartition":
        return ""
    if f.get("from_state") == "OnlinePartition":
        return (
            "the controller could not make another broker leader (a preferred election, or a "
            "broker that was stopping): the leader stayed as it was; nothing is lost by that"
        )
    return (
        "no broker could be made leader: the partition waits for a member of its "
        "ISR; nothing is lost by that"
    )


_REMOVED = {
    "retention_time": "retention by time",
    "retention_size": "retention by size",
    "log_start_offset": "the log start had passed them",
}


def _removed(who: str, f: Fields) -> str:
    why = _REMOVED.get(str(f.get("reason")), "its settings say so")
    return f"{who} removed old segments of its log ({why}): lawful, and no loss"


def _tiered_removed(who: str, f: Fields) -> str:
    if f.get("reason") == "leader_epoch":
        return (
            f"{who} removed a segment from tiered storage whose leader epochs its log does not "
            "name: the log had begun anew, or was cut, since that segment was copied there"
        )
    why = _REMOVED.get(str(f.get("reason")), "its settings say so")
    return f"{who} removed an old segment from tiered storage ({why}): lawful, and no loss"


_SIMPLE = {
    "truncated_fully": "{who} dropped its whole log and starts anew at offset {to_offset}",
    "offsets_out_of_order": "{who} was given records whose offsets run backwards and refused them",
    "log_start_above_high_watermark": "{who} heard of a log start {log_start_offset} above its "
    "high watermark {high_watermark} (KAFKA-7104): it stopped fetching, nothing is cut by that",
    "unknown_leader_epoch": "{who} knows a newer leader epoch than the broker it asked: one of the "
    "two has not heard of the last election; nothing is cut by that",
    "fetch_processing_failed": "{who} could not take in what it fetched at offset {fetch_offset} "
    "and stopped fetching: the line of the cause says why",
    "fenced": "{who} asked with an older leader epoch than the leader's; it waits for the new one",
    "fetching_failed": "{who} gave up fetching: its replica stands still until it is restarted",
    "all_log_dirs_failed": "{who} stopped because all its log directories failed ({directory}): a "
    "failed disk or mount, or a full disk. Records that only this broker has "
    "cannot be read until the directories are readable again: keep them as "
    "they are",
    "log_dir_failed": "{who}'s log directory failed; what is only there is not to be had",
    "disk_error": "{who} got an error of its disk ({operation}, {directory}): it takes that "
    "directory out of service",
    "quorum_unreachable": "{who} stopped because it could not register with the controllers: "
    "nothing of its logs changed by that",
    "quorum_candidate": "{who} asked to lead the controllers in epoch {controller_epoch}: for a "
    "while they had no leader, and no partition could get a new one",
    "unclean_recovery": "{who} started and found no file of a clean stop: it started for the first "
    "time, or had not stopped cleanly, and then what it had not flushed may be gone from it",
    "epoch_entry_refused": "{who} was given records of an older epoch behind newer ones",
    "log_marked_stray": "{who} set its replica aside as stray; the files are still there",
    "high_watermark_missing": "{who} started empty: a new replica, or a new disk",
    "last_isr_retained": "no member of the ISR was alive, and no other broker was made leader: "
    "nothing is lost by that, the partition waits",
    "leader_recovered": "{who} leads after an unclean election and has ended its recovery",
    "unclean_election_triggered": "an unclean election was made: records that only in-sync "
    "replicas had are lost, unless one of these still has them and leads again",
    "isr_update_refused": "{who} could not change the ISR: it may go on as if it were the leader, "
    "and records that it acknowledges then are not kept",
    "offline_directories_partitions": "the controller was told that log directories of broker "
    "{broker} failed: records that are only there cannot be read",
    "broker_unclean_shutdown": "the controller learned that a broker had not stopped cleanly: "
    "records that the broker had not flushed may be gone from its disk",
    "epoch_entry_added": "{who} noted leader epoch {leader_epoch} from offset {start_offset} on "
    "and forgot entries that did not fit: it was given logs that differ from "
    "there on",
    "epoch_entries_cleared": "{who} forgot the leader epochs that began at offset {offset} or "
    "later: it cut its log there",
    "become_follower_failed": "{who} could not follow broker {leader}, which was not there: it "
    "waits for the next leader",
    "process_failed": "{who}'s process failed ({reason}): whether its log was flushed is not told",
    "replica_removed_from_isr": "the controller took broker {replica} out of the ISR: from then on "
    "a record is committed without it",
    "corrupt_index_found": "{who} found a damaged index and builds it anew from the log: no record "
    "is lost by that",
    "tiered_segment_copied": "{who} copied its segment from offset {segment} on to tiered storage: "
    "what the segment holds is there as well",
}


def _simple(template: str) -> Callable[[str, Fields], str]:
    return lambda who, f: template.format(who=who, **f)


_WORDS: dict[str, Callable[[str, Fields], str]] = {
    "truncation_refused": _refused,
    "truncated_below_high_watermark": _below,
    "replicas_differ": _differ,
    "unclean_leader_elected": _unclean,
    "unclean_election_triggered": _simple(_SIMPLE["unclean_election_triggered"]),
    "leader_elected": _unclean_by_id,
    "truncated": _truncated,
    "fetch_offset_reset": _reset,
    "truncated_fully": _simple(_SIMPLE["truncated_fully"]),
    "corruption_found": _corrupt,
    "invalid_records_found": _corrupt,
    "corrupt_segment_deleted": _corrupt,
    "high_watermark_regressed": _high_watermark_fell,
    "fetch_out_of_range": _out_of_range,
    "fetch_offset_mismatch": _mismatch,
    "unexpected_append_offset": _unexpected,
    "truncation_reason": _reason,
    "partition_state_change_failed": _nobody,
    "isr_shrink_proposed": _shrunk,
    **{kind: _simple(text) for kind, text in _SIMPLE.items() if "unclean_e" not in kind
       and kind not in ("truncated_fully", "tiered_segment_copied")},
    "segments_deleted": _removed,
    "truncation_without_effect": _without_effect,
    "partition_described": _described,
    "tiered_segment_deleted": _tiered_removed,
    "tiered_segment_copied": _simple(_SIMPLE["tiered_segment_copied"]),
}  # fmt: skip
_ORDER = {kind: rank for rank, kind in enumerate(_WORDS)}
KINDS = frozenset(_WORDS)
