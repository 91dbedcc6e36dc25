"""What is missing, for people: each gap with its price and how to close it."""

from collections.abc import Iterator
from typing import Any

from replication.reports.inventory_words import inventory_text
from replication.reports.vocabulary import INVARIANT_WORDS, name

MOST_SHOWN = 6


def text(told: dict[str, Any]) -> Iterator[str]:
    """Lines. told: what `manifest` gives."""
    yield from inventory_text(told["inventory"])
    dear = [gap for gap in told["gaps"] if gap["unknown"]]
    assumed_for = {what for row in told["assumed"] for what in row["missing"]}
    free = [
        gap["missing"]
        for gap in told["gaps"]
        if not gap["unknown"] and gap["missing"] not in assumed_for
    ]
    if dear:
        yield "Missing, and what is UNKNOWN for want of it:"
    for gap in dear:
        yield from _gap(gap)
    if told["assumed"]:
        yield "Missing, and what is taken for granted for want of it:"
    for row in told["assumed"]:
        yield from _assumed(row, told["gaps"])
    if free:
        yield f"Missing too, though no verdict here hangs on it: {_listed(free, '; ')}."
    if any(gap["missing"].startswith("the log directory") for gap in told["gaps"]):
        yield "  Log directories may hold copies of lost records all the same."
    for loss in told["losses"]:
        yield f"Open of the loss {loss['finding_id']} in {name(loss)}: {', '.join(loss['open'])}."
    if not (dear or told["assumed"]):
        yield "No verdict hangs on anything that is missing."


def _gap(gap: dict[str, Any]) -> Iterator[str]:
    yield f"  {gap['missing']}"
    about_losses = [_verdict(row) for row in gap["unknown"] if row["matters"]]
    others = [_verdict(row) for row in gap["unknown"] if not row["matters"]]
    if about_losses:
        yield f"    whether anything is lost or differs: {_listed(about_losses)}"
    if others:
        yield f"    {'also' if about_losses else 'only'}: {_listed(others)}"
    if gap["how"]:
        yield f"    how to get it: {gap['how']}"


def _assumed(row: dict[str, Any], gaps: list[dict[str, Any]]) -> Iterator[str]:
    """What verdicts assume, and what would make that unnecessary: in words, of that what is not
    here, and how to get it."""
    yield f"  {row['name']}: {row['means']}"
    yield f"    for {_listed([_verdict(v) for v in row['made_by']])}"
    yield f"    not needed with: {row['not_needed_with']}"
    if row["missing"]:
        yield f"    not here: {_listed(row['missing'], '; ')}"
    ways = {gap["how"]: None for gap in gaps if gap["missing"] in row["missing"] and gap["how"]}
    yield from (f"    how to get it: {how}" for how in ways)


def _verdict(row: dict[str, Any]) -> str:
    return f"{name(row)} {INVARIANT_WORDS.get(row['invariant'], row['invariant'])}"


def _listed(names: list[str], between: str = ", ") -> str:
    more = len(names) - MOST_SHOWN
    return between.join(names[:MOST_SHOWN]) + (f" and {more} more" if more > 0 else "")
