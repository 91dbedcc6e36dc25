"""Real clusters, quick enough for every test run: a loss, a healthy cluster, and the oldest broker.

`make lab` runs every scenario on every version, and chaos by seeds.
"""

from pathlib import Path

import pytest

from tests.kafka_lab.scenarios import SCENARIOS
from tests.kafka_lab.truth import load_truths
from tests.kafka_lab.versions import Version

pytestmark = pytest.mark.kafka

QUICK = (
    ("unclean_election", "4.3.0", {"unclean_election"}),
    ("leader_missed_an_epoch", "4.3.0", {"premature_high_watermark"}),
    ("copies_under_load", "4.3.0", set[str]()),
)


@pytest.mark.parametrize(("name", "version", "causes"), QUICK)
def test_diagnose_tells_the_truth(
    name: str, version: str, causes: set[str], tmp_path: Path
) -> None:
    experiment = SCENARIOS[name].run(Version(version), tmp_path)
    comparison, answer = experiment.compare(f"{name}__{version}")
    assert {loss["cause"] for loss in answer["losses"]} == causes
    assert comparison.right, comparison.text()
    assert comparison.unknown + comparison.unknown_by_offset == [], comparison.text()
    assert comparison.verdicts >= 3
    kept = load_truths(tmp_path / "truth.json")
    assert kept == experiment.truths
    assert experiment.cluster.answering() == []
