"""A small form of removed_steps.py and told_causes.py: the ledger's cause is the removed step."""

import pytest

from tests.protocol.removed_steps import compare
from tests.protocol.told_causes import compare as compare_told


def test_the_cause_is_the_step_without_which_the_record_survives() -> None:
    found = compare(range(1000, 1020))
    wrong = {pair: found.stories[pair] for pair in found.counts if pair[0] != pair[1]}
    assert wrong == {}
    assert sum(found.counts.values()) > 5
    assert {(ledger, machine) for _, ledger, machine in found.contracts} <= {
        ("broken", "broken"), ("not_promised", "not_promised"), ("unknown", "broken"),
    }  # fmt: skip


@pytest.mark.slow
def test_no_evidence_withheld_makes_a_cause_wrong() -> None:
    score = compare_told(range(2, 3))
    assert score.wrong == {}, score.stories
    assert score.counts["cause", "right"] > 0
