"""Real clusters, quick enough for every test run: a loss, a healthy cluster, and the oldest broker.

`make lab` runs every scenario on every version, and chaos by seeds.
"""

from pathlib import Path

import pytest

from tests.kafka_lab.experiment import Experiment
from tests.kafka_lab.scenarios import SCENARIOS
from tests.kafka_lab.truth import load_truths
from tests.kafka_lab.versions import Version

pytestmark = pytest.mark.kafka

# An unclean election is held against its truth where its records come back, in
# tests/recovery/test_real_brokers.py.
QUICK = (
    ("leader_missed_an_epoch", "4.3.0", {"premature_high_watermark"}),
    pytest.param("copies_under_load", "4.3.0", set[str](), marks=pytest.mark.sweep),
)


@pytest.mark.parametrize(("name", "version", "causes"), QUICK)
def test_diagnose_tells_the_truth(
    name: str, version: str, causes: set[str], tmp_path: Path
) -> None:
    tells_the_truth(SCENARIOS[name].run(Version(version), tmp_path), f"{name}__{version}", causes)


def tells_the_truth(experiment: Experiment, name: str, causes: set[str]) -> None:
    """Whether the answer to what a run left is right, and decided, and the run left no process."""
    comparison, answer = experiment.compare(name)
    assert {loss["cause"] for loss in answer["losses"]} == causes
    assert comparison.right, comparison.text()
    assert comparison.unknown + comparison.unknown_by_offset == [], comparison.text()
    assert comparison.verdicts >= 3
    assert load_truths(experiment.directory / "truth.json") == experiment.truths
    assert experiment.cluster.answering() == []
