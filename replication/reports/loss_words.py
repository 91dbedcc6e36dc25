"""Losses in paragraphs, one for each event: what went, why, what allowed it, whom it concerns."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from replication.protocol.ground.model import is_within, moment
from replication.reports.headline import counted
from replication.reports.inventory_words import zone_is_known
from replication.reports.natural import names, natural, of_partition
from replication.reports.vocabulary import (
    CAUSE_WORDS,
    CONTRACT_WORDS,
    STATUS_WORDS,
    TIER_WORDS,
    name,
    offsets,
)

# Why an acknowledgement promised nothing, by the setting that allowed the loss.
_NOT_PROMISED_SINCE = {
    "acks": "acks=1 promises no more than the leader's own log",
    "unclean.leader.election.enable": "an unclean election was allowed, and takes whoever is there "
    "for leader, whatever it lacks",
    "min.insync.replicas": "acks=all, too, promises nothing where as many members of the ISR as "
    "min.insync.replicas lose their storage",
}
NOTHING_TO_READ = "no record, but a transaction marker or a batch that compaction emptied"
MOST_RANGES = 20
MOST_NAMED = 5
# Elections of one failure are this close together, in milliseconds.
ONE_EVENT_MS = 60_000
NO_DETAIL: dict[str, Any] = {
    "election": None, "allowed_by": [], "copies": [], "clients": [], "first_keys": [],
    "by_client": [],
}  # fmt: skip


def badness(loss: dict[str, Any]) -> tuple[Any, ...]:
    """Sort key of the loss ledger's rows: the strongest promise first, then the worst status."""
    status = ("lost", "undetermined", "recoverable", "at_risk", "recovered")
    tier = ("consumed", "acknowledged_by_isr", "committed", "acknowledged_by_leader")
    return (
        tier.index(loss["tier"]) if loss["tier"] in tier else 9,
        status.index(loss["status"]),
        natural(loss["topic"]),
        loss["partition"],
        loss["first_offset"],
    )


def name_clients(
    answer: dict[str, Any],
    acknowledgements: Iterable[Any],
    *,
    by_time: bool = True,
    cluster_of: Callable[[str], str | None] | None = None,
) -> None:
    """Puts into each of answer's loss_details whose records they were, how many of each client with
    which acks, and their first keys.

    acknowledgements: with topic, partition, offset, status, client, acks, payload_id and ts. Where
    several name one offset, the one is meant that was written when the ledger says that producers
    were told, then the one from before the election, and of several such the one from since the
    lost records' leader epoch began; else none is named. by_time:
    the election's time may be held against the clients' clocks. cluster_of: of which cluster an
    acknowledgement log is, by its path, where several are judged.
    """
    rows = {x["finding_id"]: x for x in answer["losses"]}
    wanted: dict[tuple[str | None, str, int], list[tuple[int, int, dict[str, Any]]]] = {}
    for detail in answer["loss_details"]:
        row = rows[detail["finding_id"]]
        of_clients = row["tier"] in ("acknowledged_by_isr", "acknowledged_by_leader")
        if of_clients or row["acknowledged_from"]:
            cluster = row["cluster_id"] or "" if cluster_of else None
            place = wanted.setdefault((cluster, row["topic"], row["partition"]), [])
            place.append((row["first_offset"], row["end_offset"], detail))
    named: dict[tuple[str, str, int, int, int], tuple[dict[str, Any], list[Any]]] = {}
    for one in acknowledgements if wanted else ():
        cluster = cluster_of(one.path) if cluster_of else None
        ranges = wanted.get((cluster, one.topic, one.partition), ())
        if one.status != "acked" or one.offset is None:
            continue
        for number, (first, end, detail) in enumerate(ranges):
            if first <= one.offset < end:
                key = (cluster or "", one.topic, one.partition, one.offset, number)
                named.setdefault(key, (detail, []))[1].append(one)
    number_of: dict[str, Counter[tuple[str, str]]] = {}
    for _, (detail, found) in sorted(named.items(), key=lambda kv: kv[0]):
        at = (detail["election"] or {}).get("at")
        row = rows[detail["finding_id"]]
        told = row["acknowledged_from"], row["acknowledged_until"]
        if None not in told:
            found = [a for a in found if is_within(a.ts, told)]
        if len(found) > 1 and at is not None and by_time:
            found = [a for a in found if a.ts is not None and a.ts < at]
            began = _began(answer, row) if len(found) > 1 else None
            found = [a for a in found if began is None or (moment(a.ts) or "") >= began]
        if len(found) == 1:
            if found[0].client not in detail["clients"]:
                detail["clients"].append(found[0].client)
            if found[0].payload_id is not None and len(detail["first_keys"]) < MOST_NAMED:
                detail["first_keys"].append(found[0].payload_id)
            number_of.setdefault(detail["finding_id"], Counter())[
                found[0].client, found[0].acks
            ] += 1
    for detail in answer["loss_details"]:
        counts = number_of.get(detail["finding_id"], Counter())
        detail["by_client"] = [
            {"client": client, "acks": acks, "records": records}
            for (client, acks), records in sorted(counts.items(), key=lambda kv: (-kv[1], kv[0]))
        ]


def _began(answer: dict[str, Any], row: dict[str, Any]) -> str | None:
    """When the leader epoch of the lost records began, in words; None where nobody saw it."""
    same = ("cluster_id", "topic", "topic_id", "partition")
    return next(
        (
            e["observed_at"]
            for p in answer["partitions"]
            if all(p.get(name) == row.get(name) for name in same)
            for e in p.get("elections", ())
            if e["leader_epoch"] == row["leader_epoch"]
        ),
        None,
    )


def loss_text(answer: dict[str, Any]) -> list[str]:
    """All losses, those of one event together, the worst event first."""
    details = details_of(answer)
    lines: list[str] = []
    several = len({p["cluster_id"] for p in answer["partitions"]}) > 1
    for rows in events_of(answer["losses"], details):
        told = _paragraph(rows, [details.get(r["finding_id"], NO_DETAIL) for r in rows])
        if several:
            told.insert(-1, f"  Cluster: {rows[0]['cluster_id'] or 'of unknown id'}.")
        lines += [*told, ""]
    return lines


def details_of(answer: dict[str, Any]) -> dict[str | None, dict[str, Any]]:
    """The answer's loss_details by finding_id; a moment of no known zone is none of UTC."""
    known = zone_is_known(answer)
    return {
        d["finding_id"]: d if known else {**d, "election": _without_zone(d["election"])}
        for d in answer.get("loss_details", [])
    }


def _without_zone(election: dict[str, Any] | None) -> dict[str, Any] | None:
    if election is None or not election["observed_at"]:
        return election
    at = election["observed_at"][:19].replace("T", " ")
    return {**election, "observed_at": f"{at}, local time, zone unknown"}


def keep_safe_text(answer: dict[str, Any]) -> list[str]:
    """What must not be done now: whatever would destroy the copies that survive."""
    items = keep_safe(answer["losses"])
    if not items:
        return []
    lines = ["Before you start or restart anything:", *(f"  {i}" for i in items[:MOST_NAMED])]
    left = len(items) - MOST_NAMED
    return [*lines, *([f"  ... and {left} more (--format json has all)"] if left > 0 else []), ""]


def keep_safe(losses: list[dict[str, Any]]) -> list[str]:
    """One sentence for each broker and what would destroy what it has; the worst loss first."""
    held: dict[tuple[int, str], list[dict[str, Any]]] = {}
    for loss in sorted(losses, key=badness):
        for copy in loss["surviving_copies"] if loss["status"] != "recovered" else ():
            if copy["destroyed_when"]:
                held.setdefault((copy["replica"], copy["destroyed_when"]), []).append(loss)
    sentences = []
    for (broker, when), rows in held.items():
        first = rows[0]
        what = f"{name(first)} {offsets(first['first_offset'], first['end_offset'])}"
        if len(rows) > 1:
            number = sum(r["records"] or 0 for r in rows)
            what = f"{counted(number, 'record')} of {names(rows).replace('; ', ' and ')}"
        sentences.append(f"broker {broker}'s copy of {what} is destroyed when {when}.")
    return sentences


def events_of(
    losses: list[dict[str, Any]], details: dict[str | None, dict[str, Any]]
) -> list[list[dict[str, Any]]]:
    """Rows of one event: one cause, contract and status, and elections that belong together."""
    groups: list[tuple[Any, int | None, list[dict[str, Any]]]] = []
    for row in sorted(losses, key=badness):
        election = details.get(row["finding_id"], NO_DETAIL)["election"] or {}
        key = (
            row["status"], row["cause"], tuple(row["contributing"]), row["contract"],
            row["cluster_id"], election.get("leader"),
        )  # fmt: skip
        at = election.get("at")
        for known, when, rows in groups:
            same = (row["topic"], row["topic_id"], row["partition"]) == (
                rows[0]["topic"], rows[0]["topic_id"], rows[0]["partition"],
            )  # fmt: skip
            if same or when is None or at is None:
                near = when == at
            else:
                near = abs(when - at) <= ONE_EVENT_MS
            if known == key and near:
                rows.append(row)
                break
        else:
            groups.append((key, at, [row]))
    return [rows for _, _, rows in groups]


def divergences_by_replicas(
    divergences: list[dict[str, Any]],
) -> dict[tuple[str, int, int], list[dict[str, Any]]]:
    """Settled differences by cluster and the two replicas that hold them."""
    groups: dict[tuple[str, int, int], list[dict[str, Any]]] = {}
    settled = [d for d in divergences if d["status"] == "settled"]
    for row in sorted(settled, key=lambda d: (of_partition(d), d["first_offset"])):
        a, b = row["replicas"]
        groups.setdefault((row["cluster_id"] or "", a, b), []).append(row)
    return groups


def _paragraph(rows: list[dict[str, Any]], details: list[dict[str, Any]]) -> list[str]:
    first = rows[0]
    number = sum(r["records"] or 0 for r in rows)
    least = "at least " if any(r["end_offset_bound"] == "at_least" for r in rows) else ""
    places = _places(rows)
    what = f"{least}{counted(number, 'record')}" if number else NOTHING_TO_READ
    head = f"{first['status'].upper()}  {what}"
    lines = [f"{head}: {places[0]}"] if len(places) == 1 else [f"{head}:"]
    if len(places) > 1:
        lines += [f"    {p}" for p in places[:MOST_RANGES]]
        if len(places) > MOST_RANGES:
            lines.append(f"    and {counted(len(places) - MOST_RANGES, 'range')} more")
    lines.append(f"  {STATUS_WORDS[first['status']]}.")
    lines.append(f"  Why: {why_of(rows, details)}.")
    also = "It may be that" if first["cause"] == "unknown" else "Also:"
    lines += [f"  {also} {CAUSE_WORDS[extra]}." for extra in first["contributing"]]
    lines.append(f"  {contract_words(first, details)}")
    if helps := what_helps(first, details):
        lines.append(f"  {helps}")
    if number == 1:
        lines = [lines[0], *map(_of_one, lines[1:])]
    # Keys and paths are the evidence's own words: those stay as they are.
    lines += [f"  Whose: {whose}." for whose in concerned(details)]
    lines += _copies(rows, details, "it" if number == 1 else "them")
    ids = list(dict.fromkeys(r["finding_id"] for r in rows))
    lines.append(f"  proof: replication-analyzer explain {ids[0]} PATH")
    if len(ids) > 1:
        more = " ".join(ids[1:MOST_NAMED])
        left = f" and {len(ids) - MOST_NAMED} more" if len(ids) > MOST_NAMED else ""
        lines.append(f"  the others: {more}{left}")
    return lines


# Said of one record, what is said of several; never a part of a name, such as of them-0.
_ONE = {
    rf"(?<![\w./-]){several}(?![\w/-])": one
    for several, one in {"them": "it", "they are": "it is", "they were": "it was"}.items()
}


def _of_one(line: str) -> str:
    for several, one in _ONE.items():
        line = re.sub(several, one, line)
    return line


def _places(rows: list[dict[str, Any]]) -> list[str]:
    """Where the records are; rows that meet and of which the same is said are one place."""
    found: list[tuple[str, int, int, str]] = []
    for row in rows:
        where, words = name(row), TIER_WORDS[row["tier"]]
        first, end = row["first_offset"], row["end_offset"]
        if found and found[-1][0] == where and found[-1][2:] == (first, words):
            first = found.pop()[1]
        found.append((where, first, end, words))
    return [f"{where} {offsets(first, end)}, {words}" for where, first, end, words in found]


def contract_words(row: dict[str, Any], details: list[dict[str, Any]]) -> str:
    """Whether Kafka had promised to keep the records; where it had not, or nobody knows, why."""
    words = CONTRACT_WORDS[row["contract"]].removesuffix(".")
    if row["contract"] == "unknown":
        known_cause = "the settings and the disks of that time are not"
        since = "the cause is not" if row["cause"] == "unknown" else known_cause
        return f"{words}, since {since}."
    if row["contract"] != "not_promised":
        return f"{words}."
    named = {each["setting"] for detail in details for each in detail["allowed_by"]}
    named &= _NOT_PROMISED_SINCE.keys()
    if row["tier"] == "acknowledged_by_leader":
        # What one log alone answered for: whatever else allowed the loss came on top.
        named = {"acks"}
    # Early KRaft elects uncleanly whatever the setting says, so that none is named.
    named = named or {"unclean.leader.election.enable"}
    return f"{words}: {'; '.join(w for s, w in _NOT_PROMISED_SINCE.items() if s in named)}."


def what_helps(row: dict[str, Any], details: list[dict[str, Any]]) -> str:
    """Which settings allowed a loss, and where it is told what prevents it; of one with a disk,
    that more members of the ISR do not. Nothing where neither is known."""
    told = [f"what allowed it: {', '.join(settings)}"] if (settings := allowed(details)) else []
    if row["cause"] == "storage_loss":
        told.append("min.insync.replicas alone does not prevent it")
    if row["cause"] != "unknown":
        told.append(f"what prevents it: replication-analyzer explain {row['cause']}")
    said = "; ".join(told)
    return f"{said[:1].upper()}{said[1:]}"


def why_of(rows: list[dict[str, Any]], details: list[dict[str, Any]]) -> str:
    """The cause of one event in words. A broker that came back with less may have stayed
    the leader of some partitions and been elected for others: the leader epoch is said of each."""
    kinds = {(d["election"] or {}).get("kind") for d in details}
    alone = len({name(row) for row in rows}) == 1 and "same_leader" not in kinds
    if rows[0]["cause"] != "storage_loss" or alone:
        return why(rows[0], details[0])
    led: dict[tuple[int, str], dict[int, None]] = {}
    for row, detail in zip(rows, details, strict=True):
        if detail["election"] is not None:
            place = led.setdefault((detail["election"]["leader"], name(row)), {})
            place[detail["election"]["leader_epoch"]] = None
    told = []
    for (leader, partition), epochs in led.items():
        named = ", ".join(map(str, epochs))
        told.append(f"broker {leader} led {partition} without them in leader epoch {named}")
    more = f" and so in {len(told) - MOST_NAMED} more partitions" if told[MOST_NAMED:] else ""
    if not told:
        return CAUSE_WORDS["storage_loss"]
    return f"{CAUSE_WORDS['storage_loss']} ({', '.join(told[:MOST_NAMED])}{more})"


def why(row: dict[str, Any], detail: dict[str, Any]) -> str:
    """The cause in words; where it is known, with who took leadership without the records."""
    election, words = detail["election"], CAUSE_WORDS[row["cause"]]
    if election is None or row["cause"] == "unknown":
        return words
    # The last known leader is elected without a command.
    unclean = row["cause"] == "unclean_election" and election["kind"] == "unclean"
    ordered = unclean and row["contract"] == "broken"
    by = "; no setting allows it, so a command did it, as kafka-leader-election does"
    when = f" at {election['observed_at']}" if election["observed_at"] else ""
    took = f"broker {election['leader']} took leader epoch {election['leader_epoch']}{when}"
    return f"{words} ({took}){by if ordered else ''}"


def concerned(details: list[dict[str, Any]]) -> list[str]:
    """Whose records they were, how many of each client with which acks, and the first keys, where
    acknowledgements name them."""
    keys = list(dict.fromkeys(k for d in details for k in d["first_keys"]))
    own: dict[str, Counter[str]] = {}
    for one in (one for detail in details for one in detail.get("by_client", ())):
        own.setdefault(one["client"], Counter())[one["acks"]] += one["records"]
    if not own:
        return []
    most = sorted(own.items(), key=lambda kv: (-kv[1].total(), kv[0]))
    told = [
        f"{client}: {', '.join(f'{n:,} with acks={acks}' for acks, n in sorted(of.items()))}"
        for client, of in most[:MOST_NAMED]
    ]
    if rest := most[MOST_NAMED:]:
        told.append(f"{counted(len(rest), 'more client')}: {sum(of.total() for _, of in rest):,}")
    some = keys[:MOST_NAMED]
    first = f"; the first key{'' if len(some) == 1 else 's'}: {', '.join(some)}" if keys else ""
    return [f"{counted(len(own), 'client')} ({'; '.join(told)}){first}"]


def allowed(details: list[dict[str, Any]]) -> list[str]:
    """The settings that let it happen, `name=value`, and which of them concern some ranges only."""
    each = [[f"{a['setting']}={a['value']}" for a in d["allowed_by"]] for d in details]
    return [
        setting if all(setting in one for one in each) else f"{setting} (some of them)"
        for setting in dict.fromkeys(s for one in each for s in one)
    ]


def with_paths(
    row: dict[str, Any], detail: dict[str, Any]
) -> Iterator[tuple[dict[str, Any], str | None]]:
    """Each surviving copy of a loss, and where it lies; of several alike, in their order."""
    left = [(_alike(c), c["path"]) for c in detail["copies"]]
    for copy in row["surviving_copies"]:
        found = next((each for each in left if each[0] == _alike(copy)), None)
        if found is not None:
            left.remove(found)
        yield copy, None if found is None else found[1]


def _alike(copy: dict[str, Any]) -> tuple[Any, ...]:
    return copy["replica"], copy["kind"], copy["as_of"]


def _copies(rows: list[dict[str, Any]], details: list[dict[str, Any]], records: str) -> list[str]:
    lines = []
    for row, detail in zip(rows, details, strict=True):
        for copy, path in with_paths(row, detail):
            what = "log" if copy["kind"] == "replica" else "older copy"
            where = f", {path}," if path else ""
            line = f"  Still there: broker {copy['replica']}'s {what}{where} has {records}"
            if copy["destroyed_when"]:
                line += f"; destroyed when {copy['destroyed_when']}"
            lines.append(line + ".")
    unique = list(dict.fromkeys(lines))
    left = len(unique) - MOST_NAMED
    return unique if left <= 0 else [*unique[:MOST_NAMED], f"  and {left} more copies."]
