"""The words of the incident page: what happened, why, what survives, what is not known; as HTML.

All of it can be read, quoted and printed without running the page's script.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from replication.reports.danger_words import alike, ends_when, happens, ranges
from replication.reports.event_words import brokers, offset_range
from replication.reports.headline import (
    headline_more,
    is_open,
    partitions_undecided,
    why_open,
)
from replication.reports.history_words import epochs_of
from replication.reports.inventory_words import clock_words, moment
from replication.reports.loss_words import (
    NO_DETAIL,
    concerned,
    contract_words,
    details_of,
    divergences_by_replicas,
    events_of,
    what_helps,
    why_of,
    with_paths,
)
from replication.reports.loss_words import keep_safe as destroying
from replication.reports.natural import names
from replication.reports.ranking import Partition, identity_of, records_at_risk
from replication.reports.safe_text import escaped
from replication.reports.vocabulary import CAUSE_WORDS, TIER_WORDS, sides

# So many articles are open at once; some more can be opened, the rest is in the partitions.
OPEN_ARTICLES = 3
MOST_ARTICLES = 25
# Ranges of one event that its article tells one by one.
MOST_FOLDED = 100
MOST_UNREADABLE = 50
# Ranges of offsets that one danger names.
MOST_RUNS = 5

STATUS_TITLES = {
    "lost": "lost",
    "undetermined": "gone from the leader",
    "recoverable": "recoverable",
    "at_risk": "at risk",
    "recovered": "missing for a while, back now",
}
STATUS_SENTENCES = {
    "lost": "No replica holds {them} any more.",
    "undetermined": "The leader does not have {them}; whether another replica still does is not "
    "known.",
    "recoverable": "The leader does not have {them}, but a copy survives.",
    "at_risk": "Every log that leads holds {them}, but a replica without {them} could still be "
    "elected.",
    "recovered": "Under an earlier leader {they_were} missing; now {they_are} back.",
}
TIER_SENTENCES = {
    "consumed": "had already been given to a consumer",
    "acknowledged_by_isr": "had been acknowledged to {their} producer with acks=all",
    "committed": "had been committed; whether a producer was told with acks=all is not known",
    "acknowledged_by_leader": "had been acknowledged to {their} producer with acks=1 only",
    "never_acknowledged": "had never been acknowledged to anybody",
    "undetermined": "may have been promised to somebody; the evidence does not say",
}
INVARIANT_SENTENCES = {
    "committed_records_survive": "Committed records survive",
    "acknowledged_records_survive": "Acknowledged records survive",
    "log_matching": "Replicas agree on every record",
    "consumed_records_survive": "Consumed records survive",
    "single_leader_per_epoch": "One leader per leader epoch",
    "leader_epochs_monotonic": "Leader epochs only rise",
    "leader_high_watermark_monotonic": "A leader's high watermark only rises",
    "high_watermark_within_log": "The high watermark stays within the log",
    "isr_within_assignment": "Only assigned replicas are in the ISR",
    "leader_in_isr": "The leader is in the ISR",
    "version_conformance": "Replicas act by the rules of their Kafka version",
}
TOLD_BY_LOSSES = frozenset({
    "committed_records_survive", "acknowledged_records_survive", "consumed_records_survive",
    "log_matching",
})  # fmt: skip
TONES = {
    "lost": "bad", "undetermined": "bad", "diverged": "bad", "broken": "bad",
    "recoverable": "warn", "at_risk": "warn", "recovered": "calm",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Seen:
    """Where the steps of proofs were read (by event_id), and each finding's telling step."""

    places: Mapping[str, str]
    moments: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Article:
    """One finding in words. title and body are HTML."""

    tone: str
    title: str
    tags: list[str]
    body: str

    def html(self, is_open: bool) -> str:
        pills = "".join(f"<li>{escaped(t)}</li>" for t in self.tags)
        inner = f"<ul class=tags>{pills}</ul>{self.body}"
        if is_open:
            return f'<article class="{self.tone}"><h3>{self.title}</h3>{inner}</article>'
        return (
            f'<article class="{self.tone} folded"><details><summary><h3>{self.title}</h3>'
            f"</summary>{inner}</details></article>"
        )


def _agreement(count: int) -> dict[str, str]:
    if count == 1:
        return {"them": "it", "their": "its", "they_were": "it was", "they_are": "it is"}
    return {"them": "them", "their": "their", "they_were": "they were", "they_are": "they are"}


def _records(count: int, bound: str = "exact") -> str:
    least = "at least " if bound == "at_least" else ""
    return f"{least}{count:,} record{'' if count == 1 else 's'}"


def name_of(label: str) -> str:
    """A partition's label as HTML; short ones are not broken at their hyphens."""
    return f"<span class=name>{escaped(label)}</span>" if len(label) <= 40 else escaped(label)


def header(answer: dict[str, Any], title: str) -> str:
    """The headline, as HTML, and what was looked at."""
    facts = []
    for cluster in answer["clusters"]:
        versions = ", ".join(cluster["kafka_versions"]) or "of unknown version"
        control = {"kraft": "KRaft", "zookeeper": "ZooKeeper"}.get(cluster["controller"] or "", "")
        parts = [
            f"Kafka {versions}",
            control,
            f"brokers {brokers(cluster['brokers'])}",
            f"cluster {cluster['cluster_id'] or 'of unknown id'}",
        ]
        facts.append(", ".join(p for p in parts if p))
    lines = "".join(f"<p class=facts>{escaped(f)}</p>" for f in facts[:5])
    more = len(facts) - 5
    lines += f"<p class=facts>and {more} more clusters</p>" if more > 0 else ""
    if answer.get("incident"):
        lines = f"<p class=facts>incident {escaped(answer['incident'])}</p>{lines}"
    said = "".join(f"<p>{escaped(more)}.</p>" for more in headline_more(answer))
    kicker = "<p class=kicker>Kafka replication report</p>"
    return f"<header>{kicker}<h1>{title}</h1>{said}{lines}</header>"


def figures(answer: dict[str, Any]) -> str:
    """The few numbers that sum up the answer."""

    def total(*statuses: str) -> int:
        return sum(x["records"] for x in answer["losses"] if x["status"] in statuses)

    undecided = partitions_undecided(answer)

    def least(*statuses: str) -> str:
        rows = [x for x in answer["losses"] if x["status"] in statuses]
        bounded = any(x["end_offset_bound"] == "at_least" for x in rows)
        return " (at least)" if rows and (bounded or undecided) else ""

    gone = ("lost", "undetermined")
    elsewhere = any(x["status"] == "undetermined" for x in answer["losses"])
    gone_words = "records gone from the leader" if elsewhere else "records lost"
    settled = sum(d["status"] == "settled" for d in answer["divergences"])
    cells = [
        ("lost", total(*gone), gone_words, "bad", least(*gone)),
        (
            "recoverable",
            total("recoverable"),
            "records recoverable",
            "warn",
            least("recoverable"),
        ),
        ("at-risk", in_danger(answer), "records at risk", "warn", ""),
        ("diverged", settled, "place diverged" if settled == 1 else "places diverged", "bad", ""),
        (
            "undecided",
            undecided,
            "partition undecided" if undecided == 1 else "partitions undecided",
            "calm",
            "",
        ),
    ]
    items = "".join(
        f'<li id="figure-{key}" class="{tone if number else "none"}"><b>{number:,}</b> '
        f"<span>{name}{bound}</span></li>"
        for key, number, name, tone, bound in cells
    )
    return f'<ul class=figures aria-label="The numbers">{items}</ul>'


def in_danger(answer: dict[str, Any]) -> int:
    """How many records one failure would cost, each counted once."""
    by_partition: dict[Any, list[dict[str, Any]]] = {}
    for danger in answer.get("at_risk", ()):
        by_partition.setdefault(identity_of(danger), []).append(danger)
    return sum(map(records_at_risk, by_partition.values()))


def one_failure_away(ranked: list[Partition]) -> str:
    """What one more failure would cost, and what ends the danger; Do now has the first of them."""
    items = [
        f"{partition.label}: {_what_is_lost(rows, partition.state)}. "
        f"{ends_when(rows[0], partition.state, partition.divergences)} "
        f"After that: {rows[0]['one_more_failure']}."
        for partition in ranked
        for rows in alike(partition.at_risk, partition.divergences)
    ]
    return _aside("One failure away", items, ' id="danger"')


def _what_is_lost(dangers: list[dict[str, Any]], state: dict[str, Any]) -> str:
    """If what happens now, which records are lost; why that is so, and since when. dangers: alike
    but for their offsets."""
    danger = dangers[0]
    lost = "lost" if danger["next_leader"] is not None or danger["holders"] else "gone for good"
    runs = ranges(dangers)
    where = ", ".join(offset_range(*run) for run in runs[:MOST_RUNS])
    where += f" and {len(runs) - MOST_RUNS:,} more ranges" if runs[MOST_RUNS:] else ""
    are = "is" if sum(end - first for first, end in runs) == 1 else "are"
    return (
        f"if {happens(danger, state, ' now')}, {where} {are} {lost} "
        f"({CAUSE_WORDS.get(danger['cause'], danger['cause'])}"
        f"{'; so since ' + danger['since'] if danger['since'] else ''})"
    )


def keep_safe(ranked: list[Partition]) -> str:
    """What must not be done now: whatever would destroy the copies that survive."""
    sentences = destroying([loss for p in ranked for loss in p.losses])
    return _aside("Before you restart anything", [_capital(s) for s in sentences])


def _aside(title: str, sentences: list[str], attributes: str = "") -> str:
    """What comes before everything else, as a list of so many; "" where there is nothing."""
    if not sentences:
        return ""
    rows = "".join(f"<li>{escaped(s)}</li>" for s in sentences[:MOST_ARTICLES])
    if len(sentences) > MOST_ARTICLES:
        rows += f"<li>and {len(sentences) - MOST_ARTICLES:,} more, in their partitions.</li>"
    return f"<aside class=safe{attributes}><h2>{title}</h2><ul>{rows}</ul></aside>"


def what_happened(ranked: list[Partition], answer: dict[str, Any], seen: Seen) -> str:
    """An article per event that lost records, per two replicas that diverged and per other broken
    promise, the worst partition's first."""
    by_identity = {p.identity: p for p in ranked}
    rank = {p.identity: place for place, p in enumerate(ranked)}
    details = details_of(answer)
    articles: list[tuple[int, int, Callable[[], _Article]]] = []
    known = [row for row in answer["losses"] if identity_of(row) in by_identity]
    for rows in events_of(known, details):
        of = [by_identity[identity_of(row)] for row in rows]
        own = [details.get(row["finding_id"], NO_DETAIL) for row in rows]
        place = min(rank[p.identity] for p in of)
        articles.append((place, 0, partial(_event, of, rows, own, seen)))
    known = [row for row in answer["divergences"] if identity_of(row) in by_identity]
    for found in divergences_by_replicas(known).values():
        of = [by_identity[identity_of(row)] for row in found]
        place = min(rank[p.identity] for p in of)
        articles.append((place, 1, partial(_divergence, of, found, seen)))
    for place, partition in enumerate(ranked):
        articles += [
            (place, 2, partial(_violation, partition, v, seen)) for v in _others(partition)
        ]
    if not articles:
        return ""
    articles.sort(key=lambda each: each[:2])
    left = len(articles) - MOST_ARTICLES
    more = ""
    if left > 0:
        finding = "1 more finding is" if left == 1 else f"{left:,} more findings are"
        more = (
            f"<p class=more>{finding} told in their partitions below, none "
            "in a partition with more damage than these.</p>"
        )
    shown = [make() for _, _, make in articles[:MOST_ARTICLES]]
    told = "".join(a.html(i < OPEN_ARTICLES) for i, a in enumerate(shown))
    return f"<section id=happened><h2>What happened</h2>{told}{more}</section>"


def _others(partition: Partition) -> list[dict[str, Any]]:
    return [
        v
        for v in partition.verdicts
        if v["verdict"] == "VIOLATED" and v["invariant"] not in TOLD_BY_LOSSES
    ]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _event(
    partitions: list[Partition],
    rows: list[dict[str, Any]],
    details: list[dict[str, Any]],
    seen: Seen,
) -> _Article:
    """One event that lost records, its partitions folded where it concerns several ranges."""
    first, several = rows[0], len(rows) > 1
    count = sum(row["records"] for row in rows)
    bound = "at_least" if any(r["end_offset_bound"] == "at_least" for r in rows) else "exact"
    forms = _agreement(count)
    facts = [_what(partitions, rows, count, bound)]
    facts.append(f"<p>Why: {escaped(why_of(rows, details))}.")
    also = "It may be" if first["cause"] == "unknown" else "It contributed"
    for extra in first["contributing"]:
        facts.append(f" {also} that {escaped(CAUSE_WORDS[extra])}.")
    facts.append(f" {escaped(contract_words(first, details))}")
    if helps := what_helps(first, details):
        facts.append(f" {escaped(helps)}.")
    facts.append("</p>")
    facts += [f"<p>Whose: {escaped(whose)}.</p>" for whose in concerned(details)]
    if several:
        each = "".join(
            f"<li><p>{_what([p], [row], row['records'], row['end_offset_bound'], bare=True)}</p>"
            f"{_copies(row, detail, _agreement(row['records']))}"
            f"{_proof(p, row['finding_id'], seen)}</li>"
            for p, row, detail in zip(partitions[:MOST_FOLDED], rows, details, strict=False)
        )
        left = len(rows) - MOST_FOLDED
        each += f"<li>and {left:,} more, in their partitions below</li>" if left > 0 else ""
        label = f"{_in_partitions(partitions)}, {len(rows):,} ranges, each with its proof"
        facts.append(
            f"<details class=each><summary>{escaped(label)}</summary><ul>{each}</ul></details>"
        )
    else:
        facts.append(_copies(first, details[0], forms))
        facts.append(_proof(partitions[0], first["finding_id"], seen))
    where = "" if several else f", {offset_range(first['first_offset'], first['end_offset'])}"
    title = (
        f"{name_of(_in_partitions(partitions))}{where}: {_records(count, bound)} "
        f"{STATUS_TITLES[first['status']]}"
    )
    tags = [
        STATUS_TITLES[first["status"]],
        *dict.fromkeys(TIER_WORDS[row["tier"]] for row in rows),
        "cause: " + first["cause"].replace("_", " "),
    ]
    return _Article(TONES[first["status"]], title, tags, "".join(facts))


def _in_partitions(partitions: list[Partition]) -> str:
    """How many partitions, or which."""
    different = list(dict.fromkeys(p.label for p in partitions))
    return different[0] if len(different) == 1 else f"{len(different):,} partitions"


def _what(
    partitions: list[Partition], rows: list[dict[str, Any]], count: int, bound: str, *,
    bare: bool = False,
) -> str:  # fmt: skip
    """Which records, what they had been promised, and where they are now."""
    forms = _agreement(count)
    onward = " and possibly more above" if bound == "at_least" else ""
    tiers = [TIER_SENTENCES[t].format(**forms) for t in dict.fromkeys(r["tier"] for r in rows)]
    status = STATUS_SENTENCES[rows[0]["status"]].format(**forms)
    first = rows[0]
    label = partitions[0].label
    where = f"{_capital(offset_range(first['first_offset'], first['end_offset']))} of "
    if len(rows) == 1:
        text = f"{escaped(where)}<b>{escaped(label)}</b> ({_records(count, bound)}{onward}) "
    else:
        told = names([p.state for p in partitions])
        text = f"{_capital(_records(count, bound))}{onward} of <b>{escaped(told)}</b> "
    text += f"{escaped('; or '.join(tiers))}."
    return text if bare else f"<p>{text} {escaped(status)}</p>"


def _copies(loss: dict[str, Any], detail: dict[str, Any], forms: dict[str, str]) -> str:
    if not loss["surviving_copies"]:
        if loss["status"] in ("lost", "undetermined"):
            return "<p>No copy is among the evidence.</p>"
        return ""
    items = []
    for copy, place in with_paths(loss, detail):
        if copy["kind"] == "replica":
            text = f"Broker {copy['replica']}: in its log"
        else:
            text = f"Broker {copy['replica']}: in an older copy among the evidence"
        item = escaped(text)
        if place:
            item += f" (<span class=place>{escaped(place)}</span>)"
        elif copy["as_of"]:
            item += f", as of {escaped(copy['as_of'])}"
        if copy["destroyed_when"]:
            item += f". Destroyed when {escaped(copy['destroyed_when'])}"
        items.append(f"<li>{item}.</li>")
    return (
        f"<p class=lead>Where a copy of {forms['them']} survives</p>"
        f"<ul class=copies>{''.join(items)}</ul>"
    )


def _proof(partition: Partition, finding_id: str | None, seen: Seen) -> str:
    """The steps of a proof, each with its line of evidence and a way to its moment."""
    finding = next((f for f in partition.findings if f["finding_id"] == finding_id), None)
    if finding is None:
        return ""
    steps = []
    for step in finding["witness"]:
        place = seen.places.get(step["event_id"])
        item = escaped(_capital(step["because"])) + "."
        if place is not None:
            label = place or "the moment in the log"
            item += (
                f' <button type=button class=go data-partition="{partition.index}" '
                f'data-event="{escaped(step["event_id"])}" '
                f'title="Show this moment"><span class=place>{escaped(label)}</span></button>'
            )
        steps.append(f"<li>{item}</li>")
    button = ""
    told = seen.moments.get(finding["finding_id"])
    if told is not None:
        button = (
            f'<p class=actions><button type=button class="go primary" '
            f'data-partition="{partition.index}" '
            f'data-event="{escaped(told)}">Show the moment</button> '
            f"<span class=id>finding {escaped(finding_id)}</span></p>"
        )
    return f"<p class=lead>Proof</p><ol class=proof>{''.join(steps)}</ol>{button}"


def _divergence(partitions: list[Partition], rows: list[dict[str, Any]], seen: Seen) -> _Article:
    """Two replicas that keep different records, in one partition or in many."""
    a, b = rows[0]["replicas"]
    count = sum(row["end_offset"] - row["first_offset"] for row in rows)
    where = offset_range(rows[0]["first_offset"], rows[0]["end_offset"])
    alone = len(rows) == 1
    label = partitions[0].label if alone else names([p.state for p in partitions])
    at = f"at {where} " if alone else f"in {len(rows):,} places "
    body = (
        f"<p>Replicas {a} and {b} of <b>{escaped(label)}</b> hold different records "
        f"{at}({_records(count)}). Both keep their own: no truncation that Kafka will make "
        "by itself mends it, and which records a consumer sees depends on which leads. "
        "Compare the two copies before either is deleted.</p>"
    )
    if alone:
        body += _proof(partitions[0], rows[0]["finding_id"], seen)
    else:
        each = "".join(
            f"<li><p>{escaped(p.label)}, "
            f"{offset_range(row['first_offset'], row['end_offset'])}</p>"
            f"{_proof(p, row['finding_id'], seen)}</li>"
            for p, row in zip(partitions[:MOST_FOLDED], rows, strict=False)
        )
        left = len(rows) - MOST_FOLDED
        each += f"<li>and {left:,} more, in their partitions below</li>" if left > 0 else ""
        body += (
            f"<details class=each><summary>{len(rows):,} places, each with its proof</summary>"
            f"<ul>{each}</ul></details>"
        )
    head = name_of(_in_partitions(partitions)) + (f", {where}" if alone else "")
    return _Article("bad", f"{head}: replicas {a} and {b} diverged", ["diverged", "settled"], body)


def _violation(partition: Partition, verdict: dict[str, Any], seen: Seen) -> _Article:
    name = INVARIANT_SENTENCES.get(verdict["invariant"], verdict["invariant"])
    body = f"<p>In <b>{escaped(partition.label)}</b>: {escaped(verdict['reason'])}.</p>"
    for finding_id in verdict["finding_ids"][:3]:
        body += _proof(partition, finding_id, seen)
    title = f"{name_of(partition.label)}: “{escaped(name)}” is broken"
    return _Article("bad", title, ["broken promise"], body)


def not_known(answer: dict[str, Any]) -> str:
    """Which promises could not be decided, for how many partitions, and what would decide them."""
    groups: dict[tuple[str, tuple[str, ...]], list[dict[str, Any]]] = {}
    for verdict in answer["verdicts"]:
        if is_open(verdict):
            key = (verdict["invariant"], tuple(verdict["settled_by"]))
            groups.setdefault(key, []).append(verdict)
    if not groups:
        return (
            "<section id=unknown><h2>What is not known</h2><p>Nothing: every promise was "
            "decided for every partition.</p></section>"
        )
    order = list(INVARIANT_SENTENCES)
    rows = []
    for (invariant, settled_by), same in sorted(
        groups.items(),
        key=lambda kv: (order.index(kv[0][0]) if kv[0][0] in order else 99, -len(kv[1]), kv[0][1]),
    )[:40]:
        first = same[0]
        count = len(same)
        some = f"{first['topic']}-{first['partition']}" if count == 1 else f"{count:,} partitions"
        settle = "; ".join(settled_by) or "nothing that can still be collected"
        rows.append(
            f"<li><h3>{escaped(INVARIANT_SENTENCES.get(invariant, invariant))}? "
            f"<span class=where>{escaped(some)}</span></h3>"
            f"<p>Not decided: {escaped(why_open(first))}"
            f"{' (in the first of them)' if len({why_open(v) for v in same}) > 1 else ''}.<br>"
            f"<span class=settle>Would settle it: {escaped(settle)}.</span></p>"
            f"{_two_histories(first)}</li>"
        )
    return (
        f"<section id=unknown><h2>What is not known</h2><ul class=unknowns>{''.join(rows)}</ul>"
        "</section>"
    )


def _two_histories(verdict: dict[str, Any]) -> str:
    """The two histories behind an UNKNOWN, side by side, leader epoch by leader epoch."""
    told = verdict.get("histories")
    if not told:
        return ""
    heads = "".join(f"<th scope=col>{side}</th>" for side in sides(verdict))
    rows = []
    for number in epochs_of(told):
        cells = "".join(
            "<td>"
            + ("<br>".join(escaped(t["words"]) for t in side if t["leader_epoch"] == number) or "–")
            + "</td>"
            for side in (told["kept"], told["broken"])
        )
        part = told["part_at"]
        parts = " class=part" if part and part["leader_epoch"] == number else ""
        when = "after the evidence ends" if number is None else f"epoch {number}"
        rows.append(f"<tr{parts}><th scope=row>{when}</th>{cells}</tr>")
    return (
        "<table class=histories><caption>Two histories fit the evidence; the marked row is where "
        f"they part first.</caption><thead><tr><th scope=col>Leader epoch</th>{heads}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table>"
    )


def read_from(
    answer: dict[str, Any], left_out: list[str], root: str, span: tuple[int, int] | None
) -> str:
    """What was read, what could not be, and what this page leaves out."""
    counts = answer["input"]
    files = counts["files"]
    gave = "There were" if files is None else f"{files:,} files were read and gave"
    old = counts["superseded"]
    superseded = f" ({old:,} superseded by a higher generation)" if old else ""
    sentences = [
        f"{gave} {counts['events']:,} events: "
        f"{counts['applied']:,} counted, {counts['duplicates']:,} were duplicates{superseded}, "
        f"{counts['quarantined']:,} quarantined, {counts['held']:,} held back behind a gap."
    ]
    if span is not None:
        sentences.append(
            f"The first is of {moment(span[0])}, the last of {moment(span[1])} "
            f"{clock_words(answer)}."
        )
    parts = [f"<p>{escaped(' '.join(sentences))}</p>"]
    if root:
        parts.append(
            f"<p>Files are named from this folder on: <span class=place>{escaped(root)}</span></p>"
        )
    unreadable = counts["unreadable"]
    if unreadable:
        rows = "".join(
            f"<li><span class=place>{escaped(u['path'])}</span> ({escaped(u['where'])}): "
            f"{escaped(u['reason'])}</li>"
            for u in unreadable[:MOST_UNREADABLE]
        )
        more = len(unreadable) - MOST_UNREADABLE
        rows += f"<li>and {more:,} more</li>" if more > 0 else ""
        parts.append(f"<p class=lead>Could not be read</p><ul>{rows}</ul>")
    if left_out:
        rows = "".join(f"<li>{escaped(t)}</li>" for t in left_out)
        parts.append(
            "<p class=lead>What this page leaves out</p>"
            f"<ul id=left-out>{rows}</ul><p>The whole answer: "
            "<code>replication-analyzer diagnose PATH --format json</code>. One topic "
            "in full: <code>--topic NAME --report FILE.html</code>.</p>"
        )
    return f"<section id=evidence><h2>The evidence</h2>{''.join(parts)}</section>"
