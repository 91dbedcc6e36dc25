"""Losses in paragraphs, one for each event: what went, why, what allowed it, whom it concerns."""

from collections.abc import Iterable
from typing import Any

from replication.reports.headline import counted
from replication.reports.vocabulary import (
    CAUSE_WORDS,
    CONTRACT_WORDS,
    STATUS_WORDS,
    TIER_WORDS,
    name,
    offsets,
)

MOST_RANGES = 20
MOST_NAMED = 5
# Elections of one failure are this close together, in milliseconds.
ONE_EVENT_MS = 60_000
NO_DETAIL: dict[str, Any] = {
    "election": None, "allowed_by": [], "copies": [], "clients": [], "first_keys": [],
}  # fmt: skip


def badness(loss: dict[str, Any]) -> tuple[int, int, str, int, int]:
    """Sort key of the loss ledger's rows: the strongest promise first, then the worst status."""
    status = ("lost", "undetermined", "recoverable", "at_risk", "recovered")
    tier = ("consumed", "acknowledged_by_isr", "committed", "acknowledged_by_leader")
    return (
        tier.index(loss["tier"]) if loss["tier"] in tier else 9,
        status.index(loss["status"]),
        loss["topic"],
        loss["partition"],
        loss["first_offset"],
    )


def name_clients(answer: dict[str, Any], acknowledgements: Iterable[Any]) -> None:
    """Puts into each of answer's loss_details whose records they were, and their first keys.

    acknowledgements: with topic, partition, offset, status, client, payload_id and ts. Where
    several name one offset, the one from before the election is meant; else none is named.
    """
    rows = {x["finding_id"]: x for x in answer["losses"]}
    wanted: dict[tuple[str, int, int], dict[str, Any]] = {}
    for detail in answer["loss_details"]:
        row = rows[detail["finding_id"]]
        if row["tier"] in ("acknowledged_by_isr", "acknowledged_by_leader", "consumed"):
            for offset in range(row["first_offset"], row["end_offset"]):
                wanted[(row["topic"], row["partition"], offset)] = detail
    named: dict[tuple[str, int, int], list[Any]] = {}
    for one in acknowledgements if wanted else ():
        place = (one.topic, one.partition, one.offset)
        if one.status == "acked" and place in wanted:
            named.setdefault(place, []).append(one)
    for place, found in sorted(named.items()):
        detail = wanted[place]
        at = (detail["election"] or {}).get("at")
        if len(found) > 1 and at is not None:
            found = [a for a in found if a.ts is not None and a.ts < at]
        if len(found) == 1:
            if found[0].client not in detail["clients"]:
                detail["clients"].append(found[0].client)
            if found[0].payload_id is not None and len(detail["first_keys"]) < MOST_NAMED:
                detail["first_keys"].append(found[0].payload_id)


def loss_text(answer: dict[str, Any]) -> list[str]:
    """All losses, those of one event together, the worst event first."""
    details = {d["finding_id"]: d for d in answer.get("loss_details", [])}
    lines: list[str] = []
    for rows in _events(answer["losses"], details):
        lines += [*_paragraph(rows, [details.get(r["finding_id"], NO_DETAIL) for r in rows]), ""]
    return lines


def _events(
    losses: list[dict[str, Any]], details: dict[str, dict[str, Any]]
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


def _paragraph(rows: list[dict[str, Any]], details: list[dict[str, Any]]) -> list[str]:
    first = rows[0]
    number = sum(r["records"] or 0 for r in rows)
    least = "at least " if any(r["end_offset_bound"] == "at_least" for r in rows) else ""
    places = [
        f"{name(r)} {offsets(r['first_offset'], r['end_offset'])}, {TIER_WORDS[r['tier']]}"
        for r in rows
    ]
    head = f"{first['status'].upper()}  {least}{counted(number, 'record')}"
    lines = [f"{head}: {places[0]}"] if len(rows) == 1 else [f"{head}:"]
    if len(rows) > 1:
        lines += [f"    {p}" for p in places[:MOST_RANGES]]
        if len(places) > MOST_RANGES:
            lines.append(f"    and {counted(len(places) - MOST_RANGES, 'range')} more")
    lines.append(f"  {STATUS_WORDS[first['status']]}.")
    lines.append(f"  Why: {CAUSE_WORDS[first['cause']]}{_when(details[0])}.")
    lines += [f"  Also: {CAUSE_WORDS[extra]}." for extra in first["contributing"]]
    lines.append(f"  {CONTRACT_WORDS[first['contract']]}")
    allowed = dict.fromkeys(
        f"{a['setting']}={a['value']}" for d in details for a in d["allowed_by"]
    )
    if allowed:
        lines.append(f"  What allowed it: {', '.join(allowed)}.")
    lines += _concerned(details)
    lines += _copies(rows, details)
    ids = list(dict.fromkeys(r["finding_id"] for r in rows))
    lines.append(f"  proof: replication-analyzer explain {ids[0]} PATH")
    if len(ids) > 1:
        more = " ".join(ids[1:MOST_NAMED])
        left = f" and {len(ids) - MOST_NAMED} more" if len(ids) > MOST_NAMED else ""
        lines.append(f"  the others: {more}{left}")
    return lines


def _when(detail: dict[str, Any]) -> str:
    election = detail["election"]
    if election is None:
        return ""
    when = f" at {election['observed_at']}" if election["observed_at"] else ""
    return f" (broker {election['leader']} took leader epoch {election['leader_epoch']}{when})"


def _concerned(details: list[dict[str, Any]]) -> list[str]:
    clients = list(dict.fromkeys(c for d in details for c in d["clients"]))
    keys = list(dict.fromkeys(k for d in details for k in d["first_keys"]))
    if not clients:
        return []
    shown = ", ".join(clients[:MOST_NAMED])
    more = f" and {len(clients) - MOST_NAMED} more" if len(clients) > MOST_NAMED else ""
    first = f"; the first keys: {', '.join(keys[:MOST_NAMED])}" if keys else ""
    return [f"  Whose: {counted(len(clients), 'client')} ({shown}{more}){first}."]


def _copies(rows: list[dict[str, Any]], details: list[dict[str, Any]]) -> list[str]:
    lines = []
    for row, detail in zip(rows, details, strict=True):
        paths = {(c["replica"], c["kind"], c["as_of"]): c["path"] for c in detail["copies"]}
        for copy in row["surviving_copies"]:
            what = "its log" if copy["kind"] == "replica" else "an older copy among the evidence"
            path = paths.get((copy["replica"], copy["kind"], copy["as_of"]))
            where = f": {path}" if path else ""
            line = f"  A copy: broker {copy['replica']}, {what}{where}"
            if copy["destroyed_when"]:
                line += f"; destroyed when {copy['destroyed_when']}"
            lines.append(line + ".")
    unique = list(dict.fromkeys(lines))
    left = len(unique) - MOST_NAMED
    return unique if left <= 0 else [*unique[:MOST_NAMED], f"  and {left} more copies."]
