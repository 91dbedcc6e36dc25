"""The answer of `decide` for a person who was woken for it: what to do now, then why, then how."""

from collections.abc import Iterator, Sequence
from typing import Any

from replication.decisions.first_words import (
    PROMISED,
    TIERS,
    cut_while_waiting,
    do_now,
    promised,
    some,
)
from replication.decisions.ranges import overlap
from replication.decisions.step_words import brokers, plan_words, step_words
from replication.protocol.histories.assumptions import ASSUMPTIONS
from replication.reports.inventory_words import counted
from replication.reports.natural import names
from replication.reports.removed_words import copy_first
from replication.reports.vocabulary import name, runs_of_offsets

# What is lost in every history, and in some.
KINDS = {"surely": "loses", "perhaps": "may lose"}
OCCASIONS = {
    "no_leader": "nobody leads",
    "leader_is_down": "its leader is down",
    "leader_not_known": "nothing tells which replica leads",
    "leader_lacks_records": "its leader lacks records that another replica has",
}
OPEN = {
    "histories_differ": "Several histories fit the evidence, and they differ in who has what.",
    "too_many_histories": "More histories fit the evidence than are followed.",
    "no_history_fits": "No history that the rules of the release allow explains the evidence: "
    "something in it is misread, or is of another cluster.",
}
COSTS = {
    "promised": "it loses records that were promised and that another replica has",
    "not_known": "it may lose records that were promised and that another replica has",
    "nothing": "it loses nothing{more} that was promised",
    "only_unpromised": "it loses nothing{more} that Kafka promised to keep, but records that were "
    "answered for at acks=1",
}


def text(answer: dict[str, Any], paths: Sequence[object], unseen: Sequence[str] = ()) -> str:
    """The answer of `decide --format text`. unseen: what is not known of losses without a trace."""
    told = _text(answer, paths)
    return "".join([told, *(f"{each}\n" for each in unseen)])


def _text(answer: dict[str, Any], paths: Sequence[object]) -> str:
    rows = answer["partitions"]
    looked_at = counted(answer["partitions_looked_at"], "partition")
    unknown = _not_known(answer["partitions_not_known"])
    first = copy_first(answer["copy_first"])
    if not rows and not unknown:
        unknown = [
            f"Nothing to decide: each leader of {looked_at} is there, and no other replica has a "
            "promised record that it lacks."
        ]
    if not rows:
        return "\n".join([*first, *unknown]) + "\n"
    lines = ["Do now", *(f"  {line}" for line in [*first, *do_now(answer, paths)]), ""]
    for order in answer["start_orders"]:
        lines += [*_start_order(order), ""]
    alike = [row for row in rows if _is_all_one(row)]
    for row in rows:
        if row not in alike or len(rows) == 1:
            lines += [*partition_lines(row), ""]
    if alike and len(rows) > 1:
        lines += [f"ANY ORDER  {names(alike)}: whichever broker leads, nothing promised is lost."]
        granted = {each: None for row in alike for each in row["assuming"]}
        lines += [*_granted({"assuming": granted}), ""]
    return "\n".join([*lines, *unknown]).rstrip() + "\n"


def _not_known(rows: list[dict[str, Any]]) -> list[str]:
    """Of which partitions nothing tells whether their leaders lack anything, and what would."""
    if not rows:
        return []
    unseen = sorted({n for row in rows for n in row["replicas_not_seen"]})
    lines = [
        f"CANNOT TELL of {counted(len(rows), 'partition')} whether another replica has a promised "
        f"record that the leader lacks: {names(rows)}.",
        "  Hand over, to learn it:",
    ]
    if unseen:
        lines.append(f"  the log directories of {brokers(unseen)} (digest.py makes them small)")
    if not all(row["replicas_known"] for row in rows):
        lines.append(
            "  the output of kafka-topics --describe: nothing tells which the replicas are"
        )
    return lines


def _start_order(order: dict[str, Any]) -> Iterator[str]:
    """In which order the brokers are to start, over all partitions."""
    cluster = "" if order["cluster_id"] is None else f" of cluster {order['cluster_id']}"
    if order["brokers"] is not None:
        told = ", then ".join(f"broker {n}" for n in order["brokers"])
        yield (
            f"START ORDER{cluster}: {told}; each once the checks of the one before it print what "
            "they must."
        )
        yield "  Before the first: every step of all plans that copies or moves a directory."
        for x in order["early"]:
            yield (
                f"  Of {x['partition']} broker {x['broker']} starts before broker {x['before']}, "
                "its leader: that destroys nothing; make its check once that one leads."
            )
        return
    yield f"START ORDER{cluster}: none keeps every plan."
    for x in order["contradiction"]:
        first, then, by = x["first"], x["then"], some(x["by"])
        yield f"  Broker {first} has to lead {by} before broker {then} starts."
    yield "  Copy the directories of all of them. Then choose which partitions come first: what is"
    yield "  cut in the others comes back from the copies, by `replication-analyzer recover`."


def _taken_to_run(row: dict[str, Any]) -> Iterator[str]:
    """Whose state the plan hangs on where nobody leads, though nothing tells it."""
    up = [c["replica"] for c in row["candidates"] if c["runs"]]
    if up and row["occasion"] != "leader_lacks_records":
        be, run, them = ("is", "it runs", "it") if len(up) == 1 else ("are", "they run", "them")
        yield (
            f"  Nothing tells that {brokers(up)} {be} down, so it is taken that {run}. If not, "
            f"name {them} by --down, too: one that crashed is elected otherwise."
        )


def _is_all_one(row: dict[str, Any]) -> bool:
    """Whether it makes no difference which replica leads, and nothing is lost already."""
    return bool(row["advice"] == "any_order" and not _is_gone_anyway(row))


def _perhaps_gone(row: dict[str, Any]) -> dict[str, list[list[int | None]]]:
    """By tier, what may be lost though the replica that is advised leads, and what no other
    replica would keep."""
    if row["replica"] is None:
        return {}
    chosen = _chosen(row)
    return {
        tier: chosen["lost"][tier]["perhaps"]
        for tier in TIERS
        if not (chosen["costs"][tier]["surely"] or chosen["costs"][tier]["perhaps"])
    }


def _is_gone_anyway(row: dict[str, Any]) -> bool:
    """Whether promised records are lost, or may be, whoever leads."""
    perhaps = _perhaps_gone(row)
    return any(row["lost_under_every_choice"].values()) or any(perhaps.get(t) for t in PROMISED)


def partition_lines(row: dict[str, Any]) -> Iterator[str]:
    """One partition: the advice, the choices with what each loses, the traps, the plan."""
    isr = "not known" if row["isr"] is None else ",".join(map(str, row["isr"])) or "empty"
    last = "" if row["last_leader"] is None else f"; broker {row['last_leader']} led last"
    yield f"{name(row)}: {OCCASIONS[row['occasion']]} (ISR {isr}{last})"
    if row["away"]:
        yield f"  Not waited for, as you said: {brokers(row['away'])}."
    yield from _advice(row)
    if row.get("unexplained") and row["undecided_because"] is None:
        yield (
            f"  Of {runs_of_offsets(row['unexplained'])} no history explains the evidence: the "
            "choice rests on the other offsets."
        )
    yield from _lost_anyway(row)
    gone = any(row["lost_under_every_choice"].values())
    yield f"  The choices, and what each loses{' beside what is lost anyway' if gone else ''}:"
    for c in row["candidates"]:
        yield from _candidate(row, c)
    if row["perhaps_running"] and any(
        lost["perhaps"] for c in row["candidates"] for lost in c["lost"].values()
    ):
        told = ",".join(map(str, row["perhaps_running"]))
        yield (
            f"  Nothing tells that {brokers(row['perhaps_running'])} did not run while the "
            "directory was copied: then the copy ends early."
        )
        yield f"  If it was down, call it with --down {told}: less is left open then."
    yield from _taken_to_run(row)
    if any(c["copies"] for c in row["candidates"]):
        yield (
            "  What another copy has comes back from the directories copied before, by "
            "`replication-analyzer recover`."
        )
    by_end = row["newest_epoch_then_longest_log"]
    if by_end is not None and row["safe"] and by_end not in row["safe"]:
        yield (
            f"  The newest leader epoch, then the longest log, would choose broker {by_end}: they "
            "do not tell what was promised."
        )
    for trap in row["traps"]:
        yield f"  TRAP  {trap['text']}"
    yield from plan_words(row)


def _advice(row: dict[str, Any]) -> Iterator[str]:
    n, advice = row["replica"], row["advice"]
    if advice == "show_both":
        told = " and ".join(f"broker {r}" for r in row["rivals"])
        cost = ", ".join(
            f"broker {r} at {counted(promised([row], r), 'offset')}" for r in row["rivals"]
        )
        yield f"  YOURS TO CHOOSE  {told} each lose what was promised and another keeps:"
        yield f"  {cost}. No rule tells whose records matter more. The plan for broker N:"
        yield "  --elect N. What only another has can be produced again from its copy, after the"
        yield "  election: `replication-analyzer recover`."
        return
    if advice == "undecided":
        order = ", ".join(f"broker {r}" for r in row["ranking"])
        yield f"  NOT DECIDED  By the worst that each may cost: {order}. This order is no advice."
        yield from _log_ends(row)
        yield f"  {OPEN[row['undecided_because']]}"
        yield f"  It would be settled by: {'; '.join(row['settled_by'])}."
        first = [*cut_while_waiting(row)]
        yield from (f"  Before you wait, {each}." for _, each in first)
        then = "Then" if first else "Until then"
        yield f"  {then} wait. None of the steps below destroys anything."
        yield from _granted(row)
        return
    gone = _is_gone_anyway(row)
    costs = COSTS[row["costs"]].format(more=" more" if gone else "")
    if advice == "any_order":
        yield f"  ANY ORDER: whichever broker leads, {costs}."
        when = "If nobody leads once they run, since one stays away"
        if row["nobody_leads_without"]:
            when = f"Without {brokers(row['nobody_leads_without'])} nobody leads, whoever starts"
        yield f"    {when}: --elect N has the steps."
        yield from _granted(row)
        return
    verb = {"start": "START", "elect_uncleanly": "ELECT", "keep_leader": "KEEP"}[advice]
    asked = ", as you asked" if row["as_asked"] else ""
    yield f"  {verb} {n}{asked}: {costs}."
    yield from _proof(row)
    yield from _granted(row)
    others = [r for r in row["safe"] if r != n]
    if others:
        told = ", ".join(f"broker {r}" for r in others)
        yield f"  If broker {n} cannot be had: the same holds of {told}."
    elif (
        len(row["candidates"]) > 1
        and not row["as_asked"]
        and not (_chosen(row)["runs"] and _chosen(row)["log_is_here"])
    ):
        yield f"  Waiting for broker {n} is best: every other choice may lose something more."
        yield from (f"  Before you wait, {each}." for _, each in cut_while_waiting(row))


def _log_ends(row: dict[str, Any]) -> Iterator[str]:
    """Where the logs end, as far as was read, if that is not all the same."""
    ends = sorted(row["log_ends"], key=lambda each: -each["log_end_offset"])
    if len({each["log_end_offset"] for each in ends}) < 2:
        return
    told = ", ".join(
        f"broker {each['replica']}'s log "
        + (f"goes to offset {end - 1}" if (end := each["log_end_offset"]) else "is empty")
        for each in ends
    )
    yield f"  By what was read, {told}. Which records these are, and which were promised, is open."


def _chosen(row: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = next(c for c in row["candidates"] if c["replica"] == row["replica"])
    return found


def _proof(row: dict[str, Any]) -> Iterator[str]:
    proof, n = row["proof"], row["replica"]
    if proof is not None:
        members = ", ".join(map(str, proof["isr"]))
        yield (
            f"    Broker {n} was in the last ISR that had min.insync.replicas="
            f"{proof['min_insync_replicas']} members (leader epoch {proof['leader_epoch']}: "
            f"{members}), and nothing tells that it has lost storage since."
        )
    if row["costs"] == "nothing":
        waited_for = " that is waited for" if row["away"] else ""
        yield (
            f"    In no history that fits the evidence does another replica{waited_for} have a "
            "promised record that it lacks."
        )
    if not _chosen(row)["log_is_here"]:
        yield "    Its log is not among the evidence: this holds if its disk comes back whole."


def _granted(row: dict[str, Any]) -> Iterator[str]:
    for each in row["assuming"]:
        a = ASSUMPTIONS[each]
        yield f"    Taking it that {a.sentence} (not needed with: {a.unnecessary_with})."


def _lost_anyway(row: dict[str, Any]) -> Iterator[str]:
    told = _by_tier(row["lost_under_every_choice"])
    if told:
        none = "none of these has them" if row["away"] else "no replica has them any more"
        yield f"  Lost whoever leads, since {none}: {told}."
    perhaps = _perhaps_gone(row)
    if any(perhaps.get(tier) for tier in PROMISED):
        yield (
            f"  Perhaps lost already, whoever leads: {_by_tier(perhaps)}. `diagnose` says what "
            "would tell."
        )
    for x in row["older_copies"]:
        place = f", {x['path']}" if x["path"] else ""
        yield (
            f"  A copy of broker {x['replica']} ({x['kind']}{place}) has "
            f"{runs_of_offsets(x['alone'])}, "
            "which no replica has: `replication-analyzer recover` reads it."
        )
        if x["lost"] is not None:
            lost = "; ".join(_lost_of(x["lost"])) or "loses nothing"
            there = [r for tier in x["lost"].values() for k in KINDS for r in tier[k]]
            meet = overlap(there, x["alone"])
            others = ". At these offsets replicas hold other records by now" if meet else ""
            yield (
                f"    Elected with this copy in the place of its directory, broker {x['replica']} "
                f"{lost}{others}."
            )
        yield from _older_steps(x)


def _older_steps(x: dict[str, Any]) -> Iterator[str]:
    """How to put an older copy back: step by step where that loses nothing promised."""
    if not x["steps"]:
        return
    if any(x["lost"][tier][kind] for tier in PROMISED for kind in KINDS):
        yield "    The steps for that: --format json, older_copies."
        return
    yield "    The steps for that, in place of the plan below (nothing of it was run):"
    for step in x["steps"]:
        yield f"    {step['number']}. {step['words']}"
        yield from step_words(step)


def _candidate(row: dict[str, Any], c: dict[str, Any]) -> Iterator[str]:
    how = {
        True: "is elected cleanly",
        False: "takes an unclean election",
        None: "not known to be in the ISR",
    }[c["clean_election"]]
    if c["elected_by_start"] and not c["clean_election"]:
        how = "is elected by its start alone, uncleanly"
    here = "" if c["log_is_here"] else ", its log is not here"
    up = "not known to be down" if c["runs"] else "is down"
    gone = any(row["lost_under_every_choice"].values())
    nothing = "loses nothing more" if gone else "loses nothing"
    lost = "; ".join(_lost_of(c["costs"] if gone else c["lost"])) or nothing
    yield f"    broker {c['replica']} ({up}, {how}{here}): {lost}"
    for copy in c["copies"]:
        told = [
            f"{runs_of_offsets(copy[kind])} {words}"
            for kind, words in (
                ("cut_by_first_fetch", "until its first fetch"),
                ("kept_and_diverging", "and does not cut that: the logs then differ"),
                ("either", "and may lose that with its first fetch"),
            )
            if copy[kind]
        ]
        yield f"      broker {copy['replica']} still has {'; '.join(told)}"


def _lost_of(by_tier: dict[str, Any]) -> list[str]:
    found = []
    for kind, verb in KINDS.items():
        told = _by_tier({tier: lost[kind] for tier, lost in by_tier.items()})
        found += [f"{verb} {told}"] if told else []
    return found


def _by_tier(ranges_of: dict[str, list[list[int | None]]]) -> str:
    """Ranges, each once with all promises about them: `offset 9 (committed)`."""
    tiers: dict[str, list[str]] = {}
    for tier, ranges in ranges_of.items():
        if ranges:
            tiers.setdefault(runs_of_offsets(ranges), []).append(TIERS[tier])
    return ", ".join(f"{told} ({', '.join(each)})" for told, each in tiers.items())
