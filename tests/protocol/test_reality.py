"""The fold foretells by the rules what real brokers did, change by change; misses are explained.

What counts as a change: a high watermark that moved, a fetch further on (where its follower's log
ends by its own lines), a cut. The product's own
conformance makes the predictions while it folds the incident; nothing here predicts anything.
"""

from functools import cache
from pathlib import Path

import pytest

from replication.evidence.importer import import_evidence
from replication.protocol.judgement.bounded import FoldedPartition, fold_all

INCIDENTS = Path(__file__).parent.parent / "incidents"
TRACED = sorted(p.name for p in INCIDENTS.glob("*__trace"))

# Changes that are not foretold, by incident, each with its reason.
EXPLAINED: dict[str, int] = {}


@cache
def folded(name: str) -> tuple[FoldedPartition, ...]:
    return tuple(fold_all(import_evidence([INCIDENTS / name]).events()))


def score(name: str) -> tuple[int, int]:
    """(foretold, missed) changes of an incident."""
    held = [f.state.conformance for f in folded(name)]
    claimed = sum(r.claimed is not None for f in folded(name) for r in f.state.replicas.values())
    missed = sum(h.missed + len(h.open) for h in held) + claimed
    return sum(h.predicted for h in held), missed


@pytest.mark.parametrize("name", TRACED)
def test_what_real_brokers_did_is_foretold(name: str) -> None:
    predicted, missed = score(name)

    assert predicted > 40
    assert missed == EXPLAINED.get(name, 0)


@pytest.mark.parametrize("name", TRACED)
def test_real_brokers_conform_to_their_version(name: str) -> None:
    for partition in folded(name):
        verdicts = {v["invariant"]: v for v in partition.answer.verdicts}
        assert verdicts["version_conformance"]["verdict"] != "VIOLATED", name


def test_at_least_99_percent_of_all_changes() -> None:
    scores = [score(n) for n in TRACED]
    predicted, missed = (sum(column) for column in zip(*scores, strict=True))

    assert predicted > 600
    assert predicted >= 0.99 * (predicted + missed)
