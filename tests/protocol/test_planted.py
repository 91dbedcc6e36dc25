"""Changed steps are found, and none that timing explains: planted.py in a small form."""

import pytest

from tests.protocol.planted import score


@pytest.mark.slow
def test_changed_steps_are_found_and_timing_is_no_finding() -> None:
    total = score(range(40, 42))
    found, unfound = sum(total.found.values()), sum(total.unfound.values())

    assert total.wrong == []
    assert len(total.found) >= 6
    assert found + unfound > 45
    assert found >= 0.95 * (found + unfound), "\n".join(total.missed)
