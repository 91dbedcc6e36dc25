"""People hand over the one file they think of: `server.log` of a broker, or of all of them.

Whatever kind of file it is, the evidence contradicts no history, and no verdict the truth.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.changed_evidence import EXPECTED, INCIDENTS, Change, folded_with, marks_of
from tests.removals import row_of

QUICK = ("unclean_election__4.1.1", "kip101_scenario_1__1.1.1__control")


def only(kept: list[str]) -> Change:
    """Leaves only these files, told by their ends of path."""

    def change(evidence: Path) -> None:
        for path in sorted(evidence.rglob("*"), reverse=True):
            if path.is_file() and not str(path).endswith(tuple(kept)):
                path.unlink()

    return change


def kinds_of(incident: str) -> Iterator[list[str]]:
    """The files of a name of each broker alone, and of all."""
    logs = sorted((INCIDENTS / incident).glob("broker-*/*.log"))
    for name in sorted({path.name for path in logs}):
        own = [f"/{path.parent.name}/{name}" for path in logs if path.name == name]
        yield from ([each] for each in own)
        yield own


CASES = [
    pytest.param(incident, kept, marks=marks_of(incident, QUICK, turn))
    for incident in EXPECTED
    for turn, kept in enumerate(kinds_of(incident))
]


@pytest.mark.parametrize(("incident", "kept"), CASES)
def test_files_of_one_kind_contradict_nothing(incident: str, kept: list[str]) -> None:
    folded = folded_with(incident, only(kept), strict=False)
    reasons = [v["reason"] for f in folded for v in f.answer.verdicts]
    assert not [reason for reason in reasons if "no history that the rules" in reason]

    _, wrong = row_of(incident, only(kept))
    assert wrong == []
