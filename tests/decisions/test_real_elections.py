"""Kept captures of real clusters without a leader: what is foretold of each replica is what its
real election then lost, and log ends alone would have chosen worse.

`python -m tests.kafka_lab.elections --keep DIR` makes such captures: an evidence folder, and beside
it what the elections on real brokers measured.
"""

from pathlib import Path

import pytest

from tests.kafka_lab.elections.judging import judged
from tests.kafka_lab.elections.measured import MEASURED_FILE, Measured

CAPTURES = Path(__file__).parent / "captures"
KEPT = sorted(path.parent.name for path in CAPTURES.glob(f"*/{MEASURED_FILE}"))


@pytest.mark.parametrize("name", KEPT)
def test_what_was_foretold_is_what_was_lost(name: str) -> None:
    measured = Measured.load(CAPTURES / name)
    _, score = judged(measured, CAPTURES / name / "evidence", whole_only=True)
    assert score.failures == []
    assert score.counts["elections"] == len(measured.replicas)
    assert score.counts["whole: chosen"] == 1
    assert score.counts["whole: undecided"] == 0
    worse = "usual: last epoch, then longest log: WORSE than decide"
    assert score.counts[worse] == (name == "sixteen_steps__4.3.0")


def test_a_capture_is_kept() -> None:
    assert "sixteen_steps__4.3.0" in KEPT
