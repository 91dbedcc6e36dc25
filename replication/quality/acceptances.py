"""Findings that somebody has handled: until a day, for a reason, they fail no expectation."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from replication.quality.suites import SuiteError, check_keys, check_types, file_of

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
    check_keys(str(path), text, (), ("accepted",))
    entries = text.get("accepted")
    if not isinstance(entries, list) or not all(type(e) is dict for e in entries):
        keys = ", ".join(KEYS)
        raise SuiteError(f"{path}: has no [[accepted]] with {keys}, nor accepted = [] for none")
    found = []
    for number, entry in enumerate(entries, 1):
        where = f"{path}: [[accepted]] number {number}"
        check_keys(where, entry, KEYS)
        check_types(where, entry)
        found.append(Acceptance(**entry))
    for each in found:
        if sum(other.finding == each.finding for other in found) > 1:
            raise SuiteError(f"{path}: finding {each.finding} is accepted twice: keep one")
    return found


def in_force(acceptances: Iterable[Acceptance], today: date) -> dict[str, Acceptance]:
    """The findings that fail nothing on a day, each with its acceptance."""
    return {each.finding: each for each in acceptances if today <= each.until}


def words(
    acceptances: Sequence[Acceptance], accepted: Collection[str], failing: Collection[str],
    all_asked: bool = True,
) -> Iterator[str]:  # fmt: skip
    """What became of each. accepted, failing: the findings of rows that were accepted, or fail.
    all_asked: not where only some suites were, of which nothing follows for the others."""
    for each in acceptances:
        if each.finding in accepted:
            yield f"ACCEPTED  {each}"
        elif each.finding in failing:
            yield f"ACCEPTED NO LONGER  {each}"
        elif all_asked:
            yield (
                f"ACCEPTED IN VAIN  {each} - no row of this finding fails anything: "
                "take the entry away, or correct its finding"
            )
