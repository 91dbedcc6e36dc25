"""What each incident still tells when one artefact is withheld: as committed, and never wrong.

`incidents/removals.json` holds the three verdicts of each partition, incident by removed artefact,
with the reason where one is UNKNOWN. Whatever it says, no verdict may contradict the ground truth.
"""

import pytest

from tests.changed_evidence import EXPECTED, marks_of, removals
from tests.removals import row_of, written_table

# Every other row of an incident of each controller kind in every run; all of them, and a third of
# one of each kind of capture, in `make test`; the whole table in `make sweeps`.
QUICK = ("unclean_election__2.8.2", "last_replica_standing__4.1.1__elr_off")
CASES = [
    pytest.param(
        incident,
        withheld,
        marks=marks_of(incident, QUICK, turn) or [pytest.mark.slow] * (turn % 2),
        id=f"{incident}-{withheld.replace(' ', '_')}",
    )
    for incident in EXPECTED
    for turn, (withheld, _) in enumerate(removals(incident))
]


@pytest.mark.parametrize(("incident", "withheld"), CASES)
def test_verdicts_without_an_artefact(incident: str, withheld: str) -> None:
    row, wrong = row_of(incident, dict(removals(incident))[withheld])
    assert wrong == []
    assert row == written_table()[incident][withheld]


def test_the_table_is_complete() -> None:
    written = written_table()
    assert {i: list(rows) for i, rows in written.items()} == {
        i: [withheld for withheld, _ in removals(i)] for i in EXPECTED
    }


def test_every_unknown_says_why() -> None:
    for rows in written_table().values():
        for row in rows.values():
            for verdicts in row.values():
                assert all(
                    v in ("HOLDS", "VIOLATED") or len(v) > len("UNKNOWN: ") for v in verdicts
                )
