"""The whole answer as one JSON object, exactly as the outward contract has it."""

import json
import re
from collections.abc import Iterable
from typing import Any

from replication.protocol.judgement.judge import PartitionAnswer
from replication.reports.assumption_words import assumptions_of
from replication.reports.headline import headline, headline_more, partitions_undecided
from replication.reports.inventory_words import zone_is_known
from replication.reports.safe_text import plain_json

FORMAT_VERSION = 1
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
DECIDING = ("committed_records_survive", "log_matching")


def assemble(
    clusters: list[dict[str, Any]],
    counts: dict[str, Any],
    answers: Iterable[PartitionAnswer],
    inventory: dict[str, Any] | None = None,
    observations: Iterable[dict[str, Any]] = (),
    incident: str | None = None,
) -> dict[str, Any]:
    """clusters, counts, inventory, observations and incident as the contract's keys; answers in
    identity order."""
    ordered = list(answers)
    made: dict[str, Any] = {
        "format_version": FORMAT_VERSION,
        "incident": incident,
        "clusters": clusters,
        "input": counts,
        "inventory": inventory or {},
        "observations": list(observations),
        "partitions": [a.partition for a in ordered],
        "verdicts": [v for a in ordered for v in a.verdicts],
        "losses": [x for a in ordered for x in a.losses],
        "divergences": [d for a in ordered for d in a.divergences],
        "findings": [f for a in ordered for f in a.findings],
        "at_risk": [d for a in ordered for d in a.at_risk],
        "past_risks": [d for a in ordered for d in a.past_risks],
        "loss_details": [d for a in ordered for d in a.loss_details],
        "removed": [r for a in ordered for r in a.removed],
    }
    if not zone_is_known(made):
        for part in ("partitions", "losses", "at_risk", "past_risks", "loss_details", "removed"):
            made[part] = _without_zone(made[part])
    made["assumptions"] = assumptions_of(made)
    made["headline"] = headline(made)
    made["headline_more"] = headline_more(made)
    made["partitions_undecided"] = partitions_undecided(made)
    return made


def _without_zone(part: Any) -> Any:
    """The same with moments as clocks printed them, which by ISO 8601 is of no known zone."""
    if isinstance(part, dict):
        return {key: _without_zone(value) for key, value in part.items()}
    if isinstance(part, list):
        return [_without_zone(value) for value in part]
    return part[:-1] if isinstance(part, str) and _MOMENT.fullmatch(part) else part


def to_json(answer: dict[str, Any]) -> str:
    """Keys sorted, the same bytes for the same evidence; nothing in it steers a terminal."""
    return plain_json(json.dumps(answer, sort_keys=True, indent=2, ensure_ascii=False))


def exit_status(answer: dict[str, Any], strict: bool) -> int:
    """0 nothing violated and the deciding invariants hold; 1 violated; 3 undecided."""
    verdicts = answer["verdicts"]
    if any(v["verdict"] == "VIOLATED" for v in verdicts):
        return 1
    undecided = [v for v in verdicts if v["verdict"] == "UNKNOWN"]
    if any(v["invariant"] in DECIDING for v in undecided) or (strict and undecided):
        return 3
    return 0 if verdicts else 3


def undecided_beside_the_table(answer: dict[str, Any]) -> list[str]:
    """Which invariants alone make --strict end with 3: nothing is violated, what decides is
    decided."""
    if exit_status(answer, strict=False) != 0:
        return []
    return sorted({v["invariant"] for v in answer["verdicts"] if v["verdict"] == "UNKNOWN"})
