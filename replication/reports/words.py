"""The short answer in plain words: worst first, readable by somebody woken at night."""

import argparse
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from itertools import chain
from typing import Any

from replication.protocol.folding.reconstruction import derived_values
from replication.protocol.ground import picture
from replication.protocol.ground.model import joined_ranges
from replication.protocol.ground.topic_partition import Registration, State
from replication.reports.assumption_words import granted_text
from replication.reports.do_now import GONE, do_now_text, leaderless_in, sends_to_decide
from replication.reports.evidence_lines import Quotes, read_lines
from replication.reports.group_words import groups_text
from replication.reports.headline import headline, headline_more, undecided, what_settles, why_open
from replication.reports.inventory_words import counted, inventory_text, span_of
from replication.reports.line_words import line_text
from replication.reports.loss_words import (
    MOST_RANGES,
    divergences_by_replicas,
    keep_safe_text,
    loss_text,
)
from replication.reports.natural import names, of_partition
from replication.reports.removed_words import beside_the_headline, removed_text
from replication.reports.safe_text import plain, plain_values
from replication.reports.transaction_words import transactions_text
from replication.reports.undecided_words import seen_of
from replication.reports.vocabulary import INVARIANT_WORDS, name, offsets, runs_of_offsets

MOST_REASONS = 5
# A command that the text names for the evidence of this call, and how long its paths may be there.
COMMAND = re.compile(r"replication-analyzer [a-z]+ (?:\S+ )?PATH\b")
LONGEST_PATHS = 200
# Rows of the table of verdicts; beyond as many partitions those that are alike share a row.
MOST_ROWS = 12


def short_text(answer: dict[str, Any]) -> str:
    """The answer of `diagnose --format text`."""
    answer = plain_values(answer)
    lines = [f"{headline(answer)}."]
    if more := headline_more(answer):
        lines.append(" ".join(f"{said}." for said in more))
    lines += beside_the_headline(answer)
    lines += [*_not_read(answer), *_looked_at(answer), ""]
    lines += do_now_text(answer)
    lines += granted_text(answer)
    lines += loss_text(answer)
    lines += _diverged(answer)
    lines += removed_text(answer)
    lines += _other_violations(answer)
    lines += keep_safe_text(answer)
    lines += groups_text(answer)
    lines += transactions_text(answer)
    lines += _warnings(answer)
    lines += _open_questions(answer)
    lines += line_text(answer)
    lines += _table(answer)
    lines += inventory_text(answer.get("inventory", {}))
    lines += _input(answer)
    lines += what_now_text(answer)
    return "\n".join(lines).rstrip() + "\n"


def as_called(options: argparse.Namespace) -> list[str]:
    """What names the evidence in this call: its paths, and of which topics it is."""
    topics = (["--topic", topic] for topic in sorted(options.topics))
    return [*map(str, options.paths), *chain.from_iterable(topics)]


def with_paths(text: str, called: list[str]) -> str:
    """The text with the evidence of this call in the commands that it names, if it is short."""
    told = " ".join(map(shlex.quote, called))
    if not told or len(told) > LONGEST_PATHS:
        return text
    return COMMAND.sub(lambda found: found[0].removesuffix("PATH") + told, text)


def what_now_text(answer: dict[str, Any]) -> list[str]:
    """Where to go on, if there is something to decide: records are gone from the leader, replicas
    differ, or a partition whose elections are known has no leader."""
    if not sends_to_decide(answer):
        return []
    decide = "Which replica is to lead now, at what cost: replication-analyzer decide PATH"
    if not any(x["surviving_copies"] for x in answer["losses"] if x["status"] in GONE):
        return ["", decide]
    recover = "he records that a copy still has: replication-analyzer recover PATH --out back"
    if leaderless_in(answer):
        # Which records are missing depends on who is elected.
        return ["", decide, f"After the election, t{recover}"]
    return ["", f"T{recover}", decide]


def _diverged(answer: dict[str, Any]) -> list[str]:
    """Replicas that keep different records, a paragraph for each two of them."""
    lines: list[str] = []
    for (_, a, b), rows in divergences_by_replicas(answer["divergences"]).items():
        places = [f"{name(d)} {offsets(d['first_offset'], d['end_offset'])}" for d in rows]
        head = f"DIVERGED  replicas {a} and {b} hold different records"
        lines += [f"{head}: {places[0]}"] if len(rows) == 1 else [f"{head}:"]
        if len(rows) > 1:
            lines += [f"    {p}" for p in places[:MOST_RANGES]]
            more = len(places) - MOST_RANGES
            lines += [f"    and {counted(more, 'range')} more"] if more > 0 else []
        lines += [
            "  No truncation will mend it. Compare the two copies before you delete either.",
            f"  proof: replication-analyzer explain {rows[0]['finding_id']} PATH",
            "",
        ]
    return lines


def _other_violations(answer: dict[str, Any]) -> list[str]:
    told = {
        "committed_records_survive",
        "acknowledged_records_survive",
        "consumed_records_survive",
        "log_matching",
    }
    lines = []
    for v in answer["verdicts"]:
        if v["verdict"] == "VIOLATED" and v["invariant"] not in told:
            lines += [
                f"BROKEN  {name(v)}  {v['invariant']}: {v['reason']}",
                f"  proof: replication-analyzer explain {v['finding_ids'][0]} PATH",
                "",
            ]
    return lines


def _warnings(answer: dict[str, Any]) -> list[str]:
    return [
        line
        for f in answer["findings"]
        if f.get("kind")
        for line in (
            f"WARNING  {name(f)}  {f['kind']}: {f['summary']}",
            f"  proof: replication-analyzer explain {f['finding_id']} PATH",
            "",
        )
    ]


def _table(answer: dict[str, Any]) -> list[str]:
    """The verdicts that matter most, the worst partitions first; of many, alike ones in one row."""
    if not answer["verdicts"]:
        return []
    shown = list(INVARIANT_WORDS)
    seen: dict[tuple[Any, ...], dict[str, str]] = {}
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for v in answer["verdicts"]:
        key = (v["cluster_id"], v["topic"], v["topic_id"], v["partition"])
        seen.setdefault(key, {})[v["invariant"]] = v["verdict"]
        rows[key] = v
    alike: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for key in sorted(seen, key=lambda k: of_partition(rows[k])):
        verdicts = tuple(seen[key].get(i, "") for i in shown)
        apart = key if len(seen) <= MOST_ROWS else key[:3]
        alike.setdefault((verdicts, apart), []).append(rows[key])
    order = {"VIOLATED": 0, "UNKNOWN": 1, "HOLDS": 2}
    worst = sorted(alike.items(), key=lambda kv: min(order.get(c, 3) for c in kv[0][0]))
    twice = _told_twice([key[1:3] for key in seen])
    body = [(_which(same, twice), *verdicts) for (verdicts, _), same in worst]
    head = ("partition", *(INVARIANT_WORDS[i] for i in shown))
    told = [head, *body[:MOST_ROWS]]
    widths = [max(len(r[i]) for r in told) for i in range(len(head))]
    lines = ["  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)).rstrip() for r in told]
    if len(body) > MOST_ROWS:
        left = sum(len(same) for _, same in worst[MOST_ROWS:])
        lines.append(f"... and {counted(left, 'more partition')}, none of them worse")
    return [*lines, ""]


def _told_twice(topics: list[tuple[str, str | None]]) -> set[str]:
    """Names that several topics had, one after the other."""
    known = Counter(topic for topic, _ in set(topics))
    return {topic for topic, number in known.items() if number > 1}


def _which(rows: list[dict[str, Any]], twice: set[str]) -> str:
    """The partitions of a row of the table; of a name that was given twice with the topic id."""
    first = rows[0]
    if first["topic"] not in twice:
        return names(rows)
    return f"{names(rows)} (topic id {first['topic_id'] or 'unknown'})"


# What is said of a file or an archive of which the end is not there.
_BREAKS_OFF = ("breaks off", "reading stops")


def _not_read(answer: dict[str, Any]) -> list[str]:
    """What of the evidence could not be read, and why: the answer is about the rest."""
    first_of: dict[str, dict[str, Any]] = {}
    for each in answer["input"]["unreadable"]:
        first_of.setdefault(each["path"], each)
    if not first_of:
        return []
    cut = [each for each in first_of.values() if _breaks_off(each)]
    told = (cut or [*first_of.values()])[0]
    more = f" (and places in {counted(len(first_of) - 1, 'file')} more, below)"
    whole = " Hand over the whole file." if cut else ""
    reason = told["reason"].rstrip(".")
    return [
        f"Not all of the evidence was read: {told['path']} ({told['where']}): {reason}"
        f"{more if len(first_of) > 1 else ''}. The answer is about the rest.{whole}"
    ]


def _breaks_off(place: dict[str, Any]) -> bool:
    return any(words in place["reason"] for words in _BREAKS_OFF)


def _looked_at(answer: dict[str, Any]) -> list[str]:
    """Which cluster, which Kafka, and when, by the clocks of those who wrote it down."""
    lines = []
    brokers = answer.get("inventory", {}).get("brokers", [])
    for cluster in answer["clusters"]:
        versions = ", ".join(cluster["kafka_versions"]) or "of unknown version"
        control = {"kraft": " (KRaft)", "zookeeper": " (ZooKeeper)"}
        logs = [
            log
            for row in brokers
            if row["cluster_id"] in (cluster["cluster_id"], None)
            for log in row["logs"]
        ]
        span = f", from {told}" if (told := span_of(logs)) else ""
        lines.append(
            f"Cluster {cluster['cluster_id'] or 'of unknown id'}, Kafka {versions}"
            f"{control.get(cluster['controller'] or '', '')}{span}."
        )
    return lines[:5]


def _open_questions(answer: dict[str, Any]) -> list[str]:
    """What cannot be told and why, the worst first; what would settle it, and how to get it."""
    wanted = what_settles(answer)
    if not wanted:
        return []
    reasons: dict[str, list[dict[str, Any]]] = {}
    for verdict in sorted(undecided(answer), key=lambda v: (_weight(v), of_partition(v))):
        reasons.setdefault(why_open(verdict), []).append(verdict)
    told = [f"{names(rows, 3)}: {reason}" for reason, rows in reasons.items()]
    lines = ["Not decided:", *(f"  {r}" for r in told[:MOST_REASONS])]
    if len(told) > MOST_REASONS:
        lines.append(f"  ... and {counted(len(told) - MOST_REASONS, 'reason')} more "
                     "(--format json has all)")  # fmt: skip
    lines += seen_of(answer)
    return [*lines, "What would decide it:", *(f"  {w}" for w in wanted), ""]


def _weight(verdict: dict[str, Any]) -> int:
    """How bad it may be, by what the reason already names: 0 is worst."""
    reason = verdict["reason"]
    if reason.startswith("nothing names the leader: if"):
        return 0
    return 1 if reason.startswith("offsets ") else 2


def _balance(counts: dict[str, int]) -> str:
    """What became of the events; told apart only where not each one was applied."""
    if counts["applied"] == counts["events"]:
        return "all applied"
    superseded = f" ({counts['superseded']} superseded)" if counts["superseded"] else ""
    return (
        f"{counts['applied']} applied, {counted(counts['duplicates'], 'duplicate')}{superseded}, "
        f"{counts['quarantined']} quarantined, {counts['held']} held"
    )


def _input(answer: dict[str, Any]) -> list[str]:
    counts = answer["input"]
    lines = [
        f"Read {counted(counts['files'], 'file')}; {counted(counts['events'], 'event')}: "
        f"{_balance(counts)}."
    ]
    unreadable = counts["unreadable"]
    if unreadable:
        lines.append(f"{counted(len(unreadable), 'place')} could not be read:")
        for u in unreadable[:5]:
            lines.append(f"  {u['path']} ({u['where']}): {u['reason']}")
        if len(unreadable) > 5:
            lines.append(f"  ... and {len(unreadable) - 5} more (--format json lists all)")
    return lines


def proof(
    finding: dict[str, Any],
    events: dict[str, Any],
    derived: Iterable[dict[str, Any]] = (),
    quoted: Quotes = read_lines,
) -> str:
    """A finding as a proof: steps, because, contradiction, each with its file and line, quoted.

    events: the events that the steps name, by event_id; any object with observed_at and source.
    derived: what no line tells of the partition and rules force, which a reader would miss.
    quoted: the lines at places of the evidence.
    """
    quotes = quoted(_places(finding, events))
    finding = plain_values(finding)
    warns = finding.get("kind")
    lines = [
        f"{warns} in {name(finding)}"
        if warns
        else f"{finding['invariant']} is violated for {name(finding)}",
        f"  {finding['summary']}",
        "",
    ]
    for number, step in enumerate(finding["witness"], start=1):
        lines.append(f"{number}. {step['because']}")
        event = events.get(step["event_id"])
        source = getattr(event, "source", None)
        if source is not None:
            place = plain(source.path)
            if source.line is not None:
                place += f", line {source.line}"
            elif source.byte_offset is not None:
                place += f", offset {source.byte_offset}"
            lines.append(f"   because: {place}")
            line = quotes.get((source.path, source.line))
            lines += [] if line is None else [f"     | {plain(line)}"]
    lines += [derived_text(d) for d in derived if _is_told_with(finding, d)]
    if not warns:
        lines += ["", f"These steps cannot all have happened while {finding['invariant']} holds."]
    return "\n".join([*lines, ""])


def _places(finding: dict[str, Any], events: dict[str, Any]) -> set[tuple[str, int]]:
    """File and line of each step that was read from a line."""
    sources = [getattr(events.get(step["event_id"]), "source", None) for step in finding["witness"]]
    return {(s.path, s.line) for s in sources if s is not None and s.line is not None}


LEGEND = (
    "A line is a replica: its broker (* leads, ! stopped), the leader epoch it knows (e3), its",
    "log as LEADER EPOCH:RECORD (*5: five of them) from the first offset on; | is its high",
    "watermark. [7]: it begins at offset 7. r: what every copy holds; r_b: another record at the",
    "same offset; a dot: {dot}.",
)
UNSEEN_OR_COMPACTED = (
    "records that are there and were not seen",
    "an offset at which compaction left no record",
)
# So many ranges of a compacted log are told by their offsets.
_MOST_LEFT = 24


def draw(state: State, at: int | None) -> str:
    """The replicas' logs of one partition's state, in the drawing that scenarios use too."""
    registration = state.registration
    when = "at the end" if at is None else f"after event {at}"
    head = f"{plain(state.topic)}-{state.partition} {when}: {_registered(registration)}"
    rows = [
        picture.Row(
            name=str(number),
            spans=tuple(replica.log.spans),
            high_watermark=replica.high_watermark,
            leader_epoch=replica.leader_epoch,
            log_start_offset=replica.log.log_start_offset,
            log_end_offset=replica.log.log_end_offset,
            leads=number == registration.leader,
            stopped=bool(replica.stopped),
        )
        for number, replica in sorted(state.replicas.items())
    ]
    if not rows:
        return f"{head}\nNo replica's log is known: no log directory and no line tells of one."
    told = [derived_text(asdict(d)) for d in derived_values(state)]
    compacted = "compact" in (state.settings.cleanup_policy or "")
    left = _left_by_compaction(rows) if compacted else []
    legend = [line.format(dot=UNSEEN_OR_COMPACTED[compacted]) for line in LEGEND]
    return "\n".join([head, *picture.draw(rows, _content_name), *left, *told, "", *legend])


def _registered(said: Registration) -> str:
    """What the controller last recorded, as far as it is known."""
    leader = f"leader {said.leader}"
    if said.leader is None:
        leader = "leader not known" if said.isr is None else "no leader"
    leader_epoch = "not known" if said.leader_epoch < 0 else said.leader_epoch
    isr = "not known" if said.isr is None else ",".join(map(str, said.isr)) or "empty"
    return f"{leader}, leader epoch {leader_epoch}, ISR {isr}"


def _left_by_compaction(rows: list[picture.Row]) -> Iterator[str]:
    """At which offsets the logs of a compacted topic still have a batch: nobody counts dots."""
    brokers: dict[tuple[tuple[int, int], ...], list[str]] = {}
    for row in rows:
        still = joined_ranges([(s.first_offset, s.end_offset) for s in row.spans])
        brokers.setdefault(tuple(still), []).append(row.name)
    for spans, of in brokers.items():
        many = "s" if len(of) > 1 else ""
        told = runs_of_offsets([*spans], _MOST_LEFT) or "nothing"
        yield f"broker{many} {', '.join(of)}: the log still has {told}"


def _is_told_with(finding: dict[str, Any], derived: dict[str, Any]) -> bool:
    """Epoch entries decide what a truncation keeps; of the rest every proof may speak."""
    return derived["what"] != "epoch_entry" or finding.get("invariant") == "log_matching"


def derived_text(derived: dict[str, Any]) -> str:
    """One derived value in words, with the rule that forces it."""
    what = {
        "high_watermark": f"its high watermark is at least {derived['offset']}",
        "epoch_entry": f"leader epoch {derived['leader_epoch']} begins at {derived['offset']}",
        "truncation": f"it cut its log at {derived['offset']}",
    }[derived["what"]]
    return (
        f"derived: broker {derived['replica']}: {what}, by {derived['rule']} ({derived['because']})"
    )


def _content_name(content: int) -> str:
    """Content 0 is what every copy holds; a letter tells another record at the same offset."""
    return "r" if content == 0 else "r" + "_abcdefghijklmnopqrstuvwxyz"[min(content, 26)]
