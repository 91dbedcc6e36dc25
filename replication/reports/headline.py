"""The first sentence of every answer: what is lost, or what cannot be told and how to find out.

"Nothing lost" is said only where nothing that matters is unknown; "promised" only where the
contract says so; "at least" wherever the count may be too small.
"""

import re
from collections import Counter
from typing import Any

from replication.protocol.histories.assumptions import RECORDS_AS_SEEN
from replication.reports.assumption_words import taking_it_that
from replication.reports.vocabulary import offsets, sides
from replication.reports.without_a_trace import WHAT_TELLS, not_known

# What decides whether something is wrong; what clients saw matters where it was handed over.
DECIDING = ("committed_records_survive", "log_matching")
BY_CLIENTS = ("acknowledged_records_survive", "consumed_records_survive")
MOST_WORDS = 25
_MOST_UNSEEN = 2
_NUMBERS = {2: "two", 3: "three", 4: "four"}
# How many records are in these states, in this order.
STATUSES = {
    "lost": "lost",
    "undetermined": "gone from the leader and perhaps lost",
    "recoverable": "gone from the leader but recoverable",
}
# How an artefact that would settle a question is obtained.
_WAYS = (
    (r"at (DEBUG|TRACE)", "set these loggers so before the next incident; for this one it is too "
     "late"),
    (r"assignment", "kafka-topics --describe --topic NAME"),
    (r"log director(y|ies)", "copy the folders of its log.dirs, at best after a clean stop, or run "
     "digest.py beside the running broker"),
    (r"dump", "kafka-dump-log over every segment of the partition"),
    (r"(broker log|lines|state-change\.log of)", "copy server.log, controller.log and "
     "state-change.log, the rotated ones too, from its folder of logs"),
    (r"acknowledgement", "let producers write down what each was told: topic, partition, offset, "
     "acks and key of every record"),
    (r"consumption", "let consumers write down topic, partition, offset and key of what they got"),
    (r"controller's history|metadata log", "copy __cluster_metadata-0 from a controller; with "
     "ZooKeeper, controller.log and state-change.log of all brokers"),
    (r"print the version|Kafka version|--kafka", "call it with --kafka VERSION, or add a broker "
     "log that begins at a start"),
    (r"checkpoint", "it lies in each of log.dirs"),
    (r"segments|payload", "copy the partition's segments from its log.dirs"),
)  # fmt: skip


def counted(number: int, noun: str) -> str:
    """`1 record`, `3 records`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def how_to_get(artefact: str) -> str | None:
    """How to obtain what `settled_by` names; None where that says it all."""
    return next((way for pattern, way in _WAYS if re.search(pattern, artefact)), None)


def matters(verdict: dict[str, Any]) -> bool:
    """Whether "nothing lost" is too much to say while this verdict is UNKNOWN."""
    if verdict["invariant"] in DECIDING:
        return True
    return verdict["invariant"] in BY_CLIENTS and not verdict["not_supplied"]


def is_open(verdict: dict[str, Any]) -> bool:
    """Whether it is not decided, or is violated and not decided at other offsets."""
    return bool(verdict["verdict"] == "UNKNOWN" or verdict["settled_by"])


def undecided(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """The verdicts that matter and are open somewhere."""
    return [v for v in answer["verdicts"] if is_open(v) and matters(v)]


def partitions_undecided(answer: dict[str, Any]) -> int:
    """In how many partitions something that matters is not decided."""
    return len(_partitions(undecided(answer)))


def why_open(verdict: dict[str, Any]) -> str:
    """Why a verdict is not decided; of one that is violated, where it is not decided besides."""
    told = verdict["histories"]
    if verdict["verdict"] == "UNKNOWN" or told is None:
        return str(verdict["reason"])
    first, end = told["first_offset"], told["end_offset"]
    where = f"from offset {first} on" if end is None else offsets(first, end)
    kept, broken = (side[0].lower() + side[1:] for side in sides(verdict))
    beside = (
        "where a record is lost in both"
        if told.get("lost_in_both")
        else "beside what is shown above"
    )
    return (
        f"{where}, {beside}: two histories fit the evidence; in one {kept}, in the other {broken}"
    )


def headline(answer: dict[str, Any]) -> str:
    """One sentence of at most MOST_WORDS words, without its full stop."""
    return _first_words(answer)[0]


def headline_more(answer: dict[str, Any]) -> list[str]:
    """What of the headline did not fit into it: sentences, without their full stops."""
    return [f"{said[:1].upper()}{said[1:]}" for said in _first_words(answer)[1]]


def _first_words(answer: dict[str, Any]) -> tuple[str, list[str]]:
    open_questions = undecided(answer)
    damaged = _damage(answer)
    if damaged is not None:
        more = partitions_undecided(answer)
        head, clauses, left = damaged
        head, more_left = _fitted(head, "; ", [*clauses, *([_cannot(more)] if more else [])])
        return f"{head[:1].upper()}{head[1:]}", [*left, *more_left]
    partitions = _all_partitions(answer)
    if open_questions:
        which = partitions_undecided(answer)
        head = f"CANNOT TELL whether anything is lost in {which:,} of {partitions}"
        return _with_why(head, _cut_below(answer, open_questions), open_questions[0]), []
    if not answer["partitions"]:
        return _without_partition(answer), []
    if vanished := not_known(answer):
        return _as_seen(answer, vanished)
    granted = taking_it_that([v for v in answer["verdicts"] if matters(v)])
    unheard = any(v["invariant"] == BY_CLIENTS[0] and v["not_supplied"] for v in answer["verdicts"])
    unseen = _unseen(answer)
    if unheard:
        head = f"No committed record lost, nothing diverged in {partitions}{unseen}"
        rest = (
            "; whether records acknowledged with acks=1 were lost cannot be told "
            "without an acknowledgement log"
        )
    else:
        head, rest = f"Nothing lost, nothing diverged in {partitions}{unseen}", ""
    whole = f"{head}, {granted}{rest}" if granted else f"{head}{rest}"
    if _fits(whole):
        return whole, []
    besides = [granted] if granted else []
    return (f"{head}{rest}", besides) if _fits(f"{head}{rest}") else (head, [rest[2:], *besides])


def _as_seen(answer: dict[str, Any], vanished: str) -> tuple[str, list[str]]:
    """Where nothing shows a loss, and nothing would show one that left no trace: what was seen
    comes first. vanished: that this is not known."""
    partitions = counted(len(answer["partitions"]), "partition")
    agree = "its copies agree" if len(answer["partitions"]) == 1 else "their copies agree"
    seen = f": {agree}" if any(_has_copies(p) for p in answer["partitions"]) else ""
    unseen = _unseen(answer)
    others = taking_it_that(
        [v for v in answer["verdicts"] if matters(v)], beside=frozenset((RECORDS_AS_SEEN,))
    )
    head = f"No loss, no divergence seen in {partitions}"
    more = [each for each in (WHAT_TELLS, others) if each]
    whole = f"{head}{unseen or seen}; {vanished}"
    if _fits(whole):
        return whole, more
    return f"{head}; {vanished}", [unseen.partition(": ")[2], *more]


def _has_copies(partition: dict[str, Any]) -> bool:
    """Whether records of two replicas at least are here to be compared."""
    return sum(bool(r["spans"]) for r in partition.get("replicas", ())) > 1


def _unseen(answer: dict[str, Any]) -> str:
    """Of which brokers that the partitions name nothing was handed over, neither log nor directory;
    or that a single broker was seen and none named besides. Of events alone nothing tells that."""
    seen = {b["broker"] for b in answer.get("inventory", {}).get("brokers", ())}
    named: set[int] = set()
    for p in answer["partitions"] if seen else ():
        named |= {*(p["assigned_replicas"] or ()), *(p["isr"] or ())}
        named |= {e["leader"] for e in p["elections"] if e["leader"] is not None}
        seen |= {r["replica"] for r in p["replicas"] if r["spans"]}
    left = [str(n) for n in sorted(named - seen) if n >= 0]
    alone = [p for p in answer["partitions"] if p["assigned_replicas"] is None] if seen else []
    if not left and any(len(p["replicas"]) == 1 for p in alone):
        return " as far as one broker shows: nothing tells which others have replicas"
    if not left:
        return ""
    more = f" and {len(left) - _MOST_UNSEEN} more" if len(left) > _MOST_UNSEEN else ""
    those = f"broker{'' if len(left) == 1 else 's'} {', '.join(left[:_MOST_UNSEEN])}{more}"
    return f" as far as is seen: nothing of {those} was handed over"


def _fits(text: str) -> bool:
    return len(text.split()) <= MOST_WORDS


def _fitted(head: str, between: str, clauses: list[str], end: str = "") -> tuple[str, list[str]]:
    """The head with those of the clauses that fit behind it, and the others."""
    left = []
    for clause in clauses:
        longer = f"{head}{between}{clause}"
        if _fits(longer + end):
            head = longer
        else:
            left.append(clause)
    return head, left


def _with_why(head: str, cut: str, first: dict[str, Any]) -> str:
    """With as much of why as fits; "Not decided" below has all of it."""
    clauses = [cut] if cut else f"{_name(first)}: {first['reason']}".split("; ")
    while clauses and not _fits(f"{head} ({'; '.join(clauses)})"):
        clauses.pop()
    return f"{head} ({'; '.join(clauses)})" if clauses else head


def _cut_below(answer: dict[str, Any], open_questions: list[dict[str, Any]]) -> str:
    """The first cut below a high watermark in an undecided partition: what is gone by it had been
    committed."""
    undecided_ones = {(v["topic"], v["partition"]) for v in open_questions}
    cuts = [
        row
        for row in answer.get("observations", ())
        if row["kind"] == "truncated_below_high_watermark"
        and (row["topic"], row["partition"]) in undecided_ones
    ]
    if not cuts:
        return ""
    row = max(cuts, key=lambda row: row["fields"]["high_watermark"] - row["fields"]["to_offset"])
    to, high_watermark = row["fields"]["to_offset"], row["fields"]["high_watermark"]
    who = "a broker" if row["broker"] is None else f"broker {row['broker']}"
    return f"{_name(row)}: {who} cut its log at {to}, below its high watermark {high_watermark}"


# What a broker prints as it fails that names no partition.
_FAILURES = {
    "all_log_dirs_failed": "stopped because all its log directories failed",
    "log_dir_failed": "lost a log directory",
    "disk_error": "got an error of its disk",
    "quorum_unreachable": "stopped because it could not reach the controllers",
    "process_failed": "failed",
}


def _without_partition(answer: dict[str, Any]) -> str:
    """Of evidence that names no partition: what happened, where a line tells."""
    kinds = {row["kind"]: row["broker"] for row in reversed(answer.get("observations", []))}
    kind = next((kind for kind in _FAILURES if kind in kinds), None)
    if kind is None:
        return "CANNOT TELL: no partition is in this evidence"
    who = "A broker" if kinds[kind] is None else f"Broker {kinds[kind]}"
    return f"{who} {_FAILURES[kind]}; CANNOT TELL of which partitions: no line names one"


def _cannot(partitions: int) -> str:
    return f"cannot tell everything of {counted(partitions, 'partition')}"


def _partitions(rows: list[dict[str, Any]]) -> set[tuple[Any, ...]]:
    """The partitions of rows, each once in whatever life of its topic."""
    return {(r["cluster_id"], r["topic"], r["partition"]) for r in rows}


def _all_partitions(answer: dict[str, Any]) -> str:
    """How many partitions; lives of a topic that was created again are told apart."""
    lives = Counter((r["cluster_id"], r["topic"], r["partition"]) for r in answer["partitions"])
    again = [number for number in lives.values() if number > 1]
    told = counted(len(lives), "partition")
    if not again:
        return told
    if len(lives) == 1:
        return f"{told}, in {_NUMBERS.get(again[0], again[0])} lives"
    return f"{told}, {len(again):,} of them in several lives"


def _name(row: dict[str, Any]) -> str:
    return f"{row['topic']}-{row['partition']}"


def _damage(answer: dict[str, Any]) -> tuple[str, list[str], list[str]] | None:
    """What is shown to be wrong, what is said of it besides, and what of it did not fit; None where
    nothing is."""
    losses = answer["losses"]
    by_status = {s: [x for x in losses if x["status"] == s] for s in STATUSES}
    parts = [f"{_count(answer, rows)} {STATUSES[s]}" for s, rows in by_status.items() if rows]
    damaged = [row for rows in by_status.values() for row in rows]
    promised = _promised(damaged)
    settled = [d for d in answer["divergences"] if d["status"] == "settled"]
    if settled:
        parts.append(f"replicas diverged in {counted(len(settled), 'place')}")
        damaged = damaged + settled
    if not parts:
        violated = [v for v in answer["verdicts"] if v["verdict"] == "VIOLATED"]
        if not violated:
            return None
        back = [x for x in losses if x["status"] == "recovered"]
        damaged = back or violated
        kinds = counted(len(violated), "invariant")
        parts.append(
            f"{_count(answer, back)} missing for a while, back now" if back else f"{kinds} violated"
        )
    found = _partitions(damaged)
    whole = _all_partitions(answer)
    where = f" in {_name(damaged[0]) if len(found) == 1 else f'{len(found):,} of {whole}'}"
    head, left = _fitted(parts[0], ", ", parts[1:], where)
    return f"{head}{where}", [promised] if promised else [], [f"also {part}" for part in left]


def _count(answer: dict[str, Any], rows: list[dict[str, Any]]) -> str:
    """How many records: at least so many, where a bound is open or a partition undecided."""
    number = sum(x["records"] or 0 for x in rows)
    bounded = any(x["end_offset_bound"] == "at_least" or x["records"] is None for x in rows)
    least = "at least " if bounded or undecided(answer) else ""
    return f"{least}{counted(number, 'record')}"


def _promised(rows: list[dict[str, Any]]) -> str:
    """Whether Kafka had promised to keep them, as far as the contract says."""
    by_contract = {
        c: sum(r["records"] or 0 for r in rows if r["contract"] == c)
        for c in ("broken", "not_promised", "unknown")
    }
    named = [c for c, number in by_contract.items() if number]
    them = "it" if sum(by_contract.values()) == 1 else "them"
    if named == ["broken"]:
        return f"Kafka had promised to keep {them}"
    if named == ["not_promised"]:
        return f"these settings did not promise to keep {them}"
    if len(named) < 2:
        return ""
    words = {"broken": "promised", "not_promised": "not promised", "unknown": "perhaps promised"}
    return ", ".join(f"{by_contract[c]:,} {words[c]}" for c in named)


def what_settles(answer: dict[str, Any], most: int = 8) -> list[str]:
    """A line for each artefact that would settle what matters, the most telling first."""
    wanted: dict[str, int] = {}
    for verdict in undecided(answer):
        for artefact in verdict["settled_by"]:
            wanted[artefact] = wanted.get(artefact, 0) + 1
    ordered = sorted(wanted.items(), key=lambda kv: (-kv[1], kv[0]))
    lines = []
    for artefact, number in ordered[:most]:
        way = how_to_get(artefact)
        how = f"; to get it: {way}" if way else ""
        lines.append(f"{artefact} ({counted(number, 'verdict')}){how}")
    if len(ordered) > most:
        lines.append(f"and {len(ordered) - most} more artefacts (--format json has all)")
    return lines
