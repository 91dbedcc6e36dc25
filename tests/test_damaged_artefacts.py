"""A damaged artefact makes the answer less, never another one: a few of each kind."""

from pathlib import Path

import pytest

from tests.changed_evidence import as_captured, folded_with
from tests.damaged_artefacts import WHOLE, damaged, lost, others_than

SEGMENT = "t-0/00000000000000000000.log"
LEADERS = f"broker-2/disk-final/{SEGMENT}"
CASES = [
    ("unclean_election__4.1.1", f"broker-1/disk-final/{SEGMENT}", "cut within a batch"),
    ("unclean_election__4.1.1", f"broker-2/disk-final/{SEGMENT}", "cut within a batch"),
    ("unclean_election__2.8.2", f"broker-1/disk-after-kill/{SEGMENT}", "emptied"),
    ("unclean_election__2.8.2", f"broker-1/disk-after-kill/{SEGMENT}", "cut to nine tenths"),
    ("unclean_election__2.8.2", f"broker-1/disk-final/{SEGMENT}", "cut to a third"),
    ("unclean_election__2.8.2", f"broker-1/disk-final/{SEGMENT}", "of another time"),
    ("same_epoch_power_loss__1.1.1", f"broker-2/disk-final/{SEGMENT}", "cut in half"),
    ("unclean_election__4.1.1", "acks.jsonl", "cut to a third"),
    ("unclean_election__4.1.1", "acks.jsonl", "torn"),
    ("unclean_election__4.1.1", "acks.jsonl", "first lines only"),
    ("chaos__4.1.1__seed2", "broker-1/disk-final/t-0/partition.metadata", "torn"),
]


@pytest.mark.parametrize(("incident", "artefact", "what"), CASES)
def test_a_torn_copy_is_not_what_the_disk_held(incident: str, artefact: str, what: str) -> None:
    whole = as_captured(incident)

    now = folded_with(incident, damaged(Path(artefact), WHOLE[what]))

    assert others_than(whole, now) == []
    # What a leader's own log holds is not known where that is cut.
    assert any(lost(partition) for partition in now) or artefact == LEADERS
