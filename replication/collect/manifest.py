"""What of the evidence is here, what is missing, and what each gap costs.

Reads only the answer of `diagnose`: a gap costs the verdicts that are UNKNOWN and would be settled
by what is missing, and the assumptions that verdicts make in its place.
"""

from typing import Any

from replication.protocol.histories.assumptions import ASSUMPTIONS
from replication.reports.headline import how_to_get, is_open, matters

ACKNOWLEDGEMENTS = "an acknowledgement log of the producers"
_WORTH_HAVING = (
    ("logs", "the broker log of broker {}"),
    ("directories", "the log directory of broker {}"),
)


def manifest(answer: dict[str, Any]) -> dict[str, Any]:
    """Plain values for JSON; docs/collect.schema.json describes them. answer: that of `diagnose`.

    The gaps that cost most come first.
    """
    gaps = {what: _gap(what) for what in _not_here(answer)}
    for verdict in answer["verdicts"]:
        if is_open(verdict):
            for what in verdict["settled_by"]:
                # The reason why what is here of it is not enough may follow in brackets.
                known = next((name for name in gaps if what.startswith(f"{name} (")), what)
                row = gaps.pop(known, None) or _gap(what)
                gaps[what] = row | {"missing": what}
                row["unknown"].append({**_where(verdict), "matters": matters(verdict)})
    return {
        "format_version": 1,
        "incident": answer["incident"],
        "inventory": answer["inventory"],
        "gaps": sorted(gaps.values(), key=_cost),
        "assumed": _assumed(answer["verdicts"], [*gaps]),
        "losses": [row for row in map(_loss, answer["losses"]) if row["open"]],
    }


def is_enough(told: dict[str, Any]) -> bool:
    """Whether no verdict about a loss or about the agreement of replicas is UNKNOWN for a gap."""
    return not any(row["matters"] for gap in told["gaps"] for row in gap["unknown"])


def _not_here(answer: dict[str, Any]) -> list[str]:
    """Of each broker what there is nothing of, as `settled_by` names it; the producers' log."""
    rows = {(row["cluster_id"], row["broker"]): row for row in answer["inventory"]["brokers"]}
    named = [
        (cluster["cluster_id"], broker)
        for cluster in answer["clusters"]
        for broker in cluster["brokers"]
    ]
    gone = []
    for key in sorted(named, key=lambda each: (each[0] or "", each[1])):
        row = rows.get(key) or {}
        for kind, name in _WORTH_HAVING:
            if not row.get(kind) and not (kind == "directories" and row.get("dumps")):
                gone.append(name.format(key[1]))
    kinds = {row["kind"] for row in answer["inventory"]["files"]}
    return [*gone, *([] if "acknowledgement log" in kinds else [ACKNOWLEDGEMENTS])]


def _gap(what: str) -> dict[str, Any]:
    return {"missing": what, "how": how_to_get(what), "unknown": []}


def _cost(gap: dict[str, Any]) -> tuple[int, int, str]:
    important = sum(row["matters"] for row in gap["unknown"])
    return -important, -len(gap["unknown"]), gap["missing"]


def _where(verdict: dict[str, Any]) -> dict[str, Any]:
    names = ("cluster_id", "topic", "topic_id", "partition", "invariant")
    return {name: verdict[name] for name in names}


def _assumed(verdicts: list[dict[str, Any]], gaps: list[str]) -> list[dict[str, Any]]:
    """A row for each assumption that a verdict makes. gaps: what is missing."""
    found: dict[str, list[dict[str, Any]]] = {}
    for verdict in verdicts:
        for name in verdict["assuming"] or ():
            found.setdefault(name, []).append(_where(verdict))
    return [
        {
            "name": name,
            "means": ASSUMPTIONS[name].sentence,
            "not_needed_with": ASSUMPTIONS[name].unnecessary_with,
            "missing": [what for what in gaps if what.startswith(ASSUMPTIONS[name].spared_by)],
            "made_by": rows,
        }
        for name, rows in sorted(found.items(), key=lambda each: (-len(each[1]), each[0]))
    ]


def _loss(loss: dict[str, Any]) -> dict[str, Any]:
    """What is not known of a loss that is certain."""
    asked = (
        ("how many records", loss["end_offset_bound"] == "at_least"),
        ("whether a copy is left", loss["status"] == "undetermined"),
        ("the cause", loss["cause"] == "unknown"),
        ("whether Kafka had promised to keep them", loss["contract"] == "unknown"),
        ("who was told that they are written", loss["tier"] == "undetermined"),
    )
    names = ("finding_id", "cluster_id", "topic", "topic_id", "partition")
    return {name: loss[name] for name in names} | {"open": [what for what, yes in asked if yes]}
