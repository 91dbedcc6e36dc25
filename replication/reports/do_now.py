"""The first lines of an answer for whoever was woken for it: what to do before anything else."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from replication.reports.danger_words import alike, happens, ranges
from replication.reports.loss_words import badness, keep_safe
from replication.reports.natural import natural
from replication.reports.removed_words import copy_first, folders_at_risk, of_deleted_topics
from replication.reports.safe_text import escaped
from replication.reports.vocabulary import name, runs_of_offsets

# What a loss is worth looking at for: it is not back, and not merely in danger.
GONE = ("lost", "recoverable", "undetermined")
# What an inventory calls a dump of events.
DUMP = "event dump"
# So many clients are named.
MOST_ASKED = 3


def sends_to_decide(answer: dict[str, Any]) -> bool:
    """Whether something is lost, different between replicas, or without a leader."""
    lost = any(x["status"] in GONE for x in answer["losses"])
    return bool(lost or answer["divergences"] or leaderless_in(answer))


def leaderless_in(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """The partitions that a leader has to be chosen for: of those whose elections are known, where
    none is recorded as the leader, and whoever led last may have stopped, or the leader has."""
    return [
        p
        for p in answer["partitions"]
        if (
            has_stopped(p, p["leader"])
            if p["leader"] is not None
            else p["elections"] and not _leads_still(p)
        )
    ]


def has_stopped(partition: dict[str, Any], broker: int) -> bool:
    """Whether a broker is known to have stopped, by its lines or its directory."""
    return any(
        r["replica"] == broker and r["stopped"] is True for r in partition.get("replicas", ())
    )


def _leads_still(partition: dict[str, Any]) -> bool:
    """Whether, where no record of the controller is here, the last leader was seen running and
    nothing of it shows its end."""
    if partition["isr"] is not None:
        return False
    last = partition["elections"][-1]
    running = {r["replica"] for r in partition["replicas"] if r["stopped"] is False}
    return last["leader"] in running


def do_now(answer: dict[str, Any]) -> list[str]:
    """At most six lines: what not to restart, what a start would delete, what is one failure away,
    the commands that show the lost records where they still are and that take those of a deleted
    topic, and where the plan is. None where nothing is lost, in danger, deleted with its topic,
    different between replicas or without a leader."""
    lost = sorted((x for x in answer["losses"] if x["status"] in GONE), key=badness)
    dangers = [d for d in answer.get("at_risk", ()) if not d["over"]]
    leaderless = leaderless_in(answer)
    decide = sends_to_decide(answer)
    removed = answer.get("removed", ())
    gone = [r for same in of_deleted_topics(removed) for r in same if r["copies"]]
    if not (decide or dangers or gone):
        return []
    lines = []
    kept = keep_safe(answer["losses"])
    if kept:
        lines.append(f"Restart nothing before it is copied: {kept[0]}{_more(kept)}")
    elif leaderless:
        why = "; ".join(_why(leaderless))
        lines.append(f"Start no broker before you have seen the plan: {why}.")
    lines += copy_first(folders_at_risk(removed))
    if dangers:
        groups = alike(dangers)
        first = groups[0][0]
        at = runs_of_offsets(ranges(groups[0]))
        how = _how(answer, first)
        lines.append(f"One failure away: {name(first)} {at}, if {how}{_more(groups, 'danger')}.")
    if lost:
        # Of what is lost for good nobody looks for copies.
        kept_somewhere = [x for x in lost if x["surviving_copies"] or x["status"] != "lost"]
        first = (kept_somewhere or lost)[0]
        owned = [d for d in answer.get("loss_details", ()) if d.get("by_client")]
        what = "Which copies still have it" if kept_somewhere else "Whose it was, to send it again"
        how = f"replication-analyzer trace PATH --offset {name(first)}:{first['first_offset']}"
        if owned and not kept_somewhere:
            how = _whose(lost, owned)
        elif holds_no_record(answer):
            how = "call `trace` with the evidence that the events came from: events hold no records"
        lines.append(f"{what}: {how}")
    if gone:
        topics = ", ".join(dict.fromkeys(r["topic"] for r in gone))
        how = "replication-analyzer recover PATH --out FOLDER --deleted-topics"
        lines.append(f"To take the records of the deleted topic {topics}: {how}")
    if decide:
        what = "The plan, whom to start first" if leaderless else "Whether another is to lead"
        lines.append(f"{what}: replication-analyzer decide PATH")
    return lines


def holds_no_record(answer: dict[str, Any]) -> bool:
    """Whether all that was handed over are dumps of events, or tables made of events."""
    given = answer.get("inventory", {"files": [{"kind": DUMP}]})
    return not given.get("brokers") and {f["kind"] for f in given.get("files", ())} == {DUMP}


def _whose(lost: list[dict[str, Any]], named: list[dict[str, Any]]) -> str:
    """Where the keys of lost records are, or whom to ask. named: details that name clients."""
    if any(d["first_keys"] for d in named):
        return "replication-analyzer recover PATH --out FOLDER (lost_records_keys.jsonl)"
    ids = {d["finding_id"] for d in named}
    rows = [x for x in lost if x["finding_id"] in ids]
    times = [x[at] for x in rows for at in ("acknowledged_from", "acknowledged_until")]
    return no_keys([one["client"] for d in named for one in d["by_client"]], times)


def no_keys(clients: Iterable[str], times: Iterable[str | None]) -> str:
    """Whom to ask for lost records of which no key is known. times: when clients got answers."""
    asked = sorted(set(clients), key=natural)
    who = ", ".join(asked[:MOST_ASKED]) + _more(asked[MOST_ASKED - 1 :])
    told = sorted(time for time in times if time is not None)
    when = f" from {told[0]} to {told[-1]}" if told else ""
    return (
        f"the acknowledgement log names no keys; ask client{'s' * (len(asked) > 1)} {who} "
        f"for what was sent and acknowledged{when}"
    )


def _how(answer: dict[str, Any], danger: dict[str, Any]) -> str:
    """What would have to happen, as far as one line may say it."""
    if not danger["failures"]:
        return "one more failure"
    same = ("cluster_id", "topic", "topic_id", "partition")
    state = next(
        (p for p in answer["partitions"] if all(p.get(n) == danger.get(n) for n in same)), None
    )
    first: str = danger["failures"][0]
    return (
        first
        if state is None or "replicas" not in state
        else happens({**danger, "failures": [first]}, state, "")
    )


def do_now_text(answer: dict[str, Any]) -> list[str]:
    """The block of `diagnose --format text`."""
    lines = do_now(answer)
    return ["Do now", *(f"  {line}" for line in lines), ""] if lines else []


def do_now_html(answer: dict[str, Any]) -> str:
    """The first section of the page."""
    lines = do_now(answer)
    if not lines:
        return ""
    items = "".join(f"<li>{escaped(line)}</li>" for line in lines)
    return f'<aside class="safe" id="do-now"><h2>Do now</h2><ul>{items}</ul></aside>'


def _why(leaderless: list[dict[str, Any]]) -> Iterator[str]:
    """Why a leader has to be chosen, each reason with the first partition that has it."""
    of: dict[str, list[dict[str, Any]]] = {}
    for p in leaderless:
        # An empty ISR is recorded: then there is none. Else it may be that none is told.
        known = "no leader of {} is known" if p["leader"] is None else "the leader of {} is down"
        of.setdefault("{} has no leader" if p["isr"] == [] else known, []).append(p)
    for words, rows in of.items():
        yield words.format(f"{name(rows[0])}{_more(rows)}")


def _more(rows: Sequence[object], what: str = "") -> str:
    left = len(rows) - 1
    of = f" {what}{'s' * (left > 1)}" if what else ""
    return f" (and {left} more{of})" if left > 0 else ""
