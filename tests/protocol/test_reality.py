"""The fold foretells by the rules what real brokers did, change by change; misses have a reason.

What counts as a change: a high watermark that moved, a fetch further on (where its follower's log
ends by its own lines), a cut. `python -m tests.protocol.foretold` prints the same of any evidence.
"""

from functools import cache
from pathlib import Path

import pytest

from replication.protocol.folding.conformance.unforetold import REASONS
from replication.protocol.judgement.bounded import FoldedPartition
from tests.protocol import foretold

INCIDENTS = Path(__file__).parent.parent / "incidents"
TRACED = sorted(p.name for p in INCIDENTS.glob("*__trace"))

# Changes that are not foretold, by incident and reason.
EXPLAINED: dict[str, dict[str, int]] = {}


@cache
def folded(name: str) -> tuple[FoldedPartition, ...]:
    return foretold.folded(INCIDENTS / name)


@pytest.mark.parametrize("name", TRACED)
def test_what_real_brokers_did_is_foretold(name: str) -> None:
    predicted, missed = foretold.score(folded(name))

    assert predicted > 40
    assert {x.reason: x.changes for x in missed} == EXPLAINED.get(name, {})
    assert all(x.reason in REASONS for x in missed)


@pytest.mark.parametrize("name", TRACED)
def test_real_brokers_conform_to_their_version(name: str) -> None:
    assert foretold.refuted(folded(name)) == []


def test_at_least_99_percent_of_all_changes() -> None:
    scores = [foretold.score(folded(n)) for n in TRACED]
    predicted = sum(foretold for foretold, _ in scores)
    missed = sum(x.changes for _, misses in scores for x in misses)

    assert predicted > 600
    assert predicted >= 0.99 * (predicted + missed)
