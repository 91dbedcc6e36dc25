"""Findings that somebody has handled: until a day, for a reason, they fail no expectation."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from replication.nearest import did_you_mean
from replication.quality.suites import SuiteError, file_of

KEYS = ("finding", "until", "reason", "who")


@dataclass(frozen=True)
class Acceptance:
    """Who accepts which finding, why, and until which day (UTC), that day among them."""

    finding: str
    until: date
    reason: str
    who: str

    def __str__(self) -> str:
        return f"finding {self.finding} until {self.until}, by {self.who}: {self.reason}"


def load(path: Path | None) -> list[Acceptance]:
    """The acceptances of a file of [[accepted]], each with KEYS. Raises SuiteError."""
    if path is None:
        return []
    text = file_of(path)
    for key in sorted(set(text) - {"accepted"}):
        raise SuiteError(f"{path}: unknown key {key}{did_you_mean(key, ['accepted'])}")
    entries = text.get("accepted")
    if (
        not entries
        or not isinstance(entries, list)
        or not all(isinstance(e, dict) for e in entries)
    ):
        raise SuiteError(f"{path}: has no [[accepted]] with {', '.join(KEYS)}")
    found = [_acceptance(path, number, entry) for number, entry in enumerate(entries, 1)]
    for each in found:
        if sum(other.finding == each.finding for other in found) > 1:
            raise SuiteError(f"{path}: finding {each.finding} is accepted twice: keep one")
    return found


def _acceptance(path: Path, number: int, entry: dict[str, Any]) -> Acceptance:
    where = f"{path}: [[accepted]] number {number}"
    for key in entry:
        if key not in KEYS:
            raise SuiteError(f"{where}: unknown key {key}{did_you_mean(key, KEYS)}")
    for key in KEYS:
        if key not in entry:
            raise SuiteError(f"{where} lacks {key}")
        if key != "until" and not (isinstance(entry[key], str) and entry[key].strip()):
            raise SuiteError(f"{where}: {key} is a text, not {entry[key]!r}")
    if type(entry["until"]) is not date:
        raise SuiteError(f"{where}: until is a day without quotes, like 2026-12-31")
    return Acceptance(**entry)


def in_force(acceptances: Iterable[Acceptance], today: date) -> frozenset[str]:
    """The findings that fail nothing on a day."""
    return frozenset(each.finding for each in acceptances if today <= each.until)


def words(
    acceptances: Sequence[Acceptance], accepted: Collection[str], failing: Collection[str]
) -> Iterator[str]:
    """What became of each. accepted, failing: the findings of rows that were accepted, or fail."""
    for each in acceptances:
        if each.finding in accepted:
            yield f"ACCEPTED  {each}"
        elif each.finding in failing:
            yield f"ACCEPTED NO LONGER  {each}"
        else:
            yield (
                f"ACCEPTED IN VAIN  {each} - no row of this finding fails anything that was asked: "
                "take the entry away, or correct its finding"
            )
